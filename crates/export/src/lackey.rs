//! Accesses as Valgrind's tool lackey prints them: text, an access a line.
//!
//! `I  ADDRESS,SIZE` fetches, ` L ADDRESS,SIZE` reads, ` S ADDRESS,SIZE` writes; a read and a write of the same bytes by
//! one record are a modify, ` M ADDRESS,SIZE`. Addresses are hexadecimal with at least eight digits, sizes decimal. This
//! is what `valgrind --tool=lackey --trace-mem=yes --quiet --basic-counts=no` leaves in its log.

use std::io::Write;

use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::{Error, text};

use crate::accesses::{AccessWriter, LeftOut, push_address};
use crate::pen::Pen;

/// Accesses being written as lackey prints them.
pub struct Lackey<'a> {
    pen: Pen<'a>,
    left_out: LeftOut,
    /// A read that may be the first half of a modify.
    read: Option<Access>,
}

impl<'a> Lackey<'a> {
    /// Begins an output.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { pen: Pen::new(out), left_out: LeftOut::default(), read: None }
    }

    #[inline]
    fn take(&mut self, access: &Access) {
        self.left_out.access(access);
        if let Some(read) = self.read.take() {
            let is_modify =
                access.is_write() && (access.seq, access.address, access.bytes) == (read.seq, read.address, read.bytes);
            if is_modify {
                return self.push(b" M ", access);
            }
            self.push(b" L ", &read);
        }
        match access.kind {
            AccessKind::Read => self.read = Some(*access),
            AccessKind::Write => self.push(b" S ", access),
            AccessKind::Fetch => self.push(b"I  ", access),
        }
    }

    #[inline]
    fn push(&mut self, mark: &[u8; 3], access: &Access) {
        let out = &mut self.pen.bytes;
        out.extend_from_slice(mark);
        push_address(out, access.address, 8);
        out.push(b',');
        text::push_dec(out, access.bytes);
        out.push(b'\n');
    }
}

impl AccessSink for Lackey<'_> {
    fn thread(&mut self, number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        self.left_out.thread(number);
        Ok(())
    }

    fn type_name(&mut self, number: TypeNumber, _name: Option<&[u8]>) -> Result<(), Error> {
        self.left_out.type_name(number);
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.left_out.region_added(region);
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.left_out.region_removed(region);
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().for_each(|access| self.take(access));
        self.pen.rest()
    }
}

impl AccessWriter for Lackey<'_> {
    fn finish(&mut self) -> Result<Vec<String>, Error> {
        if let Some(read) = self.read.take() {
            self.push(b" L ", &read);
        }
        self.pen.finish()?;
        Ok(self.left_out.notes())
    }
}
