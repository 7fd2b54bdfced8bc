//! The error of an output, which names the output.

use std::io;

/// Why an output could not be written, inside the [`io::Error`] that libraries pass on: whoever reports the
/// error names the output, not the input that was being read.
#[derive(Debug)]
pub(crate) struct Unwritable {
    name: String,
    error: io::Error,
}

impl Unwritable {
    /// An error about an output, to be passed on.
    pub(crate) fn wrap(name: &str, error: io::Error) -> io::Error {
        match error.kind() {
            // Writers try again by themselves.
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, Self { name: name.to_owned(), error }),
        }
    }
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write {}: {}", self.name, self.error)
    }
}

impl std::error::Error for Unwritable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
