use proptest::{collection, prelude::*, sample};

use super::*;

#[track_caller]
fn parse(flag: &str) -> (Gates, Vec<String>) {
    let (gates, notices) = Gates::parse(flag, &Options::default()).unwrap();
    (gates, notices.iter().map(Notice::to_string).collect())
}

/// Open gates are written plainly, closed ones with `!`.
#[track_caller]
fn check(flag: &str, expected: &str, notices: &[&str]) {
    let (gates, said) = parse(flag);
    for word in expected.split_whitespace() {
        let (name, open) = word.strip_prefix('!').map_or((word, true), |name| (name, false));
        let gate = Gate::named(name).unwrap_or_else(|| panic!("{name} is no gate"));
        assert_eq!(gates.enabled(gate), open, "{gate} after {flag:?}");
    }
    assert_eq!(said, notices, "after {flag:?}");
}

#[track_caller]
fn refused(flag: &str, expected: &str) {
    assert_eq!(Gates::parse(flag, &Options::default()).unwrap_err().to_string(), expected);
}

#[test]
fn the_table_has_the_defaults_and_stages_that_clusters_rely_on() {
    let named = |stage, default| {
        let mut names: Vec<&str> = TABLE
            .iter()
            .filter(|entry| entry.stage == stage && entry.default == default)
            .map(|entry| entry.name)
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(TABLE.len(), 36);
    assert!(named(Stage::Alpha, true).is_empty());
    assert_eq!(named(Stage::Beta, false), ["ResourceDistributionGate", "ResourcesDeletionProtection"]);
    assert_eq!(
        named(Stage::Beta, true),
        [
            "DaemonWatchingPod",
            "InPlaceUpdateEnvFromMetadata",
            "KruiseDaemon",
            "PodIndexLabel",
            "PodProbeMarkerGate",
            "PodUnavailableBudgetDeleteGate",
            "PodWebhook",
            "StatefulSetAutoDeletePVC",
            "WorkloadSpread",
        ]
    );
}

#[test]
fn without_a_flag_the_defaults_hold_and_nothing_is_said() {
    let (gates, said) = parse("");
    assert_eq!(gates, Gates::default());
    assert!(said.is_empty());
}

#[test]
fn settings_may_have_blanks_empty_parts_and_the_booleans_of_go() {
    check(
        " ImagePullJobGate = true ,, CloneSetShortHash=1,WorkloadSpread=F,",
        "ImagePullJobGate CloneSetShortHash !WorkloadSpread",
        &[],
    );
}

#[test]
fn the_last_setting_of_a_gate_counts() {
    check("CloneSetShortHash=true,CloneSetShortHash=false", "!CloneSetShortHash", &[]);
}

#[test]
fn an_explicit_setting_wins_over_its_stage_in_either_order() {
    for flag in
        ["AllBeta=false,PodWebhook=true,KruiseDaemon=true", "PodWebhook=true,KruiseDaemon=true,AllBeta=false"]
    {
        check(flag, "PodWebhook KruiseDaemon !WorkloadSpread !PodIndexLabel !StatefulSetAutoDeletePVC", &[]);
    }
}

#[test]
fn all_alpha_leaves_external_certificates_alone_and_says_so() {
    let notice = "feature gate EnableExternalCerts is not part of AllAlpha; set EnableExternalCerts=true if you want it";
    let cascading = "feature gate DeletionProtectionForCRDCascadingGate is switched off, \
        because ResourcesDeletionProtection is off";
    check("AllAlpha=true", "!EnableExternalCerts SidecarTerminator TemplateNoDefaults", &[notice, cascading]);
    check("EnableExternalCerts=true,AllAlpha=true", "EnableExternalCerts SidecarTerminator", &[cascading]);
    check("AllAlpha=false", "!EnableExternalCerts", &[]);
}

#[test]
fn names_from_documentation_work_with_a_warning() {
    check(
        "EnhancedLivenessProbeGate=true",
        "EnhancedLivenessProbe",
        &["feature gate EnhancedLivenessProbeGate is called EnhancedLivenessProbe; use that name"],
    );
    check(
        "ForceDeleteTimeoutExpectationFeatureGate=true",
        "ForceDeleteTimeoutExpectationGate",
        &[
            "feature gate ForceDeleteTimeoutExpectationFeatureGate is called ForceDeleteTimeoutExpectationGate; \
            use that name",
        ],
    );
}

#[test]
fn without_the_pod_webhook_everything_behind_it_is_off() {
    check(
        "PodWebhook=false,KruisePodReadinessGate=true,ResourcesDeletionProtection=true",
        "!KruisePodReadinessGate !PodUnavailableBudgetDeleteGate !WorkloadSpread ResourcesDeletionProtection",
        &[
            "feature gate KruisePodReadinessGate is switched off, because PodWebhook is off",
            "feature gate PodUnavailableBudgetDeleteGate is switched off, because PodWebhook is off",
            "feature gate WorkloadSpread is switched off, because PodWebhook is off",
        ],
    );
}

#[test]
fn pulling_ahead_of_updates_opens_the_image_pull_jobs() {
    check(
        "PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false",
        "PreDownloadImageForInPlaceUpdate ImagePullJobGate",
        &["feature gate ImagePullJobGate is switched on, because PreDownloadImageForInPlaceUpdate is on"],
    );
}

#[test]
fn without_the_daemon_pulling_ahead_opens_nothing() {
    let (gates, said) =
        parse("KruiseDaemon=false,PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=true");
    assert!(!gates.enabled(Gate::PreDownloadImageForDaemonSetUpdate));
    assert!(!gates.enabled(Gate::ImagePullJobGate));
    assert_eq!(said.len(), 5, "{said:#?}");
}

#[test]
fn no_gate_is_opened_by_one_rule_and_closed_by_another() {
    let (_, said) =
        parse("KruiseDaemon=false,PreDownloadImageForDaemonSetUpdate=true,ImagePullJobGate=false");
    assert!(said.iter().all(|notice| notice.ends_with("because KruiseDaemon is off")), "{said:#?}");
}

#[test]
fn a_name_that_is_no_gate_is_refused_with_the_nearest_one() {
    refused("PodWebhok=true", "unrecognized feature gate: PodWebhok; did you mean PodWebhook?");
    refused("allalpha=true", "unrecognized feature gate: allalpha; did you mean AllAlpha?");
    let error = Gates::parse("NoSuchGate=true", &Options::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("unrecognized feature gate: NoSuchGate; known are AllAlpha, AllBeta, PodWebhook, ")
    );
}

#[test]
fn a_value_that_is_no_boolean_is_refused() {
    refused("PodWebhook=maybe", "invalid value of PodWebhook=maybe; allowed are true and false");
    refused("PodWebhook=", "invalid value of PodWebhook=; allowed are true and false");
    refused("AllBeta=yes", "invalid value of AllBeta=yes; allowed are true and false");
    refused("PodWebhook", "missing bool value for PodWebhook; write PodWebhook=true or PodWebhook=false");
}

#[test]
fn the_old_variable_closes_the_pod_webhook_unless_a_flag_opens_it() {
    let with = |list: &str, flag: &str| {
        let options = Options { custom_resource_enable: Some(list.to_owned()) };
        let (gates, notices) = Gates::parse(flag, &options).unwrap();
        (gates.enabled(Gate::PodWebhook), notices.first().map(Notice::to_string))
    };
    let closed = "feature gate PodWebhook is off, because the environment variable CUSTOM_RESOURCE_ENABLE does \
        not list SidecarSet";
    assert_eq!(with("CloneSet,StatefulSet", ""), (false, Some(closed.to_owned())));
    assert_eq!(with("CloneSet, SidecarSet", ""), (true, None));
    assert_eq!(with("", ""), (true, None));
    assert_eq!(with("CloneSet", "PodWebhook=true"), (true, None));
    assert_eq!(with("CloneSet", "AllBeta=true"), (true, None));
}

#[test]
fn a_closed_gate_is_named_in_the_words_users_look_for() {
    let gates = Gates::default().without(Gate::KruiseDaemon);
    assert_eq!(
        gates.require(Gate::KruiseDaemon).unwrap_err().to_string(),
        "feature-gate KruiseDaemon is not enabled"
    );
    assert_eq!(gates.with(Gate::KruiseDaemon).require(Gate::KruiseDaemon), Ok(()));
}

#[test]
fn no_gate_is_a_second_name_of_another() {
    assert!(ALIASES.iter().all(|(alias, _)| Gate::named(alias).is_none()));
}

fn any_flag() -> impl Strategy<Value = String> {
    let names = TABLE.iter().map(|entry| entry.name).chain(["AllAlpha", "AllBeta"]).collect::<Vec<_>>();
    let setting = (sample::select(names), any::<bool>()).prop_map(|(name, open)| format!("{name}={open}"));
    collection::vec(setting, 0..20).prop_map(|settings| settings.join(","))
}

/// The rules as a reader of the documentation would check them, written apart from the table that applies them.
fn rules_hold(gates: &Gates) -> bool {
    use Gate::*;
    let on = |gate| gates.enabled(gate);
    let none = |list: &[Gate]| list.iter().all(|gate| !on(*gate));
    (on(PodWebhook)
        || none(&[KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate])
            && none(&[WorkloadSpread, SidecarSetPatchPodMetadataDefaultsAllowed, EnhancedLivenessProbe])
            && none(&[EnablePodProbeMarkerOnServerless]))
        && (on(KruiseDaemon)
            || none(&[
                PreDownloadImageForInPlaceUpdate,
                PreDownloadImageForDaemonSetUpdate,
                DaemonWatchingPod,
            ]) && none(&[InPlaceUpdateEnvFromMetadata, PodProbeMarkerGate, SidecarTerminator])
                && none(&[ImagePullJobGate, EnhancedLivenessProbe]))
        && (on(ImagePullJobGate)
            || none(&[PreDownloadImageForInPlaceUpdate, PreDownloadImageForDaemonSetUpdate]))
        && (on(ResourcesDeletionProtection) || none(&[DeletionProtectionForCRDCascadingGate]))
}

proptest! {
    #[test]
    fn any_combination_obeys_the_rules_and_applying_them_again_changes_nothing(
        flag in any_flag(),
        variable in proptest::option::of("(CloneSet|SidecarSet)(,CloneSet|,SidecarSet)?"),
    ) {
        let options = Options { custom_resource_enable: variable };
        let (gates, _) = Gates::parse(&flag, &options).unwrap();
        prop_assert!(rules_hold(&gates), "{gates:?}");
        let mut again = gates.clone();
        prop_assert!(rules::apply(&mut again).is_empty());
        prop_assert_eq!(again, gates);
    }

    #[test]
    fn every_gate_is_as_the_user_set_it_or_a_notice_says_why_not(flag in any_flag()) {
        let (gates, notices) = Gates::parse(&flag, &Options::default()).unwrap();
        for (name, open) in flag.split(',').filter_map(|setting| setting.split_once('=')) {
            let Some(gate) = Gate::named(name) else { continue };
            let last = flag.split(',').filter_map(|setting| setting.split_once('=')).rfind(|(n, _)| *n == name);
            if last != Some((name, open)) {
                continue;
            }
            let excused = notices.iter().any(|notice| matches!(notice, Notice::Overridden { gate: g, .. } if *g == gate));
            prop_assert!(gates.enabled(gate).to_string() == open || excused, "{name}={open} in {flag}");
        }
    }

    #[test]
    fn parsing_never_panics(flag in "\\PC*", settings in "([A-Za-z]{0,12}=?[a-z01]{0,5},?){0,4}") {
        let _ = Gates::parse(&flag, &Options::default());
        let _ = Gates::parse(&settings, &Options { custom_resource_enable: Some(flag) });
    }
}
