use super::*;

fn read(words: &[&str]) -> Options {
    Options::read(std::iter::once("kruise-manager").chain(words.iter().copied())).unwrap()
}

#[track_caller]
fn refused(words: &[&str], expected: &str) {
    let error = Options::read(std::iter::once("kruise-manager").chain(words.iter().copied())).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

/// What an installation with the original's flags gets: the table of flags in the documentation.
#[test]
fn every_flag_has_its_default() {
    let options = read(&[]);
    assert_eq!(options.metrics_addr, ":8080");
    assert_eq!(options.health_probe_addr, ":8000");
    assert!(!options.enable_pprof);
    assert_eq!(options.pprof_addr, "127.0.0.1:8090");
    assert!(options.election.enable_leader_election);
    assert_eq!(options.election.leader_election_namespace, "kruise-system");
    assert_eq!(options.election.leader_election_id, "kruise-manager");
    assert_eq!(options.election.leader_election_lease_duration, Duration::from_secs(15));
    assert_eq!(options.election.leader_election_renew_deadline, Duration::from_secs(10));
    assert_eq!(options.election.leader_election_retry_period, Duration::from_secs(2));
    assert_eq!(options.resync(), Ok(Some(Duration::from_secs(36_000))));
    assert_eq!(options.controller_cache_sync_timeout, Duration::from_secs(120));
    assert_eq!(options.webhook_initialize_timeout, Duration::from_secs(60));
    assert_eq!(options.client_limits(), (30.0, 50));
    assert!(options.allow_privileged);
    assert_eq!(options.expectation_timeout, Duration::from_secs(300));
    assert_eq!(options.retry.rate_limiter_base_delay, Duration::from_millis(5));
    assert_eq!(options.protection_log_path, PathBuf::from("/log"));
    assert_eq!(options.default_ttlseconds_for_always_nodeimage, 300);
    assert_eq!(options.nodeimage_creation_delay, Duration::from_secs(30));
    assert!(options.assign_pods_by_scheduler && options.assign_bcj_pods_by_scheduler);
    assert!(!options.cloneset_scaling_exclude_preparing_delete);
    assert_eq!(options.ws_enabled_versioned_status, "deployment,replicaset");
    assert_eq!(options.workers.of("ephemeraljob-controller"), Some(10));
    assert_eq!(options.workers.of("pod-readiness-controller"), Some(3));
    assert_eq!(options.workers.of("nobody"), None);
}

#[test]
fn flags_are_written_as_kubernetes_programs_take_them() {
    let options = read(&[
        "--enable-leader-election=false",
        "--logtostderr=true",
        "--alsologtostderr",
        "--v=4",
        "--sync-period=0",
        "--rest-config-qps=-1",
        "--cloneset-workers",
        "20",
        "--feature-gates=AllAlpha=true",
        "--feature-gates=PodWebhook=false",
        "--allow-privileged=false",
    ]);
    assert!(!options.election.enable_leader_election && !options.allow_privileged);
    assert_eq!(options.logging.level, 4);
    assert_eq!(options.resync(), Ok(None));
    assert_eq!(options.client_limits().0, 5.0);
    assert_eq!(options.workers.of("cloneset-controller"), Some(20));
    assert_eq!(options.feature_gates(), "AllAlpha=true,PodWebhook=false");
    assert_eq!(options.logging.ignored.given(), ["logtostderr", "alsologtostderr"]);
}

#[test]
fn what_cannot_work_is_refused_with_flag_value_and_rule() {
    refused(&["--no-such-flag"], "unexpected argument '--no-such-flag'");
    refused(&["--concurrent-cloneset-syncs=5"], "did you mean --cloneset-workers?");
    refused(
        &["--default-ttlseconds-for-always-nodeimage=2678401"],
        "--default-ttlseconds-for-always-nodeimage must be between 0 and 2678400 (31 days), not 2678401",
    );
    refused(&["--default-ttlseconds-for-always-nodeimage=-1"], "not -1");
    refused(&["--cloneset-workers=0"], "0 is not in 1..=65535");
    refused(&["--webhook-initialize-timeout=60"], "60");
    refused(&["--leader-election-lease-duration=5s"], "must be longer than --leader-election-renew-deadline");
    assert!(read(&["--sync-period=soon"]).resync().is_err());
    assert_eq!(
        read(&["--default-ttlseconds-for-always-nodeimage=2678400"]).default_ttlseconds_for_always_nodeimage,
        2_678_400
    );
}

#[test]
fn the_environment_has_defaults_and_a_bad_port_is_fatal() {
    let empty = Environment::read(|_| None).unwrap();
    assert_eq!(empty.namespace, "kruise-system");
    assert_eq!(empty.certificates.port, 9876);
    assert!(!empty.certificates.on_disk);
    let host = Environment::read(|name| (name == "WEBHOOK_HOST").then(|| "10.0.0.1".to_owned())).unwrap();
    assert!(host.certificates.on_disk);
    let error = Environment::read(|name| (name == "WEBHOOK_PORT").then(|| "https".to_owned())).unwrap_err();
    assert_eq!(error, "WEBHOOK_PORT must be a port between 0 and 65535, not \"https\"");
}

/// Issue 19: with WEBHOOK_HOST the webhooks listened on all addresses.
#[test]
fn webhooks_listen_where_they_are_registered() {
    let at = |host: &str, flags: &[&str]| {
        let environment =
            Environment::read(|name| (name == "WEBHOOK_HOST" && !host.is_empty()).then(|| host.to_owned()));
        read(flags).webhook_address(&environment.unwrap())
    };
    assert_eq!(at("", &[]), ":9876");
    assert_eq!(at("192.0.2.1", &[]), "192.0.2.1:9876");
    assert_eq!(at("webhooks.example", &[]), "webhooks.example:9876");
    assert_eq!(at("2001:db8::1", &[]), "[2001:db8::1]:9876");
    assert_eq!(at("[2001:db8::1]", &[]), "[2001:db8::1]:9876");
    assert_eq!(at("192.0.2.1", &["--webhook-bind-address=:9000"]), ":9000");
}
