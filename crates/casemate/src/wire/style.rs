//! How the text of a log is written: the base of its numbers, and where fields and records begin.

/// Base of numbers in text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Radix {
    /// Decimal.
    Decimal,
    /// Hexadecimal.
    Hex,
}

impl Radix {
    /// Its name among [`Self::NAMES`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Decimal => "dec",
            Self::Hex => "hex",
        }
    }

    /// The names of both, as options take them.
    pub const NAMES: [&'static str; 2] = ["dec", "hex"];

    /// One of [`Self::NAMES`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "dec" => Some(Self::Decimal),
            "hex" => Some(Self::Hex),
            _ => None,
        }
    }
}

/// How a text format is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The document's form, one record per line.
    Canonical,
    /// Values without keys, one record per line.
    Positional,
    /// One field per line, for people.
    Pretty,
}

impl Style {
    /// The names of all, as options take them.
    pub const NAMES: [&'static str; 3] = ["canonical", "positional", "pretty"];

    /// One of [`Self::NAMES`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "canonical" => Some(Self::Canonical),
            "positional" => Some(Self::Positional),
            "pretty" => Some(Self::Pretty),
            _ => None,
        }
    }
}
