//! The state, and the steps that are not barriers, TLBIs or registers (2.1, 2.3, 2.4, 2.8).

use std::collections::{BTreeMap, BTreeSet};

use anytrace_casemate::{Barrier, HintKind, MemoryOrder, Sysreg, Transition};

use super::descriptor::{ACCESS_FLAG, Descriptor, Judgement, PAGE, Shape, Stage, WORDS, is_valid, needs_bbm};
use super::identifiers::Identifiers;
use super::memory::{Automaton, Cell, Lis, Memory};
use super::options::Options;
use super::pending::{Changed, Handed, Pending};
use super::registers::{Geometry, Root};
use super::step::Step;
use super::tables::{Tree, Visit};
use super::verdict::{
    ASSERT_ADDRESS, ASSERT_SIZE, FREE_PTE, FROZEN, Fault, IN_USE, LOCKED, MANY_ASSOCIATIONS, MANY_LOCKS, NO_LOCK,
    NO_ROOT, NOT_HELD, OWNER_IN_TREE, OWNER_LEVEL, OWNER_NON_PTE, OWNER_UNINIT, PLAIN, REACQUIRE, RELEASE_UNCLEAN,
    State, THREAD_OWNED, UNCLEAN_CHILDREN, UNCLEAN_VALID, UNINIT_WRITE, UNLOCK_FREE, UNLOCK_OTHER, USED, VALID_VALID,
};

const HELD_MAX: usize = 64;
const ASSOCIATIONS_MAX: usize = 64;

/// The acting thread, and the value that a `mem-write` is about to store: walks read the new value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    /// The thread.
    pub(crate) thread: u32,
    /// Address and value of the write.
    pub(crate) writing: Option<(u64, u64)>,
}

/// A lock in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLock {
    /// The holder.
    pub(crate) thread: u32,
    /// Whether the next plain write is authorized.
    pub(crate) is_authorised: bool,
    /// How often it was taken.
    pub(crate) count: u64,
}

/// The checker's state.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) options: Options,
    pub(crate) memory: Memory,
    /// Addresses of unclean entries, newest first.
    pub(crate) unclean: Vec<u64>,
    pub(crate) roots: Vec<Root>,
    /// Root and lock, in the order of the hints.
    pub(crate) associations: Vec<(u64, u64)>,
    pub(crate) held: BTreeMap<u64, HeldLock>,
    /// Slots of the threads' current roots.
    pub(crate) current: BTreeMap<(u32, Stage), Option<usize>>,
    pub(crate) registers: BTreeMap<(u32, &'static str), u64>,
    /// Reads of a value other than the last written one: a warning, never a breach.
    pub(crate) wrong_reads: u64,
    /// Live entries whose old values TLBs may contain.
    pub(crate) pending: Vec<Pending>,
    /// What got another owner in this step.
    pub(crate) handed: Vec<Handed>,
    /// Counts changes of `pending`.
    pub(crate) clock: u64,
    /// The values from which unclean entries have to be cleaned.
    pub(crate) old_values: BTreeMap<u64, u64>,
    /// Unclean entries whose last TLBI was one with nXS.
    pub(crate) sent_nxs: BTreeSet<u64>,
    /// Pages of tables of a guest that stage 2 maps to themselves, and the root that does.
    pub(crate) nested: BTreeMap<u64, u64>,
    /// Which identifiers TLBs may contain.
    pub(crate) identifiers: Identifiers,
    /// The next registration of a root.
    pub(crate) serial: u64,
    /// What the model does not know, in order.
    pub(crate) doubts: Vec<&'static str>,
}

