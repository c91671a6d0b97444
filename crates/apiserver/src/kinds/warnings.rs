//! What a server tells the author of an object that it takes, in the words of the real one.

mod pod;

use std::collections::BTreeSet;

use kruise_api::kubernetes::validation::names;
use serde_json::Value;

use super::object::{integer, list, text};
use crate::field::quote;
use crate::registry::Resource;
use crate::selector::syntax;

const NULL: &Value = &Value::Null;

/// Warnings about an object that is valid; `old` is what it was before, if it is not new.
pub(crate) fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.custom {
        return finalizers(object, old);
    }
    let mut found = Vec::new();
    match (resource.group.as_ref(), resource.kind.as_ref()) {
        // Hardly any person changes pods, and they change often.
        ("", "Pod") if old.is_none() => {
            name(&mut found, object, "the Pod's hostname");
            pod::warn(&mut found, "", object);
        }
        ("apps", "Deployment" | "ReplicaSet")
        | ("batch", "Job" | "CronJob")
        | ("", "ReplicationController")
            if old.is_none() =>
        {
            name(&mut found, object, "Pod names and hostnames");
        }
        ("", "Service") => service(&mut found, object),
        ("networking.k8s.io", "Ingress") if old.is_none() => ingress(&mut found, object),
        _ => {}
    }
    template(&mut found, resource, object, old);
    if (resource.group.as_ref(), resource.kind.as_ref()) == ("apps", "StatefulSet")
        && integer(object.get("spec").unwrap_or(NULL), "revisionHistoryLimit").is_some_and(|limit| limit < 0)
    {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        found.push(format!("spec.revisionHistoryLimit: {why}"));
    }
    found
}

/// Where kinds keep their template of pods.
const TEMPLATES: &[(&str, &str, &str)] = &[
    ("", "PodTemplate", "/template"),
    ("", "ReplicationController", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "Deployment", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
    ("batch", "Job", "/spec/template"),
];

fn template(found: &mut Vec<String>, resource: &Resource, object: &Value, old: Option<&Value>) {
    let row = TEMPLATES.iter().find(|(group, kind, _)| resource.group == *group && resource.kind == *kind);
    let Some((group, kind, pointer)) = row else { return };
    let changed = |old: &Value| match *kind {
        "DaemonSet" => old.pointer(pointer) != object.pointer(pointer),
        _ => old.pointer("/metadata/generation") != object.pointer("/metadata/generation"),
    };
    if old.is_some_and(|old| !changed(old)) {
        return;
    }
    // The real server confuses the two for the oldest kind, and warns about what was there.
    let shown = old.filter(|_| *kind == "ReplicationController").unwrap_or(object);
    let Some(template) = shown.pointer(pointer) else { return };
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let spec = pointer.strip_suffix("/template").and_then(|spec| object.pointer(spec)).unwrap_or(NULL);
    let more_than = |key: &str, most: i64| integer(spec, key).is_some_and(|number| number > most);
    if *group == "batch"
        && text(spec, "completionMode") == "Indexed"
        && more_than("completions", 100_000)
        && more_than("parallelism", 10_000)
    {
        found.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            path.trim_end_matches(".template")
        ));
    }
    pod::warn(found, &path, template);
}

fn name(found: &mut Vec<String>, object: &Value, used: &str) {
    let broken = names::dns_label(text(object.get("metadata").unwrap_or(NULL), "name"));
    if !broken.is_empty() {
        found.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            broken.join(" ")
        ));
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

fn service(found: &mut Vec<String>, object: &Value) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = object.get("spec").unwrap_or(NULL);
    let kind = text(spec, "type");
    let has_external = !list(spec, "externalIPs").is_empty();
    let mut tell = |is_so: bool, warning: String| found.extend(is_so.then_some(warning));
    tell(
        annotation(object, HINTS).is_some(),
        format!("annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"),
    );
    let headless = kind == "ClusterIP" && text(spec, "clusterIP") == "None";
    let ignored = |field: &str| format!("spec.{field} is ignored for headless services");
    tell(headless && !text(spec, "loadBalancerIP").is_empty(), ignored("loadBalancerIP"));
    tell(headless && has_external, ignored("externalIPs"));
    tell(headless && text(spec, "sessionAffinity") != "None", ignored("SessionAffinity"));
    let named = kind == "ExternalName";
    tell(named && has_external, "spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    tell(
        !named && !text(spec, "externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned(),
    );
    tell(
        text(spec, "trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
    );
}

fn ingress(found: &mut Vec<String>, object: &Value) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let named = object.pointer("/spec/ingressClassName").is_some_and(|name| !name.is_null());
    if annotation(object, CLASS).is_some() && !named {
        found.push(format!(
            "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
            quote(CLASS)
        ));
    }
}

