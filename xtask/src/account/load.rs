//! What a collector must bear: a minute of events while it is killed again and again, thousands of connections that mean
//! no good, and a million streams.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Bench;
use super::packets::event_of;
use super::programs::{Collector, Running};

/// Events a second of the soak that must be reached.
const RATE: u64 = 200_000;

/// Most memory of a collector, in KiB.
const MEMORY_KIB: u64 = 100 << 10;

/// 200,000 events a second while the collector is killed every few seconds: with acknowledgements nothing is lost.
pub(super) fn killed_soak(bench: &Bench) -> Result<String, String> {
    let (time, lives) = if bench.scale.is_full { (60, 10) } else { (6, 2) };
    let (out, until) = (bench.folder.join("out"), bench.folder.join("stop"));
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &["--ack"])?;
    let address = collector.address.clone();
    let option = format!("until={}", until.display());
    // Each thread sleeps longer than it is told to: more than the rate is asked for.
    let more = ["pause=1500", "close=60000", "ack=64000000", "memory=128000000", option.as_str()];
    let began = Instant::now();
    let running = bench.program(&address, u64::from(u32::MAX), &more)?;
    let mut collections = 1;
    while began.elapsed() < Duration::from_secs(time) {
        let life = Instant::now();
        collector.wait_for(|_| life.elapsed() > Duration::from_secs(lives))?;
        if began.elapsed() < Duration::from_secs(time) {
            collector.running.kill()?;
            collector = bench.collector(&out, &address, &["--ack", "--append"])?;
            collections += 1;
        }
    }
    fs::write(&until, "").map_err(|error| error.to_string())?;
    let recorded_in = began.elapsed();
    let program = running.counted()?;
    let report = collector.report(true)?;
    let lost = report["detectable_lost"].as_u64().unwrap_or(u64::MAX);
    let rate = program.counted * 1000 / u64::try_from(recorded_in.as_millis()).unwrap_or(1).max(1);
    if lost + program.dropped + program.lost > 0 {
        return Err(format!("{lost} lost of {program:?} in {collections} collections"));
    }
    if bench.scale.is_full && rate < RATE {
        return Err(format!("{rate} events a second: too slow to say anything"));
    }
    let row = bench.judge(&program, &[&report], &[&out])?;
    println!("{rate} events a second, {collections} collections");
    Ok(row)
}

/// A recorder among connections that send nothing, anything, or half of a packet.
pub(super) fn hostile(bench: &Bench) -> Result<String, String> {
    let (connections, events) = if bench.scale.is_full { (10_000, 250_000) } else { (1000, 10_000) };
    let out = bench.folder.join("out");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &[])?;
    let to = collector.socket()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hostile = scope.spawn(|| knock(to, connections, &is_over));
        // They are many when it comes.
        std::thread::sleep(Duration::from_millis(200));
        let running = bench.program(&collector.address, events, &["pause=1000", "close=60000"])?;
        let program = scope.spawn(|| running.counted());
        // Its summaries are read meanwhile, or it would wait.
        let is_closed = |value: &serde_json::Value| value["sessions"][0]["closed"] == true;
        let waited = collector.wait_for(|value| is_closed(value) && hostile.is_finished());
        is_over.store(true, Ordering::Relaxed);
        let failed = |_| "a thread failed".to_owned();
        let (program, knocked) = (program.join().map_err(failed)??, hostile.join().map_err(failed)?);
        waited?;
        let report = collector.report(false)?;
        let lost = report["detectable_lost"].as_u64().unwrap_or(u64::MAX);
        if lost + program.dropped + program.lost > 0 {
            return Err(format!("{lost} lost of {program:?}, {knocked} connections"));
        }
        bench.judge(&program, &[&report], &[&out])
    })
}

/// Connects so many times, and keeps some hundred open.
fn knock(to: SocketAddr, connections: u64, is_over: &AtomicBool) -> u64 {
    let mut open = std::collections::VecDeque::new();
    let mut knocked = 0;
    while knocked < connections && !is_over.load(Ordering::Relaxed) {
        let Ok(mut socket) = TcpStream::connect_timeout(&to, Duration::from_secs(5)) else { continue };
        knocked += 1;
        let sent = match knocked % 4 {
            0 => Ok(0),
            1 => socket.write(b"GET / HTTP/1.1\r\n\r\n"),
            2 => socket.write(&[0x75; 4096]),
            _ => socket.write(&event_of(1, 0)[..20]),
        };
        // Refused at once, or not.
        drop(sent);
        open.push_back(socket);
        if open.len() > 400 {
            open.pop_front();
        }
    }
    knocked
}

/// A million streams of one sender, and the memory of the collector.
pub(super) fn streams(bench: &Bench) -> Result<String, String> {
    let streams: u32 = if bench.scale.is_full { 1_000_000 } else { 200_000 };
    let out = bench.folder.join("out");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &[])?;
    let mut socket = TcpStream::connect(collector.socket()?).map_err(|error| error.to_string())?;
    let mut packets = Vec::new();
    for stream in 0..streams {
        packets.extend_from_slice(&event_of(stream, 0));
        if packets.len() > 1 << 16 {
            socket.write_all(&packets).map_err(|error| error.to_string())?;
            packets.clear();
        }
    }
    socket.write_all(&packets).map_err(|error| error.to_string())?;
    collector.wait_for(|value| value["events"].as_u64() == Some(u64::from(streams)))?;
    let kib = peak_kib(&collector)?;
    let report = collector.report(false)?;
    if kib > MEMORY_KIB || report["events"].as_u64() != Some(u64::from(streams)) {
        return Err(format!("{kib} KiB, {} events", report["events"]));
    }
    Ok(format!("{streams} | {streams} | | | | {} MiB at most", kib >> 10))
}

/// The most memory that a collector has had, in KiB.
fn peak_kib(collector: &Collector) -> Result<u64, String> {
    let Running(child) = &collector.running;
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).ok_or_else(|| "no number".to_owned())
}
