//! What is wrong with bytes that are not a record.

/// Why [`super::parse::parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with bytes that are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub field: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// Its place, in bytes from the start of the record.
    pub at: usize,
}
