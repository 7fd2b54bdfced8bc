//! TLB maintenance operations: those of EL1&0, EL2 and EL3, each for this core, the inner and the outer shareable
//! domain, with and without nXS (FEAT_XS).
//!
//! What each one names and drops: Arm ARM C5.5 (A64 system instructions for TLB maintenance) and D8.17, by way of the
//! tables of Linux (sysreg.h and tlbflush.h of arch/arm64/include/asm, arch/arm64/kvm/hyp/nvhe/tlb.c): secondary
//! sources.

use crate::words::{Key, NO_KEY, key_at, key_of};

/// The translation regime whose entries an operation drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Regime {
    /// EL1&0: stage 1 of guests, and stage 2.
    El1,
    /// EL2: stage 1 of the hypervisor.
    El2,
    /// EL3.
    El3,
}

/// The stages whose entries an operation drops; `Both` is also everything of a regime with one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stages {
    /// Stage 1, and what TLBs hold of both stages as one.
    One,
    /// What TLBs hold of stage 2 alone.
    Two,
    /// Both.
    Both,
}

/// Which entries of these stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlbiScope {
    /// All.
    All,
    /// Those of the current VMID.
    Vmid,
    /// Those of an ASID that are not global.
    Asid,
    /// Those of an address and an ASID or the current VMID.
    Address,
    /// Those of an address, whatever their ASID.
    AnyAsid,
}

/// The properties that the forms of an operation share.
struct Row {
    name: &'static str,
    key: Key,
    regime: Regime,
    stages: Stages,
    scope: TlbiScope,
    is_last_level: bool,
    is_range: bool,
}

/// The suffixes of the forms, in the order of each row's variants.
const SUFFIXES: [&str; 6] = ["", "is", "os", "nxs", "isnxs", "osnxs"];

/// Forms of each operation.
const FORMS: usize = SUFFIXES.len();

macro_rules! operations {
    (@level Last) => { true };
    (@level All) => { false };
    (@count Range) => { true };
    (@count Single) => { false };
    ($($name:literal $regime:ident $stages:ident $scope:ident $level:ident $count:ident:
       $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident;)*) => {
        /// A TLB maintenance operation. `is`: all cores of the inner shareable domain, `os`: of the outer shareable
        /// domain; `nxs` does not wait for accesses with the XS attribute.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum TlbiOp {
            $(
                #[doc = concat!("`", $name, "`.")] $a,
                #[doc = concat!("`", $name, "is`.")] $b,
                #[doc = concat!("`", $name, "os`.")] $c,
                #[doc = concat!("`", $name, "nxs`.")] $d,
                #[doc = concat!("`", $name, "isnxs`.")] $e,
                #[doc = concat!("`", $name, "osnxs`.")] $f,
            )*
        }

        static ROWS: &[Row] = &[$(Row {
            name: $name,
            key: key_of($name),
            regime: Regime::$regime,
            stages: Stages::$stages,
            scope: TlbiScope::$scope,
            is_last_level: operations!(@level $level),
            is_range: operations!(@count $count),
        }),*];

        static NAMES: &[&str] = &[$(
            $name, concat!($name, "is"), concat!($name, "os"),
            concat!($name, "nxs"), concat!($name, "isnxs"), concat!($name, "osnxs"),
        )*];

        impl TlbiOp {
            /// Every operation.
            pub const ALL: &'static [Self] =
                &[$(Self::$a, Self::$b, Self::$c, Self::$d, Self::$e, Self::$f,)*];
        }
    };
}

