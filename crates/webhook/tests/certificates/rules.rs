//! The rules one by one.

use std::time::Duration;

use jiff::Timestamp;
use kruise_webhook::certificates::authority::Authority;
use kruise_webhook::certificates::plan::{Observed, Plan, SETTLE, plan};
use kruise_webhook::certificates::registration::{Kind, Needed, Wanted, register};
use kruise_webhook::certificates::store::{CERT, Data, PREVIOUS, Store, TLS_CERT, TLS_KEY};
use kruise_webhook::certificates::{Environment, Mode, Pair, validity};
use serde_json::{Value, json};

use crate::world::{
    DAY, NAME, Replica, START, World, authorities, configuration, environment, wanted, wanted_of, webhook,
};

fn now() -> Timestamp {
    START.parse().unwrap()
}

/// PLATFORM-1
#[test]
fn a_fresh_cluster_gets_six_keys_and_one_bundle_everywhere() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let (data, _) = world.secret.clone().unwrap();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    assert_eq!(keys, ["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
    assert_eq!((&data["cert.pem"], &data["key.pem"]), (&data["tls.crt"], &data["tls.key"]));
    let bundles = world.bundles();
    assert_eq!(bundles.len(), 4, "three webhooks with a handler and one CRD");
    assert!(bundles.iter().all(|bundle| *bundle == bundles[0] && authorities(bundle).len() == 1));
    let conversion = &world.crds[0].conversion;
    assert_eq!(conversion["webhook"]["clientConfig"]["service"]["path"], "/convert");
    assert_eq!(conversion["webhook"]["clientConfig"]["service"]["port"], 443);
    assert_eq!(conversion["webhook"]["conversionReviewVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(world.crds[1].conversion, json!({ "strategy": "None" }), "left alone");
    assert_eq!(replica.served, Some(world.stored().pair));

    let writes = world.writes;
    for _ in 0..3 {
        replica.sync(&mut world);
    }
    assert_eq!(world.writes, writes, "nothing changed, nothing is written");
}

/// PLATFORM-4
#[test]
fn a_renewal_keeps_both_authorities_until_the_new_one_is_served() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let old = world.stored();
    world.pass(2 * 365 * DAY);
    replica.sync(&mut world);
    assert_eq!(world.stored(), old, "far from its end");

    world.environment.renew_before = 9 * 365 * DAY;
    replica.sync(&mut world);
    let new = world.stored();
    assert_ne!(
        new.pair.authority, old.pair.authority,
        "an authority with eight years left cannot sign for nine"
    );
    for bundle in world.bundles() {
        assert_eq!(authorities(&bundle).len(), 2);
    }
    assert_eq!(replica.served, Some(old.pair.clone()), "servers have to learn of it first");
    assert_eq!(replica.last.as_ref().unwrap().wake_after, Some(SETTLE));

    replica.sync(&mut world);
    assert_eq!(replica.served, Some(old.pair.clone()));
    world.pass(SETTLE);
    replica.sync(&mut world);
    assert_eq!(replica.served, Some(new.pair.clone()));
    for bundle in world.bundles() {
        assert_eq!(authorities(&bundle).len(), 2, "another replica may be slower");
    }
    // At last the old authority runs out.
    world.pass(8 * 365 * DAY + 10 * DAY);
    world.environment.renew_before = DAY;
    replica.sync(&mut world);
    for bundle in world.bundles() {
        assert_eq!(authorities(&bundle).len(), 1);
    }
    assert_eq!(world.stored().pair, new.pair);
}

#[test]
fn a_certificate_that_is_due_is_signed_by_the_same_authority_and_served_at_once() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let authority = world.stored().authority();
    // A certificate that was made long before its authority.
    let old = now().checked_sub(jiff::SignedDuration::from_hours(24 * 3600)).unwrap();
    let mut store = world.stored();
    store.pair = authority.sign(NAME, old).unwrap();
    world.set_secret(Some(store.write()));
    let bundles = world.bundles();
    replica.sync(&mut world);
    assert_eq!(world.stored().authority(), authority);
    assert_ne!(world.stored().pair.certificate, store.pair.certificate);
    assert_eq!(replica.served, Some(world.stored().pair));
    assert_eq!(world.bundles(), bundles);
}

/// PLATFORM-3
#[test]
fn a_deleted_secret_comes_back_and_the_old_certificate_stays_trusted_meanwhile() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let old = replica.authority().unwrap();
    world.set_secret(None);
    replica.sync(&mut world);
    for bundle in world.bundles() {
        let trusted = authorities(&bundle);
        assert!(trusted.len() == 2 && trusted.contains(&old));
    }
    world.pass(SETTLE);
    replica.sync(&mut world);
    world.pass(SETTLE);
    replica.sync(&mut world);
    assert_eq!(replica.served, Some(world.stored().pair));
}

