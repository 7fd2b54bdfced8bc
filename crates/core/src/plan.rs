//! What a caller asks of a trace: how to open it, what to print, what to write.

use std::ops::Range;

use crate::{Endian, Error, Limits};

/// How to open a trace. The default detects everything.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Byte order, where detection is to be overridden.
    pub endian: Option<Endian>,
    /// Pointer width in bytes (4 or 8), where detection is to be overridden.
    pub pointer_width: Option<u8>,
    /// How numbers without a prefix are read, in text formats.
    pub radix: Option<Radix>,
    /// Recover values that the format cannot express (Heph: arrays of arrays); always reported.
    pub recover: bool,
    /// Limits on what input may ask for.
    pub limits: Limits,
    /// Threads to use; 0 or 1 is one.
    pub threads: usize,
}

impl OpenOptions {
    /// Refuses options that a format does not have. `known` contains names of options without dashes.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str]) -> Result<(), Error> {
        let given = [
            ("endian", self.endian.is_some()),
            ("pointer-width", self.pointer_width.is_some()),
            ("radix", self.radix.is_some()),
            ("recover", self.recover),
        ];
        refuse(format, known, &given)
    }
}

/// Base of numbers in text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Radix {
    /// Decimal.
    Decimal,
    /// Hexadecimal.
    Hex,
}

/// How a text format is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The document's form, one record a line.
    Canonical,
    /// Values without keys, one record a line.
    Positional,
    /// One field a line, for people.
    Pretty,
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
    /// One record a line, for people.
    #[default]
    Text,
    /// One JSON object a record, every field of the wire.
    Jsonl,
}

/// A predicate on a record's name: function, description, call, type or transition.
pub type NameMatch = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A part of a trace. Empty means all; several conditions must all hold.
#[derive(Default)]
pub struct Selection {
    /// Record numbers, from 0, end not included.
    pub records: Option<Range<u64>>,
    /// Threads (for Heph: streams); empty means all.
    pub threads: Vec<u64>,
    /// Times from the first bound to before the second.
    pub time: Option<(TimeBound, TimeBound)>,
    /// By name.
    pub name: Option<NameMatch>,
    /// Buffer numbers, from 0, end not included (XRay).
    pub buffers: Option<Range<u64>>,
    /// Frame numbers, from 0, end not included (apitrace).
    pub frames: Option<Range<u64>>,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection")
            .field("records", &self.records)
            .field("threads", &self.threads)
            .field("time", &self.time)
            .field("name", &self.name.is_some())
            .field("buffers", &self.buffers)
            .field("frames", &self.frames)
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
            && self.buffers.is_none()
            && self.frames.is_none()
    }

    /// Refuses conditions that a format does not have.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str]) -> Result<(), Error> {
        let given = [
            ("records", self.records.is_some()),
            ("thread", !self.threads.is_empty()),
            ("time", self.time.is_some()),
            ("name", self.name.is_some()),
            ("buffers", self.buffers.is_some()),
            ("frames", self.frames.is_some()),
        ];
        refuse(format, known, &given)
    }

    /// True when the record number is selected.
    pub fn has_record(&self, seq: u64) -> bool {
        self.records.as_ref().is_none_or(|range| range.contains(&seq))
    }

    /// True when the thread is selected.
    pub fn has_thread(&self, thread: u64) -> bool {
        self.threads.is_empty() || self.threads.contains(&thread)
    }
}

/// One end of a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBound {
    /// In the trace's own unit, absolute: XRay ticks, Heph nanoseconds since the trace's epoch.
    Native(u64),
    /// Nanoseconds since the first time on the wire (Heph: since the trace's epoch).
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
    /// Pointer width in bytes.
    pub pointer_width: Option<u8>,
    /// Container (apitrace).
    pub container: Option<String>,
    /// Compression level of the container.
    pub level: Option<i32>,
    /// Layout of a text format.
    pub style: Option<Style>,
    /// Base of numbers of a text format.
    pub radix: Option<Radix>,
}

impl TargetOptions {
    /// Refuses options that a format does not have. `known` contains names of options without dashes, as the command
    /// line spells them (`to-endian`).
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, known: &[&str]) -> Result<(), Error> {
        let given = [
            ("version", self.version.is_some()),
            ("to-endian", self.endian.is_some()),
            ("to-pointer-width", self.pointer_width.is_some()),
            ("container", self.container.is_some()),
            ("level", self.level.is_some()),
            ("style", self.style.is_some()),
            ("to-radix", self.radix.is_some()),
        ];
        refuse(format, known, &given)
    }
}

fn refuse(format: &str, known: &[&str], given: &[(&str, bool)]) -> Result<(), Error> {
    match given.iter().find(|(name, is_given)| *is_given && !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::usage(format!("--{name} means nothing for {format} traces"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_a_format_does_not_have_is_refused_by_name() {
        let target = TargetOptions { version: Some(3), ..TargetOptions::default() };
        assert!(target.only("xray", &["version"]).is_ok());
        let error = target.only("heph", &[]).unwrap_err();
        assert_eq!(error.to_string(), "--version means nothing for heph traces");
    }

    #[test]
    fn an_empty_selection_is_all() {
        assert!(Selection::default().is_all());
        let part = Selection { records: Some(2..4), ..Selection::default() };
        assert!(!part.is_all() && part.has_record(3) && !part.has_record(4) && part.has_thread(9));
    }
}
