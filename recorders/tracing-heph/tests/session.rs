//! What a recording says of itself: its session, its accounts, and what is sent again until it is acknowledged.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Folder, codes, read, read_sound};
use tracing_heph::Recorder;

fn point(recorder: &Recorder, n: u64) {
    recorder.point("counted").u64("n", n);
}

#[test]
fn a_trace_names_its_session_and_its_end() {
    let folder = Folder::new();
    let builder = Recorder::builder().file(folder.path()).memory_bytes(1 << 20);
    let (recorder, guard) = builder.build_recorder().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let recorder = &recorder;
            scope.spawn(move || (0..=thread).for_each(|n| point(recorder, n)));
        }
    });
    let stats = guard.close();
    assert_eq!((stats.recorded, stats.written), (6, 6));
    let trace = read_sound(&folder.path());
    let session = &trace.sessions[0];
    let program = std::env::current_exe().unwrap();
    assert_eq!(session.program, program.file_name().unwrap().to_string_lossy());
    assert_eq!((session.process, session.part), (u64::from(std::process::id()), 0));
    assert_eq!((session.memory_bytes, session.wants_acks), (1 << 20, false));
    assert!(session.recorder.starts_with("tracing-heph ") && session.start_ns == trace.epochs[0]);
    let account = trace.accounts.last().unwrap();
    assert_eq!((account.id, account.all_streams), (session.id, 3));
    let recorded: BTreeSet<u64> = account.streams.iter().map(|(_, counted)| counted.recorded).collect();
    assert_eq!(recorded, BTreeSet::from([1, 2, 3]));
    // Another recording is another session.
    let other = Folder::new();
    drop(Recorder::builder().file(other.path()).build_recorder().unwrap());
    let other = read_sound(&other.path());
    assert_ne!(other.sessions[0].id, session.id);
    assert_eq!(other.accounts[0].all.recorded, 0);
}

#[test]
fn without_a_session_the_trace_has_events_and_their_epoch() {
    let folder = Folder::new();
    let (recorder, guard) = Recorder::builder().file(folder.path()).with_session(false).build_recorder().unwrap();
    drop(recorder.point("alone"));
    drop(guard);
    let trace = read(&std::fs::read(folder.path()).unwrap());
    assert_eq!((trace.epochs.len(), trace.sessions.len(), trace.accounts.len()), (1, 0, 0));
    assert_eq!(trace.names(), ["alone"]);
}

#[test]
fn thousands_of_threads_that_come_and_go_are_all_accounted_for() {
    const THREADS: u64 = 9_000;
    let folder = Folder::new();
    let builder = Recorder::builder().file(folder.path()).flush_interval(Duration::from_millis(5));
    let (recorder, guard) = builder.build_recorder().unwrap();
    for thread in 0..THREADS {
        let recorder = recorder.clone();
        std::thread::spawn(move || point(&recorder, thread)).join().unwrap();
    }
    let stats = guard.close();
    assert_eq!((stats.recorded, stats.written), (THREADS, THREADS));
    let trace = read_sound(&folder.path());
    let accounted: BTreeSet<u32> =
        trace.accounts.iter().flat_map(|account| account.streams.iter().map(|(stream, _)| *stream)).collect();
    assert_eq!((accounted.len() as u64, trace.accounts.last().unwrap().all_streams), (THREADS, THREADS));
    // The last account need not repeat those that were said before.
    assert!(trace.accounts.iter().any(|account| !account.is_closed));
}

/// Reads from a connection, acknowledging what was read up to some bytes, until enough was read or it ends.
fn receive(stream: &mut TcpStream, most: usize, acknowledged: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 10_000];
    while bytes.len() < most {
        let room = buffer.len().min(most - bytes.len());
        match stream.read(&mut buffer[..room]) {
            Ok(0) | Err(_) => break,
            Ok(got) => bytes.extend_from_slice(&buffer[..got]),
        }
        let stored = complete(&bytes).min(acknowledged) as u64;
        if acknowledged > 0 {
            // The last one may find the connection gone.
            let _ = stream.write_all(&stored.to_be_bytes());
        }
    }
    bytes
}

/// How many of the bytes are complete packets.
fn complete(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(size) = bytes.get(at + 4..at + 8) {
        let end = at + u32::from_be_bytes(size.try_into().unwrap()) as usize;
        if end > bytes.len() {
            break;
        }
        at = end;
    }
    at
}

#[test]
fn what_was_not_acknowledged_is_sent_again_and_nothing_is_lost() {
    const EVENTS: u64 = 20_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let builder = Recorder::builder().tcp(address).acknowledged(300_000).flush_interval(Duration::from_millis(1));
    let (recorder, guard) = builder.close_timeout(Duration::from_secs(60)).build_recorder().unwrap();
    let stored = Arc::new(Mutex::new(Vec::new()));
    let kept = stored.clone();
    let receiver = std::thread::spawn(move || {
        // Connections that break: of each something was read, and only a part of that was stored.
        for (most, acknowledged) in [(50_000, 20_000), (3_000, 0), (200_000, 100_000), (usize::MAX, usize::MAX)] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let bytes = receive(&mut stream, most, acknowledged);
            let bytes = &bytes[..complete(&bytes)];
            let mut at = 0;
            while at < bytes.len() && at < acknowledged {
                at += u32::from_be_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
            }
            kept.lock().unwrap().push(bytes[..at].to_vec());
        }
    });
    for n in 0..EVENTS {
        point(&recorder, n);
        if n % 500 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let stats = guard.close();
    receiver.join().unwrap();
    assert_eq!((stats.recorded, stats.written, stats.dropped, stats.lost), (EVENTS, EVENTS, 0, 0), "{stats:?}");
    let stored = stored.lock().unwrap();
    let traces: Vec<_> = stored.iter().map(|bytes| read(bytes)).collect();
    let counters: BTreeSet<u32> =
        traces.iter().flat_map(|trace| trace.events.iter().map(|event| event.header.counter)).collect();
    assert_eq!(counters.len() as u64, EVENTS);
    assert!(traces[0].sessions[0].wants_acks);
    assert!(traces[3].accounts.last().unwrap().is_closed);
    assert_eq!(stats.renewals, 3);
}

#[test]
fn a_receiver_that_does_not_acknowledge_gets_everything_all_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let builder = Recorder::builder().tcp(address).acknowledged(1_000).close_timeout(Duration::from_secs(60));
    let (recorder, guard) = builder.build_recorder().unwrap();
    let receiver = std::thread::spawn(move || receive(&mut listener.accept().unwrap().0, usize::MAX, 0));
    (0..100).for_each(|n| point(&recorder, n));
    let stats = guard.close();
    assert_eq!((stats.written, stats.lost), (100, 0));
    assert!(stats.last_error.unwrap().contains("does not acknowledge"));
    let bytes = receiver.join().unwrap();
    assert_eq!(read(&bytes).events.len(), 100);
    assert_eq!(codes(&bytes), Vec::<String>::new());
}
