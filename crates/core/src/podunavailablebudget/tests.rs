mod admission;
mod counting;
mod kit;
mod race;
mod recorded;
mod turns;
