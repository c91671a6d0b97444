//! Certificates that someone else makes, such as cert-manager. We read, check and serve; we write nothing.

use jiff::Timestamp;
use serde_json::Value;

use super::registration::{self, Crd, Kind, Wanted};
use super::store::Data;
use super::{Environment, Pair, bundle, validity};

/// Key of the authority.
pub const CA: &str = "ca.crt";
/// Key of the certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of the certificate's key.
pub const KEY: &str = "tls.key";

/// Everything the plan may know.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// Where the webhooks are.
    pub environment: &'a Environment,
    /// Namespace and name of the Secret, for people.
    pub secret: &'a str,
    /// `data` of the Secret.
    pub stored: Option<&'a Data>,
    /// What this replica serves.
    pub served: Option<&'a Pair>,
    /// The configuration of mutating webhooks.
    pub mutating: Option<&'a Value>,
    /// The configuration of validating webhooks.
    pub validating: Option<&'a Value>,
    /// Our CRDs.
    pub crds: &'a [Crd],
    /// What belongs into the configurations.
    pub wanted: &'a Wanted,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to serve, if it is something else than before.
    pub serve: Option<Pair>,
    /// The authority to trust, as PEM.
    pub bundle: String,
    /// What keeps the work from being complete.
    pub problems: Vec<String>,
    /// What open gates need that the configurations do not have: only whoever keeps them can add it.
    pub lacking: Vec<String>,
}

/// What to do next.
pub fn plan(seen: &Observed<'_>) -> Plan {
    let nothing = |problem| Plan {
        serve: None,
        bundle: String::new(),
        problems: vec![problem],
        lacking: lacking(seen),
    };
    let Some(data) = seen.stored else {
        return nothing(format!("not found Secret {} with external certificates", seen.secret));
    };
    let text = |key: &str| {
        data.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    let pair = Pair { authority: text(CA), certificate: text(CERTIFICATE), key: text(KEY) };
    if let Err(problem) = validity::check(&pair, &seen.environment.name(), seen.now) {
        return nothing(format!("Secret {}: {problem}", seen.secret));
    }
    let problems = mismatches(seen, &pair);
    // While servers do not trust the new authority yet, an old certificate that holds is better than a new one.
    let keeps = |served: &&Pair| {
        let is_known = served.authority == pair.authority;
        !is_known && validity::check(served, &seen.environment.name(), seen.now).is_ok()
    };
    let waits = !problems.is_empty() && seen.served.filter(keeps).is_some();
    let is_new = seen.served != Some(&pair);
    let lacking = lacking(seen);
    Plan { bundle: pair.authority.clone(), serve: (is_new && !waits).then_some(pair), problems, lacking }
}

fn lacking(seen: &Observed<'_>) -> Vec<String> {
    let both = [(Kind::Mutating, seen.mutating), (Kind::Validating, seen.validating)];
    let missing = both.into_iter().filter_map(|(kind, object)| {
        let missing = seen.wanted.missing(kind, object?);
        let why = "with EnableExternalCerts the manager does not change it";
        (!missing.is_empty()).then(|| kind.lacks(&missing, why))
    });
    missing.collect()
}

fn mismatches(seen: &Observed<'_>, pair: &Pair) -> Vec<String> {
    let wanted = bundle::parse(pair.authority.as_bytes());
    let mut problems = Vec::new();
    for (kind, object) in [(Kind::Mutating, seen.mutating), (Kind::Validating, seen.validating)] {
        let Some(object) = object else {
            problems.push(kind.missing());
            continue;
        };
        let webhooks = registration::trusted(object, seen.wanted, seen.environment);
        if webhooks.iter().any(|trusted| *trusted != wanted) {
            problems.push(format!(
                "caBundle of {} {} does not match the external caBundle",
                kind.kind(),
                kind.name()
            ));
        }
    }
    for crd in seen.crds.iter().filter(|crd| crd.is_converted()) {
        if crd.trusted() != wanted {
            problems.push(format!("caBundle of CRD {} does not match external caBundle", crd.name));
        }
    }
    problems
}
