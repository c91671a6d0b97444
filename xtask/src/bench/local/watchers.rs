//! Many watchers of the same objects: how long until all of them have heard of everything.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::Clock;
use super::http::Connection;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// Opens watches, changes an object so many times, and waits until every watch has told of the last change.
pub(super) fn measure(folder: &Path, watchers: usize, events: usize) -> Result<Duration> {
    let kubeconfig = folder.join("kubeconfig");
    let mut writer = Connection::open(&kubeconfig)?;
    writer.send("POST", PATH, Some(&json!({"metadata": {"name": "bench"}, "data": {"n": ""}})))?;
    let watches = (0..watchers).map(|_| Connection::open(&kubeconfig)?.watch(PATH));
    let watches = watches.collect::<Result<Vec<_>>>()?;
    let last = events.to_string();
    let last = last.as_str();
    let clock = Clock::new();
    thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for mut watch in watches {
            threads.push(scope.spawn(move || -> Result<()> {
                loop {
                    let event = watch.next()?;
                    if event.pointer("/object/data/n").and_then(Value::as_str) == Some(last) {
                        return Ok(());
                    }
                }
            }));
        }
        for number in 1..=events {
            let change = json!({"data": {"n": number.to_string()}});
            writer.send("PATCH", &format!("{PATH}/bench"), Some(&change))?;
        }
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a watcher panicked"))??;
        }
        Ok(())
    })?;
    Ok(clock.elapsed())
}
