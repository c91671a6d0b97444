//! The thread that writes: it takes all that came since it last looked, and makes it safe at once.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use kruise_apiserver::clock::Clock;
use kruise_apiserver::store::Record;
use redb::Database;
use tokio::sync::watch;

use super::{ABOUT, OBJECTS};

/// How many versions may be told to readers before they are safe. It bounds the memory of what waits for the disk,
/// and a restart goes on behind as many, so that no version is ever used twice.
pub(super) const MOST_UNSAFE: u64 = 100_000;

/// Table, namespace and name.
type Key = (Box<str>, Arc<str>, Arc<str>);

#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    safe: watch::Sender<Safe>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How far everything is safe, or why it is no longer.
#[derive(Clone, Debug)]
struct Safe {
    version: u64,
    failed: Option<String>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Rung when there is something to write, or when something became safe.
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The newest state of what changed; `None` when it is gone.
    changes: BTreeMap<Key, Option<Arc<Record>>>,
    version: u64,
    safe: u64,
    closing: bool,
    failed: bool,
    clock: Option<Clock>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Everything up to `version` is safe already.
    pub(super) fn start(database: Arc<Database>, version: u64) -> io::Result<Self> {
        let waiting = Waiting { version, safe: version, ..Waiting::default() };
        let shared = Arc::new(Shared { waiting: Mutex::new(waiting), bell: Condvar::new() });
        let (safe, _) = watch::channel(Safe { version, failed: None });
        let thread = {
            let (shared, safe) = (shared.clone(), safe.clone());
            thread::Builder::new().name("data".to_owned()).spawn(move || run(&database, &shared, &safe))?
        };
        Ok(Self { shared, safe, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn follow(&self, clock: Clock) {
        self.shared.lock().clock = Some(clock);
    }

    pub(super) fn note(&self, table: &str, changed: &Record, now: Option<Arc<Record>>) {
        let mut waiting = self.shared.lock();
        while changed.rv > waiting.safe.saturating_add(MOST_UNSAFE) && !waiting.failed && !waiting.closing {
            waiting = self.shared.wait(waiting);
        }
        if waiting.failed || waiting.closing {
            return;
        }
        waiting.changes.insert((table.into(), changed.namespace.clone(), changed.name.clone()), now);
        waiting.version = changed.rv;
        drop(waiting);
        self.shared.bell.notify_all();
    }

    pub(super) async fn safe(&self, version: u64) -> Result<(), String> {
        let mut safe = self.safe.subscribe();
        let reached = safe.wait_for(|safe| safe.failed.is_some() || safe.version >= version).await;
        match reached.map(|safe| safe.failed.clone()) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why),
            Err(_) => Err("the data folder is closed".to_owned()),
        }
    }

    pub(super) async fn failed(&self) -> String {
        let mut safe = self.safe.subscribe();
        let failed = safe.wait_for(|safe| safe.failed.is_some()).await;
        match failed.map(|safe| safe.failed.clone()) {
            Ok(why) => why.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn close(&self) {
        self.shared.lock().closing = true;
        self.shared.bell.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was told as a failure already.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn run(database: &Database, shared: &Shared, safe: &watch::Sender<Safe>) {
    loop {
        let mut waiting = shared.lock();
        while waiting.changes.is_empty() && !waiting.closing {
            waiting = shared.wait(waiting);
        }
        let changes = std::mem::take(&mut waiting.changes);
        let (version, clock) = (waiting.version, waiting.clock);
        drop(waiting);
        if changes.is_empty() {
            return;
        }
        let written = write(database, &changes, version, clock);
        drop(changes);
        let mut waiting = shared.lock();
        let news = match written {
            Ok(()) => {
                waiting.safe = version;
                Safe { version, failed: None }
            }
            Err(error) => {
                waiting.failed = true;
                waiting.changes.clear();
                Safe { version: 0, failed: Some(format!("cannot keep data: {error}")) }
            }
        };
        let ended = waiting.failed;
        drop(waiting);
        safe.send_replace(news);
        shared.bell.notify_all();
        if ended {
            return;
        }
    }
}

/// One transaction: all of it is on the disk when this returns, or nothing of it ever was.
fn write(
    database: &Database,
    changes: &BTreeMap<Key, Option<Arc<Record>>>,
    version: u64,
    clock: Option<Clock>,
) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut objects = write.open_table(OBJECTS)?;
        for ((table, namespace, name), record) in changes {
            let key = (&**table, &**namespace, &**name);
            match record {
                Some(record) => objects.insert(key, record.full().as_ref())?,
                None => objects.remove(key)?,
            };
        }
        let mut about = write.open_table(ABOUT)?;
        about.insert("version", version.to_string().as_str())?;
        if let Some(clock) = clock {
            about.insert("time", clock.now().to_string().as_str())?;
        }
    }
    write.commit()?;
    Ok(())
}
