//! Why a verb could not be carried out, and its exit code.

use std::io;

use anytrace_core::{Error, Kind, text};

use crate::unwritable::Unwritable;
use crate::{ledger, paint};

/// A verb's failure: the library's error, or one of the command line's own.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
    is_closed_pipe: bool,
}

impl Failure {
    /// A file was waited for until an interrupt.
    pub(crate) fn did_not_appear(name: &str) -> Self {
        Self::usage(format!("cannot open {name}: the file did not appear"))
    }

    /// The command makes no sense or cannot be carried out: exit 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2, is_closed_pipe: false }
    }

    /// The trace is at fault: exit 1.
    pub(crate) fn breach(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1, is_closed_pipe: false }
    }

    /// Writing results failed; a closed pipe is not a failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self {
            message: unwritable(error).unwrap_or_else(|| format!("cannot write the output: {error}")),
            code: 2,
            is_closed_pipe: error.kind() == io::ErrorKind::BrokenPipe,
        }
    }

    /// A library error about a file, which is an input: what went wrong with an output names that one.
    pub(crate) fn of(file: &str, error: &Error) -> Self {
        if let Some(error) = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>())
            && (unwritable(error).is_some() || is_of_writing(error.kind()))
        {
            return Self::output(error);
        }
        Self {
            message: format!("{file}: {error}"),
            code: if error.kind() == Kind::Malformed { 1 } else { 2 },
            is_closed_pipe: error.io_kind() == Some(io::ErrorKind::BrokenPipe),
        }
    }

    /// A library error that names its file itself.
    pub(crate) fn bare(error: &Error) -> Self {
        Self { message: error.to_string(), ..Self::of("", error) }
    }

    /// A library error about a file that names things for a trace, such as a program or a map. The error may name its
    /// file itself. What is damaged is not the trace, so that this is never exit 1.
    pub(crate) fn of_names(file: &str, error: &Error) -> Self {
        let named = if error.to_string().contains(file) { Self::bare(error) } else { Self::of(file, error) };
        Self { code: 2, ..named }
    }

    /// True when the reader of our output went away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.is_closed_pipe
    }

    /// True when the other one's message is in this one's.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.message.contains(&other.message)
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Prints the message to standard error.
    pub(crate) fn print(&self) {
        ledger::fail(&self.message);
        // File names and texts from traces are in it: nothing of them may move a terminal.
        let safe: Vec<_> = self.message.lines().map(text::printable).collect();
        paint::complain("error", safe.join("\n"));
    }
}

/// What an [`Output`](crate::output::Output) says about itself, where the error is its own.
fn unwritable(error: &io::Error) -> Option<String> {
    Some(error.get_ref()?.downcast_ref::<Unwritable>()?.to_string())
}

/// True for what goes wrong in writing only.
fn is_of_writing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull, WriteZero};
    matches!(kind, FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull | WriteZero)
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::output(&error)
    }
}
