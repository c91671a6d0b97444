//! What a policy says about a request.

use serde_json::Value;

use crate::admission::conditions::Conditions;
use crate::admission::expressions::{Around, Expression, Input, Session};
use crate::cel::{Type, Value as Cel};

/// What a policy may cost for one request and one binding.
const BUDGET: u64 = 10_000_000;
/// How many variables a policy may have.
pub(crate) const MOST_VARIABLES: usize = 500;
/// The longest message that an expression may make.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// A policy, compiled.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Whether an expression that cannot be evaluated counts as one that holds.
    pub(crate) ignores_failure: bool,
    conditions: Conditions,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    /// Values for the log of audits. There is none here, but an expression that fails refuses.
    annotations: Vec<Expression>,
}

#[derive(Debug)]
struct Validation {
    source: String,
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Whether it is refused whatever the binding says.
    pub(crate) always: bool,
}

impl Refused {
    fn new(reason: &str, message: String) -> Self {
        Self { reason: reason.to_owned(), message, always: false }
    }
}

impl Policy {
    /// Compiles the spec of a policy. Expressions that do not compile fail when they are evaluated.
    pub(crate) fn compile(spec: &Value) -> Self {
        let params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let (variables, around) = variables(spec, params);
        Self {
            ignores_failure: text(spec, "failurePolicy") == "Ignore",
            conditions: Conditions::compile(list(spec, "matchConditions"), params),
            variables,
            validations: list(spec, "validations").iter().map(|one| validation(one, &around)).collect(),
            annotations: list(spec, "auditAnnotations")
                .iter()
                .map(|one| annotation(text(one, "valueExpression"), &around))
                .collect(),
        }
    }

    /// Everything that refuses the request.
    pub(crate) fn decide(&self, input: &Input<'_>) -> Vec<Refused> {
        let failed = |why: String| match self.ignores_failure {
            true => Vec::new(),
            false => vec![Refused::new("Invalid", why)],
        };
        if !self.conditions.is_empty() {
            match self.conditions.hold(input) {
                Ok(true) => {}
                Ok(false) => return Vec::new(),
                Err(why) => return failed(why),
            }
        }
        let mut session = Session::new(input, &self.variables, BUDGET);
        let mut outcomes = Vec::new();
        for validation in &self.validations {
            match session.value(&validation.expression) {
                Ok(outcome) => outcomes.push((validation, outcome)),
                Err(out) => return failed(out.to_string()),
            }
        }
        let mut refused = Vec::new();
        for (validation, outcome) in outcomes {
            match outcome {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => match validation.told(&mut session) {
                    Ok(message) => refused.push(Refused::new(&validation.reason, message)),
                    Err(why) => refused.extend(failed(why)),
                },
                Err(why) => refused.extend(failed(why)),
            }
        }
        let mut session = Session::new(input, &self.variables, BUDGET);
        for annotation in &self.annotations {
            match session.value(annotation) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => {
                    refused
                        .extend(failed(why).into_iter().map(|refused| Refused { always: true, ..refused }));
                }
                Err(out) => return failed(out.to_string()),
            }
        }
        refused
    }
}

impl Validation {
    /// The message for a request that breaks the rule.
    fn told(&self, session: &mut Session<'_>) -> Result<String, String> {
        if let Some(expression) = &self.message_expression {
            let outcome =
                session.value(expression).map_err(|out| format!("failed messageExpression: {out}"))?;
            if let Ok(Cel::Text(text)) = outcome {
                let text = text.trim();
                if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                    return Ok(text.to_owned());
                }
            }
        }
        Ok(match self.message.trim() {
            "" => format!("failed expression: {}", self.source.trim()),
            message => message.to_owned(),
        })
    }
}

/// The variables of a policy, and the names that come with them. Each knows those before it.
pub(crate) fn variables(spec: &Value, params: bool) -> (Vec<(String, Expression)>, Around) {
    let mut around = Around::new(params);
    let mut compiled: Vec<(String, Expression)> = Vec::new();
    for source in list(spec, "variables").iter().take(MOST_VARIABLES) {
        let expression = Expression::compile(text(source, "expression"), &around, &[]);
        compiled.push((text(source, "name").to_owned(), expression));
        around.with_variables(&compiled);
    }
    (compiled, around)
}

/// A rule of a policy.
pub(crate) fn rule(source: &str, around: &Around) -> Expression {
    Expression::compile(source, around, &[Type::Bool])
}

/// A message of a policy.
pub(crate) fn message(source: &str, around: &Around) -> Expression {
    Expression::compile(source, around, &[Type::Text])
}

/// A value for the log of audits.
pub(crate) fn annotation(source: &str, around: &Around) -> Expression {
    Expression::compile(source.trim(), around, &[Type::Text, Type::Null])
}

fn validation(source: &Value, around: &Around) -> Validation {
    let reason = text(source, "reason");
    let message_source = text(source, "messageExpression");
    Validation {
        source: text(source, "expression").to_owned(),
        expression: rule(text(source, "expression"), around),
        message: text(source, "message").to_owned(),
        message_expression: (!message_source.trim().is_empty()).then(|| message(message_source, around)),
        reason: if reason.is_empty() { "Invalid".to_owned() } else { reason.to_owned() },
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
