//! The operations of a resource: what can be done at which path.

use super::{DELETE_OPTIONS, Gvk, PATCH, Resource, STATUS, Subresource, reference};
use serde_json::{Map, Value, json};

const BODIES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const CUSTOM_BODIES: [&str; 2] = ["application/json", "application/yaml"];
const LISTS: [&str; 5] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const JSON_PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

pub(super) fn add(paths: &mut Map<String, Value>, base: &str, resource: &Resource, schema: &str) {
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{base}{scope}/{}", resource.plural);
    let list = format!("{schema}List");
    let has = |verb: &str| resource.verbs.iter().any(|have| have == verb);
    let describe = Describe { gvk: &resource.gvk, custom: resource.custom_schema.is_some() };

    let mut item = Map::new();
    if has("list") {
        item.insert("get".to_owned(), describe.operation("list", "list", &list));
    }
    if has("create") {
        item.insert("post".to_owned(), describe.operation("post", "create", schema));
    }
    if has("deletecollection") {
        item.insert("delete".to_owned(), describe.operation("deletecollection", "deletecollection", STATUS));
    }
    insert(paths, collection.clone(), item, &parameters(resource.namespaced, false));

    if resource.namespaced && has("list") {
        let mut item = Map::new();
        item.insert("get".to_owned(), describe.operation("list", "list", &list));
        insert(paths, format!("{base}/{}", resource.plural), item, &parameters(false, false));
    }

    let object = format!("{collection}/{{name}}");
    let mut item = Map::new();
    for (verb, method, action) in
        [("get", "get", "get"), ("update", "put", "put"), ("patch", "patch", "patch")]
    {
        if has(verb) {
            item.insert(method.to_owned(), describe.operation(action, verb, schema));
        }
    }
    if has("delete") {
        item.insert("delete".to_owned(), describe.operation("delete", "delete", STATUS));
    }
    insert(paths, object.clone(), item, &parameters(resource.namespaced, true));
    for sub in &resource.subresources {
        let item = subresource(resource, sub, schema);
        insert(paths, format!("{object}/{}", sub.name), item, &parameters(resource.namespaced, true));
    }
}

fn subresource(resource: &Resource, sub: &Subresource, schema: &str) -> Map<String, Value> {
    let describe = Describe { gvk: &sub.gvk, custom: resource.custom_schema.is_some() };
    let other = super::schema_name_of(&sub.gvk).filter(|_| sub.gvk != resource.gvk);
    let schema = other.unwrap_or_else(|| schema.to_owned());
    let methods = [
        ("get", "get", "get"),
        ("update", "put", "put"),
        ("patch", "patch", "patch"),
        ("create", "post", "post"),
    ];
    methods
        .into_iter()
        .filter(|(verb, ..)| sub.verbs.iter().any(|have| have == verb))
        .map(|(verb, method, action)| (method.to_owned(), describe.operation(action, verb, &schema)))
        .collect()
}

fn insert(paths: &mut Map<String, Value>, path: String, mut item: Map<String, Value>, parameters: &[Value]) {
    if !item.is_empty() {
        item.insert("parameters".to_owned(), parameters.into());
        paths.insert(path, item.into());
    }
}

fn parameters(namespace: bool, name: bool) -> Vec<Value> {
    let path = |name: &str, description: &str| {
        json!({"name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string", "uniqueItems": true}})
    };
    let mut parameters = Vec::new();
    if name {
        parameters.push(path("name", "Name of the object."));
    }
    if namespace {
        parameters.push(path("namespace", "Namespace of the object."));
    }
    parameters.push(query("pretty", "string", "If `true`, the answer is written for people to read."));
    parameters
}

fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}

struct Describe<'a> {
    gvk: &'a Gvk,
    /// Custom kinds know no strategic merge patch.
    custom: bool,
}

