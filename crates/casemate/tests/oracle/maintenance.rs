//! What a TLBI names (2.6, and the chapter's section "TLB maintenance"): read from its name, letter by letter.

use std::collections::BTreeSet;

use super::descriptor::{Descriptor, Layout, Shape, Stage};
use super::memory::Cell;
use super::model::{Act, Model};

/// Which translations a TLBI names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    All,
    ById,
    /// One address.
    Address,
    /// Some addresses.
    Range,
    /// An ASID.
    Asid,
}

/// The columns of the table of 2.6.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maintenance {
    /// The regime whose entries it concerns: 1 or 2.
    pub(crate) regime: Option<u8>,
    /// Stages it drops.
    pub(crate) one: bool,
    pub(crate) two: bool,
    pub(crate) is_broadcast: bool,
    pub(crate) is_nxs: bool,
    pub(crate) method: Method,
    last_level: bool,
    /// The ASID of the operand does not matter.
    any_asid: bool,
    /// Of EL1&0, but for the host: global entries are reached whatever the ASID is.
    is_of_host: bool,
    operand: u64,
}

/// Takes a name apart.
pub(crate) fn maintenance(name: &str, operand: u64, is_host: bool) -> Maintenance {
    let (name, is_nxs) = name.strip_suffix("nxs").map_or((name, false), |name| (name, true));
    let shared = name.strip_suffix("is").or(name.strip_suffix("os"));
    let (name, is_broadcast) = (shared.unwrap_or(name), shared.is_some());
    let (name, level) = name.split_at(name.len() - 1);
    let (name, is_range) = name.strip_prefix('r').map_or((name, false), |name| (name, true));
    let (one, two, method, last_level, any_asid) = match name {
        "vmalls12e" => (true, true, Method::ById, false, false),
        "vmalle" => (true, false, Method::ById, false, false),
        "alle" => (true, true, Method::All, false, false),
        "aside" => (true, false, Method::Asid, false, false),
        "ipas2e" => (false, true, Method::Address, false, false),
        "ipas2le" => (false, true, Method::Address, true, false),
        "vae" => (true, false, Method::Address, false, false),
        "vale" => (true, false, Method::Address, true, false),
        "vaae" => (true, false, Method::Address, false, true),
        "vaale" => (true, false, Method::Address, true, true),
        other => panic!("no such TLBI: {other}"),
    };
    let is_of_host = level == "1" && is_host && one && !two;
    let regime = match level {
        "1" if is_of_host => Some(2),
        "1" => Some(1),
        "2" => Some(2),
        _ => None,
    };
    let method = match (method, is_range, is_of_host) {
        (Method::Address, true, _) => Method::Range,
        // The host has no VMID.
        (Method::ById, _, true) => Method::All,
        (method, ..) => method,
    };
    Maintenance { regime, one, two, is_broadcast, is_nxs, method, last_level, any_asid, is_of_host, operand }
}

impl Maintenance {
    /// Does it concern trees of this kind?
    pub(crate) fn visits(&self, stage: Stage) -> bool {
        match stage {
            Stage::One | Stage::OneUpper => self.regime == Some(2),
            Stage::Two => self.regime == Some(1),
            Stage::Guest | Stage::GuestUpper => self.regime == Some(1) && self.one,
        }
    }

    /// Is it for the last level only?
    pub(crate) fn is_last_level(&self) -> bool {
        self.last_level
    }

    /// Does it drop entries of every ASID?
    pub(crate) fn is_for_any_asid(&self) -> bool {
        self.any_asid
    }

    /// The level hint; 0 for none.
    pub(crate) fn hinted_level(&self) -> i64 {
        let level = match self.method {
            Method::Range => self.operand >> 37 & 3,
            Method::Address if self.operand >> 46 & 3 != 0 => self.operand >> 44 & 3,
            _ => 0,
        };
        level as i64
    }

    /// The first address of a range, and the one after its last, for tables of a layout.
    fn range(&self, layout: &Layout, stage: Stage) -> Option<(u128, u128)> {
        let field = |high: u32, low: u32| self.operand >> low & ((1 << (high - low + 1)) - 1);
        let pages = (field(43, 39) + 1) * 2_u64.pow(5 * field(45, 44) as u32 + 1);
        let granule = [0, 4096, 16384, 65536][field(47, 46) as usize];
        let unit = if layout.is_wide { 65536 } else { granule };
        // The highest bit is a sign where there are two halves.
        let sign = if stage.is_one() && field(36, 36) == 1 { u64::MAX << 37 } else { 0 };
        let first = u128::from((sign | field(36, 0)).wrapping_mul(unit));
        (granule == layout.page).then(|| (first, first + u128::from(pages * granule)))
    }
}

