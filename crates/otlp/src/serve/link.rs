//! The connection of a recording to the collector, made again when it breaks: what the collector has not acknowledged is
//! sent again, and the collector knows by its counter what it has already.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::sleep;

/// Waits between attempts to connect: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What is to be stored.
pub(crate) struct Batch {
    pub(crate) packets: Vec<u8>,
    /// The memory it takes, given back when it is stored.
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

/// What begins a connection, by its number.
type Begin = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// The carrier's end of a link.
pub(crate) struct Carrier {
    pub(crate) collector: PathBuf,
    pub(crate) begin: Begin,
    pub(crate) batches: mpsc::UnboundedReceiver<Batch>,
    /// Bytes of batches that were stored.
    pub(crate) stored: watch::Sender<u64>,
}

/// Batches on their way, oldest first.
#[derive(Default)]
struct Window {
    batches: VecDeque<Batch>,
    /// Batches written to this connection.
    written: usize,
    /// Bytes of the batches that are no longer here.
    gone: u64,
    /// The same at the beginning of this connection.
    gone_before: u64,
    /// Bytes that began this connection.
    beginning: u64,
}

impl Window {
    /// Takes an acknowledgement: bytes of this connection that are stored.
    fn stored(&mut self, bytes: u64) {
        let stored = bytes.saturating_sub(self.beginning) + self.gone_before;
        while let Some(first) = self.batches.front() {
            let end = self.gone + first.packets.len() as u64;
            if end > stored || self.written == 0 {
                break;
            }
            self.gone = end;
            self.written -= 1;
            self.batches.pop_front();
        }
    }
}

impl Carrier {
    /// Carries until there is nothing left and nobody has more.
    pub(crate) async fn run(mut self) {
        let (mut window, mut retry, mut part) = (Window::default(), RETRY_FIRST, 0);
        let mut is_last = false;
        while !(is_last && window.batches.is_empty()) {
            if part > 0 && window.batches.is_empty() {
                // Nothing to say: a connection is made when there is.
                match self.batches.recv().await {
                    Some(batch) => window.batches.push_back(batch),
                    None => break,
                }
            }
            let Ok(connection) = UnixStream::connect(&self.collector).await else {
                sleep(retry).await;
                retry = (2 * retry).min(RETRY_MAX);
                continue;
            };
            let stored_before = window.gone;
            is_last = self.talk(connection, &mut window, part, is_last).await;
            part += 1;
            if window.gone > stored_before {
                retry = RETRY_FIRST;
            } else if !window.batches.is_empty() {
                sleep(retry).await;
                retry = (2 * retry).min(RETRY_MAX);
            }
        }
    }

    /// Uses one connection until it breaks, or all is said. True when nobody has more.
    async fn talk(&mut self, connection: UnixStream, window: &mut Window, part: u64, mut is_last: bool) -> bool {
        let (from, mut to) = connection.into_split();
        let beginning = (self.begin)(part);
        (window.written, window.gone_before, window.beginning) = (0, window.gone, beginning.len() as u64);
        let (acked, mut acks) = watch::channel(0);
        let listener = tokio::spawn(listen(from, acked));
        if to.write_all(&beginning).await.is_ok() {
            while !(is_last && window.batches.is_empty()) {
                if let Some(next) = window.batches.get(window.written) {
                    // Acknowledgements are taken meanwhile by the listener.
                    if to.write_all(&next.packets).await.is_err() {
                        break;
                    }
                    window.written += 1;
                    continue;
                }
                tokio::select! {
                    batch = self.batches.recv(), if !is_last => match batch {
                        Some(batch) => window.batches.push_back(batch),
                        None => is_last = true,
                    },
                    changed = acks.changed() => {
                        window.stored(*acks.borrow_and_update());
                        self.stored.send_replace(window.gone);
                        if changed.is_err() {
                            break;
                        }
                    }
                }
            }
        }
        window.stored(*acks.borrow_and_update());
        self.stored.send_replace(window.gone);
        listener.abort();
        is_last
    }
}

/// Takes acknowledgements until the connection ends.
async fn listen(mut from: OwnedReadHalf, acked: watch::Sender<u64>) {
    while let Ok(bytes) = from.read_u64().await {
        acked.send_replace(bytes);
    }
}
