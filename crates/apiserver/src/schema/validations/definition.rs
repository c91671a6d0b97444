//! What is wrong with the rules of a definition.

use serde_json::{Value, json};

use super::super::node::{Additional, List, Node};
use super::evaluate::evaluate;
use super::{BUDGET, Checks, Rule, path};
use crate::cel::cost;
use crate::cel::shape::{MAX_REQUEST, Shape};
use crate::field::{Error, Path};

/// What one expression may cost at worst.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// What all expressions of a schema may cost at worst.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// All that is wrong. Defaults come first: while they break rules, the rules themselves are not looked at.
pub(in crate::schema) fn errors(checks: &Checks, root: &Node, base: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut budget = BUDGET;
    defaults(checks, root, false, base, &mut budget, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let mut survey = Survey::default();
    survey.level(checks, root, Around { most: Some(1), uncorrelatable: None }, base);
    survey.finish(base)
}

/// Defaults must fulfil the rules, as new values and as ones that stay.
fn defaults(
    checks: &Checks,
    node: &Node,
    is_metadata: bool,
    path: &Path<'_>,
    budget: &mut u64,
    errors: &mut Vec<Error>,
) {
    if let Some(default) = &node.default
        && !is_metadata
    {
        let own = path.child("default");
        let mut found = evaluate(checks, node, default, Some(default), &own, budget);
        found.iter_mut().for_each(|error| error.only_warns = false);
        if found.is_empty() {
            found = evaluate(checks, node, default, None, &own, budget);
        }
        errors.extend(found);
    }
    let properties = path.child("properties");
    for (name, checks) in &checks.properties {
        let Some(property) = node.properties.get(name) else { continue };
        let is_metadata = is_metadata || (node.embedded && name == "metadata");
        defaults(checks, property, is_metadata, &properties.key(name), budget, errors);
    }
    if let (Some(checks), Additional::Schema(inner)) = (&checks.additional, &node.additional) {
        defaults(checks, inner, is_metadata, &path.child("additionalProperties"), budget, errors);
    }
    if let (Some(checks), Some(inner)) = (&checks.items, &node.items) {
        defaults(checks, inner, is_metadata, &path.child("items"), budget, errors);
    }
}

/// What the levels above say about a level.
#[derive(Clone, Copy)]
struct Around<'p> {
    /// How many such values an object has at most, if there is a limit.
    most: Option<u64>,
    /// The list above whose items cannot be told from each other after a change.
    uncorrelatable: Option<&'p Path<'p>>,
}

#[derive(Default)]
struct Survey {
    errors: Vec<Error>,
    total: u64,
    /// The dearest rules, dearest first.
    dearest: Vec<(u64, String)>,
}

impl Survey {
    /// What is below comes before the level itself.
    fn level(&mut self, checks: &Checks, node: &Node, around: Around<'_>, path: &Path<'_>) {
        let below = |factor: Option<u64>| match (around.most, factor) {
            (Some(most), Some(factor)) => Some(most.saturating_mul(factor)),
            _ => None,
        };
        let limits = node.limits.as_deref();
        if let (Some(inner), Additional::Schema(schema)) = (&checks.additional, &node.additional) {
            let most = below(limits.and_then(|limits| limits.max_properties));
            self.level(inner, schema, Around { most, ..around }, &path.child("additionalProperties"));
        }
        let properties = path.child("properties");
        for (name, inner) in &checks.properties {
            let Some(schema) = node.properties.get(name) else { continue };
            self.level(inner, schema, Around { most: below(Some(1)), ..around }, &properties.key(name));
        }
        if let (Some(inner), Some(schema)) = (&checks.items, &node.items) {
            let is_map = matches!(node.list, List::Map(_));
            let uncorrelatable =
                if is_map { around.uncorrelatable } else { around.uncorrelatable.or(Some(path)) };
            let most = below(limits.and_then(|limits| limits.max_items));
            self.level(inner, schema, Around { most, uncorrelatable }, &path.child("items"));
        }
        let own = path.child("x-kubernetes-validations");
        if checks.rules.is_empty() {
            return;
        }
        let Some(shape) = checks.shape.as_deref() else {
            let why = "internal error: failed to retrieve type information for x-kubernetes-validations";
            self.errors.push(Error::internal(own, why));
            return;
        };
        for (i, rule) in checks.rules.iter().enumerate() {
            self.rule(rule, node, shape, around, &own.index(i));
        }
    }

    fn rule(&mut self, rule: &Rule, node: &Node, shape: &Shape, around: Around<'_>, path: &Path<'_>) {
        let text = |key: &str| rule.source.get(key).and_then(Value::as_str).unwrap_or_default();
        if path::normalized(text("fieldPath"), node).is_none() {
            let own = path.child("fieldPath");
            self.errors.push(Error::invalid(own, text("fieldPath"), "must be a valid path"));
            return;
        }
        let invalid = |part: &str, why: &str| {
            Error::invalid(path.child(part), rule.source.clone(), why).shown_as(shown(&rule.source))
        };
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                self.errors.push(invalid("rule", why));
                return;
            }
        };
        let names = [("self", shape), ("oldSelf", shape)];
        // Without a limit there are as many values as fit into a request.
        let times = around.most.unwrap_or(MAX_REQUEST / (shape.min_size + 1));
        let cost = cost::estimate(&program.expr, &names).saturating_mul(times);
        self.cost("estimated rule cost", cost, &path.child("rule"));
        match &rule.message_program {
            None => {}
            Some(Err(why)) => self.errors.push(invalid("messageExpression", why)),
            Some(Ok(message)) => {
                let cost = cost::estimate(&message.expr, &names);
                self.cost("estimated messageExpression cost", cost, &path.child("messageExpression"));
            }
        }
        if rule.uses_old {
            if let Some(list) = around.uncorrelatable {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors.push(Error::invalid(path.child("rule"), text("rule"), why));
            }
        } else if let Some(optional) = rule.source.get("optionalOldSelf").filter(|value| !value.is_null()) {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(Error::invalid(path.child("optionalOldSelf"), optional.clone(), why));
        }
    }

    fn cost(&mut self, what: &str, cost: u64, path: &Path<'_>) {
        if cost > EXPRESSION_LIMIT {
            self.errors.push(Error::forbidden(path, too_dear(what, cost, EXPRESSION_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.dearest.push((cost, path.to_string()));
        }
    }

    fn finish(mut self, base: &Path<'_>) -> Vec<Error> {
        if self.total > SCHEMA_LIMIT {
            self.dearest.sort_by(|(one, _), (other, _)| other.cmp(one));
            let why =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.extend(self.dearest.iter().take(4).map(|(_, path)| Error::forbidden(path, why)));
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            self.errors.push(Error::forbidden(base, too_dear(what, self.total, SCHEMA_LIMIT)));
        }
        self.errors
    }
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as the real server prints it: all its fields, under their names in the program.
fn shown(rule: &Value) -> String {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    let or_null = |key: &str| rule.get(key).cloned().unwrap_or_default();
    let fields = [
        ("Rule", json!(text("rule"))),
        ("Message", json!(text("message"))),
        ("MessageExpression", json!(text("messageExpression"))),
        ("Reason", or_null("reason")),
        ("FieldPath", json!(text("fieldPath"))),
        ("OptionalOldSelf", or_null("optionalOldSelf")),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":{}", crate::field::go_json(value))).collect();
    format!("{{{}}}", fields.join(","))
}
