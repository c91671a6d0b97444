//! A simulated machine as a container runtime.

use std::{collections::BTreeMap, io, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kruise_core::{canonical_json, hash};
use kruise_daemon::{
    cri::{
        self, Answer, Container, Detail, Error, FileSystem, Image, Inspected, Kind, Output, Pull, Runtime,
        State, Version, keys,
    },
    http_get::{Connection, Network},
};
use kruise_sim::{
    Machine,
    machine::{self, Problem},
};
use serde_json::json;

/// What ids of containers begin with on simulated nodes.
const NAME: &str = "containerd";

/// The runtime of a simulated node.
#[derive(Clone, Debug)]
pub struct Simulated(Machine);

impl Simulated {
    /// The runtime of this node.
    pub fn new(machine: Machine) -> Self {
        Self(machine)
    }

    async fn find(&self, id: &str) -> Result<Option<machine::Container>, Error> {
        let all = self.0.containers().await.map_err(failed)?;
        Ok(all.into_iter().find(|one| one.id == id))
    }
}

fn failed(problem: Problem) -> Error {
    let kind = match problem {
        Problem::Gone => Kind::Unreachable,
        Problem::Late => Kind::TimedOut,
        Problem::Missing(_) => Kind::NotFound,
        Problem::Other(_) => Kind::Other,
    };
    Error::new(kind, problem.to_string())
}

fn state(state: machine::State) -> State {
    match state {
        machine::State::Created => State::Created,
        machine::State::Running => State::Running,
        machine::State::Exited => State::Exited,
    }
}

/// The fingerprint that kubelets give a container since Kubernetes 1.31.
fn fingerprint(one: &machine::Container) -> String {
    let text = canonical_json::text(&json!({"image": one.image, "name": one.name}));
    format!("{:x}", hash::of_json(&text))
}

fn shown(one: machine::Container) -> Container {
    let mut annotations = BTreeMap::from([
        (keys::HASH.to_owned(), fingerprint(&one)),
        (keys::RESTART_COUNT.to_owned(), one.restarts.to_string()),
        (keys::TERMINATION_GRACE.to_owned(), one.grace.as_secs().to_string()),
    ]);
    if let Some(hook) = &one.pre_stop {
        annotations.insert(keys::PRE_STOP.to_owned(), hook.to_string());
    }
    if one.ports.is_array() {
        annotations.insert(keys::PORTS.to_owned(), one.ports.to_string());
    }
    Container {
        id: one.id,
        // A pod has one sandbox, so its uid will do for a name.
        sandbox: one.pod_uid.clone(),
        state: state(one.state),
        created_at: i64::try_from(one.created.as_nanosecond()).unwrap_or(i64::MAX),
        labels: BTreeMap::from([
            (keys::POD_UID.to_owned(), one.pod_uid),
            (keys::CONTAINER_NAME.to_owned(), one.name),
        ]),
        annotations,
    }
}

impl Runtime for Simulated {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> Answer<'_, Version> {
        async move {
            self.0.images().await.map_err(failed)?;
            Ok(Version { name: NAME.to_owned(), version: "simulated".to_owned(), api: "v1".to_owned() })
        }
        .boxed()
    }

    fn containers<'a>(&'a self, pod_uid: Option<&'a str>) -> Answer<'a, Vec<Container>> {
        async move {
            let all = self.0.containers().await.map_err(failed)?;
            Ok(all
                .into_iter()
                .filter(|one| pod_uid.is_none_or(|uid| one.pod_uid == uid))
                .map(shown)
                .collect())
        }
        .boxed()
    }

    fn inspect<'a>(&'a self, id: &'a str, detail: Detail) -> Answer<'a, Option<Inspected>> {
        async move {
            let found = self.find(id).await?;
            Ok(found.map(|one| Inspected {
                state: state(one.state),
                started_at: one.started,
                environment: Some(one.environment).filter(|_| detail == Detail::Environment),
            }))
        }
        .boxed()
    }

    fn sandbox_addresses<'a>(&'a self, id: &'a str) -> Answer<'a, Vec<String>> {
        async move {
            let all = self.0.containers().await.map_err(failed)?;
            Ok(all
                .into_iter()
                .find(|one| one.pod_uid == id)
                .and_then(|one| one.address)
                .into_iter()
                .collect())
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Answer<'a, ()> {
        async move { self.0.stop(id, grace).await.map_err(failed) }.boxed()
    }

    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Option<Duration>,
    ) -> Answer<'a, Output> {
        async move {
            let said = self.0.run(id, command, timeout).await.map_err(failed)?;
            Ok(Output {
                stdout: said.stdout.into_bytes(),
                stderr: said.stderr.into_bytes(),
                exit_code: said.code,
            })
        }
        .boxed()
    }

    fn images(&self) -> Answer<'_, Vec<Image>> {
        async move {
            let all = self.0.images().await.map_err(failed)?;
            Ok(all
                .into_iter()
                .map(|one| Image {
                    id: one.id,
                    tags: one.tag.into_iter().collect(),
                    digests: vec![one.digest],
                })
                .collect())
        }
        .boxed()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Answer<'a, String> {
        async move {
            let account = pull.auth.as_ref().map(|auth| (auth.username.clone(), auth.password.clone()));
            self.0.pull(&pull.image, account, pull.annotations.clone()).await.map_err(failed)
        }
        .boxed()
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn image_file_systems(&self) -> Answer<'_, Vec<FileSystem>> {
        async move {
            self.0.images().await.map_err(failed)?;
            Ok(Vec::new())
        }
        .boxed()
    }
}

/// Nobody leaves the simulated cluster: its addresses may be somebody's in the real world.
impl Network for Simulated {
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Connection>>> {
        async move {
            match self.0.connect(host, port).await {
                Ok(Some(stream)) => Ok(Box::new(stream) as Box<dyn Connection>),
                Ok(None) => Err(io::ErrorKind::ConnectionRefused.into()),
                Err(problem) => {
                    Err(io::Error::other(cri::Error::new(Kind::Unreachable, problem.to_string())))
                }
            }
        }
        .boxed()
    }
}
