//! What the cluster is meant to be: written before its processes start, read by later commands.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::tool;
use super::version::Binaries;

/// The cluster of the state folder.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) version: String,
    pub(crate) bin_dir: PathBuf,
    pub(crate) real_node: bool,
    pub(crate) hollow: u16,
}

impl Record {
    pub(crate) fn new(binaries: &Binaries, real_node: bool, hollow: u16) -> Self {
        Self { version: binaries.version.to_string(), bin_dir: binaries.dir.clone(), real_node, hollow }
    }

    /// What a cluster becomes when more is asked of it: nothing that runs is taken away.
    pub(crate) fn grown(&self, wanted: &Self) -> Self {
        Self {
            real_node: self.real_node || wanted.real_node,
            hollow: self.hollow.max(wanted.hollow),
            ..self.clone()
        }
    }

    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>> {
        let file = file(layout);
        let Ok(content) = fs::read_to_string(&file) else {
            return Ok(None);
        };
        serde_json::from_str(&content).map(Some).with_context(|| format!("cannot read {}", file.display()))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        tool::write_atomically(&file(layout), serde_json::to_string_pretty(self)?)
    }
}

/// Whether the state folder was written since the machine started. Older data is not trusted: it was not flushed to the
/// disk, and none of its processes can run.
pub(crate) fn is_of_this_boot(layout: &Layout) -> bool {
    fs::read_to_string(boot_file(layout)).is_ok_and(|noted| noted == boot_id())
}

pub(crate) fn note_boot(layout: &Layout) -> Result<()> {
    tool::write_atomically(&boot_file(layout), boot_id())
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn file(layout: &Layout) -> PathBuf {
    layout.state.join("cluster.json")
}

fn boot_file(layout: &Layout) -> PathBuf {
    layout.state.join("boot-id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_grown(before: (bool, u16), wanted: (bool, u16), expected: (bool, u16)) {
        let record = |(real_node, hollow)| Record {
            version: "1.20.2".to_owned(),
            bin_dir: PathBuf::from("/bin"),
            real_node,
            hollow,
        };
        assert_eq!(record(before).grown(&record(wanted)), record(expected));
    }

    #[test]
    fn asking_again_adds_nodes_and_takes_none_away() {
        check_grown((true, 3), (true, 5), (true, 5));
        check_grown((true, 5), (true, 3), (true, 5));
        check_grown((false, 3), (true, 3), (true, 3));
        check_grown((true, 3), (false, 3), (true, 3));
    }
}
