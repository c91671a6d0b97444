//! The memory of the requests of one class: taken as bytes arrive, given back with the answer.
//!
//! What a client announces takes nothing. When there is no more, those who have been sending for a while and are slowest
//! lose what they have, and so do answers that nobody reads: clients which begin requests and do not end them take nothing
//! from others.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// What a request takes at least.
const LEAST: u64 = 16 << 10;

/// The memory of a class of requests. Clones share it.
#[derive(Clone)]
pub(super) struct Memory(Arc<Inner>);

struct Inner {
    all: u64,
    grace: Duration,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    used: u64,
    shares: BTreeMap<u64, Entry>,
}

struct Entry {
    bytes: u64,
    received: u64,
    /// Since when it is in its phase.
    since: Instant,
    phase: Phase,
    lost: Arc<Notify>,
}

enum Phase {
    /// Its body is on its way.
    Sending,
    /// It gives its memory back as soon as it hears that it has to.
    Lost,
    /// It is worked on, and keeps its memory.
    Working,
    /// Its answer is here until the client takes it. Nothing where others needed the memory.
    Answered(Option<Bytes>),
}

impl Entry {
    /// Bytes in a second; nothing where it keeps its memory.
    fn rate(&self, now: Instant, grace: Duration) -> Option<u64> {
        let millis = now.duration_since(self.since).as_millis();
        if millis < grace.as_millis() {
            return None;
        }
        match self.phase {
            Phase::Sending => {
                Some(u64::try_from(u128::from(self.received) * 1000 / millis.max(1)).unwrap_or(u64::MAX))
            }
            Phase::Answered(Some(_)) => Some(0),
            Phase::Lost | Phase::Working | Phase::Answered(None) => None,
        }
    }
}

/// Why there is no memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is more than there is in all.
    TooMuch,
    /// Others have it, and did not give it back in time.
    Busy,
}

