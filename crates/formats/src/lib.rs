//! The list of trace formats, and the one place that chooses among them.
//!
//! ```
//! use anytrace_core::Input;
//! use anytrace_formats::{Recognized, recognize};
//!
//! // An event packet of the Heph format: magic, size 42, then zeros.
//! let mut packet = vec![0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, 42];
//! packet.resize(42, 0);
//! match recognize(&Input::from_bytes("a.heph", packet).head()) {
//!     Recognized::Trace(format) => assert_eq!(format.name(), "heph"),
//!     other => panic!("{other:?}"),
//! }
//! ```

use anytrace_core::{Collect, Confidence, Format, Head, Input, OpenOptions};

static FORMATS: &[&dyn Format] = &[
    &anytrace_apitrace::Apitrace,
    &anytrace_cacheray::Cacheray,
    &anytrace_casemate::Casemate,
    &anytrace_chrome::Chrome,
    &anytrace_ctf::Ctf,
    &anytrace_fuchsia::Fuchsia,
    &anytrace_heph::Heph,
    &anytrace_lackey::Lackey,
    &anytrace_perf::Perf,
    &anytrace_perfetto::Perfetto,
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

/// The result of recognizing the head of an input.
pub enum Recognized {
    /// No bytes at all.
    Empty,
    /// A trace of this format.
    Trace(&'static dyn Format),
    /// JSON lines of this format, as `dump --format jsonl` prints them.
    Jsonl(&'static dyn Format),
    /// Several formats are equally sure.
    Ambiguous(Vec<&'static str>),
    /// No format recognizes it.
    Unknown,
}

impl std::fmt::Debug for Recognized {
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

/// Asks every format about the head of an input. Only the bytes make a format a candidate; the surest one wins. Of
/// several that are equally sure, the one wins that can read clearly more of the head than any other, then the only one
/// whose files have such a name; otherwise it is [`Recognized::Ambiguous`].
pub fn recognize(head: &Head<'_>) -> Recognized {
    if head.bytes.is_empty() {
        return Recognized::Empty;
    }
    if let Some(format) = FORMATS.iter().find(|format| format.recognizes_jsonl(head)) {
        return Recognized::Jsonl(*format);
    }
    let nameless = Head { name: "", ..*head };
    let answers: Vec<_> = FORMATS.iter().map(|format| (format.probe(&nameless), *format)).collect();
    let best = answers.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    if best == Confidence::No {
        return Recognized::Unknown;
    }
    let winners: Vec<_> = answers.iter().filter(|answer| answer.0 == best).map(|answer| answer.1).collect();
    if let [only] = winners.as_slice() {
        return Recognized::Trace(*only);
    }
    if let Some(format) = reads_most(head, &winners) {
        return Recognized::Trace(format);
    }
    let named: Vec<_> = winners.iter().filter(|format| head.has_extension(format.extensions())).collect();
    match named.as_slice() {
        [only] => Recognized::Trace(**only),
        _ => Recognized::Ambiguous(winners.iter().map(|format| format.name()).collect()),
    }
}

/// The format that reads more than twice as much of the head as any other.
fn reads_most(head: &Head<'_>, candidates: &[&'static dyn Format]) -> Option<&'static dyn Format> {
    let mut read: Vec<_> = candidates.iter().map(|format| (bytes_read(head, *format), *format)).collect();
    read.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    match read.as_slice() {
        [(most, format), (second, _), ..] if *most > second.saturating_mul(2) => Some(*format),
        _ => None,
    }
}

/// How many bytes of the head a format does not skip; none if it finds no record.
fn bytes_read(head: &Head<'_>, format: &dyn Format) -> u64 {
    let input = Input::from_bytes("", head.bytes.to_vec());
    let mut damage = Collect::default();
    let opened = format.open(input, &OpenOptions::default());
    let records = opened.and_then(|trace| trace.info(&mut damage)).map_or(0, |info| info.records);
    let skipped = damage.0.iter().fold(0_u64, |sum, one| sum.saturating_add(one.skipped_bytes));
    if records == 0 { 0 } else { (head.bytes.len() as u64).saturating_sub(skipped) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(name: &str, bytes: &[u8]) -> String {
        format!("{:?}", recognize(&Input::from_bytes(name, bytes.to_vec()).head()))
    }

    /// Version 4, the enter and the leave of `glFlush` on thread 1: the first four bytes are those of an XRay header, too.
    const FLUSH: &[u8] = b"\x04\x00\x01\x00\x07glFlush\x00\x00\x01\x00\x00";

    #[test]
    fn of_equals_the_one_that_reads_more_wins_whatever_the_name() {
        for name in ["flush", "flush.trace", "flush.xray"] {
            assert_eq!(name_of(name, FLUSH), "Trace(apitrace)", "{name}");
        }
        assert_eq!(name_of("x", &FLUSH[..4]), "Trace(xray)");
    }

    #[test]
    fn a_name_alone_makes_no_trace() {
        for format in all() {
            for extension in format.extensions() {
                let name = format!("junk.{extension}");
                assert_eq!(name_of(&name, b"\x24\x87\x01\xcc\x9b no trace \xfe"), "Unknown", "{name}");
            }
        }
    }

    #[test]
    fn a_name_decides_between_equals() {
        // One zero: the version of a raw stream, or the tag of a read.
        assert_eq!(name_of("x", b"\0"), r#"Ambiguous(["apitrace", "cacheray"])"#);
        assert_eq!(name_of("x.trace", b"\0"), r#"Ambiguous(["apitrace", "cacheray"])"#);
        assert_eq!(name_of("x.cacheray", b"\0"), "Trace(cacheray)");
    }
}
