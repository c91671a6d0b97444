//! Connections of an attacker: on loopback, to the ports of the manager that the attack has started, and to nothing else.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConnection, StreamOwned};

use crate::bench::local::http::{self, Connection};
use crate::bench::manager::Manager;

/// How long an attacker waits for anything.
const TIMEOUT: Duration = Duration::from_millis(500);

pub(super) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// The ports of a manager.
pub(super) struct Targets {
    pub(super) health: u16,
    pub(super) metrics: u16,
    pub(super) webhooks: u16,
    authority: CertificateDer<'static>,
}

impl Targets {
    pub(super) fn of(manager: &Manager) -> Result<Self> {
        let [health, metrics, webhooks] = manager.ports();
        Ok(Self { health, metrics, webhooks, authority: manager.authority()? })
    }

    /// A client that means well.
    pub(super) fn caller(&self) -> Result<Connection> {
        Connection::to(&format!("127.0.0.1:{}", self.webhooks), self.authority.clone(), "")
    }

    /// A connection of which the server has heard nothing.
    pub(super) fn plain(&self, port: u16) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// A connection to the webhooks after its handshake.
    pub(super) fn tls(&self) -> Result<Tls> {
        let stream = self.plain(self.webhooks)?;
        let mut tls = http::tls(stream, self.authority.clone())?;
        tls.flush()?;
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock)?;
        }
        Ok(tls)
    }
}

/// So many connections, held open. The oldest goes when there is one more.
pub(super) struct Held<S> {
    most: usize,
    held: VecDeque<S>,
}

impl<S> Held<S> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, held: VecDeque::new() }
    }

    pub(super) fn push(&mut self, stream: S) {
        if self.held.len() >= self.most {
            self.held.pop_front();
        }
        self.held.push_back(stream);
    }

    /// Does something with each; those for which that fails are gone.
    pub(super) fn each(&mut self, mut work: impl FnMut(&mut S) -> io::Result<()>) {
        self.held.retain_mut(|stream| work(stream).is_ok());
    }

    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= self.most
    }
}
