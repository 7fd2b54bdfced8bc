//! Live entries that were changed in place and whose old values TLBs may still contain.
//!
//! Written from the chapter's section "Stale permissions": a plain list, searched from end to end.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_casemate::Sysreg;

use super::barrier::Reach;
use super::descriptor::{Descriptor, PAGE, Shape, Stage, is_valid};
use super::maintenance::Maintenance;
use super::model::{Act, Model};
use super::tables::{Tree, Visit};
use super::verdict::{Fault, STALE};

/// A right, by a letter: r, w, x for the level itself; R, W, X for EL0.
pub(crate) type Rights = BTreeSet<char>;

/// What TLBs may contain for an entry besides its value.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) number: u64,
    pub(crate) cell: u64,
    pub(crate) writer: u32,
    pub(crate) first: u64,
    pub(crate) granted: Rights,
    pub(crate) lost: Rights,
    pub(crate) is_resized: bool,
    pub(crate) levels: BTreeSet<i64>,
    /// Some of what was lost went with the limits of a table above.
    pub(crate) by_table: bool,
    written: bool,
    stage_two: bool,
    /// Threads that sent a TLBI and did not wait for it.
    sent: BTreeMap<u32, Sent>,
}

/// A TLBI on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    /// It is the last one that is needed.
    is_last: bool,
    /// A DSB with nXS completes it.
    is_nxs: bool,
}

/// A change in place.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) cell: u64,
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) granted: Rights,
    pub(crate) is_resized: bool,
    pub(crate) levels: BTreeSet<i64>,
    pub(crate) by_table: bool,
}

/// Memory that got another owner: first and last byte, the new owner's root if it only maps it, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handed {
    first: u64,
    last: u64,
    mapped_by: Option<u64>,
    when: u64,
}

impl Handed {
    /// The root that maps it, if that is how it got another owner.
    pub(crate) fn mapped_by(&self) -> Option<u64> {
        self.mapped_by
    }
}

impl Model {
    /// What a block or page permits (DDI 0487 D8: S2AP and XN of stage 2; AP, UXN, PXN of stage 1).
    pub(crate) fn rights(&self, stage: Stage, value: u64) -> Rights {
        let bit = |at: u64| value >> at & 1 == 1;
        let any = |register, at: u64| self.values_of(register).iter().any(|value| value >> at & 1 == 1);
        let mut letters = String::new();
        if stage == Stage::Two {
            letters += if bit(6) { "r" } else { "" };
            letters += if bit(7) || bit(51) && any(Sysreg::VtcrEl2, 22) { "w" } else { "" };
            letters += ["xX", "X", "", "x"][(value >> 53 & 3) as usize];
            return letters.chars().collect();
        }
        let is_host = stage.is_guest() || any(Sysreg::HcrEl2, 34);
        let sets_dirty = bit(51) && any(stage.registers()[1], if is_host { 40 } else { 22 });
        let writes = !bit(7) || sets_dirty;
        letters += if writes { "rw" } else { "r" };
        if is_host {
            letters += if bit(53) { "" } else { "x" };
            letters += if bit(54) { "" } else { "X" };
            letters += match (bit(6), writes) {
                (true, true) => "RW",
                (true, false) => "R",
                _ => "",
            };
        } else if !bit(54) {
            letters.push('x');
        }
        letters.chars().collect()
    }

    fn rights_at(&self, cell: u64, value: u64) -> Option<Rights> {
        let desc = self.memory.pte(cell)?.desc?;
        let shape = desc.with(value).ok()?.shape;
        (shape == Shape::Map).then(|| self.effective(cell, desc.stage, value))
    }

    pub(crate) fn pending(&self, cell: u64) -> Option<&Pending> {
        self.pending.iter().find(|pending| pending.cell == cell)
    }

