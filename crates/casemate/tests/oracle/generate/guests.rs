//! Trees of stage 1 of EL1, behind stage 2 or without it, and of the upper half of a host's addresses.

use anytrace_casemate::{HintKind, Name, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::chain::Recipe;
use super::granules::Shape;
use super::world::PAGE;
use crate::oracle::step::Step;

/// Registers that turn such trees on, a tree, and its life: breaks, switches to other trees and identifiers.
pub(super) fn guests(rng: &mut Rng) -> Vec<Step> {
    let mut recipe = Recipe::new(rng);
    recipe.base = recipe.base & !0x3f_ffff | 0x40_0000;
    let registers = [Sysreg::Ttbr0El1, Sysreg::Ttbr0El1, Sysreg::Ttbr1El1, Sysreg::Ttbr1El1, Sysreg::Ttbr1El2];
    let shape = recipe.shape(&registers);
    recipe.switches(&shape);
    recipe.tree(&shape);
    for _ in 0..2 + recipe.rng.below(6) {
        match recipe.rng.below(10) {
            0..6 => recipe.round(&shape),
            6 => recipe.mode(&shape),
            7 => recipe.another_id(&shape),
            8 => recipe.by_asid(),
            _ => recipe.stage_two_goes(),
        }
    }
    recipe.steps
}

impl Recipe<'_> {
    /// The root of stage 2: one table of level 1.
    fn second(&self) -> u64 {
        self.base - 0x10_0000
    }

    fn is_host(shape: &Shape) -> bool {
        matches!(shape.register, Sysreg::Ttbr0El2 | Sysreg::Ttbr1El2)
    }

    fn switches(&mut self, shape: &Shape) {
        if Self::is_host(shape) {
            let hcr = self.rng.pick(&[1 << 34, 1 << 34 | 1 << 27, 1 << 34 | 1 << 27, 1 << 27]);
            return self.sysreg(Sysreg::HcrEl2, hcr);
        }
        if self.rng.chance(30) {
            self.sysreg(Sysreg::MairEl1, 0xff44);
        }
        match self.rng.below(10) {
            0..3 => {}
            3..6 => self.sysreg(Sysreg::HcrEl2, 0),
            _ => self.stage_two(),
        }
    }

    /// Stage 2 that maps one gigabyte, nearly always to itself.
    fn stage_two(&mut self) {
        let root = self.second();
        self.init(root, 1);
        let off = if self.rng.chance(85) { 0 } else { 1 << 30 };
        let block = self.base & !0x3fff_ffff ^ off;
        self.write(root + 8 * (self.base >> 30), block | 0x7fd);
        self.hint(HintKind::SetRootLock, root, root + 0x8000);
        self.sysreg(Sysreg::VtcrEl2, 25 | 1 << 6);
        let vmid = self.rng.pick(&[1, 2]);
        self.vttbr(root, vmid);
        if self.rng.chance(50) {
            self.sysreg(Sysreg::HcrEl2, 1);
        }
    }

    /// What turns such trees on and off.
    fn mode(&mut self, shape: &Shape) {
        let (register, value) = match self.rng.below(8) {
            0 => (Sysreg::SctlrEl1, self.rng.below(2)),
            1 => (Sysreg::SctlrEl2, self.rng.below(2)),
            2 => (Sysreg::HcrEl2, self.rng.pick(&[0, 1, 1 << 27, 1 << 12, 1 << 34])),
            3 => (Sysreg::TcrEl1, self.rng.pick(&[1 << 7, 1 << 23, 0])),
            4 => (Sysreg::VttbrEl2, self.second() | 1 << 48),
            5 => (Sysreg::MairEl1, self.rng.pick(&[0x44ff, 0xff])),
            _ => {
                let base = self.place(shape, shape.first) & !(PAGE - 1);
                (shape.register, base | self.asid() << 48)
            }
        };
        if self.rng.chance(20) && register.name().ends_with("_el1") {
            let name = format!("{}2", register.name());
            let name = Name::new(name.as_bytes()).expect("a name");
            return self.act(Transition::OtherSysreg { name, value });
        }
        self.sysreg(register, value);
    }

    /// The tree under another ASID, or another thread's.
    fn another_id(&mut self, shape: &Shape) {
        let (asid, base, other) = (self.asid(), self.table(shape, shape.first), self.other());
        let value = asid << 48 | base;
        if self.rng.chance(50) {
            self.sysreg(shape.register, value);
        } else {
            self.by(other, Transition::SysregWrite { register: shape.register, value });
        }
    }

    fn by_asid(&mut self) {
        let op = self.rng.pick(&[TlbiOp::Aside1is, TlbiOp::Vmalle1is, TlbiOp::Alle1is, TlbiOp::Vmalls12e1]);
        let operand = if op.takes_operand() { Operand::Value(self.asid() << 48) } else { Operand::None };
        self.act(Transition::Tlbi { op, operand });
        self.dsb();
    }

    /// Stage 2 no longer maps the tables.
    fn stage_two_goes(&mut self) {
        let root = self.second();
        self.act(Transition::Trylock { address: root + 0x8000 });
        self.write(root + 8 * (self.base >> 30), 0);
    }
}
