mod kit;
mod managing;
mod properties;
mod reaching;
mod standing;
mod takeover;
mod updating;
