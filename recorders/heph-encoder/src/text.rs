//! Strings: a 16-bit length and this many bytes of UTF-8, truncated if longer.

use core::fmt::{self, Write};

use crate::buffer::{Buffer, Error};

/// Longest string of the format, in bytes: its length has 16 bits.
pub const TEXT_BYTES_MAX: usize = u16::MAX as usize;

/// The end of a string that was longer than [`TEXT_BYTES_MAX`]; the result, mark included, is at most that long.
pub const CUT_MARK: &str = "…";

/// Appends a string.
#[inline]
pub(crate) fn push<B: Buffer>(buffer: &mut B, text: &str) -> Result<(), Error> {
    let Ok(length) = u16::try_from(text.len()) else { return push_cut(buffer, text) };
    buffer.push(&length.to_be_bytes())?;
    buffer.push(text.as_bytes())
}

#[cold]
fn push_cut<B: Buffer>(buffer: &mut B, text: &str) -> Result<(), Error> {
    let kept = text.floor_char_boundary(TEXT_BYTES_MAX - CUT_MARK.len());
    let length = u16::try_from(kept + CUT_MARK.len()).unwrap_or(u16::MAX);
    buffer.push(&length.to_be_bytes())?;
    buffer.push(text.get(..kept).unwrap_or_default().as_bytes())?;
    buffer.push(CUT_MARK.as_bytes())
}

/// Appends what a value prints, without a string in between. Formatting stops where the string is full, so that a
/// value that prints without end costs no more than a long one. A value whose formatting fails keeps what it printed,
/// marked as cut.
pub(crate) fn push_fmt<B: Buffer>(buffer: &mut B, arguments: fmt::Arguments<'_>) -> Result<(), Error> {
    if let Some(text) = arguments.as_str() {
        return push(buffer, text);
    }
    let length_at = buffer.as_mut_bytes().len();
    buffer.push(&[0; 2])?;
    let start = length_at + 2;
    let mut writer = Capped { buffer, used: 0, error: None };
    let is_complete = writer.write_fmt(arguments).is_ok();
    if let Some(error) = writer.error {
        return Err(error);
    }
    let mut used = writer.used;
    if !is_complete {
        let bytes = buffer.as_mut_bytes().get(start..).unwrap_or_default();
        let kept = floor_char_boundary(bytes, TEXT_BYTES_MAX - CUT_MARK.len());
        buffer.truncate(start + kept);
        buffer.push(CUT_MARK.as_bytes())?;
        used = kept + CUT_MARK.len();
    }
    let length = u16::try_from(used).unwrap_or(u16::MAX);
    if let Some(field) = buffer.as_mut_bytes().get_mut(length_at..start) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// The last character boundary of UTF-8 at or before `at`.
fn floor_char_boundary(bytes: &[u8], at: usize) -> usize {
    if at >= bytes.len() {
        return bytes.len();
    }
    let is_start = |byte: u8| byte & 0xC0 != 0x80;
    (0..=at).rev().find(|at| bytes.get(*at).is_none_or(|byte| is_start(*byte))).unwrap_or(0)
}

/// Appends text up to [`TEXT_BYTES_MAX`] bytes, then fails, which ends the formatting.
struct Capped<'b, B: Buffer> {
    buffer: &'b mut B,
    used: usize,
    error: Option<Error>,
}

impl<B: Buffer> Write for Capped<'_, B> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = text.floor_char_boundary(TEXT_BYTES_MAX - self.used);
        if let Err(error) = self.buffer.push(text.get(..kept).unwrap_or_default().as_bytes()) {
            self.error = Some(error);
            return Err(fmt::Error);
        }
        self.used += kept;
        if kept == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn pushed(text: &str) -> Vec<u8> {
        let mut buffer = Vec::new();
        push(&mut buffer, text).unwrap();
        let mut formatted = Vec::new();
        push_fmt(&mut formatted, format_args!("{}", text)).unwrap();
        assert_eq!(buffer, formatted);
        // In pieces, so that the cut falls into a later one.
        let mut pieces = Vec::new();
        let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
        push_fmt(&mut pieces, format_args!("{head}{tail}")).unwrap();
        assert_eq!(buffer, pieces);
        let length = u16::from_be_bytes([buffer[0], buffer[1]]);
        assert_eq!(usize::from(length), buffer.len() - 2);
        buffer.split_off(2)
    }

    #[test]
    fn a_string_that_fits_is_kept_to_the_last_byte() {
        for length in [0, 1, 65_533, 65_534, 65_535] {
            let text = "x".repeat(length);
            assert_eq!(pushed(&text), text.as_bytes());
        }
    }

    #[test]
    fn a_longer_string_is_cut_at_a_character_and_marked() {
        for (character, kept) in [("x", 65_532), ("é", 65_532), ("漢", 65_532), ("🦀", 65_532)] {
            let text = format!("{}{character}", "ab".repeat(32_768));
            assert_eq!(pushed(&text).len(), 65_535);
            let text = character.repeat(70_000 / character.len());
            let cut = String::from_utf8(pushed(&text)).unwrap();
            assert_eq!(cut.len(), kept / character.len() * character.len() + 3);
            assert!(cut.ends_with(CUT_MARK));
        }
        // Four bytes that start one byte before the cut.
        let text = format!("{}{}", "a".repeat(65_531), "🦀".repeat(2));
        assert_eq!(pushed(&text).len(), 65_531 + 3);
    }

    struct Endless;

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("more and ")?;
            }
        }
    }

    struct Failing;

    impl fmt::Display for Failing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("so far")?;
            Err(fmt::Error)
        }
    }

    #[test]
    fn a_value_that_prints_without_end_ends_and_one_that_fails_is_marked() {
        let mut buffer = Vec::new();
        push_fmt(&mut buffer, format_args!("{Endless}")).unwrap();
        assert_eq!(buffer.len(), 65_537);
        buffer.clear();
        push_fmt(&mut buffer, format_args!("{Failing}")).unwrap();
        assert_eq!(buffer, "\0\u{9}so far…".as_bytes());
    }
}
