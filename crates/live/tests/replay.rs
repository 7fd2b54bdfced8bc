//! A replay sends what was recorded.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anytrace_core::{Collect, Error, Kind};
use anytrace_live::{Destination, Endpoint, OnDamage, ReplayOptions, ReplayReport, Rounds, Speed, replay};
use common::{contents, epoch, event, options, start, timed, trace};

fn written(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("in.heph");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn fast() -> ReplayOptions {
    ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() }
}

fn sent(path: &Path, to: Destination<'_>, how: &ReplayOptions) -> Result<ReplayReport, Error> {
    replay(path, to, how, &AtomicBool::new(false), &mut |_| {}, &mut Collect::default())
}

fn to_bytes(path: &Path, how: &ReplayOptions) -> (Vec<u8>, Result<ReplayReport, Error>) {
    let mut out = Vec::new();
    let report = sent(path, Destination::Writer(&mut out), how);
    (out, report)
}

#[test]
fn the_bytes_are_those_of_the_recording_and_the_epoch_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1, 500);
    let (out, report) = to_bytes(&written(folder.path(), &bytes), &fast());
    assert_eq!(out, bytes);
    let report = report.unwrap();
    assert_eq!((report.packets, report.events, report.bytes), (501, 500, bytes.len() as u64));
    let late = [event(1, 0, "a"), epoch(3), event(1, 1, "b"), epoch(4)];
    let (out, _) = to_bytes(&written(folder.path(), &late.concat()), &fast());
    assert_eq!(out, [&late[1][..], &late[0], &late[2], &late[3]].concat());
}

#[test]
fn timing_is_kept_and_divided_by_the_speed() {
    let folder = tempfile::tempdir().unwrap();
    let ms = 1_000_000;
    let ends = [500, 600, 550, 900];
    let events: Vec<u8> = (0..4).zip(ends).flat_map(|(n, end)| timed(1, n, 0, end * ms, "e")).collect();
    let path = written(folder.path(), &events);
    for (speed, least) in [(1.0, 400), (4.0, 100)] {
        let began = Instant::now();
        let (out, report) = to_bytes(&path, &ReplayOptions { speed: Speed::Times(speed), ..fast() });
        assert!(began.elapsed() >= Duration::from_millis(least - 2), "{speed}: {:?}", began.elapsed());
        assert_eq!(out, events);
        assert_eq!(report.unwrap().events, 4);
    }
}

#[test]
fn a_range_of_times_is_sent_with_its_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &trace(1, 10));
    let how = ReplayOptions { from_ns: 2_500, to_ns: Some(4_500), ..fast() };
    let (out, report) = to_bytes(&path, &how);
    assert_eq!(out, [epoch(7), event(1, 2, "poll"), event(1, 3, "poll")].concat());
    assert_eq!(report.unwrap().left_out, 8);
}

#[test]
fn a_damaged_recording_is_refused_before_anything_is_sent_unless_damage_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = [epoch(1), event(1, 0, "a"), b"garbage".to_vec(), event(1, 1, "b")];
    let path = written(folder.path(), &bytes.concat());
    let (out, report) = to_bytes(&path, &fast());
    assert_eq!((out.len(), report.unwrap_err().kind()), (0, Kind::Malformed));
    let (out, report) = to_bytes(&path, &ReplayOptions { damage: OnDamage::Skips, ..fast() });
    assert_eq!(out, [&bytes[0][..], &bytes[1], &bytes[3]].concat());
    assert_eq!(report.unwrap().damaged, 1);
}

#[test]
fn datagrams_contain_complete_packets_and_are_no_longer_than_asked() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1, 100);
    let path = written(folder.path(), &bytes);
    for most in [1, 100, 300, 1472] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = Destination::Address(Endpoint::Udp(socket.local_addr().unwrap()));
        let report = sent(&path, to, &ReplayOptions { datagram_bytes: most, ..fast() }).unwrap();
        let one = event(1, 0, "poll").len();
        let (mut room, mut all) = ([0; 65_536], Vec::new());
        for _ in 0..report.datagrams {
            let got = socket.recv(&mut room).unwrap();
            assert!(got <= most.max(one), "{got} of {most}");
            assert!(room[..4] == [0xC1, 0xFC, 0x1F, 0xB7] || room[..4] == [0x75, 0xD1, 0x1D, 0x4D]);
            all.extend_from_slice(&room[..got]);
        }
        assert_eq!(all, bytes);
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1, 60_000);
    let path = written(folder.path(), &bytes);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = Destination::Address(Endpoint::Tcp(listener.local_addr().unwrap()));
    let reader = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let (mut all, mut room) = (Vec::new(), [0; 5000]);
        loop {
            match socket.read(&mut room).unwrap() {
                0 => return all,
                got => all.extend_from_slice(&room[..got]),
            }
            std::thread::yield_now();
        }
    });
    sent(&path, to, &fast()).unwrap();
    assert_eq!(reader.join().unwrap(), bytes);
}

#[test]
fn nobody_there_and_a_receiver_that_goes_away_are_failures() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &trace(1, 60_000));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let goes = std::thread::spawn(move || drop(listener.accept().unwrap()));
    // Buffers may take one round before it shows that nobody reads them.
    let endless = ReplayOptions { rounds: Rounds::Endless, ..fast() };
    let error = sent(&path, Destination::Address(Endpoint::Tcp(address)), &endless).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    assert_ne!(error.io_kind(), Some(std::io::ErrorKind::BrokenPipe), "that would be a closed pipe: exit 0");
    goes.join().unwrap();
    assert!(sent(&path, Destination::Address(Endpoint::Tcp(address)), &fast()).is_err());
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = sent(&path, Destination::Address(Endpoint::Udp(nobody)), &fast()).unwrap();
    assert!(report.refused > 0);
}

