//! Messages whose first byte is a channel: standard input, output and error of a command, or two for each port.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures::StreamExt as _;
use futures::future::FusedFuture as _;
use futures::stream::FuturesUnordered;
use kruise_apiserver::connect::{Connection, Output, Pipe};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::websocket::{Message, Reader, Writer};
use super::{Channels, Handing, INTERNAL, Job, Process, QUEUE, begin, hand, verdict};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// The channel on which the client says that another has ended.
const END: u8 = 255;

/// How long nothing is said. Clients on client-go before 1.33 drop what comes before they have made ready to hear it, which
/// nobody notices with a node that is further away.
const PATIENCE: Duration = Duration::from_millis(50);

/// Carries a connection until either side ends it.
pub(super) async fn carry<S: AsyncRead + AsyncWrite>(stream: S, version: Channels, connection: Connection) {
    let (read, write) = tokio::io::split(stream);
    let (mut reader, mut writer) = (Reader::new(read), Writer(write));
    // An error is a client that has gone away.
    let _ = match begin(connection) {
        Job::Process(process) => talk(&mut reader, &mut writer, version, process).await,
        Job::Ports(ports, connection) => forward(&mut reader, &mut writer, &ports, &connection).await,
    };
    writer.close().await;
}

fn message(channel: u8, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    message
}

/// What a client says to a command.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Input(Bytes),
    EndOfInput,
    /// The size of a window, or something that nobody hears.
    Nothing,
}

fn understood(mut bytes: Bytes, version: Channels) -> Said {
    match (bytes.first().copied(), version) {
        (Some(STDIN), _) => {
            bytes.advance(1);
            Said::Input(bytes)
        }
        (Some(END), Channels::V5) if bytes.get(1) == Some(&STDIN) => Said::EndOfInput,
        _ => Said::Nothing,
    }
}

async fn talk<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    reader: &mut Reader<R>,
    writer: &mut Writer<W>,
    version: Channels,
    process: Process,
) -> std::io::Result<()> {
    let Process { run, mut input, mut output, mut running } = process;
    tokio::time::sleep(PATIENCE).await;
    // Tells the client that it is connected, before anything is said.
    let first = if run.stdout { STDOUT } else { STDERR };
    writer.data(&[first]).await?;
    let (mut outcome, mut is_silent, mut handing) = (None, false, Handing::terminated());
    while outcome.is_none() || !is_silent {
        tokio::select! {
            said = output.recv(), if !is_silent => match said {
                Some(Output::Out(bytes)) => writer.data(&message(STDOUT, &bytes)).await?,
                Some(Output::Error(bytes)) => writer.data(&message(STDERR, &bytes)).await?,
                None => is_silent = true,
            },
            ended = &mut running, if outcome.is_none() => outcome = Some(ended),
            () = &mut handing, if !handing.is_terminated() => {}
            heard = reader.next(), if handing.is_terminated() => match heard {
                Ok(Message::Ping(bytes)) => writer.pong(&bytes).await?,
                Ok(Message::Pong) => {}
                Ok(Message::Close) | Err(_) => return Ok(()),
                Ok(Message::Data(bytes)) => match understood(bytes, version) {
                    Said::Input(bytes) => handing = hand(input.as_ref(), bytes),
                    Said::EndOfInput => input = None,
                    Said::Nothing => {}
                },
            },
        }
    }
    if let Some(outcome) = outcome {
        writer.data(&message(ERROR, verdict(&outcome, INTERNAL).to_string().as_bytes())).await?;
    }
    Ok(())
}

/// Two channels for each port, data and errors. Both begin with the number of the port, its low byte first.
async fn forward<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    reader: &mut Reader<R>,
    writer: &mut Writer<W>,
    ports: &[u16],
    connection: &Connection,
) -> std::io::Result<()> {
    let (says, mut said) = mpsc::channel(QUEUE);
    let mut inputs = BTreeMap::new();
    let mut handing = Handing::terminated();
    let mut copying = FuturesUnordered::new();
    for (channel, port) in (0_u8..END).step_by(2).zip(ports) {
        for channel in [channel, channel + 1] {
            writer.data(&message(channel, &port.to_le_bytes())).await?;
        }
        let (input, reads) = mpsc::channel(QUEUE);
        inputs.insert(channel, input);
        match connection.end.port(connection.pod.clone(), *port).await {
            Ok(pipe) => copying.push(copy(pipe, channel, reads, says.clone())),
            Err(why) => writer.data(&message(channel + 1, why.as_bytes())).await?,
        }
    }
    drop(says);
    loop {
        tokio::select! {
            Some(bytes) = said.recv() => writer.data(&bytes).await?,
            Some(()) = copying.next() => {}
            () = &mut handing, if !handing.is_terminated() => {}
            heard = reader.next(), if handing.is_terminated() => match heard {
                Ok(Message::Ping(bytes)) => writer.pong(&bytes).await?,
                Ok(Message::Pong) => {}
                Ok(Message::Close) | Err(_) => return Ok(()),
                Ok(Message::Data(mut bytes)) => {
                    if let Some(input) = bytes.first().and_then(|channel| inputs.get(channel)) {
                        bytes.advance(1);
                        handing = hand(Some(input), bytes);
                    }
                }
            },
        }
    }
}

/// Carries bytes of one port until the pod has said everything.
async fn copy(
    mut pipe: Box<dyn Pipe>,
    channel: u8,
    mut reads: mpsc::Receiver<Bytes>,
    says: mpsc::Sender<Vec<u8>>,
) {
    let mut bytes = vec![0; super::spdy::PIECE];
    loop {
        tokio::select! {
            read = pipe.read(&mut bytes) => match read {
                Ok(count @ 1..) => {
                    let _ = says.send(message(channel, bytes.get(..count).unwrap_or_default())).await;
                }
                Ok(0) | Err(_) => return,
            },
            Some(piece) = reads.recv() => {
                if pipe.write_all(&piece).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_input_and_its_end_are_heard() {
        let said = |bytes: &'static [u8], version| understood(Bytes::from_static(bytes), version);
        assert_eq!(said(b"\0ls", Channels::V4), Said::Input(Bytes::from_static(b"ls")));
        assert_eq!(said(&[END, STDIN], Channels::V5), Said::EndOfInput);
        assert_eq!(said(&[END, STDIN], Channels::V4), Said::Nothing);
        assert_eq!(said(&[END, STDOUT], Channels::V5), Said::Nothing);
        assert_eq!(said(b"\x04{}", Channels::V5), Said::Nothing);
        assert_eq!(said(b"", Channels::V5), Said::Nothing);
    }
}
