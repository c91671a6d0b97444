//! The kubelet's behaviour in time, as a table: when something is so, after how long, with what jitter, then what.
//!
//! New behaviour is a new row (or, in [`Steps::set`], another time in a row). What follows from other times,
//! such as probes, back-off and grace periods, is in the pod's own specification and not here.

use std::time::Duration;

/// What a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// A pod was bound to the node.
    Bound,
    /// A container's image is not on the node.
    ImageMissing,
    /// A container's image is on the node but must be checked with its registry (`imagePullPolicy: Always`).
    ImagePresent,
    /// A container was created.
    Created,
    /// A program of which nothing is known runs in a container that is to end.
    ProgramUnknown,
    /// A program ends as soon as it has begun.
    ProgramShort,
    /// A container has ended and is to run again.
    Ended,
    /// The specification of a running container changed.
    DefinitionChanged,
    /// The resources of a pod changed.
    ResourcesChanged,
    /// All containers of a deleted pod have ended.
    AllEnded,
}

/// What a node does then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Then {
    /// Begin to start the pod's containers.
    Begin,
    /// The pull has ended, well or not.
    Pulled,
    /// The container's process runs.
    Started,
    /// The process ends.
    End,
    /// Begin to start the container again.
    Again,
    /// Kill the container.
    Kill,
    /// The new resources are in force.
    Resized,
    /// Delete the pod object for good.
    Remove,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When this is so,
    pub when: When,
    /// after this time
    pub after: Duration,
    /// and up to so much more,
    pub jitter: Duration,
    /// this happens.
    pub then: Then,
}

/// The usual times of a healthy node on a fast network.
const USUAL: [Step; 10] = [
    row(When::Bound, 100, 200, Then::Begin),
    row(When::ImageMissing, 800, 1200, Then::Pulled),
    row(When::ImagePresent, 50, 150, Then::Pulled),
    row(When::Created, 100, 200, Then::Started),
    row(When::ProgramUnknown, 2000, 2000, Then::End),
    // Times of objects are in whole seconds, and a start and an end are never in one.
    row(When::ProgramShort, 1000, 200, Then::End),
    // A kubelet looks every second at what has ended, and then makes a new container.
    row(When::Ended, 1000, 1000, Then::Again),
    row(When::DefinitionChanged, 50, 300, Then::Kill),
    row(When::ResourcesChanged, 200, 800, Then::Resized),
    row(When::AllEnded, 200, 400, Then::Remove),
];

const fn row(when: When, after: u64, jitter: u64, then: Then) -> Step {
    Step { when, after: Duration::from_millis(after), jitter: Duration::from_millis(jitter), then }
}

/// The table.
#[derive(Clone, Debug)]
pub struct Steps(Vec<Step>);

impl Default for Steps {
    fn default() -> Self {
        Self(USUAL.to_vec())
    }
}

impl Steps {
    /// Replaces the row for `step.when`.
    pub fn set(&mut self, step: Step) {
        self.0.retain(|row| row.when != step.when);
        self.0.push(step);
    }

    /// All rows at once: no waiting anywhere.
    pub fn instant() -> Self {
        Self(
            USUAL
                .iter()
                .map(|step| Step { after: Duration::ZERO, jitter: Duration::ZERO, ..*step })
                .collect(),
        )
    }

    /// How long it takes this time, and what happens then. `luck` is a random number.
    pub fn next(&self, when: When, luck: u64) -> (Duration, Then) {
        let usual = USUAL.iter().find(|step| step.when == when);
        let Some(step) = self.0.iter().find(|step| step.when == when).or(usual) else {
            return (Duration::ZERO, Then::Begin);
        };
        let jitter = u64::try_from(step.jitter.as_millis()).unwrap_or(u64::MAX);
        (step.after + Duration::from_millis(luck % jitter.saturating_add(1)), step.then)
    }
}
