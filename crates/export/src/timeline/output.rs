//! What every timeline output is, and what it is written with.

use std::io::Write;

use anytrace_core::{Error, SpanSink};

use crate::cells::Cells;
use crate::spool::Spool;

/// An output being written.
pub trait Timeline: SpanSink + Send {
    /// Writes the end of the output; called once, after the last edge.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(&mut self) -> Result<(), Error>;

    /// The second file of an output that is a folder ([`OutputFolder`]), known after [`Self::finish`].
    fn beside(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// The files of an output that is a folder.
#[derive(Debug, Clone, Copy)]
pub struct OutputFolder {
    /// The name of the file that [`Outlet::out`] is.
    pub main: &'static str,
    /// The name of the file whose contents are [`Timeline::beside`].
    pub beside: &'static str,
}

/// What an output is written with.
pub struct Outlet<'a> {
    /// The target of the output.
    pub out: &'a mut (dyn Write + Send),
    /// Room on disk for outputs that need a track's edges together; anything that does not go there stays in memory.
    pub spool: &'a mut dyn Spool,
    /// The title of the output, if it has one: the trace's file name.
    pub title: &'a str,
    /// How text is written in tables.
    pub cells: Cells,
    /// Threads that may format text.
    pub threads: usize,
}
