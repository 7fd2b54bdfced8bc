//! A listener that has at most so many connections at once: one more waits until another ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::socket::Listening;

/// Connections at once. A browser opens six for a page.
const CONNECTIONS_MAX: usize = 256;

/// How long to wait where the system can accept no connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The listener.
pub(super) struct Bounded {
    inner: Inner,
    places: Arc<Semaphore>,
}

enum Inner {
    Port(TcpListener),
    #[cfg(unix)]
    Socket(UnixListener),
}

impl Bounded {
    /// Listens as is said, within a runtime.
    pub(super) fn new(listening: &Listening) -> io::Result<Self> {
        let inner = match listening {
            Listening::Port(listener, _) => {
                listener.set_nonblocking(true)?;
                Inner::Port(TcpListener::from_std(listener.try_clone()?)?)
            }
            #[cfg(unix)]
            Listening::Socket(socket) => {
                socket.listener.set_nonblocking(true)?;
                Inner::Socket(UnixListener::from_std(socket.listener.try_clone()?)?)
            }
        };
        Ok(Self { inner, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) })
    }
}

impl Inner {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Port(listener) => Box::new(listener.accept().await?.0),
            #[cfg(unix)]
            Self::Socket(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// What a connection reads from and writes to.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Listener for Bounded {
    type Io = Connection;
    /// Nobody asks who it is: it is somebody on this machine.
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        // The semaphore is never closed, so there is always a place in the end.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        loop {
            match self.inner.accept().await {
                Ok(stream) => return (Connection { stream, _place: place }, ()),
                // The connection is gone again, or there are no file descriptors left.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection, and its place.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
