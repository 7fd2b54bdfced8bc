//! Traces whose keys all meet in one place of a table with a known hash cost every verb about what other traces cost; so
//! do traces with a thread for each record, or with thousands of arguments.
//!
//! One test alone in its file: processor time is read for all children of the process at once.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

/// Keys of a trace. Where they collide, `n * n / 2` steps of a nanosecond are seconds.
const KEYS: u64 = 80_000;

/// The multiplier of FxHash (rustc-hash 2), by whose inverse all of its tables are met in one place.
const FX: u64 = 0xf135_7aea_2e62_a9c5;

/// That of Fibonacci hashing, which tables written by hand used.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What an odd number must be multiplied by to give 1.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(odd))))
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A Heph trace with an event in each of these substreams of stream 1.
fn heph(substreams: impl Iterator<Item = u64>) -> Vec<u8> {
    heph_events((0..).zip(substreams).map(|(n, substream)| (substream, 10 * n, 10 * n + 5)))
}

/// A Heph trace with these events of stream 1: substream, start and end.
fn heph_events(events: impl Iterator<Item = (u64, u64, u64)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [&0x75d1_1d4d_u32.to_be_bytes()[..], &23_u32.to_be_bytes(), &5_u16.to_be_bytes(), b"epoch"] {
        bytes.extend_from_slice(part);
    }
    bytes.extend(1_610_113_734_118_010_000_u64.to_be_bytes());
    for (n, (substream, start, end)) in (0_u32..).zip(events) {
        bytes.extend([0xc1fc_1fb7_u32, 43, 1, n].map(u32::to_be_bytes).concat());
        bytes.extend([substream, start, end].map(u64::to_be_bytes).concat());
        bytes.extend([0, 1, b'x']);
    }
    bytes
}

/// Numbers of lines of 64 bytes, `colliding` or not.
fn lines(colliding: bool) -> Vec<u64> {
    let (inverse, mut state) = (inverse(FX), 5);
    let next = |n: u64| if colliding { inverse.wrapping_mul(n) } else { random(&mut state) };
    (1..).map(next).filter(|line| *line < 1 << 58).take(KEYS as usize).collect()
}

fn cacheray(lines: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.push((line & 1) as u8);
        bytes.extend((line << 6).to_le_bytes());
        bytes.push(8);
        bytes.extend(1_u64.to_le_bytes());
    }
    bytes
}

/// Writes to few places, the threads in turn.
fn crowd(threads: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..KEYS {
        bytes.push(1);
        bytes.extend((0x10000 + n % 8 * 8).to_le_bytes());
        bytes.push(8);
        bytes.extend((n % threads).to_le_bytes());
    }
    bytes
}

/// An apitrace trace of calls of one function, with so many arguments each.
fn calls(calls: u64, arguments: u64) -> Vec<u8> {
    fn number(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }
    let mut bytes = b"\x06\x06\x0cprocess.name\x05flood\0".to_vec();
    for call in 0..calls {
        bytes.extend([0, 0, 9]);
        if call == 0 {
            bytes.extend(b"\x0aglFunction");
            number(&mut bytes, arguments);
            (0..arguments).for_each(|_| bytes.extend(b"\x01x"));
        }
        for argument in 0..arguments {
            bytes.push(1);
            number(&mut bytes, argument);
            bytes.extend([4, 7]);
        }
        bytes.extend([0, 1]);
        number(&mut bytes, call);
        bytes.push(0);
    }
    bytes
}

fn lackey(lines: &[u64]) -> Vec<u8> {
    lines.iter().map(|line| format!(" L {:x},8\n", line << 6)).collect::<String>().into_bytes()
}

/// Processor time of a command, and what it printed.
fn measure(arguments: &[String]) -> (f64, String) {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    };
    let before = used();
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}\n{stderr}", output.status);
    (used() - before, String::from_utf8_lossy(&output.stdout).into_owned() + &stderr)
}

/// A verb's arguments; `FILE` is the trace and `OUT` a file to be written.
fn arguments(verb: &str, file: &Path, out: &Path) -> Vec<String> {
    let shown = |word: &str| match word {
        "FILE" => file.display().to_string(),
        "OUT" => out.display().to_string(),
        other => other.to_owned(),
    };
    verb.split_whitespace().map(shown).collect()
}

