//! A simulated node as its container runtime shows it: containers, images, commands and connections.
//!
//! [`Machine`] is what a program on the node talks to. It shows what the simulated kubelet runs. A container that is told to
//! stop here ends as its [image](crate::image) says, and the kubelet starts it again as its restart policy says. Calls take
//! their time, and all of them fail while the runtime or the node is down. What was asked can be read afterwards.
//!
//! | asked | answer |
//! | --- | --- |
//! | a command | what was declared for it; else a little shell with loops, variables and some dozens of programs does what it says on a few small files; a program that is not known ends well and says nothing, unless its image is one that everybody knows |
//! | a connection | to a port that a running container of the pod lists; others are refused |
//! | a page | 200 and `ok` while the container is ready, else 503; a path that ends in a number such as `/500` has that status |
//! | a pull | takes the time and ends as the image says, and asks for an account where one is declared |

mod files;
mod log;
mod network;
mod pages;
pub(crate) mod shell;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use kruise_apiserver::clock::Clock;
use kruise_apiserver::store::Store;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use files::Files;
use log::Log;
use network::Names;
pub(crate) use shell::Did as Performed;
use shell::{Around, Process};

use crate::image::{Images, normalized};
use crate::kubelet::{Command, Control, Question};
use crate::time::until;

/// How long a pull takes if its image does not say.
const PULL: Duration = Duration::from_millis(1500);
/// Containers of one node whose files are remembered.
const MOST_CONTAINERS: usize = 256;
/// How many deeds are remembered.
const MEMORY: usize = 2000;

/// Why a runtime does not do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nobody is there.
    #[error(
        "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing\""
    )]
    Gone,
    /// It took longer than it may.
    #[error("rpc error: code = DeadlineExceeded desc = context deadline exceeded")]
    Late,
    /// There is no such container or image.
    #[error("{0}")]
    Missing(String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was made and not started yet.
    Created,
    /// It runs.
    Running,
    /// It has ended.
    Exited,
}

/// The newest instance of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// The id, without the name of the runtime.
    pub id: String,
    /// The namespace of its pod.
    pub namespace: String,
    /// The name of its pod.
    pub pod: String,
    /// The uid of its pod.
    pub pod_uid: String,
    /// The name that the pod gives it.
    pub name: String,
    /// The image that it was made of.
    pub image: String,
    /// What it does.
    pub state: State,
    /// How often it was restarted before.
    pub restarts: u32,
    /// When it was made, on the clock of the node.
    pub created: Timestamp,
    /// When it was started, on the clock of the node.
    pub started: Option<Timestamp>,
    /// Whether the kubelet finds it ready.
    pub is_ready: bool,
    /// The environment of its process.
    pub environment: BTreeMap<String, String>,
    /// The address of its pod; none in the network of the node.
    pub address: Option<String>,
    /// Its ports, as its pod lists them.
    pub ports: Value,
    /// Where its volumes are.
    pub mounts: Vec<String>,
    /// What runs before it ends, as its pod says.
    pub pre_stop: Option<Value>,
    /// The time that its pod gives it to end.
    pub grace: Duration,
}

/// An image of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The id.
    pub id: String,
    /// Its name with its tag, if it has one.
    pub tag: Option<String>,
    /// Its name with its digest.
    pub digest: String,
}

/// Something to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'a> {
    /// A program with its arguments.
    Words(&'a [String]),
    /// A line of a shell.
    Script(&'a str),
}

/// What a command said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// How long it takes.
    pub after: Duration,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Zero when all is well.
    pub code: i32,
}

/// Something that was asked of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A pull began.
    Pull {
        /// The reference.
        image: String,
        /// In whose name.
        user: Option<String>,
        /// What came along.
        annotations: BTreeMap<String, String>,
    },
    /// A container was told to stop.
    Stop {
        /// Its pod and its name, as `web/app`; empty for one that is not there.
        container: String,
        /// Its id.
        id: String,
        /// The time that it was given.
        grace: Duration,
    },
    /// A command was run.
    Command {
        /// The pod and the name of the container, as `web/app`.
        container: String,
        /// The command.
        words: Vec<String>,
    },
    /// A page was asked for.
    Page {
        /// The address and the port.
        authority: String,
        /// The path.
        path: String,
    },
}

