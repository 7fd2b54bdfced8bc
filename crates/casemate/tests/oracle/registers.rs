//! System registers, the geometry they give, and roots (2.1, 2.2, 2.7).

use anytrace_casemate::Sysreg;

use super::descriptor::{LAYOUTS, Layout, Stage};
use super::model::{Act, Model};
use super::tables::Visit;
use super::verdict::{
    ASID, ASSERT_CONCATENATED, ASSERT_FALSE, ASSERT_GRANULE, DUPLICATE_ID, Fault, INPUT_SIZE, MANY_ROOTS, OTHER_ID,
    UNSET,
};

const ROOTS_MAX: usize = 64;
const BITS_47_1: u64 = 0x0000_ffff_ffff_fffe;
const DEFAULT_GEOMETRY: u64 = 16;

/// Shape of a tree's top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Level of its first table.
    pub(crate) level: u64,
    /// Pages of 4 KiB that its first tables occupy.
    pub(crate) pages: u64,
    /// The layout of its descriptors.
    pub(crate) layout: &'static Layout,
}

/// A slot of the table of roots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    /// Whether the slot is in use.
    pub(crate) present: bool,
    /// Stage.
    pub(crate) stage: Stage,
    /// Address of its first table.
    pub(crate) base: u64,
    /// VMID or ASID.
    pub(crate) id: u64,
    /// Threads whose current root it is.
    pub(crate) refcount: i64,
    /// Shape at its registration.
    pub(crate) geometry: Option<Geometry>,
}

impl Model {
    /// A write of a register.
    pub(crate) fn sysreg_write(&mut self, act: Act, register: Sysreg, value: u64) -> Result<(), Fault> {
        let is_host = self.recorded(act, Sysreg::HcrEl2).unwrap_or(0) >> 34 & 1 == 1;
        let register = match register.name().strip_suffix("_el1") {
            Some(name) if is_host => Sysreg::from_name(&format!("{name}_el2")).unwrap_or(register),
            _ => register,
        };
        match register {
            Sysreg::Ttbr1El2 | Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 => self.doubts.push("unmodelled-regime"),
            Sysreg::VttbrEl2 if self.is_enabled(act, Stage::Two) => self.activate(act, Stage::Two, value)?,
            Sysreg::Ttbr0El2 if self.is_enabled(act, Stage::One) => self.activate(act, Stage::One, value)?,
            Sysreg::HcrEl2 if !self.is_enabled(act, Stage::Two) && value & 1 == 1 => {
                self.activate_recorded(act, Stage::Two, Sysreg::VttbrEl2)?;
            }
            Sysreg::SctlrEl2 if !self.is_enabled(act, Stage::One) && value & 1 == 1 => {
                self.activate_recorded(act, Stage::One, Sysreg::Ttbr0El2)?;
            }
            _ => {}
        }
        self.registers.insert((act.thread, register.name()), value);
        Ok(())
    }

    pub(crate) fn recorded(&self, act: Act, register: Sysreg) -> Option<u64> {
        self.registers.get(&(act.thread, register.name())).copied()
    }

    /// The values of a register in the threads that wrote it.
    pub(crate) fn values_of(&self, register: Sysreg) -> Vec<u64> {
        let of = self.registers.iter().filter(|((_, name), _)| *name == register.name());
        of.map(|(_, value)| *value).collect()
    }

    fn is_enabled(&self, act: Act, stage: Stage) -> bool {
        let register = if stage == Stage::One { Sysreg::SctlrEl2 } else { Sysreg::HcrEl2 };
        let default = u64::from(!self.options.no_sysreg);
        self.recorded(act, register).unwrap_or(default) & 1 == 1
    }

    fn activate_recorded(&mut self, act: Act, stage: Stage, register: Sysreg) -> Result<(), Fault> {
        match self.recorded(act, register) {
            Some(value) => self.activate(act, stage, value),
            None if self.options.no_sysreg => Err(Fault::Fire(UNSET)),
            None if self.options.quirks.unread_base_aborts => Err(Fault::Abort),
            None => Ok(()),
        }
    }

    /// A mapping of stage 1 was decoded: its attributes come from MAIR_EL2.
    pub(crate) fn read_mair(&self, act: Act) -> Result<(), Fault> {
        let unset = self.options.no_sysreg && self.recorded(act, Sysreg::MairEl2).is_none();
        if unset { Err(Fault::Fire(UNSET)) } else { Ok(()) }
    }

    /// The geometry that the thread's registers specify for a tree; none if it is not modelled.
    pub(crate) fn acting_geometry(&mut self, act: Act, stage: Stage) -> Result<Option<Geometry>, Fault> {
        let register = if stage == Stage::One { Sysreg::TcrEl2 } else { Sysreg::VtcrEl2 };
        let value = match self.recorded(act, register) {
            Some(value) => value,
            None if self.options.no_sysreg => return Err(Fault::Fire(UNSET)),
            None => DEFAULT_GEOMETRY,
        };
        let bits = 64 - (value & 63);
        let is_small = self.options.quirks.granule_unsupported;
        if bits < 21 || bits > if is_small { 48 } else { 52 } {
            return Err(Fault::Fire(INPUT_SIZE));
        }
        let granule = match value >> 14 & 3 {
            0 => 4096,
            3 => return Err(Fault::Assert(ASSERT_FALSE)),
            _ if is_small => return Err(Fault::Assert(ASSERT_GRANULE)),
            1 => 65536,
            _ => 16384,
        };
        let has_asids = self.has_asids(act) && stage == Stage::One;
        let is_wide = match (granule, has_asids) {
            (65536, true) => value >> 32 & 7 == 6,
            (65536, false) => value >> 16 & 7 == 6,
            (_, true) => value >> 59 & 1 == 1,
            (_, false) => value >> 32 & 1 == 1,
        };
        let is_it = |layout: &&Layout| layout.page == granule && layout.is_wide == (is_wide && !is_small);
        let layout = LAYOUTS.iter().find(is_it).expect("every granule has two layouts");
        if bits > 48 && !layout.is_wide && granule != 65536 {
            return Err(Fault::Fire(INPUT_SIZE));
        }
        self.top(stage, layout, bits, value)
    }

