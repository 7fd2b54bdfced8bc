//! `info` on several threads, where the trace is in memory or mapped.
//!
//! The rest of the trace is cut into parts at places that look like record boundaries. A part counts
//! only when the one before it, read record by record, ends exactly where it starts: then the boundary
//! was real and the sum is what one thread would have found. At the first part that does not fit, or is
//! damaged, the plain reader takes over, so results never depend on the number of threads.

use anytrace_core::{Error, Limits, Passed, Place};

use crate::verbs::info::Counts;
use crate::wire::parse::parse_record;
use crate::wire::reader::{Reader, zeros_after};
use crate::wire::record::Layout;
use crate::wire::resync::{self, Resume, Trust};

/// Largest and smallest part of a thread.
const PART_BYTES: std::ops::Range<usize> = 2 << 20..32 << 20;

/// Most accesses counted before the following record is examined.
const WINDOW_BYTES: usize = 1 << 20;

/// Counts as much as can be counted in parallel, and moves the reader past it.
pub(crate) fn count(reader: &mut Reader, counts: &mut Counts, threads: usize, limits: Limits) -> Result<(), Error> {
    count_parts(reader, counts, threads.min(64), limits, PART_BYTES)
}

fn count_parts(
    reader: &mut Reader,
    counts: &mut Counts,
    threads: usize,
    limits: Limits,
    part_bytes: std::ops::Range<usize>,
) -> Result<(), Error> {
    let trust = reader.trust();
    reader.bring_at_hand();
    // The last good part is not counted until another follows: the reader starts with it, and so knows the records
    // before damage.
    let mut pending: Option<(usize, Part)> = None;
    while let Some(all) = reader.rest_in_memory() {
        let start = pending.as_ref().map_or(0, |(length, _)| *length);
        let rest = all.get(start..).unwrap_or_default();
        // The end of the trace is left to the reader, which handles the ways traces end.
        let usable = rest.len().saturating_sub(part_bytes.start.max(resync::WINDOW_BYTES));
        let bytes = (usable / threads.max(1)).min(part_bytes.end);
        let Some(bounds) = (bytes >= part_bytes.start).then(|| bounds(rest, bytes, threads, &trust)).flatten() else {
            return Ok(());
        };
        let parts: Vec<&[u8]> = bounds.windows(2).filter_map(|pair| rest.get(*pair.first()?..*pair.last()?)).collect();
        let counted = count_all(&parts, trust.layout, limits).into_iter().map_while(|part| part);
        let good: Vec<_> = parts.iter().map(|part| part.len()).zip(counted).collect();
        let is_complete = good.len() == parts.len();
        let mut passed = Passed::default();
        for next in good {
            // A part is counted when the one after it is known to be good.
            let Some((length, part)) = pending.replace(next) else { continue };
            let bytes = usize::try_from(passed.bytes).ok().and_then(|at| all.get(at..)).unwrap_or_default();
            // Beyond the limit on threads the order of records decides which are counted together: the reader must
            // count on.
            if !counts.can_absorb(&part.counts) {
                return reader.pass(passed);
            }
            passed.records += part.records;
            passed.bytes += length as u64;
            counts.absorb(part.counts);
            for at in part.rtta {
                if let Some((record, _)) = bytes.get(at..).and_then(|rest| parse_record(rest, trust.layout).ok()) {
                    counts.count_rtta(&record);
                }
            }
        }
        reader.pass(passed)?;
        if !is_complete {
            return Ok(());
        }
    }
    Ok(())
}

/// Where parts of about this many bytes begin, and where the last one ends.
fn bounds(rest: &[u8], bytes: usize, threads: usize, trust: &Trust) -> Option<Vec<usize>> {
    let mut bounds = vec![0];
    for n in 1..=threads {
        let at = n * bytes;
        let window = rest.get(at..at + resync::WINDOW_BYTES)?;
        let Resume::At(found) = resync::find(window, 0, false, trust) else { return None };
        bounds.push(at + found);
    }
    bounds.is_sorted().then_some(bounds)
}

fn count_all(parts: &[&[u8]], layout: Layout, limits: Limits) -> Vec<Option<Part>> {
    std::thread::scope(|scope| {
        let (first, others) = parts.split_first().map_or((None, parts), |(first, others)| (Some(first), others));
        let start = |bytes| {
            let count = move || Part::count(bytes, layout, limits);
            std::thread::Builder::new().spawn_scoped(scope, count).ok()
        };
        // All threads are started before the first part is counted here.
        let others: Vec<_> = others.iter().map(|bytes| start(bytes)).collect();
        let first = first.map(|bytes| Part::count(bytes, layout, limits));
        first.into_iter().chain(others.into_iter().map(|thread| thread?.join().ok().flatten())).collect()
    })
}

