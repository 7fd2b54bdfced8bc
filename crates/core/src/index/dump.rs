//! Dumps a trace part by part, on several threads, in the order of the trace.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::{Open, Part};
use crate::{Diagnostic, DumpOptions, Error, Format, OpenOptions, Outcome, Plan, Sink, Target};

/// Bytes that are handed over at once.
const BLOCK_BYTES: usize = 1 << 16;

/// Most bytes of output that wait, of all threads together.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// What one part gives.
enum Piece {
    Text(Vec<u8>),
    Report(Diagnostic),
}

/// Dumps parts of a trace one after the other, on all threads of `options`: output and diagnostics are in the order of
/// the parts, whatever the number of threads. Memory is bounded by 32 MiB of waiting output.
///
/// # Errors
/// As [`crate::Trace::dump`], and those of `open`.
pub fn dump(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    dump: &DumpOptions,
    parts: Vec<Part>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let threads = options.threads.max(1);
    let each = |part: Part, out: &mut dyn Write, sink: &mut dyn Sink| {
        let options = OpenOptions { part: Some(part), threads: 1, ..options.clone() };
        format.open(open()?, &options)?.dump(dump, out, sink).map(|_| ())
    };
    if threads == 1 || parts.len() == 1 {
        return parts.into_iter().try_for_each(|part| each(part, out, sink));
    }
    let blocks = WAITING_BYTES_MAX / BLOCK_BYTES / threads;
    std::thread::scope(|scope| {
        let mut parts = parts.into_iter();
        let mut running: VecDeque<Running<'_>> = VecDeque::new();
        loop {
            let free = threads - running.len();
            running.extend(parts.by_ref().take(free).map(|part| Running::start(scope, blocks, part, &each)));
            match running.pop_front() {
                Some(first) => first.finish(out, sink)?,
                None => return Ok(()),
            }
        }
    })
}

/// Trims parts of a trace without damage one after the other into one output; see [`crate::Format::trim_needs`].
///
/// # Errors
/// As [`crate::Trace::rewrite`], and those of `open`.
pub fn trim(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    plan: &Plan,
    parts: Vec<Part>,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let mut all = Outcome::default();
    for part in parts {
        let options = OpenOptions { part: Some(part), ..options.clone() };
        let one = format.open(open()?, &options)?.rewrite(plan, out, sink)?;
        all.records_written += one.records_written;
        all.bytes_lost += one.bytes_lost;
        all.notes.extend(one.notes);
    }
    Ok(all)
}

/// A part that is being read.
struct Running<'scope> {
    pieces: Receiver<Piece>,
    thread: ScopedJoinHandle<'scope, Result<(), Error>>,
}

impl<'scope> Running<'scope> {
    fn start<E>(scope: &'scope Scope<'scope, '_>, blocks: usize, part: Part, each: &'scope E) -> Self
    where
        E: Fn(Part, &mut dyn Write, &mut dyn Sink) -> Result<(), Error> + Sync,
    {
        let (to, pieces) = sync_channel(blocks.max(1));
        let thread = scope.spawn(move || {
            let mut text = Text { to: to.clone(), block: Vec::new() };
            let dumped = each(part, &mut text, &mut Reports(to));
            // What was printed before an error is printed here, too.
            let flushed = text.flush();
            dumped.and_then(|()| Ok(flushed?))
        });
        Self { pieces, thread }
    }

    /// Passes on what the part gives, to its end.
    fn finish(self, out: &mut dyn Write, sink: &mut dyn Sink) -> Result<(), Error> {
        let Self { pieces, thread } = self;
        for piece in &pieces {
            match piece {
                Piece::Text(text) => out.write_all(&text)?,
                Piece::Report(diagnostic) => sink.report(diagnostic)?,
            }
        }
        thread.join().unwrap_or_else(|_| Err(Error::usage("a thread that reads the trace stopped")))
    }
}

/// The output of a part.
struct Text {
    to: SyncSender<Piece>,
    block: Vec<u8>,
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let piece = Piece::Text(std::mem::take(&mut self.block));
        self.to.send(piece).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// The diagnostics of a part.
struct Reports(SyncSender<Piece>);

impl Sink for Reports {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let failed = |_| Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        self.0.send(Piece::Report(diagnostic)).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collect;

    /// The output of parts that are read at once, and how they end.
    fn run(
        each: impl Fn(Part, &mut dyn Write, &mut dyn Sink) -> Result<(), Error> + Sync,
    ) -> (Vec<u8>, Option<String>) {
        let (mut out, mut sink) = (Vec::new(), Collect::default());
        let ended = std::thread::scope(|scope| {
            let running = [1, 2].map(|until| {
                let part = Part { until: Some(until), ..Part::default() };
                Running::start(scope, 1, part, &each)
            });
            running.into_iter().try_for_each(|part| part.finish(&mut out, &mut sink))
        });
        (out, ended.err().map(|error| error.to_string()))
    }

    #[test]
    fn what_a_part_prints_before_an_error_is_kept_and_nothing_after_it() {
        let (out, error) = run(|part, out, _| {
            write!(out, "part {:?};", part.until)?;
            Err(Error::usage("it ends here"))
        });
        assert_eq!((out.as_slice(), error.as_deref()), (&b"part Some(1);"[..], Some("it ends here")));
    }

    #[test]
    fn parts_longer_than_what_may_wait_are_in_order() {
        let (out, error) = run(|part, out, _| {
            let digit = if part.until == Some(1) { b'1' } else { b'2' };
            (0..9).try_for_each(|_| Ok(out.write_all(&[digit; BLOCK_BYTES])?))
        });
        assert_eq!(error, None);
        let one = 9 * BLOCK_BYTES;
        assert!(out.len() == 2 * one && out[..one].iter().all(|b| *b == b'1') && out[one..].iter().all(|b| *b == b'2'));
    }
}
