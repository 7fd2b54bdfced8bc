//! A chunk of work, handed to all threads at once.

use std::ops::Range;
use std::sync::Arc;

use anytrace_core::access::gather::{BLOCK_ACCESSES, Gathered, Gatherer, Op};
use anytrace_core::access::{Access, ThreadNumber};

use crate::cache::batch::{Batch, Record};
use crate::cache::cores::Cores;
use crate::cache::hierarchy::{Block, Owners};
use crate::cache::unit::{Partial, Unit};

/// Records of a trace that follow each other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Records in it.
    records: usize,
    /// The records; empty where no unit needs them.
    accesses: Vec<Access>,
    /// Their fields.
    fields: Vec<u32>,
    places: Vec<u64>,
    only: Option<ThreadNumber>,
    cores: Arc<Cores>,
    /// Configurations that were gathered for.
    gathered: Vec<usize>,
    /// The gathered ops, by number of the configuration and of its shard.
    shares: Vec<(usize, u64, Share)>,
}

/// What one shard has to do.
#[derive(Debug, Default)]
struct Share {
    pieces: Vec<Piece>,
    ops: Vec<Op>,
    indexes: Vec<u32>,
}

/// One step.
#[derive(Debug)]
enum Piece {
    /// Ops of a block, and the accesses that they are.
    Block { ops: Range<usize>, reads: u64, writes: u64 },
    /// A record of several lines, some of them another shard's.
    Lines(Record),
}

impl Share {
    fn push(&mut self, gathered: Gathered<'_>) {
        let Gathered { ops, indexes, reads, writes } = gathered;
        if reads + writes > 0 {
            let start = self.ops.len();
            self.ops.extend_from_slice(ops);
            self.indexes.extend_from_slice(indexes);
            self.pieces.push(Piece::Block { ops: start..self.ops.len(), reads, writes });
        }
    }
}

impl Chunk {
    /// Records in it.
    pub(super) fn len(&self) -> usize {
        self.records
    }

    /// The work for the shards of a configuration, empty at first.
    fn shares_of(&mut self, config_at: usize, shards: u64) -> &mut [(usize, u64, Share)] {
        let first = match self.shares.iter().position(|(of, ..)| *of == config_at) {
            Some(first) => first,
            None => {
                self.shares.extend((0..shards).map(|shard| (config_at, shard, Share::default())));
                self.shares.len() - shards as usize
            }
        };
        if !self.gathered.contains(&config_at) {
            self.gathered.push(config_at);
        }
        self.shares.get_mut(first..first + shards as usize).unwrap_or_default()
    }

    /// Gathers what the shards of a configuration are asked for, before the records are counted.
    pub(super) fn gather(&mut self, (config_at, shards): (usize, u64), gatherer: &mut Gatherer, batch: Batch<'_>) {
        let base = self.records;
        let shares = self.shares_of(config_at, shards);
        let mut from = 0;
        while from < batch.accesses.len() {
            let taken = batch.gather(gatherer, from, base);
            shares.iter_mut().for_each(|(_, shard, share)| share.push(gatherer.gathered(*shard)));
            from += taken;
            if taken < BLOCK_ACCESSES
                && let Some(record) = batch.record(from)
            {
                let odd = Record { index: record.index + base as u32, ..record };
                shares.iter_mut().for_each(|(.., share)| share.pieces.push(Piece::Lines(odd)));
                from += 1;
            }
        }
    }

    /// Takes the accesses of a thread, the only one there is, that a format gathered.
    pub(super) fn take_gathered(&mut self, (config_at, shards): (usize, u64), gatherer: &Gatherer, only: ThreadNumber) {
        let shares = self.shares_of(config_at, shards);
        shares.iter_mut().for_each(|(_, shard, share)| share.push(gatherer.gathered(*shard)));
        self.records += gatherer.totals().iter().sum::<u64>() as usize;
        self.only = Some(only);
    }

    /// Counts records, and keeps them where they are needed.
    pub(super) fn count(&mut self, batch: Batch<'_>, is_complete: bool) {
        self.records += batch.accesses.len();
        self.only = batch.only;
        self.fields.extend_from_slice(batch.fields);
        if is_complete {
            self.accesses.extend_from_slice(batch.accesses);
            self.places.extend_from_slice(batch.places);
        }
    }

    /// Sets which thread runs on which core.
    pub(super) fn set_cores(&mut self, cores: &Arc<Cores>) {
        self.cores = Arc::clone(cores);
    }

    /// Lets a unit process its own part.
    pub(super) fn run(&self, unit: &mut Unit, partial: &mut Vec<Partial>) {
        let Self { accesses, fields, places, cores, only, .. } = self;
        let batch = Batch { accesses, fields, places, cores, only: *only };
        let (shard, shards) = unit.shard();
        let is_gathered = shards > 1 && self.gathered.contains(&unit.config_at());
        let of_unit = |of: &&(usize, u64, Share)| (of.0, of.1) == (unit.config_at(), shard);
        let Some((.., share)) = self.shares.iter().find(of_unit).filter(|_| is_gathered) else {
            return unit.run(batch, partial);
        };
        for piece in &share.pieces {
            match piece {
                Piece::Block { ops, reads, writes } => {
                    let indexes = share.indexes.get(ops.clone()).unwrap_or_default();
                    let ops = share.ops.get(ops.clone()).unwrap_or_default();
                    let gathered = Gathered { ops, indexes, reads: *reads, writes: *writes };
                    unit.run_block(Block { gathered, owners: Owners::of(batch) });
                }
                Piece::Lines(record) => unit.run_one(Some(*record), cores, partial),
            }
        }
    }

    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.records = 0;
        self.gathered.clear();
        self.accesses.clear();
        self.fields.clear();
        self.places.clear();
        for (.., share) in &mut self.shares {
            share.pieces.clear();
            share.ops.clear();
            share.indexes.clear();
        }
    }
}
