//! The collector on one core: from a file, and from a connection on loopback.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::bars::{Bar, COLLECT_AT_LEAST, Unit};
use super::measure::{Usage, measure};
use super::{RUNS, row, size};

/// Most memory, in MiB.
const COLLECT_MIB_MAX: i64 = 64;

/// How long the collector may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Collects a trace that is there, by both ways.
pub(super) fn bench(trace: &Path, program: &Path, missed: &mut Vec<String>) -> Result<(), String> {
    let size = size(program, trace)?;
    let folder = trace.with_extension("collected");
    let (file, out) = (trace.display().to_string(), folder.display().to_string());
    let collect = |rest: &[&str]| -> Vec<String> {
        let program = program.display().to_string();
        let words = ["heph", "collect", "--rate-limit", "0", "-o", &out].into_iter().chain(rest.iter().copied());
        std::iter::once(program).chain(words.map(str::to_owned)).collect()
    };
    // All records but the epoch.
    let events = ((size.megarecords * 1e6).round() as u64).saturating_sub(1).to_string();
    for way in ["file", "tcp"] {
        let mut best: Option<Usage> = None;
        for _ in 0..RUNS {
            clear(&folder)?;
            let usage = if way == "file" {
                measure(None, &collect(&["--follow", &file, "--no-follow"]))?
            } else {
                let address = format!("tcp://127.0.0.1:{}", free_port()?);
                let sender = replay(program, &file, &address);
                let usage = measure(None, &collect(&["--listen", &address, "--max-events", &events]));
                sender.join().map_err(|_| "the sender failed")??;
                usage?
            };
            if best.is_none_or(|best| usage.cpu_s < best.cpu_s) {
                best = Some(usage);
            }
        }
        clear(&folder)?;
        let job = format!("heph heph collect from {way}");
        let bar = Bar { input: "heph", verb: &[], unit: Unit::Records, at_least: COLLECT_AT_LEAST };
        let Some(best) = best else { continue };
        let rate = row(&job, best, &size, &bar);
        if rate < COLLECT_AT_LEAST {
            missed.push(format!("{job}: {rate:.1} of {COLLECT_AT_LEAST:.1}"));
        }
        if best.peak_kib > COLLECT_MIB_MAX * 1024 {
            missed.push(format!("{job}: peak {} KiB", best.peak_kib));
        }
    }
    Ok(())
}

/// Sends the trace as fast as it is taken, once somebody listens.
fn replay(program: &Path, file: &str, address: &str) -> std::thread::JoinHandle<Result<(), String>> {
    let mut command = Command::new(program);
    command.args(["heph", "replay", file, "--speed", "max", "--to", address]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    std::thread::spawn(move || {
        let start = Instant::now();
        loop {
            let status = command.status().map_err(|error| error.to_string())?;
            if status.success() {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err("nobody took the trace".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

fn clear(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}
