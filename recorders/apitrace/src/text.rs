//! Text without allocation, and with room of its own: a handler of signals may have neither heap nor much of a stack.

/// Text of a bounded length; what is too much is cut at a line.
#[derive(Debug)]
pub(crate) struct Text {
    bytes: [u8; 16384],
    length: usize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; 16384], length: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let text = &self.bytes[..self.length];
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        &text[..end]
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn what_is_too_much_is_cut_at_a_line() {
        let mut text = Text::new();
        for number in 0..5000 {
            let _ = writeln!(text, "line {number}");
        }
        let lines = text.bytes().split(|byte| *byte == b'\n').count();
        assert!(lines > 1000 && text.bytes().ends_with(b"\n"));
        text.clear();
        assert!(text.bytes().is_empty());
    }
}
