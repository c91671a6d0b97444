//! Arithmetic and order.

use std::cmp::Ordering;

use super::super::eval::{Fault, Outcome};
use super::super::value::Value;

pub(super) fn call(name: &str, args: &[Value]) -> Option<Outcome> {
    match (name, args) {
        ("-_", [Value::Int(value)]) => Some(whole(value.checked_neg())),
        ("-_", [Value::Double(value)]) => Some(Ok(Value::Double(-value))),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [one, other]) => {
            // Not-a-number is neither less nor greater.
            let nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
            if nan(one) || nan(other) {
                return Some(Ok(Value::Bool(false)));
            }
            let order = one.compared(other)?;
            Some(Ok(Value::Bool(match name {
                "_<_" => order == Ordering::Less,
                "_<=_" => order != Ordering::Greater,
                "_>_" => order == Ordering::Greater,
                _ => order != Ordering::Less,
            })))
        }
        (operator, [Value::Int(a), Value::Int(b)]) => match operator {
            "_+_" => Some(whole(a.checked_add(*b))),
            "_-_" => Some(whole(a.checked_sub(*b))),
            "_*_" => Some(whole(a.checked_mul(*b))),
            "_/_" if *b == 0 => Some(Err(Fault::error("division by zero"))),
            "_/_" => Some(whole(a.checked_div(*b))),
            "_%_" if *b == 0 => Some(Err(Fault::error("modulus by zero"))),
            "_%_" => Some(whole(a.checked_rem(*b))),
            _ => None,
        },
        (operator, [Value::Uint(a), Value::Uint(b)]) => {
            let outcome = |value: Option<u64>| {
                value.map(Value::Uint).ok_or_else(|| Fault::error("unsigned integer overflow"))
            };
            match operator {
                "_+_" => Some(outcome(a.checked_add(*b))),
                "_-_" => Some(outcome(a.checked_sub(*b))),
                "_*_" => Some(outcome(a.checked_mul(*b))),
                "_/_" if *b == 0 => Some(Err(Fault::error("division by zero"))),
                "_/_" => Some(outcome(a.checked_div(*b))),
                "_%_" if *b == 0 => Some(Err(Fault::error("modulus by zero"))),
                "_%_" => Some(outcome(a.checked_rem(*b))),
                _ => None,
            }
        }
        (operator, [Value::Double(a), Value::Double(b)]) => {
            let value = match operator {
                "_+_" => a + b,
                "_-_" => a - b,
                "_*_" => a * b,
                "_/_" => a / b,
                _ => return None,
            };
            Some(Ok(Value::Double(value)))
        }
        _ => None,
    }
}

fn whole(value: Option<i64>) -> Outcome {
    value.map(Value::Int).ok_or_else(|| Fault::error("integer overflow"))
}