/// What one thread counted.
struct Part {
    counts: Counts,
    records: u64,
    /// Offsets of the RTTA records: their order matters, so they are counted later.
    rtta: Vec<usize>,
}

impl Part {
    /// Reads a part from its first to its last byte; `None` when anything is out of the ordinary.
    fn count(bytes: &[u8], layout: Layout, limits: Limits) -> Option<Self> {
        let mut part = Self { counts: Counts::new(layout, limits), records: 0, rtta: Vec::new() };
        let stride = layout.access_bytes();
        let mut at = 0;
        let mut last_run: &[u8] = &[];
        while at < bytes.len() {
            let rest = bytes.get(at..)?;
            let window = rest.get(..WINDOW_BYTES).unwrap_or(rest);
            let used = part.counts.count_accesses(window);
            if used > 0 {
                part.records += (used / stride) as u64;
                last_run = window.get(..used)?;
                at += used;
                continue;
            }
            let (record, used) = parse_record(rest, layout).ok()?;
            // Such records need a diagnostic, which only the reader makes.
            if record.tag.has_flags() || used as u64 > limits.record_bytes_max {
                return None;
            }
            part.counts.count_thread(record.thread);
            part.rtta.push(at);
            part.records += 1;
            last_run = &[];
            at += used;
        }
        // Zeros at a part's end may belong to a zero tail.
        let has_zeros = zeros_after(last_run, stride, Place::default(), None).is_some();
        (at == bytes.len() && !has_zeros).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anytrace_core::{Collect, Input, OpenOptions};

    /// A trace with regions, several threads and now and then an odd access.
    fn trace(records: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 0..records {
            let address: u64 = 0x5555_5555_8000 + n % 5000 * 8;
            if n % 97 == 5 {
                bytes.push(2);
                bytes.extend(address.to_le_bytes());
                bytes.extend((n % 3).to_le_bytes());
                bytes.extend([8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
                bytes.extend([b'T', b'a' + (n % 20) as u8, b'x']);
            } else if n % 97 == 60 {
                bytes.push(3);
                bytes.extend((address - 55 * 8).to_le_bytes());
                bytes.extend((n % 3).to_le_bytes());
            } else {
                bytes.push([0, 1, 0x40, 0x81][(n % 4) as usize]);
                bytes.extend((address + n % 7 / 6).to_le_bytes());
                bytes.push([8, 4, 2, 1][(n % 4) as usize]);
                bytes.extend((n / 1000 % 3).to_le_bytes());
            }
        }
        bytes
    }

    /// The counts, by parts of 150 kB or without, and how many bytes were counted in parallel.
    fn counted(bytes: &[u8], threads: usize) -> (String, u64) {
        let limits = Limits::default();
        let input = Input::from_bytes("x", bytes.to_vec());
        let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
        let mut counts = Counts::new(*reader.layout(), limits);
        if threads > 1 {
            count_parts(&mut reader, &mut counts, threads, limits, 150_000..400_000).unwrap();
        }
        let parallel = (bytes.len() - reader.rest_in_memory().unwrap().len()) as u64;
        let mut sink = Collect::default();
        let passed = reader.walk(&mut counts, &mut sink).unwrap();
        (format!("{:?} {passed:?} {:?}", counts.finish(), sink.0), parallel)
    }

    #[test]
    fn any_number_of_threads_counts_the_same() {
        let bytes = trace(100_000);
        let (alone, _) = counted(&bytes, 1);
        for threads in [2, 3, 5] {
            let (together, parallel) = counted(&bytes, threads);
            assert_eq!(together, alone);
            assert!(parallel > 1_000_000, "{parallel} of {} bytes by {threads} threads", bytes.len());
        }
    }

    #[test]
    fn damage_anywhere_is_left_to_the_reader_with_the_same_result() {
        let good = trace(60_000);
        for at in [0, 1000, 300_000, 520_001, 1_000_000] {
            for rubbish in [&[0xff; 9][..], &[0; 18 * 30], &[2; 40], &[0; 1000]] {
                let mut bytes = good.clone();
                let at = at.min(bytes.len());
                bytes.splice(at..at, rubbish.iter().copied());
                assert_eq!(counted(&bytes, 2).0, counted(&bytes, 1).0, "{} bytes at {at}", rubbish.len());
            }
        }
        let mut tail = good.clone();
        tail.extend(vec![0; 900_000]);
        assert_eq!(counted(&tail, 3).0, counted(&tail, 1).0);
    }
}
