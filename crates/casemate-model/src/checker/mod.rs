//! The checker: processes transitions one by one, maintains the state of the machine and reports violations of the
//! rules.

mod entries;
mod groups;
mod handover;
mod limits;
mod locking;
mod nested;
mod registers;
mod resize;
mod reuse;
mod stale;
mod sync;
mod tlbi;
mod walk;

use alloc::vec::Vec;

use super::attributes::LiveChange;
use super::bits::Bits;
use super::breach::{BREACH_COUNT, Breach, breach};
use super::locks::Locks;
use super::memory::{Memory, NOWHERE, PAGE_BYTES, Piece, WORDS, position, word_range};
use super::quirk::{Options, Quirk};
use super::registers::{is_harmless, of_guest};
use super::room;
use super::roots::Roots;
use super::rule::Severity;
use super::sorted::Sorted;
use super::stale::StaleEntries;
use super::table::Map;
use super::tags::Tags;
use super::threads::Threads;
use super::unclean::UncleanEntries;
use super::watch::{Miss, Watch};
use crate::name::Name;
use crate::record::{Barrier, HintKind, MemoryOrder, Transition};
use handover::Use;
pub use handover::{Handover, StaleUse};
pub use reuse::Reuse;

/// Places listed with one violation; more are counted.
const PLACES_MAX: usize = 16;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violation.
    pub breach: &'static Breach,
    /// The severity of the violated rule, unless options changed it.
    pub severity: Severity,
    /// The word, table, lock or register base that it concerns.
    pub location: Option<u64>,
    /// Further places where the same step broke the same rule, the first few.
    pub also_at: Vec<u64>,
    /// How many further places there were.
    pub more: u64,
    /// For a change of a live entry without a break: the change at the location.
    pub change: Option<LiveChange>,
    /// For memory that is handed over too early: what TLBs may still grant by the entry at the location.
    pub stale: Option<StaleUse>,
    /// For a VMID or ASID that gets another tree: the one before.
    pub reuse: Option<Reuse>,
}

impl Violation {
    /// True when it makes the verdict of the trace other than "ok".
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The step broke a rule and checking stops there.
#[derive(Debug)]
pub(crate) struct Stop;

pub(crate) type Flow = Result<(), Stop>;

/// Checks that page tables are changed by break-before-make, one transition after the other.
///
/// ```
/// use anytrace_casemate_model::{Checker, Options, Transition};
///
/// let mut checker = Checker::new(Options::ARCHITECTURE);
/// assert!(checker.step(0, &Transition::Lock { address: 0x1000 }).is_empty());
/// let found = checker.step(1, &Transition::Lock { address: 0x1000 });
/// assert_eq!(found[0].breach.message, "Tried to lock a component that was alerady held");
/// ```
///
/// Memory grows with the pages, tables, locks, roots and threads that the trace uses, at 4.5 to 9 KiB per page.
#[derive(Debug, Clone)]
pub struct Checker<W = ()> {
    pub(crate) options: Options,
    pub(crate) memory: Memory,
    pub(crate) unclean: UncleanEntries,
    pub(crate) stale: StaleEntries,
    /// Memory that gets another owner in the current step.
    uses: Vec<Use>,
    pub(crate) locks: Locks,
    pub(crate) roots: Roots,
    /// Pages of tables of stage 1 that a root of stage 2 maps to themselves, with its base.
    pub(crate) nested: Sorted<u64, u64>,
    pub(crate) threads: Threads,
    pub(crate) tags: Tags,
    /// Some word was assigned to a thread.
    pub(crate) has_thread_owners: bool,
    /// Tables were entered in part: shortcuts do not apply.
    pub(crate) is_irregular: bool,
    /// The old values of entries that were changed while valid: the values that the reference still shows.
    pub(crate) shown: Map<u64, u64>,
    found: Vec<Violation>,
    /// Entries and words that steps looked at beyond their own: what the steps cost, on every machine alike.
    pub work: u64,
    /// The observer.
    pub watch: W,
}

impl Checker {
    /// Starts with an empty machine.
    pub fn new(options: Options) -> Self {
        Self::with_watch(options, ())
    }
}

impl<W: Watch> Checker<W> {
    /// Starts with an empty machine and an observer.
    pub fn with_watch(options: Options, watch: W) -> Self {
        Self {
            options,
            memory: Memory::default(),
            unclean: UncleanEntries::default(),
            stale: StaleEntries::default(),
            uses: Vec::new(),
            locks: Locks::default(),
            roots: Roots::default(),
            nested: Sorted::default(),
            threads: Threads::default(),
            tags: Tags::default(),
            has_thread_owners: false,
            is_irregular: false,
            shown: Map::default(),
            // A step breaks each rule once: no violation is lost for want of memory.
            found: room::with_capacity(BREACH_COUNT),
            work: 0,
            watch,
        }
    }

