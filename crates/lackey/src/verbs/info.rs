//! `info`: counts everything in one pass.

mod details;

use anytrace_core::{Error, Info, Sink};

use crate::NAME;
use crate::verbs::run::RunFacts;
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::{Kind, Record, SIZE_MAX};

/// Bytes of a cache line, for line crossings.
const LINE_BYTES: u64 = 64;

/// Counts of one kind, by size.
const CELLS: usize = SIZE_MAX as usize + 1;

struct Counts {
    /// By kind, then by size.
    cells: Box<[u64]>,
    instructions: Range,
    data: Range,
    straddles: u64,
    unusual: u64,
    message_lines: u64,
    text_pieces: u64,
    run: RunFacts,
}

/// Lowest and highest first address.
#[derive(Clone, Copy)]
struct Range {
    min: u64,
    max: u64,
}

impl Range {
    const NONE: Self = Self { min: u64::MAX, max: 0 };

    #[inline(always)]
    fn widen(&mut self, address: u64) {
        self.min = self.min.min(address);
        self.max = self.max.max(address);
    }
}

/// Reads the entire trace.
pub(crate) fn info(reader: Reader, sink: &mut dyn Sink) -> Result<Info, Error> {
    let mut info = Info::new(NAME);
    info.set_container(reader.layers(), None);
    let mut counts = Counts {
        cells: vec![0; CELLS * Kind::ALL.len()].into_boxed_slice(),
        instructions: Range::NONE,
        data: Range::NONE,
        straddles: 0,
        unusual: 0,
        message_lines: 0,
        text_pieces: 0,
        run: RunFacts::default(),
    };
    let passed = reader.walk(&mut counts, sink)?;
    info.bytes = passed.bytes;
    info.records = passed.records;
    info.set_kinds(Kind::ALL.map(|kind| (kind.name(), counts.of(kind).iter().sum())));
    info.details = counts.details(passed.bytes_lost);
    Ok(info)
}

impl Visit for Counts {
    #[inline]
    fn record(&mut self, record: &Record<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(cell) = self.cells.get_mut(record.kind as usize * CELLS + usize::from(record.size)) {
            *cell += 1;
        }
        self.unusual += u64::from(!record.is_usual);
        if matches!(record.kind, Kind::Fetch | Kind::Block) {
            self.instructions.widen(record.address);
        } else {
            self.data.widen(record.address);
            self.straddles += u64::from(record.address % LINE_BYTES + u64::from(record.size) > LINE_BYTES);
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        match piece {
            Piece::Message(line) => {
                self.message_lines += u64::from(line.ends_with(b"\n"));
                if let Some(message) = crate::wire::message::message(line) {
                    self.run.take(&message);
                }
            }
            Piece::Text(_) => self.text_pieces += 1,
            Piece::Space(_) | Piece::Lost(_) => {}
        }
        Ok(())
    }
}

impl Counts {
    fn of(&self, kind: Kind) -> &[u64] {
        self.cells.get(kind as usize * CELLS..(kind as usize + 1) * CELLS).unwrap_or_default()
    }

    /// Sizes of a kind and how often each occurs.
    fn sizes(&self, kind: Kind) -> impl Iterator<Item = (u64, u64)> {
        (0..).zip(self.of(kind).iter().copied()).filter(|(_, count)| *count > 0)
    }
}
