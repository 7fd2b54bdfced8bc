//! The visitor of values behind every output that writes them: events as text and JSON lines, calls as text, JSON lines
//! and pickles.
//!
//! What goes through the values differs by their source: tokens come one by one, those of assembled calls are read from
//! their bytes. Both make the same calls, in this order: for each element of a compound value [`ValueWriter::before`],
//! then the element, then [`ValueWriter::after`].

use anytrace_core::Error;

/// Where values come from.
pub(crate) trait Source {
    /// A value, or the start of a compound one.
    type Value<'a>: Copy;

    /// What the ids of values denote.
    type Names;

    /// How output that grows too long is flushed.
    type Flow<'a>;
}

/// Writes values in one form.
pub(crate) trait ValueWriter<S: Source> {
    /// What the elements and the end of a compound value need to know of its start.
    type Level: Copy;

    /// A compound value begins, inside of `outer`.
    fn open(
        &mut self,
        out: &mut Vec<u8>,
        value: S::Value<'_>,
        outer: Option<&Self::Level>,
        names: &S::Names,
    ) -> Self::Level;

    /// An element of a compound value follows; `at` counts them.
    fn before(&mut self, out: &mut Vec<u8>, level: &mut Self::Level, at: u64, names: &S::Names);

    /// Writes a simple value.
    fn leaf(
        &mut self,
        out: &mut Vec<u8>,
        value: S::Value<'_>,
        names: &S::Names,
        flow: &mut S::Flow<'_>,
    ) -> Result<(), Error>;

    /// A value is complete; `level` is the one it is an element of.
    fn after(&mut self, out: &mut Vec<u8>, level: Option<&Self::Level>);

    /// A compound value ends.
    fn close(&mut self, out: &mut Vec<u8>, level: Self::Level, outer: Option<&mut Self::Level>, names: &S::Names);
}
