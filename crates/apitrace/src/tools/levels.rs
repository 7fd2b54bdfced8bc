//! Determines whether a value is on the human or the machine side of a pair.

use crate::wire::record::Token;

/// The levels open around a value.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// Values that still follow at each level, and whether the level is a pair.
    open: Vec<(u64, bool)>,
    /// How many levels were open where the machine's side began.
    machine: Option<usize>,
}

impl Levels {
    /// A detail begins.
    pub(crate) fn begin(&mut self) {
        self.open.clear();
        self.machine = None;
    }

    /// True for machine values: the second value of a pair, and everything nested in it.
    pub(crate) fn is_machine(&self) -> bool {
        self.machine.is_some() || self.open.last() == Some(&(1, true))
    }

    /// Takes a value that contains this many; `None` for a pair. Returns true when the detail's value is complete.
    pub(crate) fn value(&mut self, inner: Option<u64>) -> bool {
        self.take();
        self.open.push((inner.unwrap_or(2), inner.is_none()));
        while self.open.last().is_some_and(|(left, _)| *left == 0) {
            self.close();
        }
        self.open.is_empty()
    }

    /// Takes a token of a value.
    pub(crate) fn token(&mut self, token: &Token<'_>) {
        match token {
            Token::Array(count) | Token::Struct(_, count) => {
                self.take();
                self.open.push((*count, false));
            }
            Token::Repr => {
                self.take();
                self.open.push((2, true));
            }
            Token::EndLevel => self.close(),
            Token::Null
            | Token::Bool(_)
            | Token::Integer(_)
            | Token::Float(_)
            | Token::Double(_)
            | Token::Bytes(..)
            | Token::BytesEnd(_)
            | Token::Enum(..)
            | Token::Bitmask(..)
            | Token::Pointer(_)
            | Token::Wide(..) => {
                self.take();
                self.end_machine();
            }
            _ => {}
        }
    }

    /// Counts down the values at the innermost level.
    fn take(&mut self) {
        if let Some((left, is_pair)) = self.open.last_mut() {
            if *is_pair && *left == 1 && self.machine.is_none() {
                self.machine = Some(self.open.len());
                if let Some((left, _)) = self.open.last_mut() {
                    *left = 0;
                }
                return;
            }
            *left = left.saturating_sub(1);
        }
    }

    /// The innermost level ends.
    fn close(&mut self) {
        self.open.pop();
        self.end_machine();
    }

    fn end_machine(&mut self) {
        if self.machine.is_some_and(|depth| self.open.len() <= depth) {
            self.machine = None;
        }
    }
}