    /// Processes a step of a thread; returns the rules it breaks.
    ///
    /// Unless [`Options::goes_on`], at most one of them is an error, and after it the state is between two steps.
    #[inline(always)]
    pub fn step(&mut self, thread: u32, transition: &Transition) -> &[Violation] {
        if !self.found.is_empty() {
            self.forget_found();
        }
        let flow = self.take(thread, transition);
        if !self.uses.is_empty() {
            self.end_uses(thread, flow);
        }
        &self.found
    }

    #[cold]
    #[inline(never)]
    fn forget_found(&mut self) {
        self.found.clear();
    }

    #[cold]
    #[inline(never)]
    fn end_uses(&mut self, thread: u32, flow: Flow) {
        match flow {
            Ok(()) => drop(self.check_uses(thread)),
            Err(Stop) => self.uses.clear(),
        }
    }

    /// The rules that the last step broke.
    pub fn found(&self) -> &[Violation] {
        &self.found
    }

    /// The options it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Each kind of step is a function of its own: where the kind is known, nothing is left of this but the call.
    #[inline(always)]
    fn take(&mut self, thread: u32, transition: &Transition) -> Flow {
        match *transition {
            Transition::MemWrite { order: MemoryOrder::Page, address, value } => {
                self.write_page(thread, address, value)
            }
            Transition::MemWrite { order, address, value } => self.write(thread, order, address & !7, value),
            Transition::MemAtomic { order, address, value, read, .. } => {
                self.read(address & !7, read)?;
                self.write(thread, order, address & !7, value)
            }
            Transition::MemRead { address, value } => self.read(address & !7, value),
            Transition::MemInit { address, size } => self.init(address, size),
            Transition::MemFree { address, size } => self.free(address, size),
            Transition::MemSet { address, size, value } => self.set(thread, address, size, value),
            Transition::Barrier(Barrier::Isb) => Ok(()),
            Transition::Barrier(Barrier::Dsb(domain)) => self.dsb(thread, domain),
            Transition::Tlbi { op, operand } => self.tlbi(thread, op, operand),
            Transition::OtherTlbi { .. } => self.other_tlbi(),
            Transition::OtherSysreg { name, value } => self.other_register(thread, name, value),
            Transition::SysregWrite { register, value } => self.write_register(thread, register, value),
            Transition::Hint { hint, location, value } => self.hint(hint, thread, location, value),
            Transition::Lock { address } => self.lock(thread, address),
            Transition::Trylock { address } => self.trylock(thread, address),
            Transition::Unlock { address } => self.unlock(thread, address),
        }
    }

    /// Records a broken rule; returns `Err` if checking stops at it.
    #[cold]
    pub(crate) fn fire(&mut self, breach: &'static Breach, location: u64) -> Flow {
        let severity = breach.severity();
        if let Some(known) = self.found.iter_mut().find(|known| core::ptr::eq(known.breach, breach)) {
            known.more += 1;
            if known.also_at.len() < PLACES_MAX && location != NOWHERE {
                room::push(&mut known.also_at, location);
            }
        } else {
            let location = (location != NOWHERE).then_some(location);
            let (also_at, more, change, stale, reuse) = (Vec::new(), 0, None, None, None);
            room::push(&mut self.found, Violation { breach, severity, location, also_at, more, change, stale, reuse });
        }
        if severity == Severity::Error && !self.options.goes_on { Err(Stop) } else { Ok(()) }
    }

    /// Records a change of a live entry that needs a break.
    #[cold]
    pub(crate) fn fire_change(&mut self, location: u64, change: LiveChange) -> Flow {
        let flow = self.fire(&breach::BBM_VALID_VALID, location);
        let found = self.found_mut(&breach::BBM_VALID_VALID);
        if let Some(found) = found.filter(|found| found.location == Some(location)) {
            found.change.get_or_insert(change);
        }
        flow
    }