/// Once the time since the old authority was found counted for the new one, which another replica had just published.
#[test]
fn a_new_authority_has_to_be_found_for_as_long_as_any() {
    let mut world = World::new();
    let (mut quick, mut slow) = (Replica::new(), Replica::new());
    quick.sync(&mut world);
    slow.sync(&mut world);
    world.pass(10 * SETTLE);
    let old = slow.served.clone();
    world.set_secret(None);
    quick.sync(&mut world);
    slow.sync(&mut world);
    assert_eq!(slow.served, old, "the bundle with the new authority is a moment old");
    world.pass(SETTLE);
    slow.sync(&mut world);
    assert_eq!(slow.served, Some(world.stored().pair));
}

#[test]
fn trust_in_an_old_authority_ends_when_it_is_taken_out_of_the_secret() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    world.set_secret(None);
    for _ in 0..4 {
        replica.sync(&mut world);
        world.pass(SETTLE);
    }
    let (mut data, _) = world.secret.clone().unwrap();
    assert!(data.remove(PREVIOUS).is_some());
    world.set_secret(Some(data));
    replica.sync(&mut world);
    for bundle in world.bundles() {
        assert_eq!(authorities(&bundle), [replica.authority().unwrap()]);
    }
}

/// PLATFORM-43
#[test]
fn configurations_that_someone_reset_are_repaired_in_one_pass() {
    let mut world = World::new();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let bundles = world.bundles();
    world.reset_configurations();
    assert!(world.bundles().contains(&String::new()));
    replica.sync(&mut world);
    assert_eq!(world.bundles(), bundles);
}

fn pair() -> (Store, Environment) {
    (Store::make(None, Vec::new(), NAME, now()).unwrap(), environment())
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let (store, _) = pair();
    let (other, _) = pair();
    let later = now().checked_add(jiff::SignedDuration::from_hours(24 * 3651)).unwrap();
    let check = |change: &dyn Fn(&mut Pair), name: &str, at: Timestamp, expected: &str| {
        let mut pair = store.pair.clone();
        change(&mut pair);
        let problem = validity::check(&pair, name, at).unwrap_err().to_string();
        assert!(problem.contains(expected), "{problem:?} should contain {expected:?}");
    };
    assert_eq!(validity::check(&store.pair, NAME, now()), Ok(()));
    assert_eq!(validity::check(&store.pair, "localhost", now()), Ok(()));
    check(&|_| {}, "elsewhere.svc", now(), "certificate does not hold for elsewhere.svc");
    check(&|_| {}, NAME, later, "authority is not valid at 2036-11-14");
    check(
        &|pair| pair.key.clone_from(&other.pair.key),
        NAME,
        now(),
        "the key does not belong to the certificate",
    );
    check(&|pair| pair.authority.clone_from(&other.pair.authority), NAME, now(), "certificate does not hold");
    check(&|pair| pair.authority.clear(), NAME, now(), "there is no authority");
    check(&|pair| pair.certificate.clear(), NAME, now(), "there is no certificate");
    check(&|pair| pair.key.clear(), NAME, now(), "there is no key");
    check(&|pair| pair.key = "garbage".to_owned(), NAME, now(), "the key cannot be read");
    check(
        &|pair| {
            pair.certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned();
        },
        NAME,
        now(),
        "the key does not belong to the certificate",
    );
}

#[test]
fn a_secret_with_nothing_or_nonsense_in_it_is_filled() {
    for data in [
        Data::new(),
        Data::from([(CERT.to_owned(), b"x".to_vec())]),
        Data::from([(TLS_CERT.to_owned(), vec![0xff, 0xfe]), (TLS_KEY.to_owned(), vec![0])]),
    ] {
        let mut world = World::new();
        world.set_secret(Some(data));
        let mut replica = Replica::new();
        replica.sync(&mut world);
        assert_eq!(replica.served, Some(world.stored().pair));
        assert_eq!(validity::check(&world.stored().pair, NAME, world.now), Ok(()));
    }
}

