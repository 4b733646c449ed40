//! A hop that counts what a client asks a PostgreSQL server: its round trips and its statements.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// Passes connections on and counts.
#[derive(Debug)]
pub(super) struct Wire {
    port: u16,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    round_trips: AtomicU64,
    statements: AtomicU64,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// How often the client waited for an answer: a simple query, or a sync at the end of others.
    pub(super) round_trips: u64,
    /// How many texts or prepared statements were run; several in one text count as one.
    pub(super) statements: u64,
}

impl Wire {
    /// Listens on a free port of this machine, until the process ends.
    pub(super) fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the hop cannot listen")?;
        let port = listener.local_addr()?.port();
        let counts = Arc::new(Counts::default());
        let of_thread = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                // A connection that cannot be passed on is closed, by being dropped.
                let _ = pass_on(client, server, &of_thread);
            }
        });
        Ok(Self { port, counts })
    }

    /// The port to connect to.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What was counted so far.
    pub(super) fn counted(&self) -> Counted {
        Counted {
            round_trips: self.counts.round_trips.load(Ordering::Relaxed),
            statements: self.counts.statements.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    /// What was counted in between.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            round_trips: self.round_trips - before.round_trips,
            statements: self.statements - before.statements,
        }
    }
}

fn pass_on(client: TcpStream, server: SocketAddr, counts: &Arc<Counts>) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let counts = Arc::clone(counts);
    thread::spawn(move || {
        let _ = count(client, &server, &counts);
        let _ = server.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Passes the client's bytes on, message by message as they are framed, and counts those that ask for something.
fn count(mut client: TcpStream, mut server: &TcpStream, counts: &Counts) -> std::io::Result<()> {
    let mut framing = Framing::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = client.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        framing.see(bytes, |kind| match kind {
            b'Q' => {
                counts.round_trips.fetch_add(1, Ordering::Relaxed);
                counts.statements.fetch_add(1, Ordering::Relaxed);
            }
            b'S' => _ = counts.round_trips.fetch_add(1, Ordering::Relaxed),
            b'E' => _ = counts.statements.fetch_add(1, Ordering::Relaxed),
            _ => {}
        });
        server.write_all(bytes)?;
    }
}

/// Where in the stream of messages we are. A message is its kind, its length with the length itself, its body; the
/// first messages, until the first password or query, have no kind.
#[derive(Debug, Default)]
struct Framing {
    head: Vec<u8>,
    body: usize,
    begun: bool,
}

impl Framing {
    fn see(&mut self, mut bytes: &[u8], mut message: impl FnMut(u8)) {
        while !bytes.is_empty() {
            if self.body > 0 {
                let skipped = self.body.min(bytes.len());
                self.body -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let (first, rest) = bytes.split_at(1);
            self.head.extend_from_slice(first);
            bytes = rest;
            let kinds = usize::from(self.begun);
            if self.head.len() < kinds + 4 {
                continue;
            }
            let length = self.head.get(kinds..).and_then(|length| <[u8; 4]>::try_from(length).ok());
            let length = length.map_or(4, |length| u32::from_be_bytes(length) as usize);
            if let Some(kind) = self.head.first()
                && self.begun
            {
                message(*kind);
            }
            // A request for encryption is eight bytes, and a startup message with its kindless head follows it.
            self.begun = self.begun || length != 8;
            self.body = length.saturating_sub(4);
            self.head.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages are found however the stream is cut, and what is within a body is none.
    #[test]
    fn messages_are_found_in_any_cut() {
        let mut stream = vec![0, 0, 0, 8, 4, 210, 22, 47]; // a request for encryption
        stream.extend([0, 0, 0, 9, 0, 3, 0, 0, 0]); // the startup
        for (kind, body) in [(b'Q', "SELECT 1\0"), (b'P', "QQQ"), (b'S', ""), (b'E', "SSSS")] {
            stream.push(kind);
            stream.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            stream.extend(body.as_bytes());
        }
        for cut in 1..stream.len() {
            let (mut framing, mut kinds) = (Framing::default(), Vec::new());
            for piece in stream.chunks(cut) {
                framing.see(piece, |kind| kinds.push(kind));
            }
            assert_eq!(kinds, b"QPSE", "cut into pieces of {cut}");
        }
    }
}
