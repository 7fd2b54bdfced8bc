//! One side of a comparison: a trace printed as JSON lines by a thread of its own.

mod splitter;

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anytrace_analysis::diff::{Line, LineMaker};
use anytrace_core::{DumpForm, DumpOptions, Error, Format, Trace};
use serde_json::Value;

use super::Entered;
use crate::Verdict;
use crate::arguments::DiffArguments;
use crate::failure::Failure;
use crate::report::{Reporter, Way};
use splitter::Splitter;

/// One trace being read by its own thread.
pub(super) struct Side<'scope> {
    pub(super) lines: Lines,
    has_header: bool,
    thread: Option<std::thread::ScopedJoinHandle<'scope, Result<Verdict, Failure>>>,
}

impl<'scope> Side<'scope> {
    /// Starts reading.
    pub(super) fn start<'env: 'scope>(
        scope: &'scope std::thread::Scope<'scope, 'env>,
        trace: Entered,
        path: &'env Path,
        options: &'env DiffArguments,
    ) -> Self {
        let (sender, receiver) = sync_channel(8);
        let mut lines = Lines { receiver, batch: Vec::new().into_iter() };
        let Some((format, trace)) = trace else {
            drop(sender);
            return Self { lines, has_header: false, thread: None };
        };
        let thread = scope.spawn(move || read(format, trace, path, options, sender));
        // Heph's JSON lines have no header line; every other format's begin with one.
        let mut probe = lines.next();
        let has_header = probe.as_ref().is_some_and(|line| line.text().starts_with(b"{\"anytrace\":"));
        if let Some(line) = probe.take() {
            let rest = std::mem::take(&mut lines.batch);
            lines.batch = std::iter::once(line).chain(rest).collect::<Vec<_>>().into_iter();
        }
        Self { lines, has_header, thread: Some(thread) }
    }

    /// The header line, where the format has one.
    pub(super) fn header(&mut self) -> Option<Value> {
        if !self.has_header {
            return None;
        }
        serde_json::from_slice(self.lines.next()?.text()).ok()
    }

    /// Waits for the thread: breach when the trace has errors.
    pub(super) fn finish(self) -> Result<Verdict, Failure> {
        drop(self.lines);
        match self.thread.map(std::thread::ScopedJoinHandle::join) {
            None => Ok(Verdict::Fine),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(Failure::usage("a reading thread failed")),
        }
    }
}

fn read(
    format: &'static dyn Format,
    trace: Box<dyn Trace>,
    path: &Path,
    options: &DiffArguments,
    sender: SyncSender<Vec<Line>>,
) -> Result<Verdict, Failure> {
    let name = path.display().to_string();
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let dump = DumpOptions {
        form: DumpForm::Jsonl,
        offsets: false,
        without_positions: true,
        selection: options.selection.selection(),
    };
    let mut splitter = Splitter {
        maker: LineMaker::default(),
        line_bytes: Vec::new(),
        ignore: &options.ignore,
        batch: Vec::new(),
        sender,
    };
    let result: Result<_, Error> = trace.dump(&dump, &mut splitter, &mut reporter);
    result.map_err(|error| Failure::of(&name, &error))?;
    splitter.flush()?;
    Ok(reporter.verdict())
}

/// The records as they come.
pub(super) struct Lines {
    receiver: Receiver<Vec<Line>>,
    batch: std::vec::IntoIter<Line>,
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.batch.next() {
                return Some(line);
            }
            self.batch = self.receiver.recv().ok()?.into_iter();
        }
    }
}
