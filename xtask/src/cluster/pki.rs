//! Certificates and kubeconfigs.
//!
//! A pair that exists is kept, so that a second run does not cut off what runs; all files appear whole or not at all.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::layout::{API_SERVER_PORT, Layout, SERVICE_ADDRESS};
use super::tool;

/// Who a certificate speaks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity<'a> {
    /// The name of the files.
    pub(crate) file: &'a str,
    pub(crate) user: &'a str,
    pub(crate) group: Option<&'a str>,
}

/// The person at the keyboard, and the API server when it calls a kubelet.
pub(crate) const ADMIN: Identity<'_> =
    Identity { file: "admin", user: "kruise-rs-admin", group: Some("system:masters") };
pub(crate) const CONTROLLER_MANAGER: Identity<'_> =
    Identity { file: "controller-manager", user: "system:kube-controller-manager", group: None };
pub(crate) const SCHEDULER: Identity<'_> =
    Identity { file: "scheduler", user: "system:kube-scheduler", group: None };

/// The files of the cluster's certificate authority.
pub(crate) struct Pki {
    folder: PathBuf,
    authority: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Opens the authority, or makes one.
    pub(crate) fn open(layout: &Layout) -> Result<Self> {
        let folder = layout.pki();
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let key_file = folder.join("ca.key");
        let key = match fs::read_to_string(&key_file) {
            Ok(pem) => KeyPair::from_pem(&pem).context("cannot read ca.key")?,
            Err(_) => {
                let key = KeyPair::generate()?;
                tool::write_atomically(&key_file, key.serialize_pem())?;
                key
            }
        };
        let params = authority_params();
        if !folder.join("ca.crt").exists() {
            tool::write_atomically(&folder.join("ca.crt"), params.self_signed(&key)?.pem())?;
        }
        let pki = Self { folder, authority: Issuer::new(params, key) };
        if !pki.file("service-accounts.pub").exists() {
            let key = KeyPair::generate()?;
            tool::write_atomically(&pki.file("service-accounts.key"), key.serialize_pem())?;
            tool::write_atomically(&pki.file("service-accounts.pub"), key.public_key_pem())?;
        }
        Ok(pki)
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.file("ca.crt")
    }

    /// The API server's own pair, always made anew: the machine's address may have changed.
    pub(crate) fn write_server(&self, address: IpAddr) -> Result<()> {
        let address = address.to_string();
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "127.0.0.1",
            SERVICE_ADDRESS,
            &address,
        ];
        let identity = Identity { file: "apiserver", user: "kube-apiserver", group: None };
        self.write(identity, &names)
    }

    /// Makes the pair of a client, unless it is there.
    pub(crate) fn ensure(&self, identity: Identity<'_>) -> Result<()> {
        if self.certificate(identity).exists() {
            return Ok(());
        }
        self.write(identity, &[])
    }

    pub(crate) fn certificate(&self, identity: Identity<'_>) -> PathBuf {
        self.file(&format!("{}.crt", identity.file))
    }

    pub(crate) fn key(&self, identity: Identity<'_>) -> PathBuf {
        self.file(&format!("{}.key", identity.file))
    }

    /// The kubeconfig of a client, made with its pair unless it is there.
    pub(crate) fn kubeconfig(&self, identity: Identity<'_>) -> Result<PathBuf> {
        self.ensure(identity)?;
        let file = self.file(&format!("{}.kubeconfig", identity.file));
        if !file.exists() {
            tool::write_atomically(&file, self.kubeconfig_text(identity))?;
        }
        Ok(file)
    }

    /// A kubeconfig as text.
    pub(crate) fn kubeconfig_text(&self, identity: Identity<'_>) -> String {
        format!(
            "apiVersion: v1
kind: Config
current-context: kruise-rs
clusters:
- name: kruise-rs
  cluster:
    server: https://127.0.0.1:{API_SERVER_PORT}
    certificate-authority: {authority}
users:
- name: {user}
  user:
    client-certificate: {certificate}
    client-key: {key}
contexts:
- name: kruise-rs
  context:
    cluster: kruise-rs
    user: {user}
",
            authority = self.authority().display(),
            user = identity.user,
            certificate = self.certificate(identity).display(),
            key = self.key(identity).display(),
        )
    }

    /// Signs a pair. The key is written first: whoever sees the certificate can use it.
    fn write(&self, identity: Identity<'_>, names: &[&str]) -> Result<()> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, identity.user);
        if let Some(group) = identity.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        tool::write_atomically(&self.key(identity), key.serialize_pem())?;
        tool::write_atomically(&self.certificate(identity), certificate.pem())
    }
}

/// Always the same, so that the authority can be opened again from its key alone.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, "kruise-rs-cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opened_authority_keeps_its_files_and_signs_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout {
            cache: folder.path().join("cache"),
            state: folder.path().to_path_buf(),
            run: folder.path().join("run"),
        };
        let first = Pki::open(&layout).expect("made");
        first.ensure(ADMIN).expect("signed");
        let read = |pki: &Pki| {
            (fs::read(pki.authority()).expect("there"), fs::read(pki.certificate(ADMIN)).expect("there"))
        };
        let before = read(&first);
        let second = Pki::open(&layout).expect("opened");
        second.ensure(ADMIN).expect("kept");
        second.ensure(SCHEDULER).expect("signed");
        assert_eq!(read(&second), before);
        assert!(second.key(SCHEDULER).exists());
    }
}
