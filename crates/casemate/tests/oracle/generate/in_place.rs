//! Live entries that change in place: permissions, what becomes of the memory then, and sizes with FEAT_BBM.

use anytrace_casemate::{Barrier, Domain, HintKind, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::chain::Recipe;
use super::world::PAGE;
use crate::oracle::step::Step;

/// Memory that leaf entries map; tables are elsewhere.
const OUTPUT: u64 = 0x4000_0000;
const BLOCK_BYTES: u64 = 0x20_0000;
/// Normal memory, shareable, accessed, readable and writable, executable.
const OPEN: u64 = 0x7fc;

/// Changes of permissions or of sizes.
pub(super) fn in_place(rng: &mut Rng) -> Vec<Step> {
    let kind = rng.below(100);
    let mut recipe = Recipe::new(rng);
    match kind {
        0..30 => recipe.resized(),
        30..76 => recipe.stale_permissions(),
        _ => recipe.limits(),
    }
    recipe.steps
}

impl Recipe<'_> {
    /// A chain whose stage is random. Its leaf of level 3 maps the page at [`OUTPUT`].
    fn open_chain(&mut self) -> u8 {
        let stage = if self.rng.chance(75) { 2 } else { 1 };
        self.chain();
        if self.rng.chance(50) {
            self.init(OUTPUT, 8);
        }
        let attributes = if stage == 2 { OPEN } else { OPEN & !0xfc };
        self.write(self.entry(3), OUTPUT | attributes | 3);
        if self.rng.chance(40) {
            let (register, value) = self.rng.pick(&[
                (Sysreg::VtcrEl2, 1 << 22 | 16),
                (Sysreg::TcrEl2, 1 << 22 | 16),
                (Sysreg::TcrEl2, 1 << 40 | 16),
                (Sysreg::HcrEl2, 1 << 34 | 1),
            ]);
            self.sysreg(register, value);
        }
        let threads = if self.rng.chance(50) { 2 } else { 1 };
        for thread in 0..threads {
            let register = if stage == 2 { Sysreg::VttbrEl2 } else { Sysreg::Ttbr0El2 };
            let id = if stage == 2 { 1 } else { 0 };
            let thread = (self.thread + thread) % 4;
            self.by(thread, Transition::SysregWrite { register, value: id << 48 | self.base });
        }
        self.lock();
        stage
    }

    /// Another root of stage 2 with the same shape, which maps nothing yet at level 3.
    fn second_root(&mut self) {
        let base = self.page(40);
        self.init(base, 5);
        for level in 0..3 {
            self.write(base + level * PAGE, (base + (level + 1) * PAGE) | 3);
        }
        let lock = if self.rng.chance(80) { self.lock_address() } else { self.lock_address() + 8 };
        self.hint(HintKind::SetRootLock, base, lock);
        let other = self.other();
        self.by(other, Transition::SysregWrite { register: Sysreg::VttbrEl2, value: 2 << 48 | base });
    }

    /// Barriers and TLBIs, mostly those that are needed, by one or several threads.
    fn some_maintenance(&mut self, stage: u8, steps: u64) {
        for step in 0..steps {
            let thread = if self.rng.chance(75) { self.thread } else { self.other() };
            let is_barrier = if self.rng.chance(80) { step % 2 == 0 } else { self.rng.chance(50) };
            let action = match is_barrier {
                true => {
                    let domain = self.rng.pick(&[
                        Domain::Ish,
                        Domain::Ish,
                        Domain::Ish,
                        Domain::Sy,
                        Domain::Ishnxs,
                        Domain::Ishst,
                        Domain::Ishld,
                    ]);
                    Transition::Barrier(Barrier::Dsb(domain))
                }
                false => self.some_tlbi(stage),
            };
            self.by(thread, action);
        }
    }

    fn some_tlbi(&mut self, stage: u8) -> Transition {
        let stage = if self.rng.chance(92) { stage } else { 3 - stage };
        let op = match stage {
            1 => self.rng.pick(&[TlbiOp::Alle2is, TlbiOp::Vae2is, TlbiOp::Vae2is, TlbiOp::Vale2is]),
            _ => self.rng.pick(&[
                TlbiOp::Vmalls12e1is,
                TlbiOp::Alle1is,
                TlbiOp::Ipas2e1is,
                TlbiOp::Ipas2e1is,
                TlbiOp::Ipas2le1is,
                TlbiOp::Vmalle1is,
                TlbiOp::Vmalle1is,
            ]),
        };
        let op = self.other_form(op);
        if !op.takes_operand() {
            return Transition::Tlbi { op, operand: Operand::None };
        }
        let page = (self.input() >> 12) + self.rng.pick(&[0, 0, 0, 1, 511]);
        let hint = self.rng.pick(&[0, 0, 0, 7, 6, 3, 11]);
        if op.is_range() {
            return Transition::Tlbi { op, operand: Operand::Value(self.range_around(page)) };
        }
        Transition::Tlbi { op, operand: Operand::Value(hint << 44 | page) }
    }

    /// Sometimes with nXS, for the outer shareable domain, or on a range.
    fn other_form(&mut self, op: TlbiOp) -> TlbiOp {
        let mut name = op.name().to_owned();
        if op.takes_operand() && self.rng.chance(25) {
            name.insert(0, 'r');
        }
        if self.rng.chance(10) {
            name = name.replace("is", "os");
        }
        if self.rng.chance(12) {
            name.push_str("nxs");
        }
        TlbiOp::from_name(&name).unwrap_or(op)
    }

    /// A range at a page, before it, or at the start of its block; often in the right granule and without a hint.
    fn range_around(&mut self, page: u64) -> u64 {
        let base = self.rng.pick(&[page, page, page & !0x1ff, page.saturating_sub(2), page + 3, page & !0x3_ffff]);
        let (scale, number) = (self.rng.pick(&[0, 0, 1, 2, 3]), self.rng.pick(&[0, 0, 3, 7, 31]));
        let (granule, hint) = (self.rng.pick(&[1, 1, 1, 1, 1, 1, 0, 2]), self.rng.pick(&[0, 0, 0, 3, 2, 1]));
        granule << 46 | scale << 44 | number << 39 | hint << 37 | base
    }

    /// A record at which memory gets another owner.
    fn some_handover(&mut self, has_second: bool) {
        let page = OUTPUT + self.rng.pick(&[0, 0, 0, 1, 5]) * PAGE;
        match self.rng.below(if has_second { 6 } else { 4 }) {
            0 => {
                let pages = 1 + self.rng.below(3);
                self.init(page, pages);
            }
            1 => {
                let word = self.rng.pick(&[0, 0, 8]);
                self.hint(HintKind::SetOwnerRoot, page + word, self.base);
            }
            2 | 3 => {
                // A table of the same tree.
                let at = self.page(2) + 8 * ((self.slots[2] + 1) % 512);
                self.write(at, page | 3);
            }
            _ => {
                let at = self.page(43) + 8 * self.rng.below(4);
                let attributes = self.rng.pick(&[OPEN, OPEN & !0x400, OPEN & !0x80]);
                self.write(at, page | attributes | 3);
            }
        }
    }

    /// Permissions change in place, maintenance follows or does not, and the memory changes hands or does not.
    fn stale_permissions(&mut self) {
        let stage = self.open_chain();
        let has_second = self.rng.chance(70);
        if has_second {
            self.second_root();
        }
        let entry = self.entry(3);
        let mut value = OUTPUT | if stage == 2 { OPEN } else { OPEN & !0xfc } | 3;
        for _ in 0..1 + self.rng.below(4) {
            let flipped = self.rng.pick(&[
                0x80,
                0x80,
                0x40,
                1 << 54,
                1 << 53,
                3 << 53,
                1 << 51,
                0x400,
                1 << 55,
                0x80 | 1 << 51,
                1 << 54 | 0x80,
            ]);
            value ^= flipped;
            self.write(entry, value);
            if self.rng.chance(15) {
                self.act(Transition::Unlock { address: self.lock_address() });
                let other = self.other();
                self.by(other, Transition::Lock { address: self.lock_address() });
                self.thread = other;
            }
            let steps = self.rng.below(7);
            self.some_maintenance(stage, steps);
            match self.rng.below(10) {
                0..6 => self.some_handover(has_second),
                6 => {
                    self.write(entry, 0);
                    self.some_maintenance(stage, 5);
                    self.write(entry, value);
                }
                7 => {
                    // The table around it leaves the tree.
                    self.write(self.entry(2), 0);
                    self.clean_all();
                    self.some_handover(has_second);
                    return;
                }
                _ => {}
            }
        }
    }

    /// Tables of stage 1 take rights from what is below them, and give them back.
    fn limits(&mut self) {
        let (hcr, tcr) = self.rng.pick(&[
            (None, None),
            (None, None),
            (None, Some(16)),
            (None, Some(1 << 24 | 16)),
            (Some(1 << 34 | 1), Some(1 << 22 | 16)),
            (Some(1 << 34 | 1), Some(1 << 40 | 16)),
            (Some(1 << 34 | 1), Some(1 << 41 | 16)),
        ]);
        self.chain();
        let other = self.page(3) + 8 * ((self.slots[3] + 1) % 512);
        let attributes = self.rng.pick(&[0x700, 0x740, 0xf00, 0xf40, 0x780, 0x300, 0x700 | 1 << 51]);
        self.write(self.entry(3), OUTPUT | attributes | 3);
        self.write(other, (OUTPUT + PAGE) | attributes ^ 0x800 | 3);
        let block = self.page(2) + 8 * ((self.slots[2] + 1) % 512);
        self.write(block, OUTPUT | attributes | 1);
        for (register, value) in [(Sysreg::HcrEl2, hcr), (Sysreg::TcrEl2, tcr)] {
            if let Some(value) = value {
                self.sysreg(register, value);
            }
        }
        for thread in [self.thread, self.other()] {
            let (register, value) = (Sysreg::Ttbr0El2, self.base);
            self.by(thread, Transition::SysregWrite { register, value });
        }
        self.lock();
        let has_second = self.rng.chance(70);
        if has_second {
            self.second_root();
        }
        let mut limits = [0_u64; 3];
        for _ in 0..2 + self.rng.below(4) {
            let level = self.rng.below(3);
            let flipped = self.rng.pick(&[1, 2, 4, 8, 6, 15, 12]) << 59;
            let flipped = if self.rng.chance(5) { flipped | 1 << 63 } else { flipped };
            limits[level as usize] ^= flipped;
            let value = self.page(level + 1) | limits[level as usize] | 3;
            self.write(self.entry(level), value);
            match self.rng.below(12) {
                0 => {
                    // The leaf loses rights by itself too.
                    let flipped = self.rng.pick(&[0x80, 1 << 54, 0x400]);
                    self.write(self.entry(3), (OUTPUT | attributes | 3) ^ flipped);
                }
                1 => {
                    let value = self.rng.pick(&[1 << 24 | 16, 1 << 41 | 16, 16]);
                    self.sysreg(Sysreg::TcrEl2, value);
                }
                2 => {
                    self.write(self.entry(3), 0);
                    self.some_maintenance(1, 5);
                    self.write(self.entry(3), OUTPUT | attributes | 3);
                }
                _ => {}
            }
            let steps = self.rng.pick(&[0, 1, 3, 3, 3, 6]);
            self.some_maintenance(1, steps);
            if self.rng.chance(60) {
                self.some_handover(has_second);
            }
        }
    }

    /// The entries of a table that map what a block of level 2 maps, sometimes with one that does not.
    fn table_of_block(&mut self, table: u64, block: u64) {
        let attributes = block & !0x0000_ffff_ffff_f003;
        let odd = self.rng.pick(&[0, 7, 511, 600, 600, 600, 600, 600]);
        let flipped = self.rng.pick(&[0x80, 1 << 54, 0x400, 0x4, 0x100, 0x1000, 1 << 52, 1 << 55, 1, 1, 0x800]);
        let all = self.rng.pick(&[0, 0, 0x80, 0x80, 1 << 52, 0x400]);
        for at in 0..512 {
            let value = (OUTPUT + at * PAGE) | attributes | 3;
            let value = value ^ all ^ if at == odd { flipped } else { 0 };
            self.write(table + 8 * at, value);
        }
    }

    /// All that one page needs, by its address and often with a level.
    fn hinted_maintenance(&mut self, stage: u8) {
        let op = if stage == 2 { TlbiOp::Ipas2e1is } else { TlbiOp::Vae2is };
        let hint = self.rng.pick(&[0, 7, 7, 6]);
        self.dsb();
        self.act(Transition::Tlbi { op, operand: Operand::Value(hint << 44 | self.input() >> 12) });
        self.dsb();
        if stage == 2 {
            self.tlbi(TlbiOp::Vmalle1is);
            self.dsb();
        }
    }

    /// A block and a table take each other's place, with or without nT, maintenance, and uses of both.
    fn resized(&mut self) {
        let stage = self.open_chain();
        let has_second = self.rng.chance(60);
        if has_second {
            self.second_root();
        }
        let attributes = if stage == 2 { OPEN } else { OPEN & !0xfc };
        let entry = self.page(2) + 8 * ((self.slots[2] + 2) % 512);
        self.slots[2] = (self.slots[2] + 2) % 512;
        let marked = self.rng.pick(&[0, 1 << 16, 1 << 16]);
        let block = OUTPUT | attributes | 1;
        let table = self.page(20);
        self.init(table, 2);
        self.table_of_block(table, block);
        let mut is_table = self.rng.chance(50);
        let first = if self.rng.chance(50) { block } else { block | marked };
        self.write(entry, if is_table { table | 3 } else { first });
        for _ in 0..1 + self.rng.below(5) {
            match self.rng.below(10) {
                0..4 => {
                    is_table = !is_table;
                    let limits = if stage == 1 { self.rng.pick(&[0, 0, 1 << 60, 1 << 62]) } else { 0 };
                    self.write(entry, if is_table { table | limits | 3 } else { block | marked });
                }
                4 if !is_table => self.write(entry, block | 1 << 16),
                5 if !is_table => {
                    let flipped = self.rng.pick(&[0x80, 1 << 54, 1 << 52, 0x400]);
                    self.write(entry, block ^ flipped);
                }
                6 | 7 => {
                    // An entry of the table, by the rules or in place.
                    let at = self.rng.pick(&[0, 7, 511]);
                    self.slots[3] = at;
                    if self.rng.chance(40) {
                        let flipped = self.rng.pick(&[0x80, 0x1000, 0x4, 0x480, 0x1400]);
                        self.write(table + 8 * at, ((OUTPUT + at * PAGE) | attributes | 3) ^ flipped);
                        continue;
                    }
                    self.write(table + 8 * at, 0);
                    self.some_maintenance(stage, 5);
                    if self.rng.chance(30) {
                        is_table = false;
                        self.write(entry, block | marked);
                    }
                    self.write(table + 8 * at, (OUTPUT + at * PAGE) | attributes | 3);
                }
                8 => {
                    self.write(entry, 0);
                    self.clean_all();
                    self.write(entry, if is_table { table | 3 } else { block });
                }
                _ => {
                    self.slots[3] = 0;
                    self.hinted_maintenance(stage);
                    self.some_handover(has_second);
                }
            }
            let steps = self.rng.pick(&[0, 0, 3, 3, 5, 6]);
            match self.rng.chance(60) {
                true if stage == 2 && steps > 0 => self.clean_all(),
                true if steps > 0 => {
                    self.dsb();
                    self.tlbi(TlbiOp::Alle2is);
                    self.dsb();
                }
                _ => self.some_maintenance(stage, steps),
            }
        }
        if self.rng.chance(20) {
            // The tree is given up; its pages are used again.
            let other = self.page(30);
            self.init(other, 1);
            for thread in [self.thread, self.other()] {
                let value = 7 << 48 | other;
                self.by(thread, Transition::SysregWrite { register: Sysreg::VttbrEl2, value });
            }
            self.hint(HintKind::ReleaseTable, self.base, 0);
            self.act(Transition::MemFree { address: table, size: PAGE });
        }
    }
}
