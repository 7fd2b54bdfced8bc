//! UDP and Unix datagrams: the captures of the corpus sent over real sockets, many senders, datagrams that are not
//! packets.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anytrace_live::{Report, SourceReport};
use common::{Running, contents, epoch, event, options, start};
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heph/corpus/net")
}

/// Sender and bytes of each datagram of a capture.
fn capture(name: &str) -> Vec<(u16, Vec<u8>)> {
    let bytes = std::fs::read(corpus().join(name)).unwrap();
    let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<6>() {
        let [p0, p1, length @ ..] = *head;
        let (datagram, after) = after.split_at(u32::from_be_bytes(length) as usize);
        found.push((u16::from_be_bytes([p0, p1]), datagram.to_vec()));
        rest = after;
    }
    found
}

/// Sends a capture, each sender by a socket of its own; returns their ports: capture to real.
fn send(running: &Running, capture: &[(u16, Vec<u8>)]) -> BTreeMap<u16, UdpSocket> {
    let mut sockets = BTreeMap::new();
    for (n, (port, datagram)) in capture.iter().enumerate() {
        let socket = sockets.entry(*port).or_insert_with(|| UdpSocket::bind("127.0.0.1:0").unwrap());
        socket.send_to(datagram, running.address(0)).unwrap();
        // A small receive buffer, if no larger one is granted, has room for a few hundred.
        if n % 64 == 63 {
            let so_far = capture[..=n].iter().filter(|(_, bytes)| bytes[0] == 0xC1).count() as u64;
            running.wait_for_received(so_far.saturating_sub(8));
        }
    }
    sockets
}

fn of_port<'r>(report: &'r Report, socket: &UdpSocket) -> &'r SourceReport {
    let peer = socket.local_addr().unwrap().to_string();
    report.sources.iter().find(|source| source.name.peer == peer).unwrap()
}

#[test]
fn every_capture_of_the_corpus_gives_its_expected_figures() {
    let expected: Value = serde_json::from_slice(&std::fs::read(corpus().join("expected.json")).unwrap()).unwrap();
    let rows: Vec<&Value> = match &expected {
        Value::Array(rows) => rows.iter().collect(),
        other => other.as_object().unwrap().values().collect(),
    };
    let rows: Vec<_> = rows.into_iter().filter(|row| row["senders"].is_array()).collect();
    assert!(rows.len() >= 5, "{expected}");
    for row in rows {
        let name = row["file"].as_str().unwrap().rsplit('/').next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let running = start(options(folder.path(), &["udp://127.0.0.1:0"]));
        let sockets = send(&running, &capture(name));
        let received = row["received"].as_u64().unwrap();
        running.wait_for_received(received);
        let report = running.stop();
        let totals = &report.totals;
        assert_eq!(totals.received, received, "{name}");
        assert_eq!(totals.duplicates, row["duplicates"].as_u64().unwrap(), "{name}");
        assert_eq!(totals.out_of_order, row["out_of_order"].as_u64().unwrap(), "{name}");
        assert_eq!(totals.lost, row["detectable_lost"].as_u64().unwrap(), "{name}");
        assert_eq!(report.events, received - totals.duplicates, "{name}");
        assert_eq!((report.kernel_dropped(), report.dropped.events, report.damaged_places), (0, 0, 0), "{name}");
        for (key, counters) in row["lost"].as_object().unwrap() {
            let (port, stream) = key.split_once('/').unwrap();
            let source = of_port(&report, &sockets[&port.parse().unwrap()]);
            let stream = source.streams.iter().find(|known| known.stream.to_string() == stream);
            let ranges = stream.map(|stream| stream.lost_ranges.clone()).unwrap_or_default();
            let lost: Vec<u64> = ranges.iter().flat_map(|&(a, n)| u64::from(a)..u64::from(a) + n).collect();
            let all: Vec<u64> = counters.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
            // Losses after the last event that arrived cannot be seen.
            let (seen, tail) = all.split_at(lost.len());
            assert_eq!(lost, seen, "{name} {key}");
            assert!(tail.len() as u64 <= row["lost_at_tail"].as_u64().unwrap(), "{name} {key}");
        }
    }
}

