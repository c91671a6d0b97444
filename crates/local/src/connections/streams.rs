//! Streams of SPDY: one for each of standard input, output and error of a command, or two for each connection to a port.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::FusedFuture as _;
use kruise_apiserver::connect::{Connection, Output, Pipe, Run};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::spdy::{self, Heard, PIECE, Reader, Replies};
use super::{Handing, Job, Process, QUEUE, begin, hand, verdict};

/// Most connections to ports at once.
const MOST: usize = 1000;

/// Carries a connection until either side ends it.
pub(super) async fn carry<S>(stream: S, connection: Connection)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (read, write) = tokio::io::split(stream);
    let reader = Reader::new(read);
    let (out, frames) = mpsc::channel(QUEUE);
    let mut writing = JoinSet::new();
    writing.spawn(write_all(write, frames));
    match begin(connection) {
        Job::Process(process) => talk(reader, out, process).await,
        Job::Ports(_, connection) => forward(reader, out, connection).await,
    }
    // The last frames go out before the connection ends.
    while writing.join_next().await.is_some() {}
}

async fn write_all<W: AsyncWrite + Unpin>(mut to: W, mut frames: mpsc::Receiver<Bytes>) {
    while let Some(frame) = frames.recv().await {
        if to.write_all(&frame).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// The streams of a command, by what they are for.
#[derive(Default)]
struct Streams(BTreeMap<String, u32>);

impl Streams {
    fn of(&self, kind: &str) -> Option<u32> {
        self.0.get(kind).copied()
    }

    /// Whether all streams are there that the client asked for.
    fn are_complete(&self, run: &Run) -> bool {
        let wanted = [
            (true, "error"),
            (run.stdin, "stdin"),
            (run.stdout, "stdout"),
            // A terminal has one line out.
            (run.stderr && !run.tty, "stderr"),
            (run.tty, "resize"),
        ];
        wanted.iter().all(|(is_wanted, kind)| !is_wanted || self.0.contains_key(*kind))
    }
}

async fn talk<R: AsyncRead + Unpin>(mut reader: Reader<R>, out: mpsc::Sender<Bytes>, process: Process) {
    let Process { run, mut input, mut output, mut running } = process;
    let (mut streams, mut replies) = (Streams::default(), Replies::default());
    let (mut outcome, mut is_silent, mut handing) = (None, false, Handing::terminated());
    while outcome.is_none() || !is_silent {
        let may_run = outcome.is_none() && streams.are_complete(&run);
        tokio::select! {
            said = output.recv(), if !is_silent => {
                let (stream, bytes) = match said {
                    Some(Output::Out(bytes)) => (streams.of("stdout"), bytes),
                    Some(Output::Error(bytes)) => (streams.of("stderr"), bytes),
                    None => {
                        is_silent = true;
                        continue;
                    }
                };
                if let Some(stream) = stream {
                    send(&out, stream, &bytes).await;
                }
            }
            ended = &mut running, if may_run => outcome = Some(ended),
            () = &mut handing, if !handing.is_terminated() => {}
            heard = reader.next(), if handing.is_terminated() => match heard {
                Ok(Heard::Open { stream, headers, .. }) => {
                    let kind = headers.get("streamtype").cloned().unwrap_or_default();
                    streams.0.insert(kind, stream);
                    let _ = out.send(replies.to(stream)).await;
                }
                Ok(Heard::Data { stream, bytes, ends }) if streams.of("stdin") == Some(stream) => {
                    if !bytes.is_empty() {
                        handing = hand(input.as_ref(), bytes);
                    }
                    if ends {
                        input = None;
                    }
                }
                Ok(Heard::Reset(stream)) if streams.of("stdin") == Some(stream) => input = None,
                Ok(Heard::Ping(id)) => drop(out.send(spdy::ping(id)).await),
                Ok(_) => {}
                Err(_) => return,
            },
        }
    }
    for kind in ["stdout", "stderr"] {
        if let Some(stream) = streams.of(kind) {
            let _ = out.send(spdy::data(stream, b"", true)).await;
        }
    }
    if let (Some(outcome), Some(stream)) = (outcome, streams.of("error")) {
        let _ = out.send(spdy::data(stream, verdict(&outcome, "").to_string().as_bytes(), true)).await;
    }
}

async fn send(out: &mpsc::Sender<Bytes>, stream: u32, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        let _ = out.send(spdy::data(stream, piece, false)).await;
    }
}

/// For each connection the client opens a stream of errors and then one of data, both with the same number of a request.
async fn forward<R: AsyncRead + Unpin>(
    mut reader: Reader<R>,
    out: mpsc::Sender<Bytes>,
    connection: Connection,
) {
    let mut replies = Replies::default();
    let (mut errors, mut inputs) = (BTreeMap::new(), BTreeMap::new());
    let mut tasks = JoinSet::new();
    while let Ok(heard) = reader.next().await {
        match heard {
            Heard::Open { stream, headers, .. } => {
                while tasks.try_join_next().is_some() {}
                let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
                let request = header("requestid");
                match header("streamtype").as_str() {
                    "error" if errors.len() < MOST => {
                        errors.insert(request, stream);
                        let _ = out.send(replies.to(stream)).await;
                    }
                    "data" if tasks.len() < MOST && errors.contains_key(&request) => {
                        // Clients drop what comes on a stream before the answer to it, its end too.
                        let _ = out.send(replies.to(stream)).await;
                        let (input, reads) = mpsc::channel(QUEUE);
                        inputs.insert(stream, input);
                        let error = errors.remove(&request).unwrap_or_default();
                        let port = header("port");
                        let ends =
                            Ends { connection: connection.clone(), data: stream, error, out: out.clone() };
                        tasks.spawn(ends.carry(port, reads));
                    }
                    _ => drop(out.send(spdy::refuse(stream)).await),
                }
            }
            Heard::Data { stream, bytes, ends } => {
                if let Some(input) = inputs.get(&stream).filter(|_| !bytes.is_empty()) {
                    let _ = input.send(bytes).await;
                }
                if ends {
                    inputs.remove(&stream);
                }
            }
            Heard::Reset(stream) => drop(inputs.remove(&stream)),
            Heard::Ping(id) => drop(out.send(spdy::ping(id)).await),
            Heard::GoAway => {}
        }
    }
}

/// A connection to a port, as the client knows it.
struct Ends {
    connection: Connection,
    data: u32,
    error: u32,
    out: mpsc::Sender<Bytes>,
}

impl Ends {
    async fn carry(self, port: String, reads: mpsc::Receiver<Bytes>) {
        let Self { connection, data, error, out } = self;
        let opened = match port.parse() {
            Ok(port) => connection.end.port(connection.pod, port).await,
            Err(_) => Err(format!("unable to parse \"{port}\" as a port")),
        };
        let problem = match opened {
            Ok(pipe) => {
                copy(pipe, data, reads, &out).await;
                String::new()
            }
            Err(why) => why,
        };
        let _ = out.send(spdy::data(error, problem.as_bytes(), true)).await;
        let _ = out.send(spdy::data(data, b"", true)).await;
    }
}

/// Carries bytes both ways until the pod has said everything.
async fn copy(pipe: Box<dyn Pipe>, stream: u32, mut reads: mpsc::Receiver<Bytes>, out: &mpsc::Sender<Bytes>) {
    let (mut from, mut to) = tokio::io::split(pipe);
    let inwards = async {
        while let Some(bytes) = reads.recv().await {
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
        std::future::pending::<()>().await;
    };
    let outwards = async {
        let mut bytes = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            send(out, stream, bytes.get(..count).unwrap_or_default()).await;
        }
    };
    tokio::select! {
        () = inwards => {}
        () = outwards => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use kruise_apiserver::ApiServer;
    use kruise_apiserver::connect::{Connector, Wish};
    use kruise_apiserver::store::Record;
    use serde_json::json;

    use super::*;

    /// A pod that nobody listens in.
    struct Deaf;

    impl Connector for Deaf {
        fn exec(
            &self,
            _: Arc<Record>,
            _: Run,
            _: mpsc::Receiver<Bytes>,
            _: mpsc::Sender<Output>,
        ) -> BoxFuture<'static, Result<i32, String>> {
            Box::pin(async { Ok(0) })
        }

        fn attach(
            &self,
            pod: Arc<Record>,
            run: Run,
            input: mpsc::Receiver<Bytes>,
            output: mpsc::Sender<Output>,
        ) -> BoxFuture<'static, Result<i32, String>> {
            self.exec(pod, run, input, output)
        }

        fn port(&self, _: Arc<Record>, _: u16) -> BoxFuture<'static, Result<Box<dyn Pipe>, String>> {
            Box::pin(async { Err("connection refused".to_owned()) })
        }
    }

    /// Tokio lets a task send only so often before others have their turn. So many pings in front make that happen just
    /// when a stream is to be accepted.
    #[tokio::test]
    async fn nothing_is_said_on_a_stream_before_it_is_accepted() {
        let local = ApiServer::builder().seed(1).build().local();
        let pods = local.resource("", "pods").unwrap();
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = local.create(&pods, "default", pod).await.unwrap();
        for pings in 100..140 {
            let connection =
                Connection { pod: pod.clone(), wish: Wish::Forward(Vec::new()), end: Arc::new(Deaf) };
            let mut bytes = Vec::new();
            (0..pings).for_each(|id| bytes.extend(spdy::ping(id)));
            for request in 0..2_u32 {
                for (kind, stream) in [("error", 4 * request + 1), ("data", 4 * request + 3)] {
                    let number = request.to_string();
                    let headers = [("streamtype", kind), ("requestid", number.as_str()), ("port", "80")];
                    bytes.extend(spdy::open(stream, &headers, stream == 1));
                }
            }
            let (out, mut frames) = mpsc::channel(4096);
            // The turn begins anew, so that the pings alone count.
            tokio::task::yield_now().await;
            forward(Reader::new(bytes.as_slice()), out, connection).await;
            let mut accepted = std::collections::BTreeSet::new();
            while let Some(frame) = frames.recv().await {
                let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
                match frame[..4] {
                    [0x80, 3, 0, 2] => drop(accepted.insert(number(8))),
                    [0, ..] => assert!(accepted.contains(&number(0)), "data on stream {}", number(0)),
                    _ => {}
                }
            }
            assert_eq!(accepted.len(), 4);
        }
    }

    #[test]
    fn a_command_begins_when_its_streams_are_there() {
        let run = |tty| Run { stdout: true, stderr: true, tty, ..Run::default() };
        let mut streams = Streams::default();
        for (stream, kind) in ["error", "stdout", "resize"].into_iter().enumerate() {
            assert!(!streams.are_complete(&run(true)));
            streams.0.insert(kind.to_owned(), u32::try_from(stream).unwrap());
        }
        assert!(streams.are_complete(&run(true)));
        assert!(!streams.are_complete(&run(false)));
        streams.0.insert("stderr".to_owned(), 5);
        assert!(streams.are_complete(&run(false)));
        assert!(!streams.are_complete(&Run { stdin: true, ..run(false) }));
    }
}
