//! Writes a Basic trace again: unchanged, repaired, in part, in another version or byte order.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Endian, Error, Outcome, Place, Sink};

use crate::verbs::pick::Picker;
use crate::wire::basic::BasicVisitor;
use crate::wire::put::{Out, put_basic};
use crate::wire::record::{BasicBody, BasicRecord, FunctionKind};

/// Writes one Basic trace from another.
pub(crate) struct BasicRewriter<'a, 't> {
    pub(crate) out: &'a mut Out<'t>,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) pick: Picker<'a>,
    pub(crate) endian: Endian,
    pub(crate) from_version: u16,
    pub(crate) version: u16,
    /// Leave out arguments that belong to no record.
    pub(crate) is_repair: bool,
    pub(crate) last: Option<BasicRecord>,
    pub(crate) is_owner_wanted: bool,
    pub(crate) outcome: Outcome,
    pub(crate) notes: BTreeMap<&'static str, u64>,
}

impl BasicRewriter<'_, '_> {
    pub(crate) fn finish(mut self) -> Result<Outcome, Error> {
        self.out.flush()?;
        self.outcome.notes.extend(self.notes.iter().map(|(what, n)| format!("{n} {what}.")));
        Ok(self.outcome)
    }

    fn is_owned(&self, record: &BasicRecord) -> bool {
        self.last.is_some_and(|last| {
            last.id == record.id
                && last.thread == record.thread
                && (self.from_version < 3 || last.process == record.process)
        })
    }

    fn fits(&self, record: &BasicRecord, at: Place) -> Result<(), Error> {
        if self.version == self.from_version {
            return Ok(());
        }
        let cannot = |field: &str, why: String| {
            Error::unsupported(format!("record {} ({}), field {field}: {why}", at.seq, record.name()))
        };
        let is_tail = matches!(record.body, BasicBody::Function { kind: FunctionKind::TailExit, .. });
        if is_tail && self.version < 2 && self.from_version >= 2 {
            return Err(cannot("kind", "version 1 has no tail exits".to_owned()));
        }
        if self.from_version >= 3 && self.version < 3 && record.process != 0 {
            return Err(cannot(
                "process",
                format!("version {} has no process ids, found {}", self.version, record.process),
            ));
        }
        Ok(())
    }
}

impl BasicVisitor for BasicRewriter<'_, '_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], at: Place) -> Result<(), Error> {
        self.outcome.records_read += 1;
        let is_wanted = match record.body {
            BasicBody::Function { tsc, .. } => {
                self.last = Some(*record);
                self.is_owner_wanted = self.pick.is_all()
                    || (self.pick.has_time(tsc)
                        && self.pick.has_place(at.seq, record.thread, 0)
                        && self.pick.has_name(record.id.cast_unsigned(), &[]));
                self.is_owner_wanted
            }
            BasicBody::Argument { .. } if self.is_repair && !self.is_owned(record) => {
                *self.notes.entry("arguments without a preceding function record were left out").or_default() += 1;
                false
            }
            BasicBody::Argument { .. } => self.is_owner_wanted || self.pick.is_all(),
        };
        if !is_wanted {
            return Ok(());
        }
        self.fits(record, at)?;
        let mut written = *record;
        if self.from_version < 3 && self.version >= 3 {
            // This field has no meaning in older versions.
            written.process = 0;
        }
        put_basic(&mut self.out.buffer, &written, self.endian);
        self.outcome.records_written += 1;
        Ok(self.out.settle()?)
    }

    fn damage(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.outcome.bytes_lost += bytes.len() as u64;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
