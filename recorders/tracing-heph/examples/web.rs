//! A server with two threads, as its tasks are recorded: requests that query and render, and a heartbeat.
//!
//! `cargo run -p tracing-heph --features tokio --example web -- web.heph`, then `anytrace convert web.heph -o web.pftrace`
//! for Perfetto, or `anytrace view web.heph`.

use std::time::Duration;
use tracing::{Instrument, info, info_span, instrument};
use tracing_heph::HephLayer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Keeps the processor busy.
fn work(us: u64) {
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_micros(us) {}
}

#[instrument]
async fn query(table: &'static str) {
    work(60);
    tokio::time::sleep(Duration::from_millis(2)).await;
    work(90);
    info!(rows = 12, "answered");
}
#[instrument]
async fn render(path: &str) {
    work(250);
}
async fn request(n: u64) {
    let path: &str = if n % 4 == 3 { "/orders" } else { "/" };
    let body = async {
        tokio::join!(query("users"), query("orders"));
        render(path).await;
    };
    body.instrument(info_span!("request", n, path)).await;
}
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "web.heph".to_owned());
    let (layer, guard) = HephLayer::builder().file(&to).overwrite(true).lives(true).build()?;
    tracing_subscriber::registry().with(layer).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    runtime.block_on(async {
        let mut all = Vec::new();
        for n in 0..12 {
            all.push(tokio::spawn(request(n)));
            tokio::time::sleep(Duration::from_micros(900)).await;
        }
        let heartbeat = async {
            for tick in 0..6_u64 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                work(40);
                info!(tick, "alive");
            }
        };
        all.push(tokio::spawn(heartbeat.instrument(info_span!("heartbeat"))));
        for one in all {
            let _ = one.await;
        }
    });
    drop(runtime);
    let stats = guard.close();
    #[allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]
    {
        println!("{to}: {} events written, {} dropped, {} lost", stats.written, stats.dropped, stats.lost);
    }
    Ok(())
}
