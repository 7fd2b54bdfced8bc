//! Windows over every kind of input, against a slice and a position.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io::{Read, Write};
use std::path::PathBuf;

use anytrace_core::{Collect, Compression, Cursor, Error, Input, InputOptions, Kind, LayerEnd, Refill};
use common::Random;

/// Gives a few bytes at a time, and is interrupted now and then, as signals interrupt pipes.
struct Slow {
    bytes: Vec<u8>,
    at: usize,
    random: Random,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.random.below(5) == 0 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let count = (1 + self.random.below(3000) as usize).min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn slow(bytes: Vec<u8>, seed: u64) -> Input {
    Input::from_read("slow", Box::new(Slow { bytes, at: 0, random: Random(seed) }), None).unwrap()
}

/// A file that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("anytrace-cursors-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn open(&self, no_map: bool) -> Input {
        Input::open(&self.0, InputOptions { no_map }).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bytes(random: &mut Random, length: u64) -> Vec<u8> {
    // The first byte is that of no compression.
    (0..length).map(|at| if at == 0 { b'x' } else { random.below(1 << (1 + at % 8)) as u8 }).collect()
}

/// Does what a reader may do with a cursor, and compares with a slice after each step.
fn walk(mut cursor: Cursor, bytes: &[u8], random: &mut Random, what: &str) {
    let mut at = 0_usize;
    for _ in 0..60 {
        let left = bytes.len() - at;
        match random.below(7) {
            0 | 1 => {
                let most = [10, 5_000, 200_000][random.below(3) as usize];
                let need = random.below(most) as usize;
                let have = cursor.fill(need).unwrap();
                assert_eq!(have, cursor.window().len(), "{what}");
                assert!(have >= need.min(left), "{what}: {have} of {need}, {left} left");
                assert!(have >= need || cursor.is_last_window(), "{what}");
            }
            2 | 3 => {
                let step = random.below(cursor.window().len() as u64 + 1) as usize;
                cursor.advance(step);
                at += step;
            }
            4 => {
                let step = random.below(100_000);
                let passed = cursor.skip(step).unwrap();
                assert_eq!(passed, step.min(left as u64), "{what}");
                at += usize::try_from(passed).unwrap();
            }
            5 => {
                let to = random.below(bytes.len() as u64 + 10);
                if cursor.seek(to) {
                    at = usize::try_from(to).unwrap();
                }
                assert!(at <= bytes.len(), "{what}: sought past the end");
            }
            _ => {
                let could = cursor.can_rewind();
                if cursor.rewind() {
                    at = 0;
                }
                assert!(!could || at == 0, "{what}");
            }
        }
        let window = cursor.window();
        assert_eq!(cursor.offset(), at as u64, "{what}");
        assert!(bytes[at..].starts_with(window), "{what}: at {at}, {} bytes", window.len());
        assert!(!cursor.is_last_window() || at + window.len() == bytes.len(), "{what}");
        assert!(cursor.as_slice().is_none_or(|all| all == bytes), "{what}");
    }
    while cursor.fill(1).unwrap() > 0 {
        let step = cursor.window().len();
        cursor.advance(step);
    }
    assert_eq!(cursor.offset(), bytes.len() as u64, "{what}");
}

#[test]
fn a_cursor_over_any_input_is_a_position_in_its_bytes() {
    for seed in 0..40 {
        let random = &mut Random(seed);
        let length = [1, 100, 70_000, 300_000, 1_200_000][random.below(5) as usize];
        let bytes = bytes(random, length);
        let file = Scratch::new(&format!("walk-{seed}"), &bytes);
        let packed = Scratch::new(&format!("packed-{seed}"), &gzip(&bytes));
        let inputs = [
            ("memory", Input::from_bytes("x", bytes.clone())),
            ("a slow stream", slow(bytes.clone(), seed)),
            ("a file", file.open(false)),
            ("a file as a stream", file.open(true)),
            ("a mapped file", file.open(false).at_hand()),
            ("a compressed file", packed.open(false)),
            ("gzip in memory", Input::from_bytes("x", gzip(&bytes))),
            ("zstd of a slow stream", slow(zstd(&bytes), seed)),
            ("gzip in zstd", Input::from_bytes("x", zstd(&gzip(&bytes)))),
        ];
        for (what, input) in inputs {
            walk(Cursor::new(input), &bytes, random, &format!("seed {seed}: {what}"));
        }
    }
}

#[test]
fn a_file_brought_at_hand_stays_at_its_place() {
    let random = &mut Random(5);
    let bytes = bytes(random, 500_000);
    let file = Scratch::new("hand", &bytes);
    for _ in 0..20 {
        let mut cursor = Cursor::new(file.open(false));
        let at = random.below(500_001);
        assert_eq!(cursor.skip(at).unwrap(), at);
        assert!(cursor.bring_at_hand());
        assert_eq!((cursor.offset(), cursor.as_slice()), (at, Some(bytes.as_slice())));
        assert!(bytes[at as usize..].starts_with(cursor.window()));
        assert!(cursor.rewind());
        walk(cursor, &bytes, &mut Random(at), "brought at hand");
    }
}

#[test]
fn an_input_from_an_offset_is_the_rest_of_it_with_its_own_layers() {
    let random = &mut Random(6);
    let inner = bytes(random, 90_000);
    for packed in [inner.clone(), gzip(&inner), zstd(&inner)] {
        let length = 1 + random.below(80_000);
        let before = bytes(random, length);
        let all = [&before[..], &packed].concat();
        let file = Scratch::new("offset", &all);
        let inputs =
            [Input::from_bytes("x", all.clone()), slow(all.clone(), 1), file.open(false), file.open(false).at_hand()];
        for input in inputs {
            let rest = input.from_offset(before.len() as u64).unwrap();
            assert_eq!(rest.layers().len(), usize::from(packed != inner));
            let mut found = Vec::new();
            rest.into_read().read_to_end(&mut found).unwrap();
            assert!(found == inner);
        }
        let mut past = Vec::new();
        let none = Input::from_bytes("x", all.clone()).from_offset(all.len() as u64 + 5).unwrap();
        none.into_read().read_to_end(&mut past).unwrap();
        assert!(past.is_empty());
    }
}

#[test]
fn members_and_frames_follow_each_other_and_zeros_may_end_gzip() {
    let random = &mut Random(7);
    let parts: Vec<Vec<u8>> = (0..4).map(|n| bytes(random, n * 30_000)).collect();
    let all = parts.concat();
    let of = |pack: &dyn Fn(&[u8]) -> Vec<u8>| parts.iter().flat_map(|part| pack(part)).collect::<Vec<u8>>();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for (what, packed) in [
        ("gzip members", of(&|part| gzip(part))),
        ("zeros behind", [of(&|part| gzip(part)), vec![0; 700]].concat()),
        ("zeros between", of(&|part| [gzip(part), vec![0; 9]].concat())),
        ("zstd frames", of(&|part| zstd(part))),
        ("a frame to skip first", [skippable.clone(), of(&|part| zstd(part))].concat()),
        ("frames to skip between", of(&|part| [zstd(part), skippable.clone()].concat())),
    ] {
        let input = Input::from_bytes("x", packed.clone());
        let layer = input.layers()[0].clone();
        assert_eq!(layer.end(), LayerEnd::Open, "{what}");
        let mut found = Vec::new();
        input.into_read().read_to_end(&mut found).unwrap();
        assert!(found == all, "{what}: {} bytes of {}", found.len(), all.len());
        assert_eq!(layer.end(), LayerEnd::Clean, "{what}");
        assert_eq!((layer.compressed_bytes(), layer.decompressed_bytes()), (packed.len() as u64, all.len() as u64));
        assert_eq!(layer.tail(), packed[packed.len() - 16..], "{what}");
        assert!(layer.damage().is_none(), "{what}");
    }
}

#[test]
fn a_layer_cut_anywhere_gives_a_prefix_and_says_where_it_ended() {
    let random = &mut Random(8);
    let bytes = bytes(random, 3_000);
    for (packed, code) in [(gzip(&bytes), "container/gzip-truncated"), (zstd(&bytes), "container/zstd-truncated")] {
        // From its fourth byte on it is known to be compressed.
        for cut in 4..packed.len() {
            let input = Input::from_bytes("x", packed[..cut].to_vec());
            let mut cursor = Cursor::new(input);
            let have = cursor.fill(10_000).unwrap();
            assert!(bytes.starts_with(cursor.window()), "cut at {cut}: {have} bytes");
            let mut sink = Collect::default();
            cursor.report_layers(&mut sink).unwrap();
            assert_eq!(sink.0.len(), 1, "cut at {cut}");
            assert_eq!((sink.0[0].code(), sink.0[0].offset), (code, cut as u64), "cut at {cut}");
        }
    }
}

#[test]
fn a_layer_with_a_changed_byte_gives_no_other_bytes_silently() {
    let random = &mut Random(9);
    let bytes = bytes(random, 3_000);
    let checked = {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap()
    };
    for packed in [gzip(&bytes), checked] {
        // The header of gzip has fields without meaning: name, time, system.
        for at in 10..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 1 << random.below(8);
            let mut cursor = Cursor::new(Input::from_bytes("x", changed));
            cursor.fill(10_000).unwrap();
            let same = cursor.window() == bytes;
            let mut sink = Collect::default();
            cursor.report_layers(&mut sink).unwrap();
            assert!(same || !sink.0.is_empty(), "byte {at}: other bytes and no report");
        }
    }
}

