//! A line of text of bounded length, made without the formatting of the standard library.

/// Bytes of a line.
const BYTES_MAX: usize = 240;

pub(crate) struct Line {
    bytes: [u8; BYTES_MAX + 1],
    length: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; BYTES_MAX + 1], length: 0 }
    }

    /// Adds text, up to the longest line.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        text.as_bytes().iter().for_each(|byte| self.byte(*byte));
        self
    }

    /// Adds a byte; one that is no printable character of ASCII becomes `?`.
    pub(crate) fn byte(&mut self, byte: u8) {
        if self.length < BYTES_MAX
            && let Some(place) = self.bytes.get_mut(self.length)
        {
            *place = if matches!(byte, 0x20..=0x7e) { byte } else { b'?' };
            self.length += 1;
        }
    }

    /// Adds a number in hexadecimal, with `0x`.
    pub(crate) fn hex(&mut self, number: u64) -> &mut Self {
        self.text("0x");
        let digits = (67 - number.leading_zeros().min(63)) / 4;
        for at in (0..digits).rev() {
            let digit = (number >> (4 * at) & 0xf) as u8;
            self.byte(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
        }
        self
    }

    /// Adds a number in decimal.
    pub(crate) fn decimal(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut count = 0;
        for place in &mut digits {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
            count += 1;
            if number == 0 {
                break;
            }
        }
        digits.iter().take(count).rev().for_each(|digit| self.byte(*digit));
        self
    }

    /// The line, with a zero after it that [`Self::length`] does not count.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &Line) -> &str {
        core::str::from_utf8(&line.bytes[..line.length]).unwrap()
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        let mut line = Line::new();
        line.hex(0).text(" ").hex(0xf).text(" ").hex(0x10).text(" ").hex(u64::MAX).text(" ");
        line.decimal(0).text(" ").decimal(10).text(" ").decimal(u64::MAX);
        assert_eq!(shown(&line), "0x0 0xf 0x10 0xffffffffffffffff 0 10 18446744073709551615");
    }

    #[test]
    fn a_line_has_an_end() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.text("abc\n");
        }
        assert_eq!((line.length, line.bytes[BYTES_MAX]), (BYTES_MAX, 0));
        assert!(shown(&line).starts_with("abc?abc?"));
    }
}
