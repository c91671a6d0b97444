//! What a person may say on the command line.

use std::path::PathBuf;

use clap::Parser;

/// A Kubernetes to try things on, in one process: an API server on loopback, simulated nodes, the kinds of kruise-rs.
///
/// Nothing of it is real but the API: images are not pulled and containers do not run. Nothing is kept either, unless
/// --data-dir says where: Ctrl-C ends it and everything in it.
#[derive(Clone, Debug, Parser)]
#[command(name = "kruise-local", version)]
pub struct Options {
    /// How many nodes there are, spread over zone-a, zone-b and zone-c.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub nodes: usize,
    /// The port on 127.0.0.1; 0 takes any free one [default: 6443, or a free one where that is taken].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Where the kubeconfig is written [default: ~/.local/state/kruise-rs/local/kubeconfig].
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Keep the cluster in this folder and go on with what is there: objects, certificates, tokens and the port.
    #[arg(long, value_name = "PATH")]
    pub data_dir: Option<PathBuf>,
    /// How many times faster than real time the cluster lives.
    #[arg(long, default_value_t = 1.0, value_parser = speed, value_name = "X")]
    pub speed: f64,
    /// Roll a Deployment between two images, again and again, and print how it goes.
    #[arg(long)]
    pub demo: bool,
    /// The seed of generated names, uids and the nodes' luck.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Leave out our manager: kinds are only stored. For running one beside it.
    #[arg(long)]
    pub no_manager: bool,
    /// Run a node daemon on every node all the time, also without our manager. Otherwise a node gets one when there is work.
    #[arg(long)]
    pub node_daemons: bool,
    /// Feature gates of the manager and the node daemons, on top of those that are open here (docs/local.md).
    #[arg(long, default_value = "", value_name = "GATE=true,…", hide_default_value = true)]
    pub feature_gates: String,
    /// Say more on standard error: -v warnings and events, -vv every request.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.01..=10_000.0).contains(&speed) {
        Ok(speed)
    } else {
        Err("must be between 0.01 and 10000".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(args: &[&str]) -> String {
        let all = std::iter::once("kruise-local").chain(args.iter().copied());
        Options::try_parse_from(all).unwrap_err().to_string()
    }

    #[test]
    fn wrong_words_are_answered_with_what_is_wrong() {
        assert!(refused(&["--node", "3"]).contains("unexpected argument '--node'"));
        assert!(refused(&["--port", "70000"]).contains("70000 is not in 0..=65535"));
        assert!(refused(&["--speed", "0"]).contains("must be between 0.01 and 10000"));
        assert!(refused(&["--speed", "fast"]).contains("not a number"));
    }
}
