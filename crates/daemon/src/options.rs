//! Flags, with the names and defaults that installations use.
//!
//! Flags read as those of Kubernetes' own programs do: `--name=value` or `--name value`; a yes-or-no flag alone means yes.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::{Args, Parser};

/// Image pulls, container restarts, probes and container metadata on one node.
#[derive(Clone, Debug, Parser)]
#[command(name = "kruise-daemon", version, disable_help_subcommand = true)]
pub struct Options {
    /// Listen address of /metrics and /healthz.
    #[arg(long, default_value = ":10221", value_name = "ADDRESS")]
    pub addr: String,
    /// Listen address of profiles. This program has none to serve: the address answers with where to find figures.
    #[arg(long, default_value = ":10222", value_name = "ADDRESS")]
    pub pprof_addr: String,
    /// Serve profiles.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_pprof: bool,
    /// The socket of the container runtime, relative to the folder of sockets; empty: it is looked for.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub socket_file: String,
    /// The folder with the sockets of container runtimes.
    #[arg(long, default_value = crate::cri::discovery::FOLDER, value_name = "FOLDER")]
    pub socket_folder: PathBuf,
    /// Which credential plugins there are.
    #[arg(long, default_value = "/kruise/CredentialProviderPlugin.yaml", value_name = "FILE")]
    pub plugin_config_file: PathBuf,
    /// Where they are.
    #[arg(long, default_value = "/kruise/plugins", value_name = "FOLDER")]
    pub plugin_bin_dir: PathBuf,
    /// How many images are pulled at once; 0 or less: no limit.
    #[arg(long, default_value_t = -1, allow_hyphen_values = true, value_name = "N")]
    pub max_workers_for_pull_image: i64,
    /// How much of the file system of images must be free before a pull begins, in percent; 0: no check.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=100), value_name = "PERCENT")]
    pub image_fs_min_free_percent: u8,
    /// Requests per second that each controller may send; 0 or less takes the default of 5.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true, value_name = "N")]
    pub rest_config_qps: f32,
    /// Requests that each controller may send at once; 0 or less takes the default of 10.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true, value_name = "N")]
    pub rest_config_burst: i32,
    /// Features to switch: Name=true or Name=false, separated by commas; AllAlpha and AllBeta stand for many.
    #[arg(long, default_value = "", value_name = "GATES")]
    pub feature_gates: Vec<String>,
    /// A kubeconfig, for running outside of the cluster.
    #[arg(long, default_value = "", value_name = "PATH")]
    pub kubeconfig: String,
    /// `text` (lines as Kubernetes' programs write them) or `json`.
    #[arg(long, default_value = "text", value_parser = ["text", "json"], value_name = "FORMAT")]
    pub logging_format: String,
    /// How much is logged: 0 what changed and what is wrong, 4 why nothing changed, 6 and more every step.
    #[arg(short = 'v', long = "v", default_value_t = 0, value_name = "LEVEL")]
    pub level: u8,
    /// What means nothing here.
    #[command(flatten)]
    pub ignored: Ignored,
}

macro_rules! ignored {
    ($($field:ident $name:literal),* $(,)?) => {
        /// Flags of the original that mean nothing here. Accepted and ignored.
        #[derive(Clone, Debug, Args)]
        pub struct Ignored {
            $(
                /// Accepted and ignored.
                #[arg(long = $name, num_args = 0..=1, default_missing_value = "true", hide = true)]
                pub $field: Option<String>,
            )*
        }
    };
}

ignored! {
    vmodule "vmodule",
    logtostderr "logtostderr",
    alsologtostderr "alsologtostderr",
    stderrthreshold "stderrthreshold",
    log_dir "log-dir",
    log_dir_old "log_dir",
    log_file "log-file",
    log_file_old "log_file",
    log_file_max_size "log-file-max-size",
    log_file_max_size_old "log_file_max_size",
    skip_headers "skip-headers",
    skip_headers_old "skip_headers",
    skip_log_headers "skip-log-headers",
    skip_log_headers_old "skip_log_headers",
    add_dir_header "add-dir-header",
    add_dir_header_old "add_dir_header",
    one_output "one-output",
    one_output_old "one_output",
    log_backtrace_at "log-backtrace-at",
    log_backtrace_at_old "log_backtrace_at",
    log_flush_frequency "log-flush-frequency",
    expectation_timeout "expectation-timeout",
    rate_limiter_base_delay "rate-limiter-base-delay",
    rate_limiter_max_delay "rate-limiter-max-delay",
    rate_limiter_qps "rate-limiter-qps",
    rate_limiter_bucket_size "rate-limiter-bucket-size",
    protection_log_path "protection-log-path",
    disable_no_deepcopy "disable-no-deepcopy",
}

impl Options {
    /// Reads the words of a command line, program first.
    pub fn read<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        Self::try_parse_from(words)
    }

    /// The value of `--feature-gates`; a repeated flag adds to it.
    pub fn feature_gates(&self) -> String {
        let parts = self.feature_gates.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(",")
    }

    /// Requests per second and at once for one controller.
    pub fn rate(&self) -> (f64, u32) {
        let qps = if self.rest_config_qps > 0.0 { self.rest_config_qps.into() } else { 5.0 };
        let burst = u32::try_from(self.rest_config_burst).ok().filter(|burst| *burst > 0).unwrap_or(10);
        (qps, burst)
    }

    /// How many images are pulled at once; no limit unless given.
    pub fn most_pulls(&self) -> Option<usize> {
        usize::try_from(self.max_workers_for_pull_image).ok().filter(|most| *most > 0)
    }
}
