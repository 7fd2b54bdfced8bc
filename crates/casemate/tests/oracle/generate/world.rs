//! The state of a scenario's hypervisor, and the records it makes.

use std::collections::BTreeMap;

use anytrace_casemate::{Barrier, Domain, HintKind, MemoryOrder, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use crate::oracle::step::Step;

/// Bytes in a page.
pub(crate) const PAGE: u64 = 4096;
/// `set_pte_thread_owner` with this value removes the owner.
pub(crate) const NO_THREAD: u64 = 0xffff_ffff;

/// A live entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Its value.
    pub(crate) value: u64,
    /// Level of its table.
    pub(crate) level: u64,
    /// First input address.
    pub(crate) input: u64,
}

impl Entry {
    /// Does it point to a table?
    pub(crate) fn is_table(&self) -> bool {
        self.level < 3 && self.value & 3 == 3
    }

    /// The table it points to.
    pub(crate) fn next(&self) -> u64 {
        self.value & 0xffff_ffff_f000
    }
}

/// A tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    /// Stage, 1 or 2.
    pub(crate) stage: u8,
    /// Its first page.
    pub(crate) base: u64,
    /// VMID; 0 for stage 1.
    pub(crate) id: u64,
    /// Its lock.
    pub(crate) lock: u64,
    /// Level of its first table.
    pub(crate) level: u64,
    /// Live entries by address.
    pub(crate) entries: BTreeMap<u64, Entry>,
}

/// The state of the entire scenario.
pub(crate) struct World<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) steps: Vec<Step>,
    pub(crate) threads: u64,
    pub(crate) trees: Vec<Tree>,
    /// Base of each thread's current tree by stage.
    pub(crate) current: BTreeMap<(u32, u8), u64>,
    /// Initialized, zero, in no tree.
    pub(crate) spare: Vec<u64>,
    pub(crate) next_page: u64,
    pub(crate) next_id: u64,
    /// Whether the next plain write is authorized.
    pub(crate) is_authorised: bool,
    /// Size of the input addresses: T0SZ of both stages.
    pub(crate) t0sz: u64,
    /// Only what both rule sets allow.
    pub(crate) is_common: bool,
}

