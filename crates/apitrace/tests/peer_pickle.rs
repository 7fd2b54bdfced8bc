//! Pickles of calls: those of apitrace 11.1 byte for byte, and properties that hold for any bytes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod peer;
mod unpickle;

use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::pickle::{PickleOptions, pickle};
use anytrace_core::testing::{dripping, shared_corpus};
use anytrace_core::{Collect, Input, OpenOptions};
use build::Build;
use peer::Peer;
use serde_json::{Value, json};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn from(input: Input, options: &PickleOptions) -> (Vec<u8>, Vec<&'static str>) {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    pickle(&mut reader, options, &mut out, &mut sink).unwrap();
    (out, sink.0.iter().map(|one| one.code()).collect())
}

fn pickled(bytes: &[u8], options: &PickleOptions) -> Vec<u8> {
    from(Input::from_bytes("x.trace", bytes.to_vec()), options).0
}

fn compatible(is_symbolic: bool) -> PickleOptions {
    PickleOptions { is_symbolic, is_compatible: true, ..PickleOptions::default() }
}

#[test]
fn samples_are_pickled_as_apitrace_pickles_them() {
    let peer = corpus().join("peer");
    let mut compared = 0;
    for entry in std::fs::read_dir(&peer).unwrap() {
        let path = entry.unwrap().path();
        let Some((stem, is_symbolic)) = path.to_str().unwrap().rsplit_once(".pickle") else { continue };
        let name = Path::new(stem).file_name().unwrap().to_str().unwrap();
        let own = corpus().join(format!("{name}.trace"));
        let trace = if own.exists() { own } else { peer.join(format!("{name}.trace")) };
        let bytes = std::fs::read(trace).unwrap();
        let expected = std::fs::read(&path).unwrap();
        for workers in [0, 1, 3] {
            let options = PickleOptions { workers, ..compatible(is_symbolic == "-s") };
            assert!(pickled(&bytes, &options) == expected, "{} with {workers} workers", path.display());
        }
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

/// Every trace of the shared corpus, as objects, in both ways.
#[test]
fn the_entire_corpus_is_pickled_as_in_apitrace() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut compared = 0;
    for folder in std::fs::read_dir(root).unwrap() {
        let Ok(folder) = std::fs::read_dir(folder.unwrap().path()) else { continue };
        for path in folder.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let Some(stem) = name.strip_suffix(".jsonl").filter(|stem| stem.contains("pickle")) else { continue };
            let sample = match stem.split_once('.') {
                Some((sample, _)) => sample,
                None => path.parent().unwrap().file_name().unwrap().to_str().unwrap(),
            };
            let bytes = std::fs::read(path.with_file_name(format!("{sample}.trace"))).unwrap();
            let found = unpickle::calls(&pickled(&bytes, &compatible(stem.ends_with("-symbolic"))));
            let expected = std::fs::read_to_string(&path).unwrap();
            assert_eq!(found.len(), expected.lines().count(), "{}", path.display());
            for (ours, theirs) in found.iter().zip(expected.lines()) {
                assert_eq!(*ours, serde_json::from_str::<Value>(theirs).unwrap(), "{}", path.display());
            }
            compared += 1;
        }
    }
    assert!(compared >= 60, "{compared}");
}

/// The installed apitrace gives the same output, whatever was stored.
#[test]
fn the_installed_apitrace_pickles_the_same() {
    let Some(peer) = Peer::installed() else { return };
    for name in ["threads", "leak", "interleave", "many_open", "allvals_v2", "upstream_zlib-no-eof", "peer/callflags"] {
        let trace = corpus().join(format!("{name}.trace"));
        let bytes = std::fs::read(&trace).unwrap();
        for (is_symbolic, options) in [(false, &[][..]), (true, &["-s"][..])] {
            let theirs = peer.run([&["pickle"], options, &[trace.to_str().unwrap()]].concat());
            assert!(pickled(&bytes, &compatible(is_symbolic)) == theirs.stdout, "{name} {options:?}");
        }
        let theirs = peer.run(["pickle", "--calls=0-20/2,frame", trace.to_str().unwrap()]);
        let calls = CallSet::parse(["0-20/2,frame"], &mut |_| Err(std::io::Error::other("none"))).unwrap();
        assert!(pickled(&bytes, &PickleOptions { calls, ..compatible(false) }) == theirs.stdout, "{name} with a set");
    }
}

