//! Traces with a hundred thousand threads, keys that meet in one place of a hash table, or huge names: every table of them
//! is written, in bounded memory.
//!
//! One test alone in its file: the memory of all children of the process is read at once.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

/// Threads, or names.
const MANY: u64 = 100_000;

/// Most memory of a conversion. A row group takes up to 64 MiB, and names are in it twice.
const MIB_MAX: i64 = 512;

/// The multiplier of FxHash, by whose inverse keys meet in one place of its tables.
const FX: u64 = 0xf135_7aea_2e62_a9c5;

/// What an odd number must be multiplied by to give 1.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(odd))))
}

/// A Heph trace with an event for each of these streams, substreams and descriptions.
fn heph(events: impl Iterator<Item = (u32, u64, String)>) -> Vec<u8> {
    let mut bytes =
        [&0x75d1_1d4d_u32.to_be_bytes()[..], &23_u32.to_be_bytes(), &5_u16.to_be_bytes(), b"epoch"].concat();
    bytes.extend(1_610_113_734_118_010_000_u64.to_be_bytes());
    for (n, (stream, substream, description)) in (0_u64..).zip(events) {
        let length = u16::try_from(description.len()).unwrap();
        let counter = if stream == 1 { u32::try_from(n).unwrap() } else { 0 };
        bytes.extend([0xc1fc_1fb7_u32, 42 + u32::from(length), stream, counter].map(u32::to_be_bytes).concat());
        bytes.extend([substream, 10 * n, 10 * n + 5].map(u64::to_be_bytes).concat());
        bytes.extend(length.to_be_bytes());
        bytes.extend(description.bytes());
    }
    bytes
}

/// A Cacheray trace: each thread adds a region of a type of its own, at one of few addresses, and writes to it.
fn cacheray() -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..MANY {
        let address = 0x7f00_0000_0000 + 64 * (n % 5);
        let name = format!("struct.Type{n}");
        bytes.push(2);
        bytes.extend([address, n].map(u64::to_le_bytes).concat());
        bytes.extend([8, 1, u32::try_from(name.len()).unwrap()].map(u32::to_le_bytes).concat());
        bytes.extend(name.bytes());
        bytes.push(1);
        bytes.extend(address.to_le_bytes());
        bytes.push(8);
        bytes.extend(n.to_le_bytes());
    }
    bytes
}

fn casemate() -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..MANY {
        let address = inverse(FX).wrapping_mul(n) & !7;
        writeln!(bytes, "(lock (id {n}) (tid {n}) (address {address:#x}) (src \"p.c:{n}\"))").unwrap();
    }
    bytes
}

#[test]
fn every_table_of_a_hostile_trace_is_written_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let short = || "x".to_owned();
    let stream = |n: u64| u32::try_from(n).unwrap();
    let colliding = inverse(FX);
    let traces = [
        ("streams.heph", heph((2..MANY).map(|n| (stream(n), 0, short())))),
        ("substreams.heph", heph((1..MANY).map(|n| (1, colliding.wrapping_mul(n), short())))),
        ("names.heph", heph((0..4000).map(|n| (1, 0, format!("{n} {}", "long ".repeat(8000)))))),
        ("threads.cacheray", cacheray()),
        ("threads.casemate", casemate()),
    ];
    for (name, bytes) in traces {
        let trace = folder.path().join(name);
        std::fs::write(&trace, bytes).unwrap();
        for form in ["parquet", "arrow"] {
            let out = folder.path().join(format!("{name}-{form}"));
            let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
            command.arg("convert").arg(&trace).args(["--to", form, "--all-tables", "-o"]).arg(&out);
            let output = command.stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if (name, form) == ("names.heph", "arrow") {
                // Its dictionaries are in memory until the end.
                assert!(said.contains("Parquet (--to parquet) has no such limit") && !out.exists(), "{said}");
                continue;
            }
            assert!(output.status.code().is_some_and(|code| code < 2), "{name}, {form}: {said}");
            assert!(has_tables(&out), "{name}, {form}");
            let kib = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
            assert!(kib < MIB_MAX << 10, "{name}, {form}: {} MiB", kib >> 10);
            std::fs::remove_dir_all(&out).unwrap();
        }
        std::fs::remove_file(&trace).unwrap();
    }
}

/// True where a folder has tables, `events` among them.
fn has_tables(folder: &Path) -> bool {
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.len() > 1 && names.iter().any(|path| path.file_stem().is_some_and(|stem| stem == "events"))
}
