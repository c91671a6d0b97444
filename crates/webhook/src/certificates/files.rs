//! Certificates as files, for whoever looks there and for the mode that keeps them nowhere else.
//!
//! All files change at once: each is a link into a folder that one link points at, and that link is replaced. Only the
//! owner can read the folder, keys have mode 0600, and the key of the authority is never written.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::store::{CA_CERT, CA_KEY, CERT, Data, KEY, PREVIOUS, TLS_CERT, TLS_KEY};

/// The link that all files go through.
const CURRENT: &str = "..data";
/// Files that may stand in the folder.
const FILES: [&str; 6] = [CA_CERT, CERT, TLS_CERT, KEY, TLS_KEY, PREVIOUS];

/// Why files were not written.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing} {path}")]
pub struct Error {
    doing: &'static str,
    path: String,
    source: io::Error,
}

fn failed<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error { doing, path: path.display().to_string(), source }
}

/// What is stored in the folder; nothing when there is no certificate.
pub fn read(folder: &Path) -> Option<Data> {
    let mut data = Data::new();
    for name in FILES {
        if let Ok(bytes) = fs::read(folder.join(name)) {
            data.insert(name.to_owned(), bytes);
        }
    }
    // The key of the authority is not kept; that it is empty is part of what is stored.
    data.insert(CA_KEY.to_owned(), Vec::new());
    data.contains_key(TLS_CERT).then_some(data)
}

/// Writes everything but the key of the authority. Nothing happens when it is there already.
pub fn write(folder: &Path, data: &Data) -> Result<(), Error> {
    let name = format!("..{}", fingerprint(data));
    if fs::read_link(folder.join(CURRENT)).is_ok_and(|current| current == Path::new(&name))
        && data.keys().filter(|key| FILES.contains(&key.as_str())).all(|key| folder.join(key).is_file())
    {
        return Ok(());
    }
    private_folder(folder)?;
    let inner = folder.join(&name);
    // A run that was cut short may have left a part of it.
    let _ = fs::remove_dir_all(&inner);
    private_folder(&inner)?;
    for file in FILES {
        let Some(bytes) = data.get(file) else { continue };
        let path = inner.join(file);
        let mode = if matches!(file, KEY | TLS_KEY) { 0o600 } else { 0o644 };
        let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        written.and_then(|mut file| file.write_all(bytes)).map_err(failed("write", &path))?;
    }
    let before = fs::read_link(folder.join(CURRENT)).ok();
    link(Path::new(&name), folder, CURRENT)?;
    for file in FILES {
        let target = Path::new(CURRENT).join(file);
        if data.contains_key(file) && fs::read_link(folder.join(file)).ok().as_deref() != Some(&target) {
            link(&target, folder, file)?;
        }
        if !data.contains_key(file) {
            let _ = fs::remove_file(folder.join(file));
        }
    }
    // What the original left: the key of the authority, and the folder that was current.
    let _ = fs::remove_file(folder.join(CA_KEY));
    if let Some(before) =
        before.filter(|before| before != Path::new(&name) && before.components().count() == 1)
    {
        let _ = fs::remove_dir_all(folder.join(before));
    }
    Ok(())
}

fn private_folder(folder: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed("create", folder))?;
    fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed("protect", folder))
}

/// Makes a link, in place of whatever has its name.
fn link(target: &Path, folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(name);
    let fresh = folder.join(format!("..new-{}", name.trim_start_matches('.')));
    let _ = fs::remove_file(&fresh);
    symlink(target, &fresh).map_err(failed("link", &fresh))?;
    fs::rename(&fresh, &path).map_err(failed("replace", &path))
}

fn fingerprint(data: &Data) -> String {
    let mut hash = Sha256::new();
    for file in FILES {
        let bytes = data.get(file).map(Vec::as_slice).unwrap_or_default();
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(content: &str) -> Data {
        [CA_CERT, CA_KEY, CERT, TLS_CERT, KEY, TLS_KEY]
            .into_iter()
            .map(|name| (name.to_owned(), format!("{name} {content}").into_bytes()))
            .collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_private_and_the_authoritys_key_is_nowhere() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("certs");
        write(&folder, &data("1")).unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join(CURRENT)), 0o700);
        assert_eq!((mode(&folder.join(TLS_KEY)), mode(&folder.join(KEY))), (0o600, 0o600));
        assert_eq!(fs::read_to_string(folder.join(TLS_CERT)).unwrap(), "tls.crt 1");
        assert!(!folder.join(CA_KEY).exists());
        let mut stored = read(&folder).unwrap();
        assert_eq!(stored.remove(CA_KEY), Some(Vec::new()));
        let mut expected = data("1");
        expected.remove(CA_KEY);
        assert_eq!(stored, expected);
    }

    #[test]
    fn new_files_replace_old_ones_at_once_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        for content in ["1", "2", "2", "3"] {
            write(folder.path(), &data(content)).unwrap();
            assert_eq!(fs::read_to_string(folder.path().join(CERT)).unwrap(), format!("cert.pem {content}"));
        }
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("..")).collect();
        assert_eq!(hidden.len(), 2, "the link and the folder: {hidden:?}");
    }

    #[test]
    fn what_the_original_left_is_taken_over_and_its_authoritys_key_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        for (name, bytes) in data("original") {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        write(folder.path(), &data("ours")).unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert!(!folder.path().join(CA_KEY).exists());
        assert_eq!(fs::read_to_string(folder.path().join(TLS_KEY)).unwrap(), "tls.key ours");
    }

    #[test]
    fn an_empty_folder_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), None);
        assert_eq!(read(&folder.path().join("none")), None);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = write(&file.join("certs"), &data("1")).unwrap_err();
        assert!(error.to_string().contains("file/certs"), "{error}");
    }
}
