//! What happens on the way.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::network::{breaking, lossy};
use super::packets;
use super::{Bench, load, only_session, oracle, row, trials};

type Scenario = fn(&Bench) -> Result<String, String>;

/// All of them by name.
pub(super) const ALL: [(&str, Scenario); 21] = [
    ("a file", file),
    ("rotated files", rotated),
    ("a full disk of the recorder", full_disk),
    ("tcp", tcp),
    ("unix", unix),
    ("udp", udp),
    ("udp that loses, repeats and delays", lossy_udp),
    ("udp, counters past 2^32", wrapping_udp),
    ("the collector stops for a while", stopped),
    ("the collector is killed and started again", killed),
    ("the collector is killed, acknowledged", killed_acknowledged),
    ("connections break", breaks),
    ("two collectors one after the other", two_collectors),
    ("the program is killed", program_killed),
    ("a full disk of the collector", full_disk_of_collector),
    ("under load, killed again and again, acknowledged", load::killed_soak),
    ("thousands of other connections", load::hostile),
    ("a million streams", load::streams),
    ("a web server with a database and its clients", trials::web),
    ("a Redis server and its clients", trials::redis),
    ("spans that move between threads", trials::moved),
];

fn file(bench: &Bench) -> Result<String, String> {
    let path = bench.folder.join("count.heph");
    let program = bench.count(&format!("file:{}", path.display()), &[])?;
    bench.judge(&program, &[], &[&path])
}

fn rotated(bench: &Bench) -> Result<String, String> {
    let path = bench.folder.join("count.heph");
    let program = bench.count(&format!("file:{}", path.display()), &["rotate=100000"])?;
    bench.judge(&program, &[], &[&bench.folder])
}

/// A file that takes no more from some point on: what the recorder says is all that is known.
fn full_disk(bench: &Bench) -> Result<String, String> {
    let program = bench.count("file:/dev/full", &["close=300", "memory=1000000"]);
    // The device takes nothing, not even the beginning.
    if program.is_ok() {
        return Err("a recording to a full disk began".to_owned());
    }
    let Some(disk) = Disk::mount(bench.folder.join("disk"), "1m")? else {
        return Ok("not permitted | | | | |".to_owned());
    };
    let path = disk.0.join("count.heph");
    let program = bench.count(&format!("file:{}", path.display()), &["close=300"])?;
    let loss = bench.loss(&[&path])?;
    let session = only_session(&loss)?;
    let kept = oracle::unique_events(&[&path])?;
    let sum = program.written + program.dropped + program.lost;
    if (program.recorded, sum, program.written) != (program.counted, program.counted, kept) {
        return Err(format!("{program:?}, {kept} are in the file"));
    }
    if kept == program.counted || session["closed"] == true {
        return Err(format!("the disk had room for everything: {kept}"));
    }
    bounds(session, program.counted, program.counted, kept).map(|()| row(session, kept))
}

fn tcp(bench: &Bench) -> Result<String, String> {
    plain(bench, "tcp://127.0.0.1:0")
}

fn unix(bench: &Bench) -> Result<String, String> {
    plain(bench, &format!("unix:{}", bench.folder.join("socket").display()))
}

fn udp(bench: &Bench) -> Result<String, String> {
    plain(bench, "udp://127.0.0.1:0")
}

fn plain(bench: &Bench, listen: &str) -> Result<String, String> {
    let out = bench.folder.join("out");
    let collector = bench.collector(&out, listen, &[])?;
    let program = bench.count(&collector.address, &["pause=200"])?;
    let report = collector.report(true)?;
    bench.judge(&program, &[&report], &[&out])
}

fn lossy_udp(bench: &Bench) -> Result<String, String> {
    let out = bench.folder.join("out");
    let collector = bench.collector(&out, "udp://127.0.0.1:0", &[])?;
    let between = lossy(collector.socket()?)?;
    let program = bench.count(&format!("udp:{}", between.address), &["pause=3000"])?;
    let report = collector.report(true)?;
    if between.done.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        return Err("nothing was lost".to_owned());
    }
    bench.judge(&program, &[&report], &[&out])
}