// Name, regime, stages, scope, last level or all levels, one address or a range; the first rows are the most frequent.
operations! {
    "vmalls12e1" El1 Both Vmid All Single:
        Vmalls12e1 Vmalls12e1is Vmalls12e1os Vmalls12e1nxs Vmalls12e1isnxs Vmalls12e1osnxs;
    "alle1" El1 Both All All Single:
        Alle1 Alle1is Alle1os Alle1nxs Alle1isnxs Alle1osnxs;
    "alle2" El2 Both All All Single:
        Alle2 Alle2is Alle2os Alle2nxs Alle2isnxs Alle2osnxs;
    "vmalle1" El1 One Vmid All Single:
        Vmalle1 Vmalle1is Vmalle1os Vmalle1nxs Vmalle1isnxs Vmalle1osnxs;
    "ipas2e1" El1 Two Address All Single:
        Ipas2e1 Ipas2e1is Ipas2e1os Ipas2e1nxs Ipas2e1isnxs Ipas2e1osnxs;
    "ipas2le1" El1 Two Address Last Single:
        Ipas2le1 Ipas2le1is Ipas2le1os Ipas2le1nxs Ipas2le1isnxs Ipas2le1osnxs;
    "vae2" El2 Both Address All Single:
        Vae2 Vae2is Vae2os Vae2nxs Vae2isnxs Vae2osnxs;
    "vale2" El2 Both Address Last Single:
        Vale2 Vale2is Vale2os Vale2nxs Vale2isnxs Vale2osnxs;
    "vae1" El1 One Address All Single:
        Vae1 Vae1is Vae1os Vae1nxs Vae1isnxs Vae1osnxs;
    "vale1" El1 One Address Last Single:
        Vale1 Vale1is Vale1os Vale1nxs Vale1isnxs Vale1osnxs;
    "vaae1" El1 One AnyAsid All Single:
        Vaae1 Vaae1is Vaae1os Vaae1nxs Vaae1isnxs Vaae1osnxs;
    "vaale1" El1 One AnyAsid Last Single:
        Vaale1 Vaale1is Vaale1os Vaale1nxs Vaale1isnxs Vaale1osnxs;
    "aside1" El1 One Asid All Single:
        Aside1 Aside1is Aside1os Aside1nxs Aside1isnxs Aside1osnxs;
    "ripas2e1" El1 Two Address All Range:
        Ripas2e1 Ripas2e1is Ripas2e1os Ripas2e1nxs Ripas2e1isnxs Ripas2e1osnxs;
    "ripas2le1" El1 Two Address Last Range:
        Ripas2le1 Ripas2le1is Ripas2le1os Ripas2le1nxs Ripas2le1isnxs Ripas2le1osnxs;
    "rvae2" El2 Both Address All Range:
        Rvae2 Rvae2is Rvae2os Rvae2nxs Rvae2isnxs Rvae2osnxs;
    "rvale2" El2 Both Address Last Range:
        Rvale2 Rvale2is Rvale2os Rvale2nxs Rvale2isnxs Rvale2osnxs;
    "rvae1" El1 One Address All Range:
        Rvae1 Rvae1is Rvae1os Rvae1nxs Rvae1isnxs Rvae1osnxs;
    "rvale1" El1 One Address Last Range:
        Rvale1 Rvale1is Rvale1os Rvale1nxs Rvale1isnxs Rvale1osnxs;
    "rvaae1" El1 One AnyAsid All Range:
        Rvaae1 Rvaae1is Rvaae1os Rvaae1nxs Rvaae1isnxs Rvaae1osnxs;
    "rvaale1" El1 One AnyAsid Last Range:
        Rvaale1 Rvaale1is Rvaale1os Rvaale1nxs Rvaale1isnxs Rvaale1osnxs;
    "alle3" El3 Both All All Single:
        Alle3 Alle3is Alle3os Alle3nxs Alle3isnxs Alle3osnxs;
    "vae3" El3 Both Address All Single:
        Vae3 Vae3is Vae3os Vae3nxs Vae3isnxs Vae3osnxs;
    "vale3" El3 Both Address Last Single:
        Vale3 Vale3is Vale3os Vale3nxs Vale3isnxs Vale3osnxs;
    "rvae3" El3 Both Address All Range:
        Rvae3 Rvae3is Rvae3os Rvae3nxs Rvae3isnxs Rvae3osnxs;
    "rvale3" El3 Both Address Last Range:
        Rvale3 Rvale3is Rvale3os Rvale3nxs Rvale3isnxs Rvale3osnxs;
}

