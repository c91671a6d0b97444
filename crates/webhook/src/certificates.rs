//! Certificates of the webhooks: made, stored, renewed, published and served.
//!
//! This module decides; it reads no cluster and no clock. The manager gathers what there is, calls [`plan`], and does
//! what comes out.
//!
//! # How a renewal refuses no call
//!
//! API servers trust the authorities that they find in `caBundle` of the webhook configurations and of the CRDs. Each
//! replica of the manager serves a certificate. The rule that must hold at every moment:
//!
//! > The authority of every served certificate is in every published bundle.
//!
//! The Secret says what the bundle is: the current authority and, under the key [`PREVIOUS`](store::PREVIOUS), the
//! ones before it that have not run out. Every replica follows these steps on its own and needs no word from the others:
//!
//! 1. **Look**: first at the configurations and CRDs, then at the Secret. In this order a replica never holds a bundle
//!    that is newer than the Secret it knows.
//! 2. **Store**: when the Secret holds no usable certificate, make one. Authorities in bundles that do not know the
//!    current authority yet, and the one this replica serves, are kept as previous ones. The write carries the version
//!    that was read: of several replicas one wins, and the others look again.
//! 3. **Publish** the bundle of the Secret. Every write carries the version of the object that was read, so a replica
//!    with an old view cannot undo what another one published.
//! 4. **Serve**: a replica that serves nothing yet starts when the writes are done. One that serves a certificate of
//!    another authority keeps it until it *found* the new authority in every bundle and [`SETTLE`](plan::SETTLE) has
//!    passed, because API servers learn of changes by watching. A new certificate of the same authority is served at
//!    once.
//!
//! A slow replica goes on with its old certificate, whose authority stays in the bundle as long as it is valid. To take
//! trust away from an old authority at once, remove the key from the Secret: an authority that stands in a bundle beside
//! the current one, but not in the Secret, is dropped.
//!
//! The original reads the six keys that it knows and ignores the seventh, so a cluster can go back.

pub mod authority;
pub mod bundle;
pub mod environment;
pub mod external;
pub mod files;
pub mod plan;
pub mod registration;
pub mod renew_before;
pub mod store;
pub mod validity;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

pub use environment::{Environment, Mode};

/// A certificate with its key and the authority that signed it, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// Who signed.
    pub authority: String,
    /// The certificate, with those between it and the authority behind it.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authority, certificate, key: _ } = self;
        formatter
            .debug_struct("Pair")
            .field("authority", authority)
            .field("certificate", certificate)
            .finish_non_exhaustive()
    }
}

impl Pair {
    /// What the listener shows. Fails when key and certificate do not belong together.
    pub fn certified(&self) -> Result<Arc<CertifiedKey>, validity::Problem> {
        use validity::Problem;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let chain =
            chain.map_err(|error| Problem::Unreadable { what: "certificate", why: error.to_string() })?;
        if chain.is_empty() {
            return Err(Problem::Missing { what: "certificate" });
        }
        let unreadable = |why: String| Problem::Unreadable { what: "key", why };
        if self.key.trim().is_empty() {
            return Err(Problem::Missing { what: "key" });
        }
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|e| unreadable(e.to_string()))?;
        let key = any_supported_type(&key).map_err(|error| unreadable(error.to_string()))?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|_| Problem::Mismatch { what: "certificate" })?;
        Ok(Arc::new(certified))
    }
}
