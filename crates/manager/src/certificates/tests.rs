use std::collections::BTreeSet;
use std::time::Duration;

use kruise_webhook::certificates::{Mode, renew_before};

use super::Settings;
use crate::options;

fn settings(variables: &[(&str, &str)], is_external: bool) -> Settings {
    let lookup =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let variables = options::Environment::read(lookup).unwrap();
    Settings::new(&variables, is_external, BTreeSet::new())
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
