//! Formulas for the resources of a sidecar: `max(cpu*50%, 50m)`.
//!
//! A value is a number or a quantity. Quantities are whole thousandths; numbers are exact fractions, so that `400m*0.29` is
//! `116m`. Since a variable is a quantity, and whatever is made of a quantity is one, numbers are known before the variable
//! is: [checking](Formula::check) a formula finds every mistake but a negative result.

mod number;
mod parse;

use kruise_api::kubernetes::quantity::Quantity;

use number::Number;
pub use parse::Formula;
use parse::{Function, Node, Operator};

/// The resource that a formula is about. Its name is the only variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Cores.
    Cpu,
    /// Bytes.
    Memory,
}

impl Resource {
    /// The name in resource lists and in formulas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// What is wrong with a formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("parse error: syntax error at line 1, col {column}")]
    Syntax {
        /// Just behind the part that does not fit.
        column: usize,
    },
    /// Something that starts as a number and is none.
    #[error("parse error: {text:?} is neither a number nor a quantity")]
    Literal {
        /// What was written.
        text: String,
    },
    /// A name that means nothing here.
    #[error("undefined variable: {0}")]
    Variable(String),
    /// A function that does not exist.
    #[error("unknown function: {0}")]
    Function(String),
    /// A function with more or fewer than two arguments.
    #[error("{name} function requires exactly 2 arguments, got {count}")]
    Arguments {
        /// The function.
        name: &'static str,
        /// How many were given.
        count: usize,
    },
    /// A product of quantities.
    #[error("multiplication of two quantities")]
    Product,
    /// Something divided by a quantity.
    #[error("division by quantity")]
    Divisor,
    /// Something divided by zero.
    #[error("division by zero")]
    Zero,
    /// Less than nothing.
    #[error("calculation result is negative: {0}")]
    Negative(String),
    /// Numbers that do not fit.
    #[error("calculation result is out of range")]
    Range,
}

impl Formula {
    /// Finds every mistake that does not depend on a pod.
    pub fn check(&self) -> Result<(), Error> {
        self.value(None).map(|_| ())
    }

    /// The result for a value of the variable, as it is written in resource lists.
    pub fn evaluate(&self, variable: &Quantity) -> Result<String, Error> {
        let amount = Amount {
            millis: Some(variable.millis()),
            // A quantity tells its form only by how it is written.
            is_binary: variable.to_string().ends_with('i'),
        };
        let result = match self.value(Some(amount))? {
            Term::Amount(amount) => amount,
            Term::Number(number) => Amount::of(&number)?,
        };
        let millis = result.millis.ok_or(Error::Range)?;
        if millis < 0 {
            return Err(Error::Negative(written(millis, result.is_binary)));
        }
        Ok(match self.resource {
            Resource::Cpu => written(millis, result.is_binary),
            // A byte cannot be divided; less than wanted would be wrong.
            Resource::Memory => written(up(millis), result.is_binary),
        })
    }

    fn value(&self, variable: Option<Amount>) -> Result<Term, Error> {
        let variable = variable.unwrap_or(Amount { millis: None, is_binary: false });
        evaluate(&self.root, variable)
    }
}

/// Thousandths as Kubernetes writes them.
fn written(millis: i128, is_binary: bool) -> String {
    let whole = millis % 1000 == 0;
    let value = millis / 1000;
    let text = match (whole, is_binary) {
        (true, true) if value % 1024 == 0 && value != 0 => format!("{}Ki", value / 1024),
        (true, true) => return value.to_string(),
        (true, false) => value.to_string(),
        (false, _) => format!("{millis}m"),
    };
    Quantity::parse(&text).map_or(text, |quantity| quantity.to_string())
}

/// Thousandths rounded up to whole units.
fn up(millis: i128) -> i128 {
    let rest = millis.rem_euclid(1000);
    if rest == 0 { millis } else { millis - rest + 1000 }
}

/// A value on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Term {
    Number(Number),
    Amount(Amount),
}

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    /// Not known while a formula is only checked.
    millis: Option<i128>,
    /// Whether it is written with `Ki`, `Mi` and so on.
    is_binary: bool,
}

impl Amount {
    fn of(number: &Number) -> Result<Self, Error> {
        Ok(Self { millis: Some(number.millis()?), is_binary: false })
    }

    /// One of both results; where both are known, `choose` works on them.
    fn with(self, other: Self, choose: fn(i128, i128) -> Option<i128>) -> Result<Self, Error> {
        let millis = match (self.millis, other.millis) {
            (Some(one), Some(two)) => Some(choose(one, two).ok_or(Error::Range)?),
            _ => None,
        };
        let form = if self.millis == Some(0) { other } else { self };
        Ok(Self { millis, is_binary: form.is_binary })
    }

