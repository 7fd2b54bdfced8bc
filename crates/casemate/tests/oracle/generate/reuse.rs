//! Small trees that share few VMIDs and ASIDs: with the TLBIs that a second use needs, with wrong ones, and without.

use anytrace_casemate::{Barrier, Domain, HintKind, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::chain::Recipe;
use super::world::PAGE;
use crate::oracle::step::Step;

/// Trees of one table of level 1, each for one kind of base.
const REGISTERS: [Sysreg; 6] =
    [Sysreg::VttbrEl2, Sysreg::VttbrEl2, Sysreg::Ttbr0El1, Sysreg::Ttbr0El1, Sysreg::Ttbr1El1, Sysreg::Ttbr0El2];

/// Threads use the trees by turns.
pub(super) fn reuse(rng: &mut Rng) -> Vec<Step> {
    let mut recipe = Recipe::new(rng);
    let register = recipe.rng.pick(&REGISTERS);
    let is_host = register == Sysreg::Ttbr0El2 && recipe.rng.chance(80);
    let trees = 2 + recipe.rng.below(3);
    let threads = 1 + u32::try_from(recipe.rng.below(2)).unwrap_or(0);
    for thread in 0..threads {
        recipe.thread = thread;
        recipe.registers(register, is_host);
    }
    recipe.init(recipe.base, trees);
    recipe.init(recipe.page(60), 1);
    for number in 0..trees {
        recipe.new_tree(number, register);
    }
    for _ in 0..4 + recipe.rng.below(24) {
        recipe.thread = u32::try_from(recipe.rng.below(u64::from(threads))).unwrap_or(0);
        let number = recipe.rng.below(trees);
        match recipe.rng.below(20) {
            0..8 => recipe.switch(register, number, is_host),
            8..15 => recipe.flush(register, is_host),
            15 => recipe.rewrite(number, register),
            16 => {
                let register = recipe.rng.pick(&[Sysreg::SctlrEl1, Sysreg::HcrEl2, Sysreg::TcrEl1]);
                let value = recipe.rng.below(2);
                let on = if register == Sysreg::TcrEl1 { 25 | 25 << 16 | 2 << 30 | value << 7 } else { value };
                recipe.sysreg(register, on);
            }
            17 => recipe.clear(number),
            _ => recipe.release_tree(number, register),
        }
    }
    recipe.steps
}

impl Recipe<'_> {
    fn registers(&mut self, register: Sysreg, is_host: bool) {
        let wide = if self.rng.chance(30) { 1 << 36 } else { 0 };
        match register {
            Sysreg::VttbrEl2 => self.sysreg(Sysreg::VtcrEl2, 25 | 1 << 6),
            Sysreg::Ttbr0El2 => {
                if is_host {
                    self.sysreg(Sysreg::HcrEl2, 1 << 34 | 1 << 27);
                }
                self.sysreg(Sysreg::TcrEl2, 25 | wide);
            }
            _ => {
                let a1 = self.rng.below(2) << 22;
                self.sysreg(Sysreg::TcrEl1, 25 | 25 << 16 | 2 << 30 | wide | a1);
                if self.rng.chance(40) {
                    self.sysreg(Sysreg::HcrEl2, 0);
                }
            }
        }
    }

    fn new_tree(&mut self, number: u64, register: Sysreg) {
        self.hint(HintKind::SetRootLock, self.page(number), self.lock_address() + 8 * number);
        if self.rng.chance(85) {
            self.rewrite(number, register);
        }
    }

    /// An entry under the tree's lock: a block that is global or not, for most trees not.
    fn rewrite(&mut self, number: u64, register: Sysreg) {
        let lock = self.lock_address() + 8 * number;
        self.act(Transition::Trylock { address: lock });
        let global = if register == Sysreg::VttbrEl2 || self.rng.chance(25) { 0 } else { 1 << 11 };
        let value = if self.rng.chance(80) { self.rng.below(4) << 30 | 0x401 | global } else { 0 };
        let slot = self.rng.below(2);
        self.write(self.page(number) + 8 * slot, value);
        if self.rng.chance(60) {
            self.dsb();
        }
        self.act(Transition::Unlock { address: lock });
    }

    /// Both entries are broken and cleaned.
    fn clear(&mut self, number: u64) {
        let lock = self.lock_address() + 8 * number;
        self.act(Transition::Trylock { address: lock });
        for slot in 0..2 {
            self.write(self.page(number) + 8 * slot, 0);
        }
        self.dsb();
        let op = self.rng.pick(&[TlbiOp::Alle1is, TlbiOp::Alle2is, TlbiOp::Vmalls12e1is]);
        self.tlbi(op);
        self.dsb();
        self.act(Transition::Unlock { address: lock });
    }

    fn switch(&mut self, register: Sysreg, number: u64, is_host: bool) {
        let id = match register {
            Sysreg::Ttbr0El2 if !is_host => 0,
            Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 => 1 + self.rng.below(2),
            // A root of these keeps its identifier.
            _ => 1 + number % 2,
        };
        if (is_host || matches!(register, Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1)) && self.rng.chance(60) {
            // Tables that map nothing come first.
            let reserved = if is_host { 0 } else { self.rng.below(3) };
            self.sysreg(register, reserved << 48 | self.page(60));
            if self.rng.chance(60) {
                self.flush(register, is_host);
            }
        }
        self.sysreg(register, id << 48 | self.page(number));
        if self.rng.chance(15) && register == Sysreg::Ttbr1El1 {
            self.sysreg(Sysreg::Ttbr0El1, id << 48 | self.page(50));
        }
    }

    fn flush(&mut self, register: Sysreg, is_host: bool) {
        let of_host = [TlbiOp::Alle2is, TlbiOp::Vmalle1is, TlbiOp::Aside1is, TlbiOp::Alle2, TlbiOp::Aside1];
        let of_two =
            [TlbiOp::Vmalls12e1is, TlbiOp::Vmalls12e1is, TlbiOp::Alle1is, TlbiOp::Vmalls12e1, TlbiOp::Vmalle1is];
        let of_one = [
            TlbiOp::Aside1is,
            TlbiOp::Aside1is,
            TlbiOp::Vmalle1is,
            TlbiOp::Vmalle1,
            TlbiOp::Alle1is,
            TlbiOp::Vmalls12e1os,
            TlbiOp::Aside1isnxs,
            TlbiOp::Vae1is,
        ];
        let op = match register {
            Sysreg::VttbrEl2 => self.rng.pick(&of_two),
            Sysreg::Ttbr0El2 if is_host => self.rng.pick(&of_host),
            Sysreg::Ttbr0El2 => self.rng.pick(&[TlbiOp::Alle2is, TlbiOp::Alle2, TlbiOp::Vae2is]),
            _ => self.rng.pick(&of_one),
        };
        let operand = if op.takes_operand() { Operand::Value((1 + self.rng.below(2)) << 48) } else { Operand::None };
        self.act(Transition::Tlbi { op, operand });
        if self.rng.chance(85) {
            let domain =
                self.rng.pick(&[Domain::Ish, Domain::Ish, Domain::Sy, Domain::Nsh, Domain::Ishst, Domain::Ishnxs]);
            self.act(Transition::Barrier(Barrier::Dsb(domain)));
        }
    }

    /// No thread uses a tree, and it is released; sometimes it is made anew.
    fn release_tree(&mut self, number: u64, register: Sysreg) {
        let page = self.page(number);
        self.hint(HintKind::ReleaseTable, page, 0);
        if self.rng.chance(50) {
            self.act(Transition::MemSet { address: page, size: PAGE, value: 0 });
            self.new_tree(number, register);
        }
    }
}
