mod kit;
mod properties;
mod scaling;
mod storage;
mod takeover;
mod updating;
