//! The one error type, sorted by whose fault the error is.

use std::fmt;
use std::io;

use crate::Diagnostic;

/// Whose fault an [`Error`] is. Match on this, never on text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The bytes break the format's rules. [`Error::diagnostic`] says where.
    Malformed,
    /// Well-formed, but not supported by this version of the library, or not expressible in the target form.
    Unsupported,
    /// A limit of [`crate::Limits`] was reached.
    Limit,
    /// The caller asked for something that makes no sense.
    Usage,
    /// The operating system failed.
    Io,
}

/// An error: one pointer wide, with a [`Kind`], a text and, for malformed input, a [`Diagnostic`].
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    diagnostic: Option<Diagnostic>,
    io: Option<io::Error>,
}

impl Error {
    #[cold]
    fn new(kind: Kind, message: String) -> Self {
        Self(Box::new(Inner { kind, message, diagnostic: None, io: None }))
    }

    /// Malformed input, described by a diagnostic.
    #[cold]
    pub fn malformed(diagnostic: Diagnostic) -> Self {
        let mut error = Self::new(Kind::Malformed, diagnostic.to_string());
        error.0.diagnostic = Some(diagnostic);
        error
    }

    /// Something that is not supported, or that the target form cannot hold.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message.into())
    }

    /// A limit was reached: states the limit and its value.
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Kind::Limit, message.into())
    }

    /// The caller's request makes no sense.
    #[cold]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message.into())
    }

    /// An operating-system error, with the operation that failed.
    #[cold]
    pub fn io(doing: impl fmt::Display, error: io::Error) -> Self {
        let mut made = Self::new(Kind::Io, format!("{doing}: {error}"));
        made.0.io = Some(error);
        made
    }

    /// Whose fault it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Where the input is wrong, for [`Kind::Malformed`].
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        self.0.diagnostic.as_ref()
    }

    /// The kind of operating-system error, for [`Kind::Io`].
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.0.io.as_ref().map(io::Error::kind)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::io("input or output failed", error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.io.as_ref().map(|error| error as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn an_io_error_keeps_its_kind_and_names_the_operation() {
        let error = Error::io("reading x", io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(error.kind(), Kind::Io);
        assert_eq!(error.io_kind(), Some(io::ErrorKind::NotFound));
        assert!(error.to_string().starts_with("reading x: "));
    }
}