    fn times(self, number: &Number) -> Result<Self, Error> {
        let millis = self.millis.map(|millis| number.times(millis)).transpose()?;
        Ok(Self { millis, ..self })
    }
}

fn evaluate(node: &Node, variable: Amount) -> Result<Term, Error> {
    let value = |node: &Node| evaluate(node, variable);
    match node {
        Node::Number(number) => Ok(Term::Number(*number)),
        Node::Quantity { millis, is_binary } => {
            Ok(Term::Amount(Amount { millis: Some(*millis), is_binary: *is_binary }))
        }
        Node::Variable => Ok(Term::Amount(variable)),
        Node::Negative(inner) => Ok(match value(inner)? {
            Term::Number(number) => Term::Number(number.negative()?),
            Term::Amount(amount) => Term::Amount(amount.times(&Number::MINUS_ONE)?),
        }),
        Node::Chain(first, rest) => rest
            .iter()
            .try_fold(value(first)?, |left, (operator, right)| operate(*operator, left, value(right)?)),
        Node::Call(function, left, right) => call(*function, value(left)?, value(right)?),
    }
}

fn operate(operator: Operator, left: Term, right: Term) -> Result<Term, Error> {
    Ok(match (operator, left, right) {
        (Operator::Plus, Term::Number(left), Term::Number(right)) => Term::Number(left.plus(&right)?),
        (Operator::Minus, Term::Number(left), Term::Number(right)) => {
            Term::Number(left.plus(&right.negative()?)?)
        }
        (Operator::Times, Term::Number(left), Term::Number(right)) => Term::Number(left.product(&right)?),
        (Operator::Over, Term::Number(left), Term::Number(right)) => {
            Term::Number(left.product(&right.inverse()?)?)
        }
        (Operator::Over, _, Term::Amount(_)) => return Err(Error::Divisor),
        (Operator::Times, Term::Amount(_), Term::Amount(_)) => return Err(Error::Product),
        (Operator::Times, Term::Amount(amount), Term::Number(number))
        | (Operator::Times, Term::Number(number), Term::Amount(amount)) => {
            Term::Amount(amount.times(&number)?)
        }
        (Operator::Over, Term::Amount(amount), Term::Number(number)) => {
            Term::Amount(amount.times(&number.inverse()?)?)
        }
        (Operator::Plus, left, right) => Term::Amount(both(left, right, i128::checked_add)?),
        (Operator::Minus, left, right) => Term::Amount(both(left, right, i128::checked_sub)?),
    })
}

fn call(function: Function, left: Term, right: Term) -> Result<Term, Error> {
    if let (Term::Number(left), Term::Number(right)) = (left, right) {
        let is_less = left.is_less(&right)?;
        let larger = if is_less { right } else { left };
        let smaller = if is_less { left } else { right };
        return Ok(Term::Number(match function {
            Function::Max => larger,
            Function::Min => smaller,
        }));
    }
    // The form of the result is the one of the value that was chosen, unless that was a plain number.
    let (one, two) = (amount(left)?, amount(right)?);
    let is_binary = [left, right].iter().any(|term| matches!(term, Term::Amount(amount) if amount.is_binary));
    let choose: fn(i128, i128) -> Option<i128> = match function {
        Function::Max => |one, two| Some(one.max(two)),
        Function::Min => |one, two| Some(one.min(two)),
    };
    let chosen = one.with(two, choose)?;
    let is_plain = |term: Term| matches!(term, Term::Number(_));
    let form = match (is_plain(left), is_plain(right)) {
        (false, false) if chosen.millis == one.millis => one.is_binary,
        (false, false) => two.is_binary,
        _ => is_binary,
    };
    Ok(Term::Amount(Amount { is_binary: form, ..chosen }))
}

fn amount(term: Term) -> Result<Amount, Error> {
    match term {
        Term::Amount(amount) => Ok(amount),
        Term::Number(number) => Amount::of(&number),
    }
}

fn both(left: Term, right: Term, choose: fn(i128, i128) -> Option<i128>) -> Result<Amount, Error> {
    let (one, two) = (amount(left)?, amount(right)?);
    let result = one.with(two, choose)?;
    Ok(match left {
        // A number takes the form of the quantity that it is added to.
        Term::Number(_) => Amount { is_binary: two.is_binary, ..result },
        Term::Amount(_) => result,
    })
}

#[cfg(test)]
mod tests;
