//! `cargo xtask soak`: a collector under load for a minute, with every event accounted for.
//!
//! One sender on TCP, one on UDP with one event a datagram, each at its rate. What was sent is known to the event, so
//! what the collector kept and what it says was lost must add up to it; and what was lost on the way over loopback must
//! be what the kernel and the collector say they dropped.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use crate::shell::{cargo, root, run as run_command};

/// Events a second: above what is promised.
const TCP_RATE: u64 = 220_000;
const UDP_RATE: u64 = 110_000;

/// What must be reached.
const TCP_AT_LEAST: f64 = 200_000.0;
const UDP_AT_LEAST: f64 = 100_000.0;

const STREAMS: u64 = 8;

/// How long after the last event a few more are sent that show what was lost before them.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let seconds = match arguments {
        [] => 60,
        [flag, value] if flag == "--seconds" => value.parse().map_err(|_| "--seconds takes a number")?,
        other => return Err(format!("soak takes --seconds N or nothing, not {}", other.join(" "))),
    };
    run_command(cargo().args(["build", "--quiet", "--profile", "dist", "--locked", "--package", "anytrace"]))?;
    let folder = root().join("target/soak");
    let _ = std::fs::remove_dir_all(&folder);
    let report = soak(&folder, Duration::from_secs(seconds));
    let _ = std::fs::remove_dir_all(&folder);
    report
}

fn soak(folder: &std::path::Path, time: Duration) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut command = Command::new(root().join("target/dist/anytrace"));
    command.args(["heph", "collect", "--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0"]);
    command.args(["--summary", "json", "--rotate-bytes", "64M", "--keep", "2", "-o"]).arg(folder);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let first = lines.next().ok_or("the collector said nothing")?.map_err(failed)?;
    let first: Value = serde_json::from_str(&first).map_err(|error| error.to_string())?;
    let address = |n: usize| -> Option<SocketAddr> { first["addresses"][n].as_str()?.split_once("//")?.1.parse().ok() };
    let (tcp, udp) = (address(0).ok_or("no address")?, address(1).ok_or("no address")?);
    let by_stream = std::thread::spawn(move || send_stream(tcp, time));
    let by_datagram = std::thread::spawn(move || send_datagrams(udp, time));
    let id = child.id();
    let ender = std::thread::spawn(move || {
        let sent = (by_stream.join(), by_datagram.join());
        std::thread::sleep(QUIET);
        let _ = Command::new("sh").args(["-c", &format!("kill -INT {id}")]).status();
        sent
    });
    let mut last = Value::Null;
    for line in lines {
        last = serde_json::from_str(&line.map_err(failed)?).map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(failed)?;
    let (by_stream, by_datagram) = ender.join().map_err(|_| "a sender failed")?;
    let tcp = by_stream.map_err(|_| "the TCP sender failed")?.map_err(failed)?;
    let udp = by_datagram.map_err(|_| "the UDP sender failed")?.map_err(failed)?;
    if !status.success() {
        return Err(format!("the collector: {status}"));
    }
    judge(&last, tcp, udp)
}

/// Events and the time they took.
#[derive(Clone, Copy)]
struct Sent {
    events: u64,
    seconds: f64,
}

fn judge(report: &Value, tcp: Sent, udp: Sent) -> Result<(), String> {
    let of = |kind: &str, key: &str| {
        let sources = report["sources"].as_array().into_iter().flatten();
        sources.filter(|source| source["kind"] == kind).filter_map(|source| source[key].as_u64()).sum::<u64>()
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let dropped = number(&report["kernel_dropped_datagrams"])
        + number(&report["queue_dropped"]["events"])
        + number(&report["over_rate_dropped"]["events"]);
    println!("| way | sent | a second | kept | lost, by counters | dropped by kernel and collector |");
    println!("|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for (kind, sent, least) in [("tcp", tcp, TCP_AT_LEAST), ("udp", udp, UDP_AT_LEAST)] {
        let (kept, lost) = (of(kind, "events"), of(kind, "lost"));
        let rate = sent.events as f64 / sent.seconds;
        let dropped = if kind == "udp" { dropped } else { 0 };
        println!("| {kind} | {} | {rate:.0} | {kept} | {lost} | {dropped} |", sent.events);
        if kept + lost != sent.events {
            wrong.push(format!("{kind}: {kept} kept and {lost} lost are not {} sent", sent.events));
        }
        if lost != dropped {
            wrong.push(format!("{kind}: {lost} lost, {dropped} dropped"));
        }
        if rate < least {
            wrong.push(format!("{kind}: {rate:.0} events a second of {least:.0}"));
        }
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu = seconds(usage.user_time()) + seconds(usage.system_time());
    println!("\ncollector: {cpu:.1} s of CPU, peak of any child {:.1} MiB", usage.max_rss() as f64 / 1024.0);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Calls `send` with the numbers of the events that are due, a thousand times a second.
fn paced(rate: u64, time: Duration, mut send: impl FnMut(u64, u64) -> std::io::Result<()>) -> std::io::Result<Sent> {
    let start = Instant::now();
    let mut sent = 0;
    loop {
        let passed = start.elapsed();
        if passed >= time {
            return Ok(Sent { events: sent, seconds: passed.as_secs_f64() });
        }
        let due = (passed.as_secs_f64() * rate as f64) as u64;
        // After a pause the rest is made good little by little.
        let until = due.min(sent + rate / 100);
        send(sent, until)?;
        sent = until;
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send_stream(address: SocketAddr, time: Duration) -> std::io::Result<Sent> {
    let mut socket = TcpStream::connect(address)?;
    let mut bytes = Vec::new();
    paced(TCP_RATE, time, |from, to| {
        bytes.clear();
        (from..to).for_each(|n| event(&mut bytes, n));
        socket.write_all(&bytes)
    })
}

fn send_datagrams(address: SocketAddr, time: Duration) -> std::io::Result<Sent> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut bytes = Vec::new();
    let mut one = |n: u64| {
        bytes.clear();
        event(&mut bytes, n);
        socket.send_to(&bytes, address).map(|_| ())
    };
    let mut sent = paced(UDP_RATE, time, |from, to| (from..to).try_for_each(&mut one))?;
    // Without these, losses at the very end could not be seen.
    std::thread::sleep(QUIET);
    (sent.events..sent.events + STREAMS).try_for_each(&mut one)?;
    sent.events += STREAMS;
    Ok(sent)
}

/// Event number `n` of all streams together.
fn event(out: &mut Vec<u8>, n: u64) {
    let names = ["Polling for OS events", "Running thread-local process", "handling request"];
    let name = names[(n % 3) as usize].as_bytes();
    let words = [0xC1FC_1FB7, 42 + name.len() as u32, (n % STREAMS) as u32, (n / STREAMS) as u32];
    words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    let start = n * 400;
    [0, start, start + 300 + n * 37 % 5000].iter().for_each(|word: &u64| out.extend_from_slice(&word.to_be_bytes()));
    out.extend_from_slice(&(name.len() as u16).to_be_bytes());
    out.extend_from_slice(name);
}
