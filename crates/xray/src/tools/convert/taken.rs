//! Moments of a window, in compact form until the window's turn.

use std::ops::Range;

use anytrace_core::{Diagnostic, Error, Place};

use crate::wire::moment::{Moment, MomentKind, Moments};

/// No arguments and no payload.
const NOTHING: u32 = u32::MAX;

/// The fields that every moment has.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tsc: u64,
    function: u32,
    thread: u32,
    process: u32,
    more: u32,
    kind: MomentKind,
    cpu: u16,
}

/// Moments of a trace without names, and without their places in it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    entries: Vec<Entry>,
    /// Where arguments and payloads are.
    more: Vec<(Range<usize>, Range<usize>)>,
    arguments: Vec<u64>,
    data: Vec<u8>,
}

impl Taken {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.more.clear();
        self.arguments.clear();
        self.data.clear();
    }

    /// Calls `take` with each moment.
    #[inline(always)]
    pub(super) fn each(&self, mut take: impl FnMut(&Moment<'_>)) {
        for &Entry { tsc, function, thread, process, more, kind, cpu } in &self.entries {
            let (arguments, data) = if more == NOTHING { Default::default() } else { self.payload(more) };
            let at = Place { offset: 0, seq: 0 };
            take(&Moment { kind, function, name: &[], arguments, cpu, thread, process, tsc, data, at, buffer: 0 });
        }
    }

    #[cold]
    fn payload(&self, more: u32) -> (&[u64], &[u8]) {
        let Some((arguments, data)) = self.more.get(more as usize) else { return Default::default() };
        let arguments = self.arguments.get(arguments.clone()).unwrap_or_default();
        (arguments, self.data.get(data.clone()).unwrap_or_default())
    }

    #[cold]
    fn keep(&mut self, moment: &Moment<'_>) -> u32 {
        let (arguments, data) = (self.arguments.len(), self.data.len());
        self.arguments.extend_from_slice(moment.arguments);
        self.data.extend_from_slice(moment.data);
        self.more.push((arguments..self.arguments.len(), data..self.data.len()));
        u32::try_from(self.more.len() - 1).unwrap_or(NOTHING)
    }
}

impl Moments for Taken {
    #[inline(always)]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let is_plain = moment.arguments.is_empty() && moment.data.is_empty();
        let more = if is_plain { NOTHING } else { self.keep(moment) };
        let &Moment { tsc, function, thread, process, kind, cpu, .. } = moment;
        self.entries.push(Entry { tsc, function, thread, process, more, kind, cpu });
        Ok(())
    }

    // A trace that can be cut was read once, and its diagnostics were reported then.
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}
