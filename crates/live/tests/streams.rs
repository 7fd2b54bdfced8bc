//! TCP and Unix connections: complete, in pieces, damaged, hostile, too many.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anytrace_live::EndedBy;
use common::{contents, epoch, event, index, options, start, trace};

#[test]
fn packets_of_two_senders_in_pieces_are_in_two_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.events_max = Some(500);
    let running = start(how);
    let traces = [trace(1, 200), trace(2, 300)];
    let mut sockets = [0, 1].map(|_| TcpStream::connect(running.address(0)).unwrap());
    let mut rest = traces.each_ref().map(Vec::as_slice);
    let mut step = 1;
    while rest.iter().any(|rest| !rest.is_empty()) {
        for (socket, rest) in sockets.iter_mut().zip(&mut rest) {
            step = step % 97 + 1;
            let (now, later) = rest.split_at(step.min(rest.len()));
            socket.write_all(now).unwrap();
            *rest = later;
        }
    }
    let report = running.join().unwrap();
    assert_eq!((report.ended_by, report.events, report.metadata), (EndedBy::Events, 500, 2));
    assert_eq!((report.totals.lost, report.damaged_places), (0, 0));
    let mut found = contents(folder.path());
    found.sort_by_key(Vec::len);
    assert_eq!(found, traces);
    let lines = index(folder.path());
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!((&line["version"], &line["kind"], &line["epoch_ns"]), (&1.into(), &"tcp".into(), &7.into()));
    }
}

#[test]
fn a_unix_socket_takes_streams_and_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let running = start(options(folder.path(), &[&format!("unix:{}", path.display())]));
    let mut socket = UnixStream::connect(&path).unwrap();
    socket.write_all(&trace(3, 10)).unwrap();
    running.wait_for_received(10);
    let report = running.stop();
    assert_eq!(report.sources[0].name.peer, format!("process {}", std::process::id()));
    assert_eq!(contents(folder.path()), [trace(3, 10)]);
    assert!(!path.exists());
}

#[test]
fn damage_in_a_stream_is_reported_with_its_place_and_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["tcp://127.0.0.1:0"]));
    let mut socket = TcpStream::connect(running.address(0)).unwrap();
    let mut huge = event(1, 2, "size of 4 GiB");
    huge[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    let parts: [&[u8]; 6] =
        [&epoch(1), &event(1, 0, "a"), b"GET / HTTP/1.1\r\n\r\n", &event(1, 1, "b"), &huge, &event(1, 3, "c")];
    socket.write_all(&parts.concat()).unwrap();
    running.wait_for_received(3);
    let seen = std::sync::Arc::clone(&running.seen);
    let report = running.stop();
    let damage = seen.damage.lock().unwrap();
    let reported: Vec<_> = damage.iter().map(|(_, d)| (d.code(), d.offset, d.skipped_bytes)).collect();
    assert_eq!(reported, [("heph/bad-magic", 66, 18), ("heph/size-too-big", 127, 55)]);
    assert_eq!((report.damaged_places, report.skipped_bytes, report.totals.lost), (2, 73, 1));
    assert_eq!(contents(folder.path()), [[parts[0], parts[1], parts[3], parts[5]].concat()]);
}

#[test]
fn half_a_packet_that_waits_too_long_is_damage_and_later_packets_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    // Long enough that a busy machine sends the first packet in time.
    how.caps.idle = Duration::from_secs(2);
    let running = start(how);
    let mut socket = TcpStream::connect(running.address(0)).unwrap();
    let mut long = event(1, 1, "cut");
    long[4..8].copy_from_slice(&1_000_000_u32.to_be_bytes());
    socket.write_all(&[epoch(1), event(1, 0, "a"), long, event(1, 2, "b")].concat()).unwrap();
    running.wait_for_received(2);
    // It is still connected: it has sent packets before.
    socket.write_all(&event(1, 3, "c")).unwrap();
    running.wait_for_received(3);
    let report = running.stop();
    assert_eq!((report.events, report.totals.lost, report.damaged_places), (3, 1, 1));
}

#[test]
fn a_peer_that_sends_no_packet_in_time_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.idle = Duration::from_millis(50);
    let running = start(how);
    let mut silent = TcpStream::connect(running.address(0)).unwrap();
    let mut slow = TcpStream::connect(running.address(0)).unwrap();
    slow.write_all(&event(1, 0, "x")[..20]).unwrap();
    for socket in [&mut silent, &mut slow] {
        // Closed, or reset where bytes were left unread.
        assert!(socket.read(&mut [0; 1]).is_ok_and(|n| n == 0) || socket.read(&mut [0; 1]).is_err());
    }
    let report = running.stop();
    assert_eq!((report.events, report.files), (0, 0));
    assert!(contents(folder.path()).is_empty());
}

