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

impl Step {
    /// The step, if every number in it has a meaning.
    pub(crate) fn transition(&self) -> Option<Transition> {
        let Self { what, address, value, extra, .. } = *self;
        let unnamed = || Name::new(b"unnamed");
        Some(match nth(Kind::ALL, self.kind.checked_sub(1)?)? {
            kind @ Kind::MemWrite => {
                let order = nth(MemoryOrder::ALL, what).filter(|order| order.belongs_to(kind))?;
                Transition::MemWrite { order, address, value }
            }
            kind @ Kind::MemAtomic => {
                let order = nth(MemoryOrder::ALL, what).filter(|order| order.belongs_to(kind))?;
                Transition::MemAtomic { op: AtomicOp::Swp, order, address, value, read: extra }
            }
            Kind::MemRead => Transition::MemRead { address, value },
            Kind::MemInit => Transition::MemInit { address, size: value },
            Kind::MemFree => Transition::MemFree { address, size: value },
            Kind::MemSet => Transition::MemSet { address, size: value, value: extra },
            Kind::Barrier if what == 0 => Transition::Barrier(Barrier::Isb),
            Kind::Barrier => Transition::Barrier(Barrier::Dsb(nth(Domain::ALL, what - 1)?)),
            Kind::Tlbi if what == OTHER => Transition::OtherTlbi { name: unnamed()?, operand: Operand::Value(value) },
            Kind::Tlbi => Transition::Tlbi { op: nth(TlbiOp::ALL, what)?, operand: Operand::Value(value) },
            Kind::SysregWrite if what == OTHER => Transition::OtherSysreg { name: unnamed()?, value },
            Kind::SysregWrite => Transition::SysregWrite { register: nth(Sysreg::ALL, what)?, value },
            Kind::Hint => Transition::Hint { hint: nth(HintKind::ALL, what)?, location: address, value },
            Kind::Lock => Transition::Lock { address },
            Kind::Unlock => Transition::Unlock { address },
            Kind::Trylock => Transition::Trylock { address },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
