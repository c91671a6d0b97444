//! `cargo xtask coverage`: which acceptance scenarios of the specification have a test.
//!
//! A scenario is a numbered item below a heading "Acceptance scenarios". A test covers it when its doc comment
//! carries the number, as in `CLONESET-12`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// Prints what is missing, one line per file, and the sum.
pub(crate) fn run(root: &Path) -> Result<()> {
    let spec = root.join("../shared/spec");
    ensure!(
        spec.join("README.md").is_file(),
        "there is no specification at {}; coverage needs it beside the checkout",
        spec.display()
    );
    let index = read(&spec.join("README.md"))?;
    let mut tested = BTreeSet::new();
    for file in rust_files(root)? {
        tested.extend(tested_numbers(&read(&file)?));
    }
    let (mut covered_sum, mut total_sum) = (0, 0);
    let mut lines = Vec::new();
    for (file, prefix) in files_of(&index) {
        let scenarios = scenarios_of(&read(&spec.join(&file))?);
        let covered =
            scenarios.keys().filter(|number| tested.contains(&format!("{prefix}-{number}"))).count();
        for (number, title) in &scenarios {
            if !tested.contains(&format!("{prefix}-{number}")) {
                println!("missing {prefix}-{number}: {title}");
            }
        }
        lines.push(format!("{file} {covered}/{}", scenarios.len()));
        covered_sum += covered;
        total_sum += scenarios.len();
    }
    lines.iter().for_each(|line| println!("{line}"));
    println!("{covered_sum}/{total_sum} acceptance scenarios have a test");
    Ok(())
}

/// Files and prefixes from the table of the specification's README.
fn files_of(index: &str) -> Vec<(String, String)> {
    let rows = index.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [file, .., prefix] = cells.as_slice() else { return None };
        let file = file.trim_matches('`');
        let is_prefix = !prefix.is_empty() && prefix.chars().all(|letter| letter.is_ascii_uppercase());
        (file.ends_with(".md") && is_prefix).then(|| (file.to_owned(), (*prefix).to_owned()))
    });
    rows.collect()
}

/// Numbers and first words of the acceptance scenarios of one file.
fn scenarios_of(text: &str) -> BTreeMap<u32, String> {
    // The level of the heading that opened the list; a heading of its level or above closes it.
    let mut open: Option<usize> = None;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let level = line.chars().take_while(|letter| *letter == '#').count();
        if level > 0 && open.is_none_or(|opened| level <= opened) {
            open = line.to_lowercase().contains("acceptance scenarios").then_some(level);
        }
        let Some((number, title)) = line.split_once(". ").filter(|_| open.is_some()) else { continue };
        if let Ok(number) = number.parse() {
            found.entry(number).or_insert_with(|| title.chars().take(100).collect());
        }
    }
    found
}

/// Numbers in doc comments that stand directly before a function.
fn tested_numbers(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut pending = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            pending.extend(numbers(comment));
        } else if line.starts_with("fn ") || line.starts_with("async fn ") {
            found.extend(pending.drain(..));
        } else if !line.starts_with("#[") {
            pending.clear();
        }
    }
    found
}

/// Words of a text that are a prefix in capitals, a dash and a number.
fn numbers(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').filter_map(|word| {
        let (prefix, number) = word.split_once('-')?;
        let named = !prefix.is_empty() && prefix.chars().all(|letter| letter.is_ascii_uppercase());
        let numbered = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit());
        (named && numbered).then(|| word.to_owned())
    })
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "e2e", "xtask"].iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("failed to read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_names_files_and_prefixes() {
        let index = "| file | covers | scenarios |\n| --- | --- | --- |\n| `a-b.md` | things | THINGS |\n| `crds/` | schemas | |\n";
        assert_eq!(files_of(index), [("a-b.md".to_owned(), "THINGS".to_owned())]);
    }

    #[test]
    fn only_items_below_the_heading_count() {
        let text = "## 1. Rules\n1. a rule\n## 16. Acceptance scenarios\n\n1. **Given** x\n   more\n### B\n2. y. z\n## 17. Notes\n3. no\n";
        let scenarios = scenarios_of(text);
        assert_eq!(
            scenarios.into_iter().collect::<Vec<_>>(),
            [(1, "**Given** x".to_owned()), (2, "y. z".to_owned())]
        );
    }

    #[test]
    fn a_number_counts_only_in_the_doc_comment_of_a_function() {
        let source = "/// A-1, and\n/// B-22: both.\n#[test]\nfn a() {}\n// A-2\nfn b() {}\n/// A-3\nstruct C;\nfn d() {}\n";
        assert_eq!(tested_numbers(source).into_iter().collect::<Vec<_>>(), ["A-1", "B-22"]);
    }
}
