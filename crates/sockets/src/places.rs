//! A fixed number of connections, and who loses a place when all are taken.
//!
//! A new connection always gets a place. When none is free, the connection that deserves its place least is closed: one
//! without a complete request before one with, one that never got an answer before one that did, and of equal ones the
//! one that did nothing for longest. So clients that hold connections open, send slowly or never read keep nobody out,
//! however many they are.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Places for connections. Clones share them.
#[derive(Clone, Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    taken: BTreeMap<u64, Entry>,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    worth: Worth,
    /// Requests that began and are not answered in full.
    open: usize,
    close: Arc<Notify>,
    is_closing: bool,
}

/// How much a connection deserves its place. The least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    /// Whether the client has shown a certificate that we trust.
    is_trusted: bool,
    /// Requests that were received in full and are worked on.
    complete: usize,
    was_answered: bool,
    last: Instant,
}

impl Places {
    /// So many.
    pub fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place. When all are taken, the connection that deserves its own least is asked to close, and its place is
    /// waited for.
    pub async fn take(&self) -> Place {
        let free = match self.free.clone().try_acquire_owned() {
            Ok(free) => Some(free),
            Err(_) => {
                self.close_one();
                // Only a closed semaphore fails, and this one is never closed.
                self.free.clone().acquire_owned().await.ok()
            }
        };
        let close = Arc::new(Notify::new());
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        let worth = Worth { is_trusted: false, complete: 0, was_answered: false, last: Instant::now() };
        state.taken.insert(id, Entry { worth, open: 0, close: close.clone(), is_closing: false });
        drop(state);
        Place { visitor: Visitor { id, places: self.clone() }, close, free }
    }

    fn close_one(&self) {
        let mut state = self.state();
        let open = state.taken.values_mut().filter(|entry| !entry.is_closing);
        if let Some(least) = open.min_by_key(|entry| entry.worth) {
            least.is_closing = true;
            least.close.notify_one();
            state.evicted += 1;
            // One line for each power of two: whoever floods a port must not flood the log.
            if state.evicted.is_power_of_two() {
                tracing::warn!(closed = state.evicted, "all connections are taken; closing the idlest ones");
            }
        }
    }
}

/// A taken place. It is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    visitor: Visitor,
    close: Arc<Notify>,
    #[expect(dead_code, reason = "held, not read")]
    free: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Waits until somebody else needs the place more. The connection must be closed then.
    pub async fn is_needed(&self) {
        self.close.notified().await;
    }

    /// Who has the place, to report what happens on the connection.
    pub fn visitor(&self) -> Visitor {
        self.visitor.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Visitor { id, places } = &self.visitor;
        places.state().taken.remove(id);
    }
}

/// Who has a place. Clones are the same.
#[derive(Clone, Debug)]
pub struct Visitor {
    id: u64,
    places: Places,
}

impl Visitor {
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.places.state().taken.get_mut(&self.id) {
            change(entry);
        }
    }

    /// The client has shown a certificate that we trust.
    pub fn trust(&self) {
        self.change(|entry| entry.worth.is_trusted = true);
    }

    /// A request begins. It ends when this is dropped.
    pub fn begin(&self) -> Request {
        self.change(|entry| {
            entry.open += 1;
            entry.worth.last = Instant::now();
        });
        Request(self.clone())
    }

    /// A request was received in full, and is worked on until this is dropped.
    pub fn work(&self) -> Work {
        self.change(|entry| entry.worth.complete += 1);
        Work(self.clone())
    }

    /// Waits until no request was under way for so long.
    pub async fn is_idle(&self, idle: Duration) {
        loop {
            let found = self.places.state().taken.get(&self.id).map(|entry| (entry.open, entry.worth.last));
            let Some((open, last)) = found else { return };
            let (now, until) = (Instant::now(), last + idle);
            if open == 0 && until <= now {
                return;
            }
            // A request that is under way is bounded by those who answer it.
            tokio::time::sleep_until(if open == 0 { until } else { now + idle }).await;
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Request(Visitor);

impl Request {
    /// It has an answer.
    pub fn answered(&self) {
        self.0.change(|entry| entry.worth.was_answered = true);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.change(|entry| {
            entry.open = entry.open.saturating_sub(1);
            entry.worth.last = Instant::now();
        });
    }
}

/// A request that was received in full.
#[derive(Debug)]
pub struct Work(Visitor);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.change(|entry| entry.worth.complete = entry.worth.complete.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// Which of these are asked to close.
    async fn closing(places: &[&Place]) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let mut closed = pin!(place.is_needed());
            let is_closing = poll_fn(|cx| Poll::Ready(closed.as_mut().poll(cx).is_ready())).await;
            found.extend(is_closing.then_some(index));
        }
        found
    }

    async fn pass() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    /// Somebody who wants a place although none is free.
    async fn knock(places: &Places) {
        let mut more = pin!(places.take());
        assert!(poll_fn(|cx| Poll::Ready(more.as_mut().poll(cx).is_pending())).await);
    }

    #[tokio::test(start_paused = true)]
    async fn of_equal_connections_the_idlest_is_closed_and_each_once() {
        let places = Places::new(2);
        let first = places.take().await;
        pass().await;
        let second = places.take().await;
        assert_eq!(closing(&[&first, &second]).await, [] as [usize; 0]);
        knock(&places).await;
        assert_eq!(closing(&[&first, &second]).await, [0]);
        knock(&places).await;
        assert_eq!(closing(&[&first, &second]).await, [1]);
        drop(first);
        places.take().await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_answered_stays_longer_than_who_only_sends() {
        let places = Places::new(3);
        let known = places.take().await;
        known.visitor().begin().answered();
        pass().await;
        let slow = places.take().await;
        let _sending = slow.visitor().begin();
        pass().await;
        let silent = places.take().await;
        let all = [&known, &slow, &silent];
        knock(&places).await;
        assert_eq!(closing(&all).await, [1], "a slow sender did nothing for longer than a new connection");
        knock(&places).await;
        assert_eq!(closing(&all).await, [2]);
        knock(&places).await;
        assert_eq!(closing(&all).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn complete_requests_and_certificates_protect_a_connection() {
        let places = Places::new(3);
        let trusted = places.take().await;
        trusted.visitor().trust();
        let working = places.take().await;
        let work = working.visitor().work();
        pass().await;
        let known = places.take().await;
        known.visitor().begin().answered();
        let all = [&trusted, &working, &known];
        knock(&places).await;
        assert_eq!(closing(&all).await, [2]);
        knock(&places).await;
        assert_eq!(closing(&all).await, [1]);
        drop(work);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_its_last_request() {
        let places = Places::new(1);
        let place = places.take().await;
        let visitor = place.visitor();
        let began = Instant::now();
        let request = visitor.begin();
        let idle = Duration::from_secs(90);
        let both = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(request);
        };
        tokio::join!(both, visitor.is_idle(idle));
        assert_eq!(began.elapsed(), Duration::from_secs(190));
    }
}
