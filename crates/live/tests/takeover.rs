//! Recordings that name their session, over connections, restarts of the collector and full disks.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anytrace_live::{CollectOptions, Earlier, EndOfFile, Report, SessionLoss};
use common::{epoch, event, files, index, metadata, options, start};

/// An attribute with a number, as it lies in a packet.
fn number(name: &str, value: u64) -> Vec<u8> {
    [&(name.len() as u16).to_be_bytes(), name.as_bytes(), &[1], &value.to_be_bytes()].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| (text.len() as u16).to_be_bytes();
    [&length(name), name.as_bytes(), &[4], &length(value), value.as_bytes()].concat()
}

fn numbers(name: &str, values: &[u64]) -> Vec<u8> {
    let mut out = [&(name.len() as u16).to_be_bytes(), name.as_bytes(), &[0x81]].concat();
    out.extend_from_slice(&(values.len() as u16).to_be_bytes());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_be_bytes()));
    out
}

fn id(session: u64) -> Vec<u8> {
    text("id", &format!("{session:032x}"))
}

/// What begins a connection.
fn head(session: u64, part: u64, wants_acks: bool) -> Vec<u8> {
    let memory = number("memory", 1 << 20);
    let value = [id(session), text("program", "prog"), number("part", part), memory, number("ack", wants_acks.into())];
    [epoch(7), metadata("anytrace.session", &value.concat())].concat()
}

/// The last account of a session with one stream.
fn end(session: u64, recorded: u64, dropped: u64) -> Vec<u8> {
    let streams = [numbers("stream", &[1]), numbers("recorded", &[recorded]), numbers("dropped", &[dropped])];
    let all = [number("all_streams", 1), number("all_recorded", recorded), number("all_dropped", dropped)];
    let value = [id(session), number("closed", 1), streams.concat(), numbers("lost", &[0]), all.concat()].concat();
    metadata("anytrace.account", &value)
}

fn events(counters: std::ops::Range<u32>) -> Vec<u8> {
    counters.flat_map(|counter| event(1, counter, "poll")).collect()
}

fn collect(folder: &Path, connections: &[Vec<u8>], change: impl FnOnce(&mut CollectOptions)) -> Report {
    let mut how = options(folder, &["tcp://127.0.0.1:0"]);
    how.store.earlier = Earlier::Continues;
    change(&mut how);
    let running = start(how);
    running.wait_for(|_| true);
    let before = packets_so_far(&running.seen.last.lock().unwrap().as_ref().unwrap().total);
    let mut received = 0;
    for bytes in connections {
        TcpStream::connect(running.address(0)).unwrap().write_all(bytes).unwrap();
        received += packets(bytes);
        running.wait_for(|summary| packets_so_far(&summary.total) >= before + received);
    }
    running.stop()
}

/// Packets received, also those that had arrived before.
fn packets_so_far(report: &Report) -> u64 {
    report.metadata + report.totals.received
}

fn packets(mut bytes: &[u8]) -> u64 {
    let mut packets = 0;
    while let Some(size) = bytes.get(4..8) {
        bytes = &bytes[u32::from_be_bytes(size.try_into().unwrap()) as usize..];
        packets += 1;
    }
    packets
}

fn only(report: &Report) -> &SessionLoss {
    assert_eq!(report.sessions.len(), 1);
    &report.sessions[0]
}

#[test]
fn connections_of_a_session_are_one_account() {
    let folder = tempfile::tempdir().unwrap();
    let first = [head(1, 0, false), events(0..100)].concat();
    // Twenty got lost with the connection, and ten that had arrived are sent again.
    let second = [head(1, 1, false), events(90..100), events(120..200), end(1, 210, 4)].concat();
    let report = collect(folder.path(), &[first, second], |_| {});
    let session = only(&report);
    assert!(session.is_closed && report.is_closed());
    let all = &session.all;
    assert_eq!((all.recorded, all.received, all.duplicates, all.lost), (210, 190, 10, 30));
    assert_eq!((all.dropped, all.lost_on_the_way(), session.parts), (4, 26, 2));
    assert_eq!(session.streams[0].missing, [(100, 20), (200, 10)]);
    assert_eq!((report.totals.lost, report.events), (30, 180), "what came twice is kept once");
}

#[test]
fn a_collection_goes_on_where_one_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let first = [head(1, 0, false), events(0..100)].concat();
    collect(folder.path(), std::slice::from_ref(&first), |_| {});
    let out = folder.path().join("out");
    // As a killed collector leaves it: the file is not closed and ends within a packet, the index is cut.
    let name = "source-0001-000001.heph";
    fs::rename(out.join(name), out.join(format!("{name}.part"))).unwrap();
    let mut file = fs::File::options().append(true).open(out.join(format!("{name}.part"))).unwrap();
    file.write_all(&event(1, 100, "poll")[..30]).unwrap();
    let line = fs::read(out.join("index.jsonl")).unwrap();
    fs::write(out.join("index.jsonl"), &line[..line.len() / 2]).unwrap();
    let second = [head(1, 1, false), events(105..200), end(1, 200, 0)].concat();
    let report = collect(folder.path(), &[second], |_| {});
    assert_eq!(fs::read(out.join(name)).unwrap(), first, "without the packet that was written in part");
    assert_eq!(files(folder.path()).len(), 2);
    let session = only(&report);
    assert_eq!((session.all.recorded, session.all.received, session.all.lost), (200, 195, 5));
    assert_eq!((report.events, report.files, report.collections), (195, 2, 2));
    let text = fs::read_to_string(out.join("index.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.iter().map(|line| line["events"].as_u64().unwrap()).collect::<Vec<_>>(), [100, 95]);
    assert_eq!(lines[0]["recovered"], true);
    // Once more, with nothing new: nothing is counted twice.
    let report = collect(folder.path(), &[], |_| {});
    assert_eq!((report.events, report.files, only(&report).all.lost), (195, 2, 5));
}

#[test]
fn a_collection_that_runs_is_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.store.earlier = Earlier::Continues;
    let running = start(how.clone());
    let mut stream = TcpStream::connect(running.address(0)).unwrap();
    stream.write_all(&[head(1, 0, false), events(0..10)].concat()).unwrap();
    running.wait_for_received(10);
    let error = start(how.clone()).join().unwrap_err();
    assert!(error.to_string().contains("in use by another collector"), "{error}");
    stream.write_all(&events(10..20)).unwrap();
    running.wait_for_received(20);
    assert_eq!(running.stop().events, 20);
    // Afterwards it is.
    assert_eq!(collect(folder.path(), &[], |_| {}).events, 20);
}

