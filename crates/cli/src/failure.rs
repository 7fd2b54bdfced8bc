//! Why a verb could not be carried out, and its exit code.

use std::io;

use anytrace_core::{Error, Kind};

use crate::paint;

/// A verb's failure: the library's error, or one of the command line's own.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
    is_closed_pipe: bool,
}

impl Failure {
    /// The command makes no sense or cannot be carried out: exit 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2, is_closed_pipe: false }
    }

    /// Writing results failed; a closed pipe is no failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self {
            message: format!("cannot write the output: {error}"),
            code: 2,
            is_closed_pipe: error.kind() == io::ErrorKind::BrokenPipe,
        }
    }

    /// A library error about a file.
    pub(crate) fn of(file: &str, error: &Error) -> Self {
        Self {
            message: format!("{file}: {error}"),
            code: if error.kind() == Kind::Malformed { 1 } else { 2 },
            is_closed_pipe: error.io_kind() == Some(io::ErrorKind::BrokenPipe),
        }
    }

    /// True when the reader of our output went away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.is_closed_pipe
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Prints the message to standard error.
    pub(crate) fn print(&self) {
        paint::complain("error", &self.message);
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::output(&error)
    }
}