impl Model {
    /// The initial state.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            memory: Memory::default(),
            unclean: Vec::new(),
            roots: Vec::new(),
            associations: Vec::new(),
            held: BTreeMap::new(),
            current: BTreeMap::new(),
            registers: BTreeMap::new(),
            wrong_reads: 0,
            pending: Vec::new(),
            handed: Vec::new(),
            clock: 0,
            old_values: BTreeMap::new(),
            sent_nxs: BTreeSet::new(),
            nested: BTreeMap::new(),
            identifiers: Identifiers::default(),
            serial: 0,
            doubts: Vec::new(),
        }
    }

    /// Processes one record.
    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Fault> {
        let known = self.doubts.len();
        let result = self.act(step).and_then(|()| self.check_handed());
        // A step gives each reason once.
        let mut new = self.doubts.split_off(known);
        let mut seen = BTreeSet::new();
        new.retain(|doubt| seen.insert(*doubt));
        self.doubts.extend(new);
        result
    }

    fn act(&mut self, step: &Step) -> Result<(), Fault> {
        let act = Act { thread: step.thread, writing: None };
        match step.action {
            Transition::MemWrite { order: MemoryOrder::Page, address, value } => {
                let page = address & !(PAGE - 1);
                (0..WORDS).try_for_each(|i| self.write(act, page + 8 * i, value, true))
            }
            Transition::MemWrite { order, address, value } => {
                let address = address & !7;
                let act = Act { writing: Some((address, value)), ..act };
                self.write(act, address, value, order == MemoryOrder::Plain)
            }
            Transition::MemAtomic { order, address, value, read, .. } => {
                let address = address & !7;
                let is_wrong = self.memory.initialised(address).is_some_and(|cell| cell.value != read);
                self.wrong_reads += u64::from(is_wrong);
                let act = Act { writing: Some((address, value)), ..act };
                self.write(act, address, value, !matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel))
            }
            Transition::OtherTlbi { .. } => {
                self.unknown_tlbi();
                Ok(())
            }
            Transition::OtherSysreg { name, value } => {
                let guest = name.as_str().strip_suffix("_el12").map(|name| format!("{name}_el1"));
                let guest = guest.and_then(|name| Sysreg::from_name(&name)).filter(|_| self.has_asids(act));
                if let Some(register) = guest {
                    return self.write_register(act, register, value);
                }
                if !["vbar", "tpidr", "cntvoff"].iter().any(|start| name.as_str().starts_with(start)) {
                    self.doubts.push("unmodelled-register");
                }
                Ok(())
            }
            Transition::MemRead { address, value } => {
                let is_wrong = self.memory.initialised(address).is_some_and(|cell| cell.value != value);
                self.wrong_reads += u64::from(is_wrong);
                Ok(())
            }
            Transition::MemInit { address, size } => self.mem_init(address, size),
            Transition::MemFree { address, size } => self.mem_free(address, size),
            Transition::MemSet { address, size, value } => self.mem_set(act, address, size, value),
            Transition::Barrier(Barrier::Dsb(domain)) => self.dsb(act, domain),
            Transition::Tlbi { op, operand } => self.tlbi(act, op, operand.value().unwrap_or(0)),
            Transition::SysregWrite { register, value } => self.sysreg_write(act, register, value),
            Transition::Hint { hint: HintKind::SetRootLock, location, value } => self.set_root_lock(location, value),
            Transition::Hint { hint: HintKind::SetOwnerRoot, location, value } => self.set_owner_root(location, value),
            Transition::Hint { hint: HintKind::ReleaseTable, location, .. } => self.release_table(act, location),
            Transition::Hint { hint: HintKind::SetPteThreadOwner, location, value } => {
                self.set_thread_owner(location, value)
            }
            Transition::Lock { address } => self.lock(act, address),
            Transition::Trylock { address } => self.trylock(act, address),
            Transition::Unlock { address } => self.unlock(act, address),
            _ => Ok(()),
        }
    }

    /// One word (2.3).
    fn write(&mut self, act: Act, address: u64, value: u64, is_plain: bool) -> Result<(), Fault> {
        let Some(cell) = self.memory.initialised(address).copied() else {
            return match self.options.ignore_uninit {
                true => self.store_uninitialised(address, value),
                false => Err(Fault::Fire(UNINIT_WRITE)),
            };
        };
        if cell.is_pte {
            if !self.options.racy {
                self.authorise(act, &cell, value, is_plain)?;
            }
            if cell.frozen {
                if cell.value != value && (is_valid(cell.value) || is_valid(value)) {
                    return Err(Fault::Fire(FROZEN));
                }
            } else {
                self.change_entry(act, address, &cell, value)?;
            }
        }
        if let Some(cell) = self.memory.get_mut(address) {
            cell.value = value;
        }
        if cell.is_pte && !cell.frozen && is_valid(value) {
            self.check_group(act, address)?;
            if matches!(cell.automaton, Automaton::Clean { .. }) {
                self.check_broken_group(act, address)?;
            }
        }
        Ok(())
    }

    fn store_uninitialised(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        self.memory.touch(address, self.options.quirks.limits)?.value = value;
        Ok(())
    }

    fn authorise(&mut self, act: Act, cell: &Cell, value: u64, is_plain: bool) -> Result<(), Fault> {
        if let Some(owner) = cell.thread() {
            return if owner == act.thread { Ok(()) } else { Err(Fault::Fire(THREAD_OWNED)) };
        }
        let Some(lock) = self.lock_of(cell.owner) else { return Err(Fault::Fire(NO_LOCK)) };
        match self.held.get_mut(&lock) {
            Some(held) if held.thread == act.thread => {
                let is_live = cell.automaton == Automaton::Valid || is_valid(value);
                if !held.is_authorised && is_plain && is_live {
                    return Err(Fault::Fire(PLAIN));
                }
                held.is_authorised = false;
                Ok(())
            }
            _ => Err(Fault::Fire(NOT_HELD)),
        }
    }

    /// The automaton (2.3, step 5).
    fn change_entry(&mut self, act: Act, address: u64, cell: &Cell, value: u64) -> Result<(), Fault> {
        let Some(place) = cell.desc else { return Ok(()) };
        let was_live = cell.automaton == Automaton::Valid && !is_valid(value);
        let next = match (cell.automaton, is_valid(value)) {
            (Automaton::Valid, true) => return self.change_live(act, address, &place, cell.value, value),
            (Automaton::Valid, false) => {
                self.unclean.retain(|at| *at != address);
                self.unclean.insert(0, address);
                let mut oldest = cell.value;
                if let Some(older) = self.older_table(address) {
                    self.set_desc(address, self.explode(act, &place, older)?);
                    oldest = older;
                }
                self.old_values.insert(address, oldest);
                self.sent_nxs.remove(&address);
                self.walk_children(act, address, Visit::Freeze)?;
                Automaton::Unclean { invalidator: act.thread, lis: Lis::Unguarded }
            }
            (Automaton::Unclean { .. }, true) => return Err(Fault::Fire(UNCLEAN_VALID)),
            (Automaton::Unclean { .. } | Automaton::Clean { .. }, false) => return Ok(()),
            (Automaton::Clean { was_table }, true) => {
                if was_table && !self.children_clean(act, address)? {
                    return Err(Fault::Fire(UNCLEAN_CHILDREN));
                }
                let desc = self.explode(act, &place, value)?;
                self.set_desc(address, desc);
                self.walk_children(act, address, Visit::Mark)?;
                self.hand_mapped(cell.owner, &place, value);
                Automaton::Valid
            }
        };
        if let Some(cell) = self.memory.get_mut(address) {
            cell.automaton = next;
        }
        if was_live {
            self.lose_nested(cell.owner, &place);
        }
        Ok(())
    }

    pub(crate) fn set_desc(&mut self, address: u64, desc: Descriptor) {
        if let Some(cell) = self.memory.get_mut(address) {
            cell.desc = Some(desc);
        }
    }

    fn change_live(&mut self, act: Act, address: u64, place: &Descriptor, old: u64, new: u64) -> Result<(), Fault> {
        let quirks = self.options.quirks;
        let old = (old, self.explode(act, place, old)?.shape);
        let exploded = self.explode(act, place, new)?;
        let new = (new, exploded.shape);
        let is_size = matches!(old.1, Shape::Table(_)) != matches!(new.1, Shape::Table(_));
        let judgement = Judgement {
            af_inverted: quirks.af_inverted,
            identical_table: quirks.identical_table_rewrite,
            any_attribute: quirks.any_attribute,
            was_accessed: self.memory.get(address).is_some_and(|cell| cell.was_accessed),
            controls: &self.hardware_bits(place.stage),
            mairs: &self.values_of(place.stage.registers()[3]),
            bbm: self.options.bbm,
            is_resized: self.pending(address).is_some_and(|pending| pending.is_resized),
            may_resize: is_size && self.may_resize(address, place, old, new),
        };
        if needs_bbm(place, old, new, judgement) {
            return Err(Fault::Fire(VALID_VALID));
        }
        if is_size {
            return self.resize(act, address, place, old, exploded, new.0);
        }
        let Some(cell) = self.memory.get_mut(address) else { return Ok(()) };
        cell.was_accessed |= old.0 & ACCESS_FLAG != 0;
        let (is_cached, owner) = (cell.was_accessed, cell.owner);
        if matches!(old.1, Shape::Table(_)) {
            self.change_table(act, address, place, old.0, new.0);
            return Ok(());
        }
        if old.0 == new.0 {
            return Ok(());
        }
        if !is_cached {
            if place.output(old.0) != place.output(new.0) {
                self.hand_mapped(owner, place, new.0);
            }
            return Ok(());
        }
        let gets_marker = place.level < 3 && new.0 >> 16 & 1 > old.0 >> 16 & 1;
        let is_resized = gets_marker && self.options.bbm == 1 && !quirks.af_inverted;
        let (granted, levels) = (self.effective(address, place.stage, old.0), [place.level].into());
        let by_table = false;
        self.changed(act, Changed { cell: address, old: old.0, new: new.0, granted, is_resized, levels, by_table });
        Ok(())
    }

    fn mem_init(&mut self, address: u64, size: u64) -> Result<(), Fault> {
        self.hand(address, size, None);
        for at in words(address, size) {
            let cell = self.memory.touch(at, self.options.quirks.limits)?;
            if cell.initialised && (cell.is_pte || cell.value != 0) {
                return Err(Fault::Fire(USED));
            }
            cell.initialised = true;
            cell.value = 0;
            cell.thread_owner = -1;
            cell.is_pte = false;
        }
        Ok(())
    }

    fn mem_free(&mut self, address: u64, size: u64) -> Result<(), Fault> {
        for at in words(address, size) {
            let Some(cell) = self.memory.get_mut(at).filter(|cell| cell.initialised) else { continue };
            if cell.is_pte {
                return Err(Fault::Fire(FREE_PTE));
            }
            cell.initialised = false;
        }
        Ok(())
    }

    fn mem_set(&mut self, act: Act, address: u64, size: u64, value: u64) -> Result<(), Fault> {
        let byte = value & 0xff;
        if !self.options.quirks.mem_set_word {
            return words(address, size)
                .try_for_each(|at| self.write(act, at & !7, byte * 0x0101_0101_0101_0101, true));
        }
        if !address.is_multiple_of(PAGE) {
            return Err(Fault::Assert(ASSERT_ADDRESS));
        }
        if !size.is_multiple_of(PAGE) {
            return Err(Fault::Assert(ASSERT_SIZE));
        }
        words(address, size).try_for_each(|at| self.write(act, at, byte, true))
    }

    fn set_root_lock(&mut self, root: u64, lock: u64) -> Result<(), Fault> {
        if let Some(pair) = self.associations.iter_mut().find(|pair| pair.0 == root) {
            pair.1 = lock;
        } else if self.options.quirks.limits && self.associations.len() >= ASSOCIATIONS_MAX {
            return Err(Fault::Fire(MANY_ASSOCIATIONS));
        } else {
            self.associations.push((root, lock));
        }
        Ok(())
    }

    fn set_owner_root(&mut self, location: u64, root: u64) -> Result<(), Fault> {
        let page = location & !(PAGE - 1);
        self.hand(page, PAGE, None);
        if page == location && self.options.quirks.set_owner_root_aligned_empty {
            return Ok(());
        }
        for at in words(page, PAGE) {
            let cell = self.memory.touch(at, self.options.quirks.limits)?;
            if cell.is_pte {
                return Err(Fault::Fire(OWNER_IN_TREE));
            }
            cell.owner = root;
        }
        Ok(())
    }

    fn release_table(&mut self, act: Act, location: u64) -> Result<(), Fault> {
        let cell = self.memory.initialised(location).copied();
        if cell.is_none() && self.options.ignore_uninit {
            return Ok(());
        }
        self.associations.retain(|(root, _)| *root != location);
        let Some(cell) = cell.filter(|cell| cell.is_pte) else { return Ok(()) };
        let Some(desc) = cell.desc else { return Ok(()) };
        let slot = self.root_slot(desc.stage, |root| root.base == location);
        // Only a registered root has more than one table at its top.
        let kept = slot.and_then(|slot| self.roots[slot].geometry).map_or(1, |geometry| geometry.pages);
        let first = slot.and_then(|slot| self.roots[slot].geometry).map_or(0, |geometry| geometry.first);
        let geometry = Geometry { level: desc.level, pages: kept, layout: desc.layout, first };
        let tree = Tree { root: cell.owner, stage: desc.stage, layout: desc.layout };
        let is_unclean = self.walk_tables(act, tree, geometry, Visit::FindUnclean)?;
        let is_resized = self.pending.iter().filter(|pending| pending.is_resized).any(|pending| {
            let entry = self.memory.pte(pending.cell);
            let place = entry.and_then(|entry| Some((entry.owner, entry.desc?.stage)));
            place == Some((tree.root, tree.stage))
        });
        if is_unclean || is_resized {
            return Err(Fault::Fire(RELEASE_UNCLEAN));
        }
        let Some(slot) = slot else { return Err(Fault::Fire(NO_ROOT)) };
        if self.roots[slot].refcount > 0 {
            return Err(Fault::Fire(IN_USE));
        }
        self.bury(slot);
        self.walk_tables(act, tree, geometry, Visit::Unmark)?;
        self.roots[slot].present = false;
        Ok(())
    }

    fn set_thread_owner(&mut self, location: u64, value: u64) -> Result<(), Fault> {
        let is_tolerant = self.options.ignore_uninit;
        let Some(cell) = self.memory.get_mut(location).filter(|cell| cell.initialised) else {
            return if is_tolerant { Ok(()) } else { Err(Fault::Fire(OWNER_UNINIT)) };
        };
        match cell.desc {
            Some(desc) if cell.is_pte && desc.level == 3 => {
                let low = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
                cell.thread_owner = low.cast_signed();
                Ok(())
            }
            Some(_) if cell.is_pte => Err(Fault::Fire(OWNER_LEVEL)),
            _ => Err(Fault::Fire(OWNER_NON_PTE)),
        }
    }

    /// The lock that guards a root.
    pub(crate) fn lock_of(&self, root: u64) -> Option<u64> {
        self.associations.iter().find(|pair| pair.0 == root).map(|pair| pair.1).filter(|lock| *lock != 0)
    }

    fn lock(&mut self, act: Act, address: u64) -> Result<(), Fault> {
        if self.held.contains_key(&address) {
            return Err(Fault::Fire(LOCKED));
        }
        if self.options.quirks.limits && self.held.len() >= HELD_MAX {
            return Err(Fault::Fire(MANY_LOCKS));
        }
        self.held.insert(address, HeldLock { thread: act.thread, is_authorised: true, count: 1 });
        Ok(())
    }

    fn trylock(&mut self, act: Act, address: u64) -> Result<(), Fault> {
        match self.held.get_mut(&address) {
            Some(held) if held.thread == act.thread => held.count += 1,
            Some(_) => return Err(Fault::Fire(REACQUIRE)),
            None => return self.lock(act, address),
        }
        Ok(())
    }

    fn unlock(&mut self, act: Act, address: u64) -> Result<(), Fault> {
        let Some(held) = self.held.get_mut(&address) else {
            return if self.options.ignore_uninit { Ok(()) } else { Err(Fault::Fire(UNLOCK_FREE)) };
        };
        if held.thread != act.thread {
            return Err(Fault::Fire(UNLOCK_OTHER));
        }
        held.count -= 1;
        if held.count == 0 {
            self.held.remove(&address);
        }
        Ok(())
    }

    /// What the reference would print, from the viewpoint of a thread.
    pub(crate) fn state(&self, thread: u32) -> State {
        let present = self.roots.iter().filter(|root| root.present);
        let roots = present.map(Root::words);
        let unclean = self.unclean.iter().filter_map(|at| match self.memory.pte(*at)?.automaton {
            Automaton::Unclean { invalidator, lis } => Some(format!("{at:#x}={}/{invalidator}", lis.letters())),
            _ => None,
        });
        State {
            roots: roots.collect::<Vec<_>>().join(","),
            locks: self.associations.iter().map(|pair| self.lock_text(*pair, thread)).collect(),
            unclean: unclean.collect::<Vec<_>>().join(" "),
            stale: self.pending_text(),
            doubts: self.doubts.join(" "),
        }
    }

    fn lock_text(&self, (root, lock): (u64, u64), thread: u32) -> String {
        match self.held.get(&lock) {
            // With -R the reference leaves holders out.
            Some(held) if held.thread == thread && !self.options.racy => {
                let not = if held.is_authorised { "" } else { "not " };
                let count = held.count;
                format!("({root:#x},{lock:#x}, locked {count} times by thread {thread}, write {not}authorized)")
            }
            _ => format!("({root:#x},{lock:#x})"),
        }
    }
}

/// The first byte of each step through a range; dropping the low bits gives the word.
fn words(address: u64, size: u64) -> impl Iterator<Item = u64> {
    let end = address.saturating_add(size);
    (0..u64::MAX).map(move |i| address.saturating_add(i.saturating_mul(8))).take_while(move |at| *at < end)
}
