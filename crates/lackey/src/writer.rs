//! Records as Valgrind spells them.

use anytrace_core::text::{push_dec, push_hex};

use crate::record::Kind;

/// Appends a record's line, including the line end: lower-case digits, addresses of at least eight.
///
/// ```
/// let mut out = Vec::new();
/// anytrace_lackey::push_record(&mut out, anytrace_lackey::Kind::Write, 0x10, 4);
/// assert_eq!(out, b" S 00000010,4\n");
/// ```
#[inline]
pub fn push_record(out: &mut Vec<u8>, kind: Kind, address: u64, size: u16) {
    out.extend_from_slice(kind.mark());
    push_address(out, address);
    if kind != Kind::Block {
        out.push(b',');
        push_dec(out, size);
    }
    out.push(b'\n');
}

fn push_address(out: &mut Vec<u8>, address: u64) {
    let mut digits = Vec::with_capacity(18);
    push_hex(&mut digits, address);
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    out.extend_from_slice(&b"00000000"[digits.len().min(8)..]);
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn written_records_read_back() {
        for kind in Kind::ALL {
            for address in [0, 1, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
                for size in [0, 1, 8, 512, u16::MAX] {
                    let mut out = Vec::new();
                    push_record(&mut out, kind, address, size);
                    let (record, used) = parse(&out).expect("it is a record");
                    let size = if kind == Kind::Block { 0 } else { size };
                    assert_eq!((record.kind, record.address, record.size, used), (kind, address, size, out.len()));
                }
            }
        }
    }
}