/// The state of a runtime beside the containers, which the kubelet has.
#[derive(Debug)]
pub(crate) struct Station {
    is_down: watch::Sender<bool>,
    inner: Mutex<Inner>,
    pages: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    deeds: Vec<(Timestamp, Deed)>,
    said: BTreeMap<String, Said>,
    refuses_stops: BTreeMap<String, String>,
    /// By the number and the id of the container, so that the oldest ones are forgotten first.
    insides: BTreeMap<(u64, String), Inside>,
    numbers: BTreeMap<String, u64>,
    next_number: u64,
    pulling: usize,
    most_pulling: usize,
}

/// What is in a container.
#[derive(Debug, Default)]
struct Inside {
    files: Files,
    /// What its own process wrote, if that is known.
    log: Option<Log>,
}

impl Inner {
    /// What is in a container, which may be nothing yet.
    fn inside(&mut self, container: &Container) -> Option<&mut Inside> {
        let number = match self.numbers.get(&container.id) {
            Some(number) => *number,
            None => {
                while self.insides.len() >= MOST_CONTAINERS
                    && let Some(((_, id), _)) = self.insides.pop_first()
                {
                    self.numbers.remove(&id);
                }
                let address = container.address.as_deref().unwrap_or("127.0.0.1");
                let files = Files::of(&container.pod, address, &container.mounts);
                self.next_number += 1;
                self.numbers.insert(container.id.clone(), self.next_number);
                let place = (self.next_number, container.id.clone());
                self.insides.insert(place, Inside { files, log: None });
                self.next_number
            }
        };
        self.insides.get_mut(&(number, container.id.clone()))
    }

    fn forget(&mut self, id: &str) {
        if let Some(number) = self.numbers.remove(id) {
            self.insides.remove(&(number, id.to_owned()));
        }
    }
}

impl Default for Station {
    fn default() -> Self {
        Self { is_down: watch::Sender::new(false), inner: Mutex::default(), pages: Mutex::default() }
    }
}

/// The runtimes of all nodes that were ever asked for.
pub(crate) type Stations = Arc<Mutex<BTreeMap<String, Arc<Station>>>>;

/// All nodes, as programs on them see them. Clones are the same nodes.
#[derive(Clone, Debug)]
pub struct Machines {
    pub(crate) stations: Stations,
    pub(crate) control: Arc<Control>,
    pub(crate) images: Arc<RwLock<Images>>,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
}

impl Machines {
    /// The node of this name.
    pub fn of(&self, node: &str) -> Machine {
        let mut stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        let station = stations.entry(node.to_owned()).or_default().clone();
        let (control, images) = (self.control.clone(), self.images.clone());
        let store = self.store.clone();
        Machine { node: node.to_owned(), station, control, images, clock: self.clock, store }
    }

    /// Forgets what is in these containers of a node, if anything is known.
    pub(crate) fn forget<'i>(&self, node: &str, ids: impl Iterator<Item = &'i str>) {
        let stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(station) = stations.get(node).cloned() else { return };
        drop(stations);
        let mut inner = station.inner();
        ids.for_each(|id| inner.forget(id.trim_start_matches("containerd://")));
    }

    /// What the process of a container of a node wrote, if that is known: the number of the first line, and the lines.
    pub(crate) fn log(&self, node: &str, id: &str) -> Option<log::Lines> {
        let stations = self.stations.lock().unwrap_or_else(PoisonError::into_inner);
        let station = stations.get(node).cloned()?;
        drop(stations);
        let inner = station.inner();
        let id = id.trim_start_matches("containerd://");
        let number = *inner.numbers.get(id)?;
        let inside = inner.insides.get(&(number, id.to_owned()))?;
        inside.log.as_ref().map(Log::lines)
    }
}

/// A node as a program on it sees it. Clones are the same node.
#[derive(Clone, Debug)]
pub struct Machine {
    node: String,
    station: Arc<Station>,
    control: Arc<Control>,
    images: Arc<RwLock<Images>>,
    clock: Clock,
    store: Arc<Store>,
}

impl Machine {
    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The containers of the node, the newest instance of each.
    pub async fn containers(&self) -> Result<Vec<Container>, Problem> {
        self.ask(Question::Containers).await
    }

    /// Tells a container to stop and waits until it has. One that is not there has stopped.
    pub async fn stop(&self, id: &str, grace: Duration) -> Result<(), Problem> {
        let container = self.named(id).await?;
        let refused = self.inner().refuses_stops.get(&container).cloned();
        self.note(Deed::Stop { container, id: id.to_owned(), grace });
        if let Some(problem) = refused {
            return Err(Problem::Other(problem));
        }
        let id = id.to_owned();
        let due = self.ask(|answer| Question::Stop { id, grace, answer }).await?;
        let Some(due) = due else { return Ok(()) };
        self.pass_time(until(self.clock.now(), due) + Duration::from_millis(1)).await
    }

