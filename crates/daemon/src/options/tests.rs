//! Command lines that installations use.

use super::Options;

fn read(words: &[&str]) -> Result<Options, String> {
    Options::read(std::iter::once(&"kruise-daemon").chain(words)).map_err(|error| error.to_string())
}

/// Node daemon 8.1-8: the arguments of the chart.
#[test]
fn the_arguments_of_the_chart_are_accepted() {
    let options = read(&[
        "--logtostderr=true",
        "--v=4",
        "--logging-format=json",
        "--addr=:10221",
        "--feature-gates=ImagePullJobGate=true,PodProbeMarkerGate=false",
        "--socket-file=",
        "--enable-pprof=true",
        "--pprof-addr=localhost:10222",
        "--plugin-config-file=/kruise/CredentialProviderPlugin.yaml",
        "--plugin-bin-dir=/kruise/plugins",
        "--rate-limiter-base-delay=5ms",
        "--disable-no-deepcopy",
    ])
    .unwrap();
    assert_eq!((options.level, options.pprof_addr.as_str()), (4, "localhost:10222"));
    assert_eq!(options.feature_gates(), "ImagePullJobGate=true,PodProbeMarkerGate=false");
    assert!(options.socket_file.is_empty());
    assert_eq!(options.logging_format, "json");
}

#[test]
fn nothing_given_means_the_defaults_of_the_original() {
    let options = read(&[]).unwrap();
    assert_eq!((options.addr.as_str(), options.rate(), options.most_pulls()), (":10221", (5.0, 10), None));
    assert_eq!(options.socket_folder.to_str(), Some("/hostvarrun"));
    assert!(options.enable_pprof);
}

#[test]
fn limits_are_read() {
    let options =
        read(&["--max-workers-for-pull-image=2", "--rest-config-qps=30", "--rest-config-burst=50"]).unwrap();
    assert_eq!((options.rate(), options.most_pulls()), ((30.0, 50), Some(2)));
    assert_eq!(read(&["--max-workers-for-pull-image", "-3"]).unwrap().most_pulls(), None);
}

#[test]
fn an_unknown_flag_is_an_error_that_names_it() {
    let error = read(&["--max-concurrency=2"]).unwrap_err();
    assert!(error.contains("--max-concurrency"), "{error}");
}
