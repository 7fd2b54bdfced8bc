//! One step of the traced program.
//!
//! Names and forms are those of table 1.2 in the format's chapter of the book; the first name of each keyword is what
//! a writer emits, the others are synonyms from older logs and from the document's own example.

use crate::name::Name;
use crate::tlbi::TlbiOp;
use crate::words::keywords;

keywords! {
    /// The thirteen kinds of transition.
    Kind {
        /// A write of one word.
        MemWrite = "mem-write",
        /// A read of one word.
        MemRead = "mem-read",
        /// Zero-initialized memory.
        MemInit = "mem-init" | "mem-zalloc",
        /// Memory given back.
        MemFree = "mem-free",
        /// A wide write of one byte value.
        MemSet = "mem-set",
        /// ISB or DSB.
        Barrier = "barrier",
        /// TLB maintenance.
        Tlbi = "tlbi",
        /// A write of a system register.
        SysregWrite = "sysreg-write" | "msr",
        /// A change of logical state only.
        Hint = "hint",
        /// Acquires a lock.
        Lock = "lock",
        /// Releases a lock.
        Unlock = "unlock",
        /// Acquires a lock that the same thread may hold already.
        Trylock = "trylock",
        /// A read and a write of one word in one step.
        MemAtomic = "mem-atomic",
    }
}

keywords! {
    /// Memory order of a write.
    MemoryOrder {
        /// Plain.
        Plain = "plain",
        /// Release.
        Release = "release",
        /// The value goes to all 512 words of the page (the Rocq model's word).
        Page = "page",
        /// Acquire: of `mem-atomic` only.
        Acquire = "acquire",
        /// Acquire and release: of `mem-atomic` only.
        AcqRel = "acq_rel" | "acquire_release",
    }
}

impl MemoryOrder {
    /// True for the orders of a kind: of `mem-write`, or of `mem-atomic`.
    pub fn belongs_to(self, kind: Kind) -> bool {
        match self {
            Self::Plain | Self::Release => true,
            Self::Page => kind == Kind::MemWrite,
            Self::Acquire | Self::AcqRel => kind == Kind::MemAtomic,
        }
    }

    /// True when the write is ordered after the accesses before it.
    #[inline]
    pub fn is_release(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }
}

keywords! {
    /// What an atomic access does: instructions of FEAT_LSE, or a loop of exclusive accesses with their effect.
    AtomicOp {
        /// Compare and swap.
        Cmpxchg = "cmpxchg" | "cas",
        /// Swap.
        Swp = "swp",
        /// Add.
        Ldadd = "ldadd",
        /// Set bits.
        Ldset = "ldset",
        /// Clear bits.
        Ldclr = "ldclr",
        /// Exclusive or.
        Ldeor = "ldeor",
        /// Signed maximum.
        Ldsmax = "ldsmax",
        /// Signed minimum.
        Ldsmin = "ldsmin",
        /// Unsigned maximum.
        Ldumax = "ldumax",
        /// Unsigned minimum.
        Ldumin = "ldumin",
    }
}

keywords! {
    /// Which accesses a DSB waits for. The document has only the first four.
    Domain {
        /// Inner shareable.
        Ish = "ish" | "inner_shareable",
        /// Inner shareable, stores.
        Ishst = "ishst",
        /// Non shareable.
        Nsh = "nsh" | "non_shareable",
        /// Full system.
        Sy = "sy" | "full_system",
        /// Outer shareable.
        Osh = "osh" | "outer_shareable",
        /// Outer shareable, stores.
        Oshst = "oshst",
        /// Full system, stores.
        St = "st",
        /// Non shareable, stores.
        Nshst = "nshst",
        /// Inner shareable, loads.
        Ishld = "ishld",
        /// Non shareable, loads.
        Nshld = "nshld",
        /// Outer shareable, loads.
        Oshld = "oshld",
        /// Full system, loads.
        Ld = "ld",
        /// Inner shareable, except accesses with the XS attribute (FEAT_XS).
        Ishnxs = "ishnxs",
        /// Non shareable, except accesses with the XS attribute.
        Nshnxs = "nshnxs",
        /// Outer shareable, except accesses with the XS attribute.
        Oshnxs = "oshnxs",
        /// Full system, except accesses with the XS attribute.
        Synxs = "synxs",
    }
}

