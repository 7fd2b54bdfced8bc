//! Real async programs, recorded by `tracing-heph`, that count what they record: axum with hyper, reqwest and sqlx; a
//! Redis server with its clients; spans that move between threads.
//!
//! `cargo xtask account` compares their counts with those of the recorder, the collector and `anytrace heph loss`. They do
//! what nobody would write into a test: futures that are dropped, tasks on any thread, spans of libraries.

#![allow(clippy::unwrap_used, reason = "a trial may fail by panicking")]

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::extract::{Path, State};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tracing::span::Id;
use tracing::{Event, Instrument, Subscriber, info, info_span, instrument};
use tracing_heph::HephLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Threads of each program: many more than this machine has cores.
const THREADS: usize = 64;

/// Counts what a recorder should record: runs of spans that end, and events.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Count {
    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// `trials PROGRAM DESTINATION NUMBER [ack=BYTES]`.
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name: &str| arguments.next().ok_or(format!("no {name}"));
    let (program, to, number): (_, _, u64) = (next("program")?, next("destination")?, next("number")?.parse()?);
    let mut builder = match to.split_once("://") {
        Some(("tcp", address)) => HephLayer::builder().tcp(address),
        _ => HephLayer::builder().file(&to),
    };
    if let Some(bytes) = arguments.next().as_deref().and_then(|word| word.strip_prefix("ack=")) {
        builder = builder.acknowledged(bytes.parse()?);
    }
    let (layer, guard) = builder.close_timeout(Duration::from_secs(60)).build()?;
    let count = Count::default();
    tracing_subscriber::registry().with(count.clone()).with(layer).init();
    match program.as_str() {
        "web" => runtime().block_on(web(number)),
        "redis" => runtime().block_on(redis(number)),
        "moved" => moved(number),
        other => return Err(format!("no program is called {other}").into()),
    }
    let stats = guard.close();
    let counted = count.0.load(Ordering::Relaxed);
    println!(
        "{}",
        serde_json::json!({
            "counted": counted,
            "recorded": stats.recorded,
            "written": stats.written,
            "dropped": stats.dropped,
            "lost": stats.lost,
        })
    );
    Ok(())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().unwrap()
}

#[instrument(skip(pool))]
async fn answer(State(pool): State<SqlitePool>, Path(id): Path<i64>) -> String {
    let (text,): (String,) =
        sqlx::query_as("select text from words where id = ?").bind(id % 100).fetch_one(&pool).await.unwrap();
    let doubled = tokio::spawn(double(id).in_current_span()).await.unwrap();
    format!("{text} {doubled}")
}

#[instrument(ret)]
async fn double(id: i64) -> i64 {
    tokio::time::sleep(Duration::from_micros(200)).await;
    tokio::task::yield_now().await;
    tracing::debug!(id, "half of it is done");
    id * 2
}

/// Sixteen clients ask a web server with a database, half of them by HTTP/2.
async fn web(requests: u64) {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    sqlx::query("create table words(id integer primary key, text text)").execute(&pool).await.unwrap();
    for id in 0..100_i64 {
        sqlx::query("insert into words values(?, ?)").bind(id).bind(format!("word {id}")).execute(&pool).await.unwrap();
    }
    let app = axum::Router::new()
        .route("/words/{id}", axum::routing::get(answer))
        .layer(tower_http::trace::TraceLayer::new_for_http())
        .with_state(pool);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut clients = JoinSet::new();
    for number in 0..16_u64 {
        let ask = async move {
            let builder = reqwest::Client::builder().no_proxy();
            let builder = if number % 2 == 0 { builder.http2_prior_knowledge() } else { builder };
            let client = builder.build().unwrap();
            for id in 0..requests / 16 {
                let text =
                    client.get(format!("http://{address}/words/{id}")).send().await.unwrap().text().await.unwrap();
                assert_eq!(text, format!("word {} {}", id % 100, id * 2));
            }
        };
        clients.spawn(ask.instrument(info_span!("client", number)));
    }
    clients.join_all().await;
    server.abort();
    let _ = server.await;
}

/// Thirty-two clients set and get keys.
async fn redis(commands: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(mini_redis::server::run(listener, async {
        let _ = ended.await;
    }));
    let mut clients = JoinSet::new();
    for client in 0..32_u64 {
        clients.spawn(async move {
            let mut connection = mini_redis::client::connect(address).await.unwrap();
            for number in 0..commands / 64 {
                let key = format!("{client}.{number}");
                connection.set(&key, "value".into()).await.unwrap();
                assert_eq!(connection.get(&key).await.unwrap().as_deref(), Some(&b"value"[..]));
            }
        });
    }
    clients.join_all().await;
    let _ = ends.send(());
    let _ = server.await;
}

/// Spans are made on one thread, entered on another and closed there, with a field that is recorded late.
fn moved(spans: u64) {
    let (sends, received) = mpsc::channel();
    let received = Arc::new(Mutex::new(received));
    let makers = (0..THREADS as u64 / 2).map(|maker| {
        let sends = sends.clone();
        std::thread::spawn(move || {
            for number in 0..spans / (THREADS as u64 / 2) {
                let span = info_span!("moved", maker, number, late = tracing::field::Empty);
                span.in_scope(|| {});
                sends.send(span).unwrap();
            }
        })
    });
    let makers: Vec<_> = makers.collect();
    drop(sends);
    let takers = (0..THREADS / 2).map(|taker| {
        let received = Arc::clone(&received);
        std::thread::spawn(move || {
            loop {
                let next = received.lock().unwrap().recv();
                let Ok(span) = next else { break };
                span.record("late", taker);
                span.in_scope(|| info_span!("inner").in_scope(|| info!("point")));
            }
        })
    });
    for thread in takers.collect::<Vec<_>>().into_iter().chain(makers) {
        thread.join().unwrap();
    }
}
