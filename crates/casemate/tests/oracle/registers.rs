//! System registers, the geometry they give, and roots (2.1, 2.2, 2.7).

use std::collections::BTreeSet;

use anytrace_casemate::Sysreg;

use super::descriptor::{Descriptor, LAYOUTS, Layout, PAGE, Shape, Stage, WORDS, explode};
use super::model::{Act, Model};
use super::tables::{Tree, Visit};
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
    pub(crate) level: i64,
    /// Pages of 4 KiB that its first tables occupy.
    pub(crate) pages: u64,
    /// The layout of its descriptors.
    pub(crate) layout: &'static Layout,
    /// First input address.
    pub(crate) first: u64,
}

/// TCR with T1SZ and TG1 where T0SZ and TG0 are.
fn other_half(value: u64) -> u64 {
    let granule = [3, 2, 0, 1][(value >> 30 & 3) as usize];
    value >> 16 & 63 | granule << 14 | value & !0xffff | value & 0x3fc0
}

/// A slot of the table of roots.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// Whether the slot is in use.
    pub(crate) present: bool,
    /// Stage.
    pub(crate) stage: Stage,
    /// Address of its first table.
    pub(crate) base: u64,
    /// VMID or ASID.
    pub(crate) id: u64,
    /// VMID of stage 1 of EL1.
    pub(crate) vmid: u64,
    /// Every ASID and VMID under which it was used.
    pub(crate) ids: BTreeSet<u64>,
    pub(crate) vmids: BTreeSet<u64>,
    /// Which registration it is.
    pub(crate) serial: u64,
    /// The root of stage 2 that translates its tables' addresses.
    pub(crate) translator: Option<u64>,
    /// Threads whose current root it is.
    pub(crate) refcount: i64,
    /// Shape at its registration.
    pub(crate) geometry: Option<Geometry>,
}

impl Root {
    /// `base/id`, for trees that the reference does not follow with more.
    pub(crate) fn words(&self) -> String {
        let mark = |is_more: bool| if is_more { "+" } else { "" };
        match self.stage {
            Stage::One | Stage::Two => format!("{:#x}/{}", self.base, self.id),
            stage => format!(
                "{:#x}/{}{}/{}{}/{}",
                self.base,
                self.id,
                mark(self.ids.len() > 1),
                self.vmid,
                mark(self.vmids.len() > 1),
                stage.registers()[0].name()
            ),
        }
    }
}

impl Model {
    /// A write of a register, by a name that a host uses for another one.
    pub(crate) fn sysreg_write(&mut self, act: Act, register: Sysreg, value: u64) -> Result<(), Fault> {
        let register = match register.name().strip_suffix("_el1") {
            Some(name) if self.has_asids(act) => Sysreg::from_name(&format!("{name}_el2")).unwrap_or(register),
            _ => register,
        };
        self.write_register(act, register, value)
    }

    /// A write of a register.
    pub(crate) fn write_register(&mut self, act: Act, register: Sysreg, value: u64) -> Result<(), Fault> {
        let others = [Stage::OneUpper, Stage::Guest, Stage::GuestUpper];
        let before = others.map(|stage| self.in_use(act, stage));
        let is_followed = !self.options.quirks.other_trees_unknown;
        match register {
            Sysreg::Ttbr1El2 | Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 if !is_followed => {
                self.doubts.push("unmodelled-regime");
            }
            Sysreg::VttbrEl2 if self.is_enabled(act, Stage::Two) => self.activate(act, Stage::Two, value)?,
            Sysreg::Ttbr0El2 if self.is_enabled(act, Stage::One) => self.activate(act, Stage::One, value)?,
            Sysreg::HcrEl2 if !self.is_enabled(act, Stage::Two) && value & 1 == 1 => {
                // What is activated sees the new value.
                self.registers.insert((act.thread, register.name()), value);
                self.activate_recorded(act, Stage::Two, Sysreg::VttbrEl2)?;
            }
            Sysreg::SctlrEl2 if !self.is_enabled(act, Stage::One) && value & 1 == 1 => {
                self.registers.insert((act.thread, register.name()), value);
                self.activate_recorded(act, Stage::One, Sysreg::Ttbr0El2)?;
            }
            _ => {}
        }
        self.registers.insert((act.thread, register.name()), value);
        for (stage, before) in others.into_iter().zip(before).filter(|_| is_followed) {
            let is_base = stage.registers()[0] == register;
            let after = self.in_use(act, stage);
            if after && (is_base || !before) {
                self.use_other(act, stage)?;
            }
            if before && !after {
                self.leave(act, stage);
            }
        }
        Ok(())
    }

