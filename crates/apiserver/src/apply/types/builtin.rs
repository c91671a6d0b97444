//! The types of the built-in kinds: the shapes that the server stores objects in, and how their lists and objects merge.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kruise_api::kubernetes::shape;
use serde_json::Value;

use super::{Items, ListType, MapType, Scalar, Schema, Type, Typed};

/// What merges by key, as a set, or not at all: `type field=key,key:default`, where a type may be `atomic` itself. Lists
/// that are not named here are one piece, objects merge.
const RELATIONS: &str = include_str!("relations.txt");
/// Types that are stored without a shape.
const DEFINITIONS: &str = include_str!("definitions.txt");

/// The type of a kind. Kinds without one merge as anything does.
pub(super) fn of(group: &str, version: &str, kind: &str) -> Typed<'static> {
    let known = known();
    let name = match group {
        "apiextensions.k8s.io" => {
            Some("apiextensions.CustomResourceDefinition").filter(|name| name.ends_with(kind))
        }
        _ => shape::type_of(group, version, kind),
    };
    match name.and_then(|name| known.by_name.get(name)) {
        Some(id) => Typed { schema: &known.schema, id: *id },
        None => Typed::anything(),
    }
}

struct Known {
    schema: Schema,
    by_name: BTreeMap<&'static str, usize>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(read)
}

fn read() -> Known {
    let more = DEFINITIONS.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    let lines: Vec<(&'static str, &'static str)> = shape::types().chain(more).collect();
    let by_name: BTreeMap<&'static str, usize> =
        lines.iter().enumerate().map(|(id, (name, _))| (*name, id)).collect();
    let relations: BTreeMap<&str, &str> = RELATIONS.lines().filter_map(|line| line.split_once(' ')).collect();
    // Places for the named types first, so that they can name each other.
    let mut schema = Schema { types: lines.iter().map(|_| Type::Any).collect() };
    for (id, (name, members)) in lines.iter().enumerate() {
        let special = relations.get(name).copied().unwrap_or_default();
        let map = object(members, special, &by_name, &mut schema);
        if let Some(place) = schema.types.get_mut(id) {
            *place = Type::Map(map);
        }
    }
    // A reference to an object that others fill in bit by bit.
    let claim = lines.iter().find(|(name, _)| *name == "core.ObjectReference").map(|(_, members)| {
        let map = object(members, "", &by_name, &mut schema);
        schema.add(Type::Map(map))
    });
    if let (Some(claim), Some(volume)) = (claim, by_name.get("core.PersistentVolumeSpec"))
        && let Some(Type::Map(map)) = schema.types.get_mut(*volume)
    {
        map.fields.insert("claimRef".into(), claim);
    }
    Known { schema, by_name }
}

fn object(
    members: &str,
    special: &str,
    by_name: &BTreeMap<&'static str, usize>,
    schema: &mut Schema,
) -> MapType {
    let relation = |field: &str| {
        special
            .split(' ')
            .find_map(|word| word.split_once('=').filter(|(name, _)| *name == field).map(|(_, how)| how))
    };
    let mut fields = BTreeMap::new();
    for member in members.split_whitespace() {
        let Some((name, code)) = member.split_once(':') else { continue };
        let id = value(code.trim_end_matches('!'), relation(name).unwrap_or_default(), by_name, schema);
        fields.insert(Arc::from(name), id);
    }
    MapType { atomic: special.split(' ').any(|word| word == "atomic"), fields, rest: None }
}

fn value(code: &str, relation: &str, by_name: &BTreeMap<&'static str, usize>, schema: &mut Schema) -> usize {
    if let Some(inner) = code.strip_prefix('*') {
        return value(inner, relation, by_name, schema);
    }
    if let Some(inner) = code.strip_prefix("[]") {
        let item = value(inner, "", by_name, schema);
        return schema.add(Type::List(ListType { items: items(relation), item }));
    }
    if let Some(inner) = code.strip_prefix("{}") {
        let rest = Some(value(inner, "", by_name, schema));
        let atomic = relation == "atomic";
        return schema.add(Type::Map(MapType { atomic, rest, ..MapType::default() }));
    }
    let scalar = match code {
        "s" | "y" | "d" => Scalar::Text,
        "b" => Scalar::Bool,
        "i" | "l" | "f" => Scalar::Number,
        "q" | "t" | "m" | "x" => Scalar::Any,
        "j" => return schema.add(Type::Any),
        name => return by_name.get(name).copied().unwrap_or(usize::MAX),
    };
    schema.add(Type::Scalar(scalar))
}

fn items(relation: &str) -> Items {
    match relation {
        "" | "atomic" => Items::Atomic,
        "set" => Items::Set,
        keys => Items::Keyed(
            keys.split(',')
                .map(|key| match key.split_once(':') {
                    None => (Arc::from(key), None),
                    Some((key, default)) => {
                        let number = default.parse::<i64>().map(Value::from);
                        (Arc::from(key), Some(number.unwrap_or_else(|_| Value::from(default))))
                    }
                })
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_names_a_type_and_a_field() {
        let known = known();
        for line in RELATIONS.lines() {
            let (name, words) = line.split_once(' ').unwrap();
            let Some(Type::Map(map)) = known.by_name.get(name).and_then(|id| known.schema.types.get(*id))
            else {
                panic!("{name} is no type")
            };
            for word in words.split(' ').filter(|word| *word != "atomic") {
                let (field, _) = word.split_once('=').unwrap();
                assert!(map.fields.contains_key(field), "{name} has no {field}");
            }
        }
    }
}
