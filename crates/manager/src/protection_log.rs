//! The log of refused deletions and evictions: one JSON object per line, for audits.
//!
//! Where the file cannot be written (a root file system that is read-only, say), the same records go to the standard log.

use std::{
    fs::{File, OpenOptions, create_dir_all},
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Where records go.
#[derive(Debug)]
pub struct ProtectionLog {
    file: Mutex<Option<File>>,
}

impl ProtectionLog {
    /// Opens `protection.log` in a folder, making the folder where it is missing. Never fails: says once why there is no
    /// file.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join("protection.log");
        let opened =
            create_dir_all(folder).and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
        let file = opened
            .inspect_err(|error| {
                let path = path.display();
                tracing::warn!(%path, %error, "refused deletions go to this log, the file cannot be written");
            })
            .ok();
        Self { file: Mutex::new(file) }
    }

    /// Appends a record. A file that stops taking records is given up for the standard log.
    pub fn write(&self, record: &serde_json::Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = file.as_mut() {
            // One call per line, so that lines of several replicas on a shared volume stay whole.
            match open.write_all(format!("{record}\n").as_bytes()) {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "the log of refused deletions cannot be written any more, records go to this log");
                    *file = None;
                }
            }
        }
        kruise_runtime::logging::record(record);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_are_appended_as_lines() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("made/on/demand");
        ProtectionLog::open(&below).write(&json!({"Event": "DeletionProtection", "Name": "a"}));
        ProtectionLog::open(&below).write(&json!({"Event": "DeletionProtection", "Name": "b"}));
        let text = std::fs::read_to_string(below.join("protection.log")).unwrap();
        let names: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["Name"].to_string())
            .collect();
        assert_eq!(names, ["\"a\"", "\"b\""]);
    }

    /// Also as root, for whom no folder is read-only: a file stands where the folder should be.
    #[test]
    fn a_path_that_cannot_be_written_does_not_stop_anything() {
        let file = tempfile::NamedTempFile::new().unwrap();
        ProtectionLog::open(&file.path().join("below")).write(&json!({"Event": "DeletionProtection"}));
    }
}
