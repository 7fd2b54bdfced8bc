//! Dinero's trace forms: text, an access a line.
//!
//! The traditional form (`dineroIV -informat d`, Dinero III) is a label and an address: `0` read, `1` write, `2`
//! instruction fetch. It has no sizes; Dinero IV takes each access as the four bytes around its address. The extended
//! form (`-informat D`) is a letter, an address and a size, both hexadecimal: `r`, `w`, `i`. Known from the forms'
//! readers in Dinero IV release 7 (`dinfmt.c`, `xdinfmt.c`).

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

use crate::accesses::{AccessWriter, LeftOut, push_address};
use crate::pen::Pen;

/// Accesses being written in one of Dinero's forms.
pub struct Din<'a> {
    pen: Pen<'a>,
    is_extended: bool,
    left_out: LeftOut,
    /// Accesses that are not four bytes at a multiple of four.
    resized: u64,
    /// Accesses past 2^32.
    high: u64,
    /// Accesses of no bytes.
    empty: u64,
}

impl<'a> Din<'a> {
    /// The traditional form.
    pub fn traditional(out: &'a mut dyn Write) -> Self {
        Self::new(out, false)
    }

    /// The extended form.
    pub fn extended(out: &'a mut dyn Write) -> Self {
        Self::new(out, true)
    }

    fn new(out: &'a mut dyn Write, is_extended: bool) -> Self {
        Self { pen: Pen::new(out), is_extended, left_out: LeftOut::default(), resized: 0, high: 0, empty: 0 }
    }

    #[inline]
    fn push(&mut self, access: &Access) {
        self.left_out.access(access);
        if access.bytes == 0 && self.is_extended {
            self.empty += 1;
            return;
        }
        let marks = if self.is_extended { b"rwi" } else { b"012" };
        let out = &mut self.pen.bytes;
        out.push(marks[access.kind as usize % marks.len()]);
        out.push(b' ');
        push_address(out, access.address, 0);
        if self.is_extended {
            out.push(b' ');
            push_address(out, u64::from(access.bytes), 0);
        } else {
            self.resized += u64::from(access.bytes != 4 || !access.address.is_multiple_of(4));
            self.high += u64::from(access.address >> 32 != 0);
        }
        out.push(b'\n');
    }
}

impl AccessSink for Din<'_> {
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
        batch.iter().for_each(|access| self.push(access));
        self.pen.rest()
    }
}

impl AccessWriter for Din<'_> {
    fn finish(&mut self) -> Result<Vec<String>, Error> {
        self.pen.finish()?;
        let mut notes = self.left_out.notes();
        let mut say = |count: u64, what: &str| {
            notes.extend((count > 0).then(|| format!("{count} {what}")));
        };
        say(
            self.resized,
            "accesses are not 4 bytes at a multiple of 4, as which Dinero takes every line of this form; xdin has sizes",
        );
        say(self.high, "accesses lie past 4 GiB, where Dinero III cannot follow; Dinero IV can");
        say(self.empty, "accesses of 0 bytes were left out: Dinero IV has none");
        Ok(notes)
    }
}
