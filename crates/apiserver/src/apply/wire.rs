//! `fieldsV1`: a set of fields as JSON.
//!
//! Steps are keys; `.` stands for the step itself where something is below it too.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{Member, Set};

/// Writes a set in the form and order of a server.
pub(super) fn write(set: &Set, out: &mut String) {
    out.push('{');
    members(set, true, out);
    out.push('}');
}

fn members(set: &Set, mut first: bool, out: &mut String) {
    let mut name = String::new();
    for member in set.members() {
        if !first {
            out.push(',');
        }
        first = false;
        name.clear();
        member.element.write(&mut name);
        quoted(&name, out);
        out.push_str(":{");
        if let Some(below) = &member.below {
            if member.owned {
                out.push_str("\".\":{}");
            }
            members(below, !member.owned, out);
        }
        out.push('}');
    }
}

fn quoted(text: &str, out: &mut String) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// Reads a set. The error is a server's.
pub(super) fn read(fields: &Map<String, Value>) -> Result<Set, String> {
    let mut found = Vec::with_capacity(fields.len());
    for (name, below) in fields.iter().filter(|(name, _)| *name != ".") {
        let element = Element::parse(name)?;
        let Value::Object(below) = below else {
            return Err("expected an object below a field".to_owned());
        };
        let owned = below.is_empty() || below.contains_key(".");
        found.extend(Member::shared(element, owned, Some(Arc::new(read(below)?))));
    }
    Ok(Set::new(found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Set {
        read(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[track_caller]
    fn check(text: &str) {
        let mut written = String::new();
        write(&parse(text), &mut written);
        assert_eq!(written, text);
    }

    #[test]
    fn sets_are_written_in_the_order_of_a_server() {
        check("{}");
        check(r#"{"f:spec":{"f:replicas":{}}}"#);
        check(
            r#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:ports":{".":{},"k:{\"port\":80}":{".":{},"f:port":{}},"k:{\"port\":443}":{}}}}"#,
        );
        check(r#"{"f:metadata":{"f:finalizers":{".":{},"v:\"a.b/c\"":{}}}}"#);
    }

    #[test]
    fn broken_sets_are_refused() {
        for text in [r#"{"spec":{}}"#, r#"{"f:a":1}"#, r#"{"k:{":{}}"#] {
            assert!(read(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
        }
    }

    fn any_set() -> impl Strategy<Value = Set> {
        let element = prop_oneof![
            "[a-z./\"]{0,4}".prop_map(|name| Element::field(&name)),
            (0_i64..200).prop_map(|port| Element::key(vec![("port".into(), port.into())])),
            "[a-z]{0,3}".prop_map(|value| Element::Value(Arc::new(value.into()))),
        ];
        let leaf = prop::collection::vec(element.clone(), 0..4).prop_map(|elements| {
            Set::new(elements.into_iter().filter_map(|e| Member::new(e, true, Set::default())).collect())
        });
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop::collection::vec((element.clone(), any::<bool>(), inner), 0..4).prop_map(|members| {
                Set::new(
                    members
                        .into_iter()
                        .filter_map(|(e, owned, below)| Member::new(e, owned, below))
                        .collect(),
                )
            })
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(set in any_set()) {
            let mut text = String::new();
            write(&set, &mut text);
            prop_assert_eq!(parse(&text), set);
        }

        #[test]
        fn sets_obey_their_laws(a in any_set(), b in any_set()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
            prop_assert!(a.difference(&b).intersection(&b).is_empty());
            prop_assert!(a.difference(&a).is_empty());
            prop_assert_eq!(a.union(&b).paths().len(), a.paths().len() + b.difference(&a).paths().len());
            for path in a.paths() {
                prop_assert!(a.has(&path) && a.union(&b).has(&path));
                prop_assert_eq!(a.intersection(&b).has(&path), b.has(&path));
            }
        }
    }
}
