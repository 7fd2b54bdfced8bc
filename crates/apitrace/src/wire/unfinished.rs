//! What is open inside an event whose start was written already. If the rest is lost, the event is ended with zeros.

use crate::wire::record::Token;

/// The longest gap in a streamed event that is filled with zeros.
const FILL_BYTES_MAX: u64 = 1 << 30;

/// The values and bytes that the event still needs.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Bytes of a long string or blob.
    bytes: u64,
    /// Values at each open level, and frames of a backtrace.
    levels: Vec<u64>,
}

impl Unfinished {
    /// An event begins.
    pub(crate) fn begin(&mut self) {
        self.bytes = 0;
        self.levels.clear();
    }

    /// Follows a token of the event.
    pub(crate) fn follow(&mut self, token: &Token<'_>) {
        let value = |levels: &mut Vec<u64>| {
            if let Some(left) = levels.last_mut() {
                *left = left.saturating_sub(1);
            }
        };
        match token {
            Token::Array(count) | Token::Struct(_, count) => {
                value(&mut self.levels);
                self.levels.push(*count);
            }
            Token::Repr => {
                value(&mut self.levels);
                self.levels.push(2);
            }
            Token::Backtrace(_) => self.levels.push(0),
            Token::EndLevel => {
                self.levels.pop();
            }
            Token::BytesStart(_, length) => {
                value(&mut self.levels);
                self.bytes = *length;
            }
            Token::BytesPiece(bytes) => self.bytes = self.bytes.saturating_sub(bytes.len() as u64),
            Token::Argument(_) | Token::Return | Token::Frame(_) => {}
            _ => value(&mut self.levels),
        }
    }

    /// How many zeros end the event: zero is the null value, a zero byte of a blob, and the end of the event. `None` if
    /// they would be too many.
    pub(crate) fn zeros(&self) -> Option<u64> {
        let values = self.levels.iter().fold(0, |sum: u64, left| sum.saturating_add(*left));
        let zeros = self.bytes.saturating_add(values);
        (zeros <= FILL_BYTES_MAX).then_some(zeros + 1)
    }
}
