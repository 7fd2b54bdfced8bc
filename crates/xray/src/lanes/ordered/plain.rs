//! The first pass over an FDR trace that is as its program wrote it, on several threads.
//!
//! Buffers follow one another, each with its length, so that the trace can be cut between them. At the first thing that
//! is not as it should be all is given up, and [`crate::wire::fdr::FdrWalk`] reads the trace, which knows what to make
//! of it.

use anytrace_core::{Collect, Place};

use crate::wire::fdr::{RUN_BYTES, Run, Visitor};
use crate::wire::parse::{function_run, parse_record};
use crate::wire::record::{Body, FdrRecord, HEADER_BYTES, METADATA_BYTES, Metadata, Orders, kind};

use super::index::{Index, Indexer};

/// Shortest trace that is cut. In tests, small ones are too.
const BYTES_MIN: usize = if cfg!(test) { 1 } else { 4 << 20 };

/// Indexes a trace whose bytes are `all`; returns the number of records too. `None` if anything is unusual.
pub(super) fn index(
    all: &[u8],
    layout: Orders,
    version: u16,
    payload_max: u64,
    workers: usize,
) -> Option<(Index, u64)> {
    if workers < 2 || all.len() < BYTES_MIN {
        return None;
    }
    let cuts = cuts(all, layout, workers)?;
    let part = |cut: &[usize]| {
        let &[from, until] = cut else { return None };
        let mut sink = Collect::default();
        let mut indexer = Indexer::new(&mut sink, version);
        let records = Walk { all, layout, version, payload_max, at: from, seq: 0 }.buffers(until, &mut indexer)?;
        let unsorted = indexer.unsorted();
        sink.0.is_empty().then_some((unsorted, records))
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = cuts.windows(2).skip(1).map(|cut| scope.spawn(move || part(cut))).collect();
        let first = cuts.get(..2).and_then(part);
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    });
    let mut sink = Collect::default();
    let (mut whole, mut records) = (Indexer::new(&mut sink, version), 0);
    for part in parts {
        let (index, count) = part?;
        whole.append(index, records);
        records += count;
    }
    Some((whole.finish(), records))
}

/// Where parts of about the same length begin and end, all between buffers.
fn cuts(all: &[u8], layout: Orders, workers: usize) -> Option<Vec<usize>> {
    let length = all.len() / workers;
    let (mut cuts, mut at) = (vec![HEADER_BYTES], HEADER_BYTES);
    while at < all.len() {
        if cuts.len() < workers && at >= cuts.len() * length && at > HEADER_BYTES {
            cuts.push(at);
        }
        at = end_of_buffer(all, at, layout)?;
    }
    cuts.push(at);
    (cuts.len() > 2).then_some(cuts)
}

/// Where the buffer ends that begins here, if its first records are what they should be.
fn end_of_buffer(all: &[u8], at: usize, layout: Orders) -> Option<usize> {
    let is = |number: u8, of: usize| all.get(at + of * METADATA_BYTES) == Some(&layout.metadata_byte(number));
    let is_begun = is(kind::BUFFER_EXTENTS, 0)
        && is(kind::NEW_BUFFER, 1)
        && is(kind::WALL_TIME, 2)
        && (is(kind::PID, 3) || is(kind::NEW_CPU, 3));
    let size = layout.endian.u64(anytrace_core::bytes::array_at(all, at + 1)?);
    let end = (at + METADATA_BYTES).checked_add(usize::try_from(size).ok()?)?;
    (is_begun && size >= 3 * METADATA_BYTES as u64 && end <= all.len()).then_some(end)
}

/// Reads buffers.
struct Walk<'a> {
    all: &'a [u8],
    layout: Orders,
    version: u16,
    payload_max: u64,
    at: usize,
    seq: u64,
}

impl<'a> Walk<'a> {
    /// Up to a place between buffers; returns the number of records.
    fn buffers(mut self, until: usize, indexer: &mut Indexer<'_>) -> Option<u64> {
        while self.at < until {
            let end = end_of_buffer(self.all, self.at, self.layout)?;
            self.record(end, indexer, |body| matches!(body, Body::BufferExtents { .. }))?;
            self.record(end, indexer, |body| matches!(body, Body::NewBuffer { .. }))?;
            while self.at < end {
                let window = self.all.get(self.at..end.min(self.at + RUN_BYTES))?;
                let used = function_run(window, self.layout);
                if used > 0 {
                    let run = Run { bytes: window.get(..used)?, at: self.place(), layout: self.layout };
                    self.seq += run.len();
                    indexer.functions(run).ok()?;
                    self.at += used;
                    continue;
                }
                let is_usual = |body: &Body<'_>| {
                    !matches!(body, Body::BufferExtents { .. } | Body::NewBuffer { .. } | Body::EndOfBuffer)
                };
                self.record(end, indexer, is_usual)?;
            }
            indexer.buffer_end(self.place()).ok()?;
        }
        (self.at == until).then_some(self.seq)
    }

    fn place(&self) -> Place {
        Place { offset: self.at as u64, seq: self.seq }
    }

    /// One metadata record that has to be of some kind.
    fn record(&mut self, end: usize, indexer: &mut Indexer<'_>, is_wanted: impl Fn(&Body<'_>) -> bool) -> Option<()> {
        let bytes: &'a [u8] = self.all.get(self.at..end)?;
        let parsed = parse_record(bytes, self.layout, self.version, self.payload_max);
        let Ok((FdrRecord::Metadata(metadata), used)) = parsed else { return None };
        let metadata: Metadata<'a> = metadata;
        if !is_wanted(&metadata.body) {
            return None;
        }
        indexer.metadata(&metadata, bytes.get(..used)?, self.place()).ok()?;
        self.at += used;
        self.seq += 1;
        Some(())
    }
}
