//! Tasks of tokio that wait for each other, recorded to a file or to a collector.
//!
//! `cargo run -p tracing-heph --features tokio --example tasks -- tasks.heph`, then `anytrace info tasks.heph`. With
//! `tcp://127.0.0.1:4600` or `udp://127.0.0.1:4600` instead of a file it sends to a collector there.
//!
//! With `RUSTFLAGS="--cfg tokio_unstable"` tokio says who wakes whom, and tasks have names: `anytrace heph tasks` then
//! tells waiting from waiting to be polled, and finds the two tasks that behave badly.

#![allow(unexpected_cfgs, reason = "tokio's own, which is set from outside")]

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{Instrument, info, info_span, instrument};
use tracing_heph::HephLayer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[instrument]
async fn fetch(page: u64) -> u64 {
    sleep(Duration::from_millis(1 + page % 3)).await;
    info!(bytes = page * 100, "fetched");
    page * 100
}

/// Starts a task; with a name where tokio has names.
fn start<F: Future<Output = ()> + Send + 'static>(name: &str, task: F) -> tokio::task::JoinHandle<()> {
    #[cfg(tokio_unstable)]
    return tokio::task::Builder::new().name(name).spawn(task).unwrap_or_else(|error| panic!("{name}: {error}"));
    #[cfg(not(tokio_unstable))]
    tokio::spawn(task.instrument(info_span!(parent: None, "task", name)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "tasks.heph".to_owned());
    let builder = HephLayer::builder().lives(true);
    let builder = match to.split_once("://") {
        Some(("tcp", address)) => builder.tcp(address),
        Some(("udp", address)) => builder.udp(address),
        _ => builder.file(&to).overwrite(true),
    };
    let (layer, guard) = builder.build()?;
    tracing_subscriber::registry().with(layer).init();

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let sum = runtime.block_on(async {
        let (send, mut receive) = mpsc::channel(4);
        for page in 0..8 {
            let send = send.clone();
            let task = async move {
                let bytes = fetch(page).await;
                let _ = send.send(bytes).await;
            };
            tokio::spawn(task.instrument(info_span!(parent: None, "task", page)));
        }
        drop(send);
        // Behaves badly: keeps its thread to itself.
        let hog = start("hog", async { std::thread::sleep(Duration::from_millis(1050)) });
        // And worse: gives nobody the waker by which it could be woken.
        start(
            "forgotten",
            std::future::poll_fn(|context| {
                drop(context.waker().clone());
                std::task::Poll::Pending
            }),
        );
        let mut sum = 0;
        while let Some(bytes) = receive.recv().await {
            sum += bytes;
        }
        let _ = hog.await;
        sum
    });
    // Before the runtime, which ends its tasks: what is open is written as such.
    let stats = guard.close();
    drop(runtime);
    assert_eq!(sum, 2_800);
    #[allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]
    {
        println!("{to}: {} events written, {} dropped, {} lost", stats.written, stats.dropped, stats.lost);
    }
    Ok(())
}
