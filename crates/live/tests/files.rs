//! Files: rotation, their beginnings, how many are kept, which are never overwritten.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use anytrace_core::{Collect, Format, Input, OpenOptions};
use anytrace_heph::Heph;
use anytrace_live::{CollectOptions, Earlier, EndOfFile, Fsync, Report};
use common::{contents, epoch, event, files, index, metadata, options, start, trace};

/// Collects a file to its end.
fn collect_file(folder: &std::path::Path, bytes: &[u8], change: impl FnOnce(&mut CollectOptions)) -> Report {
    let path = folder.join("in.heph");
    fs::write(&path, bytes).unwrap();
    let mut how = options(folder, &[]);
    how.follow = vec![path];
    how.end_of_file = EndOfFile::Ends;
    change(&mut how);
    start(how).join().unwrap()
}

/// Every diagnostic of the checker for a trace.
fn complaints(bytes: &[u8]) -> Vec<&'static str> {
    let mut sink = Collect::default();
    let input = Input::from_bytes("x", bytes.to_vec());
    Heph.open(input, &OpenOptions::default()).unwrap().check(&mut sink).unwrap();
    sink.codes()
}

#[test]
fn files_rotate_by_size_and_each_begins_with_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let head = [epoch(5), metadata("host", b"a")].concat();
    let events: Vec<u8> = (0..100).flat_map(|counter| event(1, counter, "poll")).collect();
    let one = event(1, 0, "poll").len();
    let most = head.len() + 7 * one;
    let report = collect_file(folder.path(), &[head.clone(), events.clone()].concat(), |how| {
        how.store.rotate_bytes = Some(most as u64);
    });
    assert_eq!((report.events, report.files), (100, 15));
    let found = contents(folder.path());
    assert_eq!(found.len(), 15);
    let mut all = Vec::new();
    for (n, bytes) in found.iter().enumerate() {
        assert!(bytes.starts_with(&head) && bytes.len() <= most, "file {n}");
        all.extend_from_slice(&bytes[head.len()..]);
        // Only that the counters begin later, which is true of a part, and that the option is unknown.
        let complaints: Vec<_> = complaints(bytes).into_iter().filter(|code| *code != "heph/unknown-option").collect();
        assert!(complaints.iter().all(|code| *code == "heph/counter-starts-at"), "{complaints:?}");
    }
    assert_eq!(all, events);
    let names: Vec<_> = index(folder.path()).iter().map(|line| line["file"].as_str().unwrap().to_owned()).collect();
    assert_eq!((names[0].as_str(), names.len()), ("source-0001-000001.heph", 15));
}

#[test]
fn rotation_by_count_has_exact_boundaries() {
    for (events, per_file, expected) in [(10, 5, 2), (11, 5, 3), (1, 1, 1), (3, 1, 3), (4, 100, 1)] {
        let folder = tempfile::tempdir().unwrap();
        collect_file(folder.path(), &trace(1, events), |how| how.store.rotate_events = Some(per_file));
        let lines = index(folder.path());
        assert_eq!(lines.len(), expected, "{events} by {per_file}");
        let counts: Vec<u64> = lines.iter().map(|line| line["events"].as_u64().unwrap()).collect();
        assert!(counts.iter().rev().skip(1).all(|count| *count == per_file), "{counts:?}");
        assert_eq!(counts.iter().sum::<u64>(), u64::from(events));
    }
}

#[test]
fn a_packet_longer_than_a_file_may_be_still_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let report = collect_file(folder.path(), &trace(1, 3), |how| how.store.rotate_bytes = Some(1));
    assert_eq!((report.events, report.files), (3, 3));
}