impl Model {
    /// Does the TLBI name the entry, whose valid value was `old`?
    pub(crate) fn reaches(
        &self,
        act: Act,
        tlbi: &Maintenance,
        address_of_cell: u64,
        cell: &Cell,
        desc: &Descriptor,
        old: u64,
    ) -> bool {
        // Of stage 2, one address or ASID of stage 1 is nothing.
        let is_part = desc.stage == Stage::Two && !tlbi.two && tlbi.method != Method::ById;
        if is_part || tlbi.is_nxs && self.may_have_xs(desc, old) {
            return false;
        }
        let is_last = !tlbi.last_level || desc.level == 3 || !self.options.quirks.last_level_is_3;
        match tlbi.method {
            Method::All => true,
            Method::ById if desc.stage.is_guest() => {
                self.options.quirks.by_id_promoted || self.vmid_matches(act, cell, desc)
            }
            Method::ById => self.options.quirks.by_id_promoted || self.id_matches(act, tlbi, cell, desc),
            Method::Asid => desc.shape == Shape::Map && old >> 11 & 1 == 1 && self.id_matches(act, tlbi, cell, desc),
            Method::Address => {
                let address = (tlbi.operand & ((1 << 44) - 1)) << 12;
                desc.shape == Shape::Map
                    && desc.covers(address)
                    && is_last
                    && self.ttl_matches(tlbi, address_of_cell, desc)
                    && self.is_named(act, tlbi, cell, desc, old)
            }
            Method::Range => {
                self.range_reaches(tlbi, address_of_cell, desc)
                    && (is_last || desc.shape != Shape::Map)
                    && self.is_named(act, tlbi, cell, desc, old)
            }
        }
    }

    fn range_reaches(&self, tlbi: &Maintenance, cell: u64, desc: &Descriptor) -> bool {
        let Some((first, end)) = tlbi.range(desc.layout, desc.stage) else { return false };
        let (from, to) = (u128::from(desc.input), u128::from(desc.input) + u128::from(desc.bytes()));
        if desc.shape != Shape::Map {
            // Everything below the table goes with it.
            return first <= from && to <= end && !tlbi.last_level && tlbi.hinted_level() == 0;
        }
        let is_met = (from..to).contains(&first) || (first..end).contains(&from);
        is_met
            && match tlbi.hinted_level() {
                0 => true,
                _ if self.options.quirks.ttl_ignored => true,
                level => {
                    first % u128::from(desc.layout.entry_bytes(level)) == 0
                        && level == desc.level
                        && !self.is_in_old_block(cell)
                }
            }
    }

    /// By address: the identifier counts, unless the operation is for all, or the entry of the host is global.
    fn is_named(&self, act: Act, tlbi: &Maintenance, cell: &Cell, desc: &Descriptor, old: u64) -> bool {
        let has_halves = tlbi.is_of_host || desc.stage.is_guest() || desc.stage.is_upper();
        let is_global = has_halves && old >> 11 & 1 == 0;
        let is_free = tlbi.any_asid || is_global;
        if is_free && desc.stage.is_guest() {
            return self.vmid_matches(act, cell, desc);
        }
        is_free || self.id_matches(act, tlbi, cell, desc)
    }

    /// TTL: granule in bits 3:2 (0 none, then 4, 16, 64 KiB), level in bits 1:0 (0 none; 1 is none too where 16 KiB have
    /// no blocks of level 1).
    fn ttl_matches(&self, tlbi: &Maintenance, cell: u64, desc: &Descriptor) -> bool {
        let ttl = tlbi.operand >> 44 & 0xf;
        self.options.quirks.ttl_ignored
            || match ([0, 4096, 16384, 65536][(ttl >> 2) as usize], ttl & 3) {
                (0, _) => true,
                (page, _) if page != desc.layout.page => false,
                (_, 0) => true,
                (16384, 1) if !desc.layout.is_wide => true,
                (_, level) => level as i64 == desc.level && !self.is_in_old_block(cell),
            }
    }

    pub(crate) fn id_matches(&self, act: Act, tlbi: &Maintenance, cell: &Cell, desc: &Descriptor) -> bool {
        let quirks = self.options.quirks;
        let Some(slot) = self.root_slot(desc.stage, |root| root.base == cell.owner) else { return false };
        let id = self.roots[slot].id;
        if desc.stage.is_one() {
            let asid = if quirks.ids_asid_zero { 0 } else { tlbi.operand >> 48 };
            let is_of_vmid = !desc.stage.is_guest() || self.vmid_matches(act, cell, desc);
            return asid == id && self.roots[slot].ids.len() == 1 && is_of_vmid;
        }
        let current = self.current.get(&(act.thread, Stage::Two)).copied().flatten();
        match current {
            Some(current) => self.roots[current].id == id,
            None if quirks.no_vttbr_is_slot_0 => self.roots.first().map_or(0, |root| root.id) == id,
            None => false,
        }
    }

    /// Is the thread's VMID the only one under which the tree was used?
    fn vmid_matches(&self, act: Act, cell: &Cell, desc: &Descriptor) -> bool {
        let Some(slot) = self.root_slot(desc.stage, |root| root.base == cell.owner) else { return false };
        self.roots[slot].vmids == BTreeSet::from([self.vmid(act)])
    }

    /// May accesses by the entry have the XS attribute? In a table of types: write-back memory and three encodings have
    /// not.
    fn may_have_xs(&self, desc: &Descriptor, old: u64) -> bool {
        if desc.shape != Shape::Map {
            return true;
        }
        if desc.stage == Stage::Two {
            return old >> 11 & 1 == 0;
        }
        let mairs = self.values_of(desc.stage.registers()[3]);
        let kinds = mairs.iter().map(|mair| mair.to_le_bytes()[(old >> 2 & 7) as usize]);
        let back = [0x5, 0x6, 0x7, 0xc, 0xd, 0xe, 0xf];
        let is_free = |kind: u8| match kind {
            0x01 | 0x05 | 0x09 | 0x0d | 0x40 | 0xa0 | 0xf0 => true,
            _ => back.contains(&(kind >> 4)) && back.contains(&(kind & 15)),
        };
        mairs.is_empty() || kinds.into_iter().any(|kind| !is_free(kind))
    }
}
