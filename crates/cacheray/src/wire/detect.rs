//! Determines the layout of a trace: byte order and pointer width, by scoring its first records.
//!
//! The format has no magic. Each of the four layouts reads the first [`RECORDS_MAX`] records; every record scores by
//! how plausible its fields are (page of the format, section 1.3). A layout that reaches an unknown tag is rejected;
//! the best average of the others wins. When all are rejected, the one that read furthest with plausible records wins.
//! Ties go to 64-bit little-endian.

use std::cmp::Ordering;

use anytrace_core::{Confidence, Head};

use crate::wire::parse::{Need, parse_record};
use crate::wire::record::{Body, Kind, Layout, Record, Tag, Width, is_canonical, is_usual_size};

/// How many records are scored; the rest of the head only has to frame.
const RECORDS_MAX: u32 = 2048;

/// A longer type name rules a layout out.
const NAME_BYTES_MAX: u64 = 1 << 20;

/// The result of reading a head in one layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trial {
    layout: Layout,
    records: u32,
    score: i32,
    /// Adjacent records whose addresses share their upper half.
    neighbors: u32,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At the end of the data, or with more to follow.
    Complete,
    /// The data end inside a record.
    Cut,
    /// An unknown tag or an impossible length.
    Rejected,
}

impl Trial {
    fn run(head: &Head<'_>, layout: Layout) -> Self {
        let mut trial = Self { layout, records: 0, score: 0, neighbors: 0, end: End::Complete };
        let mut rest = head.bytes;
        let mut last_high = None;
        while !rest.is_empty() {
            match parse_record(rest, layout) {
                Ok((Record { body: Body::Add { name, .. }, .. }, _)) if name.len() as u64 > NAME_BYTES_MAX => {
                    trial.end = End::Rejected;
                    break;
                }
                Ok((record, used)) => {
                    if trial.records < RECORDS_MAX {
                        // Half of the address's bits: a byte is eight, so four for each byte.
                        let high = record.address >> (layout.width.bytes() * 4);
                        trial.count(&record, last_high == Some(high));
                        last_high = Some(high);
                    }
                    // Records beyond those that are scored must still frame: a wrong layout stumbles sooner or later.
                    rest = rest.get(used..).unwrap_or_default();
                }
                Err(need) => {
                    trial.end = end_of(need, head.is_complete(), layout);
                    break;
                }
            }
        }
        trial
    }

    fn count(&mut self, record: &Record<'_>, is_neighbor: bool) {
        self.score += score(record, self.layout.width);
        self.records += 1;
        self.neighbors += u32::from(is_neighbor);
    }

    /// Compares average scores as fractions, exactly; no records average to 0.
    fn compare_average(&self, other: &Self) -> Ordering {
        let ours = i64::from(self.score) * i64::from(other.records.max(1));
        let theirs = i64::from(other.score) * i64::from(self.records.max(1));
        ours.cmp(&theirs)
    }

    fn average_at_least(&self, tenths: i32) -> bool {
        self.records > 0 && i64::from(self.score) * 10 >= i64::from(tenths) * i64::from(self.records)
    }
}

fn end_of(need: Need, is_complete: bool, layout: Layout) -> End {
    match need {
        Need::Bad(_) => End::Rejected,
        Need::More(bytes) if bytes > NAME_BYTES_MAX + layout.add_bytes() as u64 => End::Rejected,
        Need::More(_) if is_complete => End::Cut,
        Need::More(_) => End::Complete,
    }
}

/// How plausible one record is.
fn score(record: &Record<'_>, width: Width) -> i32 {
    let mut score = 0;
    if width == Width::Eight {
        score += if is_canonical(record.address) { 1 } else { -2 };
    }
    score += i32::from(record.address & 0xfff != 0);
    if record.address == 0 && record.kind() != Kind::RttaRemove {
        score -= 1;
    }
    score += i32::from(record.thread != 0 && record.thread <= u64::from(u32::MAX));
    match record.body {
        Body::Access { size } => score += if is_usual_size(size) { 1 } else { -2 },
        Body::Add { elemsize, elemcount, name } => {
            let is_plausible = elemsize < 1 << 28 && elemcount < 1 << 28 && (1..4096).contains(&name.len());
            score += if is_plausible { 2 } else { -2 };
        }
        Body::Remove => {}
    }
    score
}

/// The best of the four layouts.
fn best(head: &Head<'_>) -> Trial {
    let [first, rest @ ..] = Layout::ALL.map(|layout| Trial::run(head, layout));
    rest.into_iter().fold(first, |best, trial| if is_better(&trial, &best) { trial } else { best })
}

/// True when `new` beats `old`; `old` precedes it in [`Layout::ALL`] and keeps ties.
fn is_better(new: &Trial, old: &Trial) -> bool {
    if is_beyond_doubt(new, old) || is_beyond_doubt(old, new) {
        return is_beyond_doubt(new, old);
    }
    let is_rejected = |trial: &Trial| trial.end == End::Rejected;
    // Among rejected layouts the one that read further with plausible records wins, else the better average.
    let by_score = match (is_rejected(new), is_rejected(old)) {
        (true, true) => new.score.cmp(&old.score),
        _ => new.compare_average(old),
    };
    // Equal scores of the two byte orders: addresses of neighbors are near each other in the right one.
    let by_neighbors = || match new.layout.width == old.layout.width {
        true => new.neighbors.cmp(&old.neighbors),
        false => Ordering::Equal,
    };
    by_score.then_with(by_neighbors).is_gt()
}