#[test]
fn thousands_of_connections_are_refused_and_those_that_are_in_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.connections = 4;
    let running = start(how);
    let address = running.address(0);
    let mut connections: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    for (stream, socket) in (0..).zip(&mut connections) {
        socket.write_all(&event(stream, 0, "in")).unwrap();
    }
    running.wait_for_received(4);
    // Some send a packet and find no place, the others wait until they are too many, or have waited for long.
    let others: Vec<TcpStream> = (0..600)
        .map(|n| {
            let mut socket = TcpStream::connect(address).unwrap();
            if n % 3 == 0 {
                let _ = socket.write_all(&event(7, 0, "out"));
            }
            socket
        })
        .collect();
    for (stream, socket) in (0..).zip(&mut connections) {
        socket.write_all(&event(stream, 1, "still in")).unwrap();
    }
    running.wait_for_received(8);
    running.wait_for(|summary| summary.total.refused() >= 600 - 256);
    for mut socket in others {
        let _ = socket.set_read_timeout(Some(Duration::from_millis(1)));
        assert!(!socket.read(&mut [0; 1]).is_ok_and(|n| n > 0));
    }
    drop(connections);
    // There is room again as soon as the collector notices that they are gone.
    while running.seen.events.load(std::sync::atomic::Ordering::SeqCst) < 9 {
        let mut late = TcpStream::connect(address).unwrap();
        let _ = late.write_all(&event(9, 0, "room again"));
        // Until it is refused or has had its answer, which is none.
        late.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = late.read(&mut [0; 1]);
    }
    let report = running.stop();
    assert!(report.events >= 9 && report.refused() >= 344 && report.totals.lost == 0);
}

#[test]
fn a_flood_of_garbage_costs_only_its_sender() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.events_max = Some(20_000);
    let running = start(how);
    let address = running.address(0);
    let floods: Vec<_> = [0x75_u8, 0xC1, 0]
        .into_iter()
        .map(|byte| {
            std::thread::spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                // Endless magics whose sizes promise 15 MiB.
                let magic = [&0xC1FC_1FB7_u32.to_be_bytes()[..], &(15_u32 << 20).to_be_bytes()].concat();
                let garbage = if byte == 0 { magic.repeat(8192) } else { vec![byte; 65_536] };
                while socket.write_all(&garbage).is_ok() {}
            })
        })
        .collect();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(&trace(1, 20_000)).unwrap();
    let report = running.join().unwrap();
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    assert_eq!((report.events, report.totals.lost), (20_000, 0));
    assert_eq!(contents(folder.path()), [trace(1, 20_000)]);
}

#[test]
fn packets_as_long_as_allowed_arrive_and_memory_for_them_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.memory_bytes = 4 << 20;
    how.caps.packet_bytes = 1 << 20;
    let running = start(how);
    let long = |stream: u32| {
        let mut packet = event(stream, 0, "long");
        // Strings of 65,535 bytes, 15 of them.
        for _ in 0..15 {
            packet.extend_from_slice(b"\x00\x01s\x04\xff\xff");
            packet.extend(vec![b'x'; 65_535]);
        }
        let size = packet.len() as u32;
        packet[4..8].copy_from_slice(&size.to_be_bytes());
        packet
    };
    let address = running.address(0);
    let senders: Vec<_> = (0..8)
        .map(|stream| {
            let packet = long(stream);
            std::thread::spawn(move || TcpStream::connect(address).unwrap().write_all(&packet).unwrap())
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    running.wait_for_received(8);
    let report = running.stop();
    assert_eq!((report.events, report.damaged_places), (8, 0));
    let mut found = contents(folder.path());
    found.sort();
    assert_eq!(found, (0..8).map(long).collect::<Vec<_>>());
}

#[test]
fn a_stream_above_its_rate_is_read_more_slowly_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.rate_bytes = Some(2 << 20);
    how.events_max = Some(20_000);
    let running = start(how);
    let began = std::time::Instant::now();
    let mut socket = TcpStream::connect(running.address(0)).unwrap();
    let sent = trace(1, 20_000);
    socket.write_all(&sent).unwrap();
    let report = running.join().unwrap();
    assert_eq!((report.events, report.totals.lost, report.over_rate.events), (20_000, 0, 0));
    // The bytes of a quarter of a second may arrive at once.
    let least = (sent.len() as f64 - 0.25 * 2_097_152.0 - 65_536.0) / 2_097_152.0 * 0.8;
    assert!(least < 0.0 || began.elapsed().as_secs_f64() > least);
}

#[test]
fn a_connection_that_is_silent_for_long_makes_room_for_a_newcomer() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.connections = 2;
    how.caps.idle = Duration::from_millis(300);
    let running = start(how);
    let connect = |stream: u32| {
        let mut socket = TcpStream::connect(running.address(0)).unwrap();
        // One that is refused may be gone by now.
        let _ = socket.write_all(&event(stream, 0, "here"));
        socket
    };
    let (mut first, mut second) = (connect(1), connect(2));
    running.wait_for_received(2);
    // Nobody has been silent for long: the newcomer is refused.
    let mut refused = connect(3);
    running.wait_for(|summary| summary.total.refused() == 1);
    assert_eq!(refused.read(&mut [0]).unwrap_or(0), 0);
    std::thread::sleep(Duration::from_millis(400));
    second.write_all(&event(2, 1, "still here")).unwrap();
    running.wait_for_received(3);
    let _newcomer = connect(4);
    running.wait_for_received(4);
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "the one that was silent for longest has ended");
    second.write_all(&event(2, 2, "and still")).unwrap();
    running.wait_for_received(5);
    let report = running.stop();
    assert_eq!((report.events, report.refused(), report.totals.lost), (5, 1, 0));
}
