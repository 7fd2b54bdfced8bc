//! What keeps a request from being answered.

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The status of the response.
    pub(crate) status: u16,
    /// Words for people.
    pub(crate) text: String,
}

impl Problem {
    /// A problem of a status.
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// What is asked for does not exist.
    pub(crate) fn missing() -> Self {
        Self::new(404, "there is no such thing in this trace")
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::new(500, format!("a temporary file cannot be read: {error}"))
    }
}
