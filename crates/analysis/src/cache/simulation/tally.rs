//! Counting records: by thread, for all configurations; and by who served them, for each.

use anytrace_core::access::{Access, AccessKind, ThreadNumber};

use crate::cache::attribution::Attribution;
use crate::cache::config::Config;
use crate::cache::results::{ConfigResults, Tally, ThreadResults};
use crate::cache::simulation::{Batch, Cores};

/// Reads and writes of each thread.
#[derive(Debug, Default)]
pub(in crate::cache) struct Threads {
    of: Vec<(Option<u64>, [u64; 2])>,
    pub(in crate::cache) zero_size: u64,
}

impl Threads {
    pub(super) fn add(&mut self, number: ThreadNumber, id: Option<u64>) {
        let at = number as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, (None, [0; 2]));
        }
        if let Some((of, _)) = self.of.get_mut(at) {
            *of = id;
        }
    }

    /// Counts accesses; how many are fetches that are left out.
    pub(super) fn count(&mut self, batch: &[Access], with_fetches: bool) -> u64 {
        let mut left_out = 0;
        let mut rest = batch;
        while let Some(first) = rest.first() {
            let (mut all, mut writes, mut empty, mut fetches, mut empty_fetches) = (0, 0, 0, 0, 0);
            for access in rest {
                if access.thread != first.thread {
                    break;
                }
                let (is_empty, is_fetch) = (access.bytes == 0, access.kind == AccessKind::Fetch);
                all += 1;
                writes += u64::from(access.is_write() & !is_empty);
                empty += u64::from(is_empty);
                fetches += u64::from(is_fetch);
                empty_fetches += u64::from(is_empty & is_fetch);
            }
            if with_fetches {
                (fetches, empty_fetches) = (0, 0);
            }
            empty -= empty_fetches;
            left_out += fetches;
            self.zero_size += empty;
            if let Some((_, counts)) = self.of.get_mut(first.thread as usize) {
                counts[0] += all - writes - empty - fetches;
                counts[1] += writes;
            }
            rest = rest.get(all as usize..).unwrap_or_default();
        }
        left_out
    }

    /// Reads and writes of all threads.
    pub(super) fn totals(&self) -> [u64; 2] {
        self.of.iter().fold([0; 2], |sum, (_, counts)| [sum[0] + counts[0], sum[1] + counts[1]])
    }
}

/// Records of one configuration that the first level did not serve fully, by thread and by field.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Gain {
    /// Levels: there are as many servers beyond the first level, memory being the last.
    levels: usize,
    threads: Vec<u64>,
    fields: Vec<u64>,
}

impl Gain {
    pub(in crate::cache) fn new(config: &Config) -> Self {
        Self { levels: config.levels.len().max(1), threads: Vec::new(), fields: Vec::new() }
    }

    /// Counts a record that was served from beyond the first level.
    #[inline]
    pub(in crate::cache) fn note(&mut self, thread: ThreadNumber, field: Option<u32>, served: usize) {
        if served == 0 {
            return;
        }
        add(&mut self.threads, thread as usize * self.levels + served - 1, 1);
        if let Some(field) = field {
            add(&mut self.fields, field as usize * self.levels + served - 1, 1);
        }
    }

    /// Counts records of one thread and field, as the one with a number in a batch, that a server beyond the first level
    /// served; none of them is right, too.
    #[inline]
    pub(in crate::cache) fn note_many(&mut self, records: u64, batch: Batch<'_>, index: u32, served: usize) {
        let Some(access) = batch.accesses.get(index as usize) else { return };
        add(&mut self.threads, access.thread as usize * self.levels + served - 1, records);
        if let Some(field) = batch.fields.get(index as usize) {
            add(&mut self.fields, *field as usize * self.levels + served - 1, records);
        }
    }

    pub(in crate::cache) fn add(&mut self, other: &Self) {
        add_all(&mut self.threads, &other.threads);
        add_all(&mut self.fields, &other.fields);
    }

    fn of(&self, list: &[u64], at: usize) -> Vec<u64> {
        let from = at * self.levels;
        (from..from + self.levels).map(|at| list.get(at).copied().unwrap_or(0)).collect()
    }
}

#[inline]
fn add(list: &mut Vec<u64>, at: usize, more: u64) {
    if at >= list.len() {
        list.resize((at + 1).next_power_of_two(), 0);
    }
    if let Some(count) = list.get_mut(at) {
        *count += more;
    }
}

fn add_all(list: &mut Vec<u64>, more: &[u64]) {
    list.resize(list.len().max(more.len()), 0);
    list.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl ConfigResults {
    pub(super) fn empty(config: Config, threads: &Threads) -> Self {
        Self {
            config,
            line_accesses: 0,
            zero_size_records: threads.zero_size,
            served_by: Vec::new(),
            levels: Vec::new(),
            memory_reads: 0,
            memory_writes: 0,
            tlb: Vec::new(),
            coherence: None,
            types: None,
            threads: Vec::new(),
        }
    }

    /// Puts in what goes by records.
    pub(super) fn finish(&mut self, gain: &Gain, threads: &Threads, cores: &Cores, typed: Option<&Attribution>) {
        let mut beyond = vec![0; gain.levels];
        for (number, (id, [reads, writes])) in (0..).zip(&threads.of) {
            let served_beyond_first = gain.of(&gain.threads, number as usize);
            beyond.iter_mut().zip(&served_beyond_first).for_each(|(sum, more)| *sum += more);
            let total = Tally { reads: *reads, writes: *writes, served_beyond_first };
            self.threads.push(ThreadResults { id: *id, core: cores.of(number), total });
        }
        let first = threads.totals().iter().sum::<u64>() - beyond.iter().sum::<u64>();
        self.served_by = std::iter::once(first).chain(beyond).collect();
        self.types = typed.map(|attribution| attribution.types(&|field| gain.of(&gain.fields, field as usize)));
    }
}
