//! The ends of connections into pods: commands, terminals and ports of simulated containers.

mod keys;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use kruise_apiserver::connect::{Connector, Output, Pipe, Run};
use kruise_apiserver::server::{LogRequest, LogSource as _};
use kruise_apiserver::store::Record;
use tokio::sync::mpsc;

use self::keys::{END, INTERRUPT, Keys};
use crate::json::{list, text};
use crate::logs::Logs;
use crate::machine::{Container, Machine, Machines, State, Task, shell};

const PROMPT: &str = "/ # ";
/// The code of what a person ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Connects to the simulated nodes.
pub(crate) struct Connections {
    pub(crate) machines: Machines,
    pub(crate) logs: Logs,
}

impl Connector for Connections {
    fn exec(
        &self,
        pod: Arc<Record>,
        run: Run,
        input: mpsc::Receiver<Bytes>,
        output: mpsc::Sender<Output>,
    ) -> BoxFuture<'static, Result<i32, String>> {
        let machine = self.machines.of(pod.field("spec.nodeName"));
        Box::pin(async move {
            let container = running(&machine, &pod, &run.container).await?.ok_or_else(|| {
                format!("unable to upgrade connection: container not found (\"{}\")", run.container)
            })?;
            let mut keys = Keys::new(input);
            if shell::is_shell(&run.command) && run.stdin {
                return Ok(Terminal { machine, container, run, output }.talk(keys).await);
            }
            let mut read = Vec::new();
            if run.stdin && shell::reads_input(&run.command) {
                match keys.all(run.tty).await? {
                    Some(all) => read = all,
                    None => return Ok(INTERRUPTED),
                }
            }
            // Nobody is to wait for what nobody reads; of a terminal, one key counts until the end.
            let keys = Some(keys).filter(|_| run.stdin && run.tty);
            let said = machine.perform(&container, Task::Words(&run.command), read, &mut "/".to_owned());
            tell(&output, &run, said.stdout, said.stderr).await;
            let over = tokio::time::sleep(machine.real(said.after));
            let Some(mut keys) = keys.filter(|_| !said.after.is_zero()) else {
                over.await;
                return Ok(said.code);
            };
            tokio::select! {
                () = over => Ok(said.code),
                () = keys.interrupted() => Ok(INTERRUPTED),
            }
        })
    }

    fn attach(
        &self,
        pod: Arc<Record>,
        run: Run,
        input: mpsc::Receiver<Bytes>,
        output: mpsc::Sender<Output>,
    ) -> BoxFuture<'static, Result<i32, String>> {
        let machine = self.machines.of(pod.field("spec.nodeName"));
        let logs = self.logs.clone();
        Box::pin(async move {
            let container = running(&machine, &pod, &run.container).await?.ok_or_else(|| {
                let (name, pod) = (&run.container, format!("{}_{}", pod.name, pod.namespace));
                format!("unable to upgrade connection: container {name} not found in pod {pod}")
            })?;
            if run.stdin && listens(&pod, &run.container) {
                let id = container.id.clone();
                let code = Terminal { machine: machine.clone(), container, run, output }
                    .talk(Keys::new(input))
                    .await;
                // What a person leaves by `exit` has ended. Its code is that of the container, not of the connection.
                machine.leave(&id, code).await.map_err(|problem| problem.to_string())?;
                return Ok(0);
            }
            drop(input);
            let request = LogRequest {
                container: run.container.clone(),
                follow: true,
                tail_lines: Some(0),
                ..LogRequest::default()
            };
            let mut lines = logs.log(&pod, &request).await.map_err(|status| status.message)?;
            while let Some(line) = lines.next().await {
                if output.send(Output::Out(line)).await.is_err() {
                    break;
                }
            }
            Ok(0)
        })
    }

    fn port(&self, pod: Arc<Record>, port: u16) -> BoxFuture<'static, Result<Box<dyn Pipe>, String>> {
        let machine = self.machines.of(pod.field("spec.nodeName"));
        Box::pin(async move {
            let object = pod.value();
            let address = text(&object, "/status/podIP");
            let problem =
                |why: String| format!("error forwarding port {port} to pod {}, uid : {why}", pod.uid);
            let refused = || {
                problem(format!(
                    "failed to execute portforward in network namespace: failed to connect to localhost:{port} inside \
                     namespace \"{}\", IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused",
                    pod.uid
                ))
            };
            match machine.connect(address, port).await {
                Ok(Some(stream)) => Ok(Box::new(stream) as Box<dyn Pipe>),
                Ok(None) => Err(refused()),
                Err(error) => Err(problem(error.to_string())),
            }
        })
    }
}