/// One call of `f` with one argument.
fn with_value(value: &[u8]) -> Vec<u8> {
    let mut build = Build::version(6);
    build.add(b"\x00\x00\x00\x01f\x01\x01a\x01\x00").add(value).add(b"\x00\x01\x00\x00");
    build.bytes
}

#[test]
fn what_apitrace_gets_wrong_is_right_by_default() {
    for (value, ours, theirs) in [
        (&b"\x07\x03\xc3\xa9!"[..], json!("é!"), json!("??!")),
        (b"\x07\x03a\0b", json!("a\0b"), json!("a")),
        (b"\x07\x02\xffz", json!({"surrogates": [0xed, 0xb3, 0xbf, b'z']}), json!("?z")),
        (b"\x0f\x02\xe9\x01\xac\x41", json!("é\u{20ac}"), json!("??")),
        (b"\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", json!(u64::MAX), json!(-1)),
        (b"\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", json!({"long": "-18446744073709551615"}), json!(1)),
    ] {
        let bytes = with_value(value);
        let of = |options: &PickleOptions| unpickle::calls(&pickled(&bytes, options))[0]["args"][0][1].clone();
        assert_eq!(of(&PickleOptions::default()), ours);
        assert_eq!(of(&compatible(false)), theirs);
    }
    let plain = PickleOptions { has_plain_pointers: true, ..PickleOptions::default() };
    assert_eq!(unpickle::calls(&pickled(&with_value(b"\x0d\x90\x4e"), &plain))[0]["args"][0][1], json!(10000));
}

#[test]
fn calls_of_the_set_that_are_left_late_are_not_lost() {
    // Call 0 is left after calls 1 to 4.
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00".to_vec();
    for call in 1..5 {
        bytes.extend([0, 0, 0, 0, 1, call, 0]);
    }
    bytes.extend([1, 0, 0]);
    // What follows is not read: it would be damage.
    let tail = [bytes.clone(), vec![9; 2000]].concat();
    let numbers = |bytes: &[u8], is_compatible| {
        let calls = CallSet::parse(["0-2"], &mut |_| Err(std::io::Error::other("none"))).unwrap();
        let options = PickleOptions { calls, is_compatible, ..PickleOptions::default() };
        let (out, codes) = from(Input::from_bytes("x.trace", bytes.to_vec()), &options);
        let calls: Vec<u64> = unpickle::calls(&out).iter().map(|call| call["no"].as_u64().unwrap()).collect();
        (calls, codes)
    };
    assert_eq!(numbers(&tail, false), (vec![1, 2, 0], vec![]));
    assert_eq!(numbers(&bytes, true), (vec![1, 2], vec!["apitrace/late-call"]));
}

/// Large blobs are complete, with and without other threads, however they arrive.
#[test]
fn blobs_of_any_length_are_complete() {
    let mut value = b"\x08\xc0\x84\xbd\x02".to_vec();
    value.extend((0..5_194_304_u32).map(|n| n as u8));
    let bytes = with_value(&value);
    for workers in [0, 2] {
        let options = PickleOptions { workers, ..PickleOptions::default() };
        let (out, codes) = from(dripping("x.trace", &bytes, 4096), &options);
        assert_eq!(unpickle::calls(&out)[0]["args"][0][1]["blob"], json!(5_194_304), "{codes:?}");
        assert_eq!(codes, Vec::<&str>::new());
    }
}

#[test]
fn any_cut_or_changed_byte_gives_complete_pickles() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "threads"] {
        let bytes = std::fs::read(corpus().join(format!("{name}.trace"))).unwrap();
        let step = (bytes.len() / 200).max(1);
        for at in (0..bytes.len()).step_by(step) {
            unpickle::calls(&pickled(&bytes[..at], &PickleOptions::default()));
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let alone = pickled(&changed, &PickleOptions::default());
            unpickle::calls(&alone);
            let helped = pickled(&changed, &PickleOptions { workers: 2, ..PickleOptions::default() });
            assert!(helped == alone, "{name} changed at {at}");
        }
    }
}
