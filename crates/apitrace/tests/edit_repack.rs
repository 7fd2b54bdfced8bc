//! `apitrace repack`: the raw stream stays, to the byte.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod peer;
mod traces;

use std::io::Read;

use anytrace_apitrace::tools::repack::{RepackOptions, Repacked, repack};
use anytrace_apitrace::{Container, Reader};
use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Input, Kind, MemoryTarget, OpenOptions, Step};
use peer::Peer;

fn packed(input: Input, container: Container, level: Option<i32>, workers: usize) -> (Vec<u8>, Repacked, Collect) {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let open = OpenOptions { threads: 1 + workers, ..OpenOptions::default() };
    let options = RepackOptions { container, level, workers };
    let done = repack(Reader::new(input, &open).unwrap(), &options, &mut out, &mut sink).unwrap();
    (out.0, done, sink)
}

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    packed(input(bytes), Container::Raw, None, 0).0
}

/// The raw stream, decoded by the libraries alone.
fn unpacked(bytes: &[u8], container: Container) -> Vec<u8> {
    let mut out = Vec::new();
    match container {
        Container::Raw => out.extend_from_slice(bytes),
        Container::Snappy => {
            let mut rest = bytes.strip_prefix(b"at").unwrap();
            while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                let (block, tail) = tail.split_at(usize::try_from(u32::from_le_bytes(*length)).unwrap());
                out.extend(snap::raw::Decoder::new().decompress_vec(block).unwrap());
                rest = tail;
            }
        }
        Container::Gzip => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap()),
        Container::Brotli => drop(brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out).unwrap()),
        Container::Zstd | Container::ZstdSeekable => out = zstd::decode_all(bytes).unwrap(),
    }
    out
}

/// Bytes that compress a little, of several pieces.
fn long() -> Vec<u8> {
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
    let mut state = 1_u32;
    while bytes.len() < 9_300_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend([0, 0, 0, 5, (state >> 24) as u8 & 0x7f, 0]);
    }
    bytes
}

#[test]
fn the_raw_stream_of_every_trace_stays_in_every_container() {
    for path in traces::all() {
        let (name, bytes) = (path.display().to_string(), std::fs::read(&path).unwrap());
        let plain = raw(&bytes);
        for (container, _) in Container::ALL {
            if bytes.len() > 200_000 && container == Container::Brotli {
                continue;
            }
            let (out, done, sink) = packed(input(&bytes), container, None, 0);
            assert!(unpacked(&out, container) == plain, "{name}: {container:?}");
            assert_eq!(done.raw_bytes, plain.len() as u64, "{name}");
            // Events of a version to come are copied, and reported as not read.
            let is_broken = ["/broken/", "/bad/", "/future_"].iter().any(|part| name.contains(part));
            assert!(is_broken || sink.errors() == 0 && done.gaps.is_empty(), "{name}: {done:?}");
        }
    }
}

#[test]
fn threads_and_windows_change_no_byte() {
    let bytes = long();
    for (container, _) in Container::ALL {
        let level = if container == Container::Brotli { Some(1) } else { None };
        let (alone, ..) = packed(input(&bytes), container, level, 0);
        assert!(unpacked(&alone, container) == bytes, "{container:?}");
        for workers in [1, 2, 3, 9] {
            assert!(packed(input(&bytes), container, level, workers).0 == alone, "{container:?} {workers}");
        }
        assert!(packed(dripping("x.trace", &bytes, 70_001), container, level, 2).0 == alone, "{container:?}");
        assert!(packed(input(&alone), container, level, 2).0 == alone, "{container:?}");
    }
}

#[test]
fn every_level_is_taken_and_no_other() {
    let bytes = std::fs::read(traces::own("leak")).unwrap();
    let plain = raw(&bytes);
    for (container, levels) in
        [(Container::Gzip, 0..=9), (Container::Brotli, 0..=11), (Container::ZstdSeekable, 1..=22)]
    {
        for level in levels.clone() {
            let (out, ..) = packed(input(&bytes), container, Some(level), 1);
            assert!(unpacked(&out, container) == plain, "{container:?} {level}");
        }
        for level in [levels.start() - 1, levels.end() + 1, -1000] {
            let options = RepackOptions { container, level: Some(level), workers: 0 };
            let reader = Reader::new(input(&bytes), &OpenOptions::default()).unwrap();
            let error = repack(reader, &options, &mut MemoryTarget::default(), &mut Collect::default()).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
        }
    }
}

