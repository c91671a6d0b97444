//! What stands behind a path of the webhook server.

use super::{
    Answer, Operation, Request,
    kinds::{self, Context},
    pod,
    protection::{self, Contents, Subject},
};

/// What answers the requests of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// Changes new pods.
    MutatePod,
    /// Judges what is done to pods.
    ValidatePod,
    /// Fills in what writers of one of our kinds left out.
    Mutate(&'static str),
    /// Judges objects of one of our kinds, and their deletion where a label protects them.
    Validate(&'static str),
    /// Judges the deletion of objects of a built-in kind.
    Protect(&'static str, Subject),
    /// Lets everything pass: the feature is switched off, but its webhook may still be registered.
    Allow,
}

impl Handler {
    /// What of a namespace or a definition must be counted before [`answer`](Self::answer), if anything.
    pub fn needs_contents(&self, request: &Request, context: &Context<'_>) -> bool {
        match self {
            Self::Protect(_, subject) => protection::needs_contents(*subject, request, context.gates),
            _ => false,
        }
    }

    /// The answer. `contents` matter only where [they are needed](Self::needs_contents).
    pub fn answer(&self, request: &Request, context: &Context<'_>, contents: &Contents) -> Answer {
        if let Self::Mutate(kind) | Self::Validate(kind) | Self::Protect(kind, _) = self
            && request.kind.kind != *kind
        {
            let asked = &request.kind.kind;
            return Answer::bad_object(format!("this path is about {kind} and the request about {asked:?}"));
        }
        match self {
            Self::MutatePod => pod::mutate(request, context),
            Self::ValidatePod => pod::validate(request, context),
            Self::Mutate(_) => kinds::mutate(request, context),
            Self::Validate(_) if request.operation == Operation::Delete => {
                protection::judge(Subject::Workload, request, context.gates, contents)
            }
            Self::Validate(_) => kinds::validate(request, context),
            Self::Protect(_, subject) => protection::judge(*subject, request, context.gates, contents),
            Self::Allow => Answer::allowed(),
        }
    }
}
