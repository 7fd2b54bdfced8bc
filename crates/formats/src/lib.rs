//! The list of trace formats, and the one place that chooses among them.
//!
//! ```
//! use anytrace_core::Input;
//! use anytrace_formats::{Recognised, recognise};
//!
//! // An event packet of the Heph format: magic, size 42, then zeros.
//! let mut packet = vec![0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, 42];
//! packet.resize(42, 0);
//! match recognise(&Input::from_bytes("a.heph", packet).head()) {
//!     Recognised::Trace(format) => assert_eq!(format.name(), "heph"),
//!     other => panic!("{other:?}"),
//! }
//! ```

use anytrace_core::{Confidence, Format, Head};

static FORMATS: &[&dyn Format] = &[
    &anytrace_apitrace::Apitrace,
    &anytrace_cacheray::Cacheray,
    &anytrace_casemate::Casemate,
    &anytrace_heph::Heph,
    &anytrace_lackey::Lackey,
    &anytrace_xray::Xray,
];

/// Every format, by name.
pub fn all() -> &'static [&'static dyn Format] {
    FORMATS
}

/// The format of a name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().find(|format| format.name() == name).copied()
}

/// What the head of an input turned out to be.
pub enum Recognised {
    /// No bytes at all.
    Empty,
    /// A trace of this format.
    Trace(&'static dyn Format),
    /// JSON lines of this format, as `dump --format jsonl` prints them.
    Jsonl(&'static dyn Format),
    /// Several formats are equally sure.
    Ambiguous(Vec<&'static str>),
    /// No format knows it.
    Unknown,
}

impl std::fmt::Debug for Recognised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Trace(format) => write!(f, "Trace({})", format.name()),
            Self::Jsonl(format) => write!(f, "Jsonl({})", format.name()),
            Self::Ambiguous(names) => write!(f, "Ambiguous({names:?})"),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

/// Asks every format about the head of an input; the surest wins, a tie is [`Recognised::Ambiguous`].
pub fn recognise(head: &Head<'_>) -> Recognised {
    if head.bytes.is_empty() {
        return Recognised::Empty;
    }
    if let Some(format) = FORMATS.iter().find(|format| format.recognises_jsonl(head)) {
        return Recognised::Jsonl(*format);
    }
    let answers: Vec<_> = FORMATS.iter().map(|format| (format.probe(head), *format)).collect();
    let best = answers.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    if best == Confidence::No {
        return Recognised::Unknown;
    }
    let winners: Vec<_> = answers.iter().filter(|(confidence, _)| *confidence == best).collect();
    match winners.as_slice() {
        [(_, format)] => Recognised::Trace(*format),
        several => Recognised::Ambiguous(several.iter().map(|(_, format)| format.name()).collect()),
    }
}
