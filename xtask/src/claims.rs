//! The claims of `docs/threats.md`: each row of its tables about attacks names tests, and these exist.

#[cfg(test)]
mod tests {
    use std::fs;

    const PAGE: &str = "docs/threats.md";

    /// The links to tests in a row: names and files.
    fn links(row: &str) -> Vec<(&str, &str)> {
        row.split("[`")
            .skip(1)
            .filter_map(|rest| {
                let (name, rest) = rest.split_once("`](")?;
                let (file, _) = rest.split_once(')')?;
                file.ends_with(".rs").then_some((name, file))
            })
            .collect()
    }

    #[test]
    fn every_claim_about_threats_names_tests_that_exist() {
        let root = crate::root().unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let mut claims = 0;
        let mut in_claims = false;
        for line in page.lines() {
            if !line.starts_with('|') {
                in_claims = false;
            } else if line.ends_with("| tests |") {
                in_claims = true;
            } else if in_claims && !line.starts_with("| ---") {
                claims += 1;
                let links = links(line);
                assert!(!links.is_empty(), "a claim without a test: {line}");
                for (name, file) in links {
                    let path = root.join("docs").join(file);
                    let text = fs::read_to_string(&path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    let (before, _) = text
                        .split_once(&format!("fn {name}("))
                        .unwrap_or_else(|| panic!("{file} has no test {name}"));
                    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
                    let is_test = attributes.contains("#[test]")
                        || attributes.contains("#[tokio::test")
                        || text.contains(&format!("!({name}"))
                        || text.contains(&format!("!(\n    {name},"));
                    assert!(is_test, "{name} in {file} is no test");
                }
            }
        }
        assert!(claims > 20, "only {claims} claims were found");
    }
}
