//! What a format explains about a trace in words, beyond its tables.

use crate::Error;

/// An explanation that a format offers: [`crate::Format::explain`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// Its name in addresses: lower-case letters.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it is about.
    pub subject: Subject,
}

/// What an explanation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The trace as a whole.
    Trace,
    /// A record, by its number from 0.
    Record,
    /// A span, by a number among its attributes: a call.
    Attribute(&'static str),
}

/// Takes the lines of an explanation, each with the number of the record that it is about, if it is about one.
pub trait Lines {
    /// The next line, without a line end.
    ///
    /// # Errors
    /// Where nobody wants more.
    fn line(&mut self, text: &str, record: Option<u64>) -> Result<(), Error>;
}
