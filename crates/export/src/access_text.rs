//! The common part of the outputs of accesses: a line or a record for each. A form supplies only its lines.

use std::io::Write;

use anytrace_core::access::{Access, AccessFlags, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::{AccessSink, Error};

use crate::pen::Pen;

/// An output of accesses being written.
pub trait AccessWriter: AccessSink {
    /// Writes the rest; called once, after the last access. Returns what the form could not express, one sentence each.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(&mut self) -> Result<Vec<String>, Error>;
}

/// How a form writes its lines.
pub(crate) trait AccessLines {
    /// Appends everything that can be written once this access is known, line ends included.
    fn push(&mut self, out: &mut Vec<u8>, access: &Access);

    /// Takes the next thread; false where the form has no room for threads.
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> bool {
        false
    }

    /// Appends what was buffered, after the last access.
    fn push_rest(&mut self, _out: &mut Vec<u8>) {}

    /// What the form could not express beyond what [`AccessText`] counts, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Accesses being written as lines of one form.
pub(crate) struct AccessText<'a, L> {
    pen: Pen<'a>,
    lines: L,
    left_out: LeftOut,
}

impl<'a, L: AccessLines> AccessText<'a, L> {
    /// Begins an output.
    pub(crate) fn new(out: &'a mut (dyn Write + Send), lines: L) -> Self {
        Self { pen: Pen::new(out), lines, left_out: LeftOut::default() }
    }
}

impl<L: AccessLines> AccessSink for AccessText<'_, L> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.left_out.threads += u64::from(!self.lines.thread(number, id));
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, _name: Option<&[u8]>) -> Result<(), Error> {
        self.left_out.types += 1;
        Ok(())
    }

    fn region_added(&mut self, _region: &RegionAdded) -> Result<(), Error> {
        self.left_out.regions_added += 1;
        Ok(())
    }

    fn region_removed(&mut self, _region: &RegionRemoved) -> Result<(), Error> {
        self.left_out.regions_removed += 1;
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        for access in batch {
            self.left_out.flags += u64::from(access.flags != AccessFlags::NONE);
            self.lines.push(&mut self.pen.bytes, access);
        }
        self.pen.rest()
    }
}

impl<L: AccessLines> AccessWriter for AccessText<'_, L> {
    fn finish(&mut self) -> Result<Vec<String>, Error> {
        self.lines.push_rest(&mut self.pen.bytes);
        self.pen.finish()?;
        let mut notes = self.left_out.notes();
        notes.extend(self.lines.notes());
        Ok(notes)
    }
}

/// Counts what a form of bare accesses cannot express.
#[derive(Debug, Default)]
struct LeftOut {
    threads: u64,
    types: u64,
    regions_added: u64,
    regions_removed: u64,
    flags: u64,
}

impl LeftOut {
    /// What was left out, one sentence each.
    fn notes(&self) -> Vec<String> {
        let Self { threads, types, regions_added, regions_removed, flags } = *self;
        let regions = regions_added + regions_removed;
        let all = [
            (threads > 1, format!("the accesses of {threads} threads are combined: this form does not name threads")),
            (
                regions > 0,
                format!("left out: {regions_added} starts and {regions_removed} ends of regions, of {types} types"),
            ),
            (flags > 0, format!("left out: atomic and unaligned flags of {flags} accesses")),
        ];
        all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect()
    }
}

/// Appends lower-case hex digits without `0x`, at least this many.
#[inline]
pub(crate) fn push_address(out: &mut Vec<u8>, address: u64, digits_min: u32) {
    let digits = (64 - address.leading_zeros()).div_ceil(4).max(digits_min).max(1);
    let mut text = [0_u8; 16];
    let mut rest = address;
    for place in text.iter_mut().rev() {
        *place = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
    }
    out.extend_from_slice(&text[text.len() - (digits as usize).min(text.len())..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_as_many_digits_as_they_need_and_as_are_asked_for() {
        let shown = |address, digits| {
            let mut out = Vec::new();
            push_address(&mut out, address, digits);
            String::from_utf8(out).unwrap()
        };
        for address in [0, 1, 15, 16, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
            assert_eq!(shown(address, 0), format!("{address:x}"));
            assert_eq!(shown(address, 8), format!("{address:08x}"));
        }
    }
}
