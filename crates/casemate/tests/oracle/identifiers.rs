//! VMIDs and ASIDs that get another tree, from the chapter's section "Identifiers that are used again": every use and
//! every TLBI is kept in a list, and the lists are searched from end to end.

use std::collections::BTreeSet;

use anytrace_casemate::Domain;

use super::descriptor::{Shape, Stage, WORDS, is_valid};
use super::maintenance::{Maintenance, Method};
use super::memory::Automaton;
use super::model::{Act, Model};
use super::registers::Root;
use super::verdict::{Fault, GLOBAL_KEPT, REUSED};

/// A thread used a tree under identifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    thread: u32,
    stage: Stage,
    vmid: u64,
    asid: u64,
    serial: u64,
    /// When it ended.
    end: Option<u64>,
    /// The tree had no entry when it ended, or none was ever put there.
    is_last: bool,
}

/// A TLBI for all that has some identifiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flush {
    thread: u32,
    is_broadcast: bool,
    regime: u8,
    one: bool,
    two: bool,
    /// Only of this VMID: as stage 2 has it, and as stage 1 has it.
    vmids: Option<(Option<u64>, u64)>,
    asid: Option<u64>,
    when: u64,
    is_done: bool,
}

/// What is left of a root that was released.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ghost {
    serial: u64,
    is_global: bool,
}

/// The lists.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    uses: Vec<Use>,
    /// The use in which each thread is, by kind of tree.
    open: Vec<(u32, Stage, u64, u64, u64)>,
    flushes: Vec<Flush>,
    ghosts: Vec<Ghost>,
    clock: u64,
}

impl Model {
    fn is_tracked(&self) -> bool {
        !self.options.quirks.reuse_ignored
    }

    fn tags(root: &Root) -> (u64, u64) {
        if root.stage == Stage::Two { (root.id, 0) } else { (root.vmid, root.id) }
    }

    /// A thread begins to use the root of a slot.
    pub(crate) fn begin_use(&mut self, act: Act, slot: usize) -> Result<(), Fault> {
        if !self.is_tracked() {
            return Ok(());
        }
        let root = self.roots[slot].clone();
        let (vmid, asid) = Self::tags(&root);
        let one = (act.thread, root.stage, vmid, asid, root.serial);
        if self.identifiers.open.contains(&one) {
            return Ok(());
        }
        self.end_use(act, root.stage);
        let counts = root.stage == Stage::Two || !self.is_bare(&root);
        if counts {
            self.compare_uses(act, &root)?;
            self.put_use(Use {
                thread: act.thread,
                stage: root.stage,
                vmid,
                asid,
                serial: root.serial,
                end: None,
                is_last: false,
            });
        }
        self.identifiers.open.push(one);
        Ok(())
    }

    /// There is one use of identifiers by a thread: the last.
    fn put_use(&mut self, one: Use) {
        let is_same = |other: &Use| {
            (other.thread, other.stage, other.vmid, other.asid) == (one.thread, one.stage, one.vmid, one.asid)
        };
        let was_last = self.identifiers.uses.iter().any(|other| is_same(other) && other.is_last);
        // What was left last stays so until another tree is compared with it.
        if was_last {
            self.identifiers.uses.iter_mut().filter(|other| is_same(other)).for_each(|other| other.asid = u64::MAX);
        }
        self.identifiers.uses.retain(|other| !is_same(other));
        self.identifiers.uses.push(one);
    }

    /// A thread stops using its tree of a kind.
    pub(crate) fn end_use(&mut self, act: Act, stage: Stage) {
        let is_it = |one: &(u32, Stage, u64, u64, u64)| (one.0, one.1) == (act.thread, stage);
        let Some(at) = self.identifiers.open.iter().position(is_it) else { return };
        let (thread, stage, vmid, asid, serial) = self.identifiers.open.remove(at);
        self.identifiers.clock += 1;
        let end = Some(self.identifiers.clock);
        let root = self.roots.iter().find(|root| root.present && root.serial == serial).cloned();
        let is_bare = root.as_ref().is_some_and(|root| self.is_bare(root));
        let counts = root.is_some() && (stage == Stage::Two || !is_bare);
        let is_last = stage != Stage::Two && !is_bare;
        if is_last {
            let same = |one: &&mut Use| (one.thread, one.stage, one.vmid) == (thread, stage, vmid);
            self.identifiers.uses.iter_mut().filter(same).for_each(|one| one.is_last = false);
        }
        if counts {
            self.put_use(Use { thread, stage, vmid, asid, serial, end, is_last });
        } else {
            let same = |one: &&mut Use| {
                (one.thread, one.stage, one.vmid, one.asid, one.serial) == (thread, stage, vmid, asid, serial)
            };
            for one in self.identifiers.uses.iter_mut().filter(same) {
                one.end = end;
                one.is_last |= is_last;
            }
        }
    }

    fn compare_uses(&mut self, act: Act, root: &Root) -> Result<(), Fault> {
        let (vmid, asid) = Self::tags(root);
        let of_thread: Vec<Use> = self
            .identifiers
            .uses
            .iter()
            .filter(|one| (one.thread, one.stage, one.vmid) == (act.thread, root.stage, vmid))
            .copied()
            .collect();
        let is_other = |one: &&Use| one.serial != root.serial;
        let same = of_thread.iter().find(|one| one.asid == asid);
        if let Some(same) = same.filter(is_other) {
            let is_gone = self.has_nothing(same.serial) || self.is_flushed(same, false);
            let is_gone_of_asid = self.is_flushed(same, true) && !self.leaves_global(same.serial);
            if !is_gone && !is_gone_of_asid {
                return Err(Fault::Fire(REUSED));
            }
        }
        if let Some(last) = of_thread.iter().find(|one| one.is_last).filter(is_other)
            && !self.is_flushed(last, false)
            && self.leaves_global(last.serial)
        {
            return Err(Fault::Fire(GLOBAL_KEPT));
        }
        let same = |one: &&mut Use| (one.thread, one.stage, one.vmid) == (act.thread, root.stage, vmid);
        self.identifiers.uses.iter_mut().filter(same).for_each(|one| one.is_last = false);
        Ok(())
    }

