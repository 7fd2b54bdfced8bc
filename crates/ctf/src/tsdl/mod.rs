//! The description of a trace in TSDL, the language of the file `metadata`: packets to text, text to declarations.

mod attributes;
mod blocks;
mod fields;
mod lex;
mod parser;
pub(crate) mod text;
pub(crate) mod types;

pub(crate) use blocks::{Declarations, EventDeclaration, StreamDeclaration, parse};

/// What is wrong in the text, and at which of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    /// The declaration that it costs.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) field: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(
        at: usize,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { at, from: at, to: at, field: field.into(), expected: expected.into(), found: found.into() }
    }
}
