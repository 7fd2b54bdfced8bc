//! Three seconds of TCP and UDP at once, faster than UDP can be taken, with every event accounted for.
//!
//! `cargo xtask soak` does the same for a minute, at the rates the project promises.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use common::{epoch, event, files, options, start};

const TIME: Duration = Duration::from_secs(3);
const STREAMS: u32 = 4;

/// Sends over a connection for a while; returns the number of events.
fn send_stream(address: SocketAddr) -> u64 {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(&epoch(1)).unwrap();
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        let batch: Vec<u8> = (sent..sent + 800).flat_map(|n| event(n % STREAMS, n / STREAMS, "soak")).collect();
        socket.write_all(&batch).unwrap();
        sent += 800;
    }
    u64::from(sent)
}

/// Sends one event per datagram, with no regard for the receiver, then once more the end of each stream.
fn send_datagrams(address: SocketAddr, is_quiet: impl Fn()) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        for n in sent..sent + 400 {
            socket.send_to(&event(n % STREAMS, n / STREAMS, "soak"), address).unwrap();
        }
        sent += 400;
    }
    // Losses at the end cannot be seen: the last events are sent when there is room again.
    is_quiet();
    for n in sent..sent + STREAMS {
        socket.send_to(&event(n % STREAMS, n / STREAMS, "last"), address).unwrap();
    }
    u64::from(sent + STREAMS)
}

#[test]
fn every_event_of_three_seconds_is_kept_or_known_to_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]);
    how.store.rotate_bytes = Some(16 << 20);
    how.store.keep = Some(2);
    let running = start(how);
    let (tcp, udp) = (running.address(0), running.address(1));
    let (by_stream, by_datagram) = std::thread::scope(|scope| {
        let stream = scope.spawn(|| send_stream(tcp));
        let quiet = || {
            let received = || running.seen.received.load(std::sync::atomic::Ordering::SeqCst);
            let mut before = u64::MAX;
            while received() != before {
                before = received();
                // Some summaries later; on a busy machine the receiver may pause for a while.
                let was = running.seen.last.lock().unwrap().as_ref().unwrap().total.elapsed;
                running.wait_for(|summary| summary.total.elapsed > was + Duration::from_secs(1));
            }
        };
        let datagrams = scope.spawn(move || send_datagrams(udp, quiet));
        (stream.join().unwrap(), datagrams.join().unwrap())
    });
    let sent = by_stream + by_datagram;
    running.wait_for(|summary| summary.total.totals.unique() + summary.total.totals.lost >= sent);
    let report = running.stop();
    let of = |kind: &str| report.sources.iter().find(|source| source.name.kind == kind).unwrap();
    assert_eq!((of("tcp").events, of("tcp").totals.lost), (by_stream, 0));
    let udp = of("udp");
    assert_eq!(udp.events + udp.totals.lost, by_datagram);
    // One event per datagram: a lost event was dropped by the kernel or here, and both count.
    assert_eq!(udp.totals.lost, report.kernel_dropped() + report.dropped.events + report.over_rate.events);
    assert_eq!((udp.totals.duplicates, report.damaged_places), (0, 0));
    assert!(files(folder.path()).len() <= 4);
}
