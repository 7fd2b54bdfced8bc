//! Quoted strings, escaped as by the format's tool, or so that C can read them back.

/// How bytes that are not printable ASCII are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Escape {
    /// As apitrace 11.1 writes them: carriage returns are dropped and octal numbers are wrong, so that the text
    /// cannot be read back.
    #[default]
    Peer,
    /// As C and Python write them: every byte can be read back.
    C,
}

/// The part of a name before a NUL: the format's tool keeps names as C strings.
pub(crate) fn until_nul(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// How strings are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoting {
    pub(crate) escape: Escape,
    /// What a line end is printed as.
    pub(crate) line_end: &'static [u8],
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
}

/// Appends a string's content. The format's own tool stops at the first NUL.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &[u8], quoting: Quoting) {
    let mut rest = text;
    if quoting.escape == Escape::Peer
        && let Some(end) = text.iter().position(|byte| *byte == 0)
    {
        rest = text.get(..end).unwrap_or_default();
    }
    loop {
        let plain = rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len());
        let (now, later) = rest.split_at(plain);
        out.extend_from_slice(now);
        let Some((byte, later)) = later.split_first() else { return };
        push_char(out, u32::from(*byte), quoting);
        rest = later;
    }
}

/// Appends a character of a wide string.
pub(crate) fn push_wide(out: &mut Vec<u8>, char: u32, quoting: Quoting) {
    match u8::try_from(char) {
        Ok(byte) if is_plain(byte) => out.push(byte),
        _ => push_char(out, char, quoting),
    }
}

fn push_char(out: &mut Vec<u8>, char: u32, quoting: Quoting) {
    if char == u32::from(b'"') || char == u32::from(b'\\') {
        out.push(b'\\');
        return out.push(char as u8);
    }
    match (quoting.escape, char) {
        (_, 10) => out.extend_from_slice(quoting.line_end),
        (Escape::Peer, 9) => out.push(b'\t'),
        (Escape::Peer, 13) => {}
        (Escape::C, 9) => out.extend_from_slice(b"\\t"),
        (Escape::C, 13) => out.extend_from_slice(b"\\r"),
        (Escape::Peer, _) => {
            // The peer prints the middle digit for both upper ones, and neither if it is zero.
            let (high, low) = ((char >> 3 & 7) as u8, (char & 7) as u8);
            out.push(b'\\');
            if high != 0 {
                out.extend_from_slice(&[b'0' + high, b'0' + high]);
            }
            out.push(b'0' + low);
        }
        (Escape::C, 0..=0xff) => {
            out.push(b'\\');
            out.extend([char >> 6, char >> 3 & 7, char & 7].map(|digit| b'0' + digit as u8));
        }
        (Escape::C, 0x100..=0xffff) => out.extend_from_slice(format!("\\u{char:04x}").as_bytes()),
        (Escape::C, _) => out.extend_from_slice(format!("\\U{char:08x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], escape: Escape) -> String {
        let mut out = Vec::new();
        push_text(&mut out, text, Quoting { escape, line_end: b"\\n" });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_peer_s_octal_numbers_are_wrong_and_copied() {
        // From allvals_v6 of the corpus, calls 54 to 61.
        assert_eq!(shown(b"q\"u\\", Escape::Peer), "q\\\"u\\\\");
        assert_eq!(shown(b"\x01\x07\x1f\x7f", Escape::Peer), "\\1\\7\\337\\777");
        assert_eq!(shown(b"\x80\xff\xc3\xa9", Escape::Peer), "\\0\\777\\3\\551");
        assert_eq!(shown(b"a\tb\r\nc\0d", Escape::Peer), "a\tb\\nc");
    }

    #[test]
    fn c_reads_back_the_escaped_text() {
        assert_eq!(shown(b"\x01\x7f\xc3\xa9\0z\t\r\n", Escape::C), "\\001\\177\\303\\251\\000z\\t\\r\\n");
        let mut out = Vec::new();
        for char in [0x41, 0xe9, 0x20ac, 0x1_f980] {
            push_wide(&mut out, char, Quoting { escape: Escape::C, line_end: b"\\n" });
        }
        assert_eq!(out, b"A\\351\\u20ac\\U0001f980");
    }
}
