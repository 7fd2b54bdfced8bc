//! What a TLBI names: stages, addresses, identifiers, levels, and the accesses for which it does not wait.

use super::Checker;
use crate::attributes::{self, NOT_GLOBAL};
use crate::descriptor::Granule;
use crate::memory::Table;
use crate::quirk::Quirk;
use crate::record::{Operand, Sysreg};
use crate::tlbi::{Regime, Stages, TlbiOp, TlbiRange, TlbiScope};
use crate::tree::TreeKind;
use crate::watch::{Miss, Watch};

/// A TLBI, as it concerns the trees of tables that are followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tlbi {
    pub(super) op: TlbiOp,
    pub(super) is_broadcast: bool,
    regime: Option<Regime>,
    pub(super) drops: Stages,
    pub(super) scope: TlbiScope,
    /// The register operand, where the operation has one.
    operand: u64,
}

impl Tlbi {
    /// `is_host`: operations on stage 1 of EL1&0 are for EL2&0, because HCR_EL2 has E2H and TGE set.
    pub(super) fn of(op: TlbiOp, operand: Operand, is_host: bool) -> Self {
        let is_of_host = is_host && op.stages() == Stages::One;
        let (regime, drops) = match op.regime() {
            Regime::El1 if is_of_host => (Some(Regime::El2), Stages::Both),
            Regime::El1 => (Some(Regime::El1), op.stages()),
            Regime::El2 => (Some(Regime::El2), Stages::Both),
            Regime::El3 => (None, Stages::Both),
        };
        let scope = if is_of_host && op.scope() == TlbiScope::Vmid { TlbiScope::All } else { op.scope() };
        Self { op, is_broadcast: op.is_broadcast(), regime, drops, scope, operand: operand.value().unwrap_or(0) }
    }

    /// True when it drops entries of such trees.
    pub(super) fn concerns(&self, kind: TreeKind) -> bool {
        match kind {
            TreeKind::El2 | TreeKind::El2Upper => self.regime == Some(Regime::El2),
            TreeKind::StageTwo => self.regime == Some(Regime::El1),
            TreeKind::El1 | TreeKind::El1Upper => self.regime == Some(Regime::El1) && self.drops != Stages::Two,
        }
    }

    /// The ASID of the operand.
    pub(super) fn asid(&self) -> u64 {
        if self.op.takes_operand() { self.operand >> 48 } else { 0 }
    }

    fn is_by_address(&self) -> bool {
        matches!(self.scope, TlbiScope::Address | TlbiScope::AnyAsid)
    }

    /// The level that the operand names, if any: TTL.
    pub(super) fn level_hint(&self) -> Option<i8> {
        let level = match (self.is_by_address(), self.op.is_range()) {
            (false, _) => 0,
            (true, true) => TlbiRange::of(self.operand).level as i8,
            (true, false) if self.operand >> 46 & 3 == 0 => 0,
            (true, false) => (self.operand >> 44 & 3) as i8,
        };
        (level != 0).then_some(level)
    }
}

impl<W: Watch> Checker<W> {
    /// True when the thread's operations for EL1 at EL2 are for EL2&0.
    pub(super) fn is_host(&self, thread: u32) -> bool {
        const HOST: u64 = 1 << 34 | 1 << 27;
        let hcr = self.threads.get(thread).and_then(|thread| thread.register(Sysreg::HcrEl2));
        hcr.is_some_and(|value| value & HOST == HOST)
    }

    /// Why a TLBI of the right stage does not name the entry at a position of a table, whose value was `old`, whatever
    /// its VMID or ASID.
    pub(super) fn scope_miss(&self, tlbi: &Tlbi, at: (Table, usize), old: u64) -> Option<Miss> {
        let is_table = at.0.decode(old).is_table();
        // What stage 2 and an address of stage 1 give together cannot be found by that address.
        if at.0.kind == TreeKind::StageTwo && tlbi.drops == Stages::One && tlbi.scope != TlbiScope::Vmid {
            return Some(Miss::PartOfStageOne);
        }
        let miss = match (tlbi.is_by_address(), tlbi.op.is_range()) {
            (true, false) => self.address_miss(tlbi, at, is_table),
            (true, true) => self.range_miss(tlbi, at, is_table),
            (false, _) if tlbi.scope == TlbiScope::Asid && is_table => Some(Miss::TableByAddress),
            // A global entry has no ASID.
            (false, _) if tlbi.scope == TlbiScope::Asid && old & NOT_GLOBAL == 0 => Some(Miss::WrongId),
            (false, _) => None,
        };
        if miss.is_some() {
            return miss;
        }
        let has_xs =
            || is_table || attributes::may_have_xs(at.0.stage() == 1, old, self.threads.all_of(at.0.kind.types()));
        (tlbi.op.is_nxs() && has_xs()).then_some(Miss::XsAccesses)
    }

