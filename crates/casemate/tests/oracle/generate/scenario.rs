//! Scenarios: several threads, trees of both stages, and every operation performed as the rules require.

use anytrace_casemate::{HintKind, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::world::{Entry, NO_THREAD, PAGE, Tree, World};
use crate::oracle::step::Step;

/// A trace that keeps the rules of both sets if `is_common`; otherwise it may do what only one of them allows.
pub(crate) fn scenario(rng: &mut Rng, is_common: bool) -> Vec<Step> {
    let threads_max = if rng.chance(5) { 7 } else { 4 };
    let threads = 1 + rng.below(threads_max);
    let t0sz = match rng.below(20) {
        0..15 => 16,
        // Concatenated tables: the reference asserts.
        15 if !is_common => rng.pick(&[21, 23, 24, 30, 32, 33]),
        _ => rng.pick(&[17, 20, 25, 26, 29, 34, 36, 38]),
    };
    let next_page = match rng.below(3) {
        0 => 0x4_0000,
        1 => 0x8000_0000,
        _ => (0x10_0000 + rng.below(1 << 20)) * PAGE,
    };
    let mut world = World {
        rng,
        steps: Vec::new(),
        threads,
        trees: Vec::new(),
        current: std::collections::BTreeMap::new(),
        spare: Vec::new(),
        next_page,
        next_id: 1,
        is_authorised: true,
        t0sz,
        is_common,
    };
    world.prelude();
    let trees = 1 + world.rng.below(3);
    for _ in 0..trees {
        world.new_tree();
    }
    let operations = 2 + world.rng.below(14);
    for _ in 0..operations {
        world.operation();
    }
    world.steps
}

impl World<'_> {
    fn prelude(&mut self) {
        let writes_all = self.rng.chance(30);
        if !writes_all && self.t0sz == 16 {
            return;
        }
        for thread in 0..u32::try_from(self.threads).unwrap_or(1) {
            self.sysreg(thread, Sysreg::TcrEl2, self.t0sz);
            self.sysreg(thread, Sysreg::VtcrEl2, self.t0sz);
            if writes_all {
                let is_off = self.rng.chance(20);
                self.sysreg(thread, Sysreg::MairEl2, 0xff04);
                if !is_off {
                    self.sysreg(thread, Sysreg::SctlrEl2, 1);
                    self.sysreg(thread, Sysreg::HcrEl2, 1);
                }
            }
        }
    }

    /// Level and number of a tree's first tables.
    fn top(&self, stage: u8) -> (u64, u64) {
        let bits = 64 - self.t0sz;
        let level = (48 - bits) / 9;
        let entries = 1 << (bits - (39 - 9 * level));
        if stage == 2 && entries <= 16 { (level + 1, entries) } else { (level, 1) }
    }

    fn new_tree(&mut self) {
        let has_stage_1 = self.trees.iter().any(|tree| tree.stage == 1);
        let stage = if !has_stage_1 && self.rng.chance(35) { 1 } else { 2 };
        let (level, tables) = self.top(stage);
        let thread = self.thread();
        let base = self.new_pages(tables);
        self.init(thread, base, tables);
        let id = match stage {
            1 => 0,
            // Sound rules only: a VMID that is also the ASID of stage 1.
            _ if !self.is_common && self.rng.chance(10) && self.trees.iter().all(|t| t.stage == 1) => 0,
            _ => self.next_id,
        };
        self.next_id += 1 + self.rng.below(3);
        let lock = self.new_pages(1) + 8 * self.rng.below(4);
        self.hint(thread, HintKind::SetRootLock, base, lock);
        self.trees.push(Tree { stage, base, id, lock, level, entries: std::collections::BTreeMap::new() });
        let tree = self.trees.len() - 1;
        let early = self.rng.below(4);
        for _ in 0..early {
            self.map(thread, tree, false);
        }
        if self.rng.chance(15) {
            self.enable_late(thread, tree);
        } else {
            self.make_current(thread, tree);
        }
    }

    /// Base first, then the regime.
    fn enable_late(&mut self, thread: u32, tree: usize) {
        let register = if self.trees[tree].stage == 1 { Sysreg::SctlrEl2 } else { Sysreg::HcrEl2 };
        self.sysreg(thread, register, 0);
        self.make_current(thread, tree);
        self.sysreg(thread, register, 1);
    }

    /// One operation, or two of different trees and threads at once.
    fn operation(&mut self) {
        let start = self.steps.len();
        let Some((thread, tree, is_local)) = self.one_operation(None) else { return };
        if !is_local || self.threads < 2 || self.trees.len() < 2 || !self.rng.chance(40) {
            return;
        }
        // Steps of an operation on other trees, by other threads, may come between.
        // They must not use pages that it gave back.
        let before = self.steps.len();
        let spare = std::mem::take(&mut self.spare);
        let second = self.one_operation(Some((thread, tree)));
        self.spare.extend(spare);
        if second.is_some() {
            let second = self.steps.split_off(before);
            // Operations before the first may be on the second's tree.
            let span = (self.rng.index(12) + 1).min(before - start);
            self.merge(thread, span, second);
        }
    }

    /// Mixes `second` into the last `span` steps, as far as those are all by `thread`.
    fn merge(&mut self, thread: u32, span: usize, second: Vec<Step>) {
        let tail =
            self.steps.iter().rev().take(span).take_while(|step| step.thread == thread && is_local(step)).count();
        let mut first = self.steps.split_off(self.steps.len() - tail).into_iter().peekable();
        let mut second = second.into_iter().peekable();
        while let (Some(a), Some(b)) = (first.peek().copied(), second.peek().copied()) {
            if self.rng.chance(50) {
                self.steps.push(a);
                first.next();
            } else {
                self.steps.push(b);
                second.next();
            }
        }
        self.steps.extend(first);
        self.steps.extend(second);
    }

    /// Thread, tree, and whether only that tree is concerned.
    fn one_operation(&mut self, other_than: Option<(u32, usize)>) -> Option<(u32, usize, bool)> {
        let (thread, tree) = (self.thread(), self.rng.index(self.trees.len()));
        if other_than.is_some_and(|(t, r)| t == thread || r == tree) {
            return None;
        }
        let is_second = other_than.is_some();
        let choice = self.rng.below(100);
        match choice {
            0..35 => self.locked(thread, tree, |world| world.map(thread, tree, true)),
            35..60 => self.locked(thread, tree, |world| world.break_some(thread, tree)),
            60..72 => self.locked(thread, tree, |world| world.change(thread, tree)),
            72..78 => self.thread_owned(thread, tree),
            78..84 if !is_second => self.make_current(thread, tree),
            84..88 if !is_second => self.new_tree(),
            88..93 if !is_second => self.release(thread, tree),
            _ => self.aside(thread, tree),
        }
        Some((thread, tree, !(78..93).contains(&choice)))
    }

    fn locked(&mut self, thread: u32, tree: usize, body: impl FnOnce(&mut Self)) {
        self.make_current(thread, tree);
        let lock = self.trees[tree].lock;
        self.lock(thread, lock);
        let is_nested = self.rng.chance(10);
        if is_nested {
            self.emit(thread, Transition::Trylock { address: lock });
        }
        body(self);
        if is_nested {
            self.unlock(thread, lock);
        }
        self.unlock(thread, lock);
    }

    /// Maps a page or block, making the tables above it. `is_live`: the tree is registered.
    fn map(&mut self, thread: u32, tree: usize, is_live: bool) {
        let Tree { base, level: top, .. } = self.trees[tree];
        let leaf = self.rng.pick(&[3, 3, 3, 2, 2, 1]).max(top.max(1));
        let (mut table, mut input) = (base, 0);
        for level in top..=leaf {
            let slot = self.rng.pick(&[0, 1, 2, 3, 4, 511]);
            let address = table + 8 * slot;
            input += slot << (39 - 9 * level);
            let found = self.trees[tree].entries.get(&address).copied();
            match found {
                Some(entry) if entry.is_table() && level < leaf => table = entry.next(),
                Some(_) => return,
                None => {
                    let value = if level == leaf { self.leaf_value(level) } else { self.linked(thread) };
                    if is_live {
                        self.write_entry(thread, address, value);
                    } else {
                        self.store(thread, address, value);
                    }
                    let entry = Entry { value, level, input };
                    self.trees[tree].entries.insert(address, entry);
                    table = entry.next();
                }
            }
        }
    }

    /// A table entry for a new, empty table.
    fn linked(&mut self, thread: u32) -> u64 {
        self.zero_page(thread) | 3
    }

    fn any_entry(&mut self, tree: usize, wanted: impl Fn(&Entry) -> bool) -> Option<(u64, Entry)> {
        let entries: Vec<_> = self.trees[tree].entries.iter().filter(|e| wanted(e.1)).map(|e| (*e.0, *e.1)).collect();
        (!entries.is_empty()).then(|| self.rng.pick(&entries))
    }

    /// Takes away a table or a few leaves, and sometimes puts something else there.
    fn break_some(&mut self, thread: u32, tree: usize) {
        if self.rng.chance(35)
            && let Some((address, entry)) = self.any_entry(tree, Entry::is_table)
        {
            return self.break_table(thread, tree, address, entry);
        }
        let mut leaves = Vec::new();
        let count = 1 + self.rng.below(3);
        for _ in 0..count {
            if let Some((address, entry)) = self.any_entry(tree, |entry| !entry.is_table())
                && !leaves.iter().any(|(at, _)| *at == address)
            {
                leaves.push((address, entry));
            }
        }
        self.invalidate(thread, &leaves);
        self.clean_leaves(thread, tree, &leaves);
        for (address, entry) in leaves {
            self.trees[tree].entries.remove(&address);
            if self.rng.chance(50) {
                let is_table = entry.level < 3 && self.rng.chance(30);
                let value = if is_table { self.linked(thread) } else { self.leaf_value(entry.level) };
                self.write_entry(thread, address, value);
                self.trees[tree].entries.insert(address, Entry { value, ..entry });
            }
        }
    }

    fn invalidate(&mut self, thread: u32, leaves: &[(u64, Entry)]) {
        for (address, _) in leaves {
            let value = if self.rng.chance(85) { 0 } else { 2 + 4 * self.rng.below(100) };
            self.write_entry(thread, *address, value);
        }
    }

    fn clean_leaves(&mut self, thread: u32, tree: usize, leaves: &[(u64, Entry)]) {
        self.dsb_stores(thread);
        let stage = self.trees[tree].stage;
        if self.rng.chance(25) {
            let op = self.all_of(stage);
            self.tlbi(thread, op);
            return self.dsb_full(thread);
        }
        for (_, entry) in leaves {
            let inside = self.rng.below(1 << (39 - 9 * entry.level)) & !0xfff;
            let input = entry.input + if self.rng.chance(30) { inside } else { 0 };
            let op = match (stage, entry.level) {
                (1, 3) => self.rng.pick(&[TlbiOp::Vae2is, TlbiOp::Vale2is]),
                (1, _) => TlbiOp::Vae2is,
                (_, 3) if self.rng.chance(10) => TlbiOp::Ipas2le1is,
                _ => TlbiOp::Ipas2e1is,
            };
            if self.rng.chance(15) {
                self.tlbi_range(thread, op, input, entry.level);
                continue;
            }
            self.tlbi_address(thread, op, input, entry.level);
        }
        if stage == 2 {
            self.dsb_full(thread);
            self.tlbi(thread, TlbiOp::Vmalle1is);
        }
        self.dsb_full(thread);
    }

    /// A TLBI that reaches table entries of the thread's current tree.
    fn all_of(&mut self, stage: u8) -> TlbiOp {
        if stage == 1 { TlbiOp::Alle2is } else { self.rng.pick(&[TlbiOp::Vmalls12e1is, TlbiOp::Alle1is]) }
    }

    fn break_table(&mut self, thread: u32, tree: usize, address: u64, entry: Entry) {
        self.write_entry(thread, address, 0);
        self.dsb_stores(thread);
        let op = self.all_of(self.trees[tree].stage);
        self.tlbi(thread, op);
        self.dsb_full(thread);
        self.trees[tree].entries.remove(&address);
        self.drop_table(thread, tree, entry.next());
        if self.rng.chance(60) {
            let is_table = self.rng.chance(50) || entry.level == 0;
            let value = if is_table { self.linked(thread) } else { self.leaf_value(entry.level) };
            self.write_entry(thread, address, value);
            self.trees[tree].entries.insert(address, Entry { value, ..entry });
        }
    }

    /// Forgets a table that is linked no more, and those below.
    fn drop_table(&mut self, thread: u32, tree: usize, page: u64) {
        let inside: Vec<_> = self.trees[tree].entries.range(page..page + PAGE).map(|(at, e)| (*at, *e)).collect();
        for (address, entry) in inside {
            self.trees[tree].entries.remove(&address);
            if entry.is_table() {
                self.drop_table(thread, tree, entry.next());
            }
        }
        self.recycle(thread, page);
    }

    /// A change of a live leaf without break-before-make.
    fn change(&mut self, thread: u32, tree: usize) {
        let Some((address, entry)) = self.any_entry(tree, |entry| !entry.is_table()) else { return };
        let value = match self.is_common || self.rng.chance(70) {
            true => entry.value ^ self.rng.below(16) << 55,
            // A new place, with the access flag as it was or not.
            false => entry.value ^ (1 << 40 | self.rng.below(2) << 10),
        };
        self.write_entry(thread, address, value);
        self.trees[tree].entries.insert(address, Entry { value, ..entry });
    }

    /// An entry that its thread changes without the lock.
    fn thread_owned(&mut self, thread: u32, tree: usize) {
        self.make_current(thread, tree);
        let Some((address, entry)) = self.any_entry(tree, |entry| entry.level == 3) else { return };
        self.hint(thread, HintKind::SetPteThreadOwner, address, u64::from(thread));
        let leaves = [(address, entry)];
        self.invalidate(thread, &leaves);
        self.clean_leaves(thread, tree, &leaves);
        let value = self.leaf_value(3);
        self.write_entry(thread, address, value);
        self.trees[tree].entries.insert(address, Entry { value, ..entry });
        self.hint(thread, HintKind::SetPteThreadOwner, address, NO_THREAD);
    }

    /// A tree is given up: no thread uses it, it is released, its pages are cleared.
    fn release(&mut self, thread: u32, tree: usize) {
        let Tree { stage, base, .. } = self.trees[tree];
        let Some(other) = self.trees.iter().position(|t| t.stage == stage && t.base != base) else { return };
        let users: Vec<_> = self.current.iter().filter(|(_, b)| **b == base).map(|(key, _)| key.0).collect();
        for user in users {
            self.make_current(user, other);
        }
        self.hint(thread, HintKind::ReleaseTable, base, 0);
        self.drop_table(thread, tree, base);
        self.spare.pop();
        self.trees.remove(tree);
    }

    /// Steps that do not concern any tree.
    fn aside(&mut self, thread: u32, tree: usize) {
        match self.rng.below(5) {
            0 => {
                let page = self.zero_page(thread);
                let owner = self.trees[tree].base;
                let offset = 8 * self.rng.below(3);
                self.hint(thread, HintKind::SetOwnerRoot, page + offset, owner);
                self.spare.push(page);
            }
            1 => {
                let Some((address, entry)) = self.any_entry(tree, |_| true) else { return };
                self.emit(thread, Transition::MemRead { address, value: entry.value });
            }
            2 => {
                let page = self.new_pages(1);
                let size = 8 * (1 + self.rng.below(600));
                self.emit(thread, Transition::MemInit { address: page, size });
                self.store(thread, page, 0x1234);
                self.next_page += PAGE;
            }
            3 => {
                let page = self.zero_page(thread);
                let value = self.rng.pick(&[0, 1, 0x80, 0xff]);
                // Aligned to words, not pages: the reference asserts.
                let size = if self.is_common || self.rng.chance(80) { PAGE } else { 64 };
                self.emit(thread, Transition::MemSet { address: page, size, value });
            }
            _ => {
                let lock = self.new_pages(1);
                self.lock(thread, lock);
                self.unlock(thread, lock);
            }
        }
    }
}

/// True when a step's meaning does not depend on other trees' operations.
fn is_local(step: &Step) -> bool {
    !matches!(step.action, Transition::SysregWrite { .. } | Transition::MemInit { .. } | Transition::MemFree { .. })
}