impl Memory {
    pub(super) fn new(all: u64, grace: Duration) -> Self {
        Self(Arc::new(Inner { all, grace, state: Mutex::default(), freed: Notify::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins to send.
    pub(super) fn share(&self) -> Share {
        let lost = Arc::new(Notify::new());
        let since = Instant::now();
        let entry = Entry { bytes: 0, received: 0, since, phase: Phase::Sending, lost: lost.clone() };
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.shares.insert(id, entry);
        Share { memory: self.clone(), id, lost }
    }

    /// Takes what is missing to so many bytes, or makes others give theirs back.
    fn try_hold(&self, id: u64, bytes: u64) -> bool {
        let mut guard = self.state();
        let State { used, shares, .. } = &mut *guard;
        let Some(own) = shares.get_mut(&id) else { return false };
        let more = bytes.saturating_sub(own.bytes);
        if *used + more <= self.0.all {
            *used += more;
            own.bytes += more;
            return true;
        }
        let now = Instant::now();
        // What is on its way back is not asked for again.
        let is_lost = |share: &&Entry| matches!(share.phase, Phase::Lost);
        let mut coming: u64 = shares.values().filter(is_lost).map(|share| share.bytes).sum();
        while used.saturating_sub(coming) + more > self.0.all {
            let others = shares.iter_mut().filter(|(other, _)| **other != id);
            let slow = others.filter_map(|(_, share)| Some((share.rate(now, self.0.grace)?, share)));
            let Some((_, slowest)) = slow.min_by_key(|(rate, _)| *rate) else { break };
            if let Phase::Answered(answer) = &mut slowest.phase {
                *answer = None;
                *used = used.saturating_sub(std::mem::take(&mut slowest.bytes));
            } else {
                slowest.phase = Phase::Lost;
                slowest.lost.notify_one();
                coming += slowest.bytes;
            }
        }
        let has_space = *used + more <= self.0.all;
        if has_space {
            *used += more;
            if let Some(own) = shares.get_mut(&id) {
                own.bytes += more;
            }
        }
        has_space
    }
}

/// What one request has. It is given back when this is dropped.
pub(super) struct Share {
    memory: Memory,
    id: u64,
    lost: Arc<Notify>,
}

impl Share {
    /// Takes memory until it has so much in all.
    pub(super) async fn hold(&self, bytes: u64, turn: Duration) -> Result<(), Refused> {
        let Inner { all, grace, .. } = &*self.memory.0;
        let bytes = bytes.max(LEAST.min(*all));
        if bytes > *all {
            return Err(Refused::TooMuch);
        }
        let until = Instant::now() + turn;
        loop {
            let mut freed = pin!(self.memory.0.freed.notified());
            freed.as_mut().enable();
            if self.memory.try_hold(self.id, bytes) {
                return Ok(());
            }
            let now = Instant::now();
            if now >= until {
                return Err(Refused::Busy);
            }
            // Somebody may become slow meanwhile.
            let _ = timeout_at(until.min(now + *grace), freed).await;
        }
    }

    /// So many bytes of the body are here.
    pub(super) fn received(&self, bytes: u64) {
        if let Some(own) = self.memory.state().shares.get_mut(&self.id) {
            own.received = bytes;
        }
    }

    /// All of the body is here: nobody takes its memory any more.
    pub(super) fn complete(&self) {
        if let Some(own) = self.memory.state().shares.get_mut(&self.id) {
            own.phase = Phase::Working;
        }
    }

    /// It has an answer, and nothing else any more.
    pub(super) fn answer(&self, answer: Bytes) {
        let mut guard = self.memory.state();
        let State { used, shares, .. } = &mut *guard;
        if let Some(own) = shares.get_mut(&self.id) {
            let bytes = own.bytes.min(answer.len() as u64);
            *used = used.saturating_sub(own.bytes - bytes);
            own.bytes = bytes;
            own.since = Instant::now();
            own.phase = Phase::Answered(Some(answer));
        }
        drop(guard);
        self.memory.0.freed.notify_waiters();
    }

    /// Takes the answer to send it; nothing where others needed its memory.
    pub(super) fn take_answer(&self) -> Option<Bytes> {
        match &mut self.memory.state().shares.get_mut(&self.id)?.phase {
            Phase::Answered(answer) => answer.take(),
            _ => None,
        }
    }

    /// Waits until its memory is taken away.
    pub(super) async fn is_lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.memory.state();
        if let Some(own) = state.shares.remove(&self.id) {
            state.used = state.used.saturating_sub(own.bytes);
        }
        drop(state);
        self.memory.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 1 << 20;
    const GRACE: Duration = Duration::from_millis(250);
    const TURN: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_comes_back() {
        let memory = Memory::new(ALL, GRACE);
        let first = memory.share();
        first.hold(ALL, TURN).await.unwrap();
        first.complete();
        let second = memory.share();
        assert_eq!(second.hold(1, TURN).await, Err(Refused::Busy), "what works is not disturbed");
        assert_eq!(second.hold(ALL + 1, TURN).await, Err(Refused::TooMuch));
        let both = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        };
        let (held, ()) = tokio::join!(second.hold(ALL, TURN), both);
        assert_eq!(held, Ok(()));
        drop(second);
        assert_eq!(memory.state().used, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_sender_gives_way() {
        let memory = Memory::new(ALL, GRACE);
        let [fast, slow] = [memory.share(), memory.share()];
        for (share, received) in [(&fast, ALL / 2), (&slow, 10)] {
            share.hold(ALL / 2, TURN).await.unwrap();
            share.received(received);
        }
        let newcomer = memory.share();
        let began = Instant::now();
        let lost = async {
            tokio::select! {
                () = fast.is_lost() => panic!("the fast one keeps its memory"),
                () = slow.is_lost() => {}
            }
            drop(slow);
        };
        let (held, ()) = tokio::join!(newcomer.hold(ALL / 2, TURN), lost);
        assert_eq!(held, Ok(()));
        assert_eq!(began.elapsed(), GRACE, "whoever has just begun is no slow sender");
    }

    /// Clients that ask and never read the answer.
    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_takes_give_way() {
        let memory = Memory::new(ALL, GRACE);
        let answered: Vec<Share> = (0..4).map(|_| memory.share()).collect();
        for share in &answered {
            share.hold(ALL / 4, TURN).await.unwrap();
            share.complete();
        }
        let answer = Bytes::from(vec![0; 100_000]);
        answered.iter().for_each(|share| share.answer(answer.clone()));
        assert_eq!(memory.state().used, 400_000, "an answer is less than what it was made of");
        tokio::time::advance(GRACE).await;
        memory.share().hold(ALL - 300_000, TURN).await.unwrap();
        let left = answered.iter().filter(|share| share.take_answer().is_some()).count();
        assert_eq!(left, 3);
    }

    /// Many clients that begin and never end do not keep a small one waiting for longer than the grace of the last one.
    #[tokio::test(start_paused = true)]
    async fn those_who_never_end_keep_nobody_waiting() {
        let memory = Memory::new(ALL, GRACE);
        let senders: Vec<Share> = (0..ALL / LEAST).map(|_| memory.share()).collect();
        for sender in &senders {
            sender.hold(1, TURN).await.unwrap();
        }
        let waiting = async {
            let lost = senders.into_iter().map(|sender| {
                Box::pin(async move {
                    sender.is_lost().await;
                })
            });
            futures::future::select_all(lost).await;
        };
        let newcomer = memory.share();
        let began = Instant::now();
        let (held, ()) = tokio::join!(newcomer.hold(8 << 10, TURN), waiting);
        assert_eq!(held, Ok(()));
        assert!(began.elapsed() <= GRACE);
    }
}
