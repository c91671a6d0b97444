//! What an image does: how long its pull takes, whether it crashes, ends, gets ready, obeys a stop signal.
//!
//! Every image runs for ever and is ready at once, unless [`Images::declare`] or its name says otherwise. A
//! name says so by words, joined with `-`: either the last part of the repository consists only of such words
//! (`crash:1`, `example.com/slow30-exit3:v2`), or all words of the tag behind the first one are such
//! (`web:v2-fail`). The words:
//!
//! | word | meaning |
//! | --- | --- |
//! | `fail` | cannot be pulled: `ErrImagePull`, then `ImagePullBackOff` |
//! | `slow`, `slow30` | the pull takes 60 s, or that many seconds |
//! | `crash`, `crash30` | ends with code 1 after 2 s, or that many seconds |
//! | `exit0` … `exit255` | ends with that code after 5 s |
//! | `after30` | changes the time after which `crash` and `exit` end to that many seconds |
//! | `stubborn` | ignores SIGTERM, so that it is killed at the end of its grace period |
//! | `linger10` | takes that many seconds to end after SIGTERM |
//! | `unready`, `unready30` | the readiness probe never passes, or only after that many seconds |
//! | `unhealthy30` | the liveness probe fails from that many seconds after the start |
//! | `warmup20` | the startup probe passes only after that many seconds |
//!
//! A few commands are understood too, because demos use them with any image: `sleep N`, `true`, `false`, and a
//! shell whose script is `exit N` or ends in `; exit N`, or is `sleep N`.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// The behaviour of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// How long a pull takes; `None` is the node's usual time.
    pub pull: Option<Duration>,
    /// Whether pulls fail.
    pub pull_fails: bool,
    /// When and with which code the main process ends by itself.
    pub ends: Option<(Duration, i32)>,
    /// Whether SIGTERM is ignored.
    pub ignores_sigterm: bool,
    /// How long the process takes to end after SIGTERM.
    pub stop: Duration,
    /// From when on after the start the readiness probe passes; `None` is never.
    pub ready_after: Option<Duration>,
    /// From when on after the start the liveness probe fails; `None` is never.
    pub unhealthy_after: Option<Duration>,
    /// From when on after the start the startup probe passes; `None` is never.
    pub started_after: Option<Duration>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            pull: None,
            pull_fails: false,
            ends: None,
            ignores_sigterm: false,
            stop: Duration::from_millis(300),
            ready_after: Some(Duration::ZERO),
            unhealthy_after: None,
            started_after: Some(Duration::ZERO),
        }
    }
}

/// What is known about images: declared behaviours, and names that mean the same image.
#[derive(Clone, Debug, Default)]
pub struct Images {
    declared: BTreeMap<String, Behaviour>,
    aliases: BTreeMap<String, String>,
    /// Who may pull, by the beginning of the full name: user and password.
    accounts: BTreeMap<String, (String, String)>,
}

impl Images {
    /// Says what an image does; the exact name as pods write it.
    pub fn declare(&mut self, image: &str, behaviour: Behaviour) {
        self.declared.insert(image.to_owned(), behaviour);
    }

    /// Makes `image` another name of `target`: both have one imageID.
    pub fn alias(&mut self, image: &str, target: &str) {
        self.aliases.insert(normalized(image), normalized(target));
    }

    /// Only this account may pull images whose full name begins so.
    pub fn protect(&mut self, beginning: &str, user: &str, password: &str) {
        self.accounts.insert(beginning.to_owned(), (user.to_owned(), password.to_owned()));
    }

    /// Whether an account may pull an image. A wrong one may not even pull what is there for everybody.
    pub fn admits(&self, image: &str, account: Option<&(String, String)>) -> bool {
        let name = normalized(image);
        let wanted = self.accounts.iter().rfind(|(beginning, _)| name.starts_with(beginning.as_str()));
        match (wanted, account) {
            (Some((_, wanted)), Some(account)) => wanted == account,
            (Some(_), None) => false,
            (None, account) => account.is_none(),
        }
    }

    /// What an image does when it runs with this command.
    pub fn behaviour(&self, image: &str, command: &[String]) -> Behaviour {
        let mut behaviour = match self.declared.get(image) {
            Some(declared) => return declared.clone(),
            None => by_name(image).unwrap_or_default(),
        };
        if let Some(ends) = by_command(command) {
            behaviour.ends = Some(ends);
        }
        behaviour
    }

    /// The imageID that nodes report: the same for all names of one image.
    pub fn id(&self, image: &str) -> String {
        let name = normalized(image);
        let target = self.aliases.get(&name).unwrap_or(&name);
        let digest = Sha256::digest(target.as_bytes());
        format!("{}@sha256:{}", repository(target), hex(&digest))
    }
}

