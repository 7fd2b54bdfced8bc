//! Reads the records backwards: a call stays if a later one needs its effect.

use std::collections::HashMap;

use anytrace_core::Error;

use crate::tools::gltrim::explain::{Reason, Reasons, Why};
use crate::tools::gltrim::live::{Live, pack};
use crate::tools::gltrim::log::{Block, Effect, Log, Record};
use crate::tools::gltrim::nodes::Nodes;
use crate::tools::gltrim::numbers::Numbers;

/// After this many rounds, every pair stays of which one call stays.
const ROUNDS: usize = 4;

/// The calls that stay. `wanted` are those that stay in any case.
pub(super) fn slice(
    nodes: &Nodes,
    log: &mut Log,
    wanted: &Numbers,
    mut reasons: Option<&mut Reasons>,
) -> Result<Numbers, Error> {
    let mut closes = Numbers::default();
    for round in 0.. {
        let mut slicer = Slicer {
            live: Live::new(nodes),
            wanted,
            closes: &closes,
            keeps_all_pairs: round >= ROUNDS,
            kept: Numbers::default(),
            missing: Vec::new(),
            pairs: HashMap::new(),
            primitives: HashMap::new(),
            reasons: reasons.as_deref_mut(),
        };
        slicer.run(log)?;
        let (kept, missing) = (slicer.kept, slicer.missing);
        if missing.is_empty() {
            return Ok(kept);
        }
        // An end that stays may need further calls, which only another round finds.
        for close in missing {
            closes.add(close);
        }
        if let Some(reasons) = &mut reasons {
            reasons.clear()?;
        }
    }
    Ok(Numbers::default())
}

struct Slicer<'a> {
    live: Live<'a>,
    wanted: &'a Numbers,
    /// Ends of pairs that must stay because their beginnings do.
    closes: &'a Numbers,
    keeps_all_pairs: bool,
    kept: Numbers,
    /// Ends of pairs that were omitted although their beginnings stay.
    missing: Vec<u64>,
    /// By the beginning of a pair: its end, and whether that stays.
    pairs: HashMap<u64, (u64, bool)>,
    /// Whether the primitive that a thread's calls belong to stays, and its end.
    primitives: HashMap<u64, (bool, u64)>,
    reasons: Option<&'a mut Reasons>,
}

impl Slicer<'_> {
    fn run(&mut self, log: &mut Log) -> Result<(), Error> {
        let (mut block, mut record, mut set) = (Block::default(), Record::default(), Vec::new());
        // The next record usually has the same set as the last one.
        for at in (0..log.blocks()).rev() {
            log.read(at, &mut block)?;
            let mut known = None;
            for number in (0..block.len()).rev() {
                block.record(number, &mut record);
                match record.set {
                    Some(_) if record.set == known => {}
                    Some(number) => {
                        block.set(number, &mut set);
                        known = record.set;
                    }
                    None => {}
                }
                let effects = if record.set.is_some() { set.as_slice() } else { &[] };
                self.step(&record, effects)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, record: &Record, set: &[Effect]) -> Result<(), Error> {
        let why = self.why(record, set);
        let is_kept = why.is_some();
        let is_end = record.effects.contains(&Effect::EndPrimitive);
        if is_end {
            self.primitives.insert(record.thread, (is_kept, record.call));
        }
        for effect in &record.effects {
            match effect {
                // Both may be in one display list.
                Effect::Close(open) if *open != record.call => {
                    // Going backward, the end of a pair comes before its beginning: the beginning finds it here.
                    self.pairs.insert(*open, (record.call, is_kept));
                }
                Effect::Open => {
                    if let Some((close, has_close)) = self.pairs.remove(&record.call)
                        && is_kept
                        && !has_close
                    {
                        self.missing.push(close);
                    }
                }
                _ => {}
            }
        }
        let Some((why, node, by)) = why else { return Ok(()) };
        self.kept.add(record.call);
        self.take(record, set);
        if let Some(reasons) = &mut self.reasons {
            reasons.push(Reason { call: record.call, function: record.function, why, node, by })?;
        }
        Ok(())
    }

    /// Why a call stays: its effect that is needed, and the call that needs it.
    fn why(&self, record: &Record, set: &[Effect]) -> Option<(Why, u32, u64)> {
        if self.wanted.has(record.call) {
            return Some((Why::Wanted, 0, 0));
        }
        let mut found = None;
        // A call stays for any effect that is needed; the first one found is the reason that is shown.
        for effect in record.effects.iter().chain(set) {
            let (node, reader) = match *effect {
                Effect::Write(node) | Effect::Kill(node) => (node, self.live.reader(node)),
                Effect::Range(node, start, length) | Effect::Touch(node, start, length) => {
                    (node, self.live.range_reader(node, start, length))
                }
                Effect::Inner => match self.primitives.get(&record.thread) {
                    Some((true, end)) => {
                        found = found.or(Some((Why::Primitive, 0, *end)));
                        continue;
                    }
                    _ => continue,
                },
                Effect::Always => {
                    found = found.or(Some((Why::Always, 0, 0)));
                    continue;
                }
                Effect::Open => match self.pairs.get(&record.call) {
                    Some((close, true)) => {
                        found = found.or(Some((Why::Pair, 0, *close)));
                        continue;
                    }
                    _ => continue,
                },
                Effect::Close(open) if self.keeps_all_pairs || self.closes.has(record.call) => {
                    found = found.or(Some((Why::Pair, 0, open)));
                    continue;
                }
                // Once before its picture is needed, and not among the calls that make the picture.
                Effect::Show(shown, colors, is_first) => {
                    let reader = self.live.reader(shown);
                    (shown, reader.filter(|_| is_first || self.live.reader(colors).is_none()))
                }
                Effect::Read(_) | Effect::Close(_) | Effect::EndPrimitive | Effect::Then => continue,
            };
            if let Some(reader) = reader {
                return Some((Why::Needed, node, reader));
            }
        }
        found
    }

    /// Applies a call that stays: what it overwrites is not needed before it, what it reads is.
    fn take(&mut self, record: &Record, set: &[Effect]) {
        let reader = pack(record.call, record.function);
        // A list's commands are sequential; here the last one comes first.
        for (at, part) in record.effects.rsplit(|effect| *effect == Effect::Then).enumerate() {
            self.live.step();
            for effect in part {
                match *effect {
                    Effect::Kill(node) | Effect::Show(node, ..) => self.live.kill(node),
                    Effect::Range(node, start, length) => self.live.kill_range(node, start, length),
                    _ => {}
                }
            }
            // Reads after kills: a call that overwrites what it reads needs the value from before it.
            for effect in part.iter().chain(set.iter().filter(|_| at == 0)) {
                if let Effect::Read(node) = *effect {
                    self.live.read(node, reader);
                }
            }
        }
    }
}
