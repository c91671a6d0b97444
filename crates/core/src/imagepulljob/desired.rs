//! What a job asks for, read once.

use kruise_api::{
    image_pull::{CompletionType, DEFAULT_BACKOFF_LIMIT, DEFAULT_TIMEOUT_SECONDS, SandboxConfig},
    imagepulljob::v1beta1::ImagePullJob,
    int_or_percent::IntOrString,
    nodeimage::v1beta1::PullPolicy,
};

use crate::image_reference::{self, Reference};

/// The shortest time that the tag of a job without end has, in seconds.
const SHORTEST_DEADLINE_OF_NEVER: i64 = 1800;
/// When the tag of a job without end is pulled again: after a day, or up to ten minutes earlier or later.
const DAY: i64 = 86_400;
const AROUND_A_DAY: i64 = 600;
/// How much later than its time a tag of a job may go, so that not all nodes are written at once.
const SPREAD: u64 = 300;

/// Why a job cannot be carried out. Admission refuses such jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The image has no name that can be used.
    #[error("invalid image {image}")]
    Image {
        /// What was written.
        image: String,
        /// What is wrong with it.
        source: image_reference::Error,
    },
    /// The number of nodes at once is none.
    #[error("parallelism must be a valid integer, not {0:?}")]
    Parallelism(String),
    /// Nodes or pods cannot be selected.
    #[error("invalid selector")]
    Selector(#[from] kruise_api::selector::Error),
}

/// When a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// When every node is done, or this many seconds after its start.
    Always { deadline: Option<i64>, ttl: Option<i32> },
    /// Never.
    Never,
}

/// What a job asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Desired<'a> {
    pub(super) image: Reference,
    pub(super) parallelism: usize,
    pub(super) completion: Completion,
    pub(super) timeout: i32,
    pub(super) backoff: i32,
    pub(super) sandbox: Option<&'a SandboxConfig>,
    pub(super) image_pull_policy: &'a str,
}

impl<'a> Desired<'a> {
    pub(super) fn of(job: &'a ImagePullJob) -> Result<Self, Error> {
        let (spec, template) = (&job.spec, &job.spec.template);
        let image = image_reference::parse(&spec.image)
            .map_err(|source| Error::Image { image: spec.image.clone(), source })?;
        let parallelism = match &template.parallelism {
            None => 1,
            Some(IntOrString::Int(number)) => *number,
            Some(IntOrString::String(text)) => text.parse().map_err(|_| Error::Parallelism(text.clone()))?,
        };
        let policy = template.pull_policy.as_ref();
        let completion = &template.completion_policy;
        Ok(Self {
            image,
            parallelism: usize::try_from(parallelism).unwrap_or(0),
            completion: match completion.kind {
                Some(CompletionType::Never) => Completion::Never,
                _ => Completion::Always {
                    deadline: completion.active_deadline_seconds,
                    ttl: completion.ttl_seconds_after_finished,
                },
            },
            timeout: policy.and_then(|policy| policy.timeout_seconds).unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            backoff: policy.and_then(|policy| policy.backoff_limit).unwrap_or(DEFAULT_BACKOFF_LIMIT),
            sandbox: template.sandbox_config.as_ref(),
            image_pull_policy: template
                .image_pull_policy
                .as_ref()
                .map_or("IfNotPresent", |policy| policy.as_str()),
        })
    }

    /// The limits that the tag of the job gets. `after_end` is the flag `--default-ttlseconds-for-always-nodeimage`.
    pub(super) fn pull_policy(&self, after_end: i64, random: u64) -> PullPolicy {
        let (timeout, backoff) = (i64::from(self.timeout), i64::from(self.backoff));
        let random = |below: u64| i64::try_from(random % below).unwrap_or(0);
        let (deadline, ttl) = match self.completion {
            Completion::Always { deadline, ttl } => {
                let base = ttl.map(i64::from).or(deadline).unwrap_or(timeout.saturating_mul(backoff)).max(0);
                (deadline, base.saturating_add(after_end).saturating_add(random(SPREAD)))
            }
            Completion::Never => (
                Some(timeout.max(SHORTEST_DEADLINE_OF_NEVER)),
                DAY - AROUND_A_DAY + random(2 * AROUND_A_DAY.unsigned_abs()),
            ),
        };
        PullPolicy {
            timeout_seconds: Some(self.timeout),
            backoff_limit: Some(self.backoff),
            ttl_seconds_after_finished: Some(i32::try_from(ttl).unwrap_or(i32::MAX)),
            active_deadline_seconds: deadline,
        }
    }
}
