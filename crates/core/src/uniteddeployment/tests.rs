mod dividing;
mod kit;
mod planning;
mod properties;
mod revisions;
mod takeover;
