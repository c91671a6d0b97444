//! Certificates of someone else.

use kruise_webhook::certificates::Pair;
use kruise_webhook::certificates::external::{Observed, Plan, plan};
use kruise_webhook::certificates::store::{Data, Store};
use serde_json::json;

use crate::world::{NAME, World};

fn secret(pair: &Pair) -> Data {
    [("ca.crt", &pair.authority), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)]
        .map(|(key, text)| (key.to_owned(), text.clone().into_bytes()))
        .into()
}

fn decide(world: &World, stored: Option<&Data>, served: Option<&Pair>) -> Plan {
    plan(&Observed {
        now: world.now,
        environment: &world.environment,
        secret: "kruise-system/kruise-webhook-certs",
        stored,
        served,
        mutating: Some(&world.configurations[0]),
        validating: Some(&world.configurations[1]),
        crds: &world.crds,
        wanted: &world.wanted,
    })
}

/// What cert-manager's injector does.
fn inject(world: &mut World, pair: &Pair) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let bundle = json!(STANDARD.encode(&pair.authority));
    for object in &mut world.configurations {
        for webhook in object["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = bundle.clone();
        }
    }
    world.crds[0].conversion["webhook"]["clientConfig"]["caBundle"] = bundle;
}

/// PLATFORM-5
#[test]
fn bundles_are_compared_and_never_written() {
    let mut world = World::new();
    let pair = Store::make(None, Vec::new(), NAME, world.now).unwrap().pair;
    let data = secret(&pair);
    let early = decide(&world, Some(&data), None);
    assert_eq!(
        early.problems,
        [
            "caBundle of MutatingWebhookConfiguration kruise-mutating-webhook-configuration does not match the external \
             caBundle",
            "caBundle of ValidatingWebhookConfiguration kruise-validating-webhook-configuration does not match the external \
             caBundle",
            "caBundle of CRD clonesets.apps.kruise.io does not match external caBundle",
        ]
    );
    inject(&mut world, &pair);
    let late = decide(&world, Some(&data), Some(&pair));
    assert_eq!(
        late,
        Plan { serve: None, bundle: pair.authority.clone(), problems: Vec::new(), lacking: Vec::new() }
    );
}

#[test]
fn a_secret_that_cannot_be_used_is_a_problem_with_its_name() {
    let world = World::new();
    assert_eq!(
        decide(&world, None, None).problems,
        ["not found Secret kruise-system/kruise-webhook-certs with external certificates"]
    );
    assert_eq!(
        decide(&world, Some(&Data::new()), None).problems,
        ["Secret kruise-system/kruise-webhook-certs: there is no certificate"]
    );
    let elsewhere = Store::make(None, Vec::new(), "elsewhere.svc", world.now).unwrap().pair;
    let problems = decide(&world, Some(&secret(&elsewhere)), None).problems;
    assert!(
        problems[0].contains("does not hold for kruise-webhook-service.kruise-system.svc"),
        "{problems:?}"
    );
}

#[test]
fn a_new_authority_is_served_when_its_bundle_is_there() {
    let mut world = World::new();
    let old = Store::make(None, Vec::new(), NAME, world.now).unwrap().pair;
    inject(&mut world, &old);
    let new = Store::make(None, Vec::new(), NAME, world.now).unwrap().pair;
    let data = secret(&new);
    let early = decide(&world, Some(&data), Some(&old));
    assert_eq!((early.serve, early.problems.len()), (None, 3));
    inject(&mut world, &new);
    let late = decide(&world, Some(&data), Some(&old));
    assert_eq!((late.serve, late.problems.len()), (Some(new), 0));
}