#[test]
fn hosts_of_both_address_families_get_address_names() {
    for (host, name) in
        [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7")]
    {
        let mut world = World::new();
        world.environment.host = Some(host.to_owned());
        let mut replica = Replica::new();
        replica.sync(&mut world);
        let pair = world.stored().pair;
        assert_eq!(validity::check(&pair, name, world.now), Ok(()));
        assert_eq!(validity::check(&pair, "localhost", world.now), Ok(()));
        let url = world.crds[0].conversion["webhook"]["clientConfig"]["url"].as_str().unwrap();
        assert!(url.ends_with(":9876/convert"), "{url}");
    }
}

fn original() -> Data {
    let file = |name: &str| {
        let path = format!("{}/tests/data/original-secret/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).unwrap()
    };
    [
        ("ca-cert.pem", "ca-cert.pem"),
        ("ca-key.pem", "ca-key.pem"),
        ("cert.pem", "cert.pem"),
        ("tls.crt", "cert.pem"),
        ("key.pem", "key.pem"),
        ("tls.key", "key.pem"),
    ]
    .map(|(key, name)| (key.to_owned(), file(name)))
    .into()
}

#[test]
fn the_originals_secret_is_served_as_it_is_and_signs_what_comes_next() {
    let mut world = World::new();
    world.set_secret(Some(original()));
    let mut replica = Replica::new();
    replica.sync(&mut world);
    assert_eq!(world.secret.as_ref().unwrap().0, original(), "not touched");
    assert_eq!(replica.served, Some(Store::read(&original()).pair));
    assert!(replica.served.as_ref().unwrap().certified().is_ok());

    // The certificate is lost, the authority is not: its RSA key signs a certificate with a key of ours.
    let mut damaged = original();
    damaged.insert(CERT.to_owned(), b"lost".to_vec());
    world.set_secret(Some(damaged));
    replica.sync(&mut world);
    let store = world.stored();
    assert_eq!(store.pair.authority.as_bytes(), original()["ca-cert.pem"]);
    assert_eq!(validity::check(&store.pair, NAME, world.now), Ok(()));
    assert_eq!(replica.served, Some(store.pair));
    assert!(replica.last.unwrap().configurations.is_empty(), "the bundle stayed");
}

#[test]
fn an_authority_signs_only_what_it_outlives() {
    let authority = Authority::make(now()).unwrap();
    let at = |days: i64| now().checked_add(jiff::SignedDuration::from_hours(24 * days)).unwrap();
    assert!(authority.can_sign_until(at(3649)));
    assert!(!authority.can_sign_until(at(3651)));
    let stranger = Authority { key: Authority::make(now()).unwrap().key, ..authority.clone() };
    assert!(!stranger.can_sign_until(at(1)));
    let broken = Authority { key: "none".to_owned(), ..authority };
    assert!(!broken.can_sign_until(at(1)));
}

#[track_caller]
fn registered(object: &Value, paths: &[&str]) -> Option<Value> {
    register(Kind::Validating, object, &environment(), "QkFTRTY0", &wanted_of(paths), true).unwrap()
}

fn names(object: &Value) -> Vec<&str> {
    object["webhooks"].as_array().unwrap().iter().map(|webhook| webhook["name"].as_str().unwrap()).collect()
}

/// PLATFORM-7
#[test]
fn webhooks_without_a_handler_leave_and_come_back_from_the_template() {
    let shipped = configuration(
        Kind::Validating,
        vec![webhook("vpod.kb.io", "/validate-pod"), webhook("vcloneset.kb.io", "/validate-cloneset")],
    );
    let closed = registered(&shipped, &["/validate-cloneset"]).unwrap();
    assert_eq!(names(&closed), ["vcloneset.kb.io"]);
    let template: Value =
        serde_json::from_str(closed["metadata"]["annotations"]["template"].as_str().unwrap()).unwrap();
    assert_eq!(template, shipped["webhooks"], "the whole list, without a bundle");
    assert_eq!(registered(&closed, &["/validate-cloneset"]), None, "nothing more to do");
    let open = registered(&closed, &["/validate-cloneset", "/validate-pod"]).unwrap();
    assert_eq!(names(&open), ["vpod.kb.io", "vcloneset.kb.io"]);
    assert_eq!(open["webhooks"][0]["clientConfig"]["caBundle"], "QkFTRTY0");

    // An upgrade ships another list and an empty annotation.
    let mut upgraded = open.clone();
    upgraded["metadata"]["annotations"]["template"] = json!("");
    upgraded["webhooks"] = json!([webhook("vnew.kb.io", "/validate-pod")]);
    let taken = registered(&upgraded, &["/validate-cloneset", "/validate-pod"]).unwrap();
    assert_eq!(names(&taken), ["vnew.kb.io"]);
    assert!(taken["metadata"]["annotations"]["template"].as_str().unwrap().contains("vnew.kb.io"));
}

fn needing(name: &str, path: &str) -> Needed {
    Needed { entry: webhook(name, path), paths: vec![path.to_owned(), format!("{path}-v1alpha1")] }
}

/// Services are protected by a gate that is opened after the installation.
fn with_services() -> Wanted {
    let wanted = wanted_of(&["/validate-pod", "/validate-service"]);
    Wanted {
        validating: vec![
            needing("vpod.kb.io", "/validate-pod"),
            needing("vservice.kb.io", "/validate-service"),
        ],
        ..wanted
    }
}

#[test]
fn only_the_leader_adds_what_an_open_gate_needs_and_removes_what_a_closed_one_does_not() {
    let shipped = configuration(Kind::Validating, vec![webhook("vpod.kb.io", "/validate-pod")]);
    let of = |object: &Value, wanted: &Wanted, leads: bool| {
        register(Kind::Validating, object, &environment(), "QkFTRTY0", wanted, leads).unwrap()
    };
    let followed = of(&shipped, &with_services(), false).unwrap();
    assert_eq!(names(&followed), ["vpod.kb.io"]);
    assert_eq!(with_services().missing(Kind::Validating, &followed), ["vservice.kb.io"]);
    let mut open = of(&followed, &with_services(), true).unwrap();
    assert_eq!(names(&open), ["vpod.kb.io", "vservice.kb.io"]);
    assert_eq!(open["webhooks"][1]["clientConfig"]["caBundle"], "QkFTRTY0");
    assert_eq!(of(&open, &with_services(), true), None, "nothing more to do");
    assert_eq!(of(&open, &with_services(), false), None);
    assert_eq!(with_services().missing(Kind::Validating, &open), Vec::<String>::new());
    // A replica with closed gates that does not lead leaves it, and keeps its bundle in order.
    let closed = wanted_of(&["/validate-pod"]);
    assert_eq!(of(&open, &closed, false), None);
    // What users changed stays, and comes back when the gate opens again.
    open["webhooks"][1]["failurePolicy"] = json!("Ignore");
    open["webhooks"][1]["matchConditions"] = json!([{"name": "mine", "expression": "true"}]);
    let taken_out = of(&open, &closed, true).unwrap();
    assert_eq!(names(&taken_out), ["vpod.kb.io"]);
    let again = of(&taken_out, &with_services(), true).unwrap();
    assert_eq!(again["webhooks"][1]["failurePolicy"], "Ignore");
    assert_eq!(again["webhooks"][1]["matchConditions"][0]["name"], "mine");
}

#[test]
fn a_change_of_a_registered_entry_and_foreign_entries_stay() {
    let mut foreign = webhook("policy.example.com", "/validate-pod");
    foreign["clientConfig"] = json!({"url": "https://policy.example.com/validate-pod", "caBundle": "YWJj"});
    let shipped =
        configuration(Kind::Validating, vec![webhook("vpod.kb.io", "/validate-pod"), foreign.clone()]);
    let mut changed = registered(&shipped, &["/validate-pod"]).unwrap();
    assert_eq!(changed["webhooks"][1], foreign);
    let selector = json!({"matchLabels": {"team": "a"}});
    changed["webhooks"][0]["failurePolicy"] = json!("Ignore");
    changed["webhooks"][0]["timeoutSeconds"] = json!(3);
    changed["webhooks"][0]["namespaceSelector"] = selector.clone();
    // Only the annotation follows.
    let kept = registered(&changed, &["/validate-pod"]).unwrap();
    assert_eq!(kept["webhooks"], changed["webhooks"]);
    let template = kept["metadata"]["annotations"]["template"].as_str().unwrap();
    let template: Value = serde_json::from_str(template).unwrap();
    assert_eq!(template[0]["namespaceSelector"], selector);
    assert_eq!(template[0]["clientConfig"]["service"]["path"], "/validate-pod");
    assert_eq!(registered(&kept, &["/validate-pod"]), None);
}

#[test]
fn an_entry_of_an_older_installation_does_the_work_of_a_new_one() {
    let older = webhook("validate-service.old", "/validate-service-v1alpha1");
    let shipped = configuration(Kind::Validating, vec![webhook("vpod.kb.io", "/validate-pod"), older]);
    let mut wanted = with_services();
    wanted.open.insert("/validate-service-v1alpha1".to_owned());
    wanted.known.insert("/validate-service-v1alpha1".to_owned());
    let changed =
        register(Kind::Validating, &shipped, &environment(), "QkFTRTY0", &wanted, true).unwrap().unwrap();
    assert_eq!(names(&changed), ["vpod.kb.io", "validate-service.old"]);
}

#[test]
fn an_installation_elsewhere_gets_its_own_address_and_keeps_its_choices() {
    let mut shipped = configuration(Kind::Validating, vec![webhook("v.kb.io", "/validate-pod")]);
    shipped["webhooks"][0]["clientConfig"]["service"]["namespace"] = json!("elsewhere");
    shipped["webhooks"][0]["clientConfig"]["service"]["port"] = json!(8443);
    shipped["webhooks"][0]["clientConfig"]["caBundle"] = json!("b2xk");
    shipped["webhooks"][0]["failurePolicy"] = json!("Ignore");
    shipped["metadata"].as_object_mut().unwrap().remove("annotations");
    let changed = registered(&shipped, &["/validate-pod"]).unwrap();
    let webhook = &changed["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["service"]["namespace"], "kruise-system");
    assert_eq!(webhook["clientConfig"]["service"]["port"], 8443);
    assert_eq!(webhook["failurePolicy"], "Ignore");
    let template = changed["metadata"]["annotations"]["template"].as_str().unwrap();
    assert!(!template.contains("caBundle"), "{template}");
}

#[test]
fn a_template_without_the_servers_defaults_settles_too() {
    let mut shipped = configuration(Kind::Validating, vec![]);
    let short = json!([{
        "name": "v.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "path": "/validate-pod" } },
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
    }]);
    shipped["metadata"]["annotations"]["template"] = json!(short.to_string());
    let changed = registered(&shipped, &["/validate-pod"]).unwrap();
    assert_eq!(changed["webhooks"][0]["timeoutSeconds"], 10);
    assert_eq!(changed["webhooks"][0]["rules"][0]["scope"], "*");
    assert_eq!(registered(&changed, &["/validate-pod"]), None);
}

#[test]
fn missing_and_broken_configurations_are_problems_that_do_not_stop_the_rest() {
    let (store, environment) = pair();
    let data = store.write();
    let world = World::new();
    let mut broken = configuration(Kind::Validating, vec![]);
    broken["metadata"]["annotations"]["template"] = json!("[");
    let wanted = wanted();
    let seen = Observed {
        now: now(),
        environment: &environment,
        mode: Mode::Secret,
        stored: Some(&data),
        served: None,
        found: None,
        mutating: None,
        validating: Some(&broken),
        crds: &world.crds,
        wanted: &wanted,
        leads: true,
    };
    let Plan::Publish(publish) = plan(&seen) else { panic!() };
    assert_eq!(
        publish.problems,
        [
            "not found MutatingWebhookConfiguration kruise-mutating-webhook-configuration",
            "annotation template of ValidatingWebhookConfiguration kruise-validating-webhook-configuration is no list of \
             webhooks: EOF while parsing a list at line 1 column 1",
        ]
    );
    assert_eq!(publish.conversions.len(), 1);
}

#[test]
fn files_of_two_machines_are_trusted_side_by_side() {
    let mut world = World::new();
    let stores: Vec<Data> = (0..2).map(|_| pair().0.write()).collect();
    let mut files = stores.clone();
    for round in 0..6 {
        let own = &mut files[round % 2];
        let wanted = wanted();
        let seen = Observed {
            now: world.now,
            environment: &world.environment,
            mode: Mode::Files,
            stored: Some(own),
            served: None,
            found: None,
            mutating: Some(&world.configurations[0]),
            validating: Some(&world.configurations[1]),
            crds: &[],
            wanted: &wanted,
            leads: true,
        };
        match plan(&seen) {
            Plan::Keep(data) => *own = data,
            Plan::Publish(publish) => {
                for (kind, object) in publish.configurations {
                    world.configurations[kind as usize] = object;
                }
            }
            Plan::Make(make) => panic!("{}", make.why),
        }
    }
    let bundle = world.configurations[0]["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
    assert_eq!(authorities(bundle).len(), 2);
    world.pass(Duration::ZERO);
}