    /// A live entry was changed in place while TLBs may contain its old value.
    pub(crate) fn changed(&mut self, act: Act, changed: Changed) {
        let granted = if self.options.quirks.stale_ignored { Rights::new() } else { changed.granted };
        let kept = self.rights_at(changed.cell, changed.new);
        let takes = granted.difference(&kept.clone().unwrap_or_default()).next().is_some();
        let before = self.pending(changed.cell).cloned();
        self.pending.retain(|pending| pending.cell != changed.cell);
        let mut pending = match before {
            None if !takes && !changed.is_resized => return,
            Some(before) if !takes && !changed.is_resized => before,
            before => {
                let mut new = Pending {
                    number: 0,
                    cell: changed.cell,
                    writer: act.thread,
                    first: changed.old,
                    granted,
                    lost: Rights::new(),
                    is_resized: changed.is_resized,
                    levels: changed.levels,
                    by_table: changed.by_table,
                    written: false,
                    stage_two: false,
                    sent: BTreeMap::new(),
                };
                if let Some(before) = before {
                    new.first = before.first;
                    new.granted.extend(before.granted);
                    new.is_resized |= before.is_resized;
                    new.by_table |= before.by_table;
                    new.levels.extend(before.levels);
                }
                new
            }
        };
        pending.lost = kept.map_or_else(Rights::new, |kept| pending.granted.difference(&kept).copied().collect());
        if !pending.lost.is_empty() || pending.is_resized {
            pending.number = self.clock;
            self.clock += 1;
            self.pending.push(pending);
        }
    }

    /// The entry is in no tree any more, or clean: a table in its place leaves the tree.
    pub(crate) fn settle(&mut self, act: Act, cell: u64) -> Result<(), Fault> {
        let Some(at) = self.pending.iter().position(|pending| pending.cell == cell) else { return Ok(()) };
        let pending = self.pending.remove(at);
        let Some(entry) = self.memory.get(cell).copied() else { return Ok(()) };
        let Some(desc) = entry.desc.filter(|_| pending.is_resized) else { return Ok(()) };
        if let Ok(Shape::Table(next)) = desc.with(pending.first).map(|old| old.shape) {
            let tree = Tree { root: entry.owner, stage: desc.stage, layout: desc.layout };
            self.traverse(act, tree, (next, desc.input, desc.level + 1), Visit::Unmark)?;
        }
        Ok(())
    }

    /// The same for all entries of a page.
    pub(crate) fn settle_page(&mut self, act: Act, page: u64) -> Result<(), Fault> {
        let mut cells: Vec<u64> = self.pending.iter().map(|pending| pending.cell).collect();
        cells.retain(|cell| cell / PAGE == page / PAGE);
        cells.sort_unstable();
        cells.into_iter().try_for_each(|cell| self.settle(act, cell))
    }

    /// A live entry became invalid: the value from which it has to be cleaned, if it is not its last one.
    pub(crate) fn older_table(&mut self, cell: u64) -> Option<u64> {
        let at = self.pending.iter().position(|pending| pending.cell == cell)?;
        let pending = self.pending.remove(at);
        let desc = self.memory.get(cell)?.desc?;
        let shape = desc.with(pending.first).ok()?.shape;
        (pending.is_resized && matches!(shape, Shape::Table(_))).then_some(pending.first)
    }

    pub(crate) fn dsb_pending(&mut self, act: Act, reach: Reach) -> Result<(), Fault> {
        if matches!(reach, Reach::Loads | Reach::Local) {
            return Ok(());
        }
        let mut done = Vec::new();
        let mut all = std::mem::take(&mut self.pending);
        for pending in &mut all {
            let Some(entry) = self.memory.pte(pending.cell) else { continue };
            let holder = self.lock_of(entry.owner).and_then(|lock| self.held.get(&lock)).map(|held| held.thread);
            if !pending.written {
                pending.written = pending.writer == act.thread || self.options.racy || holder == Some(act.thread);
            } else if let Some(sent) = pending.sent.get(&act.thread).copied() {
                if reach == Reach::Stores || reach == Reach::FullNxs && !sent.is_nxs {
                    continue;
                }
                pending.sent.remove(&act.thread);
                if sent.is_last {
                    done.push(pending.cell);
                } else {
                    pending.stage_two = true;
                }
            }
        }
        self.pending = all;
        done.sort_unstable();
        done.into_iter().try_for_each(|cell| self.settle(act, cell))
    }

