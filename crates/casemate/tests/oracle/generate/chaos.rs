//! Chaos: random transitions over a few addresses, after a set-up that makes violations possible.

use anytrace_casemate::{AtomicOp, Barrier, Domain, HintKind, MemoryOrder, Name, Operand, Sysreg, TlbiOp, Transition};

use super::Rng;
use super::world::{NO_THREAD, PAGE};
use crate::oracle::step::Step;

struct Chaos<'a> {
    rng: &'a mut Rng,
    base: u64,
    pages: u64,
    locks: u64,
    threads: u64,
    steps: Vec<Step>,
}

/// Random transitions.
pub(crate) fn chaos(rng: &mut Rng) -> Vec<Step> {
    let base = rng.pick(&[0x1_0000, 0x8000_0000, 0x7_1234_5000]);
    let (pages, threads) = (4 + rng.below(5), 1 + rng.below(3));
    let locks = base - 0x8000;
    let mut chaos = Chaos { rng, base, pages, locks, threads, steps: Vec::new() };
    chaos.set_up();
    let length = 10 + chaos.rng.below(90);
    for _ in 0..length {
        chaos.step();
    }
    chaos.steps
}

impl Chaos<'_> {
    fn emit(&mut self, thread: u32, action: Transition) {
        self.steps.push(Step { id: 0, thread, action });
    }

    fn thread(&mut self) -> u32 {
        // Most steps are by the first thread: two alternating threads rarely complete a sequence.
        if self.rng.chance(80) { 0 } else { u32::try_from(self.rng.below(self.threads)).unwrap_or(0) }
    }

    fn page(&mut self) -> u64 {
        self.base + PAGE * self.rng.below(self.pages)
    }

    fn word(&mut self) -> u64 {
        self.page() + 8 * self.rng.pick(&[0, 0, 1, 2, 511])
    }

    fn lock(&mut self) -> u64 {
        self.locks + PAGE * self.rng.below(2)
    }

    fn value(&mut self) -> u64 {
        let page = self.page();
        match self.rng.below(20) {
            0..6 => 0,
            6..12 => page | 3,
            12..14 => page | 1,
            14 => 2,
            15 => (self.rng.below(4) << 30) | 1,
            16 => (self.rng.below(4) << 30) | 0x401,
            17 => page | 0x403,
            18 => page | 1 << 55 | 3,
            _ => self.rng.next(),
        }
    }

    fn set_up(&mut self) {
        if self.rng.chance(90) {
            let (address, size) = (self.base, self.pages * PAGE);
            self.emit(0, Transition::MemInit { address, size });
        }
        let roots = 1 + self.rng.below(2);
        for id in 0..roots {
            let (root, lock) = (self.base + PAGE * id, self.locks + PAGE * id);
            self.emit(0, Transition::Hint { hint: HintKind::SetRootLock, location: root, value: lock });
            self.emit(0, Transition::Lock { address: lock });
            if self.rng.chance(70) {
                // A chain of tables.
                let (next, address) = (root + 2 * PAGE, root);
                let write = |address, value| Transition::MemWrite { order: MemoryOrder::Release, address, value };
                self.emit(0, write(address, next | 3));
                if self.rng.chance(50) && self.pages > 4 {
                    self.emit(0, write(next + 8, (self.base + (self.pages - 1) * PAGE) | 3));
                }
            }
            if self.rng.chance(90) {
                let register = if id == 0 && self.rng.chance(30) { Sysreg::Ttbr0El2 } else { Sysreg::VttbrEl2 };
                let id = if register == Sysreg::Ttbr0El2 { 0 } else { id + 1 };
                self.emit(0, Transition::SysregWrite { register, value: id << 48 | root });
            }
        }
    }

    fn step(&mut self) {
        let thread = self.thread();
        let action = match self.rng.below(100) {
            0..40 => self.write(),
            40..58 => Transition::Barrier(Barrier::Dsb(self.domain())),
            58..74 => self.tlbi(),
            74..78 => self.sysreg(),
            78..84 => self.hint(),
            84..87 => Transition::Trylock { address: self.lock() },
            87..89 => Transition::Unlock { address: self.lock() },
            89 => Transition::Lock { address: self.lock() },
            90 => Transition::MemInit { address: self.word(), size: PAGE },
            91 => Transition::MemFree { address: self.word(), size: self.rng.pick(&[8, PAGE, 12]) },
            92 | 93 => Transition::MemSet { address: self.page(), size: PAGE, value: self.rng.pick(&[0, 1, 2, 0xff]) },
            94..98 => Transition::MemRead { address: self.word(), value: self.value() },
            _ => Transition::Barrier(Barrier::Isb),
        };
        self.emit(thread, action);
    }

    fn write(&mut self) -> Transition {
        let order = match self.rng.below(100) {
            0..60 => MemoryOrder::Release,
            60..98 => MemoryOrder::Plain,
            _ => MemoryOrder::Page,
        };
        let address = self.word() + if self.rng.chance(2) { 4 } else { 0 };
        if self.rng.chance(5) {
            let order = self.rng.pick(&[MemoryOrder::Plain, MemoryOrder::Acquire, MemoryOrder::AcqRel]);
            let (value, read) = (self.value(), self.value());
            return Transition::MemAtomic { op: AtomicOp::Cmpxchg, order, address, value, read };
        }
        Transition::MemWrite { order, address, value: self.value() }
    }

    fn domain(&mut self) -> Domain {
        let common = [Domain::Ish, Domain::Ish, Domain::Ish, Domain::Ish, Domain::Sy, Domain::Ishst, Domain::Ishnxs];
        self.rng.pick(&common)
    }

    fn tlbi(&mut self) -> Transition {
        let common = [TlbiOp::Vmalls12e1is, TlbiOp::Alle1is, TlbiOp::Alle2is, TlbiOp::Vmalle1is, TlbiOp::Ipas2e1is];
        let op = match self.rng.chance(85) {
            true => self.rng.pick(&common),
            false => TlbiOp::ALL[self.rng.index(TlbiOp::ALL.len())],
        };
        let page = self.rng.pick(&[0, 1, 0x200, 0x4_0000, 0x800_0000]);
        if self.rng.chance(3) {
            let name = Name::new(b"vmallws2e1is").expect("a name");
            return Transition::OtherTlbi { name, operand: Operand::None };
        }
        let range = 1 << 46 | self.rng.below(4) << 44 | self.rng.below(32) << 39;
        let operand = match (op.takes_operand(), op.is_range()) {
            (true, false) => Operand::Value(page),
            (true, true) => Operand::Value(page | range),
            _ => Operand::None,
        };
        Transition::Tlbi { op, operand }
    }

    fn sysreg(&mut self) -> Transition {
        if self.rng.chance(5) {
            let name = self.rng.pick(&["vbar_el2", "por_el1", "tcr2_el2"]);
            return Transition::OtherSysreg {
                name: Name::new(name.as_bytes()).expect("a name"),
                value: self.rng.below(9),
            };
        }
        let register = Sysreg::ALL[self.rng.index(Sysreg::ALL.len())];
        let value = match register {
            Sysreg::VttbrEl2 | Sysreg::Ttbr0El2 => self.page() | self.rng.below(3) << 48,
            Sysreg::VtcrEl2 | Sysreg::TcrEl2 => self.rng.pick(&[16, 16, 16, 17, 25, 24]),
            _ => self.rng.below(2),
        };
        Transition::SysregWrite { register, value }
    }

    fn hint(&mut self) -> Transition {
        let hint = HintKind::ALL[self.rng.index(HintKind::ALL.len())];
        let location = if self.rng.chance(60) { self.page() } else { self.word() };
        let value = match hint {
            HintKind::SetPteThreadOwner => self.rng.pick(&[0, 0, 1, NO_THREAD]),
            HintKind::SetRootLock if self.rng.chance(90) => self.lock(),
            HintKind::SetRootLock => 0,
            _ => self.page(),
        };
        Transition::Hint { hint, location, value }
    }
}
