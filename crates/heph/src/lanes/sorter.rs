//! Sorts any number of events in bounded memory: chunks are sorted in memory, written as runs on disk, and merged.

use anytrace_core::Error;
use anytrace_core::runs::Runs;

use super::chunk::Chunk;
use super::event::{Sorted, StoredEvent};

/// Sorts events.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    chunk: Chunk,
    runs: Runs,
}

impl Sorter {
    /// Adds an event with its bytes: description, attributes, nesting.
    #[inline]
    pub(super) fn push(&mut self, event: StoredEvent, bytes: [&[u8]; 3]) -> Result<(), Error> {
        self.chunk.push(event, bytes);
        if self.chunk.is_full() { self.spill() } else { Ok(()) }
    }

    /// Visits all events in order.
    pub(crate) fn each(mut self, visit: &mut impl FnMut(&Sorted<'_>) -> Result<(), Error>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.chunk.sort();
            return self.chunk.sorted().try_for_each(|(event, bytes)| visit(&event.with(bytes)));
        }
        if !self.chunk.is_empty() {
            self.spill()?;
        }
        self.chunk = Chunk::default();
        self.runs.each(StoredEvent::key, &mut |event, bytes| visit(&event.with(bytes)))
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.chunk.sort();
        self.runs.add(self.chunk.sorted(), StoredEvent::key)?;
        self.chunk.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than is read of a run at once.
    const LONG: usize = 200_000;

    /// Events with bytes, spread over lanes, in the order of a linear congruential sequence.
    fn events(count: u64) -> Vec<(StoredEvent, Vec<u8>)> {
        (0..count)
            .map(|n| {
                let mixed = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 20;
                let start = mixed % 1000;
                let event = StoredEvent {
                    stream: (mixed >> 12) as u32 % 3,
                    home: (mixed >> 12) as u32 % 3,
                    lane: (mixed >> 16) % 5,
                    substream: (mixed >> 16) % 5,
                    start,
                    end: start + (mixed >> 24) % 7,
                    order: n / 3,
                    seq: n,
                    name: n as u32,
                    ..StoredEvent::BEFORE
                };
                (event, vec![n as u8; (mixed % 4) as usize])
            })
            .collect()
    }

    type Row = (u32, u64, u64, u64, u64, Vec<u8>);

    fn by_sorter(events: &[(StoredEvent, Vec<u8>)], spill_every: usize) -> Vec<Row> {
        let mut sorter = Sorter::default();
        for (n, (event, bytes)) in events.iter().enumerate() {
            sorter.push(*event, [bytes, &[], &[]]).unwrap();
            if (n + 1) % spill_every == 0 {
                sorter.spill().unwrap();
            }
        }
        let mut found = Vec::new();
        let mut keep = |e: &Sorted<'_>| {
            found.push((e.stream, e.substream, e.start, e.end, e.seq, e.description.to_vec()));
            Ok(())
        };
        sorter.each(&mut keep).unwrap();
        found
    }

    #[test]
    fn any_number_of_runs_and_levels_gives_the_order_of_a_plain_sort() {
        let events = events(20_000);
        let mut plain = events.clone();
        plain.sort_by_key(|(event, _)| event.key());
        let expected: Vec<Row> =
            plain.into_iter().map(|(e, bytes)| (e.stream, e.substream, e.start, e.end, e.seq, bytes)).collect();
        // The last one makes more than 64 times 64 runs: three levels.
        for spill_every in [usize::MAX, 7000, 100, 4] {
            assert_eq!(by_sorter(&events, spill_every), expected, "{spill_every}");
        }
    }

    #[test]
    fn an_event_longer_than_a_buffer_survives() {
        let long = vec![9; LONG];
        let events = [
            (StoredEvent { seq: 1, ..StoredEvent::BEFORE }, long.clone()),
            (StoredEvent { start: 5, end: 5, ..StoredEvent::BEFORE }, long),
        ];
        let found = by_sorter(&events, 1);
        assert_eq!(found.iter().map(|row| row.5.len()).collect::<Vec<_>>(), [LONG; 2]);
    }
}