/// True when the way reading ended decides for `a`, whatever the averages: a layout that reads to the end beats one
/// that does not, unless its fields are nonsense and those of the other are not.
fn is_beyond_doubt(a: &Trial, b: &Trial) -> bool {
    let rank = |trial: &Trial| match trial.end {
        End::Rejected => 0,
        End::Cut => 1,
        // Less than one record proves nothing.
        End::Complete => 2 * u8::from(trial.records > 0),
    };
    let is_nonsense = !a.average_at_least(0) && a.records > 0;
    let is_sound = match b.end {
        End::Rejected => b.records >= 16 && b.average_at_least(15),
        _ => b.records == 0 || b.average_at_least(10),
    };
    rank(a) > rank(b) && !(is_nonsense && is_sound)
}

/// The layout of a trace, by its head; parts that are given are not guessed.
pub(crate) fn layout(head: &Head<'_>, is_allowed: impl Fn(Layout) -> bool) -> Layout {
    let mut trials = Layout::ALL.into_iter().filter(|layout| is_allowed(*layout)).map(|l| Trial::run(head, l));
    let Some(first) = trials.next() else { return Layout::default() };
    trials.fold(first, |best, trial| if is_better(&trial, &best) { trial } else { best }).layout
}

/// The layout in which an entire small trace is opened, if it would not read to its end in it.
pub(crate) fn misread(bytes: &[u8]) -> Option<Layout> {
    let head = Head { bytes, total_bytes: Some(bytes.len() as u64), name: "", layers: &[] };
    let best = best(&head);
    (best.end != End::Complete).then_some(best.layout)
}

/// How sure the scores are that a file is a cacheray trace at all; never certain, because there is no magic number.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let Some(&first) = head.bytes.first() else { return Confidence::No };
    // A record holds bytes that no text has.
    if Tag(first).kind().is_none() || is_text(head.bytes) {
        return Confidence::No;
    }
    let best = best(head);
    let is_framed = best.end == End::Complete && best.records > 0;
    match () {
        () if best.records >= 16 && best.average_at_least(15) => Confidence::Likely,
        () if is_framed && best.records >= 2 && best.average_at_least(15) => Confidence::Likely,
        // That many valid tags in a row are not accidental, even where half of the fields are nonsense.
        () if best.end != End::Rejected && best.records >= 256 && best.average_at_least(0) => Confidence::Likely,
        () if best.records >= 8 && best.average_at_least(10) => Confidence::Maybe,
        // Odd sizes or zero padding score badly, but frame to the end.
        () if best.end == End::Complete => Confidence::Maybe,
        () if best.end == End::Cut && (best.score >= 0 || head.bytes.iter().all(|&b| b == 0)) => Confidence::Maybe,
        () => Confidence::No,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b.is_ascii_graphic() || b.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(bytes: &[u8]) -> Head<'_> {
        Head { bytes, total_bytes: Some(bytes.len() as u64), name: "x", layers: &[] }
    }

    fn read(address: u64, layout: Layout) -> Vec<u8> {
        let mut bytes = vec![0];
        match layout.width {
            Width::Eight => bytes.extend(layout.endian.put_u64(address)),
            Width::Four => bytes.extend(layout.endian.put_u32(u32::try_from(address).unwrap())),
        }
        bytes.push(4);
        bytes.extend(layout.endian.put_u64(0));
        bytes
    }

    #[test]
    fn each_layout_is_found_from_accesses_alone() {
        for wanted in Layout::ALL {
            let base = if wanted.width == Width::Eight { 0x7ffd_1234_5670 } else { 0x0804_9a10 };
            let bytes: Vec<u8> = (0..40).flat_map(|n| read(base + n * 4, wanted)).collect();
            assert_eq!(layout(&head(&bytes), |_| true), wanted);
            assert_eq!(probe(&head(&bytes)), Confidence::Likely);
        }
    }

    #[test]
    fn zeros_are_a_tie_and_go_to_64_bit_little() {
        assert_eq!(layout(&head(&[0; 4000]), |_| true), Layout::ALL[0]);
        assert_eq!(layout(&head(&[]), |_| true), Layout::ALL[0]);
        assert_eq!(probe(&head(&[0; 4000])), Confidence::Maybe);
    }

    #[test]
    fn text_is_not_a_trace() {
        assert_eq!(probe(&head(b"this is not a trace at all\n")), Confidence::No);
        assert_eq!(probe(&head(&[b'C'; 4000])), Confidence::No);
        assert_eq!(probe(&head(b"Address,Size,Thread\n0x1000,8,0\n0x1008,8,0\n")), Confidence::No);
        assert_eq!(probe(&head(b"")), Confidence::No);
    }

    #[test]
    fn a_bad_tag_late_in_the_file_does_not_change_the_layout() {
        for wanted in Layout::ALL {
            let base = if wanted.width == Width::Eight { 0x7ffd_1234_5670 } else { 0x0804_9a10 };
            let mut bytes: Vec<u8> = (0..40).flat_map(|n| read(base + n * 4, wanted)).collect();
            bytes.extend([0xff; 30]);
            assert_eq!(layout(&head(&bytes), |_| true), wanted);
        }
    }
}
