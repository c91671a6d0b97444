//! Which type an expression has, and what is wrong with it.

use super::Issue;
use super::ast::{Expr, Kind, Literal, Macro, Word};
use super::signatures;
use super::types::{Bindings, Type, joined};

/// The variables that an expression may read, and their types.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<(String, Type)>);

impl Names {
    /// With one more name, which hides an earlier one.
    pub(crate) fn add(&mut self, name: &str, of: Type) {
        self.0.push((name.to_owned(), of));
    }

    fn get(&self, name: &str) -> Option<&Type> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, of)| of)
    }
}

/// The type of an expression. What is wrong is told in the order of the text.
pub(super) fn check(expr: &Expr, names: &Names) -> Result<Type, Vec<Issue>> {
    let mut checker = Checker { names: names.clone(), issues: Vec::new() };
    let found = checker.type_of(expr);
    if checker.issues.is_empty() {
        return Ok(found);
    }
    checker.issues.sort_by_key(|issue| issue.at);
    Err(checker.issues)
}

/// Names of types that are values.
fn type_named(name: &str) -> Option<Type> {
    let found = match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Kind(Type::Dyn.into()),
        _ => return None,
    };
    Some(Type::Kind(found.into()))
}

struct Checker {
    names: Names,
    issues: Vec<Issue>,
}

impl Checker {
    fn issue(&mut self, at: usize, message: String) -> Type {
        self.issues.push(Issue::new(at, message));
        // Whatever stands on something wrong is not wrong itself.
        Type::Dyn
    }

