//! The certificates of one run: an authority, the server's own certificate, and the certificate of the person who
//! started it. All are made at the start and exist only in memory and in the kubeconfig.

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
