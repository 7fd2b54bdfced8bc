//! Process and thread numbers for outputs where each lane of spans is a thread.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::span::Track;

/// Replaces numbers that an output cannot express or that are taken; above those that systems use.
const OWN_NUMBERS: u32 = 2_000_000_000;

/// The process and thread number of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// True when they are not those of the trace.
    pub(crate) are_changed: bool,
}

/// Assigns each track a unique pair of numbers, below 2^31 as the consumers require.
///
/// The first lane of a thread keeps the trace's numbers. Further lanes, process 0 (unknown; to the consumers 0 is the
/// idle process) and numbers of 2^31 and more get others.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    processes: BTreeMap<u64, u32>,
    taken_processes: BTreeSet<u32>,
    taken: BTreeSet<u32>,
}

impl Numbering {
    /// Numbers of the next track.
    pub(crate) fn of(&mut self, track: &Track) -> Numbers {
        let process = match self.processes.get(&track.process) {
            Some(&process) => process,
            None => {
                let process = free(&mut self.taken_processes, track.process);
                self.processes.insert(track.process, process);
                process
            }
        };
        // A second lane asks for a number that is never available.
        let wanted = if track.lane == 0 { track.thread } else { u64::MAX };
        let thread = free(&mut self.taken, wanted);
        let are_changed = u64::from(thread) != track.thread || u64::from(process) != track.process;
        Numbers { process, thread, are_changed }
    }
}

/// The wanted number, or the first free one of our own where that is not available.
fn free(taken: &mut BTreeSet<u32>, wanted: u64) -> u32 {
    let number = match u32::try_from(wanted) {
        Ok(number) if number > 0 && number < OWN_NUMBERS && !taken.contains(&number) => number,
        _ => {
            let last = taken.range(OWN_NUMBERS..).next_back().copied();
            last.map_or(OWN_NUMBERS, |last| last.saturating_add(1))
        }
    };
    taken.insert(number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(process: u64, thread: u64, lane: u32) -> Track {
        Track { process, thread, lane, ..Track::default() }
    }

    #[test]
    fn first_lanes_keep_their_numbers_and_no_two_tracks_share_any() {
        let mut numbering = Numbering::default();
        let tracks = [(1, 2, 0), (1, 2, 1), (1, u64::MAX, 0), (3, 2, 0), (0, 0, 0), (u64::MAX, 9, 0), (0, 5, 0)];
        let numbers: Vec<_> = tracks.map(|(p, t, l)| numbering.of(&track(p, t, l))).into();
        assert_eq!(numbers[0], Numbers { process: 1, thread: 2, are_changed: false });
        assert!(numbers[1].process == 1 && numbers[1].are_changed);
        assert_eq!(numbers[4].process, numbers[6].process);
        let threads: BTreeSet<_> = numbers.iter().map(|n| n.thread).collect();
        assert_eq!(threads.len(), tracks.len());
        assert!(numbers.iter().all(|n| n.process > 0 && n.thread > 0 && n.thread < 1 << 31));
    }
}
