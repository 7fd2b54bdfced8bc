//! What an [`FdrWalk`] does where bytes are not what they should be: it decides by trial, and reports what it did.

use std::borrow::Cow;

use anytrace_core::{Error, Rule, Severity};

use crate::rules;
use crate::wire::fdr::{FdrWalk, GAP_BYTES, GapKind, Visitor, bad_rule, is_zero};
use crate::wire::parse::{Need, parse_record};
use crate::wire::record::{FUNCTION_BYTES, FdrRecord, METADATA_BYTES, kind};
use crate::wire::recover::{
    CHAIN_SURE, ChainEnd, PREAMBLE_LOOK, chain, is_before_preamble_record, is_behind_damaged_extents,
    is_headless_preamble, is_introducer, is_preamble, is_preamble_of_another, records_behind, resume,
};

/// How far a search for the next good record looks.
const LOOK_BYTES: usize = 4096;

/// How far after the end of extents records are accepted.
const OVERRUN_BYTES: usize = 64 * 1024;

const COUNTED_TWICE: &str = "16 bytes for each typed event were counted twice; no record is missing";

impl FdrWalk {
    /// Extents 16 bytes too long for each typed event (`synth/llvmw-v3`, written by LLVM's own library): nothing is lost.
    fn counts_typed_events_twice(&self, left: u64) -> bool {
        left > 0 && left == 16 * self.typed_events
    }

    /// The data end where a record should begin.
    pub(crate) fn end_of_data<V: Visitor>(&mut self, visitor: &mut V, left: u64) -> Result<bool, Error> {
        let at = self.at();
        match (self.end, self.header.version) {
            (None, 1) => visitor.report(rules::END_MISSING.at(at.offset).record(at.seq))?,
            (None, _) => {}
            (Some(_), 1) => {
                let report = rules::TRUNCATED.at(at.offset).record(at.seq);
                visitor.report(report.field("buffer").expected("an end-of-buffer record").found("end of data"))?;
            }
            (Some(_), _) if self.counts_typed_events_twice(left) => {
                let report = rules::EXTENTS_LONG.at(at.offset).record(at.seq).severity(Severity::Warning);
                visitor
                    .report(report.expected(format!("{left} more bytes")).found("end of data").help(COUNTED_TWICE))?;
            }
            (Some(_), _) => {
                let report = rules::TRUNCATED.at(at.offset).record(at.seq).field("buffer");
                visitor.report(report.expected(format!("{left} more bytes (buffer extents)")).found("end of data"))?;
            }
        }
        Ok(false)
    }

    pub(crate) fn cut_by_end_of_data<V: Visitor>(&mut self, visitor: &mut V, need: usize) -> Result<bool, Error> {
        self.truncated(visitor, "record", need as u64)?;
        Ok(false)
    }