impl Domain {
    /// True for the four kinds in the document.
    pub fn is_documented(self) -> bool {
        matches!(self, Self::Ish | Self::Ishst | Self::Nsh | Self::Sy)
    }
}

keywords! {
    /// System registers that decide about translation at EL2 and below, and that the checker knows.
    Sysreg {
        /// Base of stage 2.
        VttbrEl2 = "vttbr_el2" | "vttbr",
        /// Base of EL2's stage 1.
        Ttbr0El2 = "ttbr0_el2" | "ttbr_el2",
        /// Geometry of stage 2.
        VtcrEl2 = "vtcr_el2",
        /// Hypervisor configuration; bit 0 enables stage 2.
        HcrEl2 = "hcr_el2",
        /// Geometry of stage 1.
        TcrEl2 = "tcr_el2",
        /// System control; bit 0 enables stage 1.
        SctlrEl2 = "sctlr_el2",
        /// Memory attributes.
        MairEl2 = "mair_el2",
        /// Base of the upper half of EL2&0 (FEAT_VHE).
        Ttbr1El2 = "ttbr1_el2",
        /// Base of the lower half of EL1&0's stage 1.
        Ttbr0El1 = "ttbr0_el1",
        /// Base of the upper half of EL1&0's stage 1.
        Ttbr1El1 = "ttbr1_el1",
        /// Geometry of EL1&0's stage 1.
        TcrEl1 = "tcr_el1",
        /// System control of EL1.
        SctlrEl1 = "sctlr_el1",
        /// Memory attributes of EL1&0's stage 1.
        MairEl1 = "mair_el1",
    }
}

impl Sysreg {
    /// True for registers that contain the address of a table.
    pub fn is_base(self) -> bool {
        use Sysreg::{Ttbr0El1, Ttbr0El2, Ttbr1El1, Ttbr1El2, VttbrEl2};
        matches!(self, VttbrEl2 | Ttbr0El2 | Ttbr1El2 | Ttbr0El1 | Ttbr1El1)
    }

    /// The register of EL2 that the name of a register of EL1 means at EL2 where HCR_EL2.E2H is set (Arm ARM D8.3,
    /// redirection of accesses).
    pub fn redirected(self) -> Self {
        match self {
            Self::Ttbr0El1 => Self::Ttbr0El2,
            Self::Ttbr1El1 => Self::Ttbr1El2,
            Self::TcrEl1 => Self::TcrEl2,
            Self::SctlrEl1 => Self::SctlrEl2,
            Self::MairEl1 => Self::MairEl2,
            other => other,
        }
    }
}

keywords! {
    /// Kinds of hint.
    HintKind {
        /// The root at `location` is guarded by the lock `value`.
        SetRootLock = "set_root_lock",
        /// The page at `location` belongs to the root `value`.
        SetOwnerRoot = "set_owner_root",
        /// The table at `location` is no longer used.
        ReleaseTable = "release_table" | "release",
        /// The entry at `location` belongs to the thread `value`.
        SetPteThreadOwner = "set_pte_thread_owner",
    }
}

/// ISB or DSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// Instruction synchronization.
    Isb,
    /// Data synchronization.
    Dsb(Domain),
}

/// What a TLBI names in addition to its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Nothing.
    None,
    /// The register operand: page number in bits 43:0, TTL in 47:44, ASID in 63:48; for ranges see
    /// [`crate::TlbiRange`].
    Value(u64),
    /// The older form: separate page number and level.
    AddressLevel {
        /// Page number.
        address: u64,
        /// Level hint (TTL).
        level: u64,
    },
}

impl Operand {
    /// The register operand, whichever form it is written in.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Value(value) => Some(value),
            Self::AddressLevel { address, level } => Some(address | (level & 0xf) << 44),
        }
    }
}

