//! The words of the documentation: a Kubernetes engineer reads each page once and knows what to do.

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    /// Words that are not the field's own, and what to write in their place.
    const OLD: [(&str, &str); 12] = [
        ("tell", "report"),
        ("tells", "reports"),
        ("told", "reported"),
        ("mend", "fix"),
        ("mends", "fixes"),
        ("mended", "fixed"),
        ("judge", "validate"),
        ("judged", "validated"),
        ("dear", "expensive"),
        ("patience", "timeout"),
        ("bears", "survives"),
        ("figures", "metrics or measurements"),
    ];

    /// Places where such a word is the right one: part of a line, and why.
    const ALLOWED: [(&str, &str); 1] =
        [("0007-pod-templates-are-judged-by-our-own-rules", "the name of a page; links to it stay valid")];

    fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pages(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }

    /// The words of a line, without code and without what is allowed.
    fn words(line: &str) -> Vec<String> {
        let mut text = line.to_owned();
        for (part, _) in ALLOWED {
            text = text.replace(part, "");
        }
        // Every second part stands between backticks.
        let prose: Vec<&str> = text.split('`').step_by(2).collect();
        let is_end = |letter: char| !letter.is_alphanumeric() && letter != '-' && letter != '_';
        prose.join(" ").split(is_end).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    }

    #[test]
    fn pages_use_the_words_of_the_field() {
        let root = crate::root().unwrap();
        let mut files = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
            .map(|name| root.join(name))
            .to_vec();
        pages(&root.join("docs"), &mut files);
        let mut odd = Vec::new();
        for file in files {
            let mut is_code = false;
            for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
                if line.trim_start().starts_with("```") {
                    is_code = !is_code;
                }
                let words = if is_code { Vec::new() } else { words(line) };
                for (old, new) in OLD.iter().filter(|(old, _)| words.iter().any(|word| word == old)) {
                    let file = file.strip_prefix(&root).unwrap().display();
                    odd.push(format!("{file}:{}: write {new}, not {old}", number + 1));
                }
            }
        }
        assert!(odd.is_empty(), "{}", odd.join("\n"));
    }

    #[test]
    fn words_in_code_and_in_names_of_pages_do_not_count() {
        assert_eq!(words("Run `tell`, then (told)"), ["run", "then", "told"]);
        assert!(
            !words("[a](0007-pod-templates-are-judged-by-our-own-rules.md)").contains(&"judged".to_owned())
        );
    }
}
