//! Whether a certificate can be used.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};

use super::{Pair, bundle};

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is none.
    #[error("there is no {what}")]
    Missing {
        /// What is missing.
        what: &'static str,
    },
    /// It is no PEM, or none that we can read.
    #[error("the {what} cannot be read: {why}")]
    Unreadable {
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Two things that do not belong together.
    #[error("the key does not belong to the {what}")]
    Mismatch {
        /// What the key should belong to.
        what: &'static str,
    },
    /// It does not chain to the authority, or not for this name.
    #[error("the certificate does not hold for {name}: {why}")]
    Untrusted {
        /// The name that is asked for.
        name: String,
        /// What a client would say.
        why: String,
    },
    /// It runs out too soon.
    #[error("the {what} is not valid at {at}")]
    Expired {
        /// Which one.
        what: &'static str,
        /// When it should still hold.
        at: Timestamp,
    },
}

/// Checks that the key belongs to the certificate, that the authority signed it for this name, and that all of it still
/// holds at this time.
pub fn check(pair: &Pair, name: &str, at: Timestamp) -> Result<(), Problem> {
    let certified = pair.certified()?;
    let authorities = bundle::parse(pair.authority.as_bytes());
    if authorities.is_empty() {
        return Err(Problem::Missing { what: "authority" });
    }
    // Clients check the end of the authority too; the verifier below does not.
    if !authorities.iter().any(|authority| authority.is_valid(at)) {
        return Err(Problem::Expired { what: "authority", at });
    }
    let unreadable = |why: String| Problem::Unreadable { what: "authority", why };
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(pair.authority.as_bytes()).filter_map(Result::ok) {
        roots.add(authority).map_err(|error| unreadable(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unreadable(error.to_string()))?;
    let untrusted = |why: String| Problem::Untrusted { name: name.to_owned(), why };
    let (Some((leaf, between)), Ok(asked)) =
        (certified.cert.split_first(), ServerName::try_from(name.to_owned()))
    else {
        return Err(untrusted("it is no name of a host".to_owned()));
    };
    match verifier.verify_server_cert(leaf, between, &asked, &[], unix(at)) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => Err(Problem::Expired { what: "certificate", at }),
        Err(error) => Err(untrusted(error.to_string())),
    }
}

fn unix(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default()))
}