/// One step of the traced program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// A write of one word.
    MemWrite {
        /// Order.
        order: MemoryOrder,
        /// Address in bytes.
        address: u64,
        /// The word written.
        value: u64,
    },
    /// A read and a write of one word in one step.
    MemAtomic {
        /// What it does.
        op: AtomicOp,
        /// Order.
        order: MemoryOrder,
        /// Address in bytes.
        address: u64,
        /// The word afterwards.
        value: u64,
        /// The word before.
        read: u64,
    },
    /// A read of one word.
    MemRead {
        /// Address in bytes.
        address: u64,
        /// The word read.
        value: u64,
    },
    /// Zero-initialized memory.
    MemInit {
        /// Address in bytes.
        address: u64,
        /// Length in bytes.
        size: u64,
    },
    /// Memory given back.
    MemFree {
        /// Address in bytes.
        address: u64,
        /// Length in bytes.
        size: u64,
    },
    /// A wide write; the document says `value` goes to every byte.
    MemSet {
        /// Address in bytes.
        address: u64,
        /// Length in bytes.
        size: u64,
        /// A byte by the document; wider values are kept and reported.
        value: u64,
    },
    /// A barrier.
    Barrier(Barrier),
    /// TLB maintenance.
    Tlbi {
        /// Operation.
        op: TlbiOp,
        /// What it names.
        operand: Operand,
    },
    /// TLB maintenance that is not in the table of operations.
    OtherTlbi {
        /// Operation.
        name: Name,
        /// What it names.
        operand: Operand,
    },
    /// A write of a system register.
    SysregWrite {
        /// Register.
        register: Sysreg,
        /// Value.
        value: u64,
    },
    /// A write of a system register that is not in the table of registers.
    OtherSysreg {
        /// Register.
        name: Name,
        /// Value.
        value: u64,
    },
    /// A hint.
    Hint {
        /// Kind of hint.
        hint: HintKind,
        /// The object of the hint.
        location: u64,
        /// The value that the hint assigns to it.
        value: u64,
    },
    /// Acquires a lock.
    Lock {
        /// Address of the lock.
        address: u64,
    },
    /// Releases a lock.
    Unlock {
        /// Address of the lock.
        address: u64,
    },
    /// Acquires a lock that the same thread may hold already.
    Trylock {
        /// Address of the lock.
        address: u64,
    },
}

impl Transition {
    /// The kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Self::MemWrite { .. } => Kind::MemWrite,
            Self::MemAtomic { .. } => Kind::MemAtomic,
            Self::MemRead { .. } => Kind::MemRead,
            Self::MemInit { .. } => Kind::MemInit,
            Self::MemFree { .. } => Kind::MemFree,
            Self::MemSet { .. } => Kind::MemSet,
            Self::Barrier(_) => Kind::Barrier,
            Self::Tlbi { .. } | Self::OtherTlbi { .. } => Kind::Tlbi,
            Self::SysregWrite { .. } | Self::OtherSysreg { .. } => Kind::SysregWrite,
            Self::Hint { .. } => Kind::Hint,
            Self::Lock { .. } => Kind::Lock,
            Self::Unlock { .. } => Kind::Unlock,
            Self::Trylock { .. } => Kind::Trylock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_operand_form_gives_the_register_value() {
        assert_eq!(Operand::AddressLevel { address: 0x123, level: 3 }.value(), Some(0x3000_0000_0123));
        assert_eq!(Operand::None.value(), None);
    }

    #[test]
    fn synonyms_are_read_in_any_case() {
        assert_eq!(Kind::from_name("MSR"), Some(Kind::SysregWrite));
        assert_eq!(HintKind::from_name("Set_PTE_Thread_Owner"), Some(HintKind::SetPteThreadOwner));
        assert_eq!(Sysreg::from_name("VTTBR_El2"), Some(Sysreg::VttbrEl2));
        assert_eq!(MemoryOrder::from_name("relaxed"), None);
    }
}
