//! Puts events together to a file again: their own bytes, and what is between them as far as it fits.

use anytrace_core::{Error, Place};

use crate::verbs::out::Out;
use crate::wire::reader::Piece;
use crate::wire::record::{Form, Record};
use crate::wire::writer::{head, separator, tail};

/// Longer heads and tails are not kept where they might have to be left out.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Longest separator that is kept.
const SEPARATOR_BYTES_MAX: usize = 64 << 10;

/// Writes a file whose parts may be missing.
pub(crate) struct FileCopy<'a> {
    out: Out<'a>,
    /// True while every byte is copied; false where something is or may be left out.
    is_exact: bool,
    form: Form,
    /// What precedes the first event, until that is known to be complete.
    head: Option<Vec<u8>>,
    is_head_long: bool,
    separator: Vec<u8>,
    tail: Vec<u8>,
    is_tail_lost: bool,
    records: u64,
    /// What was changed between events.
    pub(crate) separators_changed: u64,
    pub(crate) is_frame_made: bool,
}

impl<'a> FileCopy<'a> {
    /// `is_exact`: nothing is left out but damage.
    pub(crate) fn new(out: Out<'a>, is_exact: bool) -> Self {
        Self {
            out,
            is_exact,
            form: Form::Array,
            head: Some(Vec::new()),
            is_head_long: false,
            separator: Vec::new(),
            tail: Vec::new(),
            is_tail_lost: false,
            records: 0,
            separators_changed: 0,
            is_frame_made: false,
        }
    }

    /// Copies an event.
    pub(crate) fn event(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.end_head(true);
        if !self.is_exact {
            self.end_separator();
        }
        self.out.buffer.extend_from_slice(record.text);
        self.records += 1;
        self.out.flush_if_full()
    }

    /// An event is left out; what is between it and the next is no longer needed.
    pub(crate) fn leave_out(&mut self) {
        self.end_head(true);
        self.is_exact = false;
        if self.records == 0 {
            self.separator.clear();
        }
    }

    /// Something was not as it should be; what was read of the end is not all of it.
    pub(crate) fn damaged(&mut self) {
        self.is_exact = false;
        self.is_tail_lost |= !self.tail.is_empty();
    }

    pub(crate) fn piece(&mut self, piece: Piece<'_>, _at: Place) -> Result<(), Error> {
        match piece {
            Piece::Head(bytes) => self.push_head(bytes),
            Piece::Lost(_) => {
                self.end_head(false);
                self.damaged();
            }
            Piece::Separator(bytes) | Piece::Tail(bytes) if self.is_exact => {
                self.end_head(true);
                self.out.buffer.extend_from_slice(bytes);
            }
            Piece::Separator(bytes) => {
                self.end_head(true);
                let has_comma = |bytes: &[u8]| bytes.contains(&b',');
                if self.separator.is_empty() || has_comma(bytes) && !has_comma(&self.separator) {
                    self.separator.clear();
                    self.separator.extend_from_slice(bytes.get(..SEPARATOR_BYTES_MAX).unwrap_or(bytes));
                }
            }
            Piece::Tail(bytes) => {
                self.end_head(true);
                if self.tail.len() + bytes.len() <= FRAME_BYTES_MAX && !self.is_tail_lost {
                    self.tail.extend_from_slice(bytes);
                } else {
                    self.is_tail_lost = true;
                }
            }
        }
        self.out.flush_if_full()
    }

    fn push_head(&mut self, bytes: &[u8]) {
        let Some(head) = &mut self.head else { return };
        if bytes.is_empty() {
            self.form = Form::Lines;
        }
        if head.len() + bytes.len() <= FRAME_BYTES_MAX {
            head.extend_from_slice(bytes);
        } else if self.is_exact {
            self.out.buffer.append(head);
            self.out.buffer.extend_from_slice(bytes);
            self.form = Form::Object;
            self.is_head_long = true;
        } else {
            self.is_head_long = true;
        }
    }

    /// Writes what precedes the first event, or makes it.
    fn end_head(&mut self, is_complete: bool) {
        let Some(own) = self.head.take() else { return };
        if self.is_exact && self.is_head_long {
            self.out.buffer.extend_from_slice(&own);
            return;
        }
        let first = own.iter().find(|byte| matches!(byte, b'[' | b'{'));
        let is_usable = is_complete && !self.is_head_long && (own.ends_with(b"[") || first.is_none());
        match first {
            _ if is_usable && own.is_empty() => self.form = Form::Lines,
            Some(b'{') if is_complete => self.form = Form::Object,
            None if is_usable && self.form == Form::Lines => {}
            _ => self.form = Form::Array,
        }
        if is_usable || self.is_exact && is_complete {
            self.out.buffer.extend_from_slice(&own);
        } else {
            self.is_frame_made = true;
            self.out.buffer.extend_from_slice(head(self.form));
        }
    }

    /// Writes what is between the last event and the next.
    fn end_separator(&mut self) {
        let own = std::mem::take(&mut self.separator);
        if !std::mem::take(&mut self.tail).is_empty() {
            // More events follow what was taken for the end.
            self.is_tail_lost = false;
        }
        let commas = own.iter().filter(|byte| **byte == b',').count();
        if self.records == 0 {
            self.separators_changed += u64::from(commas > 0);
            self.out.buffer.extend(own.iter().filter(|byte| **byte != b','));
            return;
        }
        let fits = match self.form {
            Form::Lines => commas == 0 && !own.is_empty(),
            Form::Array | Form::Object => commas == 1,
        };
        if fits {
            self.out.buffer.extend_from_slice(&own);
        } else {
            self.separators_changed += 1;
            self.out.buffer.extend_from_slice(separator(self.form));
        }
    }

    /// Writes the end. `is_closed`: the end of the array or object was read.
    pub(crate) fn finish(mut self, is_closed: bool, has_bytes: bool) -> Result<Self, Error> {
        if self.is_exact {
            // A file without events may have no array either.
            let own = self.head.take().unwrap_or_default();
            self.out.buffer.extend_from_slice(&own);
            self.out.flush()?;
            return Ok(self);
        }
        if !has_bytes {
            return Ok(self);
        }
        if let Some(own) = self.head.take() {
            let is_object = own.iter().find(|byte| matches!(byte, b'[' | b'{')) == Some(&b'{');
            self.form = if is_object { Form::Object } else { Form::Array };
            self.out.buffer.extend_from_slice(head(self.form));
            self.is_frame_made = true;
        }
        let is_whole = is_closed && !self.is_tail_lost && !self.tail.is_empty();
        let fits = match self.form {
            Form::Array => self.tail.get(1..).is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace)),
            Form::Object => self.tail.trim_ascii_end().ends_with(b"}"),
            Form::Lines => false,
        };
        if is_whole && fits {
            self.out.buffer.extend(self.separator.iter().filter(|byte| **byte != b','));
            let own = std::mem::take(&mut self.tail);
            self.out.buffer.extend_from_slice(&own);
        } else {
            self.is_frame_made |= self.form != Form::Lines;
            self.out.buffer.extend_from_slice(tail(self.form));
        }
        self.out.flush()?;
        Ok(self)
    }
}
