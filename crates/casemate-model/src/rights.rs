//! What a block or page permits, and what the tables of stage 1 above it leave of that.
//!
//! Layouts of S2AP, XN, AP, UXN, PXN and DBM: Arm ARM D8.4 (memory access control), by way of the definitions in Linux'
//! arch/arm64/include/asm/pgtable-hwdef.h, kvm_pgtable.h and kvm_arm.h, which are secondary sources. Those of APTable,
//! UXNTable, PXNTable and of HPD in TCR: Arm ARM D8.4 (hierarchical permissions), by way of the descriptions of TCR_EL1
//! and of the attributes of tables in QEMU's target/arm/ptw.c, secondary too. NSTable limits no right.

use alloc::string::String;
use alloc::vec::Vec;

use crate::record::Sysreg;

use super::threads::Threads;
use super::tree::TreeKind;

const USER: u64 = 1 << 6;
const WRITE: u64 = 1 << 7;
const DIRTY: u64 = 1 << 51;
const XN_LOW: u64 = 1 << 53;
const XN_HIGH: u64 = 1 << 54;

const TABLE_PXN: u64 = 1 << 59;
const TABLE_XN: u64 = 1 << 60;
const TABLE_NO_USER: u64 = 1 << 61;
const TABLE_READ_ONLY: u64 = 1 << 62;

/// PXNTable, UXNTable (XNTable) and APTable of a table of stage 1.
pub(crate) const TABLE_LIMITS: u64 = TABLE_PXN | TABLE_XN | TABLE_NO_USER | TABLE_READ_ONLY;

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

/// Each right and its name.
const NAMES: [(Rights, &str); 6] = [
    (Rights::READ, "read"),
    (Rights::WRITE, "write"),
    (Rights::EXECUTE, "execute"),
    (Rights::USER_READ, "read at EL0"),
    (Rights::USER_WRITE, "write at EL0"),
    (Rights::USER_EXECUTE, "execute at EL0"),
];

/// Registers that change what descriptor bits permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Regime {
    /// HD: an entry with DBM permits writes, because hardware makes it writable.
    has_dirty_state: bool,
    /// HCR_EL2.E2H, or EL1&0: stage 1 has permissions for EL0.
    has_user: bool,
    /// Stage 1 without HPD: tables limit what is below them.
    has_limits: bool,
}

impl Regime {
    /// The regime of a tree, by what any thread wrote: a right that one thread has may be in a TLB.
    pub(super) fn of(threads: &Threads, kind: TreeKind) -> Self {
        let has = |register, bit: u32| threads.all_of(register).any(|value| value >> bit & 1 != 0);
        let has_user = kind.is_el1() || kind.stage() == 1 && has(Sysreg::HcrEl2, 34);
        let has_dirty_state = has(kind.control(), if has_user { 40 } else { 22 });
        // HPD of TCR_EL2; HPD0 and HPD1 where there are two halves.
        let disabled = match (has_user, kind.is_upper()) {
            (false, _) => 24,
            (true, false) => 41,
            (true, true) => 42,
        };
        let has_limits = kind.stage() == 1 && !has(kind.control(), disabled);
        Self { has_dirty_state, has_user, has_limits }
    }

    /// True when tables limit what is below them.
    pub(super) fn has_limits(self) -> bool {
        self.has_limits
    }
}

impl Rights {
    const READ: Self = Self(1);
    const WRITE: Self = Self(2);
    const EXECUTE: Self = Self(4);
    const USER_READ: Self = Self(8);
    const USER_WRITE: Self = Self(16);
    const USER_EXECUTE: Self = Self(32);

    /// Bits on which the rights of a block or page depend.
    pub(crate) const BITS: u64 = USER | WRITE | DIRTY | XN_LOW | XN_HIGH;

    /// The set as a number.
    #[cfg(feature = "hosted")]
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    /// The set of [`Self::bits`].
    #[cfg(feature = "hosted")]
    pub(super) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// What a valid block or page of a stage permits.
    pub(crate) fn of(stage: u8, value: u64, regime: Regime) -> Self {
        let has = |mask| value & mask != 0;
        let writes_by_hardware = regime.has_dirty_state && has(DIRTY);
        let granted = |right: Self, is_granted: bool| if is_granted { right.0 } else { 0 };
        if stage != 1 {
            // XN[1:0]: 00 both levels execute, 01 EL0 only, 10 neither, 11 EL1 only.
            return Self(
                granted(Self::READ, has(USER))
                    | granted(Self::WRITE, has(WRITE) || writes_by_hardware)
                    | granted(Self::EXECUTE, has(XN_HIGH) == has(XN_LOW))
                    | granted(Self::USER_EXECUTE, !has(XN_HIGH)),
            );
        }
        let is_writable = !has(WRITE) || writes_by_hardware;
        let common = granted(Self::READ, true) | granted(Self::WRITE, is_writable);
        if !regime.has_user {
            // AP[1] and PXN have no meaning where there is one privilege level.
            return Self(common | granted(Self::EXECUTE, !has(XN_HIGH)));
        }
        Self(
            common
                | granted(Self::EXECUTE, !has(XN_LOW))
                | granted(Self::USER_READ, has(USER))
                | granted(Self::USER_WRITE, has(USER) && is_writable)
                | granted(Self::USER_EXECUTE, !has(XN_HIGH)),
        )
    }

