//! Records events on several threads, counts them itself, and prints both: what the recording should account for.
//!
//! `cargo run -p tracing-heph --example count -- file:count.heph 100000 4`, then `anytrace heph loss count.heph`. More
//! arguments: `memory=BYTES`, `close=MILLISECONDS`, `rotate=BYTES`, `ack=BYTES`, `token=TOKEN`, `tls=HOST:PORT,AUTHORITIES`
//! in place of the destination (feature `tls`), `pause=MICROSECONDS` after every 100 events,
//! `until=FILE` to go on until the file is there,
//! `progress=FILE` for a program that is to be killed: there each thread keeps its count.

#![allow(clippy::print_stdout, reason = "it prints what it counted")]

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use tracing_heph::{Builder, HephLayer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Debug, Default)]
struct Options {
    pause: Duration,
    progress: Option<String>,
    until: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name: &str| arguments.next().ok_or(format!("no {name}"));
    let (to, events, threads) = (next("destination")?, next("events")?.parse()?, next("threads")?.parse()?);
    let mut builder = destination(HephLayer::builder(), &to)?;
    let mut options = Options::default();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("expected NAME=VALUE")?;
        match name {
            "memory" => builder = builder.memory_bytes(value.parse()?),
            "close" => builder = builder.close_timeout(Duration::from_millis(value.parse()?)),
            "rotate" => builder = builder.rotate_bytes(value.parse()?),
            "token" => builder = builder.token(value),
            #[cfg(feature = "tls")]
            "tls" => {
                let (address, authorities) = value.split_once(',').ok_or("expected tls=HOST:PORT,FILE")?;
                builder = builder.tls(address, authorities);
            }
            "ack" => builder = builder.acknowledged(value.parse()?),
            "pause" => options.pause = Duration::from_micros(value.parse()?),
            "until" => options.until = Some(value.into()),
            "progress" => options.progress = Some(value.to_owned()),
            other => return Err(format!("no option is called {other}").into()),
        }
    }
    let (layer, guard) = builder.build()?;
    tracing_subscriber::registry().with(layer).init();
    let counted: u64 = std::thread::scope(|scope| {
        let options = &options;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || record(thread, events, options))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that counts")).sum()
    });
    let stats = guard.close();
    println!(
        "{{\"counted\":{},\"recorded\":{},\"written\":{},\"dropped\":{},\"lost\":{},\"renewals\":{}}}",
        counted, stats.recorded, stats.written, stats.dropped, stats.lost, stats.renewals
    );
    Ok(())
}

fn destination(builder: Builder, to: &str) -> Result<Builder, String> {
    match to.split_once(':') {
        Some(("file", path)) => Ok(builder.file(path)),
        Some(("tcp", address)) => Ok(builder.tcp(address.trim_start_matches("//")).connect_later(true)),
        Some(("udp", address)) => Ok(builder.udp(address.trim_start_matches("//"))),
        Some(("unix", path)) => Ok(builder.unix(path).connect_later(true)),
        _ => Err(format!("{to}: expected file:, tcp:, udp: or unix:")),
    }
}

/// Records so many events, or until it is to stop; gives their number.
fn record(thread: u64, events: u64, options: &Options) -> u64 {
    let progress = options.progress.as_ref().map(|path| {
        File::options().write(true).create(true).truncate(false).open(path).expect("the file of the progress")
    });
    for n in 0..events {
        tracing::info!(n, thread, "counted");
        if let Some(progress) = &progress {
            progress.write_all_at(&(n + 1).to_ne_bytes(), thread * 8).expect("to write the progress");
        }
        if n % 100 == 99 {
            std::thread::sleep(options.pause);
            if options.until.as_ref().is_some_and(|until| until.exists()) {
                return n + 1;
            }
        }
    }
    events
}