    /// What the current step broke of a rule.
    fn found_mut(&mut self, breach: &'static Breach) -> Option<&mut Violation> {
        self.found.iter_mut().find(|found| core::ptr::eq(found.breach, breach))
    }

    /// Removes the last violation.
    pub(crate) fn unfire(&mut self) -> Option<Violation> {
        self.found.pop()
    }

    /// Puts a violation back.
    pub(crate) fn refire(&mut self, violation: Option<Violation>) {
        if let Some(violation) = violation {
            room::push(&mut self.found, violation);
        }
    }

    #[inline]
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.options.quirks.has(quirk)
    }

    #[inline(never)]
    fn write(&mut self, thread: u32, order: MemoryOrder, word: u64, value: u64) -> Flow {
        let at = position(word);
        if let Some(index) = self.memory.find(word)
            && let Some(page) = self.memory.pages.get_mut(index)
            && page.initialised.has(at)
        {
            if page.entry.has(at) {
                return self.write_entry(thread, order, index, at, value);
            }
            page.store(at, value);
            return Ok(());
        }
        self.write_uninitialised(word, value)
    }

    #[cold]
    fn write_uninitialised(&mut self, word: u64, value: u64) -> Flow {
        if self.options.ignores_uninitialised {
            return Ok(());
        }
        self.fire(&breach::WRITE_UNINITIALISED, word)?;
        // Recovery: the word counts as initialized before.
        if let Some(page) = self.memory.make(word)
            && let Some(page) = self.memory.pages.get_mut(page)
        {
            let at = position(word);
            page.initialise(Bits::range(at, at + 1));
            page.store(at, value);
        }
        Ok(())
    }

    /// A TLBI that is not modelled: it may have dropped anything that is not clean, and more than the model knows of.
    #[cold]
    fn other_tlbi(&mut self) -> Flow {
        if W::IS_ON {
            self.unclean
                .cells
                .keys()
                .copied()
                .chain(self.stale.cells())
                .for_each(|cell| self.watch.miss(cell, Miss::NotModelled));
        }
        let cell = self.unclean.newest().or_else(|| self.stale.cells().next());
        self.fire(&breach::UNMODELLED_TLBI, cell.unwrap_or(NOWHERE))
    }

    #[cold]
    fn other_register(&mut self, thread: u32, name: Name, value: u64) -> Flow {
        if let Some(register) = of_guest(name.as_str()).filter(|_| self.has_host_extensions(thread)) {
            return self.write_of_guest(thread, register, value);
        }
        if is_harmless(name.as_str()) { Ok(()) } else { self.fire(&breach::UNMODELLED_REGISTER, NOWHERE) }
    }

