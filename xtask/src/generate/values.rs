//! The page about the chart's values: a table made from the comments of `values.yaml`.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Generated;

const VALUES: &str = "charts/kruise/values.yaml";
const PAGE: &str = "charts/kruise/README.md";

/// One value that a user may set.
struct Row {
    path: String,
    default: String,
    about: String,
}

/// The page with its table.
pub(super) fn readme(root: &Path) -> Result<Generated> {
    let text = fs::read_to_string(root.join(VALUES)).with_context(|| format!("failed to read {VALUES}"))?;
    let mut content = String::from(HEAD);
    for Row { path, default, about } in rows(&text)? {
        let about = about.replace('|', "\\|");
        content.push_str(&format!("| `{path}` | `{default}` | {about} |\n"));
    }
    content.push_str(TAIL);
    Ok(Generated { path: PAGE.to_owned(), content })
}

/// Every key that has a comment above it, with what it is by default.
fn rows(text: &str) -> Result<Vec<Row>> {
    let values: Value = serde_saphyr::from_str(text).with_context(|| format!("failed to parse {VALUES}"))?;
    let mut rows = Vec::new();
    let mut parents: Vec<(usize, &str)> = Vec::new();
    let mut about: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(comment) = trimmed.strip_prefix("# ") {
            about = Some(comment);
            continue;
        }
        let indent = line.len() - trimmed.len();
        let is_key = !trimmed.starts_with('-');
        if let Some((key, _)) = trimmed.split_once(':').filter(|_| is_key) {
            parents.retain(|(depth, _)| *depth < indent);
            parents.push((indent, key));
            if let Some(about) = about {
                let path: Vec<&str> = parents.iter().map(|(_, key)| *key).collect();
                let value = path.iter().try_fold(&values, |value, key| value.get(key));
                let value = value.with_context(|| format!("{VALUES} has no {}", path.join(".")))?;
                rows.push(Row { path: path.join("."), default: value.to_string(), about: about.to_owned() });
            }
        }
        about = None;
    }
    ensure!(!rows.is_empty(), "{VALUES} describes no value");
    Ok(rows)
}

const HEAD: &str = "<!-- Made by `cargo xtask generate` from values.yaml. Do not edit. -->

# The chart `kruise`

Manager, node daemon, CRDs, roles and webhooks. It needs Kubernetes 1.20 and Helm 3.5 or later. See
[docs/install.md](../../docs/install.md) for installing, upgrading, taking over from OpenKruise and uninstalling.

Values files of OpenKruise's charts 1.0 to 1.9 are accepted as they are. A name that none of these charts knows is refused.

| value | default | meaning |
| --- | --- | --- |
";

const TAIL: &str = "
Names of older charts:

| value | effect |
| --- | --- |
| `webhookConfiguration.failurePolicy.pods` | the same as `webhookConfiguration.podFailurePolicy`, which wins if both are set |
| `manager.metrics.addr` | host part of the address of `/metrics` |
| `helmHooks.image`, `daemon.windowsImage`, `nameOverride`, `fullnameOverride` | none |
";
