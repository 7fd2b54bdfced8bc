//! Where records resume after damage.
//!
//! The format has no markers, so every offset is tried: records resume where the next sixteen parse
//! and nearly all of them are plausible, or where whole plausible records lead exactly to the end of
//! the data. It is a guess, made the same way whatever the window's size.

use crate::parse::parse;
use crate::record::{Body, Layout, Record, Width, is_canonical, is_usual_size};

/// How many records must follow.
const RECORDS: u32 = 16;

/// How many of them may be odd.
const ODD_MAX: u32 = 3;

/// Longest type name of a plausible record.
const NAME_BYTES_MAX: usize = 4096;

/// How far a candidate looks ahead: sixteen adds with names just below the longest.
const LOOK_BYTES: usize = RECORDS as usize * (29 + NAME_BYTES_MAX);

/// What [`find`] wants to see: a candidate, its rivals within one record, and their look ahead.
pub(crate) const WINDOW_BYTES: usize = 2 * LOOK_BYTES;

/// What a plausible record is measured by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    pub(crate) layout: Layout,
    /// Thread of the last record before the damage: large ids are believed when they are this one.
    pub(crate) thread: u64,
}

/// Where records resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// At this offset of the window.
    At(usize),
    /// Not before this offset; the window does not show what follows.
    NotBefore(usize),
}

/// Tries every offset of `window` from `from` on. `is_end` says that the data end with the window.
pub(crate) fn find(window: &[u8], from: usize, is_end: bool, trust: Trust) -> Found {
    let rivals = trust.layout.access_bytes();
    for at in from..window.len() {
        if !is_end && window.len() - at < LOOK_BYTES + rivals {
            return Found::NotBefore(at);
        }
        let Some(quality) = quality_at(window, at, trust) else { continue };
        // A neighbour may fit better: classic 32-bit addresses, shifted by a byte, look like records too.
        let mut best = (quality, at);
        for rival in at + 1..(at + rivals).min(window.len()) {
            if let Some(quality) = quality_at(window, rival, trust).filter(|quality| *quality > best.0) {
                best = (quality, rival);
            }
        }
        return Found::At(best.1);
    }
    Found::NotBefore(window.len())
}

/// How many of the records from `at` on are of the trusted thread; `None` where no records resume.
fn quality_at(window: &[u8], at: usize, trust: Trust) -> Option<u32> {
    let all = window.get(at..)?;
    // The same bytes decide whatever the window shows beyond them.
    let (mut rest, is_whole) = match all.get(..LOOK_BYTES) {
        Some(near) if all.len() > LOOK_BYTES => (near, false),
        _ => (all, true),
    };
    let (mut records, mut odd, mut quality) = (0, 0, 0);
    while records < RECORDS {
        match parse(rest, trust.layout) {
            Ok((record, used)) => {
                odd += u32::from(!is_plausible(&record, trust));
                if odd > ODD_MAX || (records == 0 && odd > 0) {
                    return None;
                }
                records += 1;
                quality += u32::from(record.thread == trust.thread);
                rest = rest.get(used..).unwrap_or_default();
            }
            Err(_) => {
                let ends_well = rest.is_empty() || (records > 1 && is_cut_record(rest, trust.layout));
                return (is_whole && records > 0 && odd == 0 && ends_well).then_some(quality);
            }
        }
    }
    Some(quality)
}

/// True when the rest of the data can be the start of a record.
fn is_cut_record(rest: &[u8], layout: Layout) -> bool {
    let is_short = rest.len() < layout.add_bytes() + NAME_BYTES_MAX;
    is_short && matches!(parse(rest, layout), Err(crate::Need::More(need)) if need < (NAME_BYTES_MAX + 29) as u64)
}

fn is_plausible(record: &Record<'_>, trust: Trust) -> bool {
    let has_address = record.address >= 0x1000 || (record.address == 0 && record.body == Body::Remove);
    let is_possible = trust.layout.width == Width::Four || is_canonical(record.address);
    let has_thread = record.thread <= u64::from(u32::MAX) || record.thread == trust.thread;
    has_address
        && is_possible
        && has_thread
        && match record.body {
            Body::Access { size } => is_usual_size(size),
            Body::Add { elemsize, elemcount, name } => {
                let has_name = !name.is_empty() && name.len() < NAME_BYTES_MAX;
                !record.tag.has_flags() && elemsize < 1 << 28 && elemcount < 1 << 28 && has_name
            }
            Body::Remove => !record.tag.has_flags(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Layout;

    fn accesses(layout: Layout, count: u64, base: u64, thread: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 0..count {
            bytes.push(u8::from(n % 3 == 0));
            match layout.width {
                Width::Eight => bytes.extend(layout.endian.put_u64(base + n * 4)),
                Width::Four => bytes.extend(layout.endian.put_u32(u32::try_from(base + n * 4).unwrap())),
            }
            bytes.push(4);
            bytes.extend(layout.endian.put_u64(thread));
        }
        bytes
    }

    #[test]
    fn records_resume_at_the_true_boundary_in_every_layout() {
        for layout in Layout::ALL {
            let base = if layout.width == Width::Eight { 0x5555_dead_b000 } else { 0x0804_9a10 };
            for thread in [0, 1, 77] {
                let mut bytes = accesses(layout, 40, base, thread);
                bytes[0] = 0x3f;
                let stride = layout.access_bytes();
                assert_eq!(find(&bytes, 1, true, Trust { layout, thread }), Found::At(stride), "{layout:?} {thread}");
            }
        }
    }

    #[test]
    fn zeros_and_rubbish_are_no_records() {
        let trust = Trust { layout: Layout::default(), thread: 0 };
        assert_eq!(find(&[0; 500], 0, true, trust), Found::NotBefore(500));
        assert_eq!(find(&[0xff; 500], 0, true, trust), Found::NotBefore(500));
        assert_eq!(find(&[], 0, true, trust), Found::NotBefore(0));
    }

    #[test]
    fn without_the_end_in_sight_only_what_can_be_judged_is_judged() {
        let trust = Trust { layout: Layout::default(), thread: 0 };
        let window = vec![0xff; WINDOW_BYTES];
        let Found::NotBefore(at) = find(&window, 0, false, trust) else { panic!("rubbish") };
        assert!(at > 0 && at + LOOK_BYTES + 18 >= WINDOW_BYTES);
    }

    #[test]
    fn one_last_record_that_ends_with_the_data_is_found() {
        let layout = Layout::default();
        let mut bytes = vec![0xff; 18];
        bytes.extend(accesses(layout, 1, 0x5555_dead_b008, 0));
        assert_eq!(find(&bytes, 1, true, Trust { layout, thread: 0 }), Found::At(18));
    }
}
