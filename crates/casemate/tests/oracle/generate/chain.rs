//! The parts of recipes: a chain of tables, and the records about it.

use anytrace_casemate::{Barrier, Domain, HintKind, MemoryOrder, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::world::PAGE;
use crate::oracle::step::Step;

/// A tree of one chain: root, three tables below, a page mapped at the bottom.
pub(super) struct Recipe<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) steps: Vec<Step>,
    pub(super) base: u64,
    /// Slot of the chain's entry in each of the four tables.
    pub(super) slots: [u64; 4],
    pub(super) thread: u32,
}

impl<'a> Recipe<'a> {
    /// Addresses and the first thread are random.
    pub(super) fn new(rng: &'a mut Rng) -> Self {
        let base = (0x100 + rng.below(1 << 24)) * PAGE;
        let slots = [rng.below(512), rng.below(512), rng.below(512), rng.below(512)];
        let thread = u32::try_from(rng.below(4)).unwrap_or(0);
        Self { rng, steps: Vec::new(), base, slots, thread }
    }

    pub(super) fn by(&mut self, thread: u32, action: Transition) {
        self.steps.push(Step { id: 0, thread, action });
    }

    pub(super) fn act(&mut self, action: Transition) {
        self.by(self.thread, action);
    }

    pub(super) fn page(&self, number: u64) -> u64 {
        self.base + number * PAGE
    }

    /// Address of the chain's entry of a level.
    pub(super) fn entry(&self, level: u64) -> u64 {
        let slot = self.slots.get(usize::try_from(level).unwrap_or(0)).copied().unwrap_or(0);
        self.page(level) + 8 * slot
    }

    pub(super) fn input(&self) -> u64 {
        self.slots.iter().zip([39, 30, 21, 12]).map(|(slot, shift)| slot << shift).sum()
    }

    pub(super) fn lock_address(&self) -> u64 {
        self.page(100)
    }

    pub(super) fn init(&mut self, page: u64, pages: u64) {
        self.act(Transition::MemInit { address: page, size: pages * PAGE });
    }

    pub(super) fn write(&mut self, address: u64, value: u64) {
        self.act(Transition::MemWrite { order: MemoryOrder::Release, address, value });
    }

    pub(super) fn sysreg(&mut self, register: Sysreg, value: u64) {
        self.act(Transition::SysregWrite { register, value });
    }

    pub(super) fn vttbr(&mut self, base: u64, id: u64) {
        self.sysreg(Sysreg::VttbrEl2, id << 48 | base);
    }

    pub(super) fn hint(&mut self, hint: HintKind, location: u64, value: u64) {
        self.act(Transition::Hint { hint, location, value });
    }

    pub(super) fn dsb(&mut self) {
        let domain = if self.rng.chance(20) { Domain::Sy } else { Domain::Ish };
        self.act(Transition::Barrier(Barrier::Dsb(domain)));
    }

    pub(super) fn tlbi(&mut self, op: TlbiOp) {
        self.act(Transition::Tlbi { op, operand: Operand::None });
    }

    pub(super) fn lock(&mut self) {
        let address = self.lock_address();
        self.act(Transition::Lock { address });
    }

    /// The four tables, linked and not registered.
    pub(super) fn chain(&mut self) {
        self.init(self.base, 8);
        for level in 0..3 {
            let (entry, next) = (self.entry(level), self.page(level + 1));
            self.write(entry, next | 3);
        }
        let leaf = self.rng.below(1 << 20) << 12 | 3;
        self.write(self.entry(3), leaf);
        self.hint(HintKind::SetRootLock, self.base, self.lock_address());
    }

    pub(super) fn live_chain(&mut self) {
        self.chain();
        self.vttbr(self.base, 1);
        self.lock();
    }

    pub(super) fn clean_all(&mut self) {
        self.dsb();
        self.tlbi(TlbiOp::Vmalls12e1is);
        self.dsb();
    }

    pub(super) fn other(&self) -> u32 {
        (self.thread + 1) % 4
    }
}
