//! Writes tar archives: the few kinds of entries that images need, always with the same bytes for the same content.

const BLOCK: usize = 512;

/// An archive in memory.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    pub(crate) fn folder(&mut self, path: &str, mode: u32) {
        self.entry(path, mode, b'5', "", &[]);
    }

    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entry(path, mode, b'0', "", content);
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, 0o777, b'2', target, &[]);
    }

    /// The whole archive, with the two empty blocks that end it.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    /// One header block, then the content filled up to whole blocks. Paths are ours and shorter than 100 bytes.
    fn entry(&mut self, path: &str, mode: u32, kind: u8, target: &str, content: &[u8]) {
        let header = |checksum: &str| {
            let mut header = Vec::with_capacity(BLOCK);
            let mut field = |text: &str, width: usize| {
                header.extend(text.bytes().chain(std::iter::repeat(0)).take(width));
            };
            field(path, 100);
            field(&format!("{mode:07o}"), 8);
            field(&format!("{:07o}", 0), 8); // owner
            field(&format!("{:07o}", 0), 8); // group
            field(&format!("{:011o}", content.len()), 12);
            field(&format!("{:011o}", 0), 12); // time of change
            field(checksum, 8);
            field(&char::from(kind).to_string(), 1);
            field(target, 100);
            field("ustar\0", 6);
            field("00", 2);
            header.resize(BLOCK, 0);
            header
        };
        // The checksum counts its own field as blanks.
        let sum: u32 = header("        ").iter().map(|byte| u32::from(*byte)).sum();
        self.bytes.extend(header(&format!("{sum:06o}\0 ")));
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn tar_unpacks_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut archive = Archive::default();
        archive.folder("bin/", 0o755);
        archive.file("bin/tool", 0o755, &[7; 1000]);
        archive.link("bin/alias", "tool");
        archive.file("empty", 0o644, b"");
        fs::write(folder.path().join("a.tar"), archive.finish()).expect("written");
        let output = Command::new("tar")
            .args(["-xvf", "a.tar"])
            .current_dir(folder.path())
            .output()
            .expect("tar runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "bin/\nbin/tool\nbin/alias\nempty\n");
        assert_eq!(fs::read(folder.path().join("bin/alias")).expect("there"), [7; 1000]);
    }
}