    /// The lowest level of which one table is enough, unless stage 2 takes up to 16 of the level below, or states a level.
    fn top(&mut self, stage: Stage, layout: &'static Layout, bits: u64, value: u64) -> Result<Option<Geometry>, Fault> {
        let size = 1_u64 << bits;
        let is_enough =
            |level: &u64| u128::from(layout.entry_bytes(*level)) * u128::from(layout.entries()) >= u128::from(size);
        let Some(level) = (0..4).rev().find(is_enough) else {
            self.doubts.push("unmodelled-geometry");
            return Ok(None);
        };
        let entries = |level: u64| (size / layout.entry_bytes(level)).max(1);
        let geometry = |level: u64, tables: u64, entries: u64| {
            let pages = if layout.page == 4096 { tables } else { entries.div_ceil(512) };
            Ok(Some(Geometry { level, pages, layout }))
        };
        if stage == Stage::One {
            return geometry(level, 1, entries(level));
        }
        let is_reference = self.options.quirks.concatenated_unsupported;
        let stated = match (layout.page, value >> 6 & 3) {
            (4096, field) => [None, Some(1), Some(0), Some(3)][field as usize],
            (_, field) => Some(3 - field),
        };
        if let Some(stated) = stated.filter(|_| !is_reference) {
            let tables = entries(stated).div_ceil(layout.entries());
            if tables <= 16 && size > layout.entry_bytes(stated) {
                return geometry(stated, tables, entries(stated));
            }
        }
        match entries(level) {
            17.. => geometry(level, 1, entries(level)),
            _ if is_reference => Err(Fault::Assert(ASSERT_CONCATENATED)),
            tables => geometry(level + 1, tables, tables * layout.entries()),
        }
    }

    /// E2H of HCR_EL2.
    fn has_asids(&self, act: Act) -> bool {
        self.recorded(act, Sysreg::HcrEl2).unwrap_or(0) >> 34 & 1 == 1
    }

    /// The slot of a root; `stage` counts unless lookups are blind to it.
    pub(crate) fn root_slot(&self, stage: Stage, is_it: impl Fn(&Root) -> bool) -> Option<usize> {
        let is_blind = self.options.quirks.stage_blind_ids;
        self.roots.iter().position(|root| root.present && (is_blind || root.stage == stage) && is_it(root))
    }

    fn activate(&mut self, act: Act, stage: Stage, value: u64) -> Result<(), Fault> {
        let (base, mut id) = (value & BITS_47_1, value >> 48);
        let has_asids = self.has_asids(act);
        let is_wide = match stage {
            Stage::One => !has_asids || self.recorded(act, Sysreg::TcrEl2).unwrap_or(0) >> 36 & 1 == 1,
            Stage::Two => self.recorded(act, Sysreg::VtcrEl2).unwrap_or(0) >> 19 & 1 == 1,
        };
        if !is_wide && !self.options.quirks.ids_are_wide {
            id %= 256;
        }
        if stage == Stage::One && id != 0 && !has_asids {
            return Err(Fault::Fire(ASID));
        }
        let slot = match self.root_slot(stage, |root| root.base == base) {
            Some(slot) if self.roots[slot].id == id => slot,
            Some(_) => return Err(Fault::Fire(OTHER_ID)),
            None if self.root_slot(stage, |root| root.id == id).is_some() => return Err(Fault::Fire(DUPLICATE_ID)),
            None => match self.register(act, stage, base, id)? {
                Some(slot) => slot,
                None => return Ok(()),
            },
        };
        let current = self.current.entry((act.thread, self.roots[slot].stage)).or_insert(None);
        if let Some(previous) = current.replace(slot) {
            self.roots[previous].refcount -= 1;
        }
        self.roots[slot].refcount += 1;
        Ok(())
    }

    fn register(&mut self, act: Act, stage: Stage, base: u64, id: u64) -> Result<Option<usize>, Fault> {
        let free = self.roots.iter().position(|root| !root.present).unwrap_or(self.roots.len());
        if self.options.quirks.limits && free >= ROOTS_MAX {
            return Err(Fault::Fire(MANY_ROOTS));
        }
        let Some(geometry) = self.acting_geometry(act, stage)? else { return Ok(None) };
        if geometry.layout.page != 4096 && !base.is_multiple_of(4096) {
            self.doubts.push("unmodelled-geometry");
            return Ok(None);
        }
        let root = Root { present: true, stage, base, id, refcount: 0, geometry: Some(geometry) };
        match self.roots.get_mut(free) {
            Some(slot) => *slot = root,
            None => self.roots.push(root),
        }
        self.walk_root(act, base, stage, Visit::Mark)?;
        Ok(Some(free))
    }
}
