//! Flags and environment variables, with the names and defaults that installations use.
//!
//! Flags read as those of Kubernetes' own programs do: `--name=value` or `--name value`, a yes-or-no flag alone means
//! yes, durations are written `1h30m`. [`Options::read`] also refuses what cannot work, naming flag, value and rule.

mod environment;
#[cfg(test)]
mod tests;
mod zone;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, error::ErrorKind};
use kruise_api::duration::GoDuration;

pub use environment::{Certificates, Environment};

/// The longest life of a finished pull entry: 31 days.
const LONGEST_PULL_ENTRY: u64 = 2_678_400;

/// Controllers and webhooks of kruise-rs.
#[derive(Clone, Debug, Parser)]
#[command(name = "kruise-manager", version, disable_help_subcommand = true)]
pub struct Options {
    /// Listen address of /metrics; `0` switches it off.
    #[arg(long, default_value = ":8080", value_name = "ADDRESS")]
    pub metrics_addr: String,
    /// Listen address of /healthz and /readyz.
    #[arg(long, default_value = ":8000", value_name = "ADDRESS")]
    pub health_probe_addr: String,
    /// Serve profiles. This program has none to serve: the address answers with where to find figures instead.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_pprof: bool,
    /// Listen address of the profiles.
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub pprof_addr: String,
    /// Which of several managers leads.
    #[command(flatten)]
    pub election: Election,
    /// Watch objects of one namespace only; empty means all.
    #[arg(long, default_value = "", value_name = "NAMESPACE")]
    pub namespace: String,
    /// How often everything is looked at again although nothing changed. Empty: every 10 hours; 0: never.
    #[arg(long, default_value = "", value_name = "DURATION")]
    pub sync_period: String,
    /// How long the first reading of all objects of a controller may take before the log says that it waits.
    #[arg(long, default_value = "2m", value_parser = duration, value_name = "DURATION")]
    pub controller_cache_sync_timeout: Duration,
    /// How long certificates and webhook configurations may take to be in order at the start.
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub webhook_initialize_timeout: Duration,
    /// Where the webhooks listen [default: WEBHOOK_PORT on WEBHOOK_HOST, or on all addresses without WEBHOOK_HOST].
    /// Another address than WEBHOOK_HOST and WEBHOOK_PORT makes sense behind something that forwards.
    #[arg(long, default_value = "", value_name = "ADDRESS")]
    pub webhook_bind_address: String,
    /// File with the authorities (PEM) of API servers. With it, admission is answered only to clients with a certificate
    /// that one of them has signed.
    #[arg(long, value_name = "FILE")]
    pub webhook_client_ca: Option<PathBuf>,
    /// Requests per second that each controller may send; 0 or less takes the default of 5.
    #[arg(long, default_value_t = 30.0, allow_hyphen_values = true, value_name = "N")]
    pub rest_config_qps: f32,
    /// Requests that each controller may send at once; 0 or less takes the default of 10.
    #[arg(long, default_value_t = 50, allow_hyphen_values = true, value_name = "N")]
    pub rest_config_burst: i32,
    /// Whether pod templates may ask for privileged containers.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub allow_privileged: bool,
    /// Features to switch: Name=true or Name=false, separated by commas; AllAlpha and AllBeta stand for many.
    #[arg(long, default_value = "", value_name = "GATES")]
    pub feature_gates: Vec<String>,
    /// Means something to programs in Go. Accepted and ignored.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    pub disable_no_deepcopy: bool,
    /// How long a controller waits for its own writes to come back before it complains and looks again.
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "DURATION")]
    pub expectation_timeout: Duration,
    /// How a failed reconcile is tried again.
    #[command(flatten)]
    pub retry: Retry,
    /// Folder of the log of refused deletions.
    #[arg(long, default_value = "/log", value_name = "FOLDER")]
    pub protection_log_path: PathBuf,
    /// Seconds that a finished pull entry with the policy Always stays; at most 31 days.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", allow_hyphen_values = true)]
    pub default_ttlseconds_for_always_nodeimage: i64,
    /// How long after a node becomes ready its NodeImage is made.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub nodeimage_creation_delay: Duration,
    /// Containers per second that are restarted because their enhanced liveness probe fails.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    pub enhanced_liveness_qps: f64,
    /// Containers that are restarted at once because their enhanced liveness probes fail.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub enhanced_liveness_burst: u32,
    /// Advanced DaemonSet: leave the choice of nodes to the scheduler.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub assign_pods_by_scheduler: bool,
    /// BroadcastJob: leave the choice of nodes to the scheduler.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub assign_bcj_pods_by_scheduler: bool,
    /// CloneSet: pods that are being prepared for deletion do not count as replicas, for all CloneSets.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub cloneset_scaling_exclude_preparing_delete: bool,
    /// Kinds of workloads for which WorkloadSpread keeps a status by version.
    #[arg(long, default_value = "deployment,replicaset", value_name = "KINDS")]
    pub ws_enabled_versioned_status: String,
    /// Workers of each controller.
    #[command(flatten)]
    pub workers: Workers,
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: Logging,
    /// A kubeconfig, for running outside of the cluster.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

