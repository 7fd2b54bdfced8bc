//! `convert -f raw`: Basic records.

use std::io::Write;

use anytrace_core::{Endian, Error};

use super::yaml::Staleness;
use super::{Counts, Feed};
use crate::lanes::ordered::Facts;
use crate::wire::moment::{Moment, MomentKind};
use crate::wire::put::{put_basic, put_header};
use crate::wire::record::{BASIC_VERSION_MAX, BasicBody, BasicRecord, FunctionKind, Header, TYPE_BASIC};

/// How much is buffered before it is written.
const FLUSH_BYTES: usize = 128 * 1024;

/// Writes Basic records.
pub(super) struct Raw<'a> {
    out: &'a mut dyn Write,
    facts: Facts,
    staleness: Option<Staleness>,
    buffer: Vec<u8>,
    counts: Counts,
}

impl<'a> Raw<'a> {
    pub(super) fn new(out: &'a mut dyn Write, facts: Facts, compat: bool) -> Self {
        let (staleness, buffer) = (compat.then(Staleness::default), Vec::with_capacity(2 * FLUSH_BYTES));
        Self { out, facts, staleness, buffer, counts: Counts::default() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn record(&mut self, moment: &Moment<'_>, kind: FunctionKind) {
        let cpu = moment.cpu.to_le_bytes()[0];
        self.counts.cut_processors += u64::from(u16::from(cpu) != moment.cpu);
        let process = if self.facts.version >= 3 { moment.process } else { 0 };
        let (id, thread, padding) = (moment.function.cast_signed(), moment.thread, [0; 8]);
        let body = BasicBody::Function { kind, cpu, tsc: moment.tsc };
        put_basic(&mut self.buffer, &BasicRecord { body, id, thread, process, padding }, Endian::Little);
        if self.staleness.is_some() {
            return;
        }
        for &value in moment.arguments {
            let body = BasicBody::Argument { value, pad: [0; 2] };
            put_basic(&mut self.buffer, &BasicRecord { body, id, thread, process, padding }, Endian::Little);
        }
    }

    /// The record as the peer writes it: no arguments, and a type left over from a typed event.
    fn record_as_peer(&mut self, moment: &Moment<'_>, kind: FunctionKind, record_type: u16) {
        let kind = if kind.is_entry() || !moment.arguments.is_empty() { FunctionKind::Enter } else { kind };
        let start = self.buffer.len();
        self.record(moment, kind);
        if let Some(field) = self.buffer.get_mut(start..start + 2) {
            field.copy_from_slice(&record_type.to_le_bytes());
        }
    }
}

impl Feed for Raw<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        let Facts { version, type_code, constant_tsc, nonstop_tsc, cycle_frequency, .. } = self.facts;
        let as_peer = |code: u32| u16::try_from(code).unwrap_or(u16::MAX);
        let (version, type_code) = match self.staleness {
            // The peer writes the type of the source, so nothing can read its output for an FDR trace.
            Some(_) => (as_peer(version), as_peer(type_code)),
            None => (BASIC_VERSION_MAX, TYPE_BASIC),
        };
        let flags = u32::from(constant_tsc) | u32::from(nonstop_tsc) << 1;
        let header = Header { version, type_code, flags, cycle_frequency, buffer_size: 0, reserved: 0 };
        put_header(&mut self.buffer, &header, Endian::Little);
        Ok(())
    }

    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let stale = self.staleness.as_mut().map(|staleness| staleness.of(moment));
        match (moment.kind, stale) {
            (MomentKind::Function(kind), None) => self.record(moment, kind),
            (MomentKind::Function(kind), Some((_, record_type))) => self.record_as_peer(moment, kind, record_type),
            (MomentKind::Custom | MomentKind::Typed(_), _) => self.counts.events_left_out += 1,
        }
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn end(mut self) -> Result<Counts, Error> {
        self.flush()?;
        Ok(self.counts)
    }
}
