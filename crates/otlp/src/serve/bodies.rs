//! Request bodies in memory: what all of them have together is bounded, and none may be long or slow.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use flate2::read::MultiGzDecoder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Longest body, compressed and not.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;

/// Bytes of all bodies together.
const ROOM_BYTES: usize = 64 << 20;

/// How long a sender may pause, and how long it waits for memory that others use.
const PAUSE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(2);

/// Requests that are decoded and not stored yet: each may take several times its length.
const DECODED_AT_ONCE: usize = 8;

/// Memory for bodies.
pub(crate) struct Bodies {
    room: Arc<Semaphore>,
    decoded: Semaphore,
}

/// Why a body is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLong,
    /// Others use the memory: it is worth to try again.
    NoRoom,
    TooSlow,
    Broken,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(ROOM_BYTES)), decoded: Semaphore::new(DECODED_AT_ONCE) }
    }
}

impl Bodies {
    /// All of a body; its room is given back with the second value.
    pub(crate) async fn gather(&self, mut body: Body) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refused> {
        let (mut all, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
        loop {
            let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
            let frame = match timeout(PAUSE, next).await {
                Err(_) => return Err(Refused::TooSlow),
                Ok(None) => return Ok((all, room)),
                Ok(Some(Err(_))) => return Err(Refused::Broken),
                Ok(Some(Ok(frame))) => frame,
            };
            let Some(data) = frame.data_ref() else { continue };
            if all.len() + data.len() > BODY_BYTES_MAX {
                return Err(Refused::TooLong);
            }
            if data.is_empty() {
                continue;
            }
            let more = Arc::clone(&self.room).acquire_many_owned(u32::try_from(data.len()).unwrap_or(u32::MAX));
            let Ok(Ok(more)) = timeout(PATIENCE, more).await else { return Err(Refused::NoRoom) };
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            all.extend_from_slice(data);
        }
    }

    /// Waits until a body may be decoded; the place is free again when the request is answered.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, Refused> {
        match timeout(PATIENCE, self.decoded.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Refused::NoRoom),
        }
    }
}

/// What gzip made shorter.
pub(crate) fn unzipped(bytes: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut all = Vec::new();
    let most = BODY_BYTES_MAX as u64 + 1;
    MultiGzDecoder::new(bytes).take(most).read_to_end(&mut all).map_err(|_| Refused::Broken)?;
    if all.len() > BODY_BYTES_MAX { Err(Refused::TooLong) } else { Ok(all) }
}

/// A body that is there completely.
pub(crate) fn whole(bytes: Vec<u8>) -> Body {
    Body::from(Bytes::from(bytes))
}
