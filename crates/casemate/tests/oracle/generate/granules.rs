//! Trees of other granules, sizes and starts: 16 and 64 KiB, 52-bit addresses, concatenated tables, stated levels.

use anytrace_casemate::{Barrier, Domain, HintKind, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::chain::Recipe;
use super::world::PAGE;
use crate::oracle::step::Step;

/// A tree of one chain of tables, from its first level to a page or block.
pub(super) struct Shape {
    /// The register of its base.
    pub(super) register: Sysreg,
    /// Bytes of a page.
    pub(super) page: u64,
    pub(super) is_wide: bool,
    /// The level of the root's tables.
    pub(super) first: i64,
    pub(super) bits: u64,
}

impl Shape {
    pub(super) fn is_stage_one(&self) -> bool {
        self.register != Sysreg::VttbrEl2
    }

    pub(super) fn is_upper(&self) -> bool {
        matches!(self.register, Sysreg::Ttbr1El2 | Sysreg::Ttbr1El1)
    }

    /// The layout of TCR_EL1.
    pub(super) fn has_halves(&self) -> bool {
        !matches!(self.register, Sysreg::VttbrEl2 | Sysreg::Ttbr0El2)
    }

    /// The entry for a table at an address.
    pub(super) fn link(&self, table: u64) -> u64 {
        match (self.is_wide, self.page) {
            (false, _) => table | 3,
            (true, 65536) => table & 0xffff_ffff_0000 | table >> 36 & 0xf000 | 3,
            (true, _) => table & 0x3_ffff_ffff_f000 | table >> 42 & 0x300 | 3,
        }
    }

    /// The bits of a base register for it.
    pub(super) fn register_bits(&self, base: u64) -> u64 {
        if self.is_wide { base & 0xffff_ffff_ffc0 | base >> 46 & 0x3c } else { base }
    }

    fn control(&self) -> Sysreg {
        match self.register {
            Sysreg::VttbrEl2 => Sysreg::VtcrEl2,
            Sysreg::Ttbr0El2 | Sysreg::Ttbr1El2 => Sysreg::TcrEl2,
            _ => Sysreg::TcrEl1,
        }
    }

    /// Bytes that an entry of a level maps, as a power of two.
    pub(super) fn power(&self, level: i64) -> u64 {
        let page = u64::from(self.page.ilog2());
        page + (page - 3) * (3 - level).unsigned_abs()
    }

    /// TG0 as in TCR_EL2; as in TLBIs it is another number.
    fn granules(&self) -> (u64, u64) {
        match self.page {
            4096 => (0, 1),
            16384 => (2, 2),
            _ => (1, 3),
        }
    }
}

/// Breaks, cleans and makes entries of such a tree, often as the rules want it.
pub(super) fn granules(rng: &mut Rng) -> Vec<Step> {
    let mut recipe = Recipe::new(rng);
    recipe.base = recipe.base & !0x3f_ffff | 0x40_0000;
    let shape = recipe.shape(&[Sysreg::Ttbr0El2, Sysreg::VttbrEl2]);
    if shape.is_wide && recipe.rng.chance(50) {
        recipe.base |= recipe.rng.below(16) << 48;
    }
    recipe.tree(&shape);
    for _ in 0..1 + recipe.rng.below(4) {
        recipe.round(&shape);
    }
    recipe.steps
}

impl Recipe<'_> {
    pub(super) fn shape(&mut self, registers: &[Sysreg]) -> Shape {
        let register = self.rng.pick(registers);
        let page = self.rng.pick(&[4096, 4096, 16384, 16384, 65536, 65536]);
        let is_wide = self.rng.chance(35);
        let bits = self.rng.pick(&[48, 48, 47, 42, 40, 39, 36, 33, 30]) + if is_wide { self.rng.below(5) } else { 0 };
        let mut shape = Shape { register, page, is_wide, first: 0, bits: bits.min(52) };
        let is_enough = |level: &i64| shape.power(*level) + u64::from(page.ilog2()) - 3 >= shape.bits;
        shape.first = (-1..4).rev().find(is_enough).unwrap_or(0);
        let entries = 1_u64 << shape.bits.saturating_sub(shape.power(shape.first)).min(20);
        if !shape.is_stage_one() && entries <= 16 && self.rng.chance(85) {
            shape.first = (shape.first + 1).min(3);
        }
        shape
    }

    /// The tables one after the other from the base on, with room for concatenated ones at the top.
    pub(super) fn table(&self, shape: &Shape, level: i64) -> u64 {
        if level <= shape.first { self.base } else { self.base + (16 + level.unsigned_abs()) * shape.page }
    }

    pub(super) fn place(&self, shape: &Shape, level: i64) -> u64 {
        let slot = self.slots.get(usize::try_from(level).unwrap_or(3)).copied().unwrap_or(0);
        self.table(shape, level) + 8 * (slot % self.top_entries(shape, level))
    }

    fn top_entries(&self, shape: &Shape, level: i64) -> u64 {
        let all = shape.page / 8;
        if level > shape.first { all } else { (1 << shape.bits.saturating_sub(shape.power(level)).min(12)).min(all) }
    }

    fn first_input(&self, shape: &Shape) -> u64 {
        let part =
            |level: i64| ((self.place(shape, level) - self.table(shape, level)) / 8) << shape.power(level).min(63);
        let first = if shape.is_upper() { u64::MAX << shape.bits } else { 0 };
        first.wrapping_add((shape.first..4).map(part).sum())
    }

    pub(super) fn tree(&mut self, shape: &Shape) {
        self.slots = std::array::from_fn(|_| self.rng.below(8192));
        let stated = match (shape.page, shape.first) {
            _ if self.rng.chance(12) => self.rng.below(4),
            (4096, -1) => 1 << 27,
            (4096, level) => [2, 1, 0, 3][level as usize],
            (_, level) => 3 - level as u64,
        };
        let (size, wide) = if shape.has_halves() { (6 << 32, 1 << 59) } else { (6 << 16, 1 << 32) };
        let size = if shape.is_wide && shape.page == 65536 { size } else { 0 };
        let wide = if shape.is_wide && shape.page != 65536 { wide } else { 0 };
        let common = if shape.has_halves() { self.rng.below(2) << 36 | self.rng.below(2) << 22 } else { stated << 6 };
        let control = size | wide | common;
        let control = control
            | match (shape.is_upper(), shape.page) {
                (false, _) => (64 - shape.bits) | shape.granules().0 << 14,
                (true, page) => {
                    (64 - shape.bits) << 16 | if page == 4096 { 2 } else { shape.granules().1 * 2 % 3 } << 30
                }
            };
        let registers = [shape.control(), shape.register];
        let number = if self.rng.chance(90) { 20 * shape.page / PAGE } else { self.rng.below(20 * shape.page / PAGE) };
        self.init(self.base, number);
        for level in shape.first..3 {
            let (entry, next) = (self.place(shape, level), self.table(shape, level + 1));
            self.write(entry, shape.link(next));
        }
        let leaf = self.leaf(shape, 3);
        let entry = self.place(shape, 3);
        self.write(entry, leaf);
        if self.rng.chance(15) {
            self.group(shape);
        }
        self.hint(HintKind::SetRootLock, self.base, self.base + 0x3_0000);
        self.sysreg(registers[0], control);
        let id = if shape.register == Sysreg::Ttbr0El2 { 0 } else { self.rng.pick(&[1, 1, 0x101, 0x100]) };
        let odd = if self.rng.chance(3) { 0x200 } else { 0 };
        self.sysreg(registers[1], id << 48 | shape.register_bits(self.base) | odd);
        self.act(Transition::Lock { address: self.base + 0x3_0000 });
        if self.rng.chance(20) && !shape.has_halves() {
            let vs = self.rng.below(2) << 19;
            self.sysreg(registers[0], control | vs);
            let id = self.rng.pick(&[1, 0x101, 2]);
            self.sysreg(registers[1], id << 48 | shape.register_bits(self.base));
        }
    }

    /// A block or page with some address, whose high bits a wide layout has elsewhere.
    pub(super) fn leaf(&mut self, shape: &Shape, level: i64) -> u64 {
        let output = (1 + self.rng.below(7)) << shape.power(level).min(44);
        let high = match (shape.is_wide, shape.page) {
            (false, _) => 0,
            (true, 65536) => self.rng.below(16) << 12,
            (true, _) => self.rng.below(4) << 8 | self.rng.below(4) << 48,
        };
        let attributes = self.rng.pick(&[0x7c, 0x47c, 0x4fc, 0xcfc, 0x400]);
        output & 0xffff_ffff_f000 | high | attributes | if level == 3 { 3 } else { 1 }
    }

    /// An entry is changed in place, or broken, cleaned by its address or entirely, and made again.
    pub(super) fn round(&mut self, shape: &Shape) {
        match self.rng.below(100) {
            0..8 => return self.group(shape),
            8..15 => return self.regroup(shape),
            15..22 if shape.first < 3 && shape.is_stage_one() => return self.limit(shape),
            _ => {}
        }
        let level = if self.rng.chance(70) { 3 } else { shape.first + self.rng.below((4 - shape.first) as u64) as i64 };
        let entry = self.place(shape, level);
        if self.rng.chance(20) {
            let value = self.leaf(shape, level);
            return self.write(entry, value);
        }
        self.write(entry, 0);
        self.dsb();
        let input = self.first_input(shape);
        if self.rng.chance(25) {
            let all = self.all_of(shape);
            self.tlbi(all);
        } else {
            self.by_address(shape, level, input);
        }
        if self.rng.chance(95) {
            self.dsb();
        }
        let value = self.leaf(shape, level);
        self.write(entry, value);
        if self.rng.chance(30) {
            let next = self.table(shape, level + 1);
            self.write(entry, if level < 3 { shape.link(next) } else { value });
        }
        if self.rng.chance(10) {
            self.act(Transition::Barrier(Barrier::Dsb(Domain::Ish)));
            self.hint(HintKind::ReleaseTable, self.base, 0);
        }
    }

    /// Some entries of a contiguous group beside the chain, nearly always right.
    fn group(&mut self, shape: &Shape) {
        let level = self.rng.pick(&[3, 3, 2]).max(shape.first);
        let entries = match (shape.page, level) {
            (4096, _) => 16,
            (16384, 3) => 128,
            _ => 32,
        };
        let start = self.place(shape, level) & !(8 * entries - 1) ^ if self.rng.chance(60) { 8 * entries } else { 0 };
        let bytes = 1_u64 << shape.power(level).min(44);
        let mut output = self.rng.below(4) * entries * bytes + if self.rng.chance(5) { bytes } else { 0 };
        output &= 0xffff_ffff_f000;
        let common = self.rng.pick(&[0x47c, 0x4fc, 0x400]) | 1 << 52 | if level == 3 { 3 } else { 1 };
        let first = self.rng.below(entries);
        for number in first..(first + 1 + self.rng.below(4)).min(entries) {
            let odd = self.rng.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1 << 10, 1 << 7, 1 << 52, 1 << 8, 1 << 55, 1 << 12]);
            self.write(start + 8 * number, (output + number * bytes) & 0xffff_ffff_f000 | common ^ odd);
        }
    }

    /// A group is broken and made again, perhaps as another range, with or without what that needs.
    fn regroup(&mut self, shape: &Shape) {
        let entries = match shape.page {
            4096 => 16,
            16384 => 128,
            _ => 32,
        };
        let start = self.place(shape, 3) & !(8 * entries - 1) ^ (8 * entries);
        let bytes = shape.page;
        let (output, moved) = (4 * entries * bytes, self.rng.pick(&[0, entries * bytes, entries * bytes, 1 << 7]));
        let (count, common) = (2 + self.rng.below(2), 0x700 | 1 << 52 | 3);
        let value = |number: u64| (output + number * bytes) | common;
        for number in 0..count {
            self.write(start + 8 * number, value(number));
        }
        for number in 0..count {
            self.write(start + 8 * number, 0);
            if self.rng.chance(30) {
                self.clean_one(shape, start, number);
            }
        }
        let cleaned = self.rng.pick(&[0, 1, count, count, count]);
        for number in 0..cleaned {
            self.clean_one(shape, start, number);
        }
        if self.rng.chance(25) {
            self.dsb();
            let all = self.all_of(shape);
            self.tlbi(all);
            self.dsb();
        }
        for number in 0..count {
            let bit = if self.rng.chance(15) { 1 << 52 } else { 0 };
            self.write(start + 8 * number, value(number) ^ bit ^ moved);
        }
        if self.rng.chance(20) && shape.first < 3 {
            let next = self.table(shape, 3);
            let entry = self.place(shape, 2) ^ 8;
            self.write(entry, shape.link(next + 4 * shape.page));
        }
    }

    /// DSB, TLBI by address, DSB for an entry of the last level.
    fn clean_one(&mut self, shape: &Shape, start: u64, number: u64) {
        let table = self.table(shape, 3);
        let slot = (start.wrapping_sub(table) / 8).wrapping_add(number);
        let own = (self.place(shape, 3) - table) / 8;
        let input = self.first_input(shape).wrapping_add(slot.wrapping_sub(own).wrapping_mul(shape.page));
        self.dsb();
        self.by_address(shape, 3, input);
        self.dsb();
    }

    /// A table takes rights from what is below it, or gives some back.
    fn limit(&mut self, shape: &Shape) {
        let level = shape.first + self.rng.below((3 - shape.first) as u64) as i64;
        let limits = self.rng.below(16) << 59;
        let entry = shape.link(self.table(shape, level + 1)) | limits;
        self.write(self.place(shape, level), entry);
        if self.rng.chance(60) {
            let input = self.first_input(shape);
            self.dsb();
            self.by_address(shape, 3, input);
            self.dsb();
        }
    }

    /// An operation for all of a tree.
    fn all_of(&mut self, shape: &Shape) -> TlbiOp {
        match shape.register {
            Sysreg::VttbrEl2 => TlbiOp::Vmalls12e1is,
            Sysreg::Ttbr0El2 | Sysreg::Ttbr1El2 => TlbiOp::Alle2is,
            _ => self.rng.pick(&[TlbiOp::Vmalls12e1is, TlbiOp::Vmalle1is, TlbiOp::Alle1is, TlbiOp::Alle2is]),
        }
    }

    /// The name of an operation for an address of a tree.
    fn one_of(&mut self, shape: &Shape) -> &'static str {
        match shape.register {
            Sysreg::VttbrEl2 => "ipas2e1is",
            Sysreg::Ttbr0El2 => "vae2is",
            Sysreg::Ttbr1El2 => self.rng.pick(&["vae2is", "vale2is"]),
            _ => self.rng.pick(&["vae1is", "vae1is", "vale1is", "vaae1is", "vaale1is", "vae2is", "ipas2e1is"]),
        }
    }

    pub(super) fn asid(&mut self) -> u64 {
        self.rng.pick(&[1, 1, 1, 0x101, 2, 0])
    }

    fn by_address(&mut self, shape: &Shape, level: i64, input: u64) {
        let granule = if self.rng.chance(90) { shape.granules().1 } else { self.rng.below(4) };
        let hint =
            if self.rng.chance(70) { 0 } else { self.rng.pick(&[level.max(0) as u64, level.max(0) as u64, 1, 2, 3]) };
        let unit = if shape.is_wide { 65536 } else { shape.page };
        let bytes = 1_u64 << shape.power(level).min(51);
        let operand = if self.rng.chance(45) {
            let (scale, number) = (self.rng.below(4), self.rng.below(32));
            let first = self.rng.pick(&[input, input & !(bytes - 1), input & !(bytes - 1), 0]) / unit;
            granule << 46 | scale << 44 | number << 39 | hint << 37 | first & 0x1f_ffff_ffff
        } else {
            (if hint == 0 { 0 } else { granule << 46 | hint << 44 }) | input >> 12 & ((1 << 44) - 1)
        };
        let is_range =
            operand >> 46 & 3 != 0 && hint == 0 || operand >> 37 & 3 == hint && hint != 0 && self.rng.chance(50);
        let base = self.one_of(shape);
        let operand = if shape.has_halves() { operand & !(0xffff << 48) | self.asid() << 48 } else { operand };
        let name = if is_range { format!("r{base}") } else { base.to_owned() };
        let op = TlbiOp::from_name(&name).unwrap_or(TlbiOp::Vae2is);
        self.act(Transition::Tlbi { op, operand: Operand::Value(operand) });
        if !shape.is_stage_one() {
            self.dsb();
            self.tlbi(TlbiOp::Vmalle1is);
        }
    }
}
