//! Health and counters over HTTP: `/healthz`, `/readyz`, `/metrics` in Prometheus' text form.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use log::warn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::options::address;

/// Longest request that is read, in bytes.
const REQUEST_MAX: usize = 8192;

/// How long a request may take to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// What is shown of a process.
pub(crate) struct Status {
    is_ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Parts of traces whose reading began.
    pub(crate) parts: AtomicU64,
    /// Their bytes.
    pub(crate) bytes: AtomicU64,
    /// Indexes that were made.
    pub(crate) indexes: AtomicU64,
}

impl Status {
    /// A status; `is_ready` says whether work is accepted.
    pub(crate) fn new(is_ready: Box<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { is_ready, parts: AtomicU64::new(0), bytes: AtomicU64::new(0), indexes: AtomicU64::new(0) }
    }

    fn answer(&self, path: &str) -> (&'static str, String) {
        match path {
            "/healthz" => ("200 OK", "ok\n".to_owned()),
            "/readyz" if (self.is_ready)() => ("200 OK", "ready\n".to_owned()),
            "/readyz" => ("503 Service Unavailable", "not ready\n".to_owned()),
            "/metrics" => ("200 OK", self.metrics()),
            _ => ("404 Not Found", "not found\n".to_owned()),
        }
    }

    fn metrics(&self) -> String {
        let counters = [
            ("anytrace_parts_total", "Parts of traces whose reading began", &self.parts),
            ("anytrace_part_bytes_total", "Bytes of these parts", &self.bytes),
            ("anytrace_indexes_total", "Indexes that were made", &self.indexes),
        ];
        let mut text = format!(
            "# HELP anytrace_ready Whether work is accepted\n# TYPE anytrace_ready gauge\nanytrace_ready {}\n",
            u8::from((self.is_ready)())
        );
        for (name, help, value) in counters {
            let value = value.load(Ordering::Relaxed);
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n"));
        }
        text
    }
}

/// Serves the status at a port, if there is one; the future ends only with an error.
pub(crate) async fn serve(
    host: &str,
    port: Option<u16>,
    status: Arc<Status>,
) -> Result<BoxFuture<'static, Result<(), String>>, String> {
    let Some(port) = port else { return Ok(Box::pin(std::future::pending())) };
    let address = address(host, port)?;
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    Ok(Box::pin(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let status = Arc::clone(&status);
                    tokio::spawn(async move {
                        // Whoever asks and goes away misses nothing.
                        let _ = tokio::time::timeout(REQUEST_TIME, answer(stream, &status)).await;
                    });
                }
                Err(error) => {
                    warn!("a connection to the metrics port failed: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }))
}

async fn answer(mut stream: TcpStream, status: &Status) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer).await? {
            0 => break,
            length => request.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or("");
    let (code, body) = status.answer(path);
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_ready_is_healthy_all_the_same() {
        let status = Status::new(Box::new(|| false));
        status.parts.store(3, Ordering::Relaxed);
        assert_eq!(status.answer("/healthz").0, "200 OK");
        assert_eq!(status.answer("/readyz").0, "503 Service Unavailable");
        assert!(status.answer("/metrics").1.contains("\nanytrace_parts_total 3\n"));
        assert_eq!(status.answer("/else").0, "404 Not Found");
    }
}
