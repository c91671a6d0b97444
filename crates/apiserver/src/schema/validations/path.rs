//! The place that a rule names for its message: `.spec.color`, or `.labels['a.b']`.

use super::super::node::{Additional, Node};
use crate::field::Path;

/// The place as messages write it; `None` if the schema has no such place. An empty text stays empty.
pub(super) fn normalized(way: &str, node: &Node) -> Option<String> {
    let mut here = node;
    let mut found = String::new();
    let mut rest = way;
    while !rest.is_empty() {
        let (name, behind) = step(rest)?;
        let before = Path::new(&found);
        let own = match (here.properties.is_empty(), &here.additional) {
            (false, _) => {
                here = here.properties.get(&name)?;
                before.child(&name).to_string()
            }
            (true, Additional::Schema(inner)) => {
                here = inner;
                before.key(&name).to_string()
            }
            (true, _) => return None,
        };
        found = own;
        rest = behind;
    }
    Some(found)
}

/// The name of the first step, and what is behind it.
fn step(way: &str) -> Option<(String, &str)> {
    if let Some(name) = way.strip_prefix('.') {
        let end = name.find(['.', '[', ']']).unwrap_or(name.len());
        let (name, behind) = name.split_at(end);
        return (!name.is_empty()).then(|| (name.to_owned(), behind));
    }
    let quoted = way.strip_prefix("['")?;
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return quoted.get(at + 1..)?.strip_prefix(']').map(|behind| (name, behind)),
            '\\' => name.push(match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                plain @ ('\'' | '\\') => plain,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}