#[test]
fn text_behind_a_gzip_member_is_damage_and_not_data() {
    let packed = [gzip(b"xyz"), b"text".to_vec()].concat();
    let mut cursor = Cursor::new(Input::from_bytes("x", packed));
    assert_eq!((cursor.fill(100).unwrap(), cursor.window()), (3, &b"xyz"[..]));
    let mut sink = Collect::default();
    cursor.report_layers(&mut sink).unwrap();
    assert_eq!(sink.0.iter().map(|one| one.code()).collect::<Vec<_>>(), ["container/gzip-corrupt"]);
}

#[test]
fn four_layers_are_removed_and_the_fifth_is_data() {
    let mut packed = b"xyz".to_vec();
    for depth in 1..=6_usize {
        packed = if depth % 2 == 0 { zstd(&packed) } else { gzip(&packed) };
        let input = Input::from_bytes("x", packed.clone());
        assert_eq!(input.layers().len(), depth.min(4));
        let mut found = Vec::new();
        input.into_read().read_to_end(&mut found).unwrap();
        assert_eq!(found == b"xyz", depth <= 4, "{depth}");
        assert_eq!(Compression::detect(&found).is_some(), depth > 4, "{depth}");
    }
}

#[test]
fn the_head_says_how_long_the_data_are_only_where_that_is_known() {
    for (length, is_known) in [(0, true), (1, true), (65_535, true), (65_536, false), (200_000, false)] {
        let bytes = bytes(&mut Random(1), length);
        let stream = slow(bytes.clone(), 1);
        let head = stream.head();
        assert_eq!(head.bytes, &bytes[..bytes.len().min(65_536)]);
        assert_eq!(head.total_bytes, is_known.then_some(length), "{length}");
        let memory = Input::from_bytes("x", bytes.clone());
        assert_eq!(memory.head().total_bytes, Some(length));
        assert_eq!(memory.head().bytes, head.bytes);
    }
}

