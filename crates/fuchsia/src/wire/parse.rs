//! Bytes to records: no I/O, no allocation.

use super::record::{Layout, Record, kind};
use super::words::bits;
use anytrace_core::bytes::array_at;

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with bytes that are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub field: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// Its place, in bytes from the start of the record.
    pub at: usize,
}

/// Parses the record with which the window begins; returns it and its length in bytes.
///
/// ```
/// use anytrace_fuchsia::{Layout, Need, parse};
///
/// let layout = Layout::default();
/// let magic = b"\x10\0\x04\x46\x78\x54\x16\0";
/// let (record, used) = parse(magic, &layout).expect("it is a record");
/// assert_eq!((record.kind_name(), used), ("magic", 8));
/// assert_eq!(parse(&magic[..3], &layout), Err(Need::More(8)));
/// assert!(matches!(parse(&[0; 8], &layout), Err(Need::Bad(fault)) if fault.field == "size"));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] with the length that the window must have; [`anytrace_core::Need::Bad`] when it begins
/// with no record.
#[inline]
pub fn parse<'a>(window: &'a [u8], _layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let Some(word) = array_at::<8>(window, 0) else { return Err(Need::More(8)) };
    let head = u64::from_le_bytes(word);
    let is_large = head & 15 == u64::from(kind::LARGE);
    let words = if is_large { bits(head, 4, 35) } else { bits(head, 4, 15) };
    if words == 0 {
        return Err(Need::Bad(Fault { field: "size", expected: "at least one word", at: 0 }));
    }
    let bytes = words * 8;
    match usize::try_from(bytes).ok().and_then(|bytes| window.get(..bytes)) {
        Some(own) => Ok((Record { head, bytes: own }, own.len())),
        None => Err(Need::More(bytes)),
    }
}
