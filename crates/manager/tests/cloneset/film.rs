//! Everything that happened to the pods of a namespace, frame by frame, for invariants that must hold at every moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    runtime::watcher::{self, Event},
};
use tokio::{task::JoinSet, time::Instant};

use super::kit;

/// A recording that goes on until it is dropped.
pub(crate) struct Film {
    frames: Arc<Mutex<Vec<Frame>>>,
    _camera: JoinSet<()>,
}

/// All pods after one change.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) at: Instant,
    pub(crate) pods: BTreeMap<String, Pod>,
}

impl Frame {
    /// Pods that are not ending.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().filter(|pod| kit::is_active(pod))
    }

    /// Pods that are ready and not ending.
    pub(crate) fn ready(&self) -> usize {
        self.active().filter(|pod| kit::is_ready(pod)).count()
    }
}

impl Film {
    /// Begins with the pods there are.
    pub(crate) async fn of(pods: Api<Pod>) -> Self {
        let frames: Arc<Mutex<Vec<Frame>>> = Arc::default();
        let seen = frames.clone();
        let begun = Arc::new(tokio::sync::Notify::new());
        let told = begun.clone();
        let mut camera = JoinSet::new();
        camera.spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(pods, watcher::Config::default()));
            let mut now: BTreeMap<String, Pod> = BTreeMap::new();
            let mut listing = false;
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => {
                        listing = true;
                        now.clear();
                    }
                    Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                        now.insert(pod.metadata.name.clone().unwrap_or_default(), pod);
                    }
                    Ok(Event::Delete(pod)) => {
                        now.remove(pod.metadata.name.as_deref().unwrap_or_default());
                    }
                    Ok(Event::InitDone) => {
                        listing = false;
                        told.notify_one();
                    }
                    Err(_) => {}
                }
                if !listing {
                    seen.lock().unwrap().push(Frame { at: Instant::now(), pods: now.clone() });
                }
            }
        });
        begun.notified().await;
        Self { frames, _camera: camera }
    }

    /// All frames so far.
    pub(crate) fn frames(&self) -> Vec<Frame> {
        self.frames.lock().unwrap().clone()
    }

    /// The fewest ready pods of any moment.
    pub(crate) fn fewest_ready(&self) -> usize {
        self.frames().iter().map(Frame::ready).min().unwrap_or(0)
    }

    /// The fewest available pods of any moment.
    pub(crate) fn fewest_available(&self) -> usize {
        let available = |frame: &Frame| frame.pods.values().filter(|pod| kit::is_available(pod)).count();
        self.frames().iter().map(available).min().unwrap_or(0)
    }

    /// The most pods of any moment that were not ending.
    pub(crate) fn most_active(&self) -> usize {
        self.frames().iter().map(|frame| frame.active().count()).max().unwrap_or(0)
    }

    /// When each pod was first seen, in order.
    pub(crate) fn appearances(&self) -> Vec<(String, Instant)> {
        let mut known = BTreeSet::new();
        let mut found = Vec::new();
        for frame in self.frames() {
            for name in frame.pods.keys() {
                if known.insert(name.clone()) {
                    found.push((name.clone(), frame.at));
                }
            }
        }
        found
    }

    /// The order in which pods first showed something, such as a new image.
    pub(crate) fn order(&self, shows: impl Fn(&Pod) -> bool) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for frame in self.frames() {
            for (name, pod) in &frame.pods {
                if shows(pod) && !found.contains(name) {
                    found.push(name.clone());
                }
            }
        }
        found
    }
}
