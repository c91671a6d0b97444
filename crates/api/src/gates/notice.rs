//! What there is to say about a setting of gates: remarks for the log, and refusals.

use std::fmt;

use super::{Gate, TABLE};

/// Something that the user did not ask for in so many words. Its text is a line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A gate was written by a name that only documentation uses.
    Alias {
        /// What was written.
        written: &'static str,
        /// What was meant.
        gate: Gate,
    },
    /// `AllAlpha` leaves this gate alone.
    NotInAllAlpha {
        /// The gate.
        gate: Gate,
    },
    /// The variable `CUSTOM_RESOURCE_ENABLE` closed a gate.
    ClosedByVariable {
        /// The gate.
        gate: Gate,
    },
    /// A rule between gates changed one.
    Overridden {
        /// The gate.
        gate: Gate,
        /// Whether it is open now.
        open: bool,
        /// The gate that it depends on.
        because: Gate,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |open: &bool| if *open { "on" } else { "off" };
        match self {
            Self::Alias { written, gate } => {
                write!(f, "feature gate {written} is called {gate}; use that name")
            }
            Self::NotInAllAlpha { gate } => {
                write!(f, "feature gate {gate} is not part of AllAlpha; set {gate}=true if you want it")
            }
            Self::ClosedByVariable { gate } => write!(
                f,
                "feature gate {gate} is off, because the environment variable {} does not list SidecarSet",
                crate::environment::CUSTOM_RESOURCE_ENABLE
            ),
            // A gate pushes others its own way, so one word serves both.
            Self::Overridden { gate, open, because } => {
                let word = word(open);
                write!(f, "feature gate {gate} is switched {word}, because {because} is {word}")
            }
        }
    }
}

/// Why the flag cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No gate has this name.
    #[error("unrecognized feature gate: {name}; {}", hint(*nearest))]
    Unknown {
        /// What was written.
        name: String,
        /// The known name that looks most like it, when one does.
        nearest: Option<&'static str>,
    },
    /// The value says neither yes nor no.
    #[error("invalid value of {name}={value}; allowed are true and false")]
    Value {
        /// The gate.
        name: String,
        /// What was written.
        value: String,
    },
    /// There is a name and no value.
    #[error("missing bool value for {name}; write {name}=true or {name}=false")]
    NoValue {
        /// What was written.
        name: String,
    },
}

fn hint(nearest: Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!("did you mean {name}?"),
        None => {
            let known: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
            format!("known are AllAlpha, AllBeta, {}", known.join(", "))
        }
    }
}

/// The answer to someone who uses a feature whose gate is closed. Users look for this sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("feature-gate {0} is not enabled")]
pub struct Closed(pub Gate);
