mod admission;
mod supervision;
