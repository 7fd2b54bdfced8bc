//! Bytes to records: no I/O, no allocation.

use super::json::{Stop, members};
use crate::wire::record::{Layout, Record};

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with bytes that are not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What was expected.
    pub expected: &'static str,
    /// The first wrong byte, counted from the start of the event.
    pub at: usize,
}

/// Parses the event with which the window begins; returns it and its length in bytes.
///
/// ```
/// use anytrace_chrome::{Kind, Layout, Need, parse};
///
/// let layout = Layout::default();
/// let (record, used) = parse(br#"{"ph":"X","ts":1.5,"dur":2}, "#, &layout).expect("it is an event");
/// assert_eq!((record.kind(), record.time, used), (Kind::Complete, Some(&b"1.5"[..]), 27));
/// assert_eq!(parse(br#"{"ph":"X""#, &layout), Err(Need::More(10)));
/// assert!(matches!(parse(br#"{"ph" 1}"#, &layout), Err(Need::Bad(fault)) if fault.at == 6));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] when the window ends inside the event; [`anytrace_core::Need::Bad`] when it is not a
/// JSON object.
#[inline]
pub fn parse<'a>(window: &'a [u8], _layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let mut record = Record::default();
    match members(window, 0, |key, value| record.set(key, value)) {
        Ok(used) => {
            record.text = window.get(..used).unwrap_or_default();
            Ok((record, used))
        }
        Err(stop) => Err(need(stop, window)),
    }
}

#[cold]
fn need(stop: Stop, window: &[u8]) -> Need {
    match stop {
        Stop::End => Need::More(window.len() as u64 + 1),
        Stop::Bad(at, expected) => Need::Bad(Fault { expected, at }),
    }
}

/// True for an event that could be real: it has a phase of one character.
pub(crate) fn is_plausible(record: &Record<'_>) -> bool {
    record.phase_byte().is_some_and(|phase| phase.is_ascii_graphic())
}
