//! Whose certificates show that a client is an API server.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

/// Authorities of clients. A client may come without a certificate, which is how API servers call for conversion; one with
/// a certificate of somebody else does not get through the handshake.
#[derive(Clone, Debug)]
pub struct Clients(pub(super) Arc<dyn ClientCertVerifier>);

/// Why authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no PEM.
    #[error("the authorities of clients are no certificates in PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// There are none.
    #[error("there is no certificate among the authorities of clients")]
    Empty,
    /// A certificate is none of an authority.
    #[error("a certificate cannot be an authority of clients")]
    Certificate(#[source] rustls::Error),
    /// The authorities as a whole.
    #[error("the authorities of clients cannot be used")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

impl Clients {
    /// Trusts clients whose certificates these authorities (PEM) have signed.
    pub fn of(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(Error::Pem)?).map_err(Error::Certificate)?;
        }
        if roots.is_empty() {
            return Err(Error::Empty);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(Error::Verifier)?;
        Ok(Self(verifier))
    }
}
