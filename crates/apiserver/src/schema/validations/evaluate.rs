//! Holds objects against the rules of their schema.
//!
//! On an update, a rule that a value broke before and that did not change since warns and does not refuse. Rules that
//! look at the old value are about the change itself, so they always count.

use serde_json::Value;

use super::super::node::Node;
use super::super::unchanged::{OldItems, unchanged};
use super::{Checks, Rule};
use crate::cel::{Fault, PER_CALL_LIMIT, Value as Cel, to_typed};
use crate::field::{Error, ErrorKind, Path};

/// The longest message that an expression may make.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// What rules say about an object. Those that only warn are marked so. `budget` is what they may cost and becomes what is
/// left of it; none is left when they were not all looked at.
pub(in crate::schema) fn evaluate<'a>(
    checks: &'a Checks,
    node: &'a Node,
    object: &'a Value,
    old: Option<&'a Value>,
    base: &Path<'_>,
    budget: &mut u64,
) -> Vec<Error> {
    let mut run = Run { errors: Vec::new(), budget: *budget, stopped: false };
    let history = History { own: old.map(|old| (node, object, old)), parent: None };
    run.value(checks, object, old, history, base);
    *budget = if run.stopped { 0 } else { run.budget };
    run.errors
}

/// A value, what it was before, and the schema that tells which parts belong together.
type Pair<'a> = (&'a Node, &'a Value, &'a Value);

/// What is known about the value before the change.
#[derive(Clone, Copy, Default)]
struct History<'a> {
    /// If it can be told which value it was.
    own: Option<Pair<'a>>,
    /// Else: the nearest value around it of which it can be told.
    parent: Option<Pair<'a>>,
}

impl<'a> History<'a> {
    fn is_unchanged(&self) -> bool {
        self.own.or(self.parent).is_some_and(|(node, new, old)| unchanged(node, new, old))
    }

    fn field(self, name: &str) -> Self {
        let Some(pair @ (node, new, old)) = self.own else { return self };
        // Both are converted to the version of the request, so a change of these cannot be seen.
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        let below = || Some((node.below(name)?, new.get(name)?, old.get(name)?));
        Self { own: below(), parent: Some(pair) }
    }

    fn item(self, item: &'a Value, old: Option<&'a Value>) -> Self {
        let Some(pair @ (node, ..)) = self.own else { return self };
        let below = || Some((node.items.as_deref()?, item, old?));
        Self { own: below(), parent: Some(pair) }
    }
}

struct Run {
    errors: Vec<Error>,
    budget: u64,
    /// Whether the budget is used up, so that nothing more is looked at.
    stopped: bool,
}

/// What happens when a rule is broken.
struct Broken<'a> {
    rule: &'a Rule,
    place: String,
    only_warns: bool,
}

