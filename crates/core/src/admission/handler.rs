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

    /// Whether the labels of the namespace must be looked up before [`answer`](Self::answer), because no cache has them.
    pub fn needs_namespace(&self, request: &Request, context: &Context<'_>) -> bool {
        *self == Self::MutatePod && pod::needs_namespace(request, context)
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
            Self::Validate(kind) if request.operation == Operation::Delete => {
                let answer = protection::judge(Subject::Workload, request, context.gates, contents);
                with_warnings(answer, kind, request, context)
            }
            Self::Validate(kind) => with_warnings(kinds::validate(request, context), kind, request, context),
            Self::Protect(_, subject) => {
                let answer = protection::judge(*subject, request, context.gates, contents);
                answer.warned(protection::warnings(*subject, request, context.gates))
            }
            Self::Allow => Answer::allowed(),
        }
    }
}

/// The kinds of our own that the label protects.
const PROTECTED: [&str; 3] = ["CloneSet", "StatefulSet", "UnitedDeployment"];

fn with_warnings(answer: Answer, kind: &str, request: &Request, context: &Context<'_>) -> Answer {
    if !PROTECTED.contains(&kind) {
        return answer;
    }
    answer.warned(protection::warnings(Subject::Workload, request, context.gates))
}

#[cfg(test)]
mod tests {
    use kruise_api::gates::Gates;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::{
        admission::{Kind, Resource, kinds::Empty},
        features,
    };

    fn context(gates: &Gates) -> Context<'_> {
        let now = "2026-11-16T00:00:00Z".parse().unwrap();
        Context { gates, allow_privileged: true, now, seed: 7, cluster: &Empty }
    }

    #[test]
    fn a_request_at_the_wrong_path_is_told_so() {
        let gates = Gates::default();
        let kind = Kind { kind: "Deployment".to_owned(), ..Kind::default() };
        let request = Request { kind, ..Request::default() };
        let said = |handler: Handler| match handler.answer(&request, &context(&gates), &Contents::default()) {
            Answer::Denied { code: 400, message } => message,
            other => panic!("{other:?}"),
        };
        let text = "this path is about CloneSet and the request about \"Deployment\"";
        assert_eq!(said(Handler::Mutate("CloneSet")), text);
        assert_eq!(said(Handler::Validate("CloneSet")), text);
        let text = "this path is about Namespace and the request about \"Deployment\"";
        assert_eq!(said(Handler::Protect("Namespace", Subject::Namespace)), text);
        let text = "this path is about pods and the request about \"\"";
        assert_eq!(said(Handler::MutatePod), text);
    }

    #[test]
    fn deletions_of_our_workloads_are_judged_where_their_objects_are() {
        let gates = Gates::default().with(kruise_api::gates::Gate::ResourcesDeletionProtection);
        let labels = serde_json::json!({"policy.kruise.io/delete-protection": "Always"});
        let request = Request {
            kind: Kind { kind: "CloneSet".to_owned(), ..Kind::default() },
            operation: Operation::Delete,
            old_object: serde_json::json!({"metadata": {"labels": labels}}),
            ..Request::default()
        };
        let answer = Handler::Validate("CloneSet").answer(&request, &context(&gates), &Contents::default());
        assert_eq!(answer, Answer::protected("Always", ""));
    }

    fn junk() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9%./ -]{0,8}".prop_map(Value::from),
        ];
        let name = prop::sample::select(vec![
            "apiVersion",
            "kind",
            "metadata",
            "labels",
            "annotations",
            "spec",
            "status",
            "template",
            "selector",
            "matchLabels",
            "containers",
            "updateStrategy",
            "rollingUpdate",
            "images",
            "tags",
            "readinessGates",
            "ownerReferences",
            "policy.kruise.io/delete-protection",
            "jobTemplate",
        ]);
        leaf.prop_recursive(6, 48, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..6)
                    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever is sent to whatever path: there is an answer.
        #[test]
        fn garbage_gets_an_answer_at_every_path(
            path in any::<prop::sample::Index>(),
            object in junk(),
            old_object in junk(),
            operation in prop::sample::select(Operation::ALL.to_vec()),
            version in prop::sample::select(vec!["v1", "v1alpha1", "v1beta1", ""]),
            typed in any::<bool>(),
        ) {
            let gates = Gates::default().with(kruise_api::gates::Gate::ResourcesDeletionProtection);
            let handler = path.get(&features::paths(&gates)).handler;
            let (kind, resource) = match handler {
                Handler::Mutate(kind) | Handler::Validate(kind) | Handler::Protect(kind, _) => (kind, ""),
                Handler::MutatePod | Handler::ValidatePod | Handler::Allow => ("Pod", "pods"),
            };
            let group = kruise_api::catalogue::by_kind(kind).map_or("", |crd| crd.group);
            let mut object = object;
            if typed && let Some(members) = object.as_object_mut() {
                members.insert("apiVersion".to_owned(), format!("{group}/{version}").into());
                members.insert("kind".to_owned(), kind.into());
            }
            let request = Request {
                kind: Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() },
                resource: Resource { resource: resource.to_owned(), ..Resource::default() },
                operation,
                object,
                old_object,
                ..Request::default()
            };
            handler.answer(&request, &context(&gates), &Contents::default());
        }
    }
}
