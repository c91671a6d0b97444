//! Makes certificates. Keys are drawn here and nowhere else.
//!
//! Keys are ECDSA on P-256. RSA keys that the original stored are read, checked, served and used to sign.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{Pair, bundle};

/// How long an authority and a certificate live.
pub const LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Clocks differ: a certificate is valid a little before it was made.
const SKEW: Duration = Duration::from_secs(60 * 60);
/// The name of the authority.
const NAME: &str = "webhook-cert-ca";

/// An authority that can sign, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key or certificate of the authority cannot be used.
    #[error("the stored authority cannot sign: {0}")]
    Authority(String),
    /// Making it failed.
    #[error("failed to make a certificate for {name}")]
    Make {
        /// The name it is for.
        name: String,
        /// What was wrong.
        source: rcgen::Error,
    },
}

impl Authority {
    /// Makes one.
    pub fn make(now: Timestamp) -> Result<Self, Error> {
        let failed = |source| Error::Make { name: NAME.to_owned(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        set_validity(&mut params, now);
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { certificate, key: key.serialize_pem() })
    }

    /// Signs a certificate for a host or a DNS name, and for `localhost`.
    pub fn sign(&self, name: &str, now: Timestamp) -> Result<Pair, Error> {
        let failed = |source| Error::Make { name: name.to_owned(), source };
        let issuer = self.issuer()?;
        let key = KeyPair::generate().map_err(failed)?;
        // Addresses, of either family, become addresses in the certificate.
        let mut names = vec!["localhost".to_owned(), name.to_owned()];
        names.dedup();
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now);
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        Ok(Pair {
            authority: self.certificate.clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Whether it can sign certificates that hold until `until`.
    pub fn can_sign_until(&self, until: Timestamp) -> bool {
        let one = bundle::parse(self.certificate.as_bytes());
        let [authority] = one.as_slice() else { return false };
        let pair = Pair {
            authority: self.certificate.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        };
        authority.is_valid(until) && pair.certified().is_ok() && self.issuer().is_ok()
    }

    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, Error> {
        let text = |error: &dyn std::fmt::Display| Error::Authority(error.to_string());
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|error| text(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| text(&error))?;
        let key = pkcs8(&key).ok_or_else(|| Error::Authority("its key has an unknown form".to_owned()))?;
        let key = KeyPair::try_from(&key).map_err(|error| text(&error))?;
        Issuer::from_ca_cert_der(&certificate, key).map_err(|error| text(&error))
    }
}

fn set_validity(params: &mut CertificateParams, now: Timestamp) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(SKEW);
    params.not_after = epoch + now + LIFETIME;
}

/// The key in the form that the signer reads. The original stores RSA keys in the older PKCS #1 form, which is the
/// inner part of the newer one.
fn pkcs8(key: &PrivateKeyDer<'_>) -> Option<PrivatePkcs8KeyDer<'static>> {
    /// `INTEGER 0`, then `SEQUENCE { OID rsaEncryption, NULL }`.
    const RSA: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
        0x00,
    ];
    match key {
        PrivateKeyDer::Pkcs8(key) => Some(key.clone_key()),
        PrivateKeyDer::Pkcs1(key) => {
            let mut inner = RSA.to_vec();
            inner.extend(tagged(0x04, key.secret_pkcs1_der()));
            Some(PrivatePkcs8KeyDer::from(tagged(0x30, &inner)))
        }
        _ => None,
    }
}

/// A DER element: tag, length, contents.
fn tagged(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut element = vec![tag];
    match (length.as_slice(), u8::try_from(length.len())) {
        ([], _) => element.push(0),
        ([short], _) if *short < 0x80 => element.push(*short),
        (long, count) => {
            element.push(0x80 | count.unwrap_or_default());
            element.extend_from_slice(long);
        }
    }
    element.extend_from_slice(contents);
    element
}
