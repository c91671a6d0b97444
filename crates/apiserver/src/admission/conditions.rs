//! Match conditions: expressions that must all hold before a webhook or a policy is asked.

use serde_json::Value;

use super::expressions::{Around, Expression, Input, Session};
use crate::cel::{Type, Value as Cel};
use crate::field::{Error, Path};
use crate::selector::syntax;

/// What the conditions of one webhook or policy may cost for one request.
const BUDGET: u64 = 2_500_000;
/// How many there may be.
const MOST: usize = 64;

/// The conditions of a webhook or a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions(Vec<Expression>);

impl Conditions {
    /// Compiles the list `matchConditions`.
    pub(crate) fn compile(list: &[Value], params: bool) -> Self {
        let around = Around::new(params);
        Self(list.iter().map(|condition| compiled(condition, &around)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that does not makes up for errors of others.
    pub(crate) fn hold(&self, input: &Input<'_>) -> Result<bool, String> {
        let mut session = Session::new(input, &[], BUDGET);
        let mut errors: Vec<String> = Vec::new();
        for condition in &self.0 {
            match session.value(condition).map_err(|out| out.to_string())? {
                Ok(Cel::Bool(false)) => return Ok(false),
                Ok(_) => {}
                Err(why) if errors.contains(&why) => {}
                Err(why) => errors.push(why),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [only] => Err(only.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}

fn compiled(condition: &Value, around: &Around) -> Expression {
    let source = condition.get("expression").and_then(Value::as_str).unwrap_or_default();
    Expression::compile(source.trim(), around, &[Type::Bool])
}

/// What is wrong with a list of conditions.
pub(crate) fn errors(list: &[Value], params: bool, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let around = Around::new(params);
    if list.len() > MOST {
        errors.push(Error::too_many(path, list.len() as u64, MOST as u64));
    }
    let text = |condition: &Value, key: &str| {
        condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut seen = std::collections::BTreeSet::new();
    for (i, condition) in list.iter().enumerate() {
        let own = path.index(i);
        let expression = text(condition, "expression");
        if expression.trim().is_empty() {
            errors.push(Error::required(own.child("expression"), ""));
        } else if let Some(why) = compiled(condition, &around).error() {
            errors.push(Error::invalid(own.child("expression"), expression.trim(), why));
        }
        let name = text(condition, "name");
        if name.is_empty() {
            errors.push(Error::required(own.child("name"), ""));
            continue;
        }
        let faults = syntax::qualified_name(&name);
        errors.extend(faults.into_iter().map(|why| Error::invalid(own.child("name"), name.as_str(), why)));
        if seen.contains(&name) {
            errors.push(Error::duplicate(own.child("name"), name));
        } else {
            seen.insert(name);
        }
    }
    errors
}