impl TlbiOp {
    /// The spelling a writer emits.
    #[inline]
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).copied().unwrap_or_default()
    }

    /// Reads a name in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_key(key_at(name.as_bytes(), 0, name.len()))
    }

    #[inline]
    #[doc(hidden)]
    pub fn from_key(key: Key) -> Option<Self> {
        if key == NO_KEY || key == Key::MAX {
            return None;
        }
        let (key, is_nxs) = without(key, const { key_of("nxs") }, 3);
        let (key, is_inner) = without(key, const { key_of("is") }, 2);
        let (key, is_outer) = if is_inner { (key, false) } else { without(key, const { key_of("os") }, 2) };
        let row = ROWS.iter().position(|row| row.key == key)?;
        let form = usize::from(is_inner) + 2 * usize::from(is_outer) + 3 * usize::from(is_nxs);
        Self::ALL.get(FORMS * row + form).copied()
    }

    #[inline]
    fn row(self) -> &'static Row {
        // There is a row for each operation; a second one instead of a panic is for the compiler.
        ROWS.get(self as usize / FORMS).unwrap_or(const { &ROWS[0] })
    }

    /// The name without the suffix of its form.
    pub fn base_name(self) -> &'static str {
        self.row().name
    }

    /// True when the operation has a register operand: an address, a range or an ASID.
    #[inline]
    pub fn takes_operand(self) -> bool {
        !matches!(self.row().scope, TlbiScope::All | TlbiScope::Vmid)
    }

    /// True when the operation reaches other cores.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        !(self as usize).is_multiple_of(3)
    }

    /// True when the operation does not wait for accesses with the XS attribute.
    #[inline]
    pub fn is_nxs(self) -> bool {
        self as usize % FORMS >= 3
    }

    /// True for operations on EL2's own (stage 1) tables.
    #[inline]
    pub fn is_el2(self) -> bool {
        self.row().regime == Regime::El2
    }

    /// True when only entries of the last level are dropped.
    #[inline]
    pub fn is_last_level(self) -> bool {
        self.row().is_last_level
    }

    /// True when the operand is a range of addresses (FEAT_TLBIRANGE).
    #[inline]
    pub fn is_range(self) -> bool {
        self.row().is_range
    }

    /// The regime it is for.
    #[inline]
    pub fn regime(self) -> Regime {
        self.row().regime
    }

    /// The stages it drops.
    #[inline]
    pub fn stages(self) -> Stages {
        self.row().stages
    }

    /// The entries it drops.
    #[inline]
    pub fn scope(self) -> TlbiScope {
        self.row().scope
    }
}

/// A key without a suffix of some bytes, and whether it had it.
#[inline]
fn without(key: Key, suffix: Key, bytes: u32) -> (Key, bool) {
    let length = 16 - key.leading_zeros() / 8;
    if length <= bytes || key >> (8 * (length - bytes)) != suffix {
        return (key, false);
    }
    (key & ((1 << (8 * (length - bytes))) - 1), true)
}

/// The operand of an operation on a range (Arm ARM, TLBI RVAE1 and RIPAS2E1): ASID 63:48, TG 47:46, SCALE 45:44,
/// NUM 43:39, TTL 38:37, BaseADDR 36:0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlbiRange {
    /// Bits of an address inside a page of the granule: 12, 14 or 16; none for the reserved granule.
    pub granule_bits: Option<u32>,
    /// The level hint; 0 for none.
    pub level: u8,
    /// BaseADDR: in units of the granule, or of 64 KiB where the regime has 52-bit addresses (DS).
    base: u64,
    pages: u64,
}

