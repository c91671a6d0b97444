//! Tokens of service accounts: JSON web tokens that the server signs with a key of its own and later believes.
//!
//! The key is made when it is first needed, by the luck of the machine and not of the seed: a key that follows from a seed
//! could be made by anybody. No token is ever stored, so one seed still gives one history.

use std::sync::OnceLock;

use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Map, Value, json};

use crate::admission::User;
use crate::clock::seconds_text;
use crate::field;
use crate::rest::{Target, WriteOptions};
use crate::server::ApiServer;
use crate::status::{GroupKind, GroupResource, Status};

/// Who issues tokens, and for whom they are unless somebody says otherwise.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How long a token lives unless somebody says otherwise, in seconds.
const USUAL_LIFE: i64 = 3600;
const LEAST_LIFE: i64 = 600;
const MOST_LIFE: i64 = 1 << 32;
/// The life that nodes ask for, which is made longer for programs that read their token only once.
const NODE_LIFE: i64 = 3607;
const LONG_LIFE: i64 = 365 * 24 * 3600;

const KIND: GroupKind<'_> = GroupKind::new("authentication.k8s.io", "TokenRequest");

/// The key that signs, made at first use.
#[derive(Default)]
pub(crate) struct Signer(OnceLock<Option<Key>>);

struct Key {
    pair: EcdsaKeyPair,
    luck: SystemRandom,
    id: String,
}

impl Key {
    /// A key as PKCS #8 writes it.
    fn read(document: &[u8]) -> Option<Self> {
        let luck = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &luck).ok()?;
        let digest = ring::digest::digest(&ring::digest::SHA256, pair.public_key().as_ref());
        Some(Self { id: encode(digest.as_ref()), pair, luck })
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    fn key(&self) -> Result<&Key, Status> {
        let made = self.0.get_or_init(|| {
            let document =
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
            Key::read(document.ok()?.as_ref())
        });
        made.as_ref().ok_or_else(|| Status::internal("no key for tokens can be made"))
    }

    fn sign(&self, claims: &Value) -> Result<String, Status> {
        let key = self.key()?;
        let head = json!({"alg": "ES256", "kid": key.id});
        let text =
            format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signed = key.pair.sign(&key.luck, text.as_bytes());
        let signature = signed.map_err(|_| Status::internal("failed to generate token"))?;
        Ok(format!("{text}.{}", encode(signature.as_ref())))
    }

    /// The claims of a token that was signed here.
    fn claims(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let (_, claims) = text.split_once('.')?;
        let key = self.key().ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key());
        public.verify(text.as_bytes(), &decode(signature)?).ok()?;
        serde_json::from_slice(&decode(claims)?).ok()
    }

    /// `/openid/v1/jwks`.
    pub(crate) fn jwks(&self) -> Result<Value, Status> {
        let key = self.key()?;
        // An uncompressed point: a four, then both coordinates.
        let point = key.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at_checked(point.len() / 2).unwrap_or_default();
        let shown = json!({
            "use": "sig", "kty": "EC", "kid": key.id, "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y),
        });
        Ok(json!({ "keys": [shown] }))
    }
}

