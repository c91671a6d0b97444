//! What a program says about itself: the machine that it is for, and whether it needs libraries of the image.

use anyhow::{Context, Result, ensure};

/// The number of a program header that names a loader.
const INTERPRETER: u32 = 3;

fn bytes<const N: usize>(program: &[u8], at: usize) -> Result<[u8; N]> {
    let found = program.get(at..at.saturating_add(N)).and_then(|bytes| bytes.try_into().ok());
    found.context("the program ends too early")
}

/// Refuses programs that are not of this machine, or that need a loader: there is none in an image without a base.
pub(super) fn check(program: &[u8], machine: u16) -> Result<()> {
    ensure!(program.starts_with(b"\x7fELF\x02\x01"), "no 64-bit ELF program");
    let found = u16::from_le_bytes(bytes(program, 18)?);
    ensure!(found == machine, "built for another machine (ELF machine {found} instead of {machine})");
    let headers = usize::try_from(u64::from_le_bytes(bytes(program, 32)?))?;
    let size = usize::from(u16::from_le_bytes(bytes(program, 54)?));
    for index in 0..usize::from(u16::from_le_bytes(bytes(program, 56)?)) {
        let kind = u32::from_le_bytes(bytes(program, headers.saturating_add(index * size))?);
        ensure!(
            kind != INTERPRETER,
            "linked dynamically: build it with RUSTFLAGS=\"-C target-feature=+crt-static\" and --target"
        );
    }
    Ok(())
}
