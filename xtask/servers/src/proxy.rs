//! A TCP hop that can go silent, as a network does.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};

/// Passes connections on to a server, and on demand does not.
///
/// Frozen, it forwards nothing and closes nothing, not even when one side closes: to each side the other is
/// there and says nothing. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    frozen: bool,
    /// Connections up to this number are frozen, whatever happens to later ones.
    frozen_up_to: u64,
    last: u64,
    open: Vec<(u64, TcpStream)>,
    cut: Option<(&'static str, Cut)>,
    /// The connection that is cut instead of being answered.
    unanswered: Option<u64>,
}

/// Where a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Before the server gets what the client sends.
    Before,
    /// Once the server answers, before the client gets the answer.
    Answer,
}

impl Proxy {
    /// Listens on a free port of this machine and passes each connection on to `target`.
    ///
    /// # Errors
    /// If no port can be listened on.
    pub fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the proxy cannot listen")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { target, state: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || of_thread.accept(&listener));
        Ok(Self { port, shared })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.state().open.len() / 2
    }

    /// Freezes every connection, and those to come.
    pub fn freeze(&self) {
        self.shared.state().frozen = true;
    }

    /// Freezes the connections that are open now; new ones work. It is what a client sees whose route has
    /// changed under it.
    pub fn freeze_open_connections(&self) {
        let mut state = self.shared.state();
        state.frozen_up_to = state.last;
    }

    /// Ends every freeze: what was held up is passed on now, late.
    pub fn thaw(&self) {
        let mut state = self.shared.state();
        state.frozen = false;
        state.frozen_up_to = 0;
        self.shared.changed.notify_all();
    }

    /// Cuts the next connection whose client sends this text, there.
    pub fn cut_at(&self, text: &'static str, cut: Cut) {
        self.shared.state().cut = Some((text, cut));
    }

    /// Cuts every open connection; both sides see its end. New ones work.
    pub fn cut(&self) {
        self.shared.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.cut();
        // Wakes the accepting thread, which sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.state().closed {
                return;
            }
            // A connection that cannot be passed on is closed, by being dropped.
            if let Ok(client) = client {
                let _ = self.connect(client);
            }
        }
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let number = {
            let mut state = self.state();
            state.last += 1;
            let number = state.last;
            state.open.push((number, client.try_clone()?));
            state.open.push((number, server.try_clone()?));
            number
        };
        let there = (client.try_clone()?, server.try_clone()?, true);
        for (from, to, from_client) in [there, (server, client, false)] {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.pump(number, from, to, from_client));
        }
        Ok(())
    }

    /// Passes bytes one way until that way ends, then ends both.
    fn pump(&self, number: u64, mut from: TcpStream, mut to: TcpStream, from_client: bool) {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer);
            if !self.wait_while_frozen(number) {
                return;
            }
            let passed_on = match read {
                Ok(0) | Err(_) => false,
                Ok(count) => {
                    let bytes = &buffer[..count];
                    !self.is_cut_at(number, bytes, from_client) && to.write_all(bytes).is_ok()
                }
            };
            if !passed_on {
                self.close(|open| open == number);
                return;
            }
        }
    }

    /// Whether the connection ends here, and these bytes with it.
    fn is_cut_at(&self, number: u64, bytes: &[u8], from_client: bool) -> bool {
        let mut state = self.state();
        if !from_client {
            return state.unanswered == Some(number);
        }
        let sent = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let cut = state.cut.take_if(|(text, _)| sent(text));
        if cut.is_some_and(|(_, cut)| cut == Cut::Answer) {
            state.unanswered = Some(number);
        }
        cut.is_some_and(|(_, cut)| cut == Cut::Before)
    }

    /// Whether the connection is still open once it is not frozen any more.
    fn wait_while_frozen(&self, number: u64) -> bool {
        let state = self.state();
        let state = self
            .changed
            .wait_while(state, |state| {
                (state.frozen || number <= state.frozen_up_to)
                    && state.open.iter().any(|(open, _)| *open == number)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.open.iter().any(|(open, _)| *open == number)
    }

    fn cut(&self) {
        self.close(|_| true);
    }

    fn close(&self, which: impl Fn(u64) -> bool) {
        let mut state = self.state();
        for (_, stream) in state.open.extract_if(.., |(number, _)| which(*number)) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }
}
