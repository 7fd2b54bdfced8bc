//! Which translations a tree of tables is for.

use crate::record::Sysreg;

/// What a tree translates, by the register that contains its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum TreeKind {
    /// TTBR0_EL2: stage 1 of EL2, or the lower half of EL2&0.
    #[default]
    El2 = 1,
    /// VTTBR_EL2: stage 2 of EL1&0.
    StageTwo = 2,
    /// TTBR1_EL2: the upper half of EL2&0 (HCR_EL2.E2H).
    El2Upper = 3,
    /// TTBR0_EL1: the lower half of stage 1 of EL1&0.
    El1 = 4,
    /// TTBR1_EL1: the upper half of stage 1 of EL1&0.
    El1Upper = 5,
}

impl TreeKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::El2, Self::StageTwo, Self::El2Upper, Self::El1, Self::El1Upper];

    /// The kind of tree that a register contains the base of.
    pub fn of_base(register: Sysreg) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.base() == register)
    }

    /// The register that contains the base.
    pub fn base(self) -> Sysreg {
        match self {
            Self::El2 => Sysreg::Ttbr0El2,
            Self::StageTwo => Sysreg::VttbrEl2,
            Self::El2Upper => Sysreg::Ttbr1El2,
            Self::El1 => Sysreg::Ttbr0El1,
            Self::El1Upper => Sysreg::Ttbr1El1,
        }
    }

    /// The register that gives the shape of the tables.
    pub fn control(self) -> Sysreg {
        match self {
            Self::El2 | Self::El2Upper => Sysreg::TcrEl2,
            Self::StageTwo => Sysreg::VtcrEl2,
            Self::El1 | Self::El1Upper => Sysreg::TcrEl1,
        }
    }

    /// The register that turns the translation on, by its bit 0.
    pub(crate) fn switch(self) -> Sysreg {
        match self {
            Self::El2 | Self::El2Upper => Sysreg::SctlrEl2,
            Self::StageTwo => Sysreg::HcrEl2,
            Self::El1 | Self::El1Upper => Sysreg::SctlrEl1,
        }
    }

    /// The register that gives memory types; stage 2 has none.
    pub(crate) fn types(self) -> Sysreg {
        if self.is_el1() { Sysreg::MairEl1 } else { Sysreg::MairEl2 }
    }

    /// 1 or 2.
    #[inline]
    pub fn stage(self) -> u8 {
        if self as u8 == Self::StageTwo as u8 { 2 } else { 1 }
    }

    /// True for stage 1 of EL1&0.
    #[inline]
    pub fn is_el1(self) -> bool {
        matches!(self, Self::El1 | Self::El1Upper)
    }

    /// True for the upper half of the addresses.
    #[inline]
    pub fn is_upper(self) -> bool {
        matches!(self, Self::El2Upper | Self::El1Upper)
    }

    /// True for those that the reference follows.
    #[inline]
    pub(crate) fn is_of_reference(self) -> bool {
        matches!(self, Self::El2 | Self::StageTwo)
    }

    /// The place in lists with one element for each kind.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self as usize - 1
    }
}
