//! Why a recorder could not start.

use std::{error, fmt, io};

/// Why a recorder could not start: what was tried, and what the system said.
#[derive(Debug)]
pub struct Error {
    what: String,
    source: io::Error,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, source: io::Error) -> Self {
        Self { what: what.into(), source }
    }

    /// What the system said.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.source)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}