impl Run {
    fn value<'a>(
        &mut self,
        checks: &'a Checks,
        value: &'a Value,
        old: Option<&'a Value>,
        history: History<'a>,
        path: &Path<'_>,
    ) {
        let old = old.filter(|old| !old.is_null());
        if value.is_null() || self.stopped {
            return;
        }
        self.rules(checks, value, old, history, path);
        for part in &checks.all_of {
            self.value(part, value, old, History { own: None, parent: history.parent }, path);
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(checks) = &checks.additional {
                        self.value(checks, value, old, history.field(name), &path.key(name));
                    }
                    if let Some(checks) = checks.properties.get(name) {
                        self.value(checks, value, old, history.field(name), &path.child(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = &checks.items else { return };
                let before = OldItems::of(&checks.list, old);
                for (i, item) in items.iter().enumerate() {
                    let old = before.get(item);
                    self.value(inner, item, old, history.item(item, old), &path.index(i));
                }
            }
            _ => {}
        }
    }

    fn refuse(&mut self, checks: &Checks, path: &Path<'_>, why: String) {
        self.errors.push(Error::invalid(shown(path), checks.kind_name(), why));
    }

    fn stop(&mut self, checks: &Checks, path: &Path<'_>, why: String) {
        self.refuse(checks, path, why);
        self.stopped = true;
    }

    fn rules(
        &mut self,
        checks: &Checks,
        value: &Value,
        old: Option<&Value>,
        history: History<'_>,
        path: &Path<'_>,
    ) {
        if checks.rules.is_empty() {
            return;
        }
        let Some(shape) = checks.shape.as_deref() else {
            let why = "failed to convert to declType for CEL validation rules";
            return self.refuse(checks, path, format!("rule compiler initialization error: {why}"));
        };
        if self.budget == 0 {
            return self.stop(checks, path, OUT_OF_BUDGET.to_owned());
        }
        let own = to_typed(shape, value);
        let uses_old = checks.rules.iter().any(|rule| rule.uses_old);
        let before = old.filter(|_| uses_old).map(|old| to_typed(shape, old));
        for rule in &checks.rules {
            let program = match &rule.program {
                Ok(program) => program,
                Err(why) => {
                    self.refuse(checks, path, format!("rule compile error: {why}"));
                    continue;
                }
            };
            // A rule about a change needs something that changed.
            if rule.uses_old && before.is_none() && !rule.optional_old {
                continue;
            }
            let variables = |name: &str| match name {
                "self" => Some(Ok(own.clone())),
                "oldSelf" if rule.optional_old => Some(Ok(match &before {
                    Some(before) => Cel::some(before.clone()),
                    None => Cel::Optional(None),
                })),
                "oldSelf" => before.clone().map(Ok),
                _ => None,
            };
            let (outcome, cost) = program.evaluate(&variables, PER_CALL_LIMIT);
            let Some(left) = self.budget.checked_sub(cost) else {
                return self.stop(checks, path, OUT_OF_BUDGET.to_owned());
            };
            self.budget = left;
            match outcome {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => {
                    let place = rule.place.as_deref().map(|place| path.child(place).to_string());
                    let broken = Broken {
                        rule,
                        place: place.unwrap_or_else(|| shown(path)),
                        only_warns: !rule.uses_old && history.is_unchanged(),
                    };
                    self.broken(checks, value, broken, &variables);
                    if self.stopped {
                        return;
                    }
                }
                Err(fault @ Fault::TooExpensive) => {
                    let why = format!(
                        "'{fault}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.shown()
                    );
                    return self.stop(checks, path, why);
                }
                Err(Fault::Error(why)) if why.starts_with("no such overload") => {
                    let why = format!(
                        "'{why}': call arguments did not match a supported operator, function or macro signature for \
                         rule: {}",
                        rule.shown()
                    );
                    self.refuse(checks, path, why);
                }
                Err(Fault::Error(why)) => {
                    self.refuse(checks, path, format!("{why} evaluating rule: {}", rule.shown()));
                }
            }
        }
    }

    /// Tells that a rule does not hold, in the words of its author.
    fn broken(
        &mut self,
        checks: &Checks,
        value: &Value,
        broken: Broken<'_>,
        variables: &crate::cel::Variables<'_>,
    ) {
        let Broken { rule, place, only_warns } = broken;
        let mut message = None;
        if let Some(Ok(program)) = &rule.message_program {
            let (outcome, cost) = program.evaluate(variables, PER_CALL_LIMIT);
            let why = match (self.budget.checked_sub(cost), &outcome) {
                (None, _) => Some(
                    "messageExpression evaluation failed due to running out of cost budget, no further validation \
                     rules will be run"
                        .to_owned(),
                ),
                (_, Err(Fault::TooExpensive)) => {
                    let source = rule.text("messageExpression");
                    Some(format!(
                        "no further validation rules will be run due to call cost exceeds limit for \
                         messageExpression: {}",
                        crate::field::quote(source)
                    ))
                }
                _ => None,
            };
            if let Some(why) = why {
                let error = Error::invalid(place, checks.kind_name(), why);
                self.errors.push(if only_warns { error.as_warning() } else { error });
                self.stopped = true;
                return;
            }
            self.budget = self.budget.saturating_sub(cost);
            message = outcome.ok().and_then(|value| usable(&value));
        }
        let detail = message.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule.expression),
            message => message.to_owned(),
        });
        let error = match rule.reason {
            Some(ErrorKind::Forbidden) => Error::forbidden(place, detail),
            Some(ErrorKind::Required) => Error::required(place, detail),
            Some(ErrorKind::Duplicate) => Error::duplicate(place, value.clone()),
            _ => Error::invalid(place, value.clone(), detail),
        };
        let error = if value.is_object() || value.is_array() { error.without_value() } else { error };
        self.errors.push(if only_warns { error.as_warning() } else { error });
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A message that an expression made, if it is fit to be shown.
fn usable(message: &Cel) -> Option<String> {
    let Cel::Text(text) = message else { return None };
    let text = text.trim();
    (!text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
}

impl Rule {
    fn shown(&self) -> &str {
        if self.message.is_empty() { &self.expression } else { &self.message }
    }

    fn text(&self, key: &str) -> &str {
        self.source.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The real server prints the path of the object itself so.
fn shown(path: &Path<'_>) -> String {
    if path.is_root() { "<nil>".to_owned() } else { path.to_string() }
}