#[test]
fn files_rotate_by_time_while_a_source_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
    how.store.rotate_after = Some(Duration::from_millis(30));
    let running = start(how);
    let mut socket = TcpStream::connect(running.address(0)).unwrap();
    for counter in 0..3 {
        // The epoch with the first event, or it might have a file to itself.
        let first = if counter == 0 { epoch(1) } else { Vec::new() };
        socket.write_all(&[first, event(1, counter, "slow")].concat()).unwrap();
        running.wait_for(|summary| summary.total.events > u64::from(counter));
        // Closed by the clock alone.
        while files(folder.path()).len() <= counter as usize {
            std::thread::yield_now();
        }
    }
    running.stop();
    let expected: Vec<_> = (0..3).map(|counter| [epoch(1), event(1, counter, "slow")].concat()).collect();
    assert_eq!(contents(folder.path()), expected);
}

#[test]
fn only_so_many_closed_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    collect_file(folder.path(), &trace(1, 50), |how| {
        how.store.rotate_events = Some(5);
        how.store.keep = Some(3);
    });
    let names: Vec<_> =
        files(folder.path()).iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["source-0001-000008.heph", "source-0001-000009.heph", "source-0001-000010.heph"]);
    let lines = index(folder.path());
    let removed = lines.iter().filter(|line| line["removed"].is_string()).count();
    assert_eq!((lines.len(), removed), (10, 7));
}

#[test]
fn an_earlier_collection_is_neither_mixed_with_nor_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    collect_file(folder.path(), &trace(1, 5), |_| {});
    let mut how = options(folder.path(), &[]);
    how.follow = vec![folder.path().join("in.heph")];
    how.end_of_file = EndOfFile::Ends;
    let error = start(how.clone()).join().unwrap_err();
    assert!(error.to_string().contains("holds an earlier collection"), "{error}");
    fs::write(folder.path().join("in.heph"), trace(2, 6)).unwrap();
    how.store.earlier = Earlier::Continues;
    start(how).join().unwrap();
    assert_eq!(contents(folder.path()), [trace(1, 5), trace(2, 6)]);
    assert_eq!(index(folder.path())[1]["file"], "source-0002-000001.heph");
}

#[test]
fn another_epoch_begins_another_file_and_the_same_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [trace(1, 4), epoch(7), event(1, 4, "poll"), epoch(8), event(1, 5, "poll")];
    collect_file(folder.path(), &parts.concat(), |_| {});
    assert_eq!(contents(folder.path()), [parts[..3].concat(), parts[3..].concat()]);
    let epochs: Vec<_> = index(folder.path()).iter().map(|line| line["epoch_ns"].as_u64().unwrap()).collect();
    assert_eq!(epochs, [7, 8]);
}

#[test]
fn every_way_to_sync_writes_the_same_bytes() {
    for fsync in [Fsync::Never, Fsync::Batch, Fsync::Every(Duration::from_millis(1))] {
        let folder = tempfile::tempdir().unwrap();
        collect_file(folder.path(), &trace(1, 2000), |how| how.store.fsync = fsync);
        assert_eq!(contents(folder.path()), [trace(1, 2000)], "{fsync:?}");
        let losses = fs::read_to_string(folder.path().join("out/loss.json")).unwrap();
        let losses: serde_json::Value = serde_json::from_str(&losses).unwrap();
        assert_eq!(
            (&losses["version"], &losses["received"], &losses["detectable_lost"]),
            (&1.into(), &2000.into(), &0.into())
        );
    }
}

#[test]
fn every_sample_is_collected_with_its_packets_unchanged() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../heph/corpus");
    for name in ["seed/both.heph", "valid/epoch_late.heph", "broken/garbage_between.heph", "broken/size_4gib.heph"] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = fs::read(corpus.join(name)).unwrap();
        let report = collect_file(folder.path(), &bytes, |_| {});
        let kept = contents(folder.path()).concat();
        assert_eq!(kept.len() as u64 + report.skipped_bytes, bytes.len() as u64, "{name}");
        assert!(complaints(&kept).iter().all(|code| !code.contains("magic") && !code.contains("size")), "{name}");
    }
}
