//! The outputs of everything that is hard, byte for byte. `UPDATE_GOLDENS=1` rewrites them; `cargo xtask consumers` has
//! the real programs read them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io::{Cursor, Read as _, Write};
use std::path::PathBuf;

use anytrace_core::span::{EdgeKind, TimeUnit};
use anytrace_export::cells::Cells;
use anytrace_export::timeline::{OUTPUTS, Outlet, by_name};
use common::{Played, hard, random};

#[test]
fn hard_things_are_written_as_accepted() {
    for output in &OUTPUTS {
        let mut written = hard().written(output.name);
        // How well a library compresses is not ours.
        let extension = match output.extension.strip_suffix(".gz") {
            Some(inner) => {
                let packed = std::mem::take(&mut written);
                flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut written).unwrap();
                inner
            }
            None => output.extension,
        };
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/hard-{}.{extension}", output.name));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &written).unwrap();
        }
        let wanted = std::fs::read(&path).unwrap();
        assert!(written == wanted, "{}: UPDATE_GOLDENS=1 rewrites it", path.display());
    }
}

#[test]
fn results_do_not_depend_on_the_size_of_batches() {
    let played = random(3, 5_000, TimeUnit::Nanoseconds);
    for output in &OUTPUTS {
        // Where a track is announced among the edges depends on batches; its contents do not.
        let pieces = |batch_edges: usize| {
            let written = played.written_in(output.name, batch_edges);
            let mut lines: Vec<Vec<u8>> = match output.name {
                "chrome" => written.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end().to_vec()).collect(),
                "perfetto" => written.into_iter().map(|byte| vec![byte]).collect(),
                _ => return vec![written],
            };
            lines.iter_mut().for_each(|line| line.truncate(line.len() - usize::from(line.ends_with(b","))));
            lines.sort();
            lines
        };
        assert!(pieces(1) == pieces(7) && pieces(1) == pieces(1024), "{}", output.name);
    }
}

#[test]
fn the_table_is_sorted_and_an_output_of_nothing_is_complete() {
    assert!(OUTPUTS.is_sorted_by_key(|output| output.name));
    for output in &OUTPUTS {
        assert!(std::ptr::eq(by_name(output.name).unwrap(), output));
        let (mut out, mut spool) = (Vec::new(), Cursor::new(Vec::new()));
        (output.open)(Outlet { out: &mut out, spool: &mut spool, title: "", cells: Cells::Guarded, threads: 2 })
            .finish()
            .unwrap();
        let source_only = Played::new(TimeUnit::Order, 0).written(output.name);
        if output.extension.ends_with("json") {
            for bytes in [out, source_only] {
                serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
            }
        }
    }
}

/// A writer that fails after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let played = random(4, 20_000, TimeUnit::Nanoseconds);
    for output in &OUTPUTS {
        let (mut out, mut spool) = (Full(100), Cursor::new(Vec::new()));
        let mut timeline =
            (output.open)(Outlet { out: &mut out, spool: &mut spool, title: "x", cells: Cells::Guarded, threads: 2 });
        let result = played.play(&mut *timeline, 1024).and_then(|()| timeline.finish());
        assert_eq!(result.unwrap_err().io_kind(), Some(std::io::ErrorKind::StorageFull), "{}", output.name);
    }
}

#[test]
fn a_source_that_breaks_its_promises_does_no_harm() {
    let mut played = Played::new(TimeUnit::Ticks { per_second: Some(u64::MAX) }, u64::MAX);
    let track = played.track(1, 1, 0, None, None);
    for (kind, time) in [
        (EdgeKind::End, 5),
        (EdgeKind::Begin, u64::MAX),
        (EdgeKind::End, 0),
        (EdgeKind::End, 3),
        (EdgeKind::Counter, 1),
        (EdgeKind::FlowOut, 1),
        (EdgeKind::Begin, 2),
    ] {
        played.edge(track, kind, time, b"x");
    }
    // A name and a track that were never announced.
    played.edge(track, EdgeKind::Begin, 9, b"x").name = 0;
    for output in &OUTPUTS {
        let mut broken = played.clone();
        broken.tracks[0].process = u64::MAX;
        let written = broken.written(output.name);
        if output.extension.ends_with("json") {
            serde_json::from_slice::<serde_json::Value>(&written).unwrap();
        }
    }
}

#[test]
fn a_deep_recursion_stays_of_a_sensible_size_when_folded() {
    let mut played = Played::new(TimeUnit::Nanoseconds, 0);
    let track = played.track(1, 1, 0, None, None);
    let depth = 5_000_u64;
    for n in 0..depth {
        played.edge(track, EdgeKind::Begin, n, b"f");
    }
    for n in 0..depth {
        played.edge(track, EdgeKind::End, depth + n, b"f");
    }
    let text = String::from_utf8(played.written_in("folded", 1024)).unwrap();
    let total: u64 = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(total, 2 * depth - 1);
    assert!(text.len() < 3_000_000 && text.contains(";[deeper] "), "{}", text.len());
}
