//! Lists and sets.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::eval::{Fault, Outcome, Run, no_overload};
use super::super::value::{List, Value};
use super::weight;

/// The longest list that `lists.range` makes.
const LONGEST_RANGE: i64 = 1_000_000;

pub(super) fn call(run: &mut Run<'_>, name: &str, args: &[Value]) -> Option<Outcome> {
    if let ("lists.range", [Value::Int(end)]) = (name, args) {
        let end = (*end).clamp(0, LONGEST_RANGE);
        return Some(
            run.spend(usize::try_from(end).unwrap_or(0))
                .map(|()| Value::list((0..end).map(Value::Int).collect())),
        );
    }
    let [Value::List(list), rest @ ..] = args else { return None };
    let items = &list.items;
    if let Err(fault) = run.spend(1 + items.len()) {
        return Some(Err(fault));
    }
    match (name, rest) {
        ("_+_", [Value::List(other)]) => {
            let each = if list.is_set { items.len() } else { 1 };
            let work = other.items.len().saturating_mul(each);
            Some(run.spend(work).map(|()| Value::List(Arc::new(added(list, other)))))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [Value::List(other)]) => {
            let (own, theirs) = (weight(run, &args_list(list)), weight(run, &args_list(other)));
            let work = (own / 10).max(items.len()).saturating_mul((theirs / 10).max(other.items.len()));
            if let Err(fault) = run.spend(work) {
                return Some(Err(fault));
            }
            let within = |part: &[Value], whole: &[Value]| part.iter().all(|item| whole.contains(item));
            Some(Ok(Value::Bool(match name {
                "sets.contains" => within(&other.items, items),
                "sets.equivalent" => within(&other.items, items) && within(items, &other.items),
                _ => items.iter().any(|item| other.items.contains(item)),
            })))
        }
        ("isSorted", []) => {
            let pairs = items.iter().zip(items.iter().skip(1));
            let sorted: Option<bool> = pairs
                .map(|(one, next)| one.compared(next))
                .try_fold(true, |sorted, order| order.map(|order| sorted && order != Ordering::Greater));
            Some(sorted.map(Value::Bool).ok_or_else(no_overload))
        }
        ("sum", []) => Some(sum(items)),
        ("min" | "max", []) => {
            let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
            let mut all = items.iter();
            let Some(first) = all.next() else {
                return Some(Err(Fault::error(format!("{name} called on empty list"))));
            };
            let best = all.try_fold(first, |best, item| {
                let order = item.compared(best)?;
                Some(if order == wanted { item } else { best })
            });
            Some(best.cloned().ok_or_else(no_overload))
        }
        ("indexOf" | "lastIndexOf", [wanted]) => {
            let each = weight(run, wanted) / 10;
            if let Err(fault) = run.spend(items.len().saturating_mul(each)) {
                return Some(Err(fault));
            }
            let found = match name {
                "indexOf" => items.iter().position(|item| item == wanted),
                _ => items.iter().rposition(|item| item == wanted),
            };
            Some(Ok(Value::Int(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))))
        }
        ("slice", [Value::Int(from), Value::Int(to)]) => {
            let range = usize::try_from(*from).ok().zip(usize::try_from(*to).ok());
            let part = range.and_then(|(from, to)| items.get(from..to));
            Some(part.map(|part| Value::list(part.to_vec())).ok_or_else(|| {
                Fault::error(format!("cannot slice({from}, {to}), list is length {}", items.len()))
            }))
        }
        ("distinct", []) => {
            let whole = (weight(run, &args_list(list)) / 10).max(items.len());
            if let Err(fault) = run.spend(items.len().saturating_mul(whole) / 2) {
                return Some(Err(fault));
            }
            let mut distinct: Vec<Value> = Vec::new();
            for item in items {
                if !distinct.contains(item) {
                    distinct.push(item.clone());
                }
            }
            Some(Ok(Value::list(distinct)))
        }
        ("reverse", []) => Some(Ok(Value::list(items.iter().rev().cloned().collect()))),
        ("sort", []) => {
            let work = weight(run, &args_list(list));
            if let Err(fault) = run.spend_on(work) {
                return Some(Err(fault));
            }
            let mut sorted = items.clone();
            sorted.sort_by(|one, other| one.compared(other).unwrap_or(Ordering::Equal));
            Some(Ok(Value::list(sorted)))
        }
        ("flatten", []) => Some(flatten(run, items, 1).map(Value::list)),
        ("flatten", [Value::Int(depth)]) => Some(flatten(run, items, (*depth).min(20)).map(Value::list)),
        ("first", []) => Some(Ok(Value::Optional(items.first().cloned().map(Arc::new)))),
        ("last", []) => Some(Ok(Value::Optional(items.last().cloned().map(Arc::new)))),
        _ => None,
    }
}

/// The list as it is, whether it is a set or not.
fn args_list(list: &Arc<List>) -> Value {
    Value::List(list.clone())
}

/// Both lists; a set takes only what it does not have.
fn added(one: &List, other: &List) -> List {
    let mut items = one.items.clone();
    for item in &other.items {
        if !(one.is_set && one.items.contains(item)) {
            items.push(item.clone());
        }
    }
    List { items, is_set: one.is_set }
}

fn sum(items: &[Value]) -> Outcome {
    let mut all = items.iter();
    // Of nothing, nobody knows what kind of zero it should be; whole numbers are what people sum.
    let Some(first) = all.next() else { return Ok(Value::Int(0)) };
    all.try_fold(first.clone(), |sum, item| match (sum, item) {
        (Value::Int(a), Value::Int(b)) => {
            a.checked_add(*b).map(Value::Int).ok_or_else(|| Fault::error("integer overflow"))
        }
        (Value::Uint(a), Value::Uint(b)) => {
            a.checked_add(*b).map(Value::Uint).ok_or_else(|| Fault::error("unsigned integer overflow"))
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or_else(|| Fault::error("duration overflow"))
        }
        _ => Err(no_overload()),
    })
}

fn flatten(run: &mut Run<'_>, items: &[Value], depth: i64) -> Outcome<Vec<Value>> {
    let mut flat = Vec::new();
    for item in items {
        run.spend(1)?;
        match item {
            Value::List(inner) if depth > 0 => flat.extend(flatten(run, &inner.items, depth - 1)?),
            other => flat.push(other.clone()),
        }
    }
    Ok(flat)
}
