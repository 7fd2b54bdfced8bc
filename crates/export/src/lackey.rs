//! Accesses in the form of Valgrind's tool lackey: text, one access per line.
//!
//! `I  ADDRESS,SIZE` fetches, ` L ADDRESS,SIZE` reads, ` S ADDRESS,SIZE` writes; a read and a write of the same bytes by
//! one record are a modify, ` M ADDRESS,SIZE`. Addresses are hexadecimal with at least eight digits, sizes decimal. This
//! is what `valgrind --tool=lackey --trace-mem=yes --quiet --basic-counts=no` leaves in its log.

use anytrace_core::access::{Access, AccessKind};
use anytrace_core::text;

use crate::access_text::{AccessLines, push_address};

/// The lines that lackey prints.
#[derive(Debug, Default)]
pub(crate) struct Lackey {
    /// A read that may be the first half of a modify.
    read: Option<Access>,
}

impl AccessLines for Lackey {
    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, access: &Access) {
        if let Some(read) = self.read.take() {
            let is_modify =
                access.is_write() && (access.seq, access.address, access.bytes) == (read.seq, read.address, read.bytes);
            if is_modify {
                return push_line(out, b" M ", access);
            }
            push_line(out, b" L ", &read);
        }
        match access.kind {
            AccessKind::Read => self.read = Some(*access),
            AccessKind::Write => push_line(out, b" S ", access),
            AccessKind::Fetch => push_line(out, b"I  ", access),
        }
    }

    fn push_rest(&mut self, out: &mut Vec<u8>) {
        if let Some(read) = self.read.take() {
            push_line(out, b" L ", &read);
        }
    }
}

#[inline]
fn push_line(out: &mut Vec<u8>, mark: &[u8; 3], access: &Access) {
    out.extend_from_slice(mark);
    push_address(out, access.address, 8);
    out.push(b',');
    text::push_dec(out, access.bytes);
    out.push(b'\n');
}