    fn address_miss(&self, tlbi: &Tlbi, (table, at): (Table, usize), is_table: bool) -> Option<Miss> {
        if is_table {
            return Some(Miss::TableByAddress);
        }
        let (level, size, granule) = (table.level, table.entry_bytes(), table.format.granule as u64 + 1);
        let input = table.input.wrapping_add(size.wrapping_mul(at as u64));
        let address = (tlbi.operand & ((1 << 44) - 1)) << 12;
        // Bits 63:56 of an address are those of bit 55.
        if address.wrapping_sub(input) & ((1 << 56) - 1) >= size {
            return Some(Miss::WrongAddress);
        }
        if tlbi.op.is_last_level() && level != 3 && self.has(Quirk::LastLevelIs3) {
            return Some(Miss::WrongLevel);
        }
        // Granule in bits 3:2 of TTL (0: no hint, 1 to 3: 4, 16, 64 KiB), level in bits 1:0 (0 is reserved: no hint; so
        // is 1 where 16 KiB have no blocks of level 1).
        match (tlbi.operand >> 46 & 3, tlbi.level_hint()) {
            (0, _) => None,
            (named, None) if named == granule => None,
            (2, Some(1)) if table.format.granule == Granule::K16 && !table.format.has_wide_addresses => None,
            (named, Some(hint)) if named == granule => self.hint_miss(hint, table),
            _ if self.has(Quirk::TtlIgnored) => None,
            _ => Some(Miss::WrongLevel),
        }
    }

    fn hint_miss(&self, hint: i8, table: Table) -> Option<Miss> {
        // What TLBs may contain as part of a block is dropped by no TLBI of one level.
        let is_hit = hint == table.level && (self.stale.is_empty() || !self.is_below_block(table));
        (!is_hit && !self.has(Quirk::TtlIgnored)).then_some(Miss::WrongLevel)
    }

    /// The same for a range. One that contains all input addresses of a table drops the table and what is below it.
    fn range_miss(&self, tlbi: &Tlbi, (table, at): (Table, usize), is_table: bool) -> Option<Miss> {
        let range = TlbiRange::of(tlbi.operand);
        if range.granule_bits != Some(table.format.page_bits()) {
            return Some(Miss::WrongGranule);
        }
        let size = table.entry_bytes();
        let input = table.input.wrapping_add(size.wrapping_mul(at as u64));
        let (first, bytes) = range.bytes(table.format.has_no_shareability(), table.stage() == 1);
        let (end, stop) = (first.saturating_add(bytes), input.saturating_add(size));
        if end <= input || stop <= first {
            return Some(Miss::WrongAddress);
        }
        if is_table {
            let is_complete = first <= input && stop <= end && !tlbi.op.is_last_level() && range.level == 0;
            return (!is_complete).then_some(Miss::TableByAddress);
        }
        if tlbi.op.is_last_level() && table.level != 3 && self.has(Quirk::LastLevelIs3) {
            return Some(Miss::WrongLevel);
        }
        match tlbi.level_hint() {
            None => None,
            // The range must begin where an entry of that level does.
            Some(hint) if first % table.format.entry_bytes(hint) != 0 && !self.has(Quirk::TtlIgnored) => {
                Some(Miss::WrongLevel)
            }
            Some(hint) => self.hint_miss(hint, table),
        }
    }

    /// Why the VMID or ASID that a TLBI names is not that of an entry's root.
    pub(super) fn id_miss(&self, thread: u32, tlbi: &Tlbi, table: Table, old: u64) -> Option<Miss> {
        let is_blind = self.has(Quirk::StageBlindIds);
        let root = || self.roots.of_base(table.kind, table.root, is_blind);
        if table.kind == TreeKind::StageTwo {
            let is_named = match tlbi.scope {
                TlbiScope::All | TlbiScope::AnyAsid => true,
                TlbiScope::Vmid if self.has(Quirk::ByIdPromoted) => true,
                _ => {
                    let named = self.named_vmid(thread);
                    named.is_some() && named == root().map(|root| root.id)
                }
            };
            return (!is_named).then_some(Miss::WrongId);
        }
        let is_of_vmid = !table.kind.is_el1() || tlbi.scope == TlbiScope::All || {
            let is_promoted = tlbi.scope == TlbiScope::Vmid && self.has(Quirk::ByIdPromoted);
            is_promoted || root().is_some_and(|root| !root.has_other_vmids && root.vmid == self.vmid(thread))
        };
        let needs_asid = match tlbi.scope {
            TlbiScope::All | TlbiScope::AnyAsid => false,
            TlbiScope::Vmid => !table.kind.is_el1() && !self.has(Quirk::ByIdPromoted),
            TlbiScope::Asid => true,
            // A global entry has no ASID, where there are ASIDs.
            TlbiScope::Address => tlbi.op.is_el2() && table.kind == TreeKind::El2 || old & NOT_GLOBAL != 0,
        };
        let is_of_asid = || {
            let named = if self.has(Quirk::IdsAsidZero) { 0 } else { tlbi.asid() };
            root().is_some_and(|root| !root.has_other_ids && root.id == named)
        };
        (!is_of_vmid || needs_asid && !is_of_asid()).then_some(Miss::WrongId)
    }

    /// True when a TLBI needs the current VMID, and its thread has none.
    pub(super) fn lacks_vmid(&self, thread: u32, tlbi: &Tlbi, table: Table) -> bool {
        let needs_vmid = table.kind == TreeKind::StageTwo && tlbi.scope != TlbiScope::All;
        needs_vmid && !self.has(Quirk::NoVttbrIsSlot0) && self.named_vmid(thread).is_none()
    }

    /// The VMID that a TLBI of stage 2 names; none without a current root.
    pub(super) fn named_vmid(&self, thread: u32) -> Option<u64> {
        match self.threads.current(thread, TreeKind::StageTwo).and_then(|slot| self.roots.id_in(slot)) {
            None if self.has(Quirk::NoVttbrIsSlot0) => self.roots.id_in(0),
            id => id,
        }
    }
}
