//! Bytes to records: no I/O, no allocation.

use crate::wire::record::{Layout, Record};

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with a line that is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// `number` or `text`.
    pub field: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// Its place, in bytes from the start of the line.
    pub at: usize,
}

/// Parses the record on the line with which the window begins; returns it and the length of its line in bytes,
/// including the line end.
///
/// ```
/// use anytrace_newformat::{Layout, Need, parse};
///
/// let layout = Layout::default();
/// let (record, used) = parse(b"7 seven\n8 ei", &layout).expect("it is a record");
/// assert_eq!((record.number, record.text, used), (7, &b"seven"[..], 8));
/// assert_eq!(parse(b"8 ei", &layout), Err(Need::More(5)));
/// assert!(matches!(parse(b"eight\n", &layout), Err(Need::Bad(fault)) if fault.field == "number"));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] when the window has no line end; [`anytrace_core::Need::Bad`] when the line is not a
/// record.
pub fn parse<'a>(window: &'a [u8], _layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    let end = memchr::memchr(b'\n', window).ok_or(Need::More(window.len() as u64 + 1))?;
    let line = window.get(..end).unwrap_or_default();
    read_line(line).map(|record| (record, end + 1)).map_err(Need::Bad)
}

/// A line without its line end. There is one spelling of a number, so that a record is written as it was read.
fn read_line(line: &[u8]) -> Result<Record<'_>, Fault> {
    let fault = |field, expected, at| Fault { field, expected, at };
    let count = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = line.split_at(count);
    if digits.is_empty() {
        return Err(fault("number", "a decimal digit", 0));
    }
    if digits.len() > 1 && digits.starts_with(b"0") {
        return Err(fault("number", "no leading zero", 0));
    }
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    let number = number.ok_or(fault("number", "at most 18446744073709551615", 0))?;
    let text = rest.strip_prefix(b" ").ok_or(fault("text", "a blank after the number", count))?;
    Ok(Record { number, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(line: &[u8]) -> Result<u64, (&'static str, usize)> {
        match parse(line, &Layout::default()) {
            Ok((record, _)) => Ok(record.number),
            Err(Need::Bad(fault)) => Err((fault.field, fault.at)),
            Err(Need::More(_)) => panic!("the line has an end"),
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(number(b"0 x\n"), Ok(0));
        assert_eq!(number(b"18446744073709551615 x\n"), Ok(u64::MAX));
        for line in [&b"18446744073709551616 x\n"[..], b"01 x\n", b"+1 x\n", b"-1 x\n", b" 1 x\n", b"x\n", b"\n"] {
            assert_eq!(number(line), Err(("number", 0)), "{line:?}");
        }
    }

    #[test]
    fn text_follows_one_blank_and_may_be_anything() {
        let text = |line: &'static [u8]| parse(line, &Layout::default()).map(|(record, _)| record.text);
        assert_eq!(text(b"1 \n"), Ok(&b""[..]));
        assert_eq!(text(b"1  a\xff\0\r\n"), Ok(&b" a\xff\0\r"[..]));
        assert_eq!(number(b"12\n"), Err(("text", 2)));
        assert_eq!(number(b"12\tx\n"), Err(("text", 2)));
    }
}