#[test]
fn a_cut_packet_is_never_joined_with_the_next_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["udp://127.0.0.1:0"]));
    let _sockets = send(&running, &capture("several_packets_per_datagram.dgrams"));
    running.wait_for_received(5);
    let report = running.stop();
    assert_eq!((report.events, report.damaged_places), (5, 1));
}

#[test]
fn a_sender_that_never_sent_a_packet_gets_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["udp://127.0.0.1:0"]);
    how.caps.sources = 2;
    let running = start(how);
    let to = running.address(0);
    for n in 0..50_u8 {
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[n; 100], to).unwrap();
    }
    let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for socket in &sockets {
        socket.send_to(&event(1, 0, "in"), to).unwrap();
    }
    running.wait_for(|summary| summary.total.refused() == 1 && summary.total.listeners[0].rejected == 50);
    let report = running.stop();
    assert_eq!((report.events, report.sources.len()), (2, 2));
}

#[test]
fn a_sender_that_is_silent_makes_room_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["udp://127.0.0.1:0"]);
    how.caps.sources = 1;
    how.caps.idle = Duration::from_millis(1);
    let running = start(how);
    let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut sent = 0;
    for socket in &sockets {
        // Until it finds room.
        sent += 1;
        while running.seen.events.load(std::sync::atomic::Ordering::SeqCst) < sent {
            socket.send_to(&event(1, 0, "same"), running.address(0)).unwrap();
            std::thread::yield_now();
        }
    }
    let report = running.stop();
    assert_eq!((report.events, report.files), (3, 3));
}

#[test]
fn a_writer_that_starts_again_is_no_loss_and_begins_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["udp://127.0.0.1:0"]));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let runs: [Vec<Vec<u8>>; 2] = [1, 2].map(|run| {
        let events = (0..20).map(|counter| event(1, counter, &format!("run {run}")));
        std::iter::once(epoch(run)).chain(events).collect()
    });
    for packet in runs.iter().flatten() {
        socket.send_to(packet, running.address(0)).unwrap();
    }
    running.wait_for_received(40);
    let report = running.stop();
    assert_eq!((report.events, report.totals.lost, report.totals.restarts), (40, 0, 1));
    assert_eq!(contents(folder.path()), runs.map(|run| run.concat()));
}

#[test]
fn datagrams_above_the_rate_are_dropped_and_accounted_to_the_event() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["udp://127.0.0.1:0"]);
    how.caps.rate_bytes = Some(1000);
    let running = start(how);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = 200_u32;
    for counter in 0..sent {
        socket.send_to(&event(1, counter, "fast"), running.address(0)).unwrap();
    }
    running.wait_for(|summary| {
        let total = &summary.total;
        total.events + total.over_rate.events + total.kernel_dropped() == u64::from(sent)
    });
    let report = running.stop();
    assert!(report.over_rate.events > 0);
    // The last were dropped here, so counters alone would not show them.
    assert!(report.totals.lost <= report.over_rate.events);
}

#[test]
fn unix_datagrams_are_known_by_their_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sock");
    let running = start(options(folder.path(), &[&format!("unixgram:{}", path.display())]));
    let named = UnixDatagram::bind(folder.path().join("sender")).unwrap();
    named.send_to(&event(1, 0, "named"), &path).unwrap();
    UnixDatagram::unbound().unwrap().send_to(&event(1, 1, "unnamed"), &path).unwrap();
    running.wait_for_received(2);
    let report = running.stop();
    let peers: Vec<_> = report.sources.iter().map(|source| source.name.peer.clone()).collect();
    assert_eq!(peers, [format!("process {}", std::process::id())]);
    assert!(!path.exists());
}
