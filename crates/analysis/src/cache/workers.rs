//! Units on several threads: each processes all chunks of the trace in order, for its own units.
//!
//! Where all shards of a configuration work by stages, their ops are gathered once, on the thread that reads the trace;
//! other units receive the accesses and select their own.

mod chunk;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use anytrace_core::Error;
use anytrace_core::access::{Gatherer, ThreadNumber};

use super::batch::Batch;
use super::config::Config;
use super::cores::Cores;
use super::hierarchy::has_stages;
use super::tally::Gain;
use super::unit::{Partial, Unit, gatherer};
use chunk::Chunk;

/// Accesses of a chunk: enough that handing it over costs nothing, few enough for a second-level cache.
const CHUNK_ACCESSES: usize = 16 * 1024;

/// Chunks queued for a thread: work for longer than a thread waits for a processor, where there are fewer processors
/// than threads.
const WAITING: usize = 16;

/// Records of a chunk that a unit of a configuration served in part.
type Parts = Vec<(usize, Vec<Partial>)>;

#[derive(Debug)]
struct Worker {
    chunks: SyncSender<Arc<Chunk>>,
    parts: Receiver<Parts>,
    thread: JoinHandle<Vec<Unit>>,
}

/// The gatherer for the shards of a configuration.
#[derive(Debug)]
struct Shared {
    config_at: usize,
    shards: u64,
    gatherer: Gatherer,
    config: Config,
}

/// The threads.
#[derive(Debug)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    shared: Vec<Shared>,
    /// True when a unit needs all accesses, whatever is gathered.
    has_others: bool,
    next: Chunk,
    /// Chunks handed out whose partial results were not combined yet.
    handed_out: VecDeque<Arc<Chunk>>,
    gains: Vec<(usize, Gain)>,
}

impl Workers {
    /// Starts as many threads as there is work for.
    pub(super) fn start(units: Vec<Unit>, configs: &[Config], threads: usize) -> Self {
        let threads = threads.min(units.len());
        let mut shares: Vec<Vec<Unit>> = (0..threads).map(|_| Vec::new()).collect();
        let gains = units.iter().map(|unit| (unit.config_at(), unit.blank_gain())).collect();
        let is_shared = |unit: &Unit| unit.shard().1 > 1;
        let has_others = !units.iter().all(is_shared);
        let first_shards = units.iter().filter(|unit| is_shared(unit) && unit.shard().0 == 0);
        let shared = first_shards.filter_map(|unit| {
            let (config, shards) = (configs.get(unit.config_at())?.clone(), unit.shard().1);
            Some(Shared { config_at: unit.config_at(), shards, gatherer: gatherer(&config, shards), config })
        });
        let shared = shared.collect();
        for (at, unit) in units.into_iter().enumerate() {
            if let Some(share) = shares.get_mut(at % threads.max(1)) {
                share.push(unit);
            }
        }
        let workers = shares.into_iter().map(Worker::start).collect();
        Self { workers, shared, has_others, next: Chunk::default(), handed_out: VecDeque::new(), gains }
    }

    /// Takes accesses; hands a chunk out when it is full.
    pub(super) fn take(&mut self, batch: Batch<'_>, cores: &Arc<Cores>) -> Result<(), Error> {
        let mut is_complete = self.has_others || batch.only.is_none();
        for shared in &mut self.shared {
            if has_stages(&shared.config, cores.count()) {
                let of = (shared.config_at, shared.shards);
                self.next.gather(of, &mut shared.gatherer, batch);
            } else {
                is_complete = true;
            }
        }
        self.next.count(batch, is_complete);
        if self.next.len() >= CHUNK_ACCESSES {
            self.flush(cores)?;
        }
        Ok(())
    }

    /// The gatherer for all the work, where that is one configuration's shards that work by stages.
    pub(super) fn gatherer(&mut self, cores: &Cores) -> Option<&mut Gatherer> {
        match self.shared.as_mut_slice() {
            [shared] if !self.has_others && has_stages(&shared.config, cores.count()) => Some(&mut shared.gatherer),
            _ => None,
        }
    }

