//! `kruise-manager`: reads flags, starts, and ends when asked.

use std::process::ExitCode;

use kruise_manager::program;

/// Objects come and go by the thousand: memory must go back to the system after a new list.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::main(std::env::args_os(), |name| std::env::var(name).ok())
}
