//! Two repairs that let a Kubernetes of 2021 run when it is built by a later Go.
//!
//! Both faults concern only custom resources, so a cluster without CRDs looks healthy with them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::tool;

/// Where Debian puts the sources of a Go library, and the package that brings this one.
pub(crate) const REFLECT: (&str, &str) = (
    "/usr/share/gocode/src/github.com/modern-go/reflect2/reflect2.go",
    "golang-github-modern-go-reflect2-dev",
);

const VENDORED_REFLECT: &str = "vendor/github.com/modern-go/reflect2";
/// The validator of custom resources, and the library it was taken from.
const TYPE_VALIDATORS: [&str; 2] = [
    "vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go",
    "vendor/github.com/go-openapi/validate/type.go",
];
/// Compares two handles instead of two values. With Go 1.19 the handles of empty values are equal, so that every
/// empty text of a custom resource is taken for null.
const ZERO_IS_NULL: &str =
    "if data == nil || reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data)) {";
const ONLY_NULL_IS_NULL: &str = "if data == nil {";

/// Repairs an unpacked source tree. Running it again changes nothing.
pub(crate) fn run(tree: &Path) -> Result<()> {
    replace_reflect(tree)?;
    for validator in TYPE_VALIDATORS {
        let path = tree.join(validator);
        let source =
            fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        if let Some(repaired) = without_zero_as_null(&source) {
            tool::write_atomically(&path, &repaired)?;
        }
    }
    Ok(())
}

/// The vendored copy walks maps through an internal function whose arguments changed in Go 1.18: the API server
/// dies at the first custom resource. Debian's copy of the library knows better.
fn replace_reflect(tree: &Path) -> Result<()> {
    let from = Path::new(REFLECT.0).parent().context("the path has several parts")?;
    let to = tree.join(VENDORED_REFLECT);
    ensure!(to.is_dir(), "{} is not there; has the source package changed?", to.display());
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "go" || ending == "s");
    for entry in fs::read_dir(&to)? {
        let path = entry?.path();
        if is_source(&path) {
            fs::remove_file(&path)?;
        }
    }
    for entry in fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name().filter(|name| !name.to_string_lossy().ends_with("_test.go")) else {
            continue;
        };
        if is_source(&path) {
            fs::copy(&path, to.join(name)).with_context(|| format!("failed to copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// The repaired source, or nothing where there is nothing to repair.
fn without_zero_as_null(source: &str) -> Option<String> {
    source.contains(ZERO_IS_NULL).then(|| source.replace(ZERO_IS_NULL, ONLY_NULL_IS_NULL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_null_is_taken_for_null_after_the_repair() {
        let source = format!("a\n\t{ZERO_IS_NULL}\nb\n");
        let repaired = without_zero_as_null(&source).unwrap();
        assert_eq!(repaired, "a\n\tif data == nil {\nb\n");
        assert_eq!(without_zero_as_null(&repaired), None);
    }
}