    /// What is left below tables that have some of [`TABLE_LIMITS`].
    pub(crate) fn limited(self, limits: u64, regime: Regime) -> Self {
        let without = |bit, rights: Self| if limits & bit != 0 { rights.0 } else { 0 };
        if !regime.has_limits {
            return self;
        }
        let written = without(TABLE_READ_ONLY, Self::WRITE.with(Self::USER_WRITE));
        let executed = match regime.has_user {
            // XNTable; APTable[0] and PXNTable have no meaning where there is one privilege level.
            false => without(TABLE_XN, Self::EXECUTE),
            true => {
                without(TABLE_XN, Self::USER_EXECUTE)
                    | without(TABLE_PXN, Self::EXECUTE)
                    | without(TABLE_NO_USER, Self::USER_READ.with(Self::USER_WRITE))
            }
        };
        Self(self.0 & !(written | executed))
    }

    /// The rights of both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights that `other` lacks.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// `write, execute at EL0`.
    pub fn words(self) -> String {
        let names = NAMES.iter().filter(|(right, _)| self.0 & right.0 != 0).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stage: u8, value: u64, regime: Regime) -> String {
        Rights::of(stage, value, regime).words()
    }

    #[test]
    fn stage_2_has_four_combinations_of_execute_never() {
        let plain = Regime::default();
        for (xn, rights) in [(0, "execute, execute at EL0"), (1, "execute at EL0"), (2, ""), (3, "execute")] {
            assert_eq!(words(2, xn << 53, plain), rights);
        }
        assert_eq!(words(2, 2 << 53 | 0xc0, plain), "read, write");
        let dirty = Regime { has_dirty_state: true, ..plain };
        assert_eq!(words(2, 2 << 53 | DIRTY | 0x40, plain), "read");
        assert_eq!(words(2, 2 << 53 | DIRTY | 0x40, dirty), "read, write");
    }

    #[test]
    fn stage_1_has_user_permissions_with_host_extensions_only() {
        let plain = Regime::default();
        assert_eq!(words(1, 0, plain), "read, write, execute");
        assert_eq!(words(1, XN_HIGH | WRITE | XN_LOW | USER, plain), "read");
        let user = Regime { has_user: true, ..plain };
        assert_eq!(words(1, 0, user), "read, write, execute, execute at EL0");
        assert_eq!(words(1, USER | WRITE | XN_LOW, user), "read, read at EL0, execute at EL0");
        assert_eq!(words(1, USER | XN_HIGH | XN_LOW, user), "read, write, read at EL0, write at EL0");
        let none = Rights::of(1, USER, user).without(Rights::of(1, USER, user));
        assert!(none.is_empty());
    }

    #[test]
    fn tables_take_rights_from_what_is_below_them() {
        let plain = Regime { has_limits: true, ..Regime::default() };
        let user = Regime { has_user: true, ..plain };
        let left = |value, limits, regime| Rights::of(1, value, regime).limited(limits, regime).words();
        for (limits, rights) in [
            (TABLE_READ_ONLY, "read, execute"),
            (TABLE_XN, "read, write"),
            (TABLE_PXN | TABLE_NO_USER, "read, write, execute"),
            (TABLE_LIMITS | 1 << 63, "read"),
        ] {
            assert_eq!(left(0, limits, plain), rights, "{limits:#x}");
        }
        for (limits, rights) in [
            (TABLE_READ_ONLY, "read, execute, read at EL0, execute at EL0"),
            (TABLE_XN, "read, write, execute, read at EL0, write at EL0"),
            (TABLE_PXN, "read, write, read at EL0, write at EL0, execute at EL0"),
            (TABLE_NO_USER, "read, write, execute, execute at EL0"),
            (TABLE_LIMITS, "read"),
        ] {
            assert_eq!(left(USER, limits, user), rights, "{limits:#x}");
        }
        // HPD, and stage 2.
        assert_eq!(left(0, TABLE_LIMITS, Regime::default()), "read, write, execute");
        let dirty = Regime { has_dirty_state: true, ..plain };
        assert_eq!(left(WRITE | DIRTY, TABLE_READ_ONLY, dirty), "read, execute");
    }
}
