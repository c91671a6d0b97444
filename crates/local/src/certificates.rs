//! The certificates of one cluster: an authority, the server's own certificate, and the certificate of the person who
//! started it. All are made at the first start and exist only in memory, in the kubeconfig, and in the data folder if
//! there is one.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The names under which programs know an API server.
const SERVER_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Everything a run needs.
pub struct Certificates {
    /// The authority, as PEM.
    pub authority: String,
    /// What the server shows.
    pub server: CertificateDer<'static>,
    /// Its key.
    pub server_key: PrivateKeyDer<'static>,
    /// What the client shows.
    pub client: CertificateDer<'static>,
    /// The same as PEM.
    pub client_pem: String,
    /// The client's key, as PEM.
    pub client_key: String,
}

impl Certificates {
    /// Makes all of them. The client's certificate names `user` and puts it into `group`.
    pub fn make(user: &str, group: &str) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let params = authority();
        let authority = params.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(params, authority_key);

        let server_key = KeyPair::generate()?;
        let mut server = leaf(&SERVER_NAMES, "kube-apiserver", ExtendedKeyUsagePurpose::ServerAuth)?;
        server.distinguished_name.push(DnType::OrganizationName, "kruise-rs");
        let server = server.signed_by(&server_key, &issuer)?;

        let client_key = KeyPair::generate()?;
        let mut client = leaf(&[], user, ExtendedKeyUsagePurpose::ClientAuth)?;
        client.distinguished_name.push(DnType::OrganizationName, group);
        let client = client.signed_by(&client_key, &issuer)?;

        Ok(Self {
            authority,
            server: server.der().clone(),
            server_key: PrivatePkcs8KeyDer::from(server_key.serialize_der()).into(),
            client: client.der().clone(),
            client_pem: client.pem(),
            client_key: client_key.serialize_pem(),
        })
    }
}

/// The names under which the parts are kept.
const PARTS: [&str; 6] = ["authority", "server", "server-key", "client", "client-pem", "client-key"];

impl Certificates {
    /// All of them, to be kept.
    pub fn parts(&self) -> [(&'static str, Vec<u8>); 6] {
        let [authority, server, server_key, client, client_pem, client_key] = PARTS;
        [
            (authority, self.authority.clone().into_bytes()),
            (server, self.server.to_vec()),
            (server_key, self.server_key.secret_der().to_vec()),
            (client, self.client.to_vec()),
            (client_pem, self.client_pem.clone().into_bytes()),
            (client_key, self.client_key.clone().into_bytes()),
        ]
    }

    /// Those that were kept; `None` when a part is missing.
    pub fn of_parts<E>(mut kept: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>) -> Result<Option<Self>, E> {
        let mut found = Vec::new();
        for part in PARTS {
            let Some(bytes) = kept(part)? else { return Ok(None) };
            found.push(bytes);
        }
        let Ok([authority, server, server_key, client, client_pem, client_key]) =
            <[Vec<u8>; 6]>::try_from(found)
        else {
            return Ok(None);
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Self {
            authority: text(authority),
            server: server.into(),
            server_key: PrivatePkcs8KeyDer::from(server_key).into(),
            client: client.into(),
            client_pem: text(client_pem),
            client_key: text(client_key),
        }))
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kruise-rs local");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf(
    names: &[&str],
    common_name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}