    /// Takes the gathered accesses of a thread, the only one there is. Returns their reads and writes.
    pub(super) fn take_gathered(&mut self, only: ThreadNumber, cores: &Arc<Cores>) -> Result<[u64; 2], Error> {
        let Some(Shared { config_at, shards, gatherer, .. }) = self.shared.first() else { return Ok([0; 2]) };
        self.next.take_gathered((*config_at, *shards), gatherer, only);
        let totals = gatherer.totals();
        if self.next.len() >= CHUNK_ACCESSES {
            self.flush(cores)?;
        }
        Ok(totals)
    }

    /// Hands out the accesses taken so far.
    pub(super) fn flush(&mut self, cores: &Arc<Cores>) -> Result<(), Error> {
        if self.next.len() == 0 {
            return Ok(());
        }
        let used = if self.handed_out.len() >= WAITING { self.put_together()? } else { Chunk::default() };
        let mut chunk = std::mem::replace(&mut self.next, used);
        chunk.set_cores(cores);
        let chunk = Arc::new(chunk);
        for worker in &self.workers {
            worker.chunks.send(Arc::clone(&chunk)).map_err(|_| ended())?;
        }
        self.handed_out.push_back(chunk);
        Ok(())
    }

    /// Waits for the end; returns the units, and adds to each configuration what its shards served together.
    pub(super) fn finish(mut self, gains: &mut [Gain], cores: &Arc<Cores>) -> Result<Vec<Unit>, Error> {
        self.flush(cores)?;
        while !self.handed_out.is_empty() {
            self.put_together()?;
        }
        for (config_at, gain) in &self.gains {
            if let Some(sum) = gains.get_mut(*config_at) {
                sum.add(gain);
            }
        }
        let mut units = Vec::new();
        for worker in self.workers {
            drop(worker.chunks);
            match worker.thread.join() {
                Ok(more) => units.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(units)
    }

    /// Waits until the oldest chunk was processed, and counts its records that several shards served; returns the
    /// chunk, emptied.
    fn put_together(&mut self) -> Result<Chunk, Error> {
        let Some(chunk) = self.handed_out.pop_front() else { return Ok(Chunk::default()) };
        let mut parts: Vec<(usize, Partial)> = Vec::new();
        for worker in &self.workers {
            for (config_at, part) in worker.parts.recv().map_err(|_| ended())? {
                parts.extend(part.into_iter().map(|part| (config_at, part)));
            }
        }
        parts.sort_unstable();
        // Of each record the last has the worst server.
        let records = parts.chunk_by(|a, b| (a.0, a.1.index) == (b.0, b.1.index)).filter_map(<[_]>::last);
        for (config_at, part) in records {
            if let Some((_, gain)) = self.gains.iter_mut().find(|(at, _)| at == config_at) {
                gain.note(part.thread, part.field, part.served);
            }
        }
        let mut chunk = Arc::into_inner(chunk).unwrap_or_default();
        chunk.clear();
        Ok(chunk)
    }
}

impl Worker {
    fn start(units: Vec<Unit>) -> Self {
        let (chunks, incoming) = sync_channel::<Arc<Chunk>>(WAITING);
        let (outgoing, parts) = channel();
        let thread = std::thread::spawn(move || work(units, &incoming, &outgoing));
        Self { chunks, parts, thread }
    }
}

fn work(mut units: Vec<Unit>, chunks: &Receiver<Arc<Chunk>>, parts: &Sender<Parts>) -> Vec<Unit> {
    while let Ok(chunk) = chunks.recv() {
        let mut found = Vec::new();
        for unit in &mut units {
            let mut partial = Vec::new();
            chunk.run(unit, &mut partial);
            if !partial.is_empty() {
                found.push((unit.config_at(), partial));
            }
        }
        // The chunk is dropped before its end is reported, so that its memory can be used again.
        drop(chunk);
        if parts.send(found).is_err() {
            break;
        }
    }
    units
}

/// A thread ended early: it panicked, which is reported when it is joined.
fn ended() -> Error {
    Error::unsupported("a thread of the simulation ended before its work was done")
}