    /// May the thread walk a tree of a kind that the reference does not know?
    fn in_use(&self, act: Act, stage: Stage) -> bool {
        let [_, control, switch, _] = stage.registers();
        let hcr = self.recorded(act, Sysreg::HcrEl2).unwrap_or(0);
        let [e2h, tge, dc] = [34, 27, 12].map(|bit| hcr >> bit & 1 == 1);
        let epd = if stage.is_upper() { 23 } else { 7 };
        let is_on = self.recorded(act, switch).unwrap_or(u64::from(!self.options.no_sysreg)) & 1 == 1;
        let exists = if stage.is_guest() { !tge && !dc } else { e2h };
        exists && is_on && self.recorded(act, control).is_none_or(|control| control >> epd & 1 == 0)
    }

    fn leave(&mut self, act: Act, stage: Stage) {
        self.end_use(act, stage);
        if let Some(slot) = self.current.insert((act.thread, stage), None).flatten() {
            self.roots[slot].refcount -= 1;
        }
    }

    /// The thread walks the tree of the base register of one of these kinds.
    fn use_other(&mut self, act: Act, stage: Stage) -> Result<(), Fault> {
        let [register, control, ..] = stage.registers();
        let Some(value) = self.recorded(act, register) else { return Ok(()) };
        let base = self.base_of(act, stage, value);
        let control = self.recorded(act, control).unwrap_or(0);
        let half = if control >> 22 & 1 == 1 { "ttbr1" } else { "ttbr0" };
        let level = if stage.is_guest() { "el1" } else { "el2" };
        let holder = Sysreg::from_name(&format!("{half}_{level}")).expect("both halves have a base");
        let mut id = self.recorded(act, holder).unwrap_or(0) >> 48;
        if control >> 36 & 1 == 0 && !self.options.quirks.ids_are_wide {
            id %= 256;
        }
        let vmid = if stage.is_guest() { self.vmid(act) } else { 0 };
        let known = self.root_slot(stage, |root| root.base == base);
        let slot = match known {
            Some(slot) => Some(slot),
            None => {
                let two = self.translator(act);
                let page = base & !0xfff;
                let words: Vec<_> = (0..512).map(|i| self.memory.get(page + 8 * i)).collect();
                let is_seen = words.iter().flatten().any(|cell| cell.initialised);
                let is_free = !words.iter().flatten().any(|cell| cell.initialised && cell.is_pte);
                let is_reached = match two {
                    _ if !stage.is_guest() => true,
                    Some(two) => two.is_none_or(|root| self.is_identity(root, base)),
                    None => false,
                };
                if !is_seen || !is_free || !is_reached {
                    self.doubts.push("unmodelled-regime");
                    None
                } else {
                    self.register(act, stage, base, id, two.flatten().filter(|_| stage.is_guest()))?
                }
            }
        };
        let Some(slot) = slot else {
            self.leave(act, stage);
            return Ok(());
        };
        let root = &mut self.roots[slot];
        (root.id, root.vmid) = (id, vmid);
        root.ids.insert(id);
        root.vmids.insert(vmid);
        self.begin_use(act, slot)?;
        if let Some(before) = self.current.get(&(act.thread, stage)).copied().flatten() {
            self.roots[before].refcount -= 1;
        }
        self.roots[slot].refcount += 1;
        self.current.insert((act.thread, stage), Some(slot));
        Ok(())
    }