impl World<'_> {
    pub(crate) fn emit(&mut self, thread: u32, action: Transition) {
        self.steps.push(Step { id: 0, thread, action });
    }

    pub(crate) fn thread(&mut self) -> u32 {
        u32::try_from(self.rng.below(self.threads)).unwrap_or(0)
    }

    /// A page that was never used.
    pub(crate) fn new_pages(&mut self, count: u64) -> u64 {
        let page = self.next_page;
        self.next_page += count * PAGE;
        if self.rng.chance(10) {
            self.next_page += PAGE * self.rng.below(50);
        }
        page
    }

    /// A zero page that is in no tree.
    pub(crate) fn zero_page(&mut self, thread: u32) -> u64 {
        if let Some(page) = self.spare.pop() {
            return page;
        }
        let page = self.new_pages(1);
        self.init(thread, page, 1);
        page
    }

    pub(crate) fn init(&mut self, thread: u32, page: u64, pages: u64) {
        self.emit(thread, Transition::MemInit { address: page, size: pages * PAGE });
    }

    /// The page has no relevant contents: it is cleared, and kept or freed.
    pub(crate) fn recycle(&mut self, thread: u32, page: u64) {
        self.emit(thread, Transition::MemSet { address: page, size: PAGE, value: 0 });
        if self.rng.chance(40) {
            self.emit(thread, Transition::MemFree { address: page, size: PAGE });
            self.init(thread, page, 1);
        }
        self.spare.push(page);
    }

    pub(crate) fn hint(&mut self, thread: u32, hint: HintKind, location: u64, value: u64) {
        self.emit(thread, Transition::Hint { hint, location, value });
    }

    pub(crate) fn sysreg(&mut self, thread: u32, register: Sysreg, value: u64) {
        self.emit(thread, Transition::SysregWrite { register, value });
    }

    pub(crate) fn dsb(&mut self, thread: u32, domain: Domain) {
        self.emit(thread, Transition::Barrier(Barrier::Dsb(domain)));
        self.is_authorised = true;
    }

    /// A DSB that completes TLBIs.
    pub(crate) fn dsb_full(&mut self, thread: u32) {
        let domain = if self.rng.chance(10) { Domain::Sy } else { Domain::Ish };
        self.dsb(thread, domain);
    }

    /// A DSB that orders stores.
    pub(crate) fn dsb_stores(&mut self, thread: u32) {
        if self.rng.chance(30) { self.dsb(thread, Domain::Ishst) } else { self.dsb_full(thread) }
    }

    pub(crate) fn tlbi(&mut self, thread: u32, op: TlbiOp) {
        self.emit(thread, Transition::Tlbi { op, operand: Operand::None });
    }

    /// A TLBI by address, with or without a right level hint.
    pub(crate) fn tlbi_address(&mut self, thread: u32, op: TlbiOp, input: u64, level: u64) {
        let page = input >> 12;
        let operand = match self.rng.below(10) {
            0 | 1 => Operand::Value(page | (4 | level) << 44),
            2 => Operand::AddressLevel { address: page, level },
            3 => Operand::AddressLevel { address: page, level: 0 },
            _ => Operand::Value(page),
        };
        self.emit(thread, Transition::Tlbi { op, operand });
    }

    /// The same by a range that contains the address.
    pub(crate) fn tlbi_range(&mut self, thread: u32, op: TlbiOp, input: u64, level: u64) {
        let op = TlbiOp::from_name(&format!("r{}", op.name())).unwrap_or(op);
        let (scale, number) = (self.rng.below(4), self.rng.below(32));
        let pages = (number + 1) << (5 * scale + 1);
        let mut first = (input >> 12).saturating_sub(self.rng.below(pages));
        let mut hint = 0;
        if self.rng.chance(20) {
            // With a level, the range begins where an entry of the level does.
            (first, hint) = (input >> 12 & !((1 << (27 - 9 * level)) - 1), level);
        }
        let value = 1 << 46 | scale << 44 | number << 39 | hint << 37 | first;
        let is_inside = (first..first + pages).contains(&(input >> 12));
        let operand = if is_inside { value } else { 1 << 46 | input >> 12 };
        self.emit(thread, Transition::Tlbi { op, operand: Operand::Value(operand) });
    }

    /// A write to an entry under its lock: what the lock's authorization allows.
    pub(crate) fn write_entry(&mut self, thread: u32, address: u64, value: u64) {
        let wants_plain = self.rng.chance(50);
        if wants_plain && !self.is_authorised {
            self.dsb_full(thread);
        }
        let order = if wants_plain { MemoryOrder::Plain } else { MemoryOrder::Release };
        self.emit(thread, Transition::MemWrite { order, address, value });
        self.is_authorised = false;
    }

    /// A write that no rule restricts.
    pub(crate) fn store(&mut self, thread: u32, address: u64, value: u64) {
        let order = if self.rng.chance(80) { MemoryOrder::Plain } else { MemoryOrder::Release };
        self.emit(thread, Transition::MemWrite { order, address, value });
    }

    pub(crate) fn lock(&mut self, thread: u32, address: u64) {
        let action = match self.rng.chance(25) {
            true => Transition::Trylock { address },
            false => Transition::Lock { address },
        };
        self.emit(thread, action);
        self.is_authorised = true;
    }

    pub(crate) fn unlock(&mut self, thread: u32, address: u64) {
        self.emit(thread, Transition::Unlock { address });
    }

    /// The tree becomes the thread's current one, and is registered if it was not.
    pub(crate) fn make_current(&mut self, thread: u32, tree: usize) {
        let Tree { stage, base, id, .. } = self.trees[tree];
        if self.current.insert((thread, stage), base) == Some(base) && self.rng.chance(90) {
            return;
        }
        let value = id << 48 | base | self.rng.below(2);
        let register = if stage == 1 { Sysreg::Ttbr0El2 } else { Sysreg::VttbrEl2 };
        self.sysreg(thread, register, value);
        if self.rng.chance(20) {
            self.emit(thread, Transition::Barrier(Barrier::Isb));
        }
    }

    /// A leaf for a level.
    pub(crate) fn leaf_value(&mut self, level: u64) -> u64 {
        let size = 39 - 9 * level;
        let output = (1 + self.rng.below(60)) << size & 0xffff_ffff_f000;
        let flag = if self.rng.chance(60) { 1 << 10 } else { 0 };
        let attributes = self.rng.pick(&[0, 0x3c, 0xfc, 0x7c, 1 << 7, 0x55 << 2]);
        let high = self.rng.pick(&[0, 0, 1 << 54, 1 << 55, 3 << 57]);
        output | flag | attributes | high | if level == 3 { 3 } else { 1 }
    }
}