#[test]
fn folders_and_missing_files_are_errors_of_their_kind() {
    let folder = std::env::temp_dir().join(format!("anytrace-folder-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let error = Input::open(&folder, InputOptions::default()).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    std::fs::remove_dir(&folder).unwrap();
    let error = Input::open(&folder.join("anytrace-no-such-file"), InputOptions::default()).err().unwrap();
    assert!(error.kind() == Kind::Io && error.to_string().contains("anytrace-no-such-file"), "{error}");
    assert!(Input::open_as_is(&std::env::temp_dir()).is_err());
    let file = Scratch::new("empty", b"");
    let empty = file.open(false);
    assert_eq!((empty.file_bytes(), empty.head().bytes.len()), (Some(0), 0));
    assert!(Input::open_as_is(&file.0).is_err(), "an empty file cannot be mapped");
}

/// Gives bytes, then fails.
struct Failing(usize);

impl Refill for Failing {
    fn refill(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<usize, Error> {
        if self.0 == 0 {
            return Err(Error::io("no more", std::io::Error::other("a broken disk")));
        }
        let count = self.0.min(100);
        buffer.resize(at + count, 7);
        self.0 -= count;
        Ok(count)
    }
}

#[test]
fn what_came_before_an_error_of_the_source_can_be_used() {
    let mut cursor = Cursor::from_refill(Box::new(Failing(250)));
    assert_eq!(cursor.fill(1).unwrap(), 100);
    cursor.advance(60);
    let error = cursor.fill(1_000).unwrap_err();
    assert!(error.kind() == Kind::Io && error.to_string().contains("a broken disk"), "{error}");
    assert_eq!((cursor.offset(), cursor.window()), (60, &[7; 190][..]));
    assert!(cursor.skip(1_000).is_err() && cursor.offset() == 250);
    assert!(!cursor.is_last_window() && !cursor.can_rewind());
}

/// Fails below a layer: that is no damage of the layer.
struct Broken(Vec<u8>, usize);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(self.0.len() - self.1).min(1000);
        if count == 0 {
            return Err(std::io::Error::other("a broken disk"));
        }
        buffer[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
        self.1 += count;
        Ok(count)
    }
}

#[test]
fn an_error_below_a_layer_is_an_error_and_no_damage() {
    let bytes = bytes(&mut Random(3), 400_000);
    for packed in [gzip(&bytes), zstd(&bytes)] {
        let part = packed[..packed.len() - 20].to_vec();
        let mut cursor = Cursor::new(Input::from_read("x", Box::new(Broken(part, 0)), None).unwrap());
        let error = loop {
            match cursor.fill(1) {
                Ok(0) => panic!("the error was taken for the end"),
                Ok(step) => cursor.advance(step),
                Err(error) => break error,
            }
        };
        assert!(error.kind() == Kind::Io && error.to_string().contains("a broken disk"), "{error}");
        let mut sink = Collect::default();
        cursor.report_layers(&mut sink).unwrap();
        assert!(sink.0.is_empty(), "{:?}", sink.0);
    }
}

#[test]
fn streams_are_read_twice_only_if_they_fit() {
    let bytes = bytes(&mut Random(4), 100_000);
    for (limit, fits) in [(99_999, false), (100_000, true), (usize::MAX, true)] {
        let mut cursor = Cursor::new(slow(bytes.clone(), 2));
        assert_eq!(cursor.can_read_twice(limit).unwrap(), fits, "{limit}");
        assert_eq!(cursor.as_slice().is_some(), fits, "{limit}");
    }
    assert!(Cursor::new(Input::from_bytes("x", bytes)).can_read_twice(0).unwrap());
}