/// The container, if it runs.
async fn running(machine: &Machine, pod: &Record, container: &str) -> Result<Option<Container>, String> {
    let all = machine.containers().await.map_err(|problem| problem.to_string())?;
    Ok(all.into_iter().find(|one| {
        one.pod_uid.as_str() == pod.uid.as_ref() && one.name == container && one.state == State::Running
    }))
}

/// Whether a container was made to be talked to.
fn listens(pod: &Record, container: &str) -> bool {
    let pod = pod.value();
    ["/spec/containers", "/spec/ephemeralContainers"].iter().flat_map(|path| list(&pod, path)).any(|one| {
        text(one, "/name") == container && one.get("stdin").and_then(serde_json::Value::as_bool) == Some(true)
    })
}

/// Says what the client wants to hear.
async fn tell(output: &mpsc::Sender<Output>, run: &Run, stdout: Vec<u8>, stderr: Vec<u8>) {
    const PIECE: usize = 32 << 10;
    // A terminal has one line out.
    let to_errors = |bytes: Bytes| if run.tty { Output::Out(bytes) } else { Output::Error(bytes) };
    let shown = |bytes: Vec<u8>| if run.tty { for_terminal(&bytes) } else { bytes };
    if run.stdout {
        for piece in shown(stdout).chunks(PIECE) {
            let _ = output.send(Output::Out(Bytes::copy_from_slice(piece))).await;
        }
    }
    if run.stderr || run.tty {
        for piece in shown(stderr).chunks(PIECE) {
            let _ = output.send(to_errors(Bytes::copy_from_slice(piece))).await;
        }
    }
}

/// A terminal begins each line at its edge.
fn for_terminal(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

/// Somebody at a shell.
struct Terminal {
    machine: Machine,
    container: Container,
    run: Run,
    output: mpsc::Sender<Output>,
}

impl Terminal {
    async fn talk(self, mut keys: Keys) -> i32 {
        let (mut line, mut folder, mut code) = (Vec::new(), "/".to_owned(), 0);
        self.show(PROMPT).await;
        while let Some(byte) = keys.next().await {
            match byte {
                b'\r' | b'\n' => {
                    self.show("\r\n").await;
                    let is_over;
                    (code, is_over) = self.run(std::mem::take(&mut line), &mut folder, &mut keys).await;
                    if is_over {
                        return code;
                    }
                    self.show(&prompt(&folder)).await;
                }
                // The end of what is typed, and a line that is given up.
                END if self.run.tty && line.is_empty() => return code,
                INTERRUPT if self.run.tty => {
                    line.clear();
                    self.show(&format!("^C\r\n{}", prompt(&folder))).await;
                }
                8 | 127 if self.run.tty && line.is_empty() => {}
                8 | 127 if self.run.tty => {
                    line.pop();
                    self.show("\u{8} \u{8}").await;
                }
                byte if line.len() < 4096 => {
                    line.push(byte);
                    if self.run.tty {
                        let _ = self.output.send(Output::Out(Bytes::copy_from_slice(&[byte]))).await;
                    }
                }
                _ => {}
            }
        }
        if !line.is_empty() {
            (code, _) = self.run(line, &mut folder, &mut keys).await;
        }
        code
    }

    /// Runs a line: its code, and whether the shell ends with it.
    async fn run(&self, line: Vec<u8>, folder: &mut String, keys: &mut Keys) -> (i32, bool) {
        let typed = String::from_utf8_lossy(&line).into_owned();
        let said = self.machine.perform(&self.container, Task::Script(&typed), Vec::new(), folder);
        tell(&self.output, &self.run, said.stdout, said.stderr).await;
        // Only what takes its time can be interrupted.
        let may_be_interrupted = self.run.tty && !said.after.is_zero();
        tokio::select! {
            () = tokio::time::sleep(self.machine.real(said.after)) => (said.code, said.is_over),
            () = keys.interrupted(), if may_be_interrupted => {
                self.show("^C\r\n").await;
                (INTERRUPTED, false)
            }
        }
    }

    /// Shows a person something; programs are not told.
    async fn show(&self, text: &str) {
        if self.run.tty {
            let _ = self.output.send(Output::Out(Bytes::from(text.to_owned()))).await;
        }
    }
}

fn prompt(folder: &str) -> String {
    format!("{folder} # ")
}