/// The full name of an image, as container runtimes report it: with registry and tag.
pub fn normalized(image: &str) -> String {
    let (first, rest) = image.split_once('/').unwrap_or(("", image));
    let has_registry = first.contains(['.', ':']) || first == "localhost";
    let mut name = match (has_registry, first.is_empty() && !image.starts_with('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("docker.io/library/{rest}"),
        (false, false) => format!("docker.io/{image}"),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    if !last.contains([':', '@']) {
        name.push_str(":latest");
    }
    name
}

/// The name without tag and digest.
fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

/// Small letters and digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn by_name(image: &str) -> Option<Behaviour> {
    let repository = repository(image);
    let name = repository.rsplit('/').next().unwrap_or_default();
    let tag = image.get(repository.len()..).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
    by_words(name).or_else(|| by_words(tag.split_once('-')?.1))
}

/// All words must be known: a program that happens to be called `crash-reporter` is not meant.
fn by_words(text: &str) -> Option<Behaviour> {
    let mut behaviour = Behaviour::default();
    let mut after = None;
    for word in text.split('-') {
        let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let (word, number) = word.split_at_checked(digits)?;
        let number = if number.is_empty() { None } else { Some(number.parse::<u32>().ok()?) };
        let seconds = |default: u64| Duration::from_secs(number.map_or(default, u64::from));
        match word {
            "fail" => behaviour.pull_fails = true,
            "slow" => behaviour.pull = Some(seconds(60)),
            "crash" => behaviour.ends = Some((seconds(2), 1)),
            "exit" => behaviour.ends = Some((Duration::from_secs(5), i32::try_from(number?).ok()?)),
            "after" => after = Some(seconds(0)),
            "stubborn" => behaviour.ignores_sigterm = true,
            "linger" => behaviour.stop = seconds(10),
            "unready" => behaviour.ready_after = number.map(|n| Duration::from_secs(u64::from(n))),
            "unhealthy" => behaviour.unhealthy_after = Some(seconds(30)),
            "warmup" => behaviour.started_after = Some(seconds(20)),
            _ => return None,
        }
    }
    if let (Some((_, code)), Some(after)) = (behaviour.ends, after) {
        behaviour.ends = Some((after, code));
    }
    Some(behaviour)
}

fn by_command(command: &[String]) -> Option<(Duration, i32)> {
    let short = Duration::from_millis(500);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["true" | "/bin/true", ..] => Some((short, 0)),
        ["false" | "/bin/false", ..] => Some((short, 1)),
        ["sleep" | "/bin/sleep", time] => seconds(time).map(|time| (time, 0)),
        ["sh" | "/bin/sh" | "bash" | "/bin/bash", "-c" | "-ec", script] => {
            let mut time = short;
            let mut code = None;
            for part in script.split([';', '&']).map(str::trim).filter(|part| !part.is_empty()) {
                match part.split_once(' ') {
                    Some(("sleep", text)) => time += seconds(text.trim())?,
                    Some(("exit", text)) => code = text.trim().parse().ok(),
                    Some(("echo", _)) => {}
                    _ => return code.map(|code| (time, code)),
                }
            }
            Some((time, code.unwrap_or(0)))
        }
        _ => None,
    }
}

/// `30`, `30s`, `2m`; `infinity` is no time.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, text.chars().last().unwrap_or('s')),
        None => (text, 's'),
    };
    let number: f64 = number.parse().ok().filter(|n: &f64| n.is_finite() && (0.0..1e9).contains(n))?;
    let factor = match unit {
        'm' => 60.0,
        'h' => 3600.0,
        _ => 1.0,
    };
    Some(Duration::from_secs_f64(number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalized_as_runtimes_do() {
        assert_eq!(normalized("nginx"), "docker.io/library/nginx:latest");
        assert_eq!(normalized("me/app:v1"), "docker.io/me/app:v1");
        assert_eq!(normalized("registry:5000/app"), "registry:5000/app:latest");
        assert_eq!(normalized("localhost/app:1"), "localhost/app:1");
        assert_eq!(normalized("a.b/c@sha256:12"), "a.b/c@sha256:12");
    }

    #[test]
    fn words_in_a_name_declare_a_behaviour_and_other_names_do_not() {
        let images = Images::default();
        let of = |image: &str| images.behaviour(image, &[]);
        assert!(of("fail:1").pull_fails);
        assert!(of("web:v2-fail").pull_fails);
        assert_eq!(of("example.com/slow30-exit3:v2").pull, Some(Duration::from_secs(30)));
        assert_eq!(of("exit3-after60:1").ends, Some((Duration::from_secs(60), 3)));
        assert_eq!(of("crash-reporter:1"), Behaviour::default());
        assert_eq!(of("nginx:1.25-slim"), Behaviour::default());
    }

    #[test]
    fn aliases_share_one_image_id() {
        let mut images = Images::default();
        images.alias("app:v1-again", "app:v1");
        assert_eq!(images.id("app:v1-again"), images.id("app:v1"));
        assert_ne!(images.id("app:v2"), images.id("app:v1"));
        assert!(images.id("app:v1").starts_with("docker.io/library/app@sha256:"));
    }

    #[test]
    fn simple_commands_end_as_they_say() {
        let ends = |words: &[&str]| by_command(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(ends(&["sleep", "5"]), Some((Duration::from_secs(5), 0)));
        assert_eq!(ends(&["sh", "-c", "echo hi; exit 3"]), Some((Duration::from_millis(500), 3)));
        assert_eq!(ends(&["sh", "-c", "serve --for-ever"]), None);
        assert_eq!(ends(&["nginx"]), None);
    }
}
