//! Who asks: the person with the client certificate or the token of this run, or nobody.
//!
//! A handshake proves that a client has the key of the certificate it shows, whoever signed it; whether that
//! certificate means anything is decided here, per request, so that a stranger gets a proper `401` and no broken
//! connection. Real API servers do the same.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kruise_apiserver::admission::User;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// The name of the person at the keyboard.
pub const USER: &str = "kubernetes-admin";
/// The group that may do everything.
pub const GROUP: &str = "system:masters";

/// The credentials that mean something in this run.
pub struct Known {
    certificate: CertificateDer<'static>,
    token: String,
}

impl Known {
    /// The two credentials of the administrator.
    pub fn new(certificate: CertificateDer<'static>, token: String) -> Self {
        Self { certificate, token }
    }

    /// Whether a connection with this certificate comes from the administrator.
    pub fn is_known(&self, certificate: Option<&CertificateDer<'_>>) -> bool {
        certificate.is_some_and(|shown| shown.as_ref() == self.certificate.as_ref())
    }

    /// Who asks, given whether the connection's certificate is known. `None` for strangers.
    pub fn user(&self, certified: bool, headers: &HeaderMap) -> Option<User> {
        (certified || self.has_token(headers)).then(User::default)
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some((scheme, token)) = header.split_once(' ') else { return false };
        // Every byte is looked at, so that the time it takes tells nothing about the token.
        let (shown, kept) = (token.trim().as_bytes(), self.token.as_bytes());
        let different = shown.iter().zip(kept).fold(0, |all, (a, b)| all | (a ^ b));
        scheme.eq_ignore_ascii_case("bearer") && shown.len() == kept.len() && different == 0
    }
}

/// A fresh token that nobody can guess.
pub fn token(provider: &CryptoProvider) -> Result<String, rustls::Error> {
    let mut bytes = [0_u8; 24];
    provider.secure_random.fill(&mut bytes).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Accepts every certificate whose key the client proves to have.
#[derive(Debug)]
pub(crate) struct AnyCertificate(pub(crate) Arc<CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(certified: bool, authorization: Option<&str>) -> bool {
        let known = Known::new(CertificateDer::from(vec![1, 2, 3]), "secret".to_owned());
        let mut headers = HeaderMap::new();
        if let Some(text) = authorization {
            headers.insert(AUTHORIZATION, text.parse().unwrap());
        }
        known.user(certified, &headers).is_some()
    }

    #[test]
    fn only_the_certificate_or_the_token_of_this_run_names_somebody() {
        assert!(asks(true, None));
        assert!(asks(false, Some("Bearer secret")));
        assert!(asks(false, Some("bearer secret ")));
        assert!(!asks(false, None));
        assert!(!asks(false, Some("Bearer secre")));
        assert!(!asks(false, Some("Bearer secreT")));
        assert!(!asks(false, Some("Bearer ")));
        assert!(!asks(false, Some("Basic secret")));
    }

    #[test]
    fn another_certificate_is_a_stranger() {
        let known = Known::new(CertificateDer::from(vec![1, 2, 3]), "secret".to_owned());
        assert!(known.is_known(Some(&CertificateDer::from(vec![1, 2, 3]))));
        assert!(!known.is_known(Some(&CertificateDer::from(vec![1, 2]))));
        assert!(!known.is_known(None));
    }
}
