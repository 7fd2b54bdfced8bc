//! The contents of a trace: a header line, then one record per line.

/// The format's name, in file names, codes, JSON and the header.
pub(crate) const NAME: &str = "newformat";

/// The first line of every trace, without its line end: the format's name and version.
pub(crate) const HEADER: &[u8] = b"newformat 1";

/// The version of the format.
pub(crate) const VERSION: u64 = 1;

/// What a reader must know to read a record: nothing. Facts that a header states about all records belong here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {}

/// A record, borrowed from its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub number: u64,
    /// Its text: any bytes except a line end.
    pub text: &'a [u8],
}
