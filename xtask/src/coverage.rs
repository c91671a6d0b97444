//! `cargo xtask coverage`: which acceptance scenarios of the specification have a test.
//!
//! A scenario is a numbered item below a heading "Acceptance". A test covers it when its doc comment carries the number,
//! as in `CLONESET-12`. A file with several lists has one that is headed "Acceptance scenarios"; the others are named by
//! their section, as in `4.6-6`, or by the short name of [`SHORT`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// Lists whose scenarios tests call by another name than their section.
const SHORT: [(&str, &str); 2] = [("6.5", "EJ"), ("7.4", "EL")];

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
        let scenarios = scenarios_of(&read(&spec.join(&file))?, &prefix);
        let mut covered = 0;
        for ((list, number), title) in &scenarios {
            if tested.contains(&format!("{list}-{number}")) {
                covered += 1;
            } else {
                println!("missing {list}-{number}: {title}");
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

/// Lists, numbers and first words of the acceptance scenarios of one file.
fn scenarios_of(text: &str, prefix: &str) -> BTreeMap<(String, u32), String> {
    // The list, and the level of the heading that opened it; a heading of its level or above closes it.
    let mut open: Option<(String, usize)> = None;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let level = line.chars().take_while(|letter| *letter == '#').count();
        if level > 0 && open.as_ref().is_none_or(|(_, opened)| level <= *opened) {
            open = list_of(line, prefix).map(|list| (list, level));
        }
        let Some(((number, title), (list, _))) = line.split_once(". ").zip(open.as_ref()) else { continue };
        if let Ok(number) = number.parse() {
            found.entry((list.clone(), number)).or_insert_with(|| title.chars().take(100).collect());
        }
    }
    found
}

/// The name of the list that a heading opens.
fn list_of(heading: &str, prefix: &str) -> Option<String> {
    let heading = heading.to_lowercase();
    if heading.contains("acceptance scenarios") {
        return Some(prefix.to_owned());
    }
    let (section, title) = heading.trim_start_matches(['#', ' ']).split_once(' ')?;
    title.starts_with("acceptance").then(|| {
        let short = SHORT.iter().find(|(number, _)| *number == section);
        short.map_or(section, |(_, name)| name).to_owned()
    })
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

/// Words of a text that are a list, in capitals or the number of a section, a dash and a number.
fn numbers(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '.';
    text.split(parts).map(|word| word.trim_end_matches('.')).filter_map(|word| {
        let (list, number) = word.split_once('-')?;
        let named = list.chars().all(|letter| letter.is_ascii_uppercase());
        let section = list.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        let numbered = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit());
        (!list.is_empty() && (named || section) && numbered).then(|| word.to_owned())
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
        let scenarios = scenarios_of(text, "X");
        let told = |number: u32, title: &str| (("X".to_owned(), number), title.to_owned());
        assert_eq!(scenarios.into_iter().collect::<Vec<_>>(), [told(1, "**Given** x"), told(2, "y. z")]);
    }

    #[test]
    fn further_lists_are_named_by_their_section() {
        let text = "## 4.6 Acceptance\n1. a\n## 5.9 Acceptance scenarios\n1. b\n## 6.5 Acceptance\n1. c\n";
        let lists: Vec<String> = scenarios_of(text, "X").into_keys().map(|(list, _)| list).collect();
        assert_eq!(lists, ["4.6", "EJ", "X"]);
        assert_eq!(
            numbers("Node daemon 4.6-1, 8.1-12: both. EJ-3.").collect::<Vec<_>>(),
            ["4.6-1", "8.1-12", "EJ-3"]
        );
    }

    #[test]
    fn a_number_counts_only_in_the_doc_comment_of_a_function() {
        let source = "/// A-1, and\n/// B-22: both.\n#[test]\nfn a() {}\n// A-2\nfn b() {}\n/// A-3\nstruct C;\nfn d() {}\n";
        assert_eq!(tested_numbers(source).into_iter().collect::<Vec<_>>(), ["A-1", "B-22"]);
    }
}