/// A recording that goes on for so long that its counters begin again at 0, by a sender of our own.
fn wrapping_udp(bench: &Bench) -> Result<String, String> {
    let (begin, events) = (u64::from(u32::MAX) - 20_000, 40_000);
    let out = bench.folder.join("out");
    let collector = bench.collector(&out, "udp://127.0.0.1:0", &[])?;
    let between = lossy(collector.socket()?)?;
    send_past_2_32(between.address, begin, events)?;
    let report = collector.report(true)?;
    let kept = oracle::unique_events(&[&out])?;
    let loss = bench.loss(&[&out])?;
    for said in [&loss, &report] {
        let session = only_session(said)?;
        let numbers = ["recorded", "before_first_part", "lost", "doubtful"].map(|name| session[name].as_u64());
        // Those lost before the first that arrived cannot be distinguished from those before the part.
        let (before, lost) = (numbers[1].unwrap_or(0), numbers[2].unwrap_or(0));
        let is_right = before >= begin && before < begin + 1000 && before + lost + kept == begin + events;
        if numbers[0] != Some(begin + events) || !is_right || numbers[3] != Some(0) || kept == events {
            return Err(format!("recorded, before, lost, doubtful: {numbers:?}; {kept} kept of {events}"));
        }
    }
    only_session(&loss).map(|session| row(session, kept))
}

fn send_past_2_32(to: SocketAddr, begin: u64, events: u64) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    let id = 0x1234_5678_9abc;
    let head = [packets::session(id, 3), packets::account(id, begin, false)].concat();
    // Three times, as a network that loses may lose two of them.
    for _ in 0..3 {
        socket.send_to(&head, to).map_err(failed)?;
    }
    for n in (begin..begin + events).step_by(10) {
        let datagram: Vec<u8> = (n..n + 10).flat_map(packets::event).collect();
        socket.send_to(&datagram, to).map_err(failed)?;
        std::thread::sleep(Duration::from_micros(100));
    }
    let end = packets::account(id, begin + events, true);
    // With time between them: on a busy machine whole bursts find no room.
    for _ in 0..10 {
        socket.send_to(&end, to).map_err(failed)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The program goes on meanwhile, and has less memory than it records.
fn stopped(bench: &Bench) -> Result<String, String> {
    let out = bench.folder.join("out");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &[])?;
    let running = bench.program(&collector.address, 4 * bench.scale.events, &["memory=300000", "pause=100"])?;
    collector.wait_for(|value| value["events"].as_u64() > Some(1000))?;
    collector.running.signal(Signal::SIGSTOP)?;
    std::thread::sleep(Duration::from_millis(1500));
    collector.running.signal(Signal::SIGCONT)?;
    let program = running.counted()?;
    let report = collector.report(true)?;
    if program.dropped == 0 {
        return Err("nothing was dropped".to_owned());
    }
    bench.judge(&program, &[&report], &[&out])
}

fn killed(bench: &Bench) -> Result<String, String> {
    killed_with(bench, &[], &[]).map(|(row, _)| row)
}

fn killed_acknowledged(bench: &Bench) -> Result<String, String> {
    let (row, lost) = killed_with(bench, &["--ack"], &["ack=4000000"])?;
    if lost == 0 { Ok(row) } else { Err(format!("{lost} events lost")) }
}

fn killed_with(bench: &Bench, collecting: &[&str], recording: &[&str]) -> Result<(String, u64), String> {
    let out = bench.folder.join("out");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", collecting)?;
    let address = collector.address.clone();
    let until = bench.folder.join("stop");
    let option = format!("until={}", until.display());
    let more = [&["pause=4000", "close=20000", option.as_str()], recording].concat();
    let running = bench.program(&address, u64::from(u32::MAX), &more)?;
    for n in 1..=bench.scale.kills + 1 {
        let least = n * 10_000;
        collector.wait_for(|value| value["events"].as_u64() > Some(least))?;
        if n <= bench.scale.kills {
            collector.running.kill()?;
            collector = bench.collector(&out, &address, &[collecting, &["--append"]].concat())?;
        }
    }
    // Only now, as the end of the recording must find a collector.
    std::fs::write(&until, "").map_err(|error| error.to_string())?;
    let program = running.counted()?;
    let report = collector.report(true)?;
    let lost = report["detectable_lost"].as_u64().unwrap_or(u64::MAX);
    if report["collections"].as_u64() != Some(bench.scale.kills + 1) {
        return Err(format!("{} collections", report["collections"]));
    }
    Ok((bench.judge(&program, &[&report], &[&out])?, lost))
}

