//! What prints calls: a printer takes them in order, a formatter makes the text of one.

use anytrace_core::Error;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Definition, Dictionary};

/// Prints the calls that are selected.
pub(crate) trait CallPrinter {
    /// Takes the version and the text that precedes all calls.
    fn begin(&mut self, version: u64, text: Vec<u8>) -> Result<(), Error>;

    fn define(&mut self, definition: &Definition<'_>);

    fn print(&mut self, call: &Call<'_>) -> Result<(), Error>;
}

/// Text of one call may grow to this size before it is flushed.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Takes the text made so far and leaves the vector empty.
pub(crate) type Flush<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<(), Error>;

/// Formats calls, one after another.
pub(crate) trait Formatter: Send {
    /// Appends the text of a call. Flushes it where it grows beyond [`TEXT_BYTES_MAX`].
    fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
    ) -> Result<(), Error>;
}