impl Describe<'_> {
    fn operation(&self, action: &str, verb: &str, schema: &str) -> Value {
        let mut operation = json!({
            "description": format!("{verb} {}", self.gvk.kind),
            "operationId": self.id(verb),
            "parameters": query_parameters(action),
            "responses": {
                "200": {"description": "OK", "content": content(self.answers(action), schema)},
                "401": {"description": "Unauthorized"},
            },
            "tags": [self.tag()],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.gvk.to_json(),
        });
        let body = match action {
            "post" | "put" => Some((content(&["*/*"], schema), true)),
            "patch" => Some((self.patch_content(), true)),
            "delete" | "deletecollection" => Some((content(&["*/*"], DELETE_OPTIONS), false)),
            _ => None,
        };
        if let (Some((content, required)), Some(operation)) = (body, operation.as_object_mut()) {
            let mut body = json!({ "content": content });
            if let (true, Some(body)) = (required, body.as_object_mut()) {
                body.insert("required".to_owned(), true.into());
            }
            operation.insert("requestBody".to_owned(), body);
        }
        operation
    }

    /// The forms of answers. Custom kinds have no protobuf, and lists may be watches.
    fn answers(&self, action: &str) -> &'static [&'static str] {
        match (self.custom, action) {
            (true, _) => &CUSTOM_BODIES,
            (false, "list") => &LISTS,
            (false, _) => &BODIES,
        }
    }

    fn patch_content(&self) -> Value {
        let mut types = JSON_PATCHES.to_vec();
        if !self.custom {
            types.push("application/strategic-merge-patch+json");
        }
        content(&types, PATCH)
    }

    fn id(&self, verb: &str) -> String {
        format!("{verb}{}{}", self.tag().replace('_', ""), self.gvk.kind)
    }

    fn tag(&self) -> String {
        let group = self.gvk.group.replace(['.', '-'], "");
        let group = if group.is_empty() { "core" } else { &group };
        format!("{group}_{}", self.gvk.version)
    }
}

fn content(types: &[&str], schema: &str) -> Value {
    types
        .iter()
        .map(|kind| ((*kind).to_owned(), json!({"schema": reference(schema)})))
        .collect::<Map<String, Value>>()
        .into()
}

fn query_parameters(action: &str) -> Vec<Value> {
    let dry_run = || query("dryRun", "string", "With `All`, everything happens but nothing is stored.");
    let manager = || query("fieldManager", "string", "Who makes the change.");
    let validation = || {
        query(
            "fieldValidation",
            "string",
            "What happens to unknown and repeated fields: `Ignore` drops them, `Warn` drops them with a warning, \
             `Strict` refuses the request.",
        )
    };
    let selection = || {
        vec![
            query("continue", "string", "Where a list that was cut off goes on."),
            query("fieldSelector", "string", "Only objects whose fields match."),
            query("labelSelector", "string", "Only objects whose labels match."),
            query("limit", "integer", "How many objects one answer may have."),
            query("resourceVersion", "string", "Which version the answer is about."),
            query("resourceVersionMatch", "string", "How `resourceVersion` is meant."),
            query("sendInitialEvents", "boolean", "Whether a watch begins with the objects that are there."),
            query("timeoutSeconds", "integer", "When the server ends the request."),
        ]
    };
    match action {
        "post" | "put" => vec![dry_run(), manager(), validation()],
        "patch" => {
            vec![
                dry_run(),
                manager(),
                validation(),
                query("force", "boolean", "Whether apply takes over others' fields."),
            ]
        }
        "delete" | "deletecollection" => {
            let mut parameters = vec![
                dry_run(),
                query("gracePeriodSeconds", "integer", "How long the object may take to end."),
                query("orphanDependents", "boolean", "Old name of `propagationPolicy: Orphan`."),
                query(
                    "propagationPolicy",
                    "string",
                    "What happens to dependents: `Orphan`, `Background`, `Foreground`.",
                ),
            ];
            if action == "deletecollection" {
                parameters.extend(selection());
            }
            parameters
        }
        "list" => {
            let mut parameters = vec![
                query("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
                query("watch", "boolean", "Send changes as they happen instead of a list."),
            ];
            parameters.extend(selection());
            parameters
        }
        _ => Vec::new(),
    }
}