fn breaks(bench: &Bench) -> Result<String, String> {
    let out = bench.folder.join("out");
    let collector = bench.collector(&out, "tcp://127.0.0.1:0", &["--keep", "1000"])?;
    let between = breaking(collector.socket()?, bench.scale.breaks)?;
    let until = bench.folder.join("stop");
    let option = format!("until={}", until.display());
    let options = ["pause=2000", "close=20000", option.as_str()];
    let running = bench.program(&format!("tcp:{}", between.address), u64::from(u32::MAX), &options)?;
    let since = Instant::now();
    while between.done.load(std::sync::atomic::Ordering::SeqCst) < bench.scale.breaks {
        if since.elapsed() > Duration::from_secs(300) {
            return Err("the connections do not break".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::write(&until, "").map_err(|error| error.to_string())?;
    let program = running.counted()?;
    let report = collector.report(true)?;
    bench.judge(&program, &[&report], &[&out])
}

fn two_collectors(bench: &Bench) -> Result<String, String> {
    let (first, second) = (bench.folder.join("first"), bench.folder.join("second"));
    let mut collector = bench.collector(&first, "tcp://127.0.0.1:0", &[])?;
    let address = collector.address.clone();
    let running = bench.program(&address, bench.scale.events, &["pause=2000", "close=20000"])?;
    collector.wait_for(|value| value["events"].as_u64() > Some(2000))?;
    collector.report(false)?;
    let collector = bench.collector(&second, &address, &[])?;
    let program = running.counted()?;
    let report = collector.report(true)?;
    // Alone it knows that there was more before, and does not take it for lost.
    let session = only_session(&report)?;
    let number = |name: &str| session[name].as_u64().unwrap_or(u64::MAX);
    let kept = oracle::unique_events(&[&second])?;
    if number("before_first_part") == 0 || number("before_first_part") + number("lost") + kept != program.counted {
        return Err(format!("the second collector: {session}"));
    }
    bench.judge(&program, &[], &[&first, &second])
}

/// What it recorded is known from its own file; what it had not sent is not.
fn program_killed(bench: &Bench) -> Result<String, String> {
    let out = bench.folder.join("out");
    let progress = bench.folder.join("progress");
    let mut collector = bench.collector(&out, "tcp://127.0.0.1:0", &[])?;
    let option = format!("progress={}", progress.display());
    let running = bench.program(&collector.address, u64::from(u32::MAX), &["pause=500", &option])?;
    collector.wait_for(|value| value["events"].as_u64() > Some(5000))?;
    running.kill()?;
    std::thread::sleep(Duration::from_millis(200));
    let report = collector.report(false)?;
    let counts = std::fs::read(&progress).map_err(|error| error.to_string())?;
    let at_least: u64 = counts.as_chunks::<8>().0.iter().map(|count| u64::from_ne_bytes(*count)).sum();
    // Each thread may have recorded one event more than it wrote down.
    let at_most = at_least + bench.scale.threads;
    let loss = bench.loss(&[&out])?;
    let kept = oracle::unique_events(&[&out])?;
    for said in [&loss, &report] {
        let session = only_session(said)?;
        if session["closed"] == true {
            return Err("the session of a killed program is closed".to_owned());
        }
        bounds(session, at_least, at_most, kept)?;
    }
    only_session(&loss).map(|session| row(session, kept))
}

/// What is said to be lost is, and no more is than what is said to be possible.
fn bounds(session: &Value, at_least: u64, at_most: u64, kept: u64) -> Result<(), String> {
    let number = |name: &str| session[name].as_u64().unwrap_or(u64::MAX);
    // Without a bound any number may be missing.
    let (low, high) = (number("lost"), number("lost").saturating_add(number("tail_at_most")));
    if low > at_most - kept || high < at_least - kept {
        return Err(format!("{low} to {high} lost, by loss; {at_least} to {at_most} recorded, {kept} kept"));
    }
    Ok(())
}

/// It goes on when there is room again.
fn full_disk_of_collector(bench: &Bench) -> Result<String, String> {
    let Some(disk) = Disk::mount(bench.folder.join("disk"), "1m")? else {
        return Ok("not permitted | | | | |".to_owned());
    };
    let filler = disk.0.join("filler");
    std::fs::write(&filler, vec![0; 700_000]).map_err(|error| error.to_string())?;
    let out = disk.0.join("out");
    let collector = bench.collector(&out, "tcp://127.0.0.1:0", &["--fsync", "never"])?;
    // Less memory than what does not fit, so that the program loses some.
    let options = ["memory=262144", "pause=100", "close=20000"];
    let running = bench.program(&collector.address, 2500, &options)?;
    std::thread::sleep(Duration::from_millis(1500));
    std::fs::remove_file(&filler).map_err(|error| error.to_string())?;
    let program = running.counted()?;
    let report = collector.report(true)?;
    bench.judge(&program, &[&report], &[&out])
}

/// A small disk of its own; goes with this value.
struct Disk(PathBuf);

impl Disk {
    /// None where this user may not mount anything, as root in some containers: that is said, and no failure, because
    /// nothing could be installed to change it.
    fn mount(path: PathBuf, size: &str) -> Result<Option<Self>, String> {
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        match command.output() {
            Ok(output) if output.status.success() => Ok(Some(Self(path))),
            _ => {
                println!("full disks are left out: this user may not mount any");
                Ok(None)
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The folder is removed next, which fails where it is still a disk.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