#[test]
fn a_session_keeps_as_many_files_as_requested_over_all_its_connections_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let connection = |part: u32| [head(1, part.into(), false), events(part * 10..part * 10 + 10)].concat();
    let keep = |how: &mut CollectOptions| how.store.keep = Some(3);
    for run in 0..3 {
        for part in 0..10 {
            let report = collect(folder.path(), &[connection(run * 10 + part)], keep);
            assert_eq!(only(&report).all.lost, 0);
            let expected = (run * 10 + part + 1).min(3);
            assert_eq!(files(folder.path()).len(), expected as usize, "run {run}, part {part}");
        }
    }
    let report = collect(folder.path(), &[[head(1, 30, false), end(1, 300, 0)].concat()], keep);
    // What was in the files that are gone is known from the index.
    assert_eq!((only(&report).all.received, only(&report).all.lost), (300, 0));
    assert_eq!(index(folder.path()).len(), 31);
}

#[test]
fn files_of_all_sources_have_no_more_bytes_than_they_may_and_those_removed_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let most = 40_000;
    let limit = |how: &mut CollectOptions| how.store.bytes_max = Some(most);
    let mut removed = 0;
    for run in 0..3_u32 {
        let begin = |session: u64| [head(session, run.into(), false), events(run * 500..run * 500 + 500)].concat();
        let report = collect(folder.path(), &[begin(1), begin(2), events(0..500)], limit);
        let sizes = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name().to_string_lossy().contains(".heph"));
        let bytes: u64 = sizes.map(|entry| entry.metadata().unwrap().len()).sum();
        assert!(bytes <= most && bytes > most / 2, "{bytes}");
        // Nothing that was removed is taken for lost.
        assert_eq!((report.totals.lost, report.sessions.len()), (0, 2));
        removed += report.removed_files;
        assert!(removed > 0 && report.removed_bytes > 0);
    }
    let index = fs::read_to_string(out.join("index.jsonl")).unwrap();
    let lines = index.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let listed =
        lines.map(|line| line["removed"].as_array().map_or(usize::from(line["removed"].is_string()), Vec::len));
    assert_eq!(listed.sum::<usize>() as u64, removed);
}

#[test]
fn files_of_a_certain_age_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.store.rotate_events = Some(10);
    how.store.age_max = Some(std::time::Duration::from_millis(300));
    let running = start(how);
    let mut stream = TcpStream::connect(running.address(0)).unwrap();
    stream.write_all(&[head(1, 0, false), events(0..95)].concat()).unwrap();
    running.wait_for(|summary| summary.total.removed_files == 9);
    let report = running.stop();
    // The last one is closed now.
    assert_eq!((report.events, report.totals.lost, files(folder.path()).len()), (95, 0, 1));
}

#[test]
fn what_is_stored_is_acknowledged_to_who_asks_for_it() {
    for (wants, gives) in [(true, true), (true, false), (false, true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
        how.acknowledges = gives;
        let running = start(how);
        let mut stream = TcpStream::connect(running.address(0)).unwrap();
        let sent = [head(1, 0, wants), events(0..50)].concat();
        // With half a packet, which is not acknowledged.
        stream.write_all(&[&sent[..], &event(1, 50, "poll")[..20]].concat()).unwrap();
        running.wait_for_received(50);
        let mut answer = Vec::new();
        if wants && gives {
            let mut number = [0; 8];
            while u64::from_be_bytes(number) < sent.len() as u64 {
                stream.read_exact(&mut number).unwrap();
            }
            assert_eq!(u64::from_be_bytes(number), sent.len() as u64);
            let file = fs::read(folder.path().join("out/source-0001-000001.heph.part")).unwrap();
            assert_eq!(file, sent, "it is stored");
        }
        running.stop();
        // A connection with unread bytes is reset.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"");
    }
}

#[test]
fn datagrams_before_the_session_is_known_belong_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(options(folder.path(), &["udp://127.0.0.1:0"]));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(running.address(0)).unwrap();
    for datagram in [events(0..5), events(8..10), head(1, 0, false), events(5..8), end(1, 12, 1)] {
        socket.send(&datagram).unwrap();
    }
    running.wait_for(|summary| summary.total.sessions.first().is_some_and(|session| session.is_closed));
    let report = running.stop();
    let all = &only(&report).all;
    assert_eq!((all.recorded, all.received, all.lost, all.dropped), (12, 10, 2, 1));
    assert_eq!((report.totals.received, report.totals.lost), (10, 2));
    // The index knows of all of them, too.
    let mut how = options(folder.path(), &[]);
    how.store.earlier = Earlier::Continues;
    fs::write(folder.path().join("empty.heph"), epoch(1)).unwrap();
    how.follow = vec![folder.path().join("empty.heph")];
    how.end_of_file = EndOfFile::Ends;
    let report = start(how).join().unwrap();
    assert_eq!((only(&report).all.received, only(&report).all.lost), (10, 2));
}