#[test]
fn a_seekable_trace_says_where_its_frames_are() {
    let bytes = long();
    let (out, ..) = packed(input(&bytes), Container::ZstdSeekable, None, 2);
    // Footer: number of frames, descriptor, magic; before it a row of two sizes each.
    let (rest, footer) = out.split_last_chunk::<9>().unwrap();
    let count = usize::try_from(u32::from_le_bytes([footer[0], footer[1], footer[2], footer[3]])).unwrap();
    assert_eq!((count, &footer[4..]), (5, &[0, 0xb1, 0xea, 0x92, 0x8f][..]));
    let mut at = 0;
    let mut found = Vec::new();
    for row in rest[rest.len() - 8 * count..].chunks(8) {
        let size =
            |at: usize| usize::try_from(u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])).unwrap();
        let frame = zstd::decode_all(&out[at..at + size(0)]).unwrap();
        assert_eq!(frame.len(), size(4));
        found.extend(frame);
        at += size(0);
    }
    assert!(found == bytes);
}

#[test]
fn a_chunk_that_is_damaged_leaves_a_gap_and_the_rest_is_there() {
    let bytes = long();
    let (mut boxed, ..) = packed(input(&bytes), Container::Snappy, None, 0);
    // The third chunk claims another size.
    let mut at = 2;
    for _ in 0..2 {
        at += 4 + usize::try_from(u32::from_le_bytes(boxed[at..at + 4].try_into().unwrap())).unwrap();
    }
    boxed[at + 4..at + 7].copy_from_slice(&[0x80, 0x80, 0x41]);
    for workers in [0, 2] {
        let (out, done, sink) = packed(input(&boxed), Container::Raw, None, workers);
        // The chunk, and the events that are missing.
        assert!(sink.errors() > 1 && done.errors == sink.errors() as u64 && done.gaps.len() == 1, "{done:?}");
        let gap = usize::try_from(done.gaps[0]).unwrap();
        assert!((2 << 20..=3 << 20).contains(&gap));
        assert!(out[..gap] == bytes[..gap] && out.ends_with(&bytes[3 << 20..]));
    }
}

/// Far more than the threads keep for each other: none may wait for the other for ever, and none of it is lost.
#[test]
fn a_flood_of_damage_is_reported_as_reading_reports_it() {
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
    // Eight calls and their leaves, and a byte that begins no event.
    for call in 1..160_000_u32 {
        let number = [call as u8 | 0x80, (call >> 7) as u8 | 0x80, (call >> 14) as u8];
        bytes.extend(b"\x00\x00\x00\x00\x01");
        bytes.extend(number);
        bytes.extend(if call % 8 == 0 { &b"\x00\x77"[..] } else { b"\x00" });
    }
    let mut reader = Reader::new(input(&bytes), &OpenOptions::default()).unwrap();
    let mut expected = Collect::default();
    while let Some(step) = reader.next().unwrap() {
        if let Step::Damage(diagnostic) = step {
            expected.0.push(diagnostic);
        }
    }
    assert!(expected.errors() > 10_000, "{}", expected.errors());
    for workers in [0, 2] {
        let (out, done, sink) = packed(input(&bytes), Container::Raw, None, workers);
        assert!(out == bytes);
        assert_eq!(sink.0, expected.0);
        assert_eq!((done.errors, done.has_header), (expected.errors() as u64, true));
    }
}

#[test]
fn bytes_without_a_header_are_no_trace() {
    for bytes in [&b"\x06"[..], b"", b"\x06\x06\x04nam"] {
        assert!(!packed(input(bytes), Container::Snappy, None, 0).1.has_header, "{bytes:?}");
    }
    // One of a version to come is copied as it is.
    let (out, done, _) = packed(input(b"\x07\x07\x00abc"), Container::Raw, None, 0);
    assert_eq!((&out[..], done.has_header, done.errors), (&b"\x07\x07\x00abc"[..], true, 1));
}

#[test]
fn apitrace_and_we_read_each_other_s_output() {
    let Some(peer) = Peer::installed() else { return };
    let (ours, theirs) = (peer.file("ours.trace"), peer.file("theirs.trace"));
    let bytes = std::fs::read(traces::own("leak")).unwrap();
    for (container, option) in [(Container::Snappy, "-s"), (Container::Gzip, "-z"), (Container::Brotli, "--brotli=5")] {
        std::fs::write(&ours, packed(input(&bytes), container, Some(5).filter(|_| option != "-s"), 2).0).unwrap();
        assert!(peer.run(["repack".as_ref(), option.as_ref(), &*ours, &*theirs]).status.success());
        let theirs = std::fs::read(&theirs).unwrap();
        assert!(raw(&theirs) == raw(&bytes), "{container:?}");
        let mut reader = Reader::new(input(&theirs), &OpenOptions::default()).unwrap();
        reader.for_each(|_| Ok(())).unwrap();
        assert_eq!(reader.layout().container, container);
        if container == Container::Snappy {
            // Even the chunk boundaries are the same.
            assert_eq!(packed(input(&theirs), container, None, 0).0.len(), std::fs::read(&ours).unwrap().len());
        }
    }
}
