//! Follows every table of the store, also those of resources that appear later.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::select_all;

use crate::client::Local;
use crate::registry::Resource;
use crate::store::{Cursor, Event, EventKind, Record};

type Name = (Arc<str>, Arc<str>);

struct Followed {
    resource: Arc<Resource>,
    cursor: Cursor,
    /// What was told so far, so that a gap in the history can be told as changes.
    known: BTreeMap<Name, Arc<Record>>,
}

/// All tables that are followed.
pub(super) struct Sources {
    client: Local,
    edition: Option<u64>,
    version: u64,
    tables: BTreeMap<Arc<str>, Followed>,
}

impl Sources {
    pub(super) fn new(client: Local) -> Self {
        Self { client, edition: None, version: 0, tables: BTreeMap::new() }
    }

    /// Tells everything that happened since the last call. Returns whether resources came or went.
    pub(super) fn drain(&mut self, mut tell: impl FnMut(&Arc<Resource>, &Event)) -> bool {
        let changed = self.follow(&mut tell);
        let version = self.client.server().store().version();
        if version == self.version {
            return changed;
        }
        for followed in self.tables.values_mut() {
            loop {
                let events = match followed.cursor.take() {
                    Ok(events) => events,
                    Err(_) => {
                        relist(&self.client, followed, &mut tell);
                        break;
                    }
                };
                if events.is_empty() {
                    break;
                }
                for event in events {
                    let name = (event.new.namespace.clone(), event.new.name.clone());
                    match event.kind {
                        EventKind::Deleted => followed.known.remove(&name),
                        _ => followed.known.insert(name, event.new.clone()),
                    };
                    tell(&followed.resource, &event);
                }
            }
        }
        self.version = version;
        changed
    }

    /// Starts with new resources and stops with those that are no longer served.
    fn follow(&mut self, tell: &mut impl FnMut(&Arc<Resource>, &Event)) -> bool {
        let registry = self.client.server().registry();
        let edition = registry.edition();
        if self.edition == Some(edition) {
            return false;
        }
        self.edition = Some(edition);
        let served = tables(registry.all());
        self.tables.retain(|table, _| served.contains_key(table));
        for (table, resource) in served {
            if let Some(followed) = self.tables.get_mut(&table) {
                followed.resource = resource;
                continue;
            }
            let cursor = self.client.server().store().watch(&table, 0);
            let mut followed = Followed { resource, cursor, known: BTreeMap::new() };
            relist(&self.client, &mut followed, tell);
            self.tables.insert(table, followed);
        }
        true
    }

    /// The resource of each table, in the version that controllers use.
    pub(super) fn resources(&self) -> BTreeMap<Arc<str>, Arc<Resource>> {
        self.tables.iter().map(|(table, followed)| (table.clone(), followed.resource.clone())).collect()
    }

    /// Waits until something may have happened.
    pub(super) async fn wait(&mut self) {
        if self.tables.is_empty() {
            std::future::pending::<()>().await;
        }
        select_all(self.tables.values_mut().map(|followed| Box::pin(followed.cursor.wait()))).await;
    }
}

/// One resource for each table: of the group that owns the table, in the version that needs no conversion.
fn tables(all: Vec<Arc<Resource>>) -> BTreeMap<Arc<str>, Arc<Resource>> {
    let rank = |resource: &Resource| {
        let own = format!("{}/{}", resource.group, resource.plural) == *resource.table;
        (own, !resource.needs_conversion())
    };
    let mut served: BTreeMap<Arc<str>, Arc<Resource>> = BTreeMap::new();
    for resource in all.into_iter().filter(|resource| resource.verbs.contains(&"watch")) {
        let better = served.get(&resource.table).is_none_or(|known| rank(&resource) > rank(known));
        if better {
            served.insert(resource.table.clone(), resource);
        }
    }
    served
}

/// Compares a table with what was told, and tells the difference.
fn relist(client: &Local, followed: &mut Followed, tell: &mut impl FnMut(&Arc<Resource>, &Event)) {
    let store = client.server().store();
    let (version, records) = store.list(&followed.resource.table, None);
    followed.cursor = store.watch(&followed.resource.table, version);
    let mut before = std::mem::take(&mut followed.known);
    for record in records {
        let name = (record.namespace.clone(), record.name.clone());
        let old = before.remove(&name);
        followed.known.insert(name, record.clone());
        let kind = match &old {
            None => EventKind::Added,
            Some(old) if old.rv == record.rv => continue,
            Some(_) => EventKind::Modified,
        };
        tell(&followed.resource, &Event { kind, old, new: record });
    }
    for (_, gone) in before {
        tell(&followed.resource, &Event { kind: EventKind::Deleted, old: Some(gone.clone()), new: gone });
    }
}
