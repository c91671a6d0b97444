//! `kruise-daemon`: reads flags, starts, and ends when asked.

use std::process::ExitCode;

use kruise_daemon::program;

/// Lists of containers come and go: memory must go back to the system afterwards.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::main(std::env::args_os(), |name| std::env::var(name).ok())
}
