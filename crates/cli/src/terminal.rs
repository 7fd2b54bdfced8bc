//! The only way to standard output and standard error.
//!
//! A trace is data from anywhere, and a terminal obeys what it is sent. So where one of the two is a terminal, every
//! character that could move, hide or reorder what it shows is written as an escape, whatever verb wrote it; line ends
//! and tabs stay. Colors are no exception for the text beside them: [`crate::paint`] marks its own sequences with a key
//! that no trace can know, and only marked sequences reach the terminal. If it is not a terminal, bytes pass unchanged.
//!
//! `clippy.toml` forbids `std::io::stdout` and its like everywhere else.

#![expect(clippy::disallowed_methods, reason = "this is the one place")]

mod guard;

use std::io::{self, IsTerminal, StderrLock, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};

pub(crate) use guard::marked;
use guard::{Colors, Escapes, Guard};

/// A standard stream that is safe to write text from a trace to.
pub(crate) struct Stream<W: Write> {
    inner: W,
    guard: Guard,
    /// It is standard output, and nothing was written to it before.
    is_unused: bool,
}

/// More than white space was written to standard output.
static HAS_RESULT: AtomicBool = AtomicBool::new(false);

/// True once more than white space went to standard output.
pub(crate) fn has_result() -> bool {
    HAS_RESULT.load(Ordering::Relaxed)
}

/// Standard output.
pub(crate) type Stdout = Stream<StdoutLock<'static>>;

/// Standard error.
pub(crate) type Stderr = Stream<StderrLock<'static>>;

/// Standard output, locked.
pub(crate) fn stdout() -> Stdout {
    let inner = io::stdout().lock();
    let guard = guard(inner.is_terminal(), AutoStream::choice(&inner));
    Stream { inner, guard, is_unused: !has_result() }
}

/// Standard output for a thread of its own: locked only while something is written.
pub(crate) fn unlocked_stdout() -> Stream<io::Stdout> {
    let inner = io::stdout();
    let guard = guard(inner.is_terminal(), AutoStream::choice(&inner));
    Stream { inner, guard, is_unused: !has_result() }
}

/// Standard error, locked.
pub(crate) fn stderr() -> Stderr {
    let inner = io::stderr().lock();
    let guard = guard(inner.is_terminal(), AutoStream::choice(&inner));
    Stream { inner, guard, is_unused: false }
}

fn guard(is_terminal: bool, choice: ColorChoice) -> Guard {
    let has_colors = matches!(choice, ColorChoice::Always | ColorChoice::AlwaysAnsi);
    Guard::new(
        if is_terminal { Escapes::Text } else { Escapes::None },
        if has_colors { Colors::Marked } else { Colors::None },
    )
}

/// Prints a result to standard output.
pub(crate) fn put(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Decides for all output that follows whether it has colors.
pub(crate) fn use_colors(when: ColorChoice) {
    when.write_global();
}

/// True when standard output has colors.
pub(crate) fn stdout_has_colors() -> bool {
    matches!(AutoStream::choice(&io::stdout()), ColorChoice::Always | ColorChoice::AlwaysAnsi)
}

/// True when standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// True when standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Standard output for a program of its own that draws on the screen and escapes what it draws: ratatui.
pub(crate) fn screen() -> io::Stdout {
    io::stdout()
}

/// Prints what clap says: help, versions and complaints about the command line.
pub(crate) fn print_clap(error: &clap::Error, arguments: &[std::ffi::OsString]) -> io::Result<()> {
    // Only arguments can bring in what clap did not write; with such ones there are no colors.
    let is_plain = arguments.iter().all(|one| one.to_str().is_some_and(|one| !one.contains(guard::is_unsafe)));
    let text = |has_colors: bool| if has_colors { error.render().ansi().to_string() } else { error.to_string() };
    if error.use_stderr() {
        let out = stderr();
        let has_colors = out.has_colors() && is_plain;
        out.with_sequences(has_colors).write_all(text(has_colors).as_bytes())
    } else {
        let out = stdout();
        let has_colors = out.has_colors() && is_plain;
        let mut out = out.with_sequences(has_colors);
        out.write_all(text(has_colors).as_bytes()).and_then(|()| out.flush())
    }
}

impl<W: Write> Stream<W> {
    /// Lets unmarked color sequences (SGR, nothing else) pass: for a library's renderer that colors its own text and
    /// escapes what comes from the trace.
    pub(crate) fn with_sequences(mut self, is_on: bool) -> Self {
        // If it is not a terminal, all bytes pass anyway.
        if is_on && self.guard.escapes != Escapes::None {
            self.guard.colors = Colors::All;
        }
        self
    }

    fn has_colors(&self) -> bool {
        self.guard.colors != Colors::None
    }

    /// Escapes as JSON does where JSON is written, so that what is shown on a terminal is still JSON.
    pub(crate) fn json(mut self, is_json: bool) -> Self {
        if is_json && self.guard.escapes == Escapes::Text {
            self.guard.escapes = Escapes::Json;
        }
        self
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_unused && !bytes.trim_ascii().is_empty() {
            self.is_unused = false;
            HAS_RESULT.store(true, Ordering::Relaxed);
        }
        if self.guard.passes(bytes) {
            return self.inner.write(bytes);
        }
        let safe = self.guard.take(bytes);
        self.inner.write_all(safe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Stream<W> {
    fn drop(&mut self) {
        // A character that was never completed. Errors were met by what was written before it.
        let rest = self.guard.rest();
        if !rest.is_empty() {
            let _ = self.inner.write_all(&rest);
        }
    }
}
