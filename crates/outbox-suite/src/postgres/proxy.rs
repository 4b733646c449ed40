//! A proxy between a store and its server that holds an answer back, so that a future waits at a chosen place, or
//! changes a statement on its way.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, watch};

/// Forwards everything. Once a client sent the text that it was told, the server's answers stay here until
/// [`release`](Self::release).
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    text: watch::Sender<Option<Vec<u8>>>,
    held: watch::Sender<bool>,
    change: watch::Sender<Option<(&'static [u8], &'static [u8])>>,
    seen: Notify,
}

impl Proxy {
    pub(crate) async fn start(server: &PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            text: watch::Sender::new(None),
            held: watch::Sender::new(false),
            change: watch::Sender::new(None),
            seen: Notify::new(),
        });
        let proxy = Self { port, shared: Arc::clone(&shared) };
        let server = server.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server.clone(), Arc::clone(&shared)));
            }
        });
        proxy
    }

    /// How to connect through the proxy.
    pub(crate) fn options(&self, server: &PgConnectOptions) -> PgConnectOptions {
        let disable = sqlx::postgres::PgSslMode::Disable;
        server.clone().host("127.0.0.1").port(self.port).ssl_mode(disable)
    }

    /// Holds the server's answers from the moment at which a client sends this text.
    pub(crate) fn hold_answer_to(&self, text: &str) {
        self.shared.text.send_replace(Some(text.as_bytes().to_vec()));
    }

    /// Writes one text of what clients send for another of the same length.
    pub(crate) fn change(&self, from: &'static str, to: &'static str) {
        assert_eq!(from.len(), to.len());
        self.shared.change.send_replace(Some((from.as_bytes(), to.as_bytes())));
    }

    /// Waits until the text was sent, and its answers are being held.
    pub(crate) async fn holding(&self) {
        self.shared.seen.notified().await;
    }

    /// Lets everything through again.
    pub(crate) fn release(&self) {
        self.shared.text.send_replace(None);
        self.shared.held.send_replace(false);
    }
}

async fn serve(client: TcpStream, server: PgConnectOptions, shared: Arc<Shared>) {
    let socket = server
        .get_socket()
        .cloned()
        .or_else(|| server.get_host().starts_with('/').then(|| server.get_host().into()));
    if let Some(folder) = socket {
        let path = folder.join(format!(".s.PGSQL.{}", server.get_port()));
        let (from, to) = UnixStream::connect(path).await.unwrap().into_split();
        forward(client, from, to, shared).await;
    } else {
        let address = (server.get_host(), server.get_port());
        let (from, to) = TcpStream::connect(address).await.unwrap().into_split();
        forward(client, from, to, shared).await;
    }
}

async fn forward(
    client: TcpStream,
    mut from_server: impl AsyncRead + Unpin + Send + 'static,
    mut to_server: impl AsyncWrite + Unpin + Send + 'static,
    shared: Arc<Shared>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let mut held = shared.held.subscribe();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            if held.wait_for(|held| !held).await.is_err()
                || to_client.write_all(&buffer[..read]).await.is_err()
            {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        let sent = shared
            .text
            .borrow()
            .as_ref()
            .is_some_and(|text| buffer[..read].windows(text.len()).any(|window| window == text));
        if let Some((from, to)) = *shared.change.borrow() {
            while let Some(at) = buffer[..read].windows(from.len()).position(|window| window == from) {
                buffer[at..at + to.len()].copy_from_slice(to);
            }
        }
        if sent {
            // Before the server has the statement, so that no answer slips through.
            shared.held.send_replace(true);
            shared.seen.notify_one();
        }
        if to_server.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
