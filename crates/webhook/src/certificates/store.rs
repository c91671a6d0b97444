//! What is kept in the Secret.

use std::collections::BTreeMap;

use super::Pair;
use super::authority::Authority;
use super::bundle;

/// Key of the authority's certificate.
pub const CA_CERT: &str = "ca-cert.pem";
/// Key of the authority's key. Never written to disk.
pub const CA_KEY: &str = "ca-key.pem";
/// Key of the certificate.
pub const CERT: &str = "cert.pem";
/// The same certificate under the name that other programs know.
pub const TLS_CERT: &str = "tls.crt";
/// Key of the certificate's key.
pub const KEY: &str = "key.pem";
/// The same key under the name that other programs know.
pub const TLS_KEY: &str = "tls.key";
/// Key of the authorities before the current one. The original does not know it.
pub const PREVIOUS: &str = "previous-ca-certs.pem";

/// The contents of the Secret, or of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// What to serve.
    pub pair: Pair,
    /// The key of the authority; empty where it is not kept.
    pub authority_key: String,
    /// The authorities before the current one, newest first.
    pub previous: Vec<bundle::Authority>,
}

/// `data` of a Secret, decoded.
pub type Data = BTreeMap<String, Vec<u8>>;

impl Store {
    /// Reads what is there; what is missing is empty.
    pub fn read(data: &Data) -> Self {
        let text = |key: &str| {
            data.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
        };
        let either = |key: &str, other: &str| {
            Some(text(key)).filter(|text| !text.is_empty()).unwrap_or_else(|| text(other))
        };
        Self {
            pair: Pair {
                authority: text(CA_CERT),
                certificate: either(CERT, TLS_CERT),
                key: either(KEY, TLS_KEY),
            },
            authority_key: text(CA_KEY),
            previous: data.get(PREVIOUS).map(|pem| bundle::parse(pem)).unwrap_or_default(),
        }
    }

    /// What belongs there: the six keys of the original and ours.
    pub fn write(&self) -> Data {
        let Self { pair: Pair { authority, certificate, key }, authority_key, previous } = self;
        let mut data = BTreeMap::new();
        for (name, text) in [
            (CA_CERT, authority),
            (CA_KEY, authority_key),
            (CERT, certificate),
            (TLS_CERT, certificate),
            (KEY, key),
            (TLS_KEY, key),
        ] {
            data.insert(name.to_owned(), text.clone().into_bytes());
        }
        if !previous.is_empty() {
            data.insert(PREVIOUS.to_owned(), bundle::to_pem("", previous).into_bytes());
        }
        data
    }

    /// The authority, to sign with.
    pub fn authority(&self) -> Authority {
        Authority { certificate: self.pair.authority.clone(), key: self.authority_key.clone() }
    }

    /// Makes new contents.
    pub fn make(
        authority: Option<&Authority>,
        previous: Vec<bundle::Authority>,
        name: &str,
        now: jiff::Timestamp,
    ) -> Result<Self, super::authority::Error> {
        let made;
        let authority = match authority {
            Some(authority) => authority,
            None => {
                made = Authority::make(now)?;
                &made
            }
        };
        Ok(Self { pair: authority.sign(name, now)?, authority_key: authority.key.clone(), previous })
    }
}
