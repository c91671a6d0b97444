//! Derives where source packages come from, out of where the machine gets its binary packages.
//!
//! A machine's own lists name binary packages only. The project names no server: it repeats the machine's own entries
//! as `deb-src`, restricted to Debian's main suite, in files that only our calls of apt read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tool;

/// Entries for source packages, in apt's two formats.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Derived {
    /// One entry per line.
    pub(crate) list: String,
    /// Paragraphs of fields.
    pub(crate) sources: String,
}

/// Names that a main suite may have besides the release's own.
const MOVING_SUITES: [&str; 5] = ["stable", "oldstable", "testing", "unstable", "sid"];

/// Reads the machine's entries and derives ours.
pub(crate) fn of_this_machine() -> Result<Derived> {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = codename(&os_release).unwrap_or_default();
    let told = tool::capture(Command::new("apt-config").args([
        "shell",
        "LIST",
        "Dir::Etc::sourcelist/f",
        "PARTS",
        "Dir::Etc::sourceparts/d",
    ]))?;
    let mut derived = Derived::default();
    for file in source_files(&told) {
        let content = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => derived.list.push_str(&from_list(&content, codename)),
            Some("sources") => derived.sources.push_str(&from_sources(&content, codename)),
            _ => {}
        }
    }
    if derived == Derived::default() {
        bail!(
            "apt knows no main suite of {codename:?} on this machine, so there is no source package to build from"
        );
    }
    Ok(derived)
}

/// The files that apt reads: the list, and what stands in the folder of parts.
fn source_files(told: &str) -> Vec<PathBuf> {
    let value = |name: &str| {
        told.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix("='")?.strip_suffix('\''))
            .map(PathBuf::from)
    };
    let mut files: Vec<_> = value("LIST").into_iter().filter(|file| file.is_file()).collect();
    let mut parts: Vec<_> = value("PARTS")
        .and_then(|folder: PathBuf| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path: &PathBuf| Path::is_file(path))
        .collect();
    parts.sort();
    files.append(&mut parts);
    files
}

fn codename(os_release: &str) -> Option<&str> {
    os_release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"'))
}

fn is_main_suite(suite: &str, codename: &str) -> bool {
    suite == codename || MOVING_SUITES.contains(&suite)
}

/// Lines `deb [options] uri suite component…`.
fn from_list(content: &str, codename: &str) -> String {
    let derive = |line: &str| {
        let line = line.split('#').next()?.trim();
        let rest = line.strip_prefix("deb")?;
        let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (options, rest) = rest.split_once(']')?;
                (format!("[{}] ", options.trim()), rest)
            }
            None => (String::new(), rest),
        };
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let is_main = is_main_suite(suite, codename) && words.any(|component| component == "main");
        is_main.then(|| format!("deb-src {options}{uri} {suite} main\n"))
    };
    content.lines().filter_map(derive).collect()
}

/// Paragraphs with the fields `Types`, `URIs`, `Suites`, `Components` and others, which are kept.
fn from_sources(content: &str, codename: &str) -> String {
    let without_comments: Vec<_> = content.lines().filter(|line| !line.starts_with('#')).collect();
    without_comments
        .split(|line| line.trim().is_empty())
        .filter_map(|paragraph| derive_paragraph(paragraph, codename))
        .collect()
}

fn derive_paragraph(lines: &[&str], codename: &str) -> Option<String> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut()?;
            value.push('\n');
            value.push_str(line);
        } else {
            let (name, value) = line.split_once(':')?;
            fields.push((name, value.trim().to_owned()));
        }
    }
    let field = |wanted: &str| {
        fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    };
    let has_word = |wanted: &str, word: &str| field(wanted)?.split_whitespace().find(|found| *found == word);
    has_word("Types", "deb")?;
    has_word("Components", "main")?;
    if field("Enabled").is_some_and(|value| matches!(value, "no" | "false" | "0")) {
        return None;
    }
    let suites: Vec<_> =
        field("Suites")?.split_whitespace().filter(|suite| is_main_suite(suite, codename)).collect();
    if suites.is_empty() {
        return None;
    }
    let kept = fields.iter().map(|(name, value)| match name.to_ascii_lowercase().as_str() {
        "types" => format!("{name}: deb-src\n"),
        "suites" => format!("{name}: {}\n", suites.join(" ")),
        "components" => format!("{name}: main\n"),
        _ if value.starts_with('\n') => format!("{name}:{value}\n"),
        _ => format!("{name}: {value}\n"),
    });
    Some(kept.chain(["\n".to_owned()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_list(content: &str, expected: &str) {
        assert_eq!(from_list(content, "bookworm"), expected);
    }

    #[test]
    fn only_the_main_suite_of_a_list_becomes_a_source() {
        check_list(
            "deb http://mirror.test/debian bookworm main contrib # ours\n\
             deb http://mirror.test/debian bookworm-updates main\n\
             deb http://security.test/debian-security bookworm-security main\n",
            "deb-src http://mirror.test/debian bookworm main\n",
        );
    }

    #[test]
    fn options_of_an_entry_are_kept() {
        check_list(
            "deb [signed-by=/usr/share/keyrings/k.gpg arch=amd64] http://mirror.test/debian stable main\n",
            "deb-src [signed-by=/usr/share/keyrings/k.gpg arch=amd64] http://mirror.test/debian stable main\n",
        );
    }

    #[test]
    fn comments_sources_and_foreign_suites_of_a_list_are_left_out() {
        check_list("# deb http://mirror.test/debian bookworm main\n", "");
        check_list("deb-src http://mirror.test/debian bookworm main\n", "");
        check_list("deb http://vendor.test/apt vendor main\n", "");
        check_list("deb http://mirror.test/debian bookworm contrib\n", "");
    }

    #[test]
    fn a_paragraph_keeps_its_server_and_its_key() {
        let content = "Types: deb\n# a comment\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\n\
                       Components: main contrib\nSigned-By: /usr/share/keyrings/k.gpg\n\n\
                       Types: deb\nURIs: http://mirror.test/security\nSuites: bookworm-security\nComponents: main\n";
        assert_eq!(
            from_sources(content, "bookworm"),
            "Types: deb-src\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n\
             Signed-By: /usr/share/keyrings/k.gpg\n\n"
        );
    }

    #[test]
    fn a_key_inside_a_paragraph_keeps_its_lines() {
        let content = "Types: deb\nURIs: http://m.test/d\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n AB\n";
        assert_eq!(
            from_sources(content, "bookworm"),
            "Types: deb-src\nURIs: http://m.test/d\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n AB\n\n"
        );
    }

    #[test]
    fn a_paragraph_that_is_switched_off_is_left_out() {
        let content = "Enabled: no\nTypes: deb\nURIs: http://m.test/d\nSuites: bookworm\nComponents: main\n";
        assert_eq!(from_sources(content, "bookworm"), "");
    }

    #[test]
    fn the_release_is_read_from_the_machine() {
        assert_eq!(codename("ID=debian\nVERSION_CODENAME=\"trixie\"\n"), Some("trixie"));
        assert_eq!(codename("ID=other\n"), None);
    }
}
