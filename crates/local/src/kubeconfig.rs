//! The file that tells kubectl where the server is and who asks.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::certificates::Certificates;
use crate::identity::USER;

/// Where the file goes unless the user says otherwise.
pub fn default_path(xdg_state_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let state = xdg_state_home
        .filter(|path| path.is_absolute())
        .or_else(|| home.map(|home| home.join(".local/state")))?;
    Some(state.join("kruise-rs/local/kubeconfig"))
}

/// The text. It has the administrator twice: with the certificate, and with the token for programs that know nothing else.
pub fn text(address: SocketAddr, certificates: &Certificates, token: &str) -> String {
    let authority = base64(certificates.authority.as_bytes());
    let certificate = base64(certificates.client_pem.as_bytes());
    let key = base64(certificates.client_key.as_bytes());
    format!(
        "apiVersion: v1
kind: Config
current-context: kruise-local
clusters:
- name: kruise-local
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: {USER}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
- name: {USER}-by-token
  user:
    token: {token}
contexts:
- name: kruise-local
  context:
    cluster: kruise-local
    user: {USER}
    namespace: default
"
    )
}

/// Writes the file so that it appears whole, and readable for its owner only.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = folder.join(name);
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // The failure to tell about is the first one.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            (0..3).fold(0_usize, |bits, i| bits << 8 | usize::from(group.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = LETTERS.get(bits >> (18 - 6 * place) & 63).copied().unwrap_or(b'=');
            text.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn base64_pads_what_is_no_multiple_of_three() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{ff}>?", "w78+Pw=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn the_state_folder_is_honoured_when_it_is_absolute() {
        let home = Some(PathBuf::from("/home/me"));
        let path = |xdg: Option<&str>| default_path(xdg.map(PathBuf::from), home.clone()).unwrap();
        assert_eq!(path(Some("/state")), Path::new("/state/kruise-rs/local/kubeconfig"));
        assert_eq!(path(Some("state")), Path::new("/home/me/.local/state/kruise-rs/local/kubeconfig"));
        assert_eq!(path(None), Path::new("/home/me/.local/state/kruise-rs/local/kubeconfig"));
        assert_eq!(default_path(None, None), None);
    }

    #[test]
    fn the_file_is_for_its_owner_only_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/kubeconfig");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
