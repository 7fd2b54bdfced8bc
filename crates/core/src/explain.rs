//! What a format explains about a trace in words, beyond its tables.

use serde_json::Value;

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

/// Where in a trace something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// A record, by its number from 0.
    Record(u64),
    /// A range of times, in the unit of the trace's spans.
    Times(u64, u64),
}

/// A table of an explanation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    /// Its title.
    pub title: String,
    /// The names of its columns, and whether they have numbers.
    pub columns: Vec<(&'static str, bool)>,
    /// Its rows: numbers, texts and nulls, one for each column.
    pub rows: Vec<Vec<Value>>,
    /// For each row, what it is about.
    pub spots: Vec<Option<Spot>>,
}

/// What something was in the course of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// Its name.
    pub name: String,
    /// Its states in order: the record at which each begins, that at which it ends, and its name.
    pub states: Vec<(u64, u64, &'static str)>,
}

/// Takes the parts of an explanation.
pub trait Lines {
    /// The next line, without a line end, with the number of the record that it is about, if it is about one.
    ///
    /// # Errors
    /// Where nobody wants more, here and below.
    fn line(&mut self, text: &str, record: Option<u64>) -> Result<(), Error>;

    /// A table.
    ///
    /// # Errors
    /// As [`Self::line`].
    fn grid(&mut self, grid: Grid) -> Result<(), Error>;

    /// States of several things, one below the other on one axis.
    ///
    /// # Errors
    /// As [`Self::line`].
    fn courses(&mut self, title: &str, courses: Vec<Course>) -> Result<(), Error>;
}
