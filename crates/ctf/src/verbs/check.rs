//! Rules beyond grammar.

use std::sync::Arc;

use anytrace_core::{Error, Place, Sink, Summary};

use super::facts::Facts;
use super::walk::{Go, walk};
use crate::model::node::Role;
use crate::rules;
use crate::wire::place::Piece;
use crate::wire::reader::Reader;

/// Reports every violation of a rule.
pub(crate) fn check(mut reader: Reader, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut checker = Checker::default();
    let passed = walk(&mut reader, sink, |reader, place, sink| {
        match reader.piece() {
            Piece::Packet(_) => checker.packet(reader, place, sink)?,
            Piece::Event(_) => checker.event(reader, place, sink)?,
            _ => {}
        }
        Ok(Go::On)
    })?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// What the last packet of a file said.
#[derive(Debug, Default)]
struct Checker {
    file: Option<Arc<str>>,
    discarded: Option<u64>,
    number: Option<u64>,
    time_ns: u64,
    /// The end of the packet, in nanoseconds.
    end_ns: Option<u64>,
    begin_ns: Option<u64>,
    /// One of each file is enough.
    has_outside: bool,
    has_backwards: bool,
    has_said_no_clock: bool,
}

impl Checker {
    fn packet(&mut self, reader: &Reader, place: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let file = reader.in_file().map(|(_, name)| Arc::clone(name));
        if file != self.file {
            *self = Self { file, has_said_no_clock: self.has_said_no_clock, ..Self::default() };
        }
        let Some((trace, _)) = reader.stream() else { return Ok(()) };
        let Piece::Packet(packet) = reader.piece() else { return Ok(()) };
        let memory = reader.memory();
        let ns = |role| memory.role(role).and_then(|ticks| trace.ns(packet.stream, ticks));
        (self.begin_ns, self.end_ns) = (ns(Role::Begin), ns(Role::End));
        if let Some(uuid) = trace.uuid.filter(|own| memory.uuid.is_some_and(|found| found != *own)) {
            let hex = |uuid: [u8; 16]| uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let found = hex(memory.uuid.unwrap_or_default());
            sink.report(reader.diagnostic(&rules::OTHER_UUID, 0).record(place.seq).expected(hex(uuid)).found(found))?;
        }
        if let Some(now) = memory.role(Role::Discarded) {
            let lost = now.saturating_sub(self.discarded.unwrap_or(0));
            if lost > 0 {
                let found = format!("{lost} events before the end of this packet");
                sink.report(reader.diagnostic(&rules::EVENTS_DISCARDED, 0).record(place.seq).found(found))?;
            }
            self.discarded = Some(now);
        }
        if let Some(now) = memory.role(Role::PacketNumber) {
            let next = self.number.map_or(now, |last| last.wrapping_add(1));
            if now > next {
                let found = reader.diagnostic(&rules::PACKETS_LOST, 0).record(place.seq).field("packet_seq_num");
                sink.report(found.expected(next.to_string()).found(now.to_string()))?;
            }
            self.number = Some(now);
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, reader: &Reader, place: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(time) = Facts::time(reader).and_then(|facts| facts.time_ns) else {
            if !std::mem::replace(&mut self.has_said_no_clock, true) {
                sink.report(reader.diagnostic(&rules::NO_CLOCK, 0).record(place.seq))?;
            }
            return Ok(());
        };
        if time < self.time_ns && !std::mem::replace(&mut self.has_backwards, true) {
            let found = reader.diagnostic(&rules::TIME_BACKWARDS, 0).record(place.seq).field("timestamp");
            sink.report(found.expected(format!("at least {}", self.time_ns)).found(time.to_string()))?;
        }
        let is_outside = self.begin_ns.is_some_and(|begin| time < begin) || self.end_ns.is_some_and(|end| time > end);
        if is_outside && !std::mem::replace(&mut self.has_outside, true) {
            let (begin, end) = (self.begin_ns.unwrap_or(0), self.end_ns.unwrap_or(u64::MAX));
            let found = reader.diagnostic(&rules::TIME_OUTSIDE, 0).record(place.seq).field("timestamp");
            sink.report(found.expected(format!("{begin} to {end}")).found(time.to_string()))?;
        }
        self.time_ns = self.time_ns.max(time);
        Ok(())
    }
}