    /// The root of stage 2 behind stage 1 of EL1 for a thread: none if stage 2 is off; nothing if it is not known.
    fn translator(&self, act: Act) -> Option<Option<u64>> {
        let has_base = self.recorded(act, Sysreg::VttbrEl2).is_some();
        let by_default = u64::from(has_base && !self.options.no_sysreg);
        if self.recorded(act, Sysreg::HcrEl2).unwrap_or(by_default) & 1 == 0 {
            return Some(None);
        }
        let slot = self.current.get(&(act.thread, Stage::Two)).copied().flatten()?;
        self.roots[slot].present.then(|| Some(self.roots[slot].base))
    }

    pub(crate) fn vmid(&self, act: Act) -> u64 {
        let base = self.translator(act).flatten();
        let slot = base.and_then(|base| self.root_slot(Stage::Two, |root| root.base == base));
        slot.map_or(0, |slot| self.roots[slot].id)
    }

    /// Does a tree of stage 2 map an address to itself?
    fn is_identity(&self, root: u64, address: u64) -> bool {
        let Some(slot) = self.root_slot(Stage::Two, |one| one.base == root) else { return false };
        let Some(Geometry { level, pages, layout, .. }) = self.roots[slot].geometry else { return false };
        let mut entry = address / layout.entry_bytes(level);
        if entry >= pages * WORDS {
            return false;
        }
        let mut table = root;
        for level in level..4 {
            let value = self.memory.initialised(table.wrapping_add(8 * entry)).map_or(0, |cell| cell.value);
            let Ok(desc) = explode(layout, 0, value, level, Stage::Two) else { return false };
            match desc.shape {
                Shape::Invalid => return false,
                Shape::Map => return desc.output(value) + address % desc.bytes() == address,
                Shape::Table(next) => table = next,
            }
            entry = address / layout.entry_bytes((level + 1).min(3)) % layout.entries();
        }
        false
    }

    /// A page of a guest's table is visited; false if its address is not its own.
    pub(crate) fn visit_nested(&mut self, tree: Tree, page: u64, visit: Visit) -> bool {
        match visit {
            Visit::Mark => {
                let slot = self.root_slot(tree.stage, |root| root.base == tree.root);
                let Some(two) = slot.and_then(|slot| self.roots[slot].translator) else { return true };
                if !self.is_identity(two, page) {
                    self.doubts.push("unmodelled-regime");
                    return false;
                }
                self.nested.insert(page, two);
            }
            Visit::Unmark => drop(self.nested.remove(&page)),
            _ => {}
        }
        true
    }

    /// An entry of stage 2 became invalid.
    pub(crate) fn lose_nested(&mut self, root: u64, place: &Descriptor) {
        let last = place.input + (place.bytes() - 1);
        let is_gone = |page: u64, by: u64| by == root && page + (PAGE - 1) >= place.input && page <= last;
        let before = self.nested.len();
        if place.stage == Stage::Two {
            self.nested.retain(|page, by| !is_gone(*page, *by));
        }
        if self.nested.len() < before {
            self.doubts.push("unmodelled-regime");
        }
    }

