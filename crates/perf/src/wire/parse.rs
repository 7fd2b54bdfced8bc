//! Bytes to records: no I/O, no allocation.

pub use super::fault::{Fault, Need};
use super::record::{Form, Layout, Record};
use super::{event, header, text};

/// Parses the record with which the window begins; returns it and its length in bytes, of a line including its end.
///
/// ```
/// use anytrace_perf::{Layout, Need, Record, parse};
///
/// let layout = Layout::default();
/// let (record, used) = parse(b"app 7 1.5: cycles: \n", &layout).expect("it is a sample");
/// assert_eq!((record.kind_name(), used), ("sample", 20));
/// assert_eq!(parse(b"app 7", &layout), Err(Need::More(6)));
/// assert!(matches!(parse(b"seven\n", &layout), Err(Need::Bad(fault)) if fault.field == "line"));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] with the length that the window must have; [`anytrace_core::Need::Bad`] when it begins
/// with no record.
#[inline]
pub fn parse<'a>(window: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let Form::Data(endian) = layout.form else {
        let end = memchr::memchr(b'\n', window).ok_or(Need::More(window.len() as u64 + 1))?;
        let line = window.get(..end).unwrap_or_default();
        let fault = Fault { field: "line", expected: "a sample, or what belongs to one", at: 0 };
        let line = text::read(line).ok_or(Need::Bad(fault))?;
        return Ok((Record::Line(line), end + 1));
    };
    // The first bytes of the header are no kind of record.
    if header::endian(window) == Some(endian) {
        return header::read(window, endian).map(|(header, used)| (Record::Header(header), used));
    }
    event::read(window, endian).map(|(event, used)| (Record::Event(event), used))
}
