//! Events of a namespace, short enough to compare.

use k8s_openapi::api::core::v1::Event;

/// One event, without what differs from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// `Normal` or `Warning`.
    pub kind: String,
    /// Why, in one word.
    pub reason: String,
    /// Who says so.
    pub component: String,
    /// `Kind/name` of the object it is about.
    pub about: String,
    /// Why, in a sentence.
    pub message: String,
}

impl From<&Event> for Seen {
    fn from(event: &Event) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let source = event.source.as_ref().and_then(|source| source.component.clone());
        Self {
            kind: text(&event.type_),
            reason: text(&event.reason),
            component: source.or_else(|| event.reporting_component.clone()).unwrap_or_default(),
            about: format!("{}/{}", text(&event.involved_object.kind), text(&event.involved_object.name)),
            message: text(&event.message),
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} ({}): {}", self.kind, self.reason, self.about, self.component, self.message)
    }
}
