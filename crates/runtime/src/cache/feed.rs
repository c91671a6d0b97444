//! How a cache is fed.

use std::{pin::pin, sync::PoisonError, time::Duration};

use futures::{
    StreamExt as _,
    future::{Either, select},
};
use kube::{
    Api,
    runtime::watcher::{self, Config, Event},
};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::{Cache, Change, News, Options, View, wire::Wire};

/// A year: as good as never, and no overflow.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

impl<V: View> Cache<V> {
    /// The same as [`Self::run`], from the first [`Self::want`] on: for kinds that few clusters need.
    pub async fn run_when_wanted(&self, client: kube::Client, options: Options) {
        self.inner.wanted.asked().await;
        self.run(client, options).await;
    }

    /// Lists and watches until it is dropped. Failures are retried for ever, with growing pauses.
    pub async fn run(&self, client: kube::Client, options: Options) {
        let Options { namespace, labels, fields, page_size, resync, backoff, max_backoff } = options;
        let resource = self.inner.resource;
        let api: Api<Wire<V>> = match &namespace {
            Some(namespace) if resource.namespaced => Api::namespaced_with(client, namespace, &resource),
            _ => Api::all_with(client, &resource),
        };
        let config = Config {
            label_selector: labels,
            field_selector: fields,
            page_size: Some(page_size),
            ..Config::default()
        };
        let mut pause = backoff;
        loop {
            let mut events = pin!(watcher::watcher(api.clone(), config.clone()));
            let resync_at = Instant::now() + resync.unwrap_or(NEVER);
            loop {
                let interruption = async {
                    let asked = pin!(self.inner.relist.notified());
                    select(asked, pin!(tokio::time::sleep_until(resync_at))).await;
                };
                let event = match select(events.next(), pin!(interruption)).await {
                    Either::Left((event, _)) => event,
                    Either::Right(_) if self.is_listing() => continue,
                    Either::Right(_) => break,
                };
                match event {
                    Some(Ok(event)) => {
                        if !matches!(event, Event::Init) {
                            pause = backoff;
                        }
                        let listed = matches!(event, Event::InitDone);
                        self.take(event, resync.is_some());
                        if listed && self.is_behind() {
                            break;
                        }
                    }
                    Some(Err(error)) => {
                        self.failed(&error);
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(max_backoff);
                        // kube would ask for the expired version again and again.
                        if is_expired_start(&error) {
                            break;
                        }
                    }
                    None => break,
                }
            }
        }
    }

    fn is_listing(&self) -> bool {
        self.read().is_listing()
    }

    /// Whether a list was asked for after the newest one began.
    fn is_behind(&self) -> bool {
        let store = self.read();
        store.asked > store.listed
    }

    fn failed(&self, error: &watcher::Error) {
        let resource = self.inner.resource.plural;
        if let Some(metrics) = &*self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner) {
            metrics.cache_errors.inc(&[resource]);
        }
        let expired = matches!(error, watcher::Error::WatchError(status) if status.code == 410);
        if expired {
            debug!(resource, %error, "watch expired");
        } else {
            warn!(resource, %error, "watch failed");
        }
    }

    fn take(&self, event: Event<Wire<V>>, resync: bool) {
        // The lock is held over both, so that changes are told in the order in which they can be read.
        let subscribers = self.inner.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listed = false;
        let changes: Vec<Change<V>> = match event {
            Event::Init => {
                self.write().begin_list();
                Vec::new()
            }
            Event::InitApply(wire) => {
                let key = wire.view.metadata().key();
                let change = self.write().apply(wire.view);
                // A resync tells of every object, also where nothing is new.
                let again = || {
                    let new = self.get(&key)?;
                    Some(Change { key, old: Some(new.clone()), new: Some(new), initial: true })
                };
                change
                    .or_else(|| if resync && self.is_synced() { again() } else { None })
                    .into_iter()
                    .collect()
            }
            Event::Apply(wire) => self.write().apply(wire.view).into_iter().collect(),
            Event::Delete(wire) => self.write().delete(&wire.view).into_iter().collect(),
            Event::InitDone => {
                listed = true;
                self.write().end_list()
            }
        };
        for change in &changes {
            subscribers.0.iter().for_each(|told| told(change));
            subscribers.1.iter().for_each(|told| told(News::Object(&change.key)));
        }
        if listed {
            subscribers.1.iter().for_each(|told| told(News::Listed));
            self.inner.synced.notify_waiters();
        }
        if listed || changes.iter().any(|change| change.old.is_none() || change.new.is_none()) {
            let metrics = self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(metrics) = &*metrics {
                metrics.cache_objects.set(&[self.inner.resource.plural], self.len() as f64);
            }
        }
    }
}

fn is_expired_start(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    status.code == 410
}