impl TlbiRange {
    /// Reads a register operand.
    pub fn of(operand: u64) -> Self {
        let granule_bits = match operand >> 46 & 3 {
            1 => Some(12),
            2 => Some(14),
            3 => Some(16),
            _ => None,
        };
        let (scale, number) = (operand >> 44 & 3, operand >> 39 & 31);
        let level = (operand >> 37 & 3) as u8;
        Self { granule_bits, level, base: operand & ((1 << 37) - 1), pages: (number + 1) << (5 * scale + 1) }
    }

    /// The first address, and the length in bytes: (NUM+1) * 2^(5*SCALE+1) pages of the granule.
    /// `is_signed`: addresses of stage 1 may be in the upper half.
    pub fn bytes(&self, has_wide_base: bool, is_signed: bool) -> (u64, u64) {
        let bits = self.granule_bits.unwrap_or(12);
        let is_upper = is_signed && self.base >> 36 & 1 != 0;
        let base = if is_upper { self.base | u64::MAX << 37 } else { self.base };
        let base = base << if has_wide_base { 16 } else { bits };
        (base, self.pages << bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_read_by_its_name_in_any_case_and_has_the_form_of_its_suffix() {
        assert_eq!(TlbiOp::ALL.len(), 156);
        for (at, op) in TlbiOp::ALL.iter().enumerate() {
            let (name, suffix) = (op.name(), SUFFIXES[at % FORMS]);
            assert_eq!(*op as usize, at);
            assert_eq!(name, format!("{}{suffix}", op.base_name()));
            assert_eq!(TlbiOp::from_name(name), Some(*op));
            assert_eq!(TlbiOp::from_name(&name.to_uppercase()), Some(*op));
            assert_eq!(op.is_broadcast(), suffix.contains("is") || suffix.contains("os"), "{name}");
            assert_eq!(op.is_nxs(), suffix.contains("nxs"), "{name}");
            let base = op.base_name();
            assert_eq!(op.is_range(), base.starts_with('r'), "{name}");
            assert_eq!(op.regime() == Regime::El3, base.ends_with('3'), "{name}");
            assert_eq!(op.is_el2(), base.ends_with("e2"), "{name}");
            let is_last = ["vale", "vaale", "ipas2le"].iter().any(|part| base.contains(part));
            assert_eq!(op.is_last_level(), is_last, "{name}");
        }
        for name in
            ["", "is", "nxs", "vae4is", "vae2isis", "vae2nxsis", "vae2sy", "vmalls12e1isnxsx", "set_pte_thread_owner"]
        {
            assert_eq!(TlbiOp::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn operations_by_address_or_asid_take_an_operand() {
        let without: Vec<_> = TlbiOp::ALL.iter().filter(|op| !op.takes_operand()).map(|op| op.base_name()).collect();
        let names: std::collections::BTreeSet<_> = without.into_iter().collect();
        assert_eq!(names, ["alle1", "alle2", "alle3", "vmalle1", "vmalls12e1"].into());
    }

    #[test]
    fn a_range_has_num_plus_one_times_two_to_five_scale_plus_one_pages() {
        let range = TlbiRange::of(1 << 46 | 2 << 44 | 3 << 39 | 2 << 37 | 0x1234);
        assert_eq!((range.granule_bits, range.level), (Some(12), 2));
        assert_eq!(range.bytes(false, true), (0x123_4000, 4 * 2048 * 4096));
        assert_eq!(range.bytes(true, true), (0x1234_0000, 4 * 2048 * 4096));
        assert_eq!(TlbiRange::of(2 << 46).bytes(false, false), (0, 2 * 0x4000));
        assert_eq!(TlbiRange::of(3 << 46 | 3 << 44 | 31 << 39).bytes(false, false), (0, 32 * 65536 * 0x1_0000));
        assert_eq!(TlbiRange::of(5).granule_bits, None);
        assert_eq!(TlbiRange::of(u64::MAX).bytes(true, false).0, ((1 << 37) - 1) << 16);
        assert_eq!(TlbiRange::of(u64::MAX).bytes(true, true).0, u64::MAX << 16);
    }
}
