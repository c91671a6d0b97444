//! The few files of a simulated container, and archives of them.

use std::collections::{BTreeMap, BTreeSet};

/// Most bytes that the files of one container have together.
const MOST: usize = 4 << 20;
const BLOCK: usize = 512;
/// The longest name that the head of an entry has room for.
const MOST_NAME: usize = 100;

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
    /// What every container begins with, and the folders where its volumes are.
    pub(super) fn of(pod: &str, address: &str, volumes: &[String]) -> Self {
        let mut files = Self::default();
        files.files.insert("/etc/hostname".to_owned(), format!("{pod}\n").into_bytes());
        let hosts = format!("127.0.0.1\tlocalhost\n{address}\t{pod}\n");
        files.files.insert("/etc/hosts".to_owned(), hosts.into_bytes());
        for folder in ["/tmp", "/home", "/root", "/usr/bin", "/var/log"] {
            files.make_folder(folder);
        }
        for volume in volumes {
            files.make_folder(&absolute("/", volume));
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

    /// Copies a folder with all in it.
    pub(super) fn copy_folder(&mut self, from: &str, to: &str) {
        let below = format!("{}/", from.trim_end_matches('/'));
        let inside: Vec<(String, Vec<u8>)> = self
            .files
            .iter()
            .filter_map(|(path, bytes)| Some((format!("{to}/{}", path.strip_prefix(&below)?), bytes.clone())))
            .collect();
        self.make_folder(to);
        for (path, bytes) in inside {
            self.write(&path, bytes);
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
        // The name of the next entry, where its own field has no room for it.
        let mut long = None;
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
            rest = after.get(padded..).unwrap_or_default();
            let kind = head.get(156);
            match kind {
                Some(b'x') => long = pax_path(bytes),
                Some(b'L') => long = bytes.split(|byte| *byte == 0).next().map(lossy),
                _ => {}
            }
            if matches!(kind, Some(b'x' | b'L')) {
                continue;
            }
            let path = absolute(folder, &long.take().unwrap_or(name));
            match kind {
                Some(b'5') => self.make_folder(&path),
                Some(b'0' | 0) if !self.write(&path, bytes.to_vec()) => {
                    return Err("no space left on device");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name among the records of a PAX header, each of which is `LENGTH KEY=VALUE` and a line feed, all counted.
fn pax_path(records: &[u8]) -> Option<String> {
    let mut rest = records;
    loop {
        let blank = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(rest.get(..blank)?).ok()?.parse().ok()?;
        let (record, after) = rest.split_at_checked(length)?;
        if let Some(name) = record.get(blank + 1..length.checked_sub(1)?)?.strip_prefix(b"path=") {
            return Some(lossy(name));
        }
        rest = after;
    }
}

/// The record of a name, which counts its own length too.
fn pax_record(name: &str) -> String {
    let others = " path=\n".len() + name.len();
    let mut length = others;
    while length != others + length.to_string().len() {
        length = others + length.to_string().len();
    }
    format!("{length} path={name}\n")
}

/// A file or folder. Names that are too long for their field go ahead in an entry of their own.
fn entry(out: &mut Vec<u8>, name: &str, bytes: &[u8], is_folder: bool) {
    if name.len() > MOST_NAME {
        block(out, "././@PaxHeader", pax_record(name).as_bytes(), b'x');
    }
    block(out, name, bytes, if is_folder { b'5' } else { b'0' });
}

fn block(out: &mut Vec<u8>, name: &str, bytes: &[u8], kind: u8) {
    let mut head = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (place, byte) in head.iter_mut().skip(at).zip(text) {
            *place = *byte;
        }
    };
    put(0, name.as_bytes().get(..name.len().min(MOST_NAME)).unwrap_or_default());
    put(100, if kind == b'5' { b"0000755" } else { b"0000644" });
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", bytes.len()).as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
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
    fn long_names_stay_whole() {
        for length in [99, 100, 101, 985, 990, 9000] {
            let path = format!("/{}", "n".repeat(length));
            let mut files = Files::default();
            assert!(files.write(&path, b"one".to_vec()));
            let mut other = Files::default();
            other.unpack(&files.pack(&path, &path).unwrap(), "/copy").unwrap();
            assert_eq!(other.read(&format!("/copy{path}")), Some(&b"one"[..]), "{length}");
        }
    }

    /// As Go and GNU tar write them, with what is left of the name in its field.
    #[test]
    fn names_that_go_ahead_count() {
        let mut files = Files::default();
        for (kind, head, name) in [
            (b'x', "30 mtime=1700000000.123456789\n15 path=\u{e4}.txt\n", "/\u{e4}.txt"),
            (b'L', "long\0", "/long"),
        ] {
            let mut archive = Vec::new();
            block(&mut archive, "ahead", head.as_bytes(), kind);
            block(&mut archive, ".txt", b"one", b'0');
            block(&mut archive, "next", b"two", b'0');
            files.unpack(&archive, "/").unwrap();
            assert_eq!(files.read(name), Some(&b"one"[..]), "{name}");
            assert_eq!(files.read("/next"), Some(&b"two"[..]));
        }
        assert_eq!(files.read("/.txt"), None);
        for wrong in ["", "x", "5 path=a\n", "999 path=a\n", "0 path=a", "1 "] {
            assert_eq!(pax_path(wrong.as_bytes()), None, "{wrong}");
        }
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