    /// The process of a container ends by itself, with a code.
    pub(crate) async fn leave(&self, id: &str, code: i32) -> Result<(), Problem> {
        let id = id.to_owned();
        self.ask(|answer| Question::Leave { id, code, answer }).await
    }

    /// Runs a command in a container.
    pub async fn run(&self, id: &str, words: &[String], most: Option<Duration>) -> Result<Said, Problem> {
        let all = self.containers().await?;
        let container = all.into_iter().find(|one| one.id == id && one.state == State::Running);
        let Some(container) = container else {
            let text = format!("rpc error: code = NotFound desc = container \"{id}\" is not running");
            return Err(Problem::Missing(text));
        };
        let name = format!("{}/{}", container.pod, container.name);
        self.note(Deed::Command { container: name, words: words.to_vec() });
        let said = self.perform(&container, Task::Words(words), Vec::new(), &mut "/".to_owned());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let said =
            Said { after: said.after, stdout: text(said.stdout), stderr: text(said.stderr), code: said.code };
        if let Some(most) = most.filter(|most| *most < said.after) {
            self.pass_time(most).await?;
            return Err(Problem::Late);
        }
        self.pass_time(said.after).await?;
        Ok(said)
    }

    /// Runs a command with what it reads, in a folder. It takes no time: the answer says how long it would.
    pub(crate) fn perform(
        &self,
        container: &Container,
        task: Task<'_>,
        input: Vec<u8>,
        folder: &mut String,
    ) -> Performed {
        let mut inner = self.inner();
        if let Task::Words(words) = task
            && let Some(said) = inner.said.get(&words.join(" ")).cloned()
        {
            let (stdout, stderr) = (said.stdout.into_bytes(), said.stderr.into_bytes());
            return Performed { stdout, stderr, code: said.code, after: said.after, ..Performed::default() };
        }
        let network = Names { store: &self.store, namespace: &container.namespace };
        let Some(inside) = inner.inside(container) else { return Performed::default() };
        let mut around = around(container, &network, self.clock.now(), &mut inside.files, input);
        match task {
            Task::Words(words) => shell::run(words, &mut around),
            Task::Script(text) => shell::script(text, folder, &mut around),
        }
    }

    /// Runs the process of a container until its next pause. What it writes is its log.
    pub(crate) fn step(&self, container: &Container, process: &mut Process, now: Timestamp) -> Performed {
        let mut inner = self.inner();
        let network = Names { store: &self.store, namespace: &container.namespace };
        let Some(inside) = inner.inside(container) else { return Performed::default() };
        let mut around = around(container, &network, now, &mut inside.files, Vec::new());
        let did = process.step(&mut around);
        let log = inside.log.get_or_insert_default();
        log.write(&did.stdout, now);
        log.write(&did.stderr, now);
        did
    }

    /// The images of the node.
    pub async fn images(&self) -> Result<Vec<Image>, Problem> {
        let names = self.ask(Question::Images).await?;
        let known = self.images.read().unwrap_or_else(PoisonError::into_inner);
        let image = |name: String| {
            let by_digest = name.contains('@');
            let digest = known.id(&name);
            let id = digest.split_once('@').map_or_else(String::new, |(_, id)| id.to_owned());
            Image { id, tag: Some(name).filter(|_| !by_digest), digest }
        };
        Ok(names.into_iter().map(image).collect())
    }

    /// Pulls an image and gives its id. Who stops waiting stops the pull.
    pub async fn pull(
        &self,
        image: &str,
        account: Option<(String, String)>,
        annotations: BTreeMap<String, String>,
    ) -> Result<String, Problem> {
        if *self.station.is_down.borrow() {
            return Err(Problem::Gone);
        }
        let user = account.as_ref().map(|(user, _)| user.clone());
        self.note(Deed::Pull { image: image.to_owned(), user, annotations });
        let (behaviour, is_allowed) = {
            let known = self.images.read().unwrap_or_else(PoisonError::into_inner);
            (known.behaviour(image), known.admits(image, account.as_ref()))
        };
        let refusal = self.images.read().unwrap_or_else(PoisonError::into_inner).refusal(image);
        let _pulling = Pulling::begin(&self.station);
        self.pass_time(behaviour.pull.unwrap_or(PULL)).await?;
        let full = normalized(image);
        if !is_allowed {
            return Err(Problem::Other(format!(
                "rpc error: code = Unknown desc = failed to pull and unpack image \"{full}\": failed to resolve \
                 reference \"{full}\": unexpected status from HEAD request: 401 Unauthorized"
            )));
        }
        if let Some(refusal) = refusal {
            return Err(Problem::Missing(refusal));
        }
        let name = image.to_owned();
        self.ask(|answer| Question::Keep { image: name, answer }).await?;
        let images = self.images().await?;
        let found = images.into_iter().find(|one| one.tag.as_deref() == Some(&full) || one.digest == full);
        Ok(found.map(|one| one.id).unwrap_or_default())
    }

