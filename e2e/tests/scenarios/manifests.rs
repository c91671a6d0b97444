//! The generated manifests on an API server: it takes the roles and the webhook configurations as they are.

use kruise_testkit::{Cluster, Outcome, scenario};
use serde_json::{Value, json};

/// Everything in `config/` is accepted, with unknown or misspelt fields refused. Nothing is stored: a webhook
/// configuration without a manager behind it would stop the cluster.
async fn generated_manifests_are_accepted(cluster: Cluster) -> Outcome {
    let sandbox = cluster.sandbox("manifests").await;
    let mut seen = 0;
    for mut object in manifests() {
        let text = |field: &str| object[field].as_str().unwrap().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let prefix = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
        let plural = format!("{}s", kind.to_lowercase());
        let place = match object["metadata"].get("namespace") {
            None => String::new(),
            Some(_) => {
                object["metadata"]["namespace"] = json!(sandbox.namespace());
                format!("/namespaces/{}", sandbox.namespace())
            }
        };
        let path = format!("{prefix}{place}/{plural}?dryRun=All&fieldValidation=Strict");
        let request = http::Request::post(&path)
            .header("Content-Type", "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        let stored: Value = match cluster.client().request(request).await {
            Ok(stored) => stored,
            Err(error) => panic!("{kind} {} was refused at {path}: {error}", object["metadata"]["name"]),
        };
        // What the server gives back has all that was sent: nothing was dropped as unknown.
        for (member, value) in object.as_object().unwrap().iter().filter(|(member, _)| *member != "metadata")
        {
            assert!(contains(&stored[member], value), "{kind}: {member} became {}", stored[member]);
        }
        seen += 1;
    }
    assert!(seen >= 14, "only {seen} objects were found");
    Ok(())
}
scenario!(generated_manifests_are_accepted);

/// Whether the first value has everything that the second one says.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            // Null asks for a field to be absent: `clientConfig.url` removes the address that a manager wrote.
            part.iter().all(|(key, value)| match whole.get(key) {
                None => value.is_null(),
                Some(other) => contains(other, value),
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(one, other)| contains(one, other))
        }
        (whole, part) => whole == part,
    }
}

fn manifests() -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../config");
    let mut objects = Vec::new();
    for file in ["rbac/manager", "rbac/users", "webhook/mutating", "webhook/validating"] {
        let path = format!("{root}/{file}.yaml");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        objects.extend(found);
    }
    objects
}
