//! What a caller asks of a trace: how to open it, what to print, what to write.

use std::ops::Range;

use crate::index::Part;
use crate::options::means_nothing;
use crate::{Endian, Error, FormatOption, Limits, OptionUse, Settings};

/// How to open a trace. The default detects everything.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Byte order, where detection is to be overridden.
    pub endian: Option<Endian>,
    /// Options of the format itself ([`crate::Format::options`] with [`OptionUse::Read`]).
    pub own: Settings,
    /// Limits on what input may ask for.
    pub limits: Limits,
    /// Threads to use; 0 or 1 is one.
    pub threads: usize,
    /// The part to read, for the tables of [`crate::Format::part_tables`]. An index has the places where one can begin.
    pub part: Option<Part>,
}

impl OpenOptions {
    /// Refuses options that a format does not have. `known` contains names of options without dashes that several
    /// formats share: `endian`.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str], own: &[FormatOption]) -> Result<(), Error> {
        refuse(format, known, &[("endian", self.endian.is_some())])?;
        self.own.only(format, own, OptionUse::Read)
    }
}

/// What `dump` prints.
#[derive(Debug, Default)]
pub struct DumpOptions {
    /// Text or JSON lines.
    pub form: DumpForm,
    /// Show byte offsets.
    pub offsets: bool,
    /// Omit fields that only state where a record is (offset, size of the previous record, call number), so that equal
    /// records give equal lines: for `diff`.
    pub without_positions: bool,
    /// Which records.
    pub selection: Selection,
}

/// The form `dump` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DumpForm {
    /// One record per line, for people.
    #[default]
    Text,
    /// One JSON object per record with every field.
    Jsonl,
}

/// A predicate on a record's name: function, description, call, type or transition.
pub type NameMatch = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A part of a trace. Empty means all; several conditions must all hold.
#[derive(Default)]
pub struct Selection {
    /// Record numbers, from 0, end not included.
    pub records: Option<Range<u64>>,
    /// Threads, or what the format has instead; empty means all.
    pub threads: Vec<u64>,
    /// Times from the first bound to before the second.
    pub time: Option<(TimeBound, TimeBound)>,
    /// By name.
    pub name: Option<NameMatch>,
    /// Conditions of the format itself ([`crate::Format::options`] with [`OptionUse::Select`]).
    pub own: Settings,
    /// Earliest time of the trace in its own unit, where it is known already: otherwise a selection with times that
    /// count from it reads the trace twice.
    pub start: Option<u64>,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection")
            .field("records", &self.records)
            .field("threads", &self.threads)
            .field("time", &self.time)
            .field("name", &self.name.is_some())
            .field("own", &self.own)
            .finish()
    }
}

impl Selection {
    /// True when nothing is left out.
    pub fn is_all(&self) -> bool {
        self.records.is_none()
            && self.threads.is_empty()
            && self.time.is_none()
            && self.name.is_none()
            && self.own.is_empty()
    }

    /// Refuses conditions that a format does not have.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str], own: &[FormatOption]) -> Result<(), Error> {
        let given = [
            ("records", self.records.is_some()),
            ("thread", !self.threads.is_empty()),
            ("time", self.time.is_some()),
            ("name", self.name.is_some()),
        ];
        refuse(format, known, &given)?;
        self.own.only(format, own, OptionUse::Select)
    }

    /// True when the record number is selected.
    pub fn has_record(&self, seq: u64) -> bool {
        self.records.as_ref().is_none_or(|range| range.contains(&seq))
    }

    /// True when times count from the start of the trace, which must be known before the first record is selected.
    pub fn has_relative_time(&self) -> bool {
        let is_relative = |bound| matches!(bound, TimeBound::Nanoseconds(_));
        self.time.is_some_and(|(from, to)| is_relative(from) || is_relative(to))
    }

    /// True when the thread is selected.
    pub fn has_thread(&self, thread: u64) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread)
    }
}

/// One end of a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBound {
    /// In the trace's own unit, absolute: ticks, or nanoseconds since the trace's epoch.
    Native(u64),
    /// Nanoseconds since the earliest time of the trace, as in [`crate::span::SpanSource::origin`].
    Nanoseconds(u64),
    /// No bound.
    Open,
}

/// What a rewrite does and which form it writes.
#[derive(Debug)]
pub enum Plan {
    /// Write every record, in the form asked for; by default the same bytes again.
    Convert(TargetOptions),
    /// Write a valid trace of what can be salvaged.
    Repair(TargetOptions),
    /// Write a valid trace of a part.
    Trim(Selection, TargetOptions),
}

impl Plan {
    /// The form to write.
    pub fn target(&self) -> &TargetOptions {
        match self {
            Self::Convert(target) | Self::Repair(target) | Self::Trim(_, target) => target,
        }
    }
}

/// The form a rewrite writes; fields that are `None` stay as in the source.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// One of [`crate::Format::targets`]; `None` is the source's own form.
    pub to: Option<String>,
    /// Format version.
    pub version: Option<u32>,
    /// Byte order.
    pub endian: Option<Endian>,
    /// Options of the format itself ([`crate::Format::options`] with [`OptionUse::Write`]).
    pub own: Settings,
}

impl TargetOptions {
    /// Refuses options that a format does not have. `known` contains names of options without dashes, as the command
    /// line spells them (`to-endian`).
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str], own: &[FormatOption]) -> Result<(), Error> {
        refuse(format, known, &[("version", self.version.is_some()), ("to-endian", self.endian.is_some())])?;
        self.own.only(format, own, OptionUse::Write)
    }
}

fn refuse(format: &str, known: &[&str], given: &[(&str, bool)]) -> Result<(), Error> {
    match given.iter().find(|(name, is_given)| *is_given && !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(means_nothing(name, format)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_a_format_does_not_have_is_refused_by_name() {
        let target = TargetOptions { version: Some(3), ..TargetOptions::default() };
        assert!(target.only("x", &["version"], &[]).is_ok());
        let error = target.only("y", &[], &[]).unwrap_err();
        assert_eq!(error.to_string(), "--version does not apply to y traces");
    }

    #[test]
    fn an_empty_selection_is_all() {
        assert!(Selection::default().is_all());
        let part = Selection { records: Some(2..4), ..Selection::default() };
        assert!(!part.is_all() && part.has_record(3) && !part.has_record(4) && part.has_thread(9));
    }
}