    /// Reports and passes the last bytes, which are part of a record.
    pub(crate) fn truncated<V: Visitor>(
        &mut self,
        visitor: &mut V,
        what: &'static str,
        need: u64,
    ) -> Result<(), Error> {
        let at = self.at();
        let mut lost = 0;
        loop {
            let at = self.at();
            let (bytes, _) = self.look(GAP_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            visitor.gap(GapKind::Damage, bytes, at)?;
            let used = bytes.len();
            lost += used as u64;
            self.cursor.advance(used);
        }
        let report = rules::TRUNCATED.at(at.offset).record(at.seq).field(what);
        visitor.report(
            report
                .expected(format!("{need} bytes"))
                .found(format!("{lost} bytes, then the end of the data"))
                .skipped(lost),
        )
    }

    /// Handles the case that the next buffer's extents begin inside this buffer.
    pub(crate) fn next_begins<V: Visitor>(&mut self, visitor: &mut V, left: u64) -> Result<bool, Error> {
        let at = self.at();
        if self.end.is_some() {
            let is_odd = self.counts_typed_events_twice(left);
            let severity = if is_odd { Severity::Warning } else { Severity::Error };
            let report = rules::EXTENTS_LONG.at(at.offset).record(at.seq).severity(severity);
            let report = report.expected(format!("{left} more bytes")).found("the next buffer's extents");
            visitor.report(if is_odd { report.help(COUNTED_TWICE) } else { report })?;
        }
        Ok(false)
    }

    /// A record does not end where the buffer's bytes end. The bytes after them decide.
    pub(crate) fn crosses<V: Visitor>(&mut self, visitor: &mut V, left: u64, need: usize) -> Result<bool, Error> {
        let (layout, version, at) = (self.layout, self.header.version, self.at());
        let over = need as u64 - left;
        let reach = usize::try_from(left).unwrap_or(usize::MAX);
        let is_runtime_bug = self.typed_events > 0 && over <= 16 * (self.typed_events + 1);
        if version > 1 && over <= OVERRUN_BYTES as u64 && reach <= OVERRUN_BYTES {
            let (bytes, eof) = self.look(reach + OVERRUN_BYTES)?;
            let behind = bytes.get(reach..).unwrap_or_default();
            let is_cut = behind.is_empty() || is_introducer(behind, eof, layout) || is_zero(behind);
            let goes_on = || match chain(bytes, eof, layout, version, usize::MAX) {
                (_, _, ChainEnd::NextBuffer) => true,
                (_, _, ChainEnd::Exact) => eof,
                (count, _, ChainEnd::Partial) => (eof && count > 0) || count >= CHAIN_SURE,
                (_, _, ChainEnd::Bad) => false,
            };
            if !is_cut && goes_on() {
                let report = rules::EXTENTS_SHORT.at(at.offset).record(at.seq).field("extents");
                let help = "the records past the end of the extents lead to the next buffer and were kept";
                visitor.report(
                    report
                        .expected(format!("a record's end in {left} bytes"))
                        .found(format!("a record of {need} bytes"))
                        .help(help),
                )?;
                self.end = None;
                return Ok(true);
            }
        } else if need > 2 * METADATA_BYTES && !is_runtime_bug {
            // An event with an absurd size: continue after its 16 bytes if records follow there.
            let (bytes, eof) = self.look(reach.min(LOOK_BYTES))?;
            let reaches_end = bytes.len() == reach || eof;
            let skip = resume(bytes, reaches_end, layout, version, METADATA_BYTES);
            if skip < bytes.len() || skip == METADATA_BYTES {
                return self.pass(visitor, skip, &rules::EVENT_SIZE, format!("{} bytes", need - METADATA_BYTES).into());
            }
        }
        self.cut_by_extents(visitor, left, need)
    }

    fn cut_by_extents<V: Visitor>(&mut self, visitor: &mut V, left: u64, need: usize) -> Result<bool, Error> {
        let (start, typed_events) = (self.at(), self.typed_events);
        let mut lost = 0;
        while lost < left {
            let at = self.at();
            let (bytes, _) = self.look(usize::try_from(left - lost).unwrap_or(GAP_BYTES).min(GAP_BYTES))?;
            if bytes.is_empty() {
                let report = rules::TRUNCATED.at(start.offset).record(start.seq).field("record");
                let found = format!("{lost} bytes, then the end of the data");
                visitor.report(report.expected(format!("{need} bytes")).found(found).skipped(lost))?;
                return Ok(false);
            }
            visitor.gap(GapKind::Damage, bytes, at)?;
            let used = bytes.len();
            lost += used as u64;
            self.cursor.advance(used);
        }
        let mut report = rules::RECORD_CUT.at(start.offset).record(start.seq).field("record");
        report =
            report.expected(format!("{need} bytes")).found(format!("{lost} bytes")).skipped(lost).resumed(start.seq);
        if typed_events > 0 {
            report = report.help(
                "the runtime counts typed events 16 bytes too short, so the end of such a buffer is never written",
            );
        }
        visitor.report(report)?;
        Ok(false)
    }

    /// At the end of the extents: do records continue after it? The runtime counts typed events too short, LLVM ignores
    /// the extents of version 2, and one flipped bit makes them smaller.
    pub(crate) fn goes_on_behind_extents<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let (layout, version, at) = (self.layout, self.header.version, self.at());
        let is_in_preamble = at.seq > 0 && at.offset > self.first && at.offset - self.first <= PREAMBLE_LOOK as u64;
        let (bytes, eof) = self.look(PREAMBLE_LOOK)?;
        let is_next = is_introducer(bytes, eof, layout)
            || is_preamble(bytes, layout)
            || (!is_in_preamble && is_behind_damaged_extents(bytes, layout));
        if bytes.is_empty() || is_zero(bytes) || is_next {
            return Ok(false);
        }
        let (bytes, eof) = self.look(OVERRUN_BYTES)?;
        let used = records_behind(bytes, eof, layout, version, is_in_preamble);
        if used == 0 {
            return Ok(false);
        }
        self.end = Some(at.offset + used as u64);
        if !std::mem::replace(&mut self.is_past_extents, true) {
            let report = rules::EXTENTS_SHORT.at(at.offset).record(at.seq).field("extents");
            let help = "the records past the end of the extents lead to the next buffer and were kept";
            let found = format!(
                "{used} bytes of records{}",
                if used + METADATA_BYTES > OVERRUN_BYTES { " or more" } else { "" }
            );
            visitor.report(report.expected("the end of the buffer").found(found).help(help))?;
        }
        Ok(true)
    }

