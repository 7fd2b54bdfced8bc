//! Steps as C programs give them.

use anytrace_casemate_model::{
    AtomicOp, Barrier, Domain, HintKind, Kind, MemoryOrder, Name, Operand, Sysreg, TlbiOp, Transition,
};

/// One step of the checked program; `struct casemate_step` of the header, which says what the fields of each kind are.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// The kind: [`Kind`] by number, plus one.
    pub kind: u32,
    /// The processor.
    pub thread: u32,
    /// The order of a write, the barrier, the operation, the register or the hint, by number.
    pub what: u32,
    /// 0.
    pub reserved: u32,
    /// An address in bytes.
    pub address: u64,
    /// A value, or a length in bytes.
    pub value: u64,
    /// The byte of `mem-set`, or the value that an atomic access read.
    pub extra: u64,
}

/// The numbers of kinds.
const MEM_WRITE: u32 = Kind::MemWrite as u32 + 1;
const MEM_READ: u32 = Kind::MemRead as u32 + 1;
const MEM_INIT: u32 = Kind::MemInit as u32 + 1;
const MEM_FREE: u32 = Kind::MemFree as u32 + 1;
const MEM_SET: u32 = Kind::MemSet as u32 + 1;
const BARRIER: u32 = Kind::Barrier as u32 + 1;
const TLBI: u32 = Kind::Tlbi as u32 + 1;
const SYSREG_WRITE: u32 = Kind::SysregWrite as u32 + 1;
const HINT: u32 = Kind::Hint as u32 + 1;
const LOCK: u32 = Kind::Lock as u32 + 1;
const UNLOCK: u32 = Kind::Unlock as u32 + 1;
const TRYLOCK: u32 = Kind::Trylock as u32 + 1;
const MEM_ATOMIC: u32 = Kind::MemAtomic as u32 + 1;

/// An operation or a register that the header does not name.
pub(crate) const OTHER: u32 = u32::MAX;

/// The longest name.
pub(crate) const NAME_MAX: usize = 23;

/// A TLBI or the write of a register by a name in any case, as a reader of traces takes it: one that is in no table is
/// kept with its name. None for what is no name.
pub(crate) fn named(is_register: bool, word: &[u8], value: u64) -> Option<Transition> {
    let text = core::str::from_utf8(word).ok()?;
    let name = Name::new(word)?;
    Some(match (is_register, Sysreg::from_name(text), TlbiOp::from_name(text)) {
        (true, Some(register), _) => Transition::SysregWrite { register, value },
        (true, None, _) => Transition::OtherSysreg { name, value },
        (false, _, Some(op)) => Transition::Tlbi { op, operand: Operand::Value(value) },
        (false, _, None) => Transition::OtherTlbi { name, operand: Operand::Value(value) },
    })
}

fn nth<T: Copy>(all: &[T], at: u32) -> Option<T> {
    all.get(usize::try_from(at).ok()?).copied()
}

/// What is done with a step. A closure would not be inlined everywhere.
pub(crate) trait Act {
    /// What it comes to.
    type Result;

    fn act(self, transition: Transition) -> Self::Result;
}

impl Step {
    /// Does something with the step, if every number in it has a meaning. What is done is compiled once for each kind of
    /// step, so that it need not look for the kind again.
    #[inline(always)]
    pub(crate) fn give<A: Act>(&self, to: A) -> Option<A::Result> {
        let Self { what, address, value, extra, .. } = *self;
        let operand = Operand::Value(value);
        Some(match self.kind {
            MEM_WRITE => to.act(Transition::MemWrite { order: order(what, Kind::MemWrite)?, address, value }),
            MEM_READ => to.act(Transition::MemRead { address, value }),
            MEM_INIT => to.act(Transition::MemInit { address, size: value }),
            MEM_FREE => to.act(Transition::MemFree { address, size: value }),
            MEM_SET => to.act(Transition::MemSet { address, size: value, value: extra }),
            BARRIER if what == 0 => to.act(Transition::Barrier(Barrier::Isb)),
            BARRIER => to.act(Transition::Barrier(Barrier::Dsb(nth(Domain::ALL, what - 1)?))),
            TLBI if what == OTHER => to.act(Transition::OtherTlbi { name: unnamed()?, operand }),
            TLBI => to.act(Transition::Tlbi { op: nth(TlbiOp::ALL, what)?, operand }),
            SYSREG_WRITE if what == OTHER => to.act(Transition::OtherSysreg { name: unnamed()?, value }),
            SYSREG_WRITE => to.act(Transition::SysregWrite { register: nth(Sysreg::ALL, what)?, value }),
            HINT => to.act(Transition::Hint { hint: nth(HintKind::ALL, what)?, location: address, value }),
            LOCK => to.act(Transition::Lock { address }),
            UNLOCK => to.act(Transition::Unlock { address }),
            TRYLOCK => to.act(Transition::Trylock { address }),
            MEM_ATOMIC => {
                let order = order(what, Kind::MemAtomic)?;
                to.act(Transition::MemAtomic { op: AtomicOp::Swp, order, address, value, read: extra })
            }
            _ => return None,
        })
    }
}

fn order(what: u32, kind: Kind) -> Option<MemoryOrder> {
    nth(MemoryOrder::ALL, what).filter(|order| order.belongs_to(kind))
}

#[cold]
fn unnamed() -> Option<Name> {
    Name::new(b"unnamed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives it back.
    struct Itself;

    impl Act for Itself {
        type Result = Transition;

        fn act(self, transition: Transition) -> Transition {
            transition
        }
    }

    impl Step {
        fn transition(&self) -> Option<Transition> {
            self.give(Itself)
        }
    }

    #[test]
    fn names_are_read_as_in_a_trace() {
        let name = |text: &str| Name::new(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        let register = |text: &str| named(true, text.as_bytes(), 5);
        let value = 5;
        assert_eq!(register("VTTBR_EL2"), Some(Transition::SysregWrite { register: Sysreg::VttbrEl2, value }));
        assert_eq!(register("msr"), Some(Transition::OtherSysreg { name: name("msr"), value }));
        assert_eq!(register("ttbr0_el12"), Some(Transition::OtherSysreg { name: name("ttbr0_el12"), value }));
        for text in ["", "1x", "vbar el2", "a_name_that_is_much_too_long"] {
            assert_eq!(register(text), None, "{text}");
        }
        let operand = Operand::Value(5);
        assert_eq!(named(false, b"vae1IS", 5), Some(Transition::Tlbi { op: TlbiOp::Vae1is, operand }));
        let other = Transition::OtherTlbi { name: name("vmallws2e1is"), operand };
        assert_eq!(named(false, b"vmallws2e1is", 5), Some(other));
        assert_eq!(named(true, &[0xff], 5), None);
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        assert_eq!(Step::default().transition(), None);
        let step = |kind, what| Step { kind, what, ..Step::default() }.transition();
        assert!(step(1, 1).is_some() && step(1, 3).is_none() && step(13, 3).is_some() && step(13, 2).is_none());
        assert!(step(6, 16).is_some() && step(6, 17).is_none());
        assert!(step(7, 155).is_some() && step(7, 156).is_none() && step(7, OTHER).is_some());
        assert!(step(8, 12).is_some() && step(8, 13).is_none() && step(8, OTHER).is_some());
        assert!(step(9, 3).is_some() && step(9, 4).is_none());
        assert!(step(14, 0).is_none() && step(OTHER, 0).is_none());
    }
}