    /// The bits 62:59 that the control register of each thread gives to hardware.
    pub(crate) fn hardware_bits(&self, stage: Stage) -> Vec<u64> {
        let is_host = self.values_of(Sysreg::HcrEl2).iter().any(|hcr| hcr >> 34 & 1 == 1);
        let first = match stage {
            Stage::Two => 25,
            Stage::One if !is_host => 25,
            Stage::One | Stage::Guest => 43,
            Stage::OneUpper | Stage::GuestUpper => 47,
        };
        self.values_of(stage.registers()[1]).iter().map(|control| control >> first & 15).collect()
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
        let register = stage.registers()[2];
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

    /// A mapping of stage 1 was decoded: its attributes come from MAIR.
    pub(crate) fn read_mair(&self, act: Act, stage: Stage) -> Result<(), Fault> {
        let unset = self.options.no_sysreg && self.recorded(act, stage.registers()[3]).is_none();
        if unset { Err(Fault::Fire(UNSET)) } else { Ok(()) }
    }

    /// The geometry that the thread's registers specify for a tree; none if it is not modelled.
    pub(crate) fn acting_geometry(&mut self, act: Act, stage: Stage) -> Result<Option<Geometry>, Fault> {
        let register = stage.registers()[1];
        let value = match self.recorded(act, register) {
            Some(value) => value,
            None if self.options.no_sysreg => return Err(Fault::Fire(UNSET)),
            None if stage.is_upper() => 16 << 16 | 2 << 30,
            None => DEFAULT_GEOMETRY,
        };
        let value = if stage.is_upper() { other_half(value) } else { value };
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
        let is_wide = self.is_wide(act, stage, granule, value);
        let is_it = |layout: &&Layout| layout.page == granule && layout.is_wide == (is_wide && !is_small);
        let layout = LAYOUTS.iter().find(is_it).expect("every granule has two layouts");
        if bits > 48 && !layout.is_wide && granule != 65536 {
            return Err(Fault::Fire(INPUT_SIZE));
        }
        self.top(stage, layout, bits, value)
    }

    fn is_wide(&self, act: Act, stage: Stage, granule: u64, value: u64) -> bool {
        let has_asids = stage.is_guest() || self.has_asids(act) && stage.is_one();
        match (granule, has_asids) {
            (65536, true) => value >> 32 & 7 == 6,
            (65536, false) => value >> 16 & 7 == 6,
            (_, true) => value >> 59 & 1 == 1,
            (_, false) => value >> 32 & 1 == 1,
        }
    }

    /// The base in a register: with addresses of 52 bits, its upper four bits are at the lower end.
    fn base_of(&self, act: Act, stage: Stage, value: u64) -> u64 {
        let control = self.recorded(act, stage.registers()[1]).unwrap_or(0);
        let control = if stage.is_upper() { other_half(control) } else { control };
        let granule = [4096, 65536, 16384, 0][(control >> 14 & 3) as usize];
        if granule == 0 || self.options.quirks.granule_unsupported || !self.is_wide(act, stage, granule, control) {
            return value & BITS_47_1;
        }
        let upper = value / 4 % 16;
        value % (1 << 48) / 64 * 64 + (upper << 48)
    }

    /// The lowest level of which one table is enough, unless stage 2 takes up to 16 of the level below, or states a level.
    fn top(&mut self, stage: Stage, layout: &'static Layout, bits: u64, value: u64) -> Result<Option<Geometry>, Fault> {
        let size = 1_u64 << bits;
        let is_enough =
            |level: &i64| u128::from(layout.entry_bytes(*level)) * u128::from(layout.entries()) >= u128::from(size);
        let level = (-1..4).rev().find(is_enough).expect("52 bits have a level");
        let entries = |level: i64| (size / layout.entry_bytes(level)).max(1);
        let first = if stage.is_upper() { 0_u64.wrapping_sub(size) } else { 0 };
        let geometry = |level: i64, tables: u64, entries: u64| {
            let pages = if layout.page == 4096 { tables } else { entries.div_ceil(512) };
            Ok(Some(Geometry { level, pages, layout, first }))
        };
        if stage.is_one() {
            return geometry(level, 1, entries(level));
        }
        let is_reference = self.options.quirks.concatenated_unsupported;
        let stated = match (layout.page, value >> 6 & 3) {
            // SL2, with 52 bits.
            (4096, 0) if layout.is_wide && value >> 33 & 1 == 1 => Some(-1),
            (4096, _) if layout.is_wide && value >> 33 & 1 == 1 => None,
            (4096, field) => [None, Some(1), Some(0), Some(3)][field as usize],
            (_, field) => Some(3 - field as i64),
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
    pub(crate) fn has_asids(&self, act: Act) -> bool {
        self.recorded(act, Sysreg::HcrEl2).unwrap_or(0) >> 34 & 1 == 1
    }

    /// The slot of a root; `stage` counts unless lookups are blind to it.
    pub(crate) fn root_slot(&self, stage: Stage, is_it: impl Fn(&Root) -> bool) -> Option<usize> {
        let is_blind = self.options.quirks.stage_blind_ids;
        self.roots.iter().position(|root| {
            let is_either = is_blind && [root.stage, stage].iter().all(|one| [Stage::One, Stage::Two].contains(one));
            root.present && (is_either || root.stage == stage) && is_it(root)
        })
    }

    fn activate(&mut self, act: Act, stage: Stage, value: u64) -> Result<(), Fault> {
        let base = self.base_of(act, stage, value);
        let has_halves = stage == Stage::One && self.has_asids(act) && !self.options.quirks.other_trees_unknown;
        let a1 = self.recorded(act, Sysreg::TcrEl2).unwrap_or(0) >> 22 & 1 == 1;
        let other = self.recorded(act, Sysreg::Ttbr1El2).unwrap_or(0);
        let mut id = if has_halves && a1 { other } else { value } >> 48;
        let has_asids = self.has_asids(act);
        let is_wide = match stage {
            Stage::One => !has_asids || self.recorded(act, Sysreg::TcrEl2).unwrap_or(0) >> 36 & 1 == 1,
            _ => self.recorded(act, Sysreg::VtcrEl2).unwrap_or(0) >> 19 & 1 == 1,
        };
        if !is_wide && !self.options.quirks.ids_are_wide {
            id %= 256;
        }
        if stage == Stage::One && id != 0 && !has_asids {
            return Err(Fault::Fire(ASID));
        }
        let is_taken = self.root_slot(stage, |root| {
            let is_reused = !self.options.quirks.reuse_ignored && root.refcount == 0;
            root.id == id && root.base != base && !is_reused
        });
        let slot = match self.root_slot(stage, |root| root.base == base) {
            Some(slot) if self.roots[slot].id != id => return Err(Fault::Fire(OTHER_ID)),
            Some(slot) if is_taken.is_none() || self.options.quirks.reuse_ignored => slot,
            _ if is_taken.is_some() => return Err(Fault::Fire(DUPLICATE_ID)),
            Some(slot) => slot,
            None => match self.register(act, stage, base, id, None)? {
                Some(slot) => slot,
                None => return Ok(()),
            },
        };
        self.begin_use(act, slot)?;
        let current = self.current.entry((act.thread, self.roots[slot].stage)).or_insert(None);
        if let Some(previous) = current.replace(slot) {
            self.roots[previous].refcount -= 1;
        }
        self.roots[slot].refcount += 1;
        Ok(())
    }

    fn register(
        &mut self,
        act: Act,
        stage: Stage,
        base: u64,
        id: u64,
        translator: Option<u64>,
    ) -> Result<Option<usize>, Fault> {
        let free = self.roots.iter().position(|root| !root.present).unwrap_or(self.roots.len());
        if self.options.quirks.limits && free >= ROOTS_MAX {
            return Err(Fault::Fire(MANY_ROOTS));
        }
        let Some(geometry) = self.acting_geometry(act, stage)? else { return Ok(None) };
        let is_of_reference = [Stage::One, Stage::Two].contains(&stage) && geometry.layout.page == 4096;
        if !(is_of_reference && geometry.level >= 0 || base.is_multiple_of(4096)) {
            self.doubts.push("unmodelled-geometry");
            return Ok(None);
        }
        let ids = BTreeSet::from([id]);
        let geometry = Some(geometry);
        let vmids = BTreeSet::new();
        let root = Root {
            present: true,
            stage,
            base,
            id,
            vmid: 0,
            ids,
            vmids,
            serial: self.serial,
            translator,
            refcount: 0,
            geometry,
        };
        self.serial += 1;
        match self.roots.get_mut(free) {
            Some(slot) => *slot = root,
            None => self.roots.push(root),
        }
        self.walk_root(act, base, stage, Visit::Mark)?;
        Ok(Some(free))
    }
}
