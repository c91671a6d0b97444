//! Policy rules: what one allows, and whether some rules hold all that others do.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::{Question, What};
use crate::field::quote;

/// Everything, of whatever the word stands for.
const ALL: &str = "*";

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// The API groups.
    pub groups: Vec<String>,
    /// The resources, with their subresources behind a slash.
    pub resources: Vec<String>,
    /// Only objects of these names; none for all of them.
    pub names: Vec<String>,
    /// Paths that are no resources.
    pub urls: Vec<String>,
}

impl Rule {
    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let list = |key: &str| {
            let words = rule.get(key).and_then(Value::as_array);
            words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: list("verbs"),
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
        }
    }

    /// Whether this rule allows what is asked for.
    pub fn allows(&self, question: &Question<'_>) -> bool {
        if !is_in(&self.verbs, question.verb) {
            return false;
        }
        match question.what {
            What::Path(path) => self.urls.iter().any(|url| url_holds(url, path)),
            What::Resource { group, resource, subresource, name, .. } => {
                is_in(&self.groups, group)
                    && self.resources.iter().any(|own| resource_holds(own, resource, subresource))
                    && (self.names.is_empty() || self.names.iter().any(|own| own == name))
            }
        }
    }

    /// The same in rules of one verb, one resource and one name.
    fn pieces(&self) -> Vec<Self> {
        let one = |word: &String| vec![word.clone()];
        let mut pieces = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let piece = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        pieces.push(piece);
                    } else {
                        pieces
                            .extend(self.names.iter().map(|name| Self { names: one(name), ..piece.clone() }));
                    }
                }
            }
        }
        for url in &self.urls {
            pieces.extend(self.verbs.iter().map(|verb| Self {
                urls: one(url),
                verbs: one(verb),
                ..Self::default()
            }));
        }
        pieces
    }

    /// Whether this rule holds all that a piece does.
    fn covers(&self, piece: &Self) -> bool {
        let all = |own: &[String], others: &[String]| others.iter().all(|other| is_in(own, other));
        let resource = |other: &String| {
            let under = other.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            self.resources.iter().any(|own| own == ALL || own == other || Some(own) == under.as_ref())
        };
        let names = self.names.is_empty()
            || (!piece.names.is_empty() && piece.names.iter().all(|name| self.names.contains(name)));
        all(&self.verbs, &piece.verbs)
            && all(&self.groups, &piece.groups)
            && piece.resources.iter().all(resource)
            && names
            && piece.urls.iter().all(|url| self.urls.iter().any(|own| url_holds(own, url)))
    }
}

fn is_in(words: &[String], wanted: &str) -> bool {
    words.iter().any(|word| word == ALL || word == wanted)
}

fn resource_holds(own: &str, resource: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    if subresource.is_empty() {
        return own == resource;
    }
    match own.split_once('/') {
        Some((kind, sub)) => sub == subresource && (kind == ALL || kind == resource),
        None => false,
    }
}

fn url_holds(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

/// What is in `wanted` and not in `owned`, in pieces.
pub(super) fn missing(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let pieces = wanted.iter().flat_map(Rule::pieces);
    pieces.filter(|piece| !owned.iter().any(|own| own.covers(piece))).collect()
}

/// Pieces as people are told of them: the verbs of one resource together, in the order of their texts.
pub(super) fn told(pieces: &[Rule]) -> String {
    let mut together: Vec<Rule> = Vec::new();
    for piece in pieces {
        let same = |other: &&mut Rule| {
            piece.urls.is_empty()
                && other.groups == piece.groups
                && other.resources == piece.resources
                && other.names == piece.names
                && other.urls.is_empty()
        };
        match together.iter_mut().find(same) {
            Some(known) => known.verbs.extend(piece.verbs.iter().cloned()),
            None => together.push(piece.clone()),
        }
    }
    let lines: BTreeSet<String> = together.iter().map(ToString::to_string).collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// Texts in quotes between brackets, as Go prints them.
pub(super) fn quoted_list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    format!("[{}]", words.join(" "))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verbs, groups, resources, names, urls } = self;
        let parts = [
            ("APIGroups", groups),
            ("Resources", resources),
            ("NonResourceURLs", urls),
            ("ResourceNames", names),
            ("Verbs", verbs),
        ];
        let parts = parts.iter().filter(|(_, words)| !words.is_empty());
        let parts: Vec<String> =
            parts.map(|(name, words)| format!("{name}:{}", quoted_list(words))).collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::User;

    /// `verbs groups resources [names]`, or `verbs urls`, with commas inside.
    fn rule(text: &str) -> Rule {
        let words: Vec<Vec<String>> = text
            .split(' ')
            .map(|word| word.split(',').map(|one| one.replace("core", "")).collect())
            .collect();
        let at = |index: usize| words.get(index).cloned().unwrap_or_default();
        match words.len() {
            2 => Rule { verbs: at(0), urls: at(1), ..Rule::default() },
            _ => Rule { verbs: at(0), groups: at(1), resources: at(2), names: at(3), urls: Vec::new() },
        }
    }

    /// `verb group resource[/sub] [name]`, or `verb /path`.
    fn check(own: &str, asked: &str, allowed: bool) {
        let words: Vec<&str> = asked.split(' ').collect();
        let what = match words.as_slice() {
            [_, path] => What::Path(path),
            [_, group, resource, rest @ ..] => {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let group = if *group == "core" { "" } else { group };
                let name = rest.first().copied().unwrap_or_default();
                What::Resource { group, resource, subresource, namespace: "", name }
            }
            _ => panic!("{asked}"),
        };
        let user = User::default();
        let question = Question { user: &user, verb: words[0], what };
        assert_eq!(rule(own).allows(&question), allowed, "{own} / {asked}");
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        check("get core pods", "get core pods a", true);
        check("get core pods", "list core pods", false);
        check("get core pods", "get apps pods", false);
        check("get core pods", "get core pods/log a", false);
        check("get core pods/log", "get core pods/log a", true);
        check("get core */log", "get core pods/log a", true);
        check("get core */log", "get core pods a", false);
        check("* * *", "get apps deployments/scale a", true);
        check("* * *", "get /healthz", false);
        check("get core pods a,b", "get core pods b", true);
        check("get core pods a,b", "get core pods c", false);
        check("get core pods a,b", "list core pods", false);
        check("get /healthz,/api/*", "get /healthz", true);
        check("get /healthz,/api/*", "get /healthz/ping", false);
        check("get /healthz,/api/*", "get /api/v1", true);
        check("get /healthz,/api/*", "post /api/v1", false);
    }

    #[test]
    fn what_is_missing_is_told_by_resource() {
        let told_of = |owned: &[&str], wanted: &str| {
            let owned: Vec<Rule> = owned.iter().map(|text| rule(text)).collect();
            told(&missing(&owned, &[rule(wanted)]))
        };
        assert_eq!(told_of(&["* * *"], "get,list core pods"), "");
        assert_eq!(told_of(&["get core pods"], "get core pods a"), "");
        assert_eq!(told_of(&["get core */log"], "get core pods/log"), "");
        assert_eq!(
            told_of(&["get core pods a"], "get,list core pods"),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#
        );
        assert_eq!(
            told_of(&["get core pods"], "get,list,watch apps,core pods"),
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
             {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\" \"watch\"]}"
        );
        assert_eq!(
            told_of(&["get /api"], "get /api,/api/*"),
            r#"{NonResourceURLs:["/api/*"], Verbs:["get"]}"#
        );
        assert_eq!(told_of(&["get /api*"], "get /api,/api/*"), "");
    }
}