/// Finalizers of custom objects should say whose they are.
fn finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let all = |object: &Value| -> BTreeSet<String> {
        let list = list(object.get("metadata").unwrap_or(NULL), "finalizers");
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = old.map(all).unwrap_or_default();
    let mut found = Vec::new();
    for name in all(object).difference(&known) {
        let mut tell = |why: &str| found.push(format!("metadata.finalizers: {}: {why}", quote(name)));
        syntax::qualified_name(name).iter().for_each(|why| tell(why));
        if name.contains('/') || matches!(name.as_str(), "orphan" | "foregroundDeletion" | "kubernetes") {
            continue;
        }
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        tell(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[track_caller]
    fn check(group: &str, plural: &str, object: Value, old: Option<&Value>, expected: &[&str]) {
        let resource = Registry::built_in().find_any_version(group, plural).unwrap();
        assert_eq!(warnings(&resource, &object, old), expected, "{object}");
    }

    #[test]
    fn services_are_told_what_is_ignored() {
        let spec = json!({
            "type": "ClusterIP", "clusterIP": "None", "externalIPs": ["1.2.3.4"], "loadBalancerIP": "1.2.3.4",
            "sessionAffinity": "ClientIP", "externalName": "a", "trafficDistribution": "PreferClose",
        });
        let annotations = json!({"service.kubernetes.io/topology-aware-hints": "auto"});
        let service = json!({"metadata": {"annotations": annotations}, "spec": spec});
        let expected = [
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead",
            "spec.loadBalancerIP is ignored for headless services",
            "spec.externalIPs is ignored for headless services",
            "spec.SessionAffinity is ignored for headless services",
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ];
        check("", "services", service.clone(), None, &expected);
        check("", "services", service.clone(), Some(&service), &expected);
        let spec = json!({"type": "ExternalName", "externalName": "a", "externalIPs": ["1.2.3.4"]});
        let expected = "spec.externalIPs is ignored when spec.type is \"ExternalName\"";
        check("", "services", json!({"spec": spec}), None, &[expected]);
    }

    #[test]
    fn the_class_of_an_ingress_is_a_field() {
        let annotations = json!({"kubernetes.io/ingress.class": "a"});
        let old = json!({"metadata": {"annotations": annotations}});
        let expected = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead";
        check("networking.k8s.io", "ingresses", old.clone(), None, &[expected]);
        check("networking.k8s.io", "ingresses", old.clone(), Some(&old), &[]);
        let both = json!({"metadata": {"annotations": annotations}, "spec": {"ingressClassName": "a"}});
        check("networking.k8s.io", "ingresses", both, None, &[]);
    }

    #[test]
    fn templates_are_looked_at_when_they_are_new_or_may_have_changed() {
        let with = |generation: u32, seconds: i32| {
            let template = json!({"spec": {"terminationGracePeriodSeconds": seconds}});
            json!({"metadata": {"name": "a", "generation": generation}, "spec": {"template": template}})
        };
        let negative = "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
                        will be treated as 1";
        check("apps", "deployments", with(1, -1), None, &[negative]);
        check("apps", "deployments", with(1, -1), Some(&with(1, -1)), &[]);
        check("apps", "deployments", with(2, -1), Some(&with(1, -1)), &[negative]);
        check("apps", "daemonsets", with(2, -1), Some(&with(1, -1)), &[]);
        check("", "replicationcontrollers", with(2, 1), Some(&with(1, -1)), &[negative]);
        let cron = json!({"metadata": {"name": "a"}, "spec": {"jobTemplate": {"spec": {
            "completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001, "template": {},
        }}}});
        let many = "spec.jobTemplate.spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
                    higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes \
                    fail";
        check("batch", "cronjobs", cron, None, &[many]);
    }

    #[test]
    fn finalizers_of_custom_objects_say_whose_they_are() {
        let with = |names: &[&str]| json!({"metadata": {"finalizers": names}});
        let new = with(&["old", "a.example.com/b", "example.com", "plain", "orphan"]);
        let why = "to avoid accidental conflicts with other finalizer writers";
        assert_eq!(
            finalizers(&new, Some(&with(&["old"]))),
            [
                format!(
                    "metadata.finalizers: \"example.com\": prefer a domain-qualified finalizer name including a path (/) \
                     {why}"
                ),
                format!("metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name {why}"),
            ]
        );
    }

    #[test]
    fn names_of_pods_should_be_labels() {
        let text = |used: &str| {
            format!(
                "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is \
                 recommended: [must not contain dots]"
            )
        };
        let dotted = json!({"metadata": {"name": "a.b"}});
        check("", "pods", dotted.clone(), None, &[&text("the Pod's hostname")]);
        check("batch", "jobs", dotted.clone(), None, &[&text("Pod names and hostnames")]);
        check("apps", "statefulsets", dotted, None, &[]);
    }
}