    /// Did a complete TLBI drop all that the thread's TLBs had of a use, or all of its ASID that is not global?
    fn is_flushed(&self, one: &Use, of_asid: bool) -> bool {
        let Some(end) = one.end else { return false };
        self.identifiers.flushes.iter().any(|flush| {
            let is_there = flush.is_broadcast || flush.thread == one.thread;
            let is_regime = flush.regime == if matches!(one.stage, Stage::One | Stage::OneUpper) { 2 } else { 1 };
            let is_stage = if one.stage == Stage::Two { flush.one && flush.two } else { flush.one };
            let is_vmid = match (flush.vmids, one.stage) {
                (None, _) => true,
                (Some((two, _)), Stage::Two) => two == Some(one.vmid),
                (Some((_, one_vmid)), _) => one_vmid == one.vmid,
            };
            let is_asid =
                if of_asid { flush.asid == Some(one.asid) && one.stage != Stage::Two } else { flush.asid.is_none() };
            flush.is_done && flush.when > end && is_there && is_regime && is_stage && is_vmid && is_asid
        })
    }

    pub(crate) fn flush(&mut self, act: Act, tlbi: &Maintenance, operand: u64) {
        let Some(regime) = tlbi.regime.filter(|_| !tlbi.is_nxs && self.is_tracked()) else { return };
        let quirks = self.options.quirks;
        let two = self.current.get(&(act.thread, Stage::Two)).copied().flatten().map(|slot| self.roots[slot].id);
        let two = match two {
            None if quirks.no_vttbr_is_slot_0 => self.roots.first().filter(|root| root.present).map(|root| root.id),
            two => two,
        };
        let vmids = (regime == 1).then_some((two, self.vmid(act)));
        let (vmids, asid) = match tlbi.method {
            Method::All => (None, None),
            Method::ById if quirks.by_id_promoted => (None, None),
            Method::ById => (vmids, None),
            Method::Asid => (vmids, Some(if quirks.ids_asid_zero { 0 } else { operand >> 48 })),
            Method::Address | Method::Range => return,
        };
        self.identifiers.clock += 1;
        self.identifiers.flushes.push(Flush {
            thread: act.thread,
            is_broadcast: tlbi.is_broadcast,
            regime,
            one: tlbi.one,
            two: tlbi.two,
            vmids,
            asid,
            when: self.identifiers.clock,
            is_done: false,
        });
    }

    /// A DSB.
    pub(crate) fn finish_flushes(&mut self, act: Act, domain: Domain) {
        for flush in self.identifiers.flushes.iter_mut().filter(|flush| flush.thread == act.thread) {
            flush.is_done |= match domain {
                Domain::Ish | Domain::Osh | Domain::Sy => true,
                Domain::Nsh => !flush.is_broadcast,
                _ => false,
            };
        }
    }

    /// A root is about to be released.
    pub(crate) fn bury(&mut self, slot: usize) {
        let root = self.roots[slot].clone();
        if self.is_tracked() && !self.is_bare(&root) {
            let is_global = root.stage != Stage::Two && self.has_global(&root);
            self.identifiers.ghosts.push(Ghost { serial: root.serial, is_global });
        }
    }

    fn has_nothing(&self, serial: u64) -> bool {
        match self.roots.iter().find(|root| root.present && root.serial == serial) {
            Some(root) => self.is_bare(root),
            None => !self.identifiers.ghosts.iter().any(|ghost| ghost.serial == serial),
        }
    }

    fn leaves_global(&self, serial: u64) -> bool {
        match self.roots.iter().find(|root| root.present && root.serial == serial) {
            Some(root) => self.has_global(root),
            None => self.identifiers.ghosts.iter().any(|ghost| ghost.serial == serial && ghost.is_global),
        }
    }

    fn top_words(root: &Root) -> u64 {
        root.geometry.map_or(0, |geometry| geometry.pages * WORDS)
    }

    /// The value that TLBs may have of an entry.
    fn cached_value(&self, address: u64) -> Option<u64> {
        let cell = self.memory.pte(address)?;
        match cell.automaton {
            Automaton::Unclean { .. } => self.old_values.get(&address).copied(),
            _ => Some(cell.value).filter(|value| is_valid(*value)),
        }
    }

    /// Is there nothing in the first tables?
    fn is_bare(&self, root: &Root) -> bool {
        (0..Self::top_words(root)).all(|i| self.cached_value(root.base + 8 * i).is_none())
    }

    fn has_global(&self, root: &Root) -> bool {
        let mut tables: Vec<(u64, u64)> = vec![(root.base, Self::top_words(root))];
        let mut seen = BTreeSet::new();
        while let Some((table, words)) = tables.pop() {
            if !seen.insert(table) {
                continue;
            }
            for i in 0..words {
                let address = table + 8 * i;
                let Some(value) = self.cached_value(address) else { continue };
                let Some(desc) = self.memory.pte(address).and_then(|cell| cell.desc) else { continue };
                match desc.with(value).map(|desc| desc.shape) {
                    Ok(Shape::Map) if value >> 11 & 1 == 0 => return true,
                    Ok(Shape::Table(next)) => tables.push((next, desc.layout.page / 8)),
                    _ => {}
                }
            }
        }
        false
    }
}
