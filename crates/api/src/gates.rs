//! Feature gates: which features a program runs, from the flag `--feature-gates`.
//!
//! The [table](TABLE) says what is open unless someone says otherwise. A setting of a single gate wins over
//! `AllAlpha` and `AllBeta`, whatever their order. After that the [rules] between gates are applied, so the
//! gates a program sees always fit together. Everything that was changed behind the back of the user comes out as a
//! [`Notice`], for the log: nothing is overridden silently.

mod notice;
pub mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use notice::{Closed, Error, Notice};
pub use table::{Entry, Gate, Stage, TABLE};

/// Names of gates that documentation spells differently, and the gates they mean.
pub const ALIASES: &[(&str, Gate)] = &[
    ("EnhancedLivenessProbeGate", Gate::EnhancedLivenessProbe),
    ("ForceDeleteTimeoutExpectationFeatureGate", Gate::ForceDeleteTimeoutExpectationGate),
];

/// Settings that stand for all gates of a stage.
const GROUPS: &[(&str, Stage)] = &[("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Left alone by `AllAlpha`: with it the manager waits for a Secret that someone else must make, so "everything on"
/// would mean "does not start".
const NOT_IN_ALL_ALPHA: Gate = Gate::EnableExternalCerts;

/// Which gates are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates {
    open: BTreeSet<Gate>,
}

/// What else decides about gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The text of the environment variable
    /// [`CUSTOM_RESOURCE_ENABLE`](crate::environment::CUSTOM_RESOURCE_ENABLE), if it is set. A list that is not empty
    /// and lacks `SidecarSet` closes `PodWebhook` unless a flag opens it.
    pub custom_resource_enable: Option<String>,
}

/// Without flags and variables.
impl Default for Gates {
    fn default() -> Self {
        let open = TABLE.iter().filter(|entry| entry.default).map(|entry| entry.gate).collect();
        Self { open }
    }
}

impl Gates {
    /// Reads the value of the flag: `Name=true` or `Name=false`, separated by commas. The last setting of a name
    /// counts.
    ///
    /// ```
    /// use kruise_api::gates::{Gate, Gates, Options};
    ///
    /// let (gates, notices) = Gates::parse("KruiseDaemon=false", &Options::default())?;
    /// assert!(!gates.enabled(Gate::PodProbeMarkerGate));
    /// assert!(notices[0].to_string().contains("because KruiseDaemon is off"));
    /// # Ok::<(), kruise_api::gates::Error>(())
    /// ```
    pub fn parse(flag: &str, options: &Options) -> Result<(Self, Vec<Notice>), Error> {
        let mut notices = Vec::new();
        let settings = Settings::read(flag, &mut notices)?;
        let mut gates = Self::default();
        if options.closes_pod_webhook() {
            gates.set(Gate::PodWebhook, false);
        }
        for (stage, open) in &settings.stages {
            for entry in TABLE.iter().filter(|entry| entry.stage == *stage) {
                if entry.gate != NOT_IN_ALL_ALPHA {
                    gates.set(entry.gate, *open);
                } else if *open && !settings.single.contains_key(&entry.gate) {
                    notices.push(Notice::NotInAllAlpha { gate: entry.gate });
                }
            }
        }
        for (gate, open) in &settings.single {
            gates.set(*gate, *open);
        }
        if options.closes_pod_webhook() && !gates.enabled(Gate::PodWebhook) {
            let by_flag = settings.single.contains_key(&Gate::PodWebhook)
                || settings.stages.contains_key(&Gate::PodWebhook.entry().stage);
            if !by_flag {
                notices.push(Notice::ClosedByVariable { gate: Gate::PodWebhook });
            }
        }
        notices.extend(rules::apply(&mut gates));
        Ok((gates, notices))
    }

    /// Whether a gate is open.
    pub fn enabled(&self, gate: Gate) -> bool {
        self.open.contains(&gate)
    }

    /// Refuses with the sentence that users know when a gate is closed.
    pub fn require(&self, gate: Gate) -> Result<(), Closed> {
        if self.enabled(gate) { Ok(()) } else { Err(Closed(gate)) }
    }

    /// The same with one more gate open. The rules are not applied.
    #[must_use]
    pub fn with(mut self, gate: Gate) -> Self {
        self.set(gate, true);
        self
    }

    /// The same with one gate closed. The rules are not applied.
    #[must_use]
    pub fn without(mut self, gate: Gate) -> Self {
        self.set(gate, false);
        self
    }

    /// The open gates, in the order of the table.
    pub fn open(&self) -> impl Iterator<Item = Gate> {
        self.open.iter().copied()
    }

    fn set(&mut self, gate: Gate, open: bool) {
        if open {
            self.open.insert(gate);
        } else {
            self.open.remove(&gate);
        }
    }
}

impl Options {
    fn closes_pod_webhook(&self) -> bool {
        self.custom_resource_enable
            .as_deref()
            .is_some_and(|list| !list.is_empty() && list.split(',').all(|kind| kind.trim() != "SidecarSet"))
    }
}

/// What the flag says, before anything is decided.
#[derive(Default)]
struct Settings {
    single: BTreeMap<Gate, bool>,
    stages: BTreeMap<Stage, bool>,
}

impl Settings {
    fn read(flag: &str, notices: &mut Vec<Notice>) -> Result<Self, Error> {
        let mut settings = Self::default();
        for setting in flag.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let Some((name, value)) = setting.split_once('=') else {
                return Err(Error::NoValue { name: setting.to_owned() });
            };
            let (name, value) = (name.trim(), value.trim());
            let target = Target::named(name, notices)?;
            let open = boolean(value)
                .ok_or_else(|| Error::Value { name: name.to_owned(), value: value.to_owned() })?;
            match target {
                Target::Gate(gate) => settings.single.insert(gate, open),
                Target::Stage(stage) => settings.stages.insert(stage, open),
            };
        }
        Ok(settings)
    }
}

enum Target {
    Gate(Gate),
    Stage(Stage),
}

impl Target {
    fn named(name: &str, notices: &mut Vec<Notice>) -> Result<Self, Error> {
        if let Some((_, stage)) = GROUPS.iter().find(|(group, _)| *group == name) {
            return Ok(Self::Stage(*stage));
        }
        if let Some((alias, gate)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
            notices.push(Notice::Alias { written: alias, gate: *gate });
            return Ok(Self::Gate(*gate));
        }
        Gate::named(name).map(Self::Gate).ok_or_else(|| Error::Unknown {
            name: name.to_owned(),
            nearest: crate::nearest::nearest(
                name,
                TABLE.iter().map(|entry| entry.name).chain(GROUPS.iter().map(|(group, _)| *group)),
            ),
        })
    }
}

/// The texts that Go takes for a boolean, because charts and scripts use them.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
