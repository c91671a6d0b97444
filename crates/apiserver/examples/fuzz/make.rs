//! Random input: objects that are almost right, and what people with bad intentions send.

use kruise_apiserver::random::Random;
use serde_json::{Map, Value, json};

/// Makes everything of one case.
pub(crate) struct Maker {
    random: Random,
}

/// Words with a meaning somewhere, so that random objects get far.
const KEYS: [&str; 40] = [
    "metadata",
    "name",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "spec",
    "status",
    "containers",
    "image",
    "env",
    "ports",
    "containerPort",
    "volumes",
    "tolerations",
    "replicas",
    "selector",
    "matchLabels",
    "template",
    "data",
    "$patch",
    "$setElementOrder/containers",
    "$setElementOrder/env",
    "$retainKeys",
    "$deleteFromPrimitiveList/finalizers",
    "strategy",
    "type",
    "kind",
    "apiVersion",
    "key",
    "value",
    "path",
    "op",
    "from",
    "",
    "a",
    "a/b",
    "~1",
    "resources",
];
const TEXTS: [&str; 24] = [
    "",
    "a",
    "delete",
    "merge",
    "replace",
    "add",
    "remove",
    "test",
    "copy",
    "move",
    "/metadata/labels",
    "/spec/containers/0",
    "/spec/containers/-",
    "/~0~1",
    "100m",
    "1e30",
    "0.0000001Gi",
    "\u{0}",
    "ä",
    "日本",
    "A_b",
    "kubernetes.io/x",
    "2026-01-01T00:00:00Z",
    "9999999999999999999999",
];

impl Maker {
    pub(crate) fn new(case: u64) -> Self {
        Self { random: Random::seeded(case) }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound.max(1) as u64)).unwrap_or_default()
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T], otherwise: T) -> T {
        let at = self.below(from.len());
        from.get(at).copied().unwrap_or(otherwise)
    }

    pub(crate) fn key(&mut self) -> String {
        self.pick(&KEYS, "").to_owned()
    }

    pub(crate) fn text(&mut self) -> String {
        match self.below(8) {
            0 => self.key(),
            1 => self.pick(&TEXTS, "").repeat(1 + self.below(300)),
            _ => self.pick(&TEXTS, "").to_owned(),
        }
    }

    pub(crate) fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(self.pick(&[0, 1, -1, 65536, i64::MAX, i64::MIN], 0)),
            3 => json!(self.pick(&[0.5, 1e300, -0.0, 1e-300, 80.0], 0.0)),
            4 => json!(u64::MAX),
            _ => Value::String(self.text()),
        }
    }

    /// Any JSON, not too big.
    pub(crate) fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 1 } else { 4 }) {
            1 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect::<Vec<_>>().into(),
            2 | 3 => {
                let members = (0..self.below(5)).map(|_| (self.key(), self.json(depth - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            _ => self.scalar(),
        }
    }

    /// A value that is nested as deep as somebody likes.
    pub(crate) fn deep(&mut self) -> Value {
        let mut value = self.scalar();
        for _ in 0..self.below(160) {
            value = if self.one_in(2) { json!([value]) } else { json!({"a": value}) };
        }
        value
    }

    /// Changes a value in a few places.
    pub(crate) fn mutate(&mut self, value: &mut Value) {
        for _ in 0..1 + self.below(4) {
            self.mutate_once(value, 8);
        }
    }

    fn mutate_once(&mut self, value: &mut Value, depth: usize) {
        let deeper = depth > 0 && !self.one_in(4);
        match value {
            Value::Object(members) if deeper && !members.is_empty() => {
                let at = self.below(members.len());
                if let Some((_, member)) = members.iter_mut().nth(at) {
                    self.mutate_once(member, depth - 1);
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                if let Some(item) = items.get_mut(at) {
                    self.mutate_once(item, depth - 1);
                }
            }
            Value::Object(members) => {
                let key = match members.keys().nth(self.below(members.len())).cloned() {
                    Some(key) if self.one_in(2) => key,
                    _ => self.key(),
                };
                if self.one_in(3) {
                    members.remove(&key);
                } else {
                    members.insert(key, self.json(3));
                }
            }
            Value::Array(items) => match self.below(4) {
                0 => drop(items.pop()),
                1 => items.extend(items.first().cloned()),
                _ => items.push(self.json(3)),
            },
            other => *other = if self.one_in(20) { self.deep() } else { self.json(2) },
        }
    }

    /// Changes bytes in a few places.
    pub(crate) fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.byte()),
                2 => {
                    let part: Vec<u8> = bytes.iter().skip(at).take(8).copied().collect();
                    drop(bytes.splice(at..at, part));
                }
                _ => {
                    let byte = self.byte();
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                }
            }
        }
    }

    fn byte(&mut self) -> u8 {
        let bytes = [0, 1, 0x0a, 0x12, 0x7f, 0x80, 0xff, b'"', b'{', b'[', b':', b'&', b'*'];
        if self.one_in(2) { self.pick(&bytes, 0) } else { u8::try_from(self.below(256)).unwrap_or_default() }
    }
}
