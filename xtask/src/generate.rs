//! Files made from the code: written by `cargo xtask generate`, compared by a test.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use kruise_api::catalogue::CRDS;

/// One generated file: its place in the checkout and its content.
pub(crate) struct Generated {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Everything that is generated, in a fixed order.
pub(crate) fn all() -> Result<Vec<Generated>> {
    CRDS.iter()
        .map(|crd| {
            let path = format!("charts/kruise/crds/{}_{}.yaml", crd.group, crd.plural);
            let yaml =
                serde_saphyr::to_string(&crd.object()).with_context(|| format!("failed to write {path}"))?;
            let head = "# Made by `cargo xtask generate` from the types in crates/api. Do not edit.\n";
            Ok(Generated { path, content: format!("{head}{yaml}\n").replace("\n\n", "\n") })
        })
        .collect()
}

/// Writes every generated file that differs, removes CRDs that no kind makes any more, and tells what changed.
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

/// Files in the CRD folder that nothing generates.
fn left_over(root: &Path, files: &[Generated]) -> Result<Vec<String>> {
    let folder = "charts/kruise/crds";
    let mut stale = Vec::new();
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("failed to read {folder}"))? {
        let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
        if !files.iter().any(|file| file.path == path) {
            stale.push(path);
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
