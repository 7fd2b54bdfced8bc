//! The input and the result of a probe.

use crate::Layer;

/// How sure a format is that a file is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Not this format.
    No,
    /// Possible; the most a file name alone can give.
    Maybe,
    /// The content looks like this format.
    Likely,
    /// A magic number and a header that fits it, or equally strong evidence.
    Certain,
}

/// The bounded look at a file that [`crate::Format::probe`] gets: never more than 64 KiB.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The first bytes, after decompression.
    pub bytes: &'a [u8],
    /// Length of all (decompressed) data, where it is known.
    pub total_bytes: Option<u64>,
    /// The input's name.
    pub name: &'a str,
    /// Compression layers that were removed, outermost first.
    pub layers: &'a [Layer],
}

impl Head<'_> {
    /// True when [`Self::bytes`] is all of the data.
    pub fn is_complete(&self) -> bool {
        self.total_bytes == Some(self.bytes.len() as u64)
    }

    /// True when the name ends in one of the extensions (without dots), optionally followed by `.gz` or `.zst`.
    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        let name = self.name.strip_suffix(".gz").or_else(|| self.name.strip_suffix(".zst")).unwrap_or(self.name);
        extensions.iter().any(|e| name.strip_suffix(e).is_some_and(|stem| stem.ends_with('.')))
    }
}
