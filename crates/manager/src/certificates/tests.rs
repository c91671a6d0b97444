use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_api::gates::{self, Gates};
use kruise_core::features::webhooks;
use kruise_webhook::certificates::registration::{Kind, Wanted, register};
use kruise_webhook::certificates::{Mode, renew_before};

use serde_json::Value;

use super::{Settings, wanted};
use crate::options;

fn settings(variables: &[(&str, &str)], is_external: bool) -> Settings {
    let lookup =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let variables = options::Environment::read(lookup).unwrap();
    Settings::new(&variables, is_external, Wanted::default())
}

#[test]
fn the_gate_and_the_variables_choose_who_keeps_the_certificates() {
    assert_eq!(settings(&[], false).mode, Mode::Secret);
    assert_eq!(settings(&[("WEBHOOK_CERT_WRITER", "fs")], false).mode, Mode::Files);
    assert_eq!(settings(&[("WEBHOOK_HOST", "192.0.2.1")], false).mode, Mode::Files);
    let both = [("WEBHOOK_HOST", "192.0.2.1"), ("WEBHOOK_CERT_WRITER", "secret")];
    assert_eq!(settings(&both, false).mode, Mode::Secret);
    assert_eq!(settings(&both, true).mode, Mode::External);
}

#[test]
fn a_renewal_time_that_makes_no_sense_is_replaced_by_the_default() {
    let renew_before = |text| settings(&[("CERTS_RENEW_BEFORE", text)], false).environment.renew_before;
    assert_eq!(renew_before("9y"), Duration::from_secs(9 * 365 * 24 * 60 * 60));
    assert_eq!(renew_before("soon"), renew_before::DEFAULT);
    assert_eq!(settings(&[], false).environment.renew_before, renew_before::DEFAULT);
}

/// Every gate is opened and closed against configurations that were made for the defaults.
#[test]
fn configurations_follow_every_gate() {
    let variables = options::Environment::read(|_| None).unwrap();
    let gates = |flag: &str| Gates::parse(flag, &gates::Options::default()).unwrap().0;
    let defaults = webhooks::configurations(&Gates::default(), &webhooks::Options::default());
    let register = |kind: Kind, object: &Value, gates: &Gates| {
        let environment = Settings::new(&variables, false, Wanted::default()).environment;
        let wanted = wanted(&variables, gates);
        register(kind, object, &environment, "QkFTRTY0", &wanted, true)
            .unwrap()
            .unwrap_or_else(|| object.clone())
    };
    let entries = |object: &Value| -> BTreeMap<String, Value> {
        let webhooks = object["webhooks"].as_array().unwrap().iter();
        webhooks.map(|webhook| (webhook["name"].as_str().unwrap().to_owned(), webhook.clone())).collect()
    };
    let mut seen = BTreeSet::new();
    for gate in gates::TABLE.iter().map(|entry| entry.gate) {
        for open in [true, false] {
            let gates = gates(&format!("{}={open}", gate.name()));
            let made = webhooks::configurations(&gates, &webhooks::Options::default());
            for ((kind, before), made) in Kind::ALL.into_iter().zip(&defaults).zip(&made) {
                let followed = register(kind, before, &gates);
                // As the server and the registration complete it.
                let mut wanted = made.clone();
                wanted["metadata"] = before["metadata"].clone();
                let wanted = register(kind, &wanted, &gates);
                assert_eq!(entries(&followed), entries(&wanted), "{}={open}", gate.name());
                seen.insert(entries(&followed).into_keys().collect::<Vec<_>>());
                // And back.
                let back = register(kind, &followed, &Gates::default());
                assert_eq!(entries(&back), entries(&register(kind, before, &Gates::default())));
            }
        }
    }
    assert!(seen.len() > 4, "gates make a difference: {}", seen.len());
}
