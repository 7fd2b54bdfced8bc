//! Entries and exits by thread: functions that are left without having been entered, and functions that are never left.

use std::collections::BTreeMap;

use anytrace_core::{Error, Place, Severity, Sink};

use crate::rules;
use crate::wire::record::FunctionKind;

/// Most threads followed.
const THREADS_MAX: usize = 4096;

/// Deepest stack followed for one thread.
const DEPTH_MAX: usize = 1 << 16;

/// Most frames kept for all threads together.
const FRAMES_MAX: usize = 1 << 20;

/// How far down a stack an exit is searched for.
const SEARCH_MAX: usize = 512;

/// What is known of one thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    stack: Vec<u32>,
    /// Entries deeper than the limit.
    too_deep: u64,
    orphans: u64,
    first_orphan: Option<Place>,
    missing: u64,
    /// Open entries may be missing from the stack: an exit that is not found there may be theirs.
    has_unfollowed: bool,
    /// Number of such exits.
    unfollowed_exits: u64,
    /// Time of its last record, and process, if it had an earlier record.
    pub(crate) last_tsc: Option<u64>,
    pub(crate) process: Option<u32>,
    pub(crate) disorders: u64,
    pub(crate) first_disorder: Option<Place>,
}

impl Thread {
    /// Processes one function record.
    #[inline]
    pub(crate) fn function(&mut self, kind: FunctionKind, id: u32, at: Place) {
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
    fn unmatched(&mut self, id: u32, at: Place) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        match self.stack.iter().rev().take(SEARCH_MAX).position(|&frame| frame == id) {
            Some(above) => {
                self.missing += above as u64;
                self.stack.truncate(self.stack.len() - above - 1);
            }
            None if self.has_unfollowed || self.stack.len() > SEARCH_MAX => {
                self.has_unfollowed = true;
                self.unfollowed_exits += 1;
            }
            None => {
                self.orphans += 1;
                self.first_orphan.get_or_insert(at);
            }
        }
    }

    /// Drops the stack: all threads together have too many frames.
    #[cold]
    fn drop_stack(&mut self) {
        self.stack = Vec::new();
        self.has_unfollowed = true;
    }

    /// Forgets all open calls: the next buffer does not continue this one.
    pub(crate) fn forget(&mut self) {
        self.stack.clear();
        self.too_deep = 0;
        self.has_unfollowed = false;
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
    /// Takes a thread out for processing; [`Self::put_back`] returns it. `None` beyond the limit.
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
            thread.drop_stack();
        }
        self.frames += thread.stack.len();
        self.threads.insert(number, thread);
    }

    /// Processes one function record of a form whose threads are mixed; `None` beyond the limit.
    pub(crate) fn function(&mut self, number: u32, kind: FunctionKind, id: u32, at: Place) -> Option<&mut Thread> {
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&number) {
            self.untracked += 1;
            return None;
        }
        let thread = self.threads.entry(number).or_default();
        self.frames -= thread.stack.len();
        if self.frames + thread.stack.len() >= FRAMES_MAX {
            thread.drop_stack();
        }
        thread.function(kind, id, at);
        self.frames += thread.stack.len();
        Some(thread)
    }

    /// Reports the findings, one summary per thread.
    pub(crate) fn finish(self, end: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        for (number, thread) in self.threads {
            let name = number.cast_signed();
            if let Some(at) = thread.first_orphan {
                let report = rules::ORPHAN_EXIT.at(at.offset).record(at.seq).field(format!("thread {name}"));
                let help = "normal if old buffers were overwritten or tracing started late";
                sink.report(
                    report.found(format!("{} exits without entry, this is the first", thread.orphans)).help(help),
                )?;
            }
            if thread.unfollowed_exits > 0 {
                let report = rules::THREADS_UNTRACKED.at(end.offset).field(format!("thread {name}"));
                let help = "more functions were open than the limit: neither these nor entries still open are checked";
                sink.report(report.found(format!("{} exits not paired", thread.unfollowed_exits)).help(help))?;
            }
            // What is still on the stack may belong to the exits that were not paired.
            let open = if thread.unfollowed_exits > 0 { 0 } else { thread.stack.len() as u64 + thread.too_deep };
            let missing = thread.missing + open;
            if missing > 0 {
                let report = rules::MISSING_EXIT.at(end.offset).field(format!("thread {name}"));
                let help = "normal after exceptions, or if tracing ended first";
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

#[cfg(test)]
mod tests {
    use anytrace_core::Collect;

    use super::*;

    const AT: Place = Place { offset: 0, seq: 0 };

    /// Enters functions of as many threads to a depth, leaves all of them, and returns the codes that are reported.
    fn balanced(threads: u32, depth: u32) -> Vec<&'static str> {
        let mut pairing = Pairing::default();
        for thread in 0..threads {
            for id in 0..depth {
                pairing.function(thread, FunctionKind::Enter, id, AT);
            }
        }
        for thread in 0..threads {
            for id in (0..depth).rev() {
                pairing.function(thread, FunctionKind::Exit, id, AT);
            }
        }
        let mut found = Collect::default();
        pairing.finish(AT, &mut found).unwrap();
        let mut codes: Vec<_> = found.0.iter().map(|one| one.code()).collect();
        codes.dedup();
        codes
    }

    #[test]
    fn limits_make_no_orphans_and_no_missing_exits_of_balanced_calls() {
        let depth = u32::try_from(DEPTH_MAX).unwrap();
        let threads = u32::try_from(FRAMES_MAX / DEPTH_MAX).unwrap();
        assert!(balanced(threads - 1, depth).is_empty() && balanced(1, depth - 1).is_empty());
        assert!(balanced(1, depth + 1).is_empty());
        assert_eq!(balanced(threads + 1, depth), ["xray/threads-not-tracked"]);
    }

    #[test]
    fn an_exit_deeper_than_is_searched_is_not_judged() {
        let codes = |depth: u32| {
            let mut pairing = Pairing::default();
            for id in 0..=depth {
                pairing.function(1, FunctionKind::Enter, id, AT);
            }
            // Every call above the first function is left at once.
            pairing.function(1, FunctionKind::Exit, 0, AT);
            let mut found = Collect::default();
            pairing.finish(AT, &mut found).unwrap();
            found.0.iter().map(|one| one.code()).collect::<Vec<_>>()
        };
        let most = u32::try_from(SEARCH_MAX).unwrap();
        assert_eq!([codes(most - 1), codes(most)], [["xray/missing-exit"], ["xray/threads-not-tracked"]]);
    }
}
