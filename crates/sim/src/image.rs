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
//! | `again` | in a tag: the same image as the tag without this word, with the same digest |
//!
//! The registries `invalid.…` and `….invalid` do not exist, so that nothing can be pulled from them.
//!
//! What a command does is known to a little shell; what an image does by itself when everybody knows it is in a
//! table of images (`busybox` ends at once, `nginx` serves).

pub(crate) mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A kubelet lists so many images.
const MOST_LISTED: usize = 50;

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
    /// Beginnings of full names whose images run a server by themselves.
    servers: BTreeSet<String>,
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

    /// Images whose full name begins so run a server when a pod names no command.
    pub fn serve(&mut self, beginning: &str) {
        self.servers.insert(beginning.to_owned());
    }

    /// Whether an image is known to run a server by itself.
    pub fn is_server(&self, image: &str) -> bool {
        let name = normalized(image);
        self.servers.iter().any(|beginning| name.starts_with(beginning.as_str()))
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

    /// What an image does when it runs by itself.
    pub fn behaviour(&self, image: &str) -> Behaviour {
        match self.declared.get(image) {
            Some(declared) => declared.clone(),
            None => by_name(image).unwrap_or_default(),
        }
    }

    /// Whether somebody said what an image does.
    pub fn is_declared(&self, image: &str) -> bool {
        self.declared.contains_key(image)
    }

    /// The imageID that nodes report: the same for all names of one image, which are its aliases, its tags with the word
    /// `again`, and its digest.
    pub fn id(&self, image: &str) -> String {
        let name = normalized(image);
        let target = self.aliases.get(&name).unwrap_or(&name);
        if let Some((name, digest)) = target.split_once('@') {
            return format!("{}@{digest}", repository(name));
        }
        let digest = Sha256::digest(first_tag(target).as_bytes());
        format!("{}@sha256:{}", repository(target), hex(&digest))
    }

    /// Images as a node lists them in its status: the largest ones first, and not too many.
    pub(crate) fn listed(&self, pulled: &BTreeSet<String>) -> Value {
        let mut all: Vec<(u64, &String)> = pulled.iter().map(|image| (size(image), image)).collect();
        all.sort_by(|left, right| right.cmp(left));
        let list = all.into_iter().take(MOST_LISTED);
        list.map(|(size, image)| {
            let names =
                if image.contains('@') { vec![image.clone()] } else { vec![self.id(image), image.clone()] };
            json!({"names": names, "sizeBytes": size})
        })
        .collect()
    }

    /// Why an image cannot be pulled, in the words of a runtime.
    pub fn refusal(&self, image: &str) -> Option<String> {
        let full = normalized(image);
        let (code, why) = if let Some(host) = lost_registry(&full) {
            let path = full.get(host.len() + 1..).unwrap_or_default();
            let (path, tag) = path.rsplit_once([':', '@']).unwrap_or((path, "latest"));
            let name = host.split(':').next().unwrap_or(host);
            let url = format!("https://{host}/v2/{path}/manifests/{tag}");
            (
                "Unknown",
                format!("failed to do request: Head \"{url}\": dial tcp: lookup {name}: no such host"),
            )
        } else if self.behaviour(image).pull_fails {
            ("NotFound", format!("{full}: not found"))
        } else {
            return None;
        };
        Some(format!(
            "rpc error: code = {code} desc = failed to pull and unpack image \"{full}\": failed to resolve reference \
             \"{full}\": {why}"
        ))
    }
}

/// How large an image is: another number for each name, and always the same one.
pub(crate) fn size(image: &str) -> u64 {
    10_000_000 + image.bytes().map(u64::from).sum::<u64>() * 4099
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

/// The registry of an image, if it is one that cannot exist.
fn lost_registry(full: &str) -> Option<&str> {
    let (host, _) = full.split_once('/')?;
    let name = host.split(':').next().unwrap_or(host);
    (name.starts_with("invalid.") || name.ends_with(".invalid")).then_some(host)
}

/// Why a name is none of an image, in the words of a kubelet.
pub fn invalid_name(image: &str) -> Option<String> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let repository = repository(name);
    let tag = name.get(repository.len()..).and_then(|rest| rest.strip_prefix(':'));
    let (first, rest) = repository.split_once('/').unwrap_or(("", repository));
    let has_host = first.contains(['.', ':']) || first == "localhost";
    let path = if has_host { rest } else { repository };
    let is_word = |part: &str| {
        !part.is_empty()
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
    };
    let is_tag = |tag: &str| {
        (1..=128).contains(&tag.len())
            && !tag.starts_with(['.', '-'])
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let why = if path.chars().any(|c| c.is_ascii_uppercase()) && path.to_lowercase().split('/').all(is_word) {
        let shown = if path.contains('/') || has_host { path.to_owned() } else { format!("library/{path}") };
        format!("invalid reference format: repository name ({shown}) must be lowercase")
    } else if !path.split('/').all(is_word)
        || tag.is_some_and(|tag| !is_tag(tag))
        || digest.is_some_and(|digest| !digest.contains(':'))
    {
        "invalid reference format".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": {why}"
    ))
}

/// The name of the tag that an image had first.
fn first_tag(image: &str) -> String {
    let repository = repository(image);
    let tag = image.get(repository.len()..).unwrap_or_default();
    let Some((first, words)) = tag.split_once('-').filter(|(_, words)| by_words(words).is_some()) else {
        return image.to_owned();
    };
    let kept = words.split('-').filter(|word| *word != "again");
    let tag = std::iter::once(first).chain(kept).collect::<Vec<_>>().join("-");
    format!("{repository}{tag}")
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
            "again" => {}
            _ => return None,
        }
    }
    if let (Some((_, code)), Some(after)) = (behaviour.ends, after) {
        behaviour.ends = Some((after, code));
    }
    Some(behaviour)
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
        let of = |image: &str| images.behaviour(image);
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
    fn a_digest_and_its_tags_are_one_image() {
        let mut images = Images::default();
        let id = images.id("app:v1");
        assert_eq!(images.id("app:v1-again"), id);
        let (_, digest) = id.split_once('@').unwrap();
        assert_eq!(images.id(&format!("app@{digest}")), id);
        assert_eq!(images.id(&format!("app:v1@{digest}")), id);
        images.alias("app:stable", &format!("app@{digest}"));
        assert_eq!(images.id("app:stable"), id);
        assert_ne!(images.id("app:v2-again"), id);
    }

    #[test]
    fn some_names_cannot_be_pulled() {
        let images = Images::default();
        let why = |image: &str| images.refusal(image).unwrap_or_default();
        assert!(
            why("invalid.example.com/app:v1").ends_with("dial tcp: lookup invalid.example.com: no such host")
        );
        assert!(why("registry.invalid:5000/app").contains("lookup registry.invalid: no such host"));
        assert!(why("fail:1").ends_with("docker.io/library/fail:1: not found"));
        assert_eq!([why("invalid/app"), why("app:invalid"), why("registry.example/app")], ["", "", ""]);
        let named = |image: &str| invalid_name(image).unwrap_or_default();
        assert!(named("App:v1").contains("repository name (library/App) must be lowercase"));
        assert!(named("app:v1:v2").ends_with("invalid reference format"));
        for good in ["app", "a/b_c/d.e:V1.0", "localhost:5000/x@sha256:00", "registry.example/app:v1"] {
            assert_eq!(named(good), "");
        }
    }
}
