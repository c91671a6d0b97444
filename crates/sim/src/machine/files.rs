//! The few files of a simulated container, and archives of them.

use std::collections::{BTreeMap, BTreeSet};

/// Most bytes that the files of one container have together.
const MOST: usize = 4 << 20;
const BLOCK: usize = 512;

/// Files by their full path. Folders are there when something is in them, or when they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
}

/// A path from the root, without dots and doubled slashes.
pub(super) fn absolute(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Files {
    /// What every container begins with.
    pub(super) fn of(pod: &str, address: &str) -> Self {
        let mut files = Self::default();
        files.files.insert("/etc/hostname".to_owned(), format!("{pod}\n").into_bytes());
        let hosts = format!("127.0.0.1\tlocalhost\n{address}\t{pod}\n");
        files.files.insert("/etc/hosts".to_owned(), hosts.into_bytes());
        for folder in ["/tmp", "/home", "/root", "/usr/bin", "/var/log"] {
            files.make_folder(folder);
        }
        files
    }

    pub(super) fn read(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        let below = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let has = |known: &str| known.starts_with(&below);
        path == "/"
            || self.folders.contains(path)
            || self.files.keys().any(|file| has(file))
            || self.folders.iter().any(|folder| has(folder))
    }

    /// Writes a file; false when there is no room.
    pub(super) fn write(&mut self, path: &str, bytes: Vec<u8>) -> bool {
        let others: usize = self
            .files
            .iter()
            .filter(|(known, _)| *known != path)
            .map(|(path, bytes)| path.len() + bytes.len())
            .sum();
        if others + path.len() + bytes.len() > MOST {
            return false;
        }
        self.files.insert(path.to_owned(), bytes);
        true
    }

    pub(super) fn make_folder(&mut self, path: &str) {
        if self.folders.len() < BLOCK {
            self.folders.insert(path.to_owned());
        }
    }

    /// Removes a file, or a folder with all in it; false when there is neither.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        let below = format!("{path}/");
        let is_in = |known: &String| known == path || known.starts_with(&below);
        let before = self.files.len() + self.folders.len();
        self.files.retain(|known, _| !is_in(known));
        self.folders.retain(|known| !is_in(known));
        self.files.len() + self.folders.len() < before
    }

    /// The names in a folder.
    pub(super) fn names(&self, path: &str) -> BTreeSet<String> {
        let below = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let name = |known: &String| Some(known.strip_prefix(&below)?.split('/').next()?.to_owned());
        let all = self.files.keys().chain(&self.folders).filter_map(name);
        all.filter(|name| !name.is_empty()).collect()
    }

    /// An archive (ustar) of a path, under the name that was given for it.
    pub(super) fn pack(&self, path: &str, name: &str) -> Option<Vec<u8>> {
        let name = name.trim_start_matches('/');
        let mut out = Vec::new();
        if let Some(bytes) = self.read(path) {
            entry(&mut out, name, bytes, false);
        } else if self.is_folder(path) {
            entry(&mut out, &format!("{}/", name.trim_end_matches('/')), &[], true);
            let below = if path == "/" { "/".to_owned() } else { format!("{path}/") };
            for (file, bytes) in &self.files {
                if let Some(rest) = file.strip_prefix(&below) {
                    entry(&mut out, &format!("{}/{rest}", name.trim_end_matches('/')), bytes, false);
                }
            }
        } else {
            return None;
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        Some(out)
    }

    /// Unpacks an archive into a folder; the error says what is wrong.
    pub(super) fn unpack(&mut self, archive: &[u8], folder: &str) -> Result<(), &'static str> {
        let mut rest = archive;
        while let Some((head, after)) = rest.split_at_checked(BLOCK) {
            let text = |from: usize, length: usize| {
                let bytes = head.get(from..from + length).unwrap_or_default();
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
                String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).trim().to_owned()
            };
            let name = text(0, 100);
            if name.is_empty() {
                return Ok(());
            }
            let prefix = if head.get(257..262) == Some(b"ustar") { text(345, 155) } else { String::new() };
            let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let size = usize::from_str_radix(&text(124, 12), 8).map_err(|_| "invalid tar header")?;
            let padded = size.div_ceil(BLOCK) * BLOCK;
            let bytes = after.get(..size).ok_or("unexpected end of file")?;
            let path = absolute(folder, &name);
            match head.get(156) {
                Some(b'5') => self.make_folder(&path),
                Some(b'0' | 0) if !self.write(&path, bytes.to_vec()) => {
                    return Err("no space left on device");
                }
                _ => {}
            }
            rest = after.get(padded..).unwrap_or_default();
        }
        Ok(())
    }
}

fn entry(out: &mut Vec<u8>, name: &str, bytes: &[u8], is_folder: bool) {
    let mut head = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (place, byte) in head.iter_mut().skip(at).zip(text) {
            *place = *byte;
        }
    };
    put(0, name.as_bytes().get(..name.len().min(100)).unwrap_or_default());
    put(100, if is_folder { b"0000755" } else { b"0000644" });
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", bytes.len()).as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, if is_folder { b"5" } else { b"0" });
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in head.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").as_bytes()) {
        *place = *byte;
    }
    out.extend_from_slice(&head);
    out.extend_from_slice(bytes);
    out.resize(out.len().div_ceil(BLOCK) * BLOCK, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut files = Files::default();
        assert!(files.write("/data/a.txt", b"one".to_vec()));
        assert!(files.write("/data/deep/b.bin", vec![7; 1500]));
        let archive = files.pack("/data", "/data").unwrap();
        assert_eq!(archive.len() % BLOCK, 0);
        let mut other = Files::default();
        other.unpack(&archive, "/copy").unwrap();
        assert_eq!(other.read("/copy/data/a.txt").unwrap(), b"one");
        assert_eq!(other.read("/copy/data/deep/b.bin").unwrap(), vec![7; 1500]);
        assert!(other.is_folder("/copy/data/deep"));
        assert_eq!(files.pack("/nothing", "nothing"), None);
        assert!(other.unpack(&archive[..600], "/").is_err() || archive.len() > 600);
        assert!(other.unpack(&[b'x'; BLOCK], "/").is_err());
    }

    #[test]
    fn there_is_only_so_much_room() {
        let mut files = Files::default();
        assert!(files.write("/a", vec![0; MOST - 10]));
        assert!(!files.write("/b", vec![0; 10]));
        assert!(files.write("/a", vec![0; 10]));
        assert!(files.remove("/a") && !files.remove("/a"));
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(absolute("/tmp", "a/../b"), "/tmp/b");
        assert_eq!(absolute("/tmp", "/../x/./y//"), "/x/y");
        assert_eq!(absolute("/", "."), "/");
    }
}
