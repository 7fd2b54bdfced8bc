//! Random traces that are cut, in every container: what is read of them, by where each event ends.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod model;
mod random;

use std::io::{Read, Write};

use anytrace_apitrace::{Apitrace, Container};
use anytrace_core::testing::rewrite_with;
use anytrace_core::{Collect, OpenOptions, Plan, Settings, TargetOptions};
use build::snappy;
use model::{Trace, decode, encode, random_trace};
use random::Random;

/// A trace in a container, made by the libraries alone.
fn packed(raw: &[u8], container: Container) -> Vec<u8> {
    match container {
        Container::Raw => raw.to_vec(),
        Container::Snappy => snappy(raw, 700),
        Container::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(raw).unwrap();
            out.finish().unwrap()
        }
        Container::Brotli => {
            let mut out = Vec::new();
            let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 3, 18);
            // Flushed parts can be read without those that follow.
            for part in raw.chunks(900) {
                writer.write_all(part).unwrap();
                writer.flush().unwrap();
            }
            drop(writer);
            out
        }
        Container::Zstd | Container::ZstdSeekable => {
            raw.chunks(800).flat_map(|part| zstd::bulk::compress(part, 3).unwrap()).collect()
        }
    }
}

/// What a library reads until the data end, one byte at a time.
fn until_the_end(mut reader: impl Read) -> usize {
    let mut byte = [0];
    let mut count = 0;
    while let Ok(1) = reader.read(&mut byte) {
        count += 1;
    }
    count
}

/// The bytes of the raw stream that are in a part of a container for sure.
fn complete(bytes: &[u8], container: Container) -> usize {
    match container {
        Container::Raw => bytes.len(),
        Container::Snappy => {
            let (mut rest, mut count) = (bytes.strip_prefix(b"at").unwrap_or_default(), 0);
            while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                let Some((block, tail)) = tail.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
                count += snap::raw::Decoder::new().decompress_vec(block).unwrap().len();
                rest = tail;
            }
            count
        }
        Container::Gzip => until_the_end(flate2::read::GzDecoder::new(bytes)),
        Container::Brotli => until_the_end(brotli::Decompressor::new(bytes, 16)),
        Container::Zstd | Container::ZstdSeekable => zstd::Decoder::new(bytes).map_or(0, until_the_end),
    }
}

/// The events of a trace that can be read, by repairing it into a raw stream.
fn repaired(bytes: &[u8], threads: usize) -> (Trace, Collect) {
    let options = OpenOptions { threads, ..OpenOptions::default() };
    let plan =
        Plan::Repair(TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() });
    let (out, _, sink) = rewrite_with(&Apitrace, &options, bytes, &plan).unwrap();
    (decode(&out), sink)
}

/// Where each event ends in the raw stream.
fn ends(trace: &Trace) -> Vec<usize> {
    let part = |events: usize| Trace { events: trace.events[..events].to_vec(), ..trace.clone() };
    (1..=trace.events.len()).map(|events| encode(&part(events)).len()).collect()
}

#[test]
fn a_cut_container_has_all_events_before_the_cut() {
    let mut random = Random(41);
    for round in 0..12 {
        let trace = random_trace(&mut random, 60);
        let (raw, ends) = (encode(&trace), ends(&trace));
        let first = ends[0];
        for (container, name) in Container::ALL {
            let bytes = packed(&raw, container);
            assert_eq!(repaired(&bytes, 1).0.events, trace.events, "round {round}: {name}");
            for _ in 0..6 {
                let cut = 1 + random.below(bytes.len() as u64 - 1) as usize;
                let part = &bytes[..cut];
                let there = complete(part, container);
                // Without the first event there may be too little to recognize.
                if there < first {
                    continue;
                }
                let due = ends.iter().filter(|end| **end <= there).count();
                for threads in [1, 3] {
                    let (found, sink) = repaired(part, threads);
                    let events = found.events.len();
                    assert!(trace.events.starts_with(&found.events), "round {round}: {name}, cut at {cut}");
                    assert!(events >= due, "round {round}: {name}, cut at {cut}: {events} events of {due}");
                    // Nothing is lost where the raw stream ends between two events; a container may have an end of its own.
                    let is_between = ends.contains(&there);
                    if container == Container::Raw || !is_between {
                        let codes = sink.codes();
                        assert_eq!(sink.errors() == 0, is_between, "round {round}: {name}, cut at {cut}: {codes:?}");
                    }
                }
            }
        }
    }
}
