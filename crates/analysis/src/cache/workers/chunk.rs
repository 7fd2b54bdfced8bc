//! What is handed to all threads at once.

use std::ops::Range;
use std::sync::Arc;

use anytrace_core::access::{Access, ThreadNumber};

use crate::cache::hierarchy::{Block, Op};
use crate::cache::simulation::{Batch, Cores, Gathered, Gatherer, Partial, Record, Unit};

/// Records of a trace that follow each other.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Records in it.
    records: usize,
    /// The records; none, where nobody wants them.
    accesses: Vec<Access>,
    /// What is known of them.
    fields: Vec<u32>,
    places: Vec<u64>,
    only: Option<ThreadNumber>,
    cores: Arc<Cores>,
    /// Configurations that were gathered for.
    gathered: Vec<usize>,
    /// What was gathered, by number of the configuration and of its shard.
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

    /// Gathers what the shards of a configuration are asked for, before the records are counted.
    pub(super) fn gather(&mut self, (config_at, shards): (usize, u64), gatherer: &mut Gatherer, batch: Batch<'_>) {
        let first = match self.shares.iter().position(|(of, ..)| *of == config_at) {
            Some(first) => first,
            None => {
                self.shares.extend((0..shards).map(|shard| (config_at, shard, Share::default())));
                self.shares.len() - shards as usize
            }
        };
        let Some(shares) = self.shares.get_mut(first..) else { return };
        if !self.gathered.contains(&config_at) {
            self.gathered.push(config_at);
        }
        let mut from = 0;
        while from < batch.accesses.len() {
            let ended = gatherer.gather(batch.accesses, from, self.records, batch.is_each());
            let odd = ended.odd.and_then(|_| batch.record(ended.at));
            let odd = odd.map(|record| Record { index: record.index + self.records as u32, ..record });
            for (_, shard, share) in shares.iter_mut().take(shards as usize) {
                share.push(gatherer.gathered(*shard));
                share.pieces.extend(odd.map(Piece::Lines));
            }
            from = ended.at + usize::from(odd.is_some());
        }
    }

    /// Counts records, and keeps them where they are wanted.
    pub(super) fn count(&mut self, batch: Batch<'_>, is_whole: bool) {
        self.records += batch.accesses.len();
        self.only = batch.only;
        self.fields.extend_from_slice(batch.fields);
        if is_whole {
            self.accesses.extend_from_slice(batch.accesses);
            self.places.extend_from_slice(batch.places);
        }
    }

    /// Says which thread runs on which core.
    pub(super) fn set_cores(&mut self, cores: &Arc<Cores>) {
        self.cores = Arc::clone(cores);
    }

    /// Has a unit work off what is its own.
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
                    unit.run_block(Block { gathered, owners: batch.owners() });
                }
                Piece::Lines(record) => unit.run_one(Some(*record), cores, partial),
            }
        }
    }

    /// Empties it, and keeps its memory.
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
