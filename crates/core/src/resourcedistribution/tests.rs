mod model;
mod properties;
mod tables;
