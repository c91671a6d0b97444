//! Whether there is room for an image.

/// What is free where images lie, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What can still be used.
    pub free: u64,
}

/// How much must be free before a pull begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In percent of all; zero switches the check off.
    pub percent: u8,
}

impl Wanted {
    /// What is wrong with this space, in a sentence.
    pub fn problem(self, space: Space) -> Option<String> {
        let Space { total, free } = space;
        let least = u128::from(total) * u128::from(self.percent.min(100));
        if total == 0 || u128::from(free) * 100 >= least {
            return None;
        }
        let percent = u128::from(free) * 100 / u128::from(total);
        let mib = free / (1024 * 1024);
        Some(format!(
            "not enough disk space for images on the node: {percent}% ({mib} MiB) is free, at least {}% must be \
             (--image-fs-min-free-percent)",
            self.percent
        ))
    }
}

/// The space of the first folder that can be looked at. A daemon in a container sees the folder of the images rarely; its
/// own root lies on the same file system then, because the runtime keeps containers beside images.
pub(super) fn look(folders: &[String]) -> Option<Space> {
    let candidates = folders.iter().map(String::as_str).filter(|folder| !folder.is_empty()).chain(["/"]);
    candidates.into_iter().find_map(|folder| {
        let stat = rustix::fs::statvfs(folder).ok()?;
        Some(Space {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    })
}
