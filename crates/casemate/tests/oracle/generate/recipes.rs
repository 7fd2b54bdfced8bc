//! Short traces that each lead to one rare message (where its rule set has it), with random addresses and detours.

use anytrace_casemate::{Barrier, Domain, HintKind, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::chain::Recipe;
use super::world::{NO_THREAD, PAGE};
use crate::oracle::step::Step;

type Make = fn(&mut Recipe<'_>);

const RECIPES: &[Make] = &[
    |r| r.many_roots(),
    |r| r.many_locks(),
    |r| r.many_associations(),
    |r| r.geometry(&[0x4010, 0x8010]),
    |r| r.geometry(&[0xc010]),
    |r| r.geometry(&[21, 22, 23, 24, 30, 31, 32, 33, 39, 40, 41, 42]),
    |r| r.geometry(&[0, 12, 15, 44, 48, 63]),
    |r| r.other_geometry(),
    |r| r.enabled_without_base(),
    |r| r.unmarked_twice(),
    |r| r.released_child(),
    |r| r.released_unclean(),
    |r| r.released_in_use(),
    |r| r.frozen_owned(),
    |r| r.owned_by_another(),
    |r| r.unclean_child(),
    |r| r.frozen_write(),
    |r| r.bad_owner(),
    |r| r.bad_root(),
    |r| r.mem_set_edges(),
    |r| r.concatenated_use(),
    |r| r.by_id(),
    |r| r.hinted_level(),
    |r| r.live_change(),
    |r| r.live_attributes(),
    |r| r.live_attributes(),
    |r| r.behind_an_owned_entry(),
    |r| r.owner_given_later(),
    |r| r.current_across_stages(),
    |r| r.slot_of_the_released(),
    |r| r.local_without_lock(),
    |r| r.owner_left_behind(),
    |r| r.uninitialised(),
];

/// One of the recipes.
pub(crate) fn recipe(rng: &mut Rng) -> Vec<Step> {
    let make = rng.pick(RECIPES);
    let mut recipe = Recipe::new(rng);
    make(&mut recipe);
    recipe.steps
}

impl Recipe<'_> {
    fn many_roots(&mut self) {
        for i in 0..64 + self.rng.below(4) {
            self.init(self.page(i), 1);
            self.vttbr(self.page(i), i + 1);
        }
    }

    fn many_locks(&mut self) {
        for i in 0..64 + self.rng.below(4) {
            let address = self.page(i);
            self.act(if i % 3 == 0 { Transition::Trylock { address } } else { Transition::Lock { address } });
        }
    }

    fn many_associations(&mut self) {
        for i in 0..64 + self.rng.below(4) {
            self.hint(HintKind::SetRootLock, self.page(i), self.page(i + 100));
        }
    }

    fn geometry(&mut self, values: &[u64]) {
        let value = self.rng.pick(values);
        let is_one = self.rng.chance(40);
        self.init(self.base, 17);
        let (size, base) = match is_one {
            true => (Sysreg::TcrEl2, Sysreg::Ttbr0El2),
            false => (Sysreg::VtcrEl2, Sysreg::VttbrEl2),
        };
        self.sysreg(size, value);
        self.sysreg(base, self.base);
    }

    /// A thread whose registers specify another geometry makes the entry that was broken.
    fn other_geometry(&mut self) {
        self.live_chain();
        let level = self.rng.pick(&[0, 1, 2, 2, 2]);
        self.write(self.entry(level), 0);
        self.clean_all();
        let t0sz = self.rng.pick(&[34, 34, 34, 25, 17, 24]);
        self.sysreg(Sysreg::VtcrEl2, t0sz);
        self.write(self.entry(level), self.page(7) | 3);
        self.sysreg(Sysreg::VtcrEl2, 16);
    }

    fn enabled_without_base(&mut self) {
        let register = self.rng.pick(&[Sysreg::HcrEl2, Sysreg::SctlrEl2]);
        let off = self.rng.below(4) << 1;
        self.sysreg(register, off);
        self.sysreg(register, off | 1);
        self.sysreg(register, 0);
    }

    /// A table that one thread unlinks only in part, because an entry in it belongs to another.
    fn unmarked_twice(&mut self) {
        let (one, two) = (self.thread, self.other());
        self.live_chain();
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), u64::from(one));
        // Another root, so that no thread uses the first one.
        self.init(self.page(20), 1);
        self.vttbr(self.page(20), 9);
        self.hint(HintKind::ReleaseTable, self.base, 0);
        self.thread = two;
        self.vttbr(self.base, 3);
        self.vttbr(self.page(20), 9);
        self.thread = self.rng.pick(&[one, one, one, two]);
        self.hint(HintKind::ReleaseTable, self.base, 0);
        self.vttbr(self.base, 4);
    }

    fn released_child(&mut self) {
        self.live_chain();
        let child = self.base + PAGE * (1 + self.rng.below(3));
        let location = self.rng.pick(&[child, self.base + 8]);
        self.hint(HintKind::ReleaseTable, location, 0);
    }

    fn released_unclean(&mut self) {
        self.live_chain();
        let level = self.rng.below(4);
        self.write(self.entry(level), 0);
        if self.rng.chance(30) {
            self.clean_all();
        }
        self.hint(HintKind::ReleaseTable, self.base, 0);
    }

    fn released_in_use(&mut self) {
        self.live_chain();
        self.init(self.page(20), 1);
        if self.rng.chance(50) {
            let (register, value) = (Sysreg::VttbrEl2, 1 << 48 | self.base);
            self.by(self.other(), Transition::SysregWrite { register, value });
            self.vttbr(self.page(20), 2);
        }
        self.hint(HintKind::ReleaseTable, self.base, 0);
    }

    fn frozen_owned(&mut self) {
        self.live_chain();
        let owner =
            self.rng.pick(&[u64::from(self.thread), u64::from(self.thread), u64::from(self.other()), NO_THREAD]);
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), owner);
        let level = self.rng.below(3);
        self.write(self.entry(level), 0);
        self.clean_all();
        self.write(self.entry(level), self.page(7) | 3);
    }

    fn owned_by_another(&mut self) {
        self.live_chain();
        let (mine, other) = (self.thread, self.other());
        let owner = if self.rng.chance(50) { mine } else { other };
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), u64::from(owner));
        let address = self.lock_address();
        self.act(Transition::Unlock { address });
        self.write(self.entry(3), 0);
        self.dsb();
        self.thread = self.rng.pick(&[mine, other]);
        self.tlbi(TlbiOp::Alle1is);
        self.dsb();
        self.write(self.entry(3), 0x7003);
    }

    fn unclean_child(&mut self) {
        self.live_chain();
        let level = 1 + self.rng.below(3);
        self.write(self.entry(level), 0);
        if self.rng.chance(50) {
            self.dsb();
        }
        self.write(self.entry(level - 1), 0);
        self.clean_all();
        self.write(self.entry(level - 1), self.page(7) | 3);
    }

    fn frozen_write(&mut self) {
        self.live_chain();
        let level = self.rng.below(3);
        self.write(self.entry(level), 0);
        let below = level + 1 + self.rng.below(3 - level);
        let free = self.page(below) + 8 * self.rng.below(512);
        let address = self.rng.pick(&[free, self.entry(below)]);
        let value = self.rng.pick(&[0, 2, 0x7003]);
        self.write(address, value);
        self.clean_all();
        self.write(address, 0x9003);
    }

    fn bad_owner(&mut self) {
        self.live_chain();
        let level = self.rng.below(4);
        let location = self.rng.pick(&[self.entry(level), self.page(7), self.page(50), self.entry(3)]);
        let hint = if self.rng.chance(70) { HintKind::SetPteThreadOwner } else { HintKind::SetOwnerRoot };
        let offset = self.rng.below(2) * 8;
        self.hint(hint, location + offset, self.base);
    }

    fn bad_root(&mut self) {
        self.chain();
        match self.rng.below(6) {
            0 => self.vttbr(self.base + 0x800, 1),
            1 => self.sysreg(Sysreg::Ttbr0El2, 1 << 48 | self.base),
            2 => {
                self.vttbr(self.base, 1);
                self.vttbr(self.base, 2);
            }
            3 => {
                self.vttbr(self.base, 1);
                self.vttbr(self.page(7), 1);
            }
            4 => {
                // One root for both stages, or one id.
                let id = self.rng.below(2);
                self.vttbr(self.base, id);
                let base = self.rng.pick(&[self.base, self.page(7)]);
                self.sysreg(Sysreg::Ttbr0El2, base);
            }
            _ => {
                self.write(self.page(3), 1);
                self.vttbr(self.base, 1);
            }
        }
    }

    fn mem_set_edges(&mut self) {
        self.live_chain();
        let (page, value) = (self.page(7), self.rng.below(256));
        let (address, size) = self.rng.pick(&[
            (page + 8, PAGE),
            (page, PAGE / 2),
            (page, PAGE),
            (page, 0),
            (self.page(3), PAGE),
            (self.entry(3), 8),
            (self.page(60), PAGE),
        ]);
        self.act(Transition::MemSet { address, size, value });
        self.write(page, 0);
    }

    /// The sound rules support concatenated tables: a full round of break-before-make in the second table.
    fn concatenated_use(&mut self) {
        self.sysreg(Sysreg::VtcrEl2, 24);
        self.init(self.base, 4);
        self.hint(HintKind::SetRootLock, self.base, self.lock_address());
        let entry = self.page(1) + 8 * self.rng.below(512);
        let input = (1 << 39) + (entry - self.page(1)) / 8 * (1 << 30);
        let is_table = self.rng.chance(50);
        self.write(entry, if is_table { self.page(2) | 3 } else { 0x4000_0001 });
        self.vttbr(self.base, 1);
        self.lock();
        self.write(entry, 0);
        if self.rng.chance(40) {
            self.clean_all();
        } else {
            let wrong = self.rng.chance(30);
            let page = if wrong { input - (1 << 39) } else { input } >> 12;
            self.dsb();
            self.act(Transition::Tlbi { op: TlbiOp::Ipas2e1is, operand: Operand::Value(page) });
            self.dsb();
            self.tlbi(TlbiOp::Vmalle1is);
            self.dsb();
        }
        self.write(entry, self.page(3) | 3);
    }

    /// TLBIs by VMID while another VMID is current, or none.
    fn by_id(&mut self) {
        self.live_chain();
        self.init(self.page(20), 1);
        let level = self.rng.below(4);
        self.write(self.entry(level), 0);
        self.dsb();
        match self.rng.below(4) {
            0 => {
                self.vttbr(self.page(20), 2);
                self.tlbi(TlbiOp::Vmalls12e1is);
                self.vttbr(self.base, 1);
            }
            1 => self.tlbi(TlbiOp::Vmalls12e1is),
            2 => {
                self.vttbr(self.page(20), 2);
                let page = self.input() >> 12;
                self.act(Transition::Tlbi { op: TlbiOp::Ipas2e1is, operand: Operand::Value(page) });
                self.dsb();
                self.tlbi(TlbiOp::Vmalle1is);
            }
            _ => {
                // A thread that never had a root, with the lock handed over.
                let (mine, other) = (self.thread, self.other());
                let address = self.lock_address();
                self.dsb();
                self.tlbi(TlbiOp::Alle1is);
                self.dsb();
                self.act(Transition::Unlock { address });
                self.thread = other;
                self.lock();
                let unused = self.page(level) + (self.entry(level) - self.page(level) + 8) % PAGE;
                let value = if level == 3 { 0x8003 } else { self.page(6) | 3 };
                self.write(unused, value);
                self.write(unused, 0);
                self.dsb();
                self.tlbi(TlbiOp::Vmalls12e1is);
                self.dsb();
                self.write(unused, value);
                self.thread = mine;
            }
        }
        self.dsb();
        self.write(self.entry(level), 0);
    }

    /// A page or block unmapped with a level hint or ASID, right or wrong.
    fn hinted_level(&mut self) {
        self.chain();
        let level = self.rng.pick(&[3, 3, 2, 1]);
        if level < 3 {
            let output = self.rng.below(1 << 10) << 30;
            self.write(self.entry(level), output | 1);
        }
        let is_one = self.rng.chance(50);
        let register = if is_one { Sysreg::Ttbr0El2 } else { Sysreg::VttbrEl2 };
        self.sysreg(register, self.base);
        self.lock();
        self.write(self.entry(level), 0);
        self.dsb();
        let any = self.rng.below(16);
        let ttl = self.rng.pick(&[0, 4 | level, any]);
        let asid = if self.rng.chance(40) { 1 + self.rng.below(3) } else { 0 };
        let value = self.input() >> 12 | ttl << 44 | asid << 48;
        let op = match is_one {
            true => self.rng.pick(&[TlbiOp::Vae2is, TlbiOp::Vale2is]),
            false => self.rng.pick(&[TlbiOp::Ipas2e1is, TlbiOp::Ipas2le1is]),
        };
        self.act(Transition::Tlbi { op, operand: Operand::Value(value) });
        self.dsb();
        if !is_one {
            self.tlbi(TlbiOp::Vmalle1is);
            self.dsb();
        }
        self.write(self.entry(level), if level == 3 { 0x5003 } else { 0x8000_0001 });
    }

    /// An entry of another thread hides those behind it from walks.
    fn behind_an_owned_entry(&mut self) {
        self.live_chain();
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), u64::from(self.other()));
        let slot = self.rng.below(512);
        let level = self.rng.below(3);
        self.write(self.entry(level), 0);
        self.write(self.page(3) + 8 * slot, 0x6003);
    }

    /// A live entry changes: other place, access flag, software bits, or nothing.
    fn live_change(&mut self) {
        self.live_chain();
        let level = self.rng.below(4);
        let old = if level == 3 { 0x7003 | self.rng.below(2) << 10 } else { self.page(level + 1) | 3 };
        if level == 3 {
            self.write(self.entry(3), 0);
            self.clean_all();
            self.write(self.entry(3), old);
        }
        let change = self.rng.pick(&[0, 0x1000, 0x400, 0x1400, 1 << 55, 1 << 54, 1 << 59, 2]);
        self.dsb();
        self.write(self.entry(level), old ^ change);
    }

    /// Fields of a live entry change in place, one after the other, and sometimes fields that must not.
    fn live_attributes(&mut self) {
        let is_stage_one = self.rng.chance(50);
        let (base, control) = match is_stage_one {
            true => (Sysreg::Ttbr0El2, Sysreg::TcrEl2),
            false => (Sysreg::VttbrEl2, Sysreg::VtcrEl2),
        };
        self.chain();
        self.sysreg(base, self.base);
        self.lock();
        if self.rng.chance(30) {
            let hardware = self.rng.pick(&[1 << 25, 0xf << 25, 0]);
            self.sysreg(control, hardware | 16);
            let mair = self.rng.pick(&[0x4444, 0xff44_ff44, 0xff04]);
            self.sysreg(Sysreg::MairEl2, mair);
        }
        let level = self.rng.pick(&[3, 3, 3, 2, 1]);
        let mut value = if level == 3 { 0x7403 } else { self.page(level + 1) | 3 };
        if level == 3 {
            self.write(self.entry(3), 0);
            self.dsb();
            self.tlbi(if is_stage_one { TlbiOp::Alle2is } else { TlbiOp::Alle1is });
            self.dsb();
            self.write(self.entry(3), value);
        }
        for _ in 0..1 + self.rng.below(4) {
            let low = [0x400, 0x80, 0xc0, 0x400];
            let bit = 1 << (2 + self.rng.below(62));
            value ^= if self.rng.chance(75) { self.rng.pick(&low) } else { bit };
            self.dsb();
            self.write(self.entry(level), value);
        }
    }

    /// An entry becomes a thread's own after it was invalidated under the lock.
    fn owner_given_later(&mut self) {
        self.live_chain();
        let (mine, other) = (self.thread, self.other());
        self.write(self.entry(3), 0);
        let owner = self.rng.pick(&[mine, other, other]);
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), u64::from(owner));
        self.dsb();
        self.tlbi(TlbiOp::Alle1is);
        self.dsb();
        if self.rng.chance(60) {
            self.hint(HintKind::SetPteThreadOwner, self.entry(3), NO_THREAD);
        }
        self.thread = self.rng.pick(&[mine, mine, other]);
        self.write(self.entry(3), 0x6003);
    }

    /// A base that both registers name: whose current root is it then?
    fn current_across_stages(&mut self) {
        self.chain();
        self.init(self.page(20), 1);
        self.vttbr(self.base, 0);
        if self.rng.chance(30) {
            self.vttbr(self.page(20), 2);
        }
        self.sysreg(Sysreg::Ttbr0El2, self.base);
        if self.rng.chance(70) {
            self.vttbr(self.page(20), 2);
        }
        if self.rng.chance(50) {
            self.hint(HintKind::ReleaseTable, self.base, 0);
        } else {
            self.lock();
            self.write(self.entry(3), 0);
            self.clean_all();
            self.write(self.entry(3), 0x6003);
        }
    }

    /// By VMID, from a thread that has none, after the first slot was given up or taken again.
    fn slot_of_the_released(&mut self) {
        let mine = self.thread;
        self.init(self.page(20), 2);
        let id = 1 + self.rng_id();
        self.vttbr(self.page(20), id);
        self.chain();
        self.vttbr(self.base, 3);
        self.lock();
        if self.rng.chance(60) {
            self.hint(HintKind::ReleaseTable, self.page(20), 0);
            if self.rng.chance(50) {
                let id = 4 + self.rng_id();
                self.vttbr(self.page(21), id);
            }
        }
        let address = self.lock_address();
        self.act(Transition::Unlock { address });
        self.thread = self.other();
        self.lock();
        self.write(self.entry(3), 0);
        self.clean_all();
        self.write(self.entry(3), 0x6003);
        self.thread = mine;
    }

    fn rng_id(&mut self) -> u64 {
        self.rng.below(3)
    }

    /// Barriers and TLBIs of one core by a thread that may clean nothing, then perhaps by one that may.
    fn local_without_lock(&mut self) {
        self.live_chain();
        let mine = self.thread;
        self.write(self.entry(3), 0);
        let other = self.other();
        self.thread = self.rng.pick(&[mine, other, other]);
        if self.rng.chance(50) {
            self.act(Transition::Barrier(Barrier::Dsb(Domain::Nsh)));
        }
        if self.rng.chance(50) {
            let op = self.rng.pick(&[TlbiOp::Vmalle1, TlbiOp::Alle1, TlbiOp::Vmalls12e1, TlbiOp::Alle2]);
            self.tlbi(op);
        }
        self.thread = mine;
        self.clean_all();
        self.write(self.entry(3), 0x6003);
    }

    /// Memory of a released tree is used again, with or without having been given back.
    fn owner_left_behind(&mut self) {
        self.live_chain();
        let (mine, other) = (self.thread, self.other());
        self.hint(HintKind::SetPteThreadOwner, self.entry(3), u64::from(mine));
        self.init(self.page(20), 1);
        self.vttbr(self.page(20), 9);
        self.hint(HintKind::ReleaseTable, self.base, 0);
        if self.rng.chance(60) {
            let (address, size) = (self.page(3), PAGE);
            self.act(Transition::MemSet { address, size, value: 0 });
            self.act(Transition::MemFree { address, size });
            self.act(Transition::MemInit { address, size });
        }
        self.hint(HintKind::SetRootLock, self.base, self.lock_address());
        let address = self.lock_address();
        self.act(Transition::Unlock { address });
        self.thread = self.rng.pick(&[mine, other, other]);
        self.vttbr(self.base, 5);
        self.lock();
        self.write(self.page(3) + 8 * 511, 0x7003);
    }

    /// Accesses that `-I` permits.
    fn uninitialised(&mut self) {
        self.chain();
        let fresh = self.page(60);
        match self.rng.below(5) {
            0 => self.write(fresh, 0x1003),
            1 => self.hint(HintKind::ReleaseTable, fresh, 0),
            2 => self.hint(HintKind::SetPteThreadOwner, fresh, 1),
            3 => self.act(Transition::Unlock { address: fresh }),
            _ => self.write(self.entry(3) + 0x10_0000, 0),
        }
        if self.rng.chance(50) {
            self.init(fresh, 1);
        }
        self.vttbr(fresh, 4);
        self.vttbr(self.base, 1);
    }
}
