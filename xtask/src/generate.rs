//! Files made from the code: written by `cargo xtask generate`, compared by a test.

mod chart;
mod values;

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use kruise_api::{catalogue::CRDS, crd::Crd, gates::Gates};
use kruise_core::features::{page, policy, rbac, webhooks};
use serde_json::Value;

/// Folders in which every file is generated.
const FOLDERS: &[&str] =
    &["charts/kruise/crds", chart::FOLDER, "config/policy", "config/rbac", "config/webhook"];

/// One generated file: its place in the checkout and its content.
pub(crate) struct Generated {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Everything that is generated, in a fixed order.
pub(crate) fn all() -> Result<Vec<Generated>> {
    let mut files = CRDS.iter().map(|crd| definition(crd)).collect::<Result<Vec<_>>>()?;
    let gates = Gates::default();
    let [mutating, validating] = webhooks::manifests(&gates, &webhooks::Options::default());
    files.push(manifest("config/policy/daemon.yaml", &policy::objects(&gates))?);
    files.push(manifest("config/rbac/manager.yaml", &rbac::objects(&gates))?);
    files.push(manifest("config/rbac/migration.yaml", &rbac::migration())?);
    files.push(manifest("config/rbac/users.yaml", &rbac::user_roles())?);
    files.push(manifest("config/webhook/mutating.yaml", &[mutating])?);
    files.push(manifest("config/webhook/validating.yaml", &[validating])?);
    files.extend(chart::templates()?);
    files.push(values::readme(&crate::root()?)?);
    let head = "<!-- Made by `cargo xtask generate` from crates/core/src/features. Do not edit. -->\n\n";
    files.push(Generated {
        path: "docs/features.md".to_owned(),
        content: format!("{head}{}", page::markdown()),
    });
    Ok(files)
}

fn definition(crd: &Crd) -> Result<Generated> {
    let path = format!("charts/kruise/crds/{}_{}.yaml", crd.group, crd.plural);
    let yaml = serde_saphyr::to_string(&crd.manifest()).with_context(|| format!("failed to write {path}"))?;
    let head = "# Made by `cargo xtask generate` from the types in crates/api. Do not edit.\n";
    Ok(Generated { path, content: format!("{head}{yaml}\n").replace("\n\n", "\n") })
}

/// Objects of an installation with the gates as they are by default, in one file.
fn manifest(path: &str, objects: &[Value]) -> Result<Generated> {
    let mut content =
        String::from("# Made by `cargo xtask generate` from crates/core/src/features. Do not edit.\n");
    for (index, object) in objects.iter().enumerate() {
        let yaml = serde_saphyr::to_string(object).with_context(|| format!("failed to write {path}"))?;
        let between = if index == 0 { "" } else { "---\n" };
        content.push_str(&format!("{between}{}\n", yaml.trim_end()));
    }
    Ok(Generated { path: path.to_owned(), content })
}

/// Writes every generated file that differs, removes those that nothing makes any more, and tells what changed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = all()?;
    let mut changed = 0;
    for Generated { path, content } in &files {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == *content) {
            continue;
        }
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to make the folder of {path}"))?;
        }
        fs::write(&full, content).with_context(|| format!("failed to write {path}"))?;
        println!("wrote {path}");
        changed += 1;
    }
    for stale in left_over(root, &files)? {
        fs::remove_file(root.join(&stale)).with_context(|| format!("failed to remove {stale}"))?;
        println!("removed {stale}");
        changed += 1;
    }
    println!("{} generated files, {changed} changed", files.len());
    Ok(())
}

/// Fails when a committed file is not what the code generates now.
pub(crate) fn check(root: &Path) -> Result<()> {
    let files = all()?;
    let differs =
        |file: &&Generated| fs::read_to_string(root.join(&file.path)).ok().as_ref() != Some(&file.content);
    let mut stale: Vec<String> = files.iter().filter(differs).map(|file| file.path.clone()).collect();
    stale.extend(left_over(root, &files)?);
    ensure!(stale.is_empty(), "run `cargo xtask generate` and commit: {}", stale.join(", "));
    Ok(())
}

/// Files in folders of generated files that nothing generates.
fn left_over(root: &Path, files: &[Generated]) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder)).with_context(|| format!("failed to read {folder}"))? {
            let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
            if !files.iter().any(|file| file.path == path) {
                stale.push(path);
            }
        }
    }
    stale.sort();
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_files_are_what_the_code_generates() {
        check(&crate::root().unwrap()).unwrap();
    }
}