    #[inline(never)]
    fn write_page(&mut self, thread: u32, address: u64, value: u64) -> Flow {
        let base = address & !(PAGE_BYTES - 1);
        self.work += WORDS as u64;
        for at in 0..WORDS as u64 {
            self.write(thread, MemoryOrder::Plain, base + 8 * at, value)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn read(&mut self, word: u64, value: u64) -> Flow {
        if self.has(Quirk::ReadsIgnored) {
            return Ok(());
        }
        match self.memory.peek_value(word) {
            Some(known) if known != value => self.fire(&breach::READ_MISMATCH, word),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn init(&mut self, address: u64, size: u64) -> Flow {
        self.hand_over(address, size, Handover::Initialised);
        if let Some((page, from, to)) = self.memory.part_of_page(word_range(address, size)) {
            self.init_page(page, Bits::range(from, to))?;
            return self.check_page_limit(address);
        }
        for piece in self.memory.pieces(word_range(address, size)) {
            match piece {
                Piece::Page { page, from, to } => self.init_page(page, Bits::range(from, to))?,
                Piece::Filled { value: 0, .. } => {}
                Piece::Filled { first, end, .. } => {
                    self.fire(&breach::INIT_USED, first * PAGE_BYTES)?;
                    self.memory.fill(first, end, 0);
                }
                Piece::Unknown { first_word, end_word } => self.memory.initialise_unknown(first_word, end_word),
            }
        }
        self.check_page_limit(address)
    }

    fn check_page_limit(&mut self, address: u64) -> Flow {
        let is_full = self.has(Quirk::PageLimit) && self.memory.page_count() > 8192;
        if is_full { self.fire(&breach::ASSERT_PAGES, address) } else { Ok(()) }
    }

    fn init_page(&mut self, index: usize, words: Bits) -> Flow {
        self.work += 1;
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        let used = page.initialised.and(&words);
        page.initialise(words.without(&used));
        if used.is_empty() {
            return Ok(());
        }
        for at in used.ones() {
            let Some(page) = self.memory.pages.get_mut(index) else { continue };
            let is_entry = page.entry.has(at);
            if is_entry || page.value(at) != 0 {
                let word = page.address(at);
                // Recovery: entries stay as they are, other words become 0.
                if !is_entry {
                    page.store(at, 0);
                }
                self.fire(&breach::INIT_USED, word)?;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn free(&mut self, address: u64, size: u64) -> Flow {
        if let Some((page, from, to)) = self.memory.part_of_page(word_range(address, size)) {
            return self.free_page(page, Bits::range(from, to));
        }
        for piece in self.memory.pieces(word_range(address, size)) {
            match piece {
                Piece::Page { page, from, to } => self.free_page(page, Bits::range(from, to))?,
                Piece::Filled { first, end, .. } => self.memory.forget(first, end),
                Piece::Unknown { .. } => {}
            }
        }
        Ok(())
    }

    fn free_page(&mut self, index: usize, words: Bits) -> Flow {
        self.work += 1;
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        let entries = page.entry.and(&words);
        page.initialised = page.initialised.without(&words).or(&entries);
        // Recovery: entries stay.
        for at in entries.ones() {
            let word = index_address(&self.memory, index, at);
            self.fire(&breach::FREE_ENTRY, word)?;
        }
        // The reference counts a page for good.
        let is_counted = self.has(Quirk::PageLimit);
        if !is_counted && self.memory.pages.get(index).is_some_and(|page| page.is_unused()) {
            self.memory.release(index);
        }
        Ok(())
    }

    #[inline(never)]
    fn set(&mut self, thread: u32, address: u64, size: u64, value: u64) -> Flow {
        if self.has(Quirk::MemSetPage) {
            if !address.is_multiple_of(PAGE_BYTES) {
                self.fire(&breach::ASSERT_SET_ADDRESS, address)?;
            }
            if !size.is_multiple_of(PAGE_BYTES) {
                self.fire(&breach::ASSERT_SET_SIZE, address)?;
            }
        }
        let byte = value & 0xff;
        let value = if self.has(Quirk::MemSetWord) { byte } else { byte * 0x0101_0101_0101_0101 };
        if let Some((page, from, to)) = self.memory.part_of_page(word_range(address, size)) {
            return self.set_page(thread, page, (from, to), value);
        }
        for piece in self.memory.pieces(word_range(address, size)) {
            match piece {
                Piece::Page { page, from, to } => self.set_page(thread, page, (from, to), value)?,
                Piece::Filled { first, end, .. } => self.memory.fill(first, end, value),
                Piece::Unknown { .. } if self.options.ignores_uninitialised => {}
                Piece::Unknown { first_word, .. } => self.fire(&breach::WRITE_UNINITIALISED, first_word * 8)?,
            }
        }
        Ok(())
    }

    fn set_page(&mut self, thread: u32, index: usize, (from, to): (usize, usize), value: u64) -> Flow {
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        let words = Bits::range(from, to);
        let is_plain = page.entry.and(&words).is_empty() && words.without(&page.initialised).is_empty();
        if is_plain {
            if let Some(values) = page.values.get_mut(from..to) {
                // Zeros are filled in by `memset`.
                if value == 0 { values.fill(0) } else { values.fill(value) }
            }
            page.valid = if value & 1 == 0 { page.valid.without(&words) } else { page.valid.or(&words) };
            return Ok(());
        }
        let base = page.base;
        self.work += (to - from) as u64;
        for at in from..to {
            self.write(thread, MemoryOrder::Plain, base + 8 * at as u64, value)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn hint(&mut self, hint: HintKind, thread: u32, location: u64, value: u64) -> Flow {
        match hint {
            HintKind::SetRootLock => self.set_root_lock(location, value),
            HintKind::SetOwnerRoot => self.set_owner_root(location),
            HintKind::ReleaseTable => self.release(thread, location),
            HintKind::SetPteThreadOwner => self.set_thread_owner(location & !7, value),
        }
    }
}

pub(crate) fn index_address(memory: &Memory, index: usize, at: usize) -> u64 {
    memory.pages.get(index).map_or(NOWHERE, |page| page.address(at))
}
