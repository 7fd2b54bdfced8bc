//! `check`: the rules beyond grammar for accesses. Those for regions are in [`crate::rtta`].
//!
//! The hot loop only asks whether an access is ordinary; everything else happens out of line.

use anytrace_core::{Error, Limits, Sink};

use crate::mix::MixWatch;
use crate::parse::{access, with_layout};
use crate::reader::{Place, Visit, run_of};
use crate::record::{Layout, Record, Tag, Width, is_canonical, is_usual_size};
use crate::rtta::RttaRules;
use crate::rules;

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

/// One access, decoded.
#[derive(Debug, Clone, Copy)]
struct Access {
    tag: Tag,
    address: u64,
    size: u8,
    thread: u64,
}

impl Access {
    fn is_misaligned(self) -> bool {
        is_usual_size(self.size) && self.address & u64::from(self.size - 1) != 0
    }
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
                self.odd(Access { tag: Tag(tag), address, size, thread }, at.after(next, STRIDE), sink)?;
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
        self.report_odd(access, is_canonical, at, sink)?;
        if is_canonical && address >> 63 == 1 {
            self.high.get_or_insert((at, 0)).1 += 1;
        }
        self.rtta.access(address, size, at, sink)
    }

    fn report_odd(&self, access: Access, is_canonical: bool, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Access { tag, address, size, .. } = access;
        if !is_usual_size(size) {
            let report = rules::ODD_SIZE.at(at.offset).record(at.seq).field("size");
            sink.report(report.expected("1, 2, 4, 8 or 16").found(size.to_string()))?;
        }
        if !is_canonical {
            let report = rules::NOT_CANONICAL.at(at.offset).record(at.seq).field("address");
            sink.report(report.expected("bits 47 to 63 equal").found(format!("{address:#x}")))?;
        }
        let last = self.layout.width.address_max();
        if u64::from(size) > 0 && last - address.min(last) < u64::from(size) - 1 {
            let report = rules::ACCESS_WRAPS.at(at.offset).record(at.seq).field("address");
            sink.report(
                report
                    .expected(format!("at most {last:#x} at its last byte"))
                    .found(format!("{size} bytes at {address:#x}")),
            )?;
        }
        if access.is_misaligned() && !tag.is_unaligned() {
            let report = rules::MISALIGNED.at(at.offset).record(at.seq).field("address");
            sink.report(report.expected(format!("a multiple of {size}")).found(format!("{address:#x}")))?;
        }
        Ok(())
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

/// True for accesses that no rule can report: most of them, decided in a few operations.
#[inline(always)]
fn is_ordinary<const STRIDE: usize, const BIG: bool>(bytes: &[u8; STRIDE], rtta: &RttaRules) -> bool {
    let (_, address, size, thread) = access::<STRIDE, BIG>(bytes);
    let low = size.wrapping_sub(1);
    let is_usual = size & low == 0 && low < 16;
    let is_aligned = address & u64::from(low) == 0;
    // User addresses are below bit 47; a 32-bit access near the end of memory may wrap.
    let top = if STRIDE == 18 { 1 << 47 } else { 0xffff_ff00 };
    is_usual & is_aligned & (address < top) & (thread >> 32 == 0) && !rtta.may_end_inside(address, size)
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
