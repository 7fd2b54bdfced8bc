//! `check`: the rules beyond grammar for accesses. Those for regions are in [`crate::verbs::rtta`].
//!
//! The hot loop only asks whether an access is ordinary; everything else happens out of line.

mod single;

use anytrace_core::{Error, Limits, Place, Sink};

use crate::rules;
use crate::verbs::rtta::RttaRules;
use crate::wire::mix::MixWatch;
use crate::wire::parse::{access, with_layout};
use crate::wire::reader::{Visit, after, run_of};
use crate::wire::record::{Layout, Record, Tag, Width, is_canonical, is_usual_size};
use single::{Access, is_ordinary};

/// The state of a check.
pub(crate) struct Check {
    layout: Layout,
    rtta: RttaRules,
    mix: MixWatch,
    accesses: u64,
    /// Zero records that no other record has followed yet.
    zeros: Option<Zeros>,
    high: Option<(Place, u64)>,
}

/// A run of accesses that are zero throughout.
#[derive(Debug, Clone, Copy)]
struct Zeros {
    from: Place,
    records: u64,
}

impl Check {
    pub(crate) fn new(layout: Layout, limits: Limits) -> Self {
        Self {
            layout,
            rtta: RttaRules::new(layout, limits),
            mix: MixWatch::default(),
            accesses: 0,
            zeros: None,
            high: None,
        }
    }

    /// Reports violations that are known only at the end.
    pub(crate) fn finish(mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        self.end_zeros(sink)?;
        self.mix.finish(self.accesses, sink)?;
        if let Some((at, count)) = self.high {
            let found = format!("{count} accesses");
            let help = "kernel addresses, on most machines; some tools read them as negative numbers";
            sink.report(rules::HIGH_ADDRESSES.at(at.offset).record(at.seq).field("address").found(found).help(help))?;
        }
        Ok(())
    }

    fn run<const STRIDE: usize, const BIG: bool>(
        &mut self,
        run: &[u8],
        at: Place,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (records, _) = run.as_chunks::<STRIDE>();
        let mut next = 0;
        while let Some(rest) = records.get(next..).filter(|rest| !rest.is_empty()) {
            let ordinary =
                rest.iter().position(|bytes| !is_ordinary::<STRIDE, BIG>(bytes, &self.rtta)).unwrap_or(rest.len());
            if ordinary > 0 {
                self.accesses += ordinary as u64;
                self.end_zeros(sink)?;
                next += ordinary;
            }
            if let Some(bytes) = rest.get(ordinary) {
                let (tag, address, size, thread) = access::<STRIDE, BIG>(bytes);
                self.odd(Access { tag: Tag(tag), address, size, thread }, after(at, next, STRIDE), sink)?;
                self.accesses += 1;
                next += 1;
            }
        }
        Ok(())
    }

    /// Judges an access that is not ordinary.
    fn odd(&mut self, access: Access, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Access { tag, address, size, thread } = access;
        if tag.0 == 0 && address == 0 && size == 0 && thread == 0 {
            self.zeros.get_or_insert(Zeros { from: at, records: 0 }).records += 1;
            return Ok(());
        }
        self.end_zeros(sink)?;
        let is_canonical = self.layout.width == Width::Four || is_canonical(address);
        if !is_usual_size(size) || !is_canonical || thread > u64::from(u32::MAX) {
            self.mix.implausible(self.accesses, at, sink)?;
        }
        access.report(self.layout, is_canonical, at, sink)?;
        if is_canonical && address >> 63 == 1 {
            self.high.get_or_insert((at, 0)).1 += 1;
        }
        self.rtta.access(address, size, at, sink)
    }

    /// Another record follows the zero records, so they are not the tail.
    #[inline]
    fn end_zeros(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        match self.zeros.take() {
            None => Ok(()),
            Some(zeros) => report_zeros(zeros, self.layout, sink),
        }
    }
}

#[cold]
fn report_zeros(zeros: Zeros, layout: Layout, sink: &mut dyn Sink) -> Result<(), Error> {
    let Zeros { from, records } = zeros;
    let bytes = records * layout.access_bytes() as u64;
    let found = format!("{bytes} bytes, which read as {records} accesses of 0 bytes at address 0");
    sink.report(rules::ZERO_RUN.at(from.offset).record(from.seq).found(found))
}

impl Visit for Check {
    fn run(&mut self, window: &[u8], at: Place, sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        with_layout!(self.layout, check_run, self, run, at, sink)?;
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        self.end_zeros(sink)?;
        self.rtta.record(record, at, sink)
    }

    fn zero_tail(&mut self, _at: Place) {
        self.zeros = None;
    }
}

fn check_run<const STRIDE: usize, const BIG: bool>(
    check: &mut Check,
    run: &[u8],
    at: Place,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    check.run::<STRIDE, BIG>(run, at, sink)
}
