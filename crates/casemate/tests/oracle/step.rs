//! One record, owned, and how a trace becomes a list of them.

use anytrace_casemate::{Reader, Record, Source, Spelling, Transition};
use anytrace_core::{Input, OpenOptions};

/// One record: what the model needs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The number in the trace.
    pub(crate) id: u64,
    /// The acting thread.
    pub(crate) thread: u32,
    /// What it did.
    pub(crate) action: Transition,
}

impl Step {
    /// As the crate's own record, so that its writer can write it.
    pub(crate) fn record<'a>(&self, source: Source<'a>) -> Record<'a> {
        let (id, thread, transition) = (self.id, self.thread, self.action);
        Record { id, thread, transition, source, spelling: Spelling::default(), text: b"" }
    }
}

/// Reads a trace in any spelling.
///
/// # Panics
/// When something is damaged: the model is only used on good traces.
pub(crate) fn read(trace: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    let reader = Reader::new(Input::from_bytes("trace", trace.to_vec()), &OpenOptions::default());
    let read = reader.and_then(|mut reader| {
        reader.for_each(|step| {
            match step {
                anytrace_core::Step::Record(_, record) => {
                    steps.push(Step { id: record.id, thread: record.thread, action: record.transition });
                }
                anytrace_core::Step::Damage(damage) => {
                    assert!(damage.severity != anytrace_core::Severity::Error, "{damage}");
                }
            }
            Ok(())
        })
    });
    read.unwrap_or_else(|error| panic!("{error}"));
    steps
}

/// Numbers the steps from 1. The reference takes 0 for "no number".
pub(crate) fn renumber(steps: &mut [Step]) {
    for (id, step) in (1..).zip(steps) {
        step.id = id;
    }
}