#[test]
fn a_packet_that_fits_no_datagram_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut long = event(1, 0, "long");
    for _ in 0..2 {
        long.extend_from_slice(b"\x00\x01s\x04\x90\x00");
        long.extend(vec![b'x'; 0x9000]);
    }
    let size = long.len() as u32;
    long[4..8].copy_from_slice(&size.to_be_bytes());
    let path = written(folder.path(), &long);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = sent(&path, Destination::Address(Endpoint::Udp(socket.local_addr().unwrap())), &fast()).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert_eq!(to_bytes(&path, &fast()).0, long);
}

#[test]
fn rounds_without_end_are_stopped_and_begin_with_the_epoch_each() {
    struct StopsAfter<'s>(Vec<u8>, usize, &'s AtomicBool);
    impl std::io::Write for StopsAfter<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend_from_slice(bytes);
            if self.0.len() >= self.1 {
                self.2.store(true, Ordering::SeqCst);
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1, 5);
    let path = written(folder.path(), &bytes);
    let stop = AtomicBool::new(false);
    let mut out = StopsAfter(Vec::new(), 200_000, &stop);
    let how = ReplayOptions { rounds: Rounds::Endless, ..fast() };
    let to = Destination::Writer(&mut out);
    let report = replay(&path, to, &how, &stop, &mut |_| {}, &mut Collect::default()).unwrap();
    assert!(report.was_stopped && report.rounds > 100);
    assert!(out.0.chunks(bytes.len()).all(|round| bytes.starts_with(round)));
}

#[test]
fn a_collection_of_a_replay_is_the_recording() {
    for scheme in ["tcp", "udp"] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = trace(4, 300);
        let path = written(folder.path(), &bytes);
        let running = start(options(folder.path(), &[&format!("{scheme}://127.0.0.1:0")]));
        let to = Destination::Address(running.addresses[0].parse().unwrap());
        sent(&path, to, &fast()).unwrap();
        running.wait_for_received(300);
        let report = running.stop();
        assert_eq!((report.events, report.totals.lost), (300, 0));
        assert_eq!(contents(folder.path()), [bytes], "{scheme}");
    }
}

#[test]
fn a_receiver_that_lets_go_of_a_connection_before_its_end_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &trace(1, 500));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = || Destination::Address(Endpoint::Tcp(listener.local_addr().unwrap()));
    std::thread::scope(|scope| {
        // One that reads all, and one that ends the connection without reading anything.
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            drop(stream);
            let (stream, _) = listener.accept().unwrap();
            let mut first = [0];
            stream.peek(&mut first).unwrap();
        });
        assert_eq!(sent(&path, to(), &fast()).unwrap().events, 500);
        let error = sent(&path, to(), &fast()).unwrap_err();
        assert!(error.to_string().contains("cannot send to tcp://127.0.0.1"), "{error}");
    });
}

#[test]
fn events_arrive_when_they_are_due_whatever_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    // Four threads that wrote what they had gathered in 100 ms, one after another.
    let ns = |n: u32, stream: u32| u64::from(n) * 500_000 + u64::from(stream) * 125_000;
    let mut bytes = epoch(7);
    for chunk in 0..5 {
        for stream in 0..4 {
            for n in chunk * 200..(chunk + 1) * 200 {
                bytes.extend(timed(stream, n, 0, ns(n, stream), "e"));
            }
        }
    }
    let path = written(folder.path(), &bytes);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let to = Endpoint::Udp(socket.local_addr().unwrap());
    let sender = std::thread::spawn(move || {
        let how = ReplayOptions { datagram_bytes: 1, ..ReplayOptions::default() };
        sent(&path, Destination::Address(to), &how).unwrap()
    });
    let (mut arrivals, mut packet) = (Vec::new(), [0; 2000]);
    while arrivals.len() < 4000 {
        let got = socket.recv(&mut packet).unwrap();
        let now = Instant::now();
        if got == 43 {
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            arrivals.push((word(8), word(12), now));
        }
    }
    let report = sender.join().unwrap();
    assert_eq!(report.events, 4000);
    let first = arrivals[0].2;
    let due = |stream, n| Duration::from_nanos(ns(n, stream));
    let mut late: Vec<Duration> =
        arrivals.iter().map(|(stream, n, at)| at.duration_since(first).saturating_sub(due(*stream, *n))).collect();
    late.sort();
    // Half in a millisecond and 99 of a hundred in 5 on an idle machine; tests run beside others.
    assert!(late[late.len() / 2] < Duration::from_millis(20), "{:?}", late[late.len() / 2]);
    assert!(report.late.p50_ns < 20_000_000 && report.late.p50_ns <= report.late.p99_ns, "{:?}", report.late);
    println!("late p50 {:?} p99 {:?}, by its own count {:?}", late[2000], late[3960], report.late);
    let of_one: Vec<u32> = arrivals.iter().filter(|(stream, ..)| *stream == 2).map(|(_, n, _)| *n).collect();
    assert!(of_one.iter().copied().eq(0..1000), "a stream stays in order");
}
