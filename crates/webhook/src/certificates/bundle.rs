//! Authorities to trust, as a list of certificates.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// One authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    der: CertificateDer<'static>,
    begins: Timestamp,
    ends: Timestamp,
}

impl Authority {
    fn read(der: CertificateDer<'static>) -> Option<Self> {
        let (begins, ends) = {
            let (_, parsed) = X509Certificate::from_der(&der).ok()?;
            let validity = parsed.validity();
            let time = |seconds| Timestamp::from_second(seconds).ok();
            (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?)
        };
        Some(Self { der, begins, ends })
    }

    /// Whether it has not run out.
    pub fn is_valid(&self, at: Timestamp) -> bool {
        at <= self.ends
    }

    /// When it began.
    pub fn begins(&self) -> Timestamp {
        self.begins
    }

    /// The certificate as PEM.
    pub fn to_pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            // Base64 is ASCII, so every position is a boundary.
            let (line, more) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }
}

/// The authorities in a PEM text. What is no certificate is left out.
pub fn parse(pem: &[u8]) -> Vec<Authority> {
    let mut found: Vec<Authority> = Vec::new();
    for der in CertificateDer::pem_slice_iter(pem).filter_map(Result::ok) {
        if let Some(authority) = Authority::read(der)
            && !found.contains(&authority)
        {
            found.push(authority);
        }
    }
    found
}

/// The authorities in a `caBundle`, which is a PEM text in base64.
pub fn parse_base64(text: &str) -> Vec<Authority> {
    STANDARD.decode(text).map(|pem| parse(&pem)).unwrap_or_default()
}

/// The text of a `caBundle`: the current authority just as it is stored, so that a bundle of one equals what the
/// original would write, and the previous ones behind it.
pub fn to_base64(current: &str, previous: &[Authority]) -> String {
    STANDARD.encode(to_pem(current, previous))
}

/// The same before it is put in base64.
pub fn to_pem(current: &str, previous: &[Authority]) -> String {
    let mut pem = current.to_owned();
    for authority in previous {
        if !pem.ends_with('\n') {
            pem.push('\n');
        }
        pem.push_str(&authority.to_pem());
    }
    pem
}
