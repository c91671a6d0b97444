//! Keys in the order in which they are handed out.

use std::collections::{BTreeMap, VecDeque};

use kruise_core::{object::ObjectKey, text::Text};

/// Keys that wait: namespaces take turns, and within one the first comes first.
#[derive(Debug, Default)]
pub(super) struct Lane {
    keys: BTreeMap<Text, VecDeque<ObjectKey>>,
    turns: VecDeque<Text>,
}

impl Lane {
    pub(super) fn push(&mut self, key: ObjectKey) {
        let keys = self.keys.entry(key.namespace.clone()).or_default();
        if keys.is_empty() {
            self.turns.push_back(key.namespace.clone());
        }
        keys.push_back(key);
    }

    pub(super) fn pop(&mut self) -> Option<ObjectKey> {
        let namespace = self.turns.pop_front()?;
        let keys = self.keys.get_mut(&namespace)?;
        let key = keys.pop_front();
        if keys.is_empty() {
            self.keys.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        key
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}
