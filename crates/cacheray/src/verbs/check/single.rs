//! Rules for single accesses: which are ordinary, and what is wrong with the others.

use anytrace_core::{Error, Place, Sink};

use crate::rules;
use crate::verbs::rtta::RttaRules;
use crate::wire::parse::access;
use crate::wire::record::{Layout, Tag, is_usual_size};

/// True for accesses that no rule can report: most of them, decided in a few operations.
#[inline(always)]
pub(super) fn is_ordinary<const STRIDE: usize, const BIG: bool>(bytes: &[u8; STRIDE], rtta: &RttaRules) -> bool {
    let (_, address, size, thread) = access::<STRIDE, BIG>(bytes);
    let low = size.wrapping_sub(1);
    let is_usual = size & low == 0 && low < 16;
    let is_aligned = address & u64::from(low) == 0;
    // User addresses are below bit 47; a 32-bit access near the end of memory may wrap.
    let top = if STRIDE == 18 { 1 << 47 } else { 0xffff_ff00 };
    is_usual & is_aligned & (address < top) & (thread >> 32 == 0) && !rtta.may_end_inside(address, size)
}

/// One access, decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) tag: Tag,
    pub(super) address: u64,
    pub(super) size: u8,
    pub(super) thread: u64,
}

impl Access {
    fn is_misaligned(self) -> bool {
        is_usual_size(self.size) && self.address & u64::from(self.size - 1) != 0
    }

    /// Reports what is wrong with it.
    pub(super) fn report(
        self,
        layout: Layout,
        is_canonical: bool,
        at: Place,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Access { tag, address, size, .. } = self;
        if !is_usual_size(size) {
            let report = rules::ODD_SIZE.at(at.offset).record(at.seq).field("size");
            sink.report(report.expected("1, 2, 4, 8 or 16").found(size.to_string()))?;
        }
        if !is_canonical {
            let report = rules::NOT_CANONICAL.at(at.offset).record(at.seq).field("address");
            sink.report(report.expected("bits 47 to 63 equal").found(format!("{address:#x}")))?;
        }
        let last = layout.width.address_max();
        if u64::from(size) > 0 && last - address.min(last) < u64::from(size) - 1 {
            let report = rules::ACCESS_WRAPS.at(at.offset).record(at.seq).field("address");
            sink.report(
                report
                    .expected(format!("at most {last:#x} at its last byte"))
                    .found(format!("{size} bytes at {address:#x}")),
            )?;
        }
        if self.is_misaligned() && !tag.is_unaligned() {
            let report = rules::MISALIGNED.at(at.offset).record(at.seq).field("address");
            sink.report(report.expected(format!("a multiple of {size}")).found(format!("{address:#x}")))?;
        }
        Ok(())
    }
}