const HEPH: &[&str] = &[
    "info FILE",
    "check FILE",
    "convert FILE --force -o OUT --to callgrind",
    "convert FILE --force -o OUT --to chrome",
    "convert FILE --force -o OUT --to perf-script",
    "convert FILE --force -o OUT --to perfetto",
    "convert FILE --force -o OUT --to firefox",
    "convert FILE --force -o OUT --to otlp",
    "convert FILE --force -o OUT --to csv",
    "convert FILE --force -o OUT --to folded",
    "convert FILE --force -o OUT --to speedscope",
    "convert FILE --force -o OUT --to svg",
    "flame FILE --format folded",
    "stats FILE",
    "stats FILE --by thread --longest 10 --gaps --migrations --events",
    "stats FILE --outliers 3 --self",
    "timeline FILE",
    "heph spans FILE",
    "heph stats FILE",
    "heph tasks FILE",
    "heph tasks FILE --which spans",
    "heph loss FILE",
    "heph convert FILE --compat --force -o OUT",
];

const ACCESSES: &[&str] = &[
    "info FILE",
    "check FILE",
    "convert FILE --force -o OUT --to lackey",
    "memory sim FILE --config zen3",
    "memory sim FILE --config zen3 --types",
    "memory sim FILE --config zen3 --classes --per-thread",
    "memory advise FILE",
    "memory heatmap FILE",
    "memory heatmap FILE --by line",
    "memory annotate FILE --config zen3",
    "memory lifetime FILE",
    "memory mrc FILE",
    "memory mrc FILE --by thread",
    "memory mrc FILE --sample 0.1",
    "memory mrc FILE --working-set",
    "memory numa FILE",
    "memory report FILE --config zen3 --force -o OUT",
    "memory sharing FILE",
    "memory types FILE",
    "memory compare FILE FILE --config zen3",
];

#[test]
fn a_flood_of_colliding_keys_costs_no_verb_more_than_three_times_as_much() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let write = |name: &str, bytes: Vec<u8>| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut state = 7;
    // Of a tuple of stream 1 and the substream, FxHash adds and multiplies twice.
    let fx = (1..=KEYS).map(|n| inverse(FX).wrapping_mul(n).wrapping_sub(FX));
    let golden = (1..=KEYS).map(|n| inverse(GOLDEN).wrapping_mul(n) ^ 1 << 40);
    let control = write("random.heph", heph((0..KEYS).map(|_| random(&mut state))));
    let mut runs: Vec<(PathBuf, PathBuf, &[&str])> =
        vec![(write("fx.heph", heph(fx)), control.clone(), HEPH), (write("golden.heph", heph(golden)), control, HEPH)];
    let made = |name: &str, make: fn(&[u64]) -> Vec<u8>| {
        [true, false].map(|colliding| write(&format!("{colliding}.{name}"), make(&lines(colliding))))
    };
    let [flood, control] = made("cacheray", cacheray);
    runs.push((flood, control, ACCESSES));
    let [flood, control] = made("lackey", lackey);
    runs.push((flood, control, &["memory sim FILE --config zen3 --classes --per-thread", "check FILE"]));
    // A list of threads that is copied for each of them costs as much as a flood.
    let alone = write("alone.cacheray", crowd(KEYS));
    let verbs = &["memory sim FILE --config zen3", "memory sim FILE --config zen3 --types --per-set"];
    runs.push((alone, write("crowd.cacheray", crowd(300)), verbs));
    // Nor may each argument be looked for from a function's first on.
    let [many, few] = [write("many.trace", calls(8, KEYS / 4)), write("few.trace", calls(KEYS / 20, 40))];
    runs.push((many, few, &["dump FILE", "dump FILE --format jsonl", "apitrace dump FILE"]));
    let mut slow = Vec::new();
    for (flood, control, verbs) in runs {
        for verb in verbs {
            let spent = |file: &Path| measure(&arguments(verb, file, &out)).0;
            // Less than this is the program's start, and the machine's other work.
            let bound = |control: f64| 3.0 * control.max(0.2);
            let (mut of_flood, mut of_control) = (spent(&flood), spent(&control));
            if of_flood > bound(of_control) {
                // Once more: a neighbor may have had the caches.
                (of_flood, of_control) = (of_flood.min(spent(&flood)), of_control.max(spent(&control)));
            }
            if of_flood > bound(of_control) {
                slow.push(format!("{}: {verb}: {of_flood:.2} s, not {of_control:.2} s", flood.display()));
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
    // Nor do colliding lanes go unwatched: two events in each overlap partly, and all are found.
    let check = |name: &str, substream: &dyn Fn(u64) -> u64| {
        let lanes = 5_000;
        let first = (0..lanes).map(|n| (substream(n), 10, 20 + n));
        let path = write(name, heph_events(first.chain((0..lanes).map(|n| (substream(n), 15, 20 + lanes + n)))));
        measure(&arguments("check FILE --format json", &path, &out)).1.replace(&path.display().to_string(), "FILE")
    };
    let usual = check("usual.heph", &|n| n);
    assert!(usual.contains("overlap"), "{usual}");
    assert_eq!(check("lanes.heph", &|n| inverse(GOLDEN).wrapping_mul(n) ^ 1 << 40), usual);
}