/// `/.well-known/openid-configuration`.
pub(crate) fn configuration() -> Value {
    json!({
        "issuer": ISSUER, "jwks_uri": format!("{ISSUER}/openid/v1/jwks"), "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// What a token is bound to besides its account: the member among its claims, the table and the namespace of the object.
const BOUND: [(&str, &str, bool); 3] =
    [("pod", "/pods", true), ("secret", "/secrets", true), ("node", "/nodes", false)];

impl ApiServer {
    /// Signs tokens by this key (ECDSA on P-256, as PKCS #8) instead of one of this process alone, so that tokens outlive
    /// it. False for something that is no such key, and when a token was signed already.
    pub fn set_token_key(&self, document: &[u8]) -> bool {
        Key::read(document).is_some_and(|key| self.access().signer.0.set(Some(key)).is_ok())
    }

    /// Whose token this is, and for which of the audiences it is. Without audiences, that of the server is meant. The
    /// error says what is wrong with it.
    pub fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), String> {
        let invalid = || "invalid bearer token".to_owned();
        let claims = self.access().signer.claims(token).ok_or_else(invalid)?;
        let text = |path: &str| claims.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let list = claims.get("aud").and_then(Value::as_array);
        let own: Vec<&str> = list.into_iter().flatten().filter_map(Value::as_str).collect();
        let wanted = if audiences.is_empty() { vec![ISSUER.to_owned()] } else { audiences.to_vec() };
        let both: Vec<String> = wanted.iter().filter(|one| own.contains(&one.as_str())).cloned().collect();
        if both.is_empty() {
            let wanted: Vec<String> = wanted.iter().map(|one| field::quote(one)).collect();
            let own: Vec<String> = own.iter().map(|one| field::quote(one)).collect();
            let why = format!(
                "token audiences [{}] is invalid for the target audiences [{}]",
                own.join(" "),
                wanted.join(" ")
            );
            return Err(format!("[{}, {why}]", invalid()));
        }
        let wrong = |why: &str| format!("[{}, {why}]", invalid());
        let now = self.clock().now().as_second();
        let number = |key: &str| claims.get(key).and_then(Value::as_i64).unwrap_or_default();
        if now >= number("exp") {
            return Err(wrong("service account token has expired"));
        }
        if now < number("nbf") {
            return Err(wrong("service account token is not valid yet"));
        }
        let namespace = text("/kubernetes.io/namespace");
        let (name, uid) =
            (text("/kubernetes.io/serviceaccount/name"), text("/kubernetes.io/serviceaccount/uid"));
        let account = self.store().get("/serviceaccounts", namespace, name);
        if account.is_none_or(|account| account.uid.as_ref() != uid || account.deleting) {
            return Err(wrong("service account token has been invalidated"));
        }
        let mut user = User::service_account(namespace, name);
        uid.clone_into(&mut user.uid);
        let mut extra = |key: &str, value: &str| {
            if !value.is_empty() {
                user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
            }
        };
        extra("credential-id", &format!("JTI={}", text("/jti")));
        for (member, table, namespaced) in BOUND {
            let (name, uid) = (
                text(&format!("/kubernetes.io/{member}/name")),
                text(&format!("/kubernetes.io/{member}/uid")),
            );
            if name.is_empty() {
                continue;
            }
            let namespace = if namespaced { namespace } else { "" };
            let object = self.store().get(table, namespace, name);
            // The node of a pod is only told; a pod that is there is enough.
            let only_told = member == "node" && !text("/kubernetes.io/pod/name").is_empty();
            if !only_told && object.is_none_or(|object| object.uid.as_ref() != uid) {
                return Err(wrong("service account token has been invalidated"));
            }
            if member != "secret" {
                extra(&format!("{member}-name"), name);
                extra(&format!("{member}-uid"), uid);
            }
        }
        Ok((user, both))
    }

    /// Answers a `TokenRequest` to an account.
    pub(crate) fn request_token(
        &self,
        target: &Target,
        mut request: Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let account = self.get(target)?;
        crate::kinds::canonical("authentication.k8s.io", "v1", "TokenRequest", &mut request).map_err(
            |why| {
                Status::bad_request(format!(
                    "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: {why}"
                ))
            },
        )?;
        let said = |key: &str| {
            let path = format!("/metadata/{key}");
            request.pointer(&path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        for (key, own) in [("name", target.name.as_str()), ("namespace", target.namespace.as_str())] {
            let said = said(key);
            if !said.is_empty() && said != own {
                let rule = format!("must match the service account {key} if specified");
                let error = field::Error::invalid(format!("metadata.{key}"), said, rule);
                return Err(Status::invalid(KIND, &target.name, vec![error]));
            }
        }
        let uid = said("uid");
        if !uid.is_empty() && *uid != *account.uid {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid
            );
            return Err(Status::conflict(GroupResource::new(KIND.group, KIND.kind), &target.name, why));
        }
        let seconds =
            request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(USUAL_LIFE);
        let rule = match seconds {
            ..LEAST_LIFE => Some("may not specify a duration less than 10 minutes"),
            LEAST_LIFE..=MOST_LIFE => None,
            _ => Some("may not specify a duration larger than 2^32 seconds"),
        };
        if let Some(rule) = rule {
            let error = field::Error::invalid("spec.expirationSeconds", seconds, rule);
            return Err(Status::invalid(KIND, "", vec![error]));
        }
        let bound = self.bound(target, request.pointer("/spec/boundObjectRef"))?;
        let asked = request.pointer("/spec/audiences").and_then(Value::as_array);
        let audiences: Vec<Value> = match asked {
            Some(list) if !list.is_empty() => list.clone(),
            _ => vec![ISSUER.into()],
        };

        let now = self.clock().now();
        let is_long = seconds == NODE_LIFE
            && bound.contains_key("pod")
            && audiences.iter().all(|one| one.as_str() == Some(ISSUER));
        let life = if is_long { LONG_LIFE } else { seconds };
        let token = match options.dry_run {
            true => String::new(),
            false => {
                let mut own = bound;
                own.insert("namespace".to_owned(), target.namespace.clone().into());
                own.insert("serviceaccount".to_owned(), json!({"name": target.name, "uid": &*account.uid}));
                if is_long {
                    own.insert("warnafter".to_owned(), (now.as_second() + seconds).into());
                }
                let at = now.as_second();
                let claims = json!({
                    "aud": audiences, "exp": at + life, "iat": at, "iss": ISSUER,
                    "jti": self.random(crate::random::Random::uid), "kubernetes.io": own, "nbf": at,
                    "sub": super::service_account_name(&target.namespace, &target.name),
                });
                self.access().signer.sign(&claims)?
            }
        };
        let ends = Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX);
        let mut spec = json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": null});
        if let (Some(spec), Some(bound)) = (spec.as_object_mut(), request.pointer("/spec/boundObjectRef")) {
            spec.insert("boundObjectRef".to_owned(), bound.clone());
        }
        Ok(json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": target.name, "namespace": target.namespace, "uid": &*account.uid,
                "creationTimestamp": self.clock().now_text(),
            },
            "spec": spec,
            "status": {"token": token, "expirationTimestamp": seconds_text(ends)},
        }))
    }

    /// The claims about what a token is bound to.
    fn bound(&self, target: &Target, reference: Option<&Value>) -> Result<Map<String, Value>, Status> {
        let mut claims = Map::new();
        let Some(reference) = reference.filter(|reference| reference.is_object()) else { return Ok(claims) };
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
        let core = version.is_empty() || version == "v1";
        let (member, plural, namespace) = match kind {
            "Pod" if core => ("pod", "pods", target.namespace.as_str()),
            "Secret" if core => ("secret", "secrets", target.namespace.as_str()),
            "Node" if core => ("node", "nodes", ""),
            _ => {
                let (group, version) = crate::registry::split_api_version(version);
                let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Status::bad_request(why));
            }
        };
        let found = self.store().get(&format!("/{plural}"), namespace, name);
        let found = found.ok_or_else(|| Status::not_found(GroupResource::new("", plural), name))?;
        if kind == "Pod" && found.field("spec.serviceAccountName") != target.name {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                field::quote(&target.name)
            )));
        }
        if !uid.is_empty() && uid != found.uid.as_ref() {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            );
            return Err(Status::conflict(GroupResource::new("", kind), name, why));
        }
        claims.insert(member.to_owned(), json!({"name": name, "uid": &*found.uid}));
        let node = found.field("spec.nodeName");
        if kind == "Pod" && !node.is_empty() {
            let mut claim = json!({"name": node});
            if let (Some(claim), Some(node)) = (claim.as_object_mut(), self.store().get("/nodes", "", node)) {
                claim.insert("uid".to_owned(), node.uid.as_ref().into());
            }
            claims.insert("node".to_owned(), claim);
        }
        Ok(claims)
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 as tokens have it: letters of addresses, no padding.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_usize, |word, byte| (word << 8) | usize::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            text.push(char::from(LETTERS.get((word >> (18 - 6 * place)) & 63).copied().unwrap_or(b'A')));
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for byte in group {
            word = (word << 6) | u32::try_from(LETTERS.iter().position(|known| known == byte)?).ok()?;
        }
        word <<= 6 * (4 - group.len());
        out.extend(word.to_be_bytes().iter().skip(1).take(group.len().checked_sub(1).filter(|n| *n > 0)?));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_as_long_as_nobody_touched_it() {
        let signer = Signer::default();
        let claims = json!({"sub": "me"});
        let token = signer.sign(&claims).unwrap();
        assert_eq!(signer.claims(&token), Some(claims));
        assert_eq!(signer.claims(&format!("{token}A")), None);
        assert_eq!(signer.claims(&format!("x{token}")), None);
        assert_eq!(signer.claims("a.b.c"), None);
        assert_eq!(signer.claims(""), None);
        assert_eq!(Signer::default().claims(&token), None, "another key");
    }

    #[test]
    fn letters_of_tokens_come_back() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", &[0xff, 0xfe, 0xfd, 0xfc]] {
            assert_eq!(decode(&encode(bytes)).unwrap(), bytes);
        }
        assert_eq!(encode(&[0xfb, 0xff]), "-_8");
        assert_eq!(decode("a+b="), None);
    }
}
