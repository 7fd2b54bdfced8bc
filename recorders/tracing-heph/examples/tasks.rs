//! Tasks of tokio that wait for each other, recorded to a file or to a collector.
//!
//! `cargo run -p tracing-heph --features tokio --example tasks -- tasks.heph`, then `anytrace info tasks.heph`. With
//! `tcp://127.0.0.1:4600` or `udp://127.0.0.1:4600` instead of a file it sends to a collector there.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{Instrument, info, info_span, instrument};
use tracing_heph::{HephLayer, Substream};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[instrument]
async fn fetch(page: u64) -> u64 {
    sleep(Duration::from_millis(1 + page % 3)).await;
    info!(bytes = page * 100, "fetched");
    page * 100
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "tasks.heph".to_owned());
    let builder = HephLayer::builder().lives(true).with_thread_name(true).substream(Substream::TokioTask);
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
        for page in 0..20 {
            let send = send.clone();
            let task = async move {
                let bytes = fetch(page).await;
                let _ = send.send(bytes).await;
            };
            tokio::spawn(task.instrument(info_span!(parent: None, "task", page)));
        }
        drop(send);
        let mut sum = 0;
        while let Some(bytes) = receive.recv().await {
            sum += bytes;
        }
        sum
    });
    drop(runtime);

    let stats = guard.close();
    assert_eq!(sum, 19_000);
    #[allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]
    {
        println!("{to}: {} events written, {} dropped, {} lost", stats.written, stats.dropped, stats.lost);
    }
    Ok(())
}