    /// Opens a connection to a port of a pod of this node, where a program of the pod answers with pages. Nothing if nobody
    /// listens there.
    pub async fn connect(&self, address: &str, port: u16) -> Result<Option<DuplexStream>, Problem> {
        let all = self.containers().await?;
        let listens = |one: &&Container| {
            one.state == State::Running
                && one.address.as_deref() == Some(address)
                && crate::kubelet::port_numbers(&one.ports).contains(&port)
        };
        let Some(container) = all.iter().find(listens) else { return Ok(None) };
        let authority = format!("{address}:{port}");
        Ok(Some(pages::serve(self.clone(), authority, container.is_ready)))
    }

    /// The runtime goes away: calls under way fail, and so do new ones. Containers and images stay.
    pub fn stop_runtime(&self) {
        self.station.is_down.send_replace(true);
    }

    /// The runtime is back.
    pub fn start_runtime(&self) {
        self.station.is_down.send_replace(false);
    }

    /// A container, as `web/app`, is not stopped from now on, with this problem.
    pub fn refuse_stops(&self, container: &str, problem: &str) {
        self.inner().refuses_stops.insert(container.to_owned(), problem.to_owned());
    }

    /// What a command says from now on, given by its words with blanks between them.
    pub fn declare_command(&self, words: &str, said: Said) {
        self.inner().said.insert(words.to_owned(), said);
    }

    /// What was asked so far, the last two thousand, with the time.
    pub fn deeds(&self) -> Vec<(Timestamp, Deed)> {
        self.inner().deeds.clone()
    }

    /// The most pulls that ever ran at once.
    pub fn most_pulling(&self) -> usize {
        self.inner().most_pulling
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.station.inner()
    }

    fn note(&self, deed: Deed) {
        let now = self.clock.now();
        let mut inner = self.inner();
        if inner.deeds.len() >= MEMORY {
            inner.deeds.remove(0);
        }
        inner.deeds.push((now, deed));
    }

    /// The pod and the name of a container.
    async fn named(&self, id: &str) -> Result<String, Problem> {
        let all = self.containers().await?;
        let found = all.iter().find(|one| one.id == id);
        Ok(found.map(|one| format!("{}/{}", one.pod, one.name)).unwrap_or_default())
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Result<T, Problem> {
        if *self.station.is_down.borrow() {
            return Err(Problem::Gone);
        }
        let (sender, receiver) = oneshot::channel();
        self.control.send(Command::Inside { node: self.node.clone(), question: question(sender) });
        receiver.await.map_err(|_| Problem::Gone)
    }

    /// How long something takes that takes this long in the cluster.
    pub(crate) fn real(&self, time: Duration) -> Duration {
        self.clock.real(time)
    }

    /// Lets time pass, unless the runtime goes away meanwhile.
    async fn pass_time(&self, time: Duration) -> Result<(), Problem> {
        let mut is_down = self.station.is_down.subscribe();
        tokio::select! {
            biased;
            _ = is_down.wait_for(|is_down| *is_down) => Err(Problem::Gone),
            () = tokio::time::sleep(self.clock.real(time)) => Ok(()),
        }
    }
}

/// The world of a command in a container.
fn around<'a>(
    container: &'a Container,
    network: &'a Names<'a>,
    now: Timestamp,
    files: &'a mut Files,
    input: Vec<u8>,
) -> Around<'a> {
    Around {
        environment: &container.environment,
        host: &container.pod,
        image: &container.image,
        network,
        now,
        files,
        input,
        inner_code: None,
        inner_errors: Vec::new(),
    }
}

impl Station {
    /// The programs that answer with pages.
    fn pages(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a pull for as long as somebody waits for it.
struct Pulling(Arc<Station>);

impl Pulling {
    fn begin(station: &Arc<Station>) -> Self {
        let mut inner = station.inner();
        inner.pulling += 1;
        inner.most_pulling = inner.most_pulling.max(inner.pulling);
        drop(inner);
        Self(station.clone())
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        self.0.inner().pulling -= 1;
    }
}
