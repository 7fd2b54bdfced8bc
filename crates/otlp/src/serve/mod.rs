//! Takes spans over gRPC and HTTP, both on one address.

mod answers;
mod bodies;
mod events;
mod link;
mod numbers;
mod recording;
mod routes;
mod store;
mod values;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anytrace_core::Error;
use anytrace_live::Gate;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::request::Serve;
use crate::voice;
use routes::Peer;
use store::Store;

/// Most connections.
const CONNECTIONS_MAX: usize = 1024;

/// How long a connection may take for a handshake, or for the head of a request.
const GREETING: Duration = Duration::from_secs(10);

/// How long requests in progress may take when the collection ends, and then the last accounts.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
const LAST_ACCOUNTS: Duration = Duration::from_secs(2);

/// What all connections share.
struct Shared {
    gate: Mutex<Gate>,
    store: Store,
    bodies: bodies::Bodies,
}

/// Serves until standard input is closed.
pub(crate) async fn run(task: Serve) -> Result<(), Error> {
    let gate = Gate::new(&task.access)?;
    let tls = gate.tls_for(&[b"h2", b"http/1.1"]).map(TlsAcceptor::from);
    let listener = TcpListener::bind(task.listen).await;
    let listener = listener.map_err(|error| Error::io(format!("cannot listen on otlp://{}", task.listen), error))?;
    voice::ready(&listener.local_addr()?.to_string());
    let shared =
        Arc::new(Shared { gate: Mutex::new(gate), store: Store::new(&task), bodies: bodies::Bodies::default() });
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let routes = routes::routes(&shared);
    let mut ends = std::pin::pin!(until_closed());
    loop {
        let place = Arc::clone(&places).acquire_owned();
        tokio::select! {
            () = &mut ends => break,
            Ok(place) = place => {
                let accepted = tokio::select! {
                    () = &mut ends => break,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok((stream, peer)) => admit(stream, peer, place, tls.clone(), &shared, &routes, &graceful),
                    // Out of descriptors, or a peer that is gone already.
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            }
        }
    }
    drop(listener);
    let _ = timeout(LAST_REQUESTS, graceful.shutdown()).await;
    let _ = timeout(LAST_ACCOUNTS, shared.store.close()).await;
    Ok(())
}

/// Waits until the collector has closed standard input.
async fn until_closed() {
    let (mut stdin, mut rest) = (tokio::io::stdin(), [0; 64]);
    while stdin.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// Serves a connection, if its machine may send.
fn admit(
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    tls: Option<TlsAcceptor>,
    shared: &Arc<Shared>,
    routes: &Router,
    graceful: &GracefulShutdown,
) {
    let is_allowed = shared.gate.lock().unwrap_or_else(PoisonError::into_inner).allows(peer.ip());
    if !is_allowed {
        voice::unauthorized(&peer.to_string(), "its machine is not allowed");
        return;
    }
    let _ = stream.set_nodelay(true);
    let (routes, watcher) = (routes.clone(), graceful.watcher());
    tokio::spawn(async move {
        let _place = place;
        let Some(tls) = tls else {
            let who = Peer { address: peer, has_certificate: false };
            return serve(stream, who, routes, watcher).await;
        };
        match timeout(GREETING, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let has_certificate = stream.get_ref().1.peer_certificates().is_some();
                serve(stream, Peer { address: peer, has_certificate }, routes, watcher).await;
            }
            Ok(Err(error)) => voice::unauthorized(&peer.to_string(), &format!("TLS: {error}")),
            Err(_) => {}
        }
    });
}

/// Answers the requests of a connection until it ends.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    routes: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(GREETING);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(GREETING).keep_alive_timeout(GREETING);
    let service = TowerToHyperService::new(routes.layer(axum::Extension(peer)));
    // A connection that breaks concerns nobody but its peer.
    let _ = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await;
}
