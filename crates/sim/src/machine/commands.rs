//! What commands say that nobody declared.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Said;
use crate::image::seconds;

/// What a command says, and how long it takes.
pub(super) fn said(words: &[String], environment: &BTreeMap<String, String>) -> Said {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut said = Said::default();
    match words.as_slice() {
        ["sh" | "/bin/sh" | "bash" | "/bin/bash", "-c" | "-ec", script] => {
            let parts = script.split(';').flat_map(|part| part.split("&&")).map(str::trim);
            for part in parts.filter(|part| !part.is_empty()) {
                let words: Vec<&str> = part.split_whitespace().collect();
                if one(&words, environment, &mut said) {
                    break;
                }
            }
        }
        words => {
            one(words, environment, &mut said);
        }
    }
    said
}

/// Does one simple command. Returns whether the script ends with it.
fn one(words: &[&str], environment: &BTreeMap<String, String>, said: &mut Said) -> bool {
    said.code = 0;
    match words {
        ["echo", text @ ..] => {
            let text: Vec<&str> = text.iter().map(|word| word.trim_matches(['"', '\''])).collect();
            let line = format!("{}\n", text.join(" "));
            // The only redirection that probes use.
            match line.strip_suffix(" >&2\n") {
                Some(line) => {
                    let _ = writeln!(said.stderr, "{line}");
                }
                None => said.stdout.push_str(&line),
            }
        }
        ["sleep" | "/bin/sleep", time] => said.after += seconds(time).unwrap_or_default(),
        ["false" | "/bin/false"] => said.code = 1,
        ["exit", code] => {
            said.code = code.parse().unwrap_or(2);
            return true;
        }
        ["env" | "printenv"] => {
            for (name, value) in environment {
                let _ = writeln!(said.stdout, "{name}={value}");
            }
        }
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(words: &[&str]) -> Said {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        said(&words, &BTreeMap::from([("A".to_owned(), "b".to_owned())]))
    }

    #[test]
    fn simple_commands_do_what_they_say() {
        assert_eq!(run(&["true"]), Said::default());
        assert_eq!(run(&["/usr/bin/anything", "x"]), Said::default());
        assert_eq!(run(&["false"]).code, 1);
        assert_eq!(run(&["env"]).stdout, "A=b\n");
        assert_eq!(run(&["sleep", "5"]).after, Duration::from_secs(5));
        let mixed = run(&["sh", "-c", "echo 'hello you'; sleep 2; echo bad >&2; exit 3; echo never"]);
        assert_eq!((mixed.stdout.as_str(), mixed.stderr.as_str(), mixed.code), ("hello you\n", "bad\n", 3));
        assert_eq!(mixed.after, Duration::from_secs(2));
    }
}
