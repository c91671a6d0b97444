//! A runtime in memory, in virtual time: containers that end when asked, images that take a while.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use jiff::Timestamp;
use tokio::time::sleep;

use super::{
    Answer, Container, Detail, Error, FileSystem, Image, Inspected, Kind, Output, Pull, Runtime, State,
    Version, keys,
};

/// What is there, what was asked, and how the runtime behaves.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub containers: Vec<Container>,
    pub started: BTreeMap<String, Timestamp>,
    pub environment: Option<BTreeMap<String, String>>,
    pub addresses: Vec<String>,
    pub images: Vec<Image>,
    /// What commands say, by their first word; unknown ones say nothing and end well.
    pub commands: BTreeMap<String, (Duration, Output)>,
    /// How long a pull takes.
    pub pull_time: Duration,
    /// How pulls fail, by what the reference contains.
    pub pull_errors: BTreeMap<String, String>,
    /// Who may pull, by what the reference contains.
    pub accounts: BTreeMap<String, String>,
    pub pulls: Vec<Pull>,
    pub pulling: usize,
    pub most_pulling: usize,
    pub stops: Vec<(String, u64)>,
    /// Commands that run now, and the most that ever did.
    pub commanding: usize,
    pub most_commanding: usize,
    pub stop_error: Option<String>,
    pub unreachable: bool,
    /// How many of the next pulls and commands meet a mistake of ours.
    pub panics: usize,
    pub lists: usize,
}

/// The runtime. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simulated(Arc<Mutex<World>>);

impl Simulated {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A container that runs.
    pub(crate) fn run(&self, pod_uid: &str, name: &str, id: &str, started: Timestamp) {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut world = self.world();
        let restarts = world
            .containers
            .iter()
            .filter(|c| c.name() == name && c.labels.get(keys::POD_UID).is_some_and(|uid| uid == pod_uid))
            .count();
        world.containers.push(Container {
            id: id.to_owned(),
            sandbox: format!("box-{pod_uid}"),
            state: State::Running,
            created_at: i64::try_from(started.as_nanosecond()).unwrap(),
            labels: [pair(keys::POD_UID, pod_uid), pair(keys::CONTAINER_NAME, name)].into(),
            annotations: [pair(keys::RESTART_COUNT, &restarts.to_string()), pair(keys::HASH, "8e45cfd0")]
                .into(),
        });
        world.started.insert(id.to_owned(), started);
    }

    /// A container ends.
    pub(crate) fn exit(&self, id: &str) {
        for container in &mut self.world().containers {
            if container.id == id {
                container.state = State::Exited;
            }
        }
    }

    /// Panics if that is wanted.
    fn stumble(&self) {
        let left = self.world().panics;
        if left > 0 {
            self.world().panics = left - 1;
            panic!("a mistake");
        }
    }

    fn reach(&self) -> Result<MutexGuard<'_, World>, Error> {
        let world = self.world();
        match world.unreachable {
            true => Err(Error::new(Kind::Unreachable, "rpc error: code = Unavailable desc = gone")),
            false => Ok(world),
        }
    }
}

/// Counts a pull for as long as somebody waits for it.
struct Pulling(Simulated);

impl Drop for Pulling {
    fn drop(&mut self) {
        self.0.world().pulling -= 1;
    }
}

/// Counts a command for as long as it runs.
struct Commanding(Simulated);

impl Drop for Commanding {
    fn drop(&mut self) {
        self.0.world().commanding -= 1;
    }
}

impl Runtime for Simulated {
    fn name(&self) -> &str {
        "containerd"
    }

    fn version(&self) -> Answer<'_, Version> {
        async { Ok(Version { name: "containerd".to_owned(), ..Version::default() }) }.boxed()
    }

    fn containers<'a>(&'a self, pod_uid: Option<&'a str>) -> Answer<'a, Vec<Container>> {
        async move {
            let mut world = self.reach()?;
            world.lists += 1;
            let is_wanted = |container: &&Container| {
                pod_uid.is_none_or(|uid| container.labels.get(keys::POD_UID).is_some_and(|own| own == uid))
            };
            Ok(world.containers.iter().filter(is_wanted).cloned().collect())
        }
        .boxed()
    }

    fn inspect<'a>(&'a self, id: &'a str, detail: Detail) -> Answer<'a, Option<Inspected>> {
        async move {
            let world = self.reach()?;
            let container = world.containers.iter().find(|container| container.id == id);
            Ok(container.map(|container| Inspected {
                state: container.state,
                started_at: world.started.get(id).copied(),
                environment: world.environment.clone().filter(|_| detail == Detail::Environment),
            }))
        }
        .boxed()
    }

    fn sandbox_addresses<'a>(&'a self, _id: &'a str) -> Answer<'a, Vec<String>> {
        async move { Ok(self.reach()?.addresses.clone()) }.boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Answer<'a, ()> {
        async move {
            let error = {
                let mut world = self.reach()?;
                world.stops.push((id.to_owned(), grace.as_secs()));
                world.stop_error.clone()
            };
            if let Some(error) = error {
                return Err(Error::new(Kind::Other, error));
            }
            sleep(Duration::from_millis(200)).await;
            self.exit(id);
            Ok(())
        }
        .boxed()
    }

    fn exec<'a>(
        &'a self,
        _id: &'a str,
        command: &'a [String],
        timeout: Option<Duration>,
    ) -> Answer<'a, Output> {
        async move {
            self.stumble();
            let word = command.first().cloned().unwrap_or_default();
            let (time, output) = {
                let mut world = self.reach()?;
                world.commanding += 1;
                world.most_commanding = world.most_commanding.max(world.commanding);
                world.commands.get(&word).cloned().unwrap_or_default()
            };
            let _commanding = Commanding(self.clone());
            if let Some(timeout) = timeout.filter(|timeout| *timeout < time) {
                sleep(timeout).await;
                return Err(Error::new(Kind::TimedOut, "rpc error: code = DeadlineExceeded desc = late"));
            }
            sleep(time).await;
            Ok(output)
        }
        .boxed()
    }

    fn images(&self) -> Answer<'_, Vec<Image>> {
        async move { Ok(self.reach()?.images.clone()) }.boxed()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Answer<'a, String> {
        async move {
            self.stumble();
            let time = {
                let mut world = self.reach()?;
                world.pulls.push(pull.clone());
                world.pulling += 1;
                world.most_pulling = world.most_pulling.max(world.pulling);
                world.pull_time
            };
            let _pulling = Pulling(self.clone());
            sleep(time).await;
            let mut world = self.reach()?;
            let hits = |map: &BTreeMap<String, String>| {
                map.iter().find(|(part, _)| pull.image.contains(part.as_str())).map(|(_, text)| text.clone())
            };
            if let Some(error) = hits(&world.pull_errors) {
                return Err(Error::new(Kind::Other, error));
            }
            let account = hits(&world.accounts);
            if account.is_some() && account != pull.auth.as_ref().map(|auth| auth.username.clone()) {
                return Err(Error::new(Kind::Other, "rpc error: code = Unknown desc = 401 Unauthorized"));
            }
            let id = format!("sha256:{:04x}", world.pulls.len());
            world.images.push(Image { id: id.clone(), tags: vec![pull.image.clone()], digests: Vec::new() });
            Ok(id)
        }
        .boxed()
    }

    fn image_file_systems(&self) -> Answer<'_, Vec<FileSystem>> {
        async move {
            drop(self.reach()?);
            Ok(vec![FileSystem { mountpoint: "/nowhere".to_owned(), used: 1 }])
        }
        .boxed()
    }
}