/// Which of several managers leads.
#[derive(Clone, Debug, Args)]
pub struct Election {
    /// Elect a leader; without it every manager acts.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_leader_election: bool,
    /// Namespace of the lease; empty: the one of the pod.
    #[arg(long, default_value = kruise_api::names::NAMESPACE, value_name = "NAMESPACE")]
    pub leader_election_namespace: String,
    /// Name of the lease.
    #[arg(long, default_value = kruise_api::names::LEASE, value_name = "NAME")]
    pub leader_election_id: String,
    /// What is locked.
    #[arg(long, default_value = "leases", value_parser = ["leases"], value_name = "KIND")]
    pub leader_election_resource_lock: String,
    /// How long a leader that falls silent still counts.
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub leader_election_lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub leader_election_renew_deadline: Duration,
    /// How long to wait between two tries.
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "DURATION")]
    pub leader_election_retry_period: Duration,
}

/// How a failed reconcile is tried again.
#[derive(Clone, Debug, Args)]
pub struct Retry {
    /// Wait before the first retry; each further one doubles it.
    #[arg(long, default_value = "5ms", value_parser = duration, value_name = "DURATION")]
    pub rate_limiter_base_delay: Duration,
    /// The longest wait. The original's 1000s is long for someone who waits for a fix.
    #[arg(long, default_value = "300s", value_parser = duration, value_name = "DURATION")]
    pub rate_limiter_max_delay: Duration,
    /// Retries per second of one controller.
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    pub rate_limiter_qps: f64,
    /// Retries of one controller at once.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub rate_limiter_bucket_size: u32,
}

macro_rules! workers {
    ($($(#[$meta:meta])* $field:ident, $default:literal, $controller:literal;)*) => {
        /// Concurrent reconciles of each controller.
        #[derive(Clone, Debug, Args)]
        #[command(next_help_heading = "Workers")]
        pub struct Workers {
            $(
                $(#[$meta])*
                #[arg(long, default_value_t = $default, value_parser = clap::value_parser!(u16).range(1..), value_name = "N",
                    help = concat!("Concurrent reconciles of ", $controller, "."))]
                pub $field: u16,
            )*
        }

        impl Workers {
            /// Workers of the controller with this name.
            pub fn of(&self, controller: &str) -> Option<usize> {
                match controller {
                    $($controller => Some(self.$field.into()),)*
                    _ => None,
                }
            }
        }
    };
}

workers! {
    /// CloneSet.
    cloneset_workers, 3, "cloneset-controller";
    /// StatefulSet.
    statefulset_workers, 3, "statefulset-controller";
    /// DaemonSet.
    daemonset_workers, 3, "daemonset-controller";
    /// BroadcastJob.
    broadcastjob_workers, 3, "broadcastjob-controller";
    /// AdvancedCronJob.
    advancedcronjob_workers, 3, "advancedcronjob-controller";
    /// SidecarSet. More than the original's 3: a restart with tens of thousands of them takes minutes otherwise.
    sidecarset_workers, 8, "sidecarset-controller";
    /// UnitedDeployment.
    uniteddeployment_workers, 3, "uniteddeployment-controller";
    /// WorkloadSpread.
    workloadspread_workers, 3, "workloadspread-controller";
    /// PodUnavailableBudget.
    podunavailablebudget_workers, 3, "podunavailablebudget-controller";
    /// ContainerRecreateRequest.
    crr_workers, 3, "containerrecreaterequest-controller";
    /// ImagePullJob.
    imagepulljob_workers, 3, "imagepulljob-controller";
    /// ImageListPullJob.
    imagelistpulljob_workers, 3, "imagelistpulljob-controller";
    /// NodeImage.
    nodeimage_workers, 3, "nodeimage-controller";
    /// PodProbeMarker.
    podprobemarker_workers, 3, "PodProbeMarker-controller";
    /// NodePodProbe.
    nodepodprobe_workers, 3, "NodePodProbe-controller";
    /// PersistentPodState.
    persistentpodstate_workers, 3, "persistentpodstate-controller";
    /// ResourceDistribution.
    resourcedistribution_workers, 3, "resourcedistribution-controller";
    /// EphemeralJob.
    ephemeraljob_workers, 10, "ephemeraljob-controller";
    /// The one that ends sidecars of finished jobs.
    sidecarterminator_workers, 3, "sidecarterminator-controller";
    /// The one that starts containers in order.
    containerlaunchpriority_workers, 4, "container-launch-priority-controller";
    /// The one that sets the first `KruisePodReady`.
    podreadiness_workers, 3, "pod-readiness-controller";
}

/// What is logged, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct Logging {
    /// `text` (lines as Kubernetes' programs write them) or `json`.
    #[arg(long, default_value = "text", value_parser = ["text", "json"], value_name = "FORMAT")]
    pub logging_format: String,
    /// How much: 0 what changed and what is wrong, 4 why nothing changed, 6 and more every step.
    #[arg(short = 'v', long = "v", default_value_t = 0, value_name = "LEVEL")]
    pub level: u8,
    /// Accepted for old installations: logs go to standard error, always.
    #[command(flatten)]
    pub ignored: IgnoredLogging,
}

