//! Events of the kernel in a bundle (`FtraceEventBundle`), as far as counting and selecting need them.

use crate::wire::proto::{Fields, varint};

/// An event of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelEvent {
    /// In nanoseconds of the bundle's clock.
    pub(crate) time: u64,
    /// The thread that was running.
    pub(crate) thread: u64,
    /// The field number of its data in `FtraceEvent`; 0 for an event of `CompactSched`.
    pub(crate) kind: u32,
}

/// Calls `visit` with every event of a bundle.
pub(crate) fn each(bundle: &[u8], mut visit: impl FnMut(KernelEvent)) {
    for field in Fields::of(bundle) {
        match field.number {
            2 => visit(read(field.value.bytes())),
            4 => compact(field.value.bytes(), &mut visit),
            _ => {}
        }
    }
}

fn read(bytes: &[u8]) -> KernelEvent {
    let mut event = KernelEvent { time: 0, thread: 0, kind: 0 };
    for field in Fields::of(bytes) {
        match field.number {
            1 => event.time = field.value.number(),
            2 => event.thread = field.value.number() & u64::from(u32::MAX),
            5 => {}
            number => event.kind = number,
        }
    }
    event
}

/// The columns of times hold differences; the thread is the one that runs or wakes next.
fn compact(bytes: &[u8], visit: &mut impl FnMut(KernelEvent)) {
    for (times, threads) in [(1, 3), (7, 8)] {
        let column =
            |number| Fields::of(bytes).find(|field| field.number == number).map_or(&[][..], |f| f.value.bytes());
        let (times, threads) = (column(times), column(threads));
        let (mut at, mut thread_at, mut time) = (0, 0, 0_u64);
        while let (Some((step, next)), Some((thread, thread_next))) = (varint(times, at), varint(threads, thread_at)) {
            (at, thread_at, time) = (next, thread_next, time.wrapping_add(step));
            visit(KernelEvent { time, thread: thread & u64::from(u32::MAX), kind: 0 });
        }
    }
}

/// True if the kernel lost events before a bundle.
pub(crate) fn has_lost(bundle: &[u8]) -> bool {
    Fields::of(bundle).any(|field| field.number == 3 && field.value.is_true())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_in_rows_and_in_columns_are_found() {
        let row = b"\x12\x06\x08\x64\x10\x07\x22\x00";
        let columns = b"\x22\x08\x0a\x02\x05\x03\x1a\x02\x01\x02";
        let mut found = Vec::new();
        each(&[&row[..], columns].concat(), |event| found.push((event.time, event.thread, event.kind)));
        assert_eq!(found, [(100, 7, 4), (5, 1, 0), (8, 2, 0)]);
        assert!(has_lost(b"\x18\x01") && !has_lost(b"\x18\x00"));
    }
}