    fn type_of(&mut self, expr: &Expr) -> Type {
        match &expr.kind {
            Kind::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool(_) => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Uint(_) => Type::Uint,
                Literal::Double(_) => Type::Double,
                Literal::Text(_) => Type::Text,
                Literal::Bytes(_) => Type::Bytes,
            },
            Kind::Ident(name) => match self.names.get(name).cloned().or_else(|| type_named(name)) {
                Some(found) => found,
                None => self.issue(expr.at, undeclared(name)),
            },
            Kind::Select { operand, field } => {
                let from = self.type_of(operand);
                self.field(expr.at, &from, field)
            }
            Kind::Has { operand, field } => {
                let from = self.type_of(operand);
                self.field(expr.at, &from, field);
                Type::Bool
            }
            Kind::Optional { operand, field } => {
                let from = self.type_of(operand);
                let found = self.field(expr.at, &from, field);
                match found {
                    Type::Optional(_) => found,
                    found => Type::optional(found),
                }
            }
            Kind::Call { function, target, args } => self.call(expr.at, function, target.as_deref(), args),
            Kind::List(items) => {
                let mut item = None;
                for (inner, optional) in items {
                    let found = self.type_of(inner);
                    let found = if *optional { unwrapped(&found) } else { found };
                    item = Some(self.member(inner.at, item, found));
                }
                Type::list(item.unwrap_or(Type::Dyn))
            }
            Kind::Map(entries) => {
                let (mut key, mut value) = (None, None);
                for (one_key, one_value, optional) in entries {
                    let found = self.type_of(one_key);
                    key = Some(self.member(one_key.at, key, found));
                    let found = self.type_of(one_value);
                    let found = if *optional { unwrapped(&found) } else { found };
                    value = Some(self.member(one_value.at, value, found));
                }
                // Nothing else can be a key. Types that grow on both sides would double with every step.
                let key = key.filter(|key| {
                    matches!(key, Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Text)
                });
                Type::map(key.unwrap_or(Type::Dyn), value.unwrap_or(Type::Dyn))
            }
            Kind::Macro(inner) => self.macro_type(expr.at, inner),
        }
    }

    /// The members of a literal have one type.
    fn member(&mut self, at: usize, known: Option<Type>, found: Type) -> Type {
        match known {
            None => found,
            Some(known) => match joined(&known, &found) {
                Some(both) => both,
                None => self.issue(at, format!("expected type '{known}' but found '{found}'")),
            },
        }
    }

    fn field(&mut self, at: usize, from: &Type, field: &str) -> Type {
        match from {
            Type::Dyn => Type::Dyn,
            Type::Optional(inner) => {
                let found = self.field(at, inner, field);
                Type::optional(found)
            }
            Type::Map(_, value) => value.as_ref().clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(found) => found.clone(),
                None => self.issue(at, format!("undefined field '{field}'")),
            },
            other => self.issue(at, format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, at: usize, function: &str, target: Option<&Expr>, args: &[Expr]) -> Type {
        if matches!(function, "_&&_" | "_||_") {
            let types: Vec<Type> = args.iter().map(|arg| self.type_of(arg)).collect();
            let wrong = types.iter().any(|of| !matches!(of, Type::Bool | Type::Dyn));
            if wrong {
                for (arg, of) in args.iter().zip(&types) {
                    if !matches!(of, Type::Bool | Type::Dyn) {
                        self.issue(arg.at, format!("expected type 'bool' but found '{of}'"));
                    }
                }
            }
            return Type::Bool;
        }
        if let Some((name, _)) = super::qualified(function, target)
            && self.names.get(name.split('.').next().unwrap_or_default()).is_none()
            && !signatures::of(&name).is_empty()
        {
            let types: Vec<Type> = args.iter().map(|arg| self.type_of(arg)).collect();
            return self.resolve(at, &name, &types, false);
        }
        let mut types: Vec<Type> = target.iter().map(|target| self.type_of(target)).collect();
        let asked = |checker: &mut Self, arg: &Expr| match &arg.kind {
            // What is put into a text may be of any type: this list alone may be mixed.
            Kind::List(items) if function == "format" => {
                items.iter().for_each(|(item, _)| drop(checker.type_of(item)));
                Type::list(Type::Dyn)
            }
            _ => checker.type_of(arg),
        };
        types.extend(args.iter().map(|arg| asked(self, arg)).collect::<Vec<_>>());
        if matches!(function, "_<_" | "_<=_" | "_>_" | "_>=_") {
            return self.comparison(at, function, &types);
        }
        self.resolve(at, function, &types, target.is_some())
    }

    /// Numbers of any kind compare; everything else only with its own kind.
    fn comparison(&mut self, at: usize, function: &str, types: &[Type]) -> Type {
        let number = |of: &Type| matches!(of, Type::Int | Type::Uint | Type::Double);
        let alike = match types {
            [Type::Dyn, _] | [_, Type::Dyn] => true,
            [one, other] if number(one) && number(other) => true,
            [one, other] => {
                one == other
                    && matches!(one, Type::Bool | Type::Text | Type::Bytes | Type::Timestamp | Type::Duration)
            }
            _ => false,
        };
        if alike { Type::Bool } else { self.no_overload(at, function, types, false) }
    }

    fn resolve(&mut self, at: usize, function: &str, types: &[Type], is_method: bool) -> Type {
        let known = signatures::of(function);
        let mut results: Vec<Type> = Vec::new();
        for signature in known.iter().filter(|known| known.is_method == is_method) {
            let mut bindings = Bindings::default();
            let fits = signature.args.len() == types.len()
                && signature.args.iter().zip(types).all(|(wanted, given)| bindings.accept(wanted, given));
            let result = bindings.fill(&signature.result);
            if fits && !results.contains(&result) {
                results.push(result);
            }
        }
        match results.as_slice() {
            [] if known.is_empty() => self.issue(at, undeclared(function)),
            [] => self.no_overload(at, function, types, is_method),
            [only] => only.clone(),
            _ => Type::Dyn,
        }
    }

    fn no_overload(&mut self, at: usize, function: &str, types: &[Type], is_method: bool) -> Type {
        let list = |types: &[Type]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let shown = match types.split_first() {
            Some((target, args)) if is_method => format!("{target}.({})", list(args)),
            _ => format!("({})", list(types)),
        };
        self.issue(at, format!("found no matching overload for '{function}' applied to '{shown}'"))
    }

    fn macro_type(&mut self, at: usize, inner: &Macro) -> Type {
        let Macro { word, range, names, filter, body } = inner;
        let over = self.type_of(range);
        let (first, second) = match (&over, word) {
            (Type::Dyn, _) => (Type::Dyn, Type::Dyn),
            (Type::Optional(inner), Word::OptMap | Word::OptFlatMap) => (inner.as_ref().clone(), Type::Dyn),
            (_, Word::OptMap | Word::OptFlatMap) => {
                let name = if *word == Word::OptMap { "optMap" } else { "optFlatMap" };
                return self.no_overload(at, name, std::slice::from_ref(&over), true);
            }
            (Type::List(item), _) if names.len() == 2 => (Type::Int, item.as_ref().clone()),
            (Type::List(item), _) => (item.as_ref().clone(), Type::Dyn),
            (Type::Map(key, value), _) => (key.as_ref().clone(), value.as_ref().clone()),
            (other, _) => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(range.at, why);
                (Type::Dyn, Type::Dyn)
            }
        };
        let outer = self.names.0.len();
        for (name, of) in names.iter().zip([first.clone(), second]) {
            self.names.add(name, of);
        }
        let conditions: Vec<&Expr> = match word {
            Word::All | Word::Exists | Word::ExistsOne | Word::Filter => vec![body],
            _ => filter.iter().collect(),
        };
        for condition in conditions {
            let found = self.type_of(condition);
            if !matches!(found, Type::Bool | Type::Dyn) {
                self.issue(condition.at, format!("expected type 'bool' but found '{found}'"));
            }
        }
        let result = match word {
            Word::All | Word::Exists | Word::ExistsOne => Type::Bool,
            Word::Filter => Type::list(first),
            Word::Map | Word::TransformList => Type::list(self.type_of(body)),
            Word::TransformMap => {
                let value = self.type_of(body);
                let key = match &over {
                    Type::Map(key, _) => key.as_ref().clone(),
                    _ => Type::Int,
                };
                Type::map(key, value)
            }
            Word::OptMap => Type::optional(self.type_of(body)),
            Word::OptFlatMap => self.type_of(body),
        };
        self.names.0.truncate(outer);
        result
    }
}

fn unwrapped(of: &Type) -> Type {
    match of {
        Type::Optional(inner) => inner.as_ref().clone(),
        other => other.clone(),
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}