macro_rules! ignored {
    ($($field:ident $name:literal),* $(,)?) => {
        /// Flags of the original's logging library that mean nothing here.
        #[derive(Clone, Debug, Args)]
        pub struct IgnoredLogging {
            $(
                /// Accepted and ignored.
                #[arg(long = $name, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
                pub $field: Option<String>,
            )*
        }

        impl IgnoredLogging {
            /// Those that were given.
            pub fn given(&self) -> Vec<&'static str> {
                [$(self.$field.is_some().then_some($name)),*].into_iter().flatten().collect()
            }
        }
    };
}

ignored! {
    vmodule "vmodule",
    logtostderr "logtostderr",
    alsologtostderr "alsologtostderr",
    stderrthreshold "stderrthreshold",
    log_dir "log-dir",
    log_file "log-file",
    log_file_max_size "log-file-max-size",
    skip_headers "skip-headers",
    skip_log_headers "skip-log-headers",
    add_dir_header "add-dir-header",
    one_output "one-output",
    log_backtrace_at "log-backtrace-at",
    log_flush_frequency "log-flush-frequency",
}

impl Options {
    /// Reads the words of a command line, program first.
    pub fn read<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
        if let Some(hint) = words.iter().find_map(|word| moved(word.to_str()?)) {
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, hint));
        }
        let options = Self::try_parse_from(words)?;
        options
            .check()
            .map_err(|problem| clap::Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")))?;
        Ok(options)
    }

    fn check(&self) -> Result<(), String> {
        let ttl = self.default_ttlseconds_for_always_nodeimage;
        if u64::try_from(ttl).is_ok_and(|ttl| ttl <= LONGEST_PULL_ENTRY) {
            let Election {
                leader_election_lease_duration: lease,
                leader_election_renew_deadline: renew,
                leader_election_retry_period: retry,
                ..
            } = &self.election;
            if lease <= renew || renew <= retry {
                return Err(format!(
                    "--leader-election-lease-duration ({lease:?}) must be longer than --leader-election-renew-deadline \
                     ({renew:?}), and that longer than --leader-election-retry-period ({retry:?})"
                ));
            }
            return Ok(());
        }
        Err(format!(
            "--default-ttlseconds-for-always-nodeimage must be between 0 and {LONGEST_PULL_ENTRY} (31 days), not {ttl}"
        ))
    }

    /// The value of `--feature-gates`; a repeated flag adds to it.
    pub fn feature_gates(&self) -> String {
        let parts: Vec<&str> =
            self.feature_gates.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        parts.join(",")
    }

    /// How often everything is looked at again; none: never. A text that is no duration comes back as the error.
    pub fn resync(&self) -> Result<Option<Duration>, String> {
        const DEFAULT: Duration = Duration::from_secs(10 * 60 * 60);
        match self.sync_period.trim() {
            "" => Ok(Some(DEFAULT)),
            "0" => Ok(None),
            text => {
                let period = duration(text)?;
                Ok((!period.is_zero()).then_some(period))
            }
        }
    }

    /// Where the webhooks listen.
    pub fn webhook_address(&self, environment: &Environment) -> String {
        let port = environment.certificates.port;
        match (self.webhook_bind_address.as_str(), &environment.certificates.host) {
            ("", None) => format!(":{port}"),
            // An IPv6 address is written in brackets where a port follows.
            ("", Some(host)) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
            ("", Some(host)) => format!("{host}:{port}"),
            (address, _) => address.to_owned(),
        }
    }

    /// Requests per second and at once for one controller.
    pub fn client_limits(&self) -> (f32, u32) {
        let qps = if self.rest_config_qps > 0.0 { self.rest_config_qps } else { 5.0 };
        let burst = u32::try_from(self.rest_config_burst).ok().filter(|burst| *burst > 0).unwrap_or(10);
        (qps, burst)
    }
}

/// Flags that documentation names and that never existed, and what they mean.
fn moved(word: &str) -> Option<String> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let kind = name.strip_prefix("--concurrent-")?.strip_suffix("-syncs")?;
    Some(format!("unknown flag: {name}; did you mean --{kind}-workers?\n"))
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<GoDuration>().map(|GoDuration(duration)| duration).map_err(|error| error.to_string())
}
