//! Dinero's trace forms: text, one access per line.
//!
//! The traditional form (`dineroIV -informat d`, Dinero III) is a label and an address: `0` read, `1` write, `2`
//! instruction fetch. It has no sizes; Dinero IV takes each access as the four bytes around its address. The extended
//! form (`-informat D`) is a letter, an address and a size, both hexadecimal: `r`, `w`, `i`. Source: the readers of
//! these forms in Dinero IV release 7 (`dinfmt.c`, `xdinfmt.c`).

use anytrace_core::access::Access;

use crate::access_text::{AccessLines, push_address};

/// The lines of one of Dinero's forms.
#[derive(Debug, Default)]
pub(crate) struct Din {
    is_extended: bool,
    /// Accesses that are not four bytes at a multiple of four.
    resized: u64,
    /// Accesses past 2^32.
    high: u64,
    /// Accesses of no bytes.
    empty: u64,
}

impl Din {
    /// The traditional form.
    pub(crate) fn traditional() -> Self {
        Self::default()
    }

    /// The extended form.
    pub(crate) fn extended() -> Self {
        Self { is_extended: true, ..Self::default() }
    }
}

impl AccessLines for Din {
    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, access: &Access) {
        if access.bytes == 0 && self.is_extended {
            self.empty += 1;
            return;
        }
        let marks = if self.is_extended { b"rwi" } else { b"012" };
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

    fn notes(&self) -> Vec<String> {
        let all = [
            (
                self.resized,
                "accesses are not 4 aligned bytes, as Dinero assumes for every line of this form; xdin has sizes",
            ),
            (self.high, "accesses lie past 4 GiB, which Dinero III does not support; Dinero IV does"),
            (self.empty, "accesses of 0 bytes were left out: Dinero IV does not support them"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}
