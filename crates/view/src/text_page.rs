//! A page of text that a running program keeps up to date: its figures for Prometheus.

use std::net::{SocketAddr, TcpListener};

use anytrace_core::Error;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

/// Answers `GET` of one path, such as `/metrics`, with a text that is made anew each time, from a thread of its own until
/// the program ends. Returns the address, with the port that the system chose where 0 was asked for.
///
/// # Errors
/// I/O: the address is taken or is none of this machine.
pub fn serve_text(
    address: SocketAddr,
    path: &'static str,
    kind: &'static str,
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> Result<SocketAddr, Error> {
    let failed = |error| Error::io(format!("cannot listen on {address}"), error);
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let serve = async move {
        let answer = move || {
            let text = text();
            async move { ([(CONTENT_TYPE, kind)], text) }
        };
        let router = Router::new().route(path, get(answer));
        axum::serve(tokio::net::TcpListener::from_std(listener)?, router).await
    };
    let thread = std::thread::Builder::new().name("text page".to_owned());
    // Whoever asks notices when it fails; the program goes on.
    thread.spawn(move || runtime.block_on(serve)).map_err(failed)?;
    Ok(address)
}
