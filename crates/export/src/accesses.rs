//! Outputs of memory accesses: what they are called, and the door to each.
//!
//! Each is an [`AccessSink`] that writes as accesses come and ends with [`AccessWriter::finish`], which says what the form
//! had no room for. Memory does not grow with the trace.

use std::io::Write;

use anytrace_core::access::{Access, AccessFlags, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::{AccessSink, Error};

use crate::{din, lackey};

/// An output of accesses being written.
pub trait AccessWriter: AccessSink {
    /// Writes what is left; called once, after the last access. Gives what the form could not hold, a sentence each.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(&mut self) -> Result<Vec<String>, Error>;
}

/// A row of the table of outputs.
pub struct AccessOutput {
    /// What `convert --to` takes.
    pub name: &'static str,
    /// Extension its files usually have.
    pub extension: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Begins an output.
    pub open: for<'a> fn(&'a mut dyn Write) -> Box<dyn AccessWriter + 'a>,
}

/// Every output of accesses, by name.
pub static OUTPUTS: [AccessOutput; 3] = [
    AccessOutput {
        name: "din",
        extension: "din",
        help: "Dinero's traditional form: kind and address (dineroIV -informat d)",
        open: |out| Box::new(din::Din::traditional(out)),
    },
    AccessOutput {
        name: "lackey",
        extension: "lackey",
        help: "as Valgrind's lackey prints accesses: kind, address and size",
        open: |out| Box::new(lackey::Lackey::new(out)),
    },
    AccessOutput {
        name: "xdin",
        extension: "xdin",
        help: "Dinero IV's extended form: kind, address and size (dineroIV -informat D)",
        open: |out| Box::new(din::Din::extended(out)),
    },
];

/// The output of a name.
pub fn by_name(name: &str) -> Option<&'static AccessOutput> {
    OUTPUTS.iter().find(|output| output.name == name)
}

/// Counts what a form of bare accesses has no room for.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    threads: u64,
    types: u64,
    regions_added: u64,
    regions_removed: u64,
    flags: u64,
}

impl LeftOut {
    pub(crate) fn thread(&mut self, _number: ThreadNumber) {
        self.threads += 1;
    }

    pub(crate) fn type_name(&mut self, _number: TypeNumber) {
        self.types += 1;
    }

    pub(crate) fn region_added(&mut self, _region: &RegionAdded) {
        self.regions_added += 1;
    }

    pub(crate) fn region_removed(&mut self, _region: &RegionRemoved) {
        self.regions_removed += 1;
    }

    #[inline]
    pub(crate) fn access(&mut self, access: &Access) {
        self.flags += u64::from(access.flags != AccessFlags::NONE);
    }

    /// What was left out, a sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self { threads, types, regions_added, regions_removed, flags } = *self;
        let regions = regions_added + regions_removed;
        let all = [
            (threads > 1, format!("the accesses of {threads} threads stand in one stream: the form names no threads")),
            (
                regions > 0,
                format!("left out: {regions_added} beginnings and {regions_removed} ends of regions, of {types} types"),
            ),
            (flags > 0, format!("left out: that {flags} accesses are atomic or unaligned")),
        ];
        all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect()
    }
}

/// Appends lower-case hex digits without `0x`, at least so many.
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
    fn the_table_is_sorted_and_an_output_of_nothing_is_empty() {
        assert!(OUTPUTS.is_sorted_by_key(|output| output.name));
        for output in &OUTPUTS {
            assert!(std::ptr::eq(by_name(output.name).unwrap(), output));
            let mut out = Vec::new();
            assert_eq!((output.open)(&mut out).finish().unwrap(), Vec::<String>::new());
            assert!(out.is_empty());
        }
        assert!(by_name("chrome").is_none());
    }

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
