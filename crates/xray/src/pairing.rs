//! Entries and exits by thread: who is left without having been entered, who is never left.

use std::collections::BTreeMap;

use anytrace_core::{Error, Severity, Sink};

use crate::reader::At;
use crate::record::FunctionKind;
use crate::rules;

/// Most threads followed.
const THREADS_MAX: usize = 4096;

/// Deepest stack followed for one thread.
const DEPTH_MAX: usize = 1 << 16;

/// Most frames kept for all threads together.
const FRAMES_MAX: usize = 1 << 20;

/// How far down a stack an exit is looked for.
const SEARCH_MAX: usize = 512;

/// What is known of one thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    stack: Vec<u32>,
    /// Entries deeper than what is kept.
    too_deep: u64,
    orphans: u64,
    first_orphan: Option<At>,
    missing: u64,
    /// Time of its last record, and process, where it had one before.
    pub(crate) last_tsc: Option<u64>,
    pub(crate) process: Option<u32>,
    pub(crate) disorders: u64,
    pub(crate) first_disorder: Option<At>,
}

impl Thread {
    /// Takes one function record in.
    #[inline]
    pub(crate) fn function(&mut self, kind: FunctionKind, id: u32, at: At) {
        if kind.is_entry() {
            if self.stack.len() < DEPTH_MAX {
                self.stack.push(id);
            } else {
                self.too_deep += 1;
            }
        } else if self.too_deep == 0 && self.stack.last() == Some(&id) {
            self.stack.pop();
        } else {
            self.unmatched(id, at);
        }
    }

    #[cold]
    fn unmatched(&mut self, id: u32, at: At) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        match self.stack.iter().rev().take(SEARCH_MAX).position(|&frame| frame == id) {
            Some(above) => {
                self.missing += above as u64;
                self.stack.truncate(self.stack.len() - above - 1);
            }
            None => {
                self.orphans += 1;
                self.first_orphan.get_or_insert(at);
            }
        }
    }

    /// Forgets what is open: the next buffer does not follow this one.
    pub(crate) fn forget(&mut self) {
        self.stack.clear();
        self.too_deep = 0;
    }
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    threads: BTreeMap<u32, Thread>,
    frames: usize,
    untracked: u64,
}

impl Pairing {
    /// Takes a thread out to work on; [`Self::put_back`] returns it. `None` beyond the limit.
    pub(crate) fn take(&mut self, thread: u32) -> Option<Thread> {
        match self.threads.remove(&thread) {
            Some(found) => {
                self.frames -= found.stack.len();
                Some(found)
            }
            None if self.threads.len() < THREADS_MAX => Some(Thread::default()),
            None => {
                self.untracked += 1;
                None
            }
        }
    }

    pub(crate) fn put_back(&mut self, number: u32, mut thread: Thread) {
        if self.frames + thread.stack.len() > FRAMES_MAX {
            thread.stack = Vec::new();
        }
        self.frames += thread.stack.len();
        self.threads.insert(number, thread);
    }

    /// Takes one function record of a form whose threads are mixed; `None` beyond the limit.
    pub(crate) fn function(&mut self, number: u32, kind: FunctionKind, id: u32, at: At) -> Option<&mut Thread> {
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&number) {
            self.untracked += 1;
            return None;
        }
        let thread = self.threads.entry(number).or_default();
        self.frames -= thread.stack.len();
        if self.frames + thread.stack.len() >= FRAMES_MAX {
            thread.stack = Vec::new();
        }
        thread.function(kind, id, at);
        self.frames += thread.stack.len();
        Some(thread)
    }

    /// Reports what was found, a summary a thread.
    pub(crate) fn finish(self, end: At, sink: &mut dyn Sink) -> Result<(), Error> {
        for (number, thread) in self.threads {
            let name = number.cast_signed();
            if let Some(at) = thread.first_orphan {
                let report = rules::ORPHAN_EXIT.at(at.offset).record(at.seq).field(format!("thread {name}"));
                let help = "normal where old buffers were overwritten, or tracing began late";
                sink.report(
                    report.found(format!("{} exits without entry, this is the first", thread.orphans)).help(help),
                )?;
            }
            let missing = thread.missing + thread.stack.len() as u64 + thread.too_deep;
            if missing > 0 {
                let report = rules::MISSING_EXIT.at(end.offset).field(format!("thread {name}"));
                let help = "normal after exceptions, and where tracing ended first";
                sink.report(report.found(format!("{missing} entries without exit")).help(help))?;
            }
            if let Some(at) = thread.first_disorder {
                let report = rules::BUFFER_ORDER.at(at.offset).record(at.seq).field(format!("thread {name}"));
                sink.report(
                    report.found(format!("{} buffers begin before the one before them ends", thread.disorders)),
                )?;
            }
        }
        if self.untracked > 0 {
            let report = rules::THREADS_UNTRACKED.at(end.offset).severity(Severity::Note);
            sink.report(report.found(format!("more than {THREADS_MAX} threads")))?;
        }
        Ok(())
    }
}
