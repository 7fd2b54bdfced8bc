//! Files that grow: in pieces, truncated, renamed, rewritten, missing at first.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_live::CollectOptions;
use common::{Running, contents, epoch, event, options, start, trace};

fn following(folder: &Path) -> (CollectOptions, PathBuf) {
    let path = folder.join("app.heph");
    let mut how = options(folder, &[]);
    how.follow = vec![path.clone()];
    (how, path)
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn reported(running: &Running) -> Vec<(&'static str, u64)> {
    running.seen.damage.lock().unwrap().iter().map(|(_, damage)| (damage.code(), damage.offset)).collect()
}

#[test]
fn a_file_that_appears_later_and_grows_in_pieces_is_collected_completely() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    let running = start(how);
    let bytes = trace(1, 60);
    for (n, piece) in bytes.chunks(37).enumerate() {
        append(&path, piece);
        if n % 10 == 0 {
            // A packet that is cut by the end of a growing file is not damage.
            let complete = ((n + 1) * 37).saturating_sub(23) / event(1, 0, "poll").len();
            running.wait_for_received(complete as u64);
        }
    }
    running.wait_for_received(60);
    assert_eq!(reported(&running), []);
    let report = running.stop();
    assert_eq!((report.events, report.damaged_places), (60, 0));
    assert_eq!(contents(folder.path()), [bytes]);
}

#[test]
fn a_partial_write_costs_one_packet() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    let running = start(how);
    append(&path, &[epoch(1), event(1, 0, "a")].concat());
    running.wait_for_received(1);
    append(&path, &event(1, 1, "cut by a full disk")[..50]);
    append(&path, &[event(1, 2, "b"), event(1, 3, "c")].concat());
    running.wait_for_received(3);
    assert_eq!(reported(&running), [("heph/bad-utf8", 66)]);
    let report = running.stop();
    // Its counter could be read, so it is counted as damaged and not as lost.
    let totals = &report.totals;
    assert_eq!((report.events, totals.malformed, totals.lost, report.skipped_bytes), (3, 1, 0, 50));
}

#[test]
fn a_renamed_file_is_read_to_its_end_before_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    append(&path, &trace(1, 5));
    let running = start(how);
    running.wait_for_received(5);
    let old = folder.path().join("app.heph.1");
    fs::rename(&path, &old).unwrap();
    append(&path, &[epoch(7), event(1, 7, "new")].concat());
    // Its writer has it open still.
    append(&old, &event(1, 5, "late"));
    append(&old, &event(1, 6, "late"));
    running.wait_for_received(8);
    assert_eq!(reported(&running), []);
    let report = running.stop();
    // The counters continue, so nothing is missing between the two.
    assert_eq!((report.events, report.totals.lost, report.totals.restarts), (8, 0, 0));
}

#[test]
fn half_a_packet_at_the_end_of_a_renamed_file_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    append(&path, &[&trace(1, 5)[..], &event(1, 5, "half")[..30]].concat());
    let running = start(how);
    running.wait_for_received(5);
    fs::rename(&path, folder.path().join("old")).unwrap();
    append(&path, &event(1, 6, "new"));
    running.wait_for_received(6);
    assert_eq!(reported(&running), [("heph/truncated", trace(1, 5).len() as u64)]);
    assert_eq!(running.stop().totals.lost, 1);
}

#[test]
fn a_truncated_file_is_read_from_its_start_again() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    append(&path, &trace(1, 50));
    let running = start(how);
    running.wait_for_received(50);
    // By the same program, which continues counting.
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    append(&path, &[epoch(7), event(1, 50, "after")].concat());
    running.wait_for_received(51);
    let report = running.stop();
    assert_eq!((report.events, report.totals.lost, report.damaged_places), (51, 0, 0));
}

#[test]
fn a_file_written_again_and_longer_is_noticed_by_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let (how, path) = following(folder.path());
    append(&path, &[epoch(1), event(1, 0, "first run")].concat());
    let running = start(how);
    running.wait_for_received(1);
    let again: Vec<u8> = (0..40).flat_map(|counter| event(1, counter, "second run")).collect();
    fs::write(&path, [epoch(2), again].concat()).unwrap();
    running.wait_for_received(41);
    let report = running.stop();
    assert_eq!((report.events, report.totals.restarts, report.damaged_places), (41, 1, 0));
    assert_eq!(contents(folder.path()).len(), 2);
}

#[test]
fn folders_and_pipes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut how = options(folder.path(), &[]);
    how.follow = vec![folder.path().to_owned()];
    assert!(start(how).join().is_err());
}
