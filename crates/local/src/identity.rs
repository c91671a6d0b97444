//! Who asks: whoever a client certificate of this cluster's authority names, the administrator's token, a token of a service
//! account, or nobody.
//!
//! A handshake proves that a client has the key of the certificate it shows, whoever signed it; whether that
//! certificate means anything is decided here, so that a stranger gets a proper `401` and no broken connection. Real API
//! servers do the same.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kruise_apiserver::ApiServer;
use kruise_apiserver::admission::User;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The name of the person at the keyboard.
pub const USER: &str = "kubernetes-admin";
/// The group that may do everything.
pub const GROUP: &str = "system:masters";

/// What lets in.
pub struct Known {
    authority: Arc<dyn ClientCertVerifier>,
    token: String,
}

impl Known {
    /// Certificates that this authority (as PEM) signed, and the administrator's token.
    pub fn new(authority: &str, token: String, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let other = |why: &dyn std::fmt::Display| Error::General(why.to_string());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|why| other(&why))?)?;
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self { authority: builder.build().map_err(|why| other(&why))?, token })
    }

    /// Whom a certificate names, if it is one of the authority's.
    pub fn certified(&self, shown: Option<&CertificateDer<'_>>) -> Option<User> {
        let shown = shown?;
        self.authority.verify_client_cert(shown, &[], UnixTime::now()).ok()?;
        named(shown)
    }

    /// Who asks: whom the connection's certificate names, or else whose token a request shows. `None` for strangers.
    pub fn user(&self, certified: Option<&User>, headers: &HeaderMap, server: &ApiServer) -> Option<User> {
        if let Some(user) = certified {
            return Some(user.clone());
        }
        let token = token_of(headers)?;
        if is_same(token, &self.token) {
            return Some(User::named(USER, &[GROUP]));
        }
        server.authenticate_token(token, &[]).ok().map(|(user, _)| user)
    }
}

/// The common name is the user, the organizations are the groups.
fn named(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name =
        subject.iter_common_name().find_map(|name| name.as_str().ok()).filter(|name| !name.is_empty())?;
    let groups: Vec<&str> = subject.iter_organization().filter_map(|group| group.as_str().ok()).collect();
    let mut user = User::named(name, &groups);
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let id = format!("X509SHA256={}", hex(digest.as_ref()));
    user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![id]);
    Some(user)
}

fn token_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Every byte is looked at, so that the time it takes tells nothing about the token.
fn is_same(shown: &str, kept: &str) -> bool {
    let different = shown.bytes().zip(kept.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == kept.len() && different == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A fresh token that nobody can guess.
pub fn token(provider: &CryptoProvider) -> Result<String, rustls::Error> {
    let mut bytes = [0_u8; 24];
    provider.secure_random.fill(&mut bytes).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(hex(&bytes))
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
    use crate::certificates::Certificates;

    fn known(authority: &str) -> Known {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Known::new(authority, "secret".to_owned(), provider).unwrap()
    }

    #[test]
    fn a_certificate_of_the_authority_names_its_user_and_group() {
        let own = Certificates::make("jane", "developers").unwrap();
        let user = known(&own.authority).certified(Some(&own.client)).unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["developers", "system:authenticated"]);
        let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
        assert_eq!(id.len(), "X509SHA256=".len() + 64, "{id}");
    }

    #[test]
    fn certificates_of_others_and_for_other_ends_name_nobody() {
        let own = Certificates::make("jane", "developers").unwrap();
        let other = Certificates::make("jane", "developers").unwrap();
        let known = known(&own.authority);
        assert!(known.certified(Some(&other.client)).is_none());
        assert!(known.certified(Some(&own.server)).is_none(), "it is for a server");
        assert!(known.certified(Some(&CertificateDer::from(vec![1, 2, 3]))).is_none());
        assert!(known.certified(None).is_none());
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        let token = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, text.parse().unwrap());
            token_of(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer secret").as_deref(), Some("secret"));
        assert_eq!(token("bearer secret ").as_deref(), Some("secret"));
        assert_eq!(token("Basic secret"), None);
        assert_eq!(token("secret"), None);
        assert_eq!(token_of(&HeaderMap::new()), None);
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same("secret", "secret"));
        for other in ["secre", "secreT", "secrets", ""] {
            assert!(!is_same(other, "secret"), "{other}");
        }
    }
}
