//! `llvm-xray fdr-dump --verify`: blocks by thread, each with its preamble set apart, and the verifier's state table.

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_core::{Diagnostic, Error, Place, Sink};

use super::fdr_line::{FLUSH_BYTES, push_function, push_metadata};
use crate::peer_order::{Owner, in_peer_order};
use crate::rules;
use crate::verbs::check::VerifierState;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::parse::parse_record;
use crate::wire::record::{Body, FUNCTION_BYTES, FdrRecord, Metadata, Orders};

/// How to read records of the trace.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) layout: Orders,
    pub(super) version: u16,
    pub(super) payload_max: u64,
}

/// The blocks of one thread, in the order of the file.
pub(super) struct Group {
    blocks: Vec<Block>,
}

/// From a new-buffer record to the next; consecutive intact records are one piece.
#[derive(Default)]
struct Block {
    pieces: Vec<(u64, u64)>,
}

/// Finds the blocks of a trace, and reports what the state table forbids.
pub(super) struct GroupFinder<'s> {
    sink: &'s mut dyn Sink,
    state: VerifierState,
    owner: Owner,
    block: Block,
    owners: Vec<Owner>,
    groups: BTreeMap<Owner, Group>,
}

impl<'s> GroupFinder<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink) -> Self {
        let (owners, groups) = (Vec::new(), BTreeMap::new());
        Self { sink, state: VerifierState::Start, owner: (0, 0), block: Block::default(), owners, groups }
    }

    /// The groups, in the peer's order.
    pub(super) fn finish(mut self) -> Result<Vec<Group>, Error> {
        self.end_block();
        let mut groups = self.groups;
        Ok(in_peer_order(self.owners.into_iter()).iter().filter_map(|owner| groups.remove(owner)).collect())
    }

    fn end_block(&mut self) {
        let (block, owner) = (std::mem::take(&mut self.block), std::mem::take(&mut self.owner));
        if block.pieces.is_empty() {
            return;
        }
        let owners = &mut self.owners;
        let group = self.groups.entry(owner).or_insert_with(|| {
            owners.push(owner);
            Group { blocks: Vec::new() }
        });
        group.blocks.push(block);
    }

    fn records(&mut self, at: Place, bytes: usize) {
        let end = at.offset + bytes as u64;
        match self.block.pieces.last_mut() {
            Some((_, last)) if *last == at.offset => *last = end,
            _ => self.block.pieces.push((at.offset, end)),
        }
    }

    fn enter(&mut self, next: VerifierState, at: Place) -> Result<(), Error> {
        let problem = self.state.breach(next, at);
        self.state = next;
        problem.map_or(Ok(()), |problem| self.sink.report(problem))
    }
}

impl Visitor for GroupFinder<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.enter(VerifierState::Function, run.at)?;
        self.records(run.at, run.bytes.len());
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error> {
        self.enter(VerifierState::of(&metadata.body), at)?;
        match metadata.body {
            // Extents belong to no block.
            Body::BufferExtents { .. } => {
                self.end_block();
                return Ok(());
            }
            Body::NewBuffer { thread } => {
                self.end_block();
                self.owner.1 = thread;
            }
            Body::Pid { process } => self.owner.0 = i64::from(process).cast_unsigned(),
            _ => {}
        }
        self.records(at, raw.len());
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, _bytes: &[u8], _at: Place) -> Result<(), Error> {
        if kind == GapKind::Damage {
            // Any record may have been there.
            self.state = VerifierState::CallArgument;
        }
        Ok(())
    }

    fn buffer_end(&mut self, at: Place) -> Result<(), Error> {
        self.end_block();
        let problem = (!self.state.may_be_last()).then(|| {
            let report = rules::BAD_END.at(at.offset).record(at.seq).expected("a buffer with a time base");
            report.found(format!("its end after {}", self.state.name()))
        });
        self.state = VerifierState::Start;
        problem.map_or(Ok(()), |problem| self.sink.report(problem))
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Where in a block the printer is: this determines the text before a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePlace {
    Start,
    Preamble,
    Metadata,
    Function,
    Other,
}

/// Prints groups found by a [`GroupFinder`] in the same bytes.
pub(super) fn print_groups(
    bytes: &[u8],
    groups: &[Group],
    read: Reading,
    escapes: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut printer =
        Printer { out, read, escapes, place: LinePlace::Start, buffer: Vec::with_capacity(2 * FLUSH_BYTES) };
    for block in groups.iter().flat_map(|group| &group.blocks) {
        printer.place = LinePlace::Start;
        printer.buffer.extend_from_slice(b"\n[New Block]\n");
        for &(start, end) in &block.pieces {
            let range = usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
            printer.piece(bytes.get(range).unwrap_or_default())?;
        }
    }
    printer.flush()
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    read: Reading,
    escapes: bool,
    place: LinePlace,
    buffer: Vec<u8>,
}

impl Printer<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Prints consecutive records, all of them valid.
    fn piece(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Reading { layout, version, payload_max } = self.read;
        let mut rest = bytes;
        while let Ok((record, used)) = parse_record(rest, layout, version, payload_max) {
            match record {
                FdrRecord::Function(function) => {
                    if self.place == LinePlace::Metadata {
                        self.buffer.push(b'\n');
                    }
                    self.place = LinePlace::Function;
                    self.buffer.extend_from_slice(b"-  ");
                    push_function(&mut self.buffer, &function);
                    debug_assert_eq!(used, FUNCTION_BYTES, "function records have one size");
                }
                FdrRecord::Metadata(metadata) => {
                    self.lead(&metadata.body);
                    push_metadata(&mut self.buffer, &metadata, layout, self.escapes);
                }
            }
            self.buffer.push(b'\n');
            rest = rest.get(used..).unwrap_or_default();
            if self.buffer.len() >= FLUSH_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// The peer's text before a metadata record.
    fn lead(&mut self, body: &Body<'_>) {
        let (text, place): (&[u8], _) = match (body, self.place) {
            (Body::NewBuffer { .. }, _) => (b"Preamble: \n", LinePlace::Preamble),
            (Body::NewCpu { .. }, LinePlace::Preamble) => (b"\nBody:\n ", LinePlace::Metadata),
            (Body::NewCpu { .. }, LinePlace::Function) => (b"\nMetadata:  ", LinePlace::Metadata),
            (Body::TscWrap { .. }, LinePlace::Function) => (b"\nMetadata: ", LinePlace::Metadata),
            (Body::NewCpu { .. } | Body::TscWrap { .. }, _) => (b" ", LinePlace::Metadata),
            (Body::CustomEvent { .. } | Body::TypedEvent { .. }, LinePlace::Metadata) => (b"\n*  ", LinePlace::Other),
            (Body::CustomEvent { .. } | Body::TypedEvent { .. }, _) => (b"*  ", LinePlace::Other),
            (Body::CallArgument { .. }, _) => (b" : ", LinePlace::Other),
            (Body::EndOfBuffer, _) => (b" *** ", LinePlace::Other),
            (Body::WallTime { .. } | Body::Pid { .. } | Body::BufferExtents { .. }, place) => (b"", place),
        };
        self.buffer.extend_from_slice(text);
        self.place = place;
    }
}
