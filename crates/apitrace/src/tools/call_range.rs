//! What call sets consist of.

use crate::lanes::flags::CallFlags;

/// Calls of a range of numbers, with a step, of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRange {
    /// First number.
    pub start: u64,
    /// Last number; the range is empty when it is below the first.
    pub stop: u64,
    /// Distance between selected numbers; at least 1.
    pub step: u64,
    /// Calls with any of these flags; `None`: all.
    pub kind: Option<CallFlags>,
}

impl CallRange {
    /// All calls.
    pub const ALL: Self = Self { start: 0, stop: u64::MAX, step: 1, kind: None };

    pub(crate) fn has(&self, number: u64, flags: CallFlags) -> bool {
        (self.start..=self.stop).contains(&number)
            && (self.step == 1 || (number - self.start).is_multiple_of(self.step))
            && self.kind.is_none_or(|kind| flags.has(kind))
    }
}

/// Why a text is not a call set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSetError {
    /// The text or file, as far as it is known.
    pub source: String,
    /// Character, from 1; `None` for files that cannot be read.
    pub character: Option<usize>,
    /// What was expected and what was found.
    pub message: String,
}

impl std::fmt::Display for CallSetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.source)?;
        if let Some(character) = self.character {
            write!(f, "character {character}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallSetError {}