    pub(crate) fn tlbi_pending(&mut self, act: Act, tlbi: &Maintenance) {
        let mut all = self.pending.clone();
        for pending in all.iter_mut().filter(|pending| pending.written && tlbi.is_broadcast) {
            let Some(entry) = self.memory.pte(pending.cell).copied() else { continue };
            let Some(desc) = entry.desc.filter(|desc| tlbi.visits(desc.stage)) else { continue };
            let Ok(first) = desc.with(pending.first) else { continue };
            if pending.by_table && !self.reaches_tables(act, tlbi, &entry, &desc) {
                continue;
            }
            if !self.reaches(act, tlbi, pending.cell, &entry, &first, pending.first) {
                continue;
            }
            let hint = tlbi.hinted_level();
            if hint != 0 && !self.options.quirks.ttl_ignored && pending.levels != BTreeSet::from([hint]) {
                continue;
            }
            let is_last = match (desc.stage.is_one() || tlbi.one && tlbi.two, tlbi.one, pending.stage_two) {
                (true, ..) | (_, true, true) => true,
                (_, false, false) => false,
                _ => continue,
            };
            let is_nxs = tlbi.is_nxs;
            let sent = pending.sent.entry(act.thread).or_insert(Sent { is_last, is_nxs });
            // Of two that do the same, either may be the one that is complete.
            sent.is_nxs = if sent.is_last == is_last { sent.is_nxs || is_nxs } else { sent.is_nxs };
            if is_last && !sent.is_last {
                *sent = Sent { is_last, is_nxs };
            }
        }
        self.pending = all;
    }

    /// True when TLBs may contain an entry as part of a block, because its table took the block's place.
    pub(crate) fn is_in_old_block(&self, cell: u64) -> bool {
        let Some(desc) = self.memory.pte(cell).and_then(|entry| entry.desc) else { return false };
        let owner = self.memory.pte(cell).map(|entry| entry.owner);
        self.pending.iter().filter(|pending| pending.is_resized).any(|pending| {
            let Some(above) = self.memory.pte(pending.cell) else { return false };
            let Some(place) = above.desc else { return false };
            let is_block = place.with(pending.first).is_ok_and(|old| !matches!(old.shape, Shape::Table(_)));
            let is_same_tree = Some(above.owner) == owner && place.stage == desc.stage;
            is_block && is_same_tree && place.level < desc.level && place.covers(desc.input)
        })
    }

    pub(crate) fn hand(&mut self, first: u64, bytes: u64, mapped_by: Option<u64>) {
        if bytes > 0 && first.checked_add(bytes).is_some() {
            self.handed.push(Handed { first, last: first + bytes - 1, mapped_by, when: self.clock });
        }
    }

    /// An entry maps memory that it did not map before.
    pub(crate) fn hand_mapped(&mut self, root: u64, place: &Descriptor, value: u64) {
        let is_map = place.with(value).is_ok_and(|desc| desc.shape == Shape::Map);
        if place.stage == Stage::Two && is_valid(value) && is_map {
            self.hand(place.output(value), place.bytes(), Some(root));
        }
    }

    /// The end of a step: nothing that got another owner in it may be stale.
    pub(crate) fn check_handed(&mut self) -> Result<(), Fault> {
        for handed in std::mem::take(&mut self.handed) {
            for pending in self.pending.iter().filter(|pending| pending.number < handed.when) {
                let Some(entry) = self.memory.pte(pending.cell) else { continue };
                let Some(desc) = entry.desc else { continue };
                if pending.lost.is_empty() {
                    continue;
                }
                let first = desc.output(entry.value);
                let last = first + desc.bytes() - 1;
                let is_other = match handed.mapped_by {
                    _ if desc.stage.is_guest() => false,
                    Some(root) => desc.stage.is_one() || root != entry.owner,
                    None => desc.stage == Stage::Two,
                };
                if is_other && first <= handed.last && handed.first <= last {
                    return Err(Fault::Fire(STALE));
                }
            }
        }
        Ok(())
    }

    /// `address=progress/thread lost rights`, newest first.
    pub(crate) fn pending_text(&self) -> String {
        let mut all: Vec<&Pending> = self.pending.iter().collect();
        all.sort_unstable_by_key(|pending| std::cmp::Reverse(pending.number));
        let line = |pending: &&Pending| {
            let has = |wanted: bool| pending.sent.values().any(|sent| sent.is_last == wanted);
            let progress = match (pending.written, pending.stage_two) {
                (false, _) => "n",
                _ if has(true) => "ta",
                (_, true) => "td",
                _ if has(false) => "ti",
                _ => "d",
            };
            let names = [('r', "read"), ('w', "write"), ('x', "execute"), ('R', "read at EL0"), ('W', "write at EL0")];
            let names = names.into_iter().chain([('X', "execute at EL0")]);
            let lost: Vec<_> =
                names.filter(|(letter, _)| pending.lost.contains(letter)).map(|(_, name)| name).collect();
            format!("{:#x}={progress}/{} {}", pending.cell, pending.writer, lost.join(", "))
        };
        all.iter().map(line).collect::<Vec<_>>().join("; ")
    }
}
