mod kit;
mod properties;
mod recorded;
mod sharing;
mod which;
