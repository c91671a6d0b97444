//! Connections into pods: commands, terminals and ports.
//!
//! The server decides who may connect to what; a [`Connector`] (the simulated nodes) is at the other end, and whoever has the
//! sockets carries bytes between both. How that looks on the wire is not known here.

mod options;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use http::header::UPGRADE;
use http::request::Parts;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::access::Asked;
use crate::admission::{Attributes, Operation, User, Warnings};
use crate::rest::{Query, check_container};
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};
use crate::store::Record;

/// A command, or the wish to be connected to what runs already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The container.
    pub container: String,
    /// The command with its arguments; empty for what runs already.
    pub command: Vec<String>,
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client wants the output.
    pub stdout: bool,
    /// Whether the client wants the errors.
    pub stderr: bool,
    /// Whether a person sits at the other end.
    pub tty: bool,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To run a command.
    Exec(Run),
    /// To be connected to what runs.
    Attach(Run),
    /// To reach ports of the pod: those that were named, while most clients name them later.
    Forward(Vec<u16>),
}

/// A connection that may be made.
#[derive(Clone)]
pub struct Connection {
    /// The pod.
    pub pod: Arc<Record>,
    /// What is wanted.
    pub wish: Wish,
    /// The other end.
    pub end: Arc<dyn Connector>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("pod", &self.pod.name)
            .field("wish", &self.wish)
            .finish_non_exhaustive()
    }
}

/// What a command says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// On its standard output.
    Out(Bytes),
    /// On its standard error.
    Error(Bytes),
}

/// Bytes both ways.
pub trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// The other end of connections: the nodes. Errors are told to the client as they are.
pub trait Connector: Send + Sync {
    /// Runs a command until it ends with a code. The end of `input` is the end of what it reads.
    fn exec(
        &self,
        pod: Arc<Record>,
        run: Run,
        input: mpsc::Receiver<Bytes>,
        output: mpsc::Sender<Output>,
    ) -> BoxFuture<'static, Result<i32, String>>;

    /// Connects to what runs, until it ends.
    fn attach(
        &self,
        pod: Arc<Record>,
        run: Run,
        input: mpsc::Receiver<Bytes>,
        output: mpsc::Sender<Output>,
    ) -> BoxFuture<'static, Result<i32, String>>;

    /// Opens a port.
    fn port(&self, pod: Arc<Record>, port: u16) -> BoxFuture<'static, Result<Box<dyn Pipe>, String>>;
}

/// Whether a path is one of a connection into a pod.
pub fn is_connection(path: &str) -> bool {
    parts(path).is_some()
}

/// Namespace, pod and what is wanted.
fn parts(path: &str) -> Option<(&str, &str, &str)> {
    let mut words = path.strip_prefix("/api/v1/namespaces/")?.split('/');
    let (namespace, pods, name, wish) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let fits = pods == "pods" && matches!(wish, "exec" | "attach" | "portforward") && words.next().is_none();
    fits.then_some((namespace, name, wish))
}

impl ApiServer {
    /// Decides about a request for a connection: who asks, whether they may, and whether there is anything to connect to.
    pub async fn connect(&self, head: &mut Parts) -> Result<Connection, Status> {
        self.admit(head)?;
        let (namespace, name, word) = parts(head.uri.path()).ok_or_else(Status::resource_not_found)?;
        let query = Query::parse(head.uri.query());
        if query.has("dryRun") {
            return Err(Status::bad_request("dryRun is not supported"));
        }
        let mut options = options::of(word, &query)?;
        self.admit_connection(head, [namespace, name, word], &mut options).await?;
        self.check_connect(head)?;
        let pod = self.store().get("/pods", namespace, name);
        let pod = pod.ok_or_else(|| Status::not_found(GroupResource::new("", "pods"), name))?;
        let Some(end) = self.connector() else {
            return Err(Status::not_implemented(format_args!("pods/{word}")));
        };
        let mut wish = options::wish(word, &options);
        if let Wish::Exec(run) | Wish::Attach(run) = &mut wish {
            let object = pod.value();
            check_container(&object, &run.container)?;
            if run.container.is_empty() {
                let only = object.pointer("/spec/containers/0/name").and_then(Value::as_str);
                run.container = only.unwrap_or_default().to_owned();
            }
            if !run.stdin && !run.stdout && !run.stderr {
                let why = "you must specify at least 1 of stdin, stdout, stderr";
                return Err(Status::bad_request(why));
            }
        }
        if pod.field("spec.nodeName").is_empty() {
            return Err(Status::bad_request(format!("pod {name} does not have a host assigned")));
        }
        Ok(Connection { pod, wish, end })
    }

    /// Asks policies and webhooks, which may also change what is wanted. They are asked before anybody looks for the
    /// pod.
    async fn admit_connection(
        &self,
        head: &Parts,
        [namespace, name, word]: [&str; 3],
        options: &mut Value,
    ) -> Result<(), Status> {
        let Some(pods) = self.registry().find("", "v1", "pods") else { return Ok(()) };
        let hooks = self.admission(Operation::Connect, &pods, Some(word));
        let user = head.extensions.get::<User>().cloned().unwrap_or_default();
        let attributes = Attributes {
            server: self,
            operation: Operation::Connect,
            resource: &pods,
            subresource: Some(word),
            namespace,
            name,
            user: &user,
            dry_run: false,
            options: &Value::Null,
            old: None,
            // A connection has no answer that could carry them.
            warnings: &Warnings::default(),
        };
        for hook in &hooks {
            hook.mutate(&attributes, options).await?;
        }
        for hook in &hooks {
            hook.validate(&attributes, Some(options)).await?;
        }
        Ok(())
    }

    /// Refuses who may `get` but not `create`: a WebSocket begins with a GET, and changes as much as a POST does.
    fn check_connect(&self, head: &Parts) -> Result<(), Status> {
        let Some(user) = head.extensions.get::<User>() else { return Ok(()) };
        let decision = self.may(&Asked::of(&Method::POST, &head.uri).by(user));
        let (_, name, _) = parts(head.uri.path()).unwrap_or_default();
        match decision.allowed {
            true => Ok(()),
            false => Err(Status::forbidden(GroupResource::new("", "pods"), name, decision.reason)),
        }
    }

    /// The answer to a request for a connection by somebody who stays with HTTP, or that came to a server without
    /// anybody who can leave it.
    pub(crate) async fn refuse_plain(&self, head: &Parts) -> Status {
        let mut head = head.clone();
        let wish = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        match self.connect(&mut head).await {
            Ok(_) if head.headers.contains_key(UPGRADE) => {
                Status::not_implemented(format_args!("pods/{wish}"))
            }
            Ok(_) => Status::bad_request("Upgrade request required"),
            Err(status) => status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_by_their_path() {
        for wish in ["exec", "attach", "portforward"] {
            assert!(is_connection(&format!("/api/v1/namespaces/a/pods/b/{wish}")));
        }
        assert!(!is_connection("/api/v1/namespaces/a/pods/b/log"));
        assert!(!is_connection("/api/v1/namespaces/a/pods/b/exec/c"));
        assert!(!is_connection("/api/v1/namespaces/a/services/b/exec"));
    }
}
