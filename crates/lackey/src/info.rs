//! `info`: counts everything in one pass.

use anytrace_core::{Error, Info, Sink};
use serde_json::{Map, Value, json};

use crate::NAME;
use crate::reader::{Piece, Place, Reader, Visit};
use crate::record::{Kind, Record, SIZE_MAX};
use crate::run::RunFacts;

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
    fn record(&mut self, record: &Record<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
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

    fn piece(&mut self, piece: Piece<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        match piece {
            Piece::Message(line) => {
                self.message_lines += u64::from(line.ends_with(b"\n"));
                if let Some(message) = crate::message::message(line) {
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

    fn bytes(&self, kinds: &[Kind]) -> u64 {
        let of = |kind: &Kind| self.sizes(*kind).map(|(size, count)| size.saturating_mul(count)).sum::<u64>();
        kinds.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Sizes of data accesses and how often each occurs.
    fn data_sizes(&self) -> Value {
        let mut sizes = Map::new();
        for size in 0..CELLS {
            let count = |kind| self.of(kind).get(size).copied().unwrap_or(0);
            let count = count(Kind::Read) + count(Kind::Write) + count(Kind::Modify);
            if count > 0 {
                sizes.insert(size.to_string(), count.into());
            }
        }
        Value::Object(sizes)
    }

    fn details(&self, bytes_lost: u64) -> Vec<(&'static str, Value)> {
        let run = &self.run;
        let mut details = Vec::new();
        let mut say = |key, value: Option<Value>| details.extend(value.map(|value| (key, value)));
        say("command", run.command.as_deref().map(Value::from));
        say("valgrind", run.version.as_deref().map(Value::from));
        say("processes", (!run.processes.is_empty()).then(|| json!(run.processes)));
        say("exit_code", run.exit_code.map(Value::from));
        say("instructions_counted", run.instructions.map(Value::from));
        say("superblocks_counted", run.blocks.map(Value::from));
        for (key, count) in [
            ("bytes_fetched", self.bytes(&[Kind::Fetch])),
            ("bytes_read", self.bytes(&[Kind::Read, Kind::Modify])),
            ("bytes_written", self.bytes(&[Kind::Write, Kind::Modify])),
        ] {
            say(key, Some(count.into()));
        }
        say("access_sizes", Some(self.data_sizes()));
        say("straddling_64_byte_line", Some(self.straddles.into()));
        for (low, high, range) in [
            ("address_min", "address_max", self.data),
            ("address_fetched_min", "address_fetched_max", self.instructions),
        ] {
            let is_there = range.min <= range.max;
            say(low, is_there.then(|| range.min.into()));
            say(high, is_there.then(|| range.max.into()));
        }
        for (key, count) in [
            ("records_spelled_otherwise", self.unusual),
            ("message_lines", self.message_lines),
            ("text_pieces", self.text_pieces),
            ("lost_bytes", bytes_lost),
        ] {
            say(key, (count > 0).then(|| count.into()));
        }
        details
    }
}
