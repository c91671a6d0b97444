//! The expression language of Kubernetes (CEL): what rules, policies and match conditions are written in.
//!
//! An expression is read ([`parse`]), checked against the types of its variables ([`check`]), and evaluated
//! ([`eval`]) as often as needed, each time within a bound of work. Texts of errors are those of the real server.
//!
//! Why our own: the crates there are know no types before an expression runs, count no cost, and bring a parser
//! generator and a second library for time with them; a definition with a mistake in a rule must be refused when it is
//! written, and with the words that its author finds elsewhere.

pub(crate) mod ast;
mod check;
pub(crate) mod cost;
mod eval;
mod json;
mod lex;
mod library;
mod parse;
pub(crate) mod shape;
mod signatures;
mod types;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use ast::{Expr, Kind};
pub(crate) use check::Names;
pub(crate) use eval::{Fault, Variables};
pub(crate) use json::{to_dyn, to_typed};
pub(crate) use lex::RESERVED;
use regex::Regex;
pub(crate) use types::{Type, escaped};
pub(crate) use value::{Key, Value};

/// What one evaluation may cost.
pub(crate) const PER_CALL_LIMIT: u64 = 1_000_000;

/// How many patterns may stand in one expression.
const MOST_PATTERNS: usize = 100;

/// Compiled patterns by their text.
type Patterns = BTreeMap<Arc<str>, Regex>;

/// Something wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    at: usize,
    message: String,
}

impl Issue {
    fn new(at: usize, message: String) -> Self {
        Self { at, message }
    }
}

/// An expression that may be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) expr: Expr,
    pub(crate) result: Type,
    /// The patterns in its text, compiled.
    patterns: Arc<Patterns>,
}

impl Program {
    /// Reads and checks an expression. The text of the error has a line for each mistake and shows where it is.
    pub(crate) fn compile(text: &str, names: &Names) -> Result<Self, String> {
        let shown = |issues: Vec<Issue>| shown(text, &issues);
        let expr = parse::parse(text).map_err(shown)?;
        let result = check::check(&expr, names).map_err(shown)?;
        let mut patterns = Patterns::new();
        literals(&expr, &mut patterns).map_err(|issue| shown(vec![issue]))?;
        Ok(Self { expr, result, patterns: Arc::new(patterns) })
    }

    /// The value of the expression, and what it cost.
    pub(crate) fn evaluate(&self, variables: &Variables<'_>, limit: u64) -> (Result<Value, Fault>, u64) {
        eval::evaluate(&self.expr, &self.patterns, variables, limit)
    }

    /// How much deeper than what it reads its value can be nested.
    pub(crate) fn depth(&self) -> usize {
        self.expr.depth
    }
}

/// Patterns, times and durations that stand in the text itself are checked before anybody uses them.
fn literals(expr: &Expr, patterns: &mut Patterns) -> Result<(), Issue> {
    if let Kind::Call { function, args, .. } = &expr.kind {
        let text = |arg: Option<&Expr>| match arg {
            Some(Expr { at, kind: Kind::Literal(ast::Literal::Text(text)), .. }) => Some((*at, text.clone())),
            _ => None,
        };
        let pattern = match function.as_str() {
            "matches" => text(args.last()),
            "find" | "findAll" => text(args.first()),
            _ => None,
        };
        if let Some((at, text)) = pattern
            && !patterns.contains_key(&text)
        {
            match library::pattern(&text) {
                Ok(pattern) if patterns.len() < MOST_PATTERNS => drop(patterns.insert(text, pattern)),
                _ if function != "matches" => {}
                _ => return Err(Issue::new(at, "invalid matches argument".to_owned())),
            }
        }
        let good = match (function.as_str(), args.len(), text(args.last())) {
            ("duration", 1, Some((at, text))) => library::to_duration(&text).map(drop).ok_or(at),
            ("timestamp", 1, Some((at, text))) => library::to_timestamp(&text).map(drop).ok_or(at),
            _ => Ok(()),
        };
        good.map_err(|at| Issue::new(at, format!("invalid {function} argument")))?;
    }
    expr.children().into_iter().try_for_each(|child| literals(child, patterns))
}

/// The name of a function with a dot in it (`sets.contains`), and the word before the dot.
fn qualified(function: &str, target: Option<&Expr>) -> Option<(String, String)> {
    match target.map(|target| &target.kind) {
        Some(Kind::Ident(first)) => Some((format!("{first}.{function}"), first.clone())),
        _ => None,
    }
}

/// The messages with the lines they are about.
fn shown(text: &str, issues: &[Issue]) -> String {
    let all: Vec<String> = issues.iter().map(|issue| shown_one(text, issue)).collect();
    all.join("\n")
}

fn shown_one(text: &str, issue: &Issue) -> String {
    let before: String = text.chars().take(issue.at).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let source = text.split('\n').nth(line).unwrap_or_default().replace('\t', " ");
    let wide = |c: char| c.len_utf8() > 1;
    let mut mark: String =
        source.chars().take(column).map(|c| if wide(c) { '\u{ff0e}' } else { '.' }).collect();
    mark.push(if source.chars().nth(column).is_some_and(wide) { '\u{ff3e}' } else { '^' });
    format!("ERROR: <input>:{}:{}: {}\n | {source}\n | {mark}", line + 1, column + 1, issue.message)
}

#[cfg(test)]
mod tests;