    /// Handles a buffer whose first record is not the new-buffer record that must be there: the bytes in its place are
    /// skipped, and not read as a record of the buffer.
    pub(crate) fn without_new_buffer<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), Error> {
        let (layout, version, payload_max, offset) =
            (self.layout, self.header.version, self.payload_max, self.cursor.offset());
        let (bytes, _) = self.look(PREAMBLE_LOOK)?;
        let new_buffer = layout.metadata_byte(kind::NEW_BUFFER);
        // A version 1 buffer must begin at its boundary, so any bytes there belong to one.
        let is_needed = version == 1 && bytes.first() != Some(&new_buffer) && !is_headless_preamble(bytes, layout);
        let is_zeroed = is_zero(bytes) && is_before_preamble_record(bytes, layout);
        if !is_zeroed && !is_needed && !is_preamble_of_another(bytes, layout) {
            return Ok(());
        }
        let (rule, found) = match parse_record(bytes, layout, version, payload_max) {
            _ if is_zeroed => (&rules::UNKNOWN_METADATA, "zero bytes in place of a new-buffer record".into()),
            Ok((FdrRecord::Function(function), _)) => (&rules::BAD_TRANSITION, function.kind.name().into()),
            Ok((FdrRecord::Metadata(metadata), _)) => (&rules::BAD_TRANSITION, metadata.body.name().into()),
            Err(Need::Bad(bad)) => bad_rule(bad),
            Err(Need::More(_)) => (&rules::BAD_TRANSITION, "part of a record".into()),
        };
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(offset));
        self.bad(visitor, left, rule, found)?;
        Ok(())
    }

    /// Skips bytes that are not a record and continues at the next place where records follow each other.
    pub(crate) fn bad<V: Visitor>(
        &mut self,
        visitor: &mut V,
        left: u64,
        rule: &'static Rule,
        found: Cow<'static, str>,
    ) -> Result<bool, Error> {
        let (layout, version) = (self.layout, self.header.version);
        let (offset, start) = (self.cursor.offset(), self.first);
        let reach = usize::try_from(left).unwrap_or(usize::MAX);
        let (bytes, eof) = self.look(reach.min(LOOK_BYTES))?;
        let reaches_end = bytes.len() == reach || eof;
        let is_metadata = bytes.first().is_some_and(|&b| layout.metadata_kind(b).is_some());
        let first = if is_metadata { METADATA_BYTES } else { FUNCTION_BYTES };
        let is_in_preamble = offset.saturating_sub(start) < 4 * METADATA_BYTES as u64;
        let skip = if is_in_preamble && is_before_preamble_record(bytes, layout) {
            METADATA_BYTES
        } else {
            resume(bytes, reaches_end, layout, version, first)
        };
        self.pass(visitor, skip, rule, found)
    }

    /// Skips an event that is longer than the limit, with its payload.
    pub(crate) fn pass_long_event<V: Visitor>(&mut self, visitor: &mut V, size: i32) -> Result<bool, Error> {
        let (start, length) = (self.at(), METADATA_BYTES as u64 + u64::from(size.unsigned_abs()));
        let mut passed = 0;
        while passed < length {
            let at = self.at();
            let (bytes, _) = self.look(usize::try_from(length - passed).unwrap_or(GAP_BYTES).min(GAP_BYTES))?;
            if bytes.is_empty() {
                break;
            }
            visitor.gap(GapKind::Damage, bytes, at)?;
            let used = bytes.len();
            passed += used as u64;
            self.cursor.advance(used);
        }
        let report = rules::EVENT_TOO_LONG.at(start.offset).record(start.seq).field("event size");
        let report = report.expected(format!("at most {} (limit)", self.payload_max)).found(size.to_string());
        visitor.report(report.skipped(passed).resumed(start.seq))?;
        Ok(true)
    }

    fn pass<V: Visitor>(
        &mut self,
        visitor: &mut V,
        skip: usize,
        rule: &'static Rule,
        found: Cow<'static, str>,
    ) -> Result<bool, Error> {
        let at = self.at();
        let (bytes, _) = self.look(skip)?;
        let used = bytes.len();
        visitor.gap(GapKind::Damage, bytes, at)?;
        self.cursor.advance(used);
        let help = "times after it, up to the next time base, are too early by the lost amount";
        let report = rule.at(at.offset).record(at.seq).field("record").found(found).help(help);
        visitor.report(report.skipped(used as u64).resumed(at.seq))?;
        Ok(true)
    }
}
