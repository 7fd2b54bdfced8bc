//! Counting records: by thread, for all configurations; and by the level that served them, for each.

use anytrace_core::access::{Access, AccessKind, ThreadNumber};

use super::attribution::Attribution;
use super::config::Config;
use super::cores::Cores;
use super::results::{ConfigResults, Tally, ThreadResults};

/// Reads and writes of each thread.
#[derive(Debug, Default)]
pub(super) struct Threads {
    of: Vec<(Option<u64>, [u64; 2])>,
    pub(super) zero_size: u64,
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
        let Some(first) = batch.first() else { return 0 };
        let (mut any, mut all, mut kinds, mut writes, mut least) = (0, first.thread, 0, 0, u16::MAX);
        for access in batch {
            (any, all) = (any | access.thread, all & access.thread);
            // Where there are no fetches, their sum is the number of writes.
            (kinds, writes) = (kinds | access.kind as u8, writes + access.kind as u64);
            least = least.min(access.bytes);
        }
        if any == all && kinds < AccessKind::Fetch as u8 && least > 0 {
            // Nearly always.
            self.note(first.thread, batch.len() as u64 - writes, writes);
            return 0;
        }
        batch.iter().map(|access| self.count_one(access, with_fetches)).sum()
    }

    fn count_one(&mut self, access: &Access, with_fetches: bool) -> u64 {
        if access.kind == AccessKind::Fetch && !with_fetches {
            return 1;
        }
        match (access.bytes, access.is_write()) {
            (0, _) => self.zero_size += 1,
            (_, true) => self.note(access.thread, 0, 1),
            (_, false) => self.note(access.thread, 1, 0),
        }
        0
    }

    #[inline]
    pub(super) fn note(&mut self, thread: ThreadNumber, reads: u64, writes: u64) {
        if let Some((_, counts)) = self.of.get_mut(thread as usize) {
            counts[0] += reads;
            counts[1] += writes;
        }
    }

    /// The only thread, if there is just one.
    pub(super) fn only(&self) -> Option<ThreadNumber> {
        (self.of.len() == 1).then_some(0)
    }

    /// Reads and writes of all threads.
    pub(super) fn totals(&self) -> [u64; 2] {
        self.of.iter().fold([0; 2], |sum, (_, counts)| [sum[0] + counts[0], sum[1] + counts[1]])
    }
}

/// Records of one configuration that the first level did not serve fully, by thread and by field.
#[derive(Debug, Clone)]
pub(super) struct Gain {
    /// Levels: there are as many servers beyond the first level, memory being the last.
    levels: usize,
    threads: Vec<u64>,
    fields: Vec<u64>,
}

impl Gain {
    pub(super) fn new(config: &Config) -> Self {
        Self { levels: config.levels.len().max(1), threads: Vec::new(), fields: Vec::new() }
    }

    /// Counts a record that was served from beyond the first level.
    #[inline]
    pub(super) fn note(&mut self, thread: ThreadNumber, field: Option<u32>, served: usize) {
        if served == 0 {
            return;
        }
        self.note_thread(thread, 1, served);
        self.note_field(field, 1, served);
    }

    /// Counts records of a thread that a server beyond the first level served; none is right, too.
    #[inline]
    pub(super) fn note_thread(&mut self, thread: ThreadNumber, records: u64, served: usize) {
        add(&mut self.threads, thread as usize * self.levels + served - 1, records);
    }

    /// Counts records of a field, if there is one, that a server beyond the first level served.
    #[inline]
    pub(super) fn note_field(&mut self, field: Option<u32>, records: u64, served: usize) {
        if let Some(field) = field {
            add(&mut self.fields, field as usize * self.levels + served - 1, records);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        add_all(&mut self.threads, &other.threads);
        add_all(&mut self.fields, &other.fields);
    }

    /// Records of a field that were served from beyond the first level, by server.
    pub(super) fn beyond(&self, field: u32) -> Vec<u64> {
        self.of(&self.fields, field as usize)
    }

    fn of(&self, list: &[u64], at: usize) -> Vec<u64> {
        let from = at * self.levels;
        (from..from + self.levels).map(|at| list.get(at).copied().unwrap_or(0)).collect()
    }
}

#[inline]
fn add(list: &mut Vec<u64>, at: usize, more: u64) {
    match list.get_mut(at) {
        Some(count) => *count += more,
        None => begin(list, at, more),
    }
}

/// The first time for a number.
#[cold]
fn begin(list: &mut Vec<u64>, at: usize, first: u64) {
    list.resize((at + 1).next_power_of_two(), 0);
    if let Some(count) = list.get_mut(at) {
        *count = first;
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

    /// Adds the results that are counted by record.
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
        self.types = typed.map(|attribution| attribution.types(&|field| gain.beyond(field)));
    }
}
