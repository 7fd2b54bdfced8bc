//! What one sender does costs no other: slow long packets, many connections, silent ones, forged addresses.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{contents, epoch, event, metadata, options, start};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

/// A packet nearly as long as any may be.
fn long() -> Vec<u8> {
    metadata("filler", &vec![7; 15 << 20])
}

/// A connection from another address of this machine.
fn from(last: u8, to: SocketAddr) -> TcpStream {
    let made: OwnedFd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(std::os::fd::AsRawFd::as_raw_fd(&made), &SockaddrIn::new(127, 0, 0, last, 0)).unwrap();
    let SocketAddr::V4(to) = to else { panic!("{to}") };
    connect(std::os::fd::AsRawFd::as_raw_fd(&made), &SockaddrIn::from(to)).unwrap();
    made.into()
}

/// True when the collector has let go of a connection.
fn is_over(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    match socket.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    }
}

#[test]
fn long_packets_that_wait_for_their_rest_delay_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["tcp://127.0.0.1:0"]));
    let long = long();
    let connect = || TcpStream::connect(running.address(0)).unwrap();
    // Memory is for one of them.
    let mut slow: Vec<TcpStream> = (0..4).map(|_| connect()).collect();
    for socket in &mut slow {
        socket.write_all(&epoch(1)).unwrap();
        socket.write_all(&long[..long.len() - 1]).unwrap();
    }
    let mut quick = connect();
    let began = Instant::now();
    quick.write_all(&[epoch(1), long.clone(), event(1, 0, "after")].concat()).unwrap();
    running.wait_for_received(1);
    let delay = began.elapsed();
    // On two idle cores this takes 30 ms.
    assert!(delay < Duration::from_secs(2), "{delay:?}");
    for (stream, socket) in (2..).zip(&mut slow) {
        socket.write_all(&[&long[long.len() - 1..], &event(stream, 0, "after")[..]].concat()).unwrap();
    }
    running.wait_for_received(5);
    let report = running.stop();
    assert_eq!((report.events, report.damaged_places, report.unfinished_bytes), (5, 0, 0));
    let contents = contents(folder.path());
    assert_eq!(contents.len(), 5);
    for bytes in contents {
        assert_eq!(bytes.len(), epoch(1).len() + long.len() + event(1, 0, "after").len());
        assert!(bytes[epoch(1).len()..].starts_with(&long));
    }
}

#[test]
fn half_a_long_packet_on_the_disk_is_damage_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["tcp://127.0.0.1:0"]));
    let long = long();
    let mut slow: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(running.address(0)).unwrap()).collect();
    for (stream, socket) in (0..).zip(&mut slow) {
        socket.write_all(&[&epoch(1), &long[..long.len() / 2], &event(stream, 0, "inside")].concat()).unwrap();
    }
    drop(slow);
    // What follows the half is found.
    running.wait_for(|summary| summary.total.events == 2);
    let report = running.stop();
    assert_eq!((report.damaged_places, report.skipped_bytes), (2, long.len() as u64 / 2 * 2));
}

#[test]
fn a_newcomer_takes_the_place_of_one_that_never_spoke_or_of_a_machine_with_many() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.connections = 3;
    let running = start(how);
    let address = running.address(0);
    let mut many: Vec<TcpStream> = (0..3).map(|_| from(2, address)).collect();
    for (stream, socket) in (0..2).zip(&mut many) {
        socket.write_all(&event(stream, 0, "first")).unwrap();
    }
    running.wait_for_received(2);
    let enter = |last: u8, stream: u32| {
        let began = Instant::now();
        loop {
            let mut socket = from(last, address);
            let _ = socket.write_all(&event(stream, 0, "newcomer"));
            std::thread::sleep(Duration::from_millis(1200));
            if !is_over(&mut socket) {
                return socket;
            }
            assert!(began.elapsed() < Duration::from_secs(20));
        }
    };
    let _first = enter(3, 10);
    // One that never sent anything had none.
    assert!(!is_over(&mut many[0]) && !is_over(&mut many[1]));
    let _second = enter(4, 11);
    assert_eq!(many[..2].iter_mut().map(is_over).filter(|over| *over).count(), 1);
    // Each machine has one place now, and nobody must go for another.
    let mut third = from(5, address);
    third.write_all(&event(12, 0, "no place")).unwrap();
    running.wait_for(|summary| summary.total.refused() > 0);
    assert!(is_over(&mut third));
    let report = running.stop();
    assert_eq!(report.totals.lost, 0);
}

#[test]
fn a_recorder_among_thousands_of_connections_that_send_nothing_or_anything_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["tcp://127.0.0.1:0"]));
    let address = running.address(0);
    let is_done = AtomicBool::new(false);
    let events = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = std::collections::VecDeque::new();
            let mut number = 0_u32;
            while !is_done.load(Ordering::Relaxed) {
                number += 1;
                if let Ok(mut socket) = TcpStream::connect(address) {
                    let _ = match number % 3 {
                        0 => Ok(0),
                        1 => socket.write(b"GET / HTTP/1.1\r\n\r\n"),
                        _ => socket.write(&event(1, 0, "cut")[..30]),
                    };
                    kept.push_back(socket);
                }
                if kept.len() > 400 {
                    kept.pop_front();
                }
            }
        });
        // They are many when it comes, and it is let in nevertheless.
        std::thread::sleep(Duration::from_millis(300));
        let mut recorder = TcpStream::connect(address).unwrap();
        recorder.write_all(&[epoch(1), event(9, 0, "victim")].concat()).unwrap();
        for counter in 1..events {
            recorder.write_all(&event(9, counter, "victim")).unwrap();
            if counter % 1000 == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        running.wait_for_received(u64::from(events));
        is_done.store(true, Ordering::Relaxed);
    });
    let report = running.stop();
    let best = report.sources.iter().map(|source| source.events).max();
    assert_eq!((best, report.totals.lost), (Some(u64::from(events)), 0));
}

#[test]
fn forged_addresses_do_not_keep_senders_of_datagrams_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["udp://127.0.0.1:0"]);
    how.caps.sources = 4;
    let running = start(how);
    let forged: Vec<_> = (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    forged.iter().for_each(|socket| {
        socket.send_to(&event(1, 0, "forged"), running.address(0)).unwrap();
    });
    running.wait_for_received(4);
    // Its idle time is a minute; a second is enough when others need the place.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for counter in 0..200 {
        socket.send_to(&event(1, counter, "sender"), running.address(0)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    running.wait_for_received(4 + 50);
    let report = running.stop();
    assert!(report.refused() > 0);
    assert_eq!(report.totals.lost, report.refused(), "what came before there was a place");
}

#[test]
fn connections_that_are_pushed_out_leave_no_memory_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.caps.memory_bytes = 4 << 20;
    let running = start(how);
    let address = running.address(0);
    // Each begins with something else and then has half of a long packet, for which memory and disk are kept; more of
    // them come than may wait, again and again.
    let mut sockets = Vec::new();
    let half = [b"no packet", &long()[..100_000]].concat();
    for n in 0..600 {
        let mut socket = TcpStream::connect(address).unwrap();
        let _ = socket.write_all(&half);
        sockets.push(socket);
        if n % 250 == 249 {
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    running.wait_for(|summary| summary.total.refused() >= 300);
    drop(sockets);
    let mut recorder = TcpStream::connect(address).unwrap();
    recorder.write_all(&[epoch(1), long(), event(9, 0, "kept")].concat()).unwrap();
    running.wait_for_received(1);
    assert_eq!(running.stop().totals.lost, 0);
}
