//! Which allocations are recorded and live: prevents one allocation from being recorded twice.

use std::collections::HashMap;

use crate::calls::Calls;
use crate::places::Places;
use crate::record::Add;
use crate::sites::Site;
use crate::spread::Spread;

/// Adds that may wait at one time.
pub(crate) const PENDING_MAX: usize = 16;
/// Other threads' records after which an add is written, annotated or not.
const PATIENCE: u32 = 1 << 20;
/// Accesses of its own thread, elsewhere, after which an add is written: a pointer may be stored and loaded again
/// before the annotation.
const OWN_PATIENCE: u32 = 8;
/// The number of no name, which is written as `?`.
pub(crate) const UNNAMED: u32 = u32::MAX;
/// Distinct names that are kept; what is beyond has none.
const NAMES_MAX: usize = 1 << 20;

/// One live region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) thread: u64,
    pub(crate) element_bytes: u32,
    pub(crate) elements: u32,
    name: u32,
    /// True when the type is the program's word and not the place of the call.
    pub(crate) is_typed: bool,
    /// True when `realloc` kept the type: the program may still declare another.
    pub(crate) is_kept: bool,
}

/// An allocation whose add is not written yet, since an annotation may follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) address: usize,
    bytes: u64,
    token: usize,
    /// Accesses of its own thread since.
    own: u32,
    /// Calls of the recorder since.
    age: u32,
}

/// What happens while adds wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The thread reads or writes.
    Access,
    /// The thread allocates, frees or declares a type.
    Region,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    live: HashMap<usize, Region, Spread>,
    names: Vec<Box<[u8]>>,
    by_name: HashMap<Box<[u8]>, u32, Spread>,
    pub(crate) places: Places,
    pending: [Option<Pending>; PENDING_MAX],
    waiting: usize,
}

impl Regions {
    /// The number of a name.
    pub(crate) fn intern(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        if self.names.len() >= NAMES_MAX {
            return UNNAMED;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(UNNAMED);
        self.names.push(name.into());
        self.by_name.insert(name.into(), number);
        number
    }

    /// The number of the name of what a place allocates; the error is an address that must be described first.
    pub(crate) fn place(&mut self, site: Site, bytes: u64, calls: &Calls) -> Result<u32, usize> {
        let chain = self.places.follow(site, bytes, calls.iter())?;
        if let Some(number) = self.places.number(&chain) {
            return Ok(number);
        }
        let name = self.places.name(&chain);
        let number = self.intern(&name);
        self.places.keep(chain, number);
        Ok(number)
    }

    /// Adds a region; returns the previous one at its address.
    pub(crate) fn insert(&mut self, address: usize, region: Region) -> Option<Region> {
        self.live.insert(address, region)
    }

    pub(crate) fn get(&self, address: usize) -> Option<Region> {
        self.live.get(&address).copied()
    }

    pub(crate) fn remove(&mut self, address: usize) -> Option<Region> {
        self.live.remove(&address)
    }

    /// The add of a region.
    pub(crate) fn add(&self, address: usize, region: Region) -> Add<'_> {
        Add {
            address: address as u64,
            thread: region.thread,
            element_bytes: region.element_bytes,
            elements: region.elements,
            name: self.names.get(region.name as usize).map_or(b"?", |name| name),
        }
    }

    /// All live regions' addresses, lowest first.
    pub(crate) fn addresses(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.live.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// Changes the thread of all regions: a forked process has one thread.
    pub(crate) fn give_to(&mut self, thread: u64) {
        self.live.values_mut().for_each(|region| region.thread = thread);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// True when adds wait.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Lets an add wait; returns the address of one that must not wait any longer, where there is no room.
    pub(crate) fn wait(&mut self, address: usize, region: Region, token: usize) -> Option<usize> {
        let bytes = u64::from(region.element_bytes) * u64::from(region.elements);
        let fresh = Pending { address, bytes, token, own: 0, age: 0 };
        self.waiting += 1;
        if let Some(slot) = self.pending.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(fresh);
            return None;
        }
        self.waiting -= 1;
        let oldest = self.pending.iter_mut().max_by_key(|slot| slot.map_or(0, |pending| pending.age))?;
        oldest.replace(fresh).map(|pending| pending.address)
    }

    /// An event of thread `token` passes by the adds that wait: all of them get older, once.
    pub(crate) fn pass(&mut self, token: usize) {
        for pending in self.pending.iter_mut().flatten() {
            pending.age = pending.age.saturating_add(1);
            pending.own += u32::from(pending.token == token);
        }
    }

    /// Takes one add that must be written before an event of thread `token` that touches `bytes` bytes at `address`:
    /// those it touches, those that waited long, and the thread's own where it is not just an access. The event passed
    /// before ([`Self::pass`]); several adds may be due.
    pub(crate) fn due(&mut self, event: Event, token: usize, address: usize, bytes: usize) -> Option<usize> {
        let last = (address as u64).saturating_add(bytes as u64);
        let is_due = |pending: &Pending| {
            let start = pending.address as u64;
            let touches = (address as u64) < start.saturating_add(pending.bytes) && start < last;
            let is_own = pending.token == token && (event == Event::Region || pending.own > OWN_PATIENCE);
            is_own || touches || pending.age > PATIENCE
        };
        let slot = self.pending.iter_mut().find(|slot| slot.as_ref().is_some_and(is_due))?;
        self.waiting -= 1;
        slot.take().map(|pending| pending.address)
    }

    /// Takes any add that waits.
    pub(crate) fn any(&mut self) -> Option<usize> {
        let slot = self.pending.iter_mut().find(|slot| slot.is_some())?;
        self.waiting -= 1;
        slot.take().map(|pending| pending.address)
    }

    /// True when the add of one address waits.
    pub(crate) fn waits_for(&self, address: usize) -> bool {
        self.waiting > 0 && self.pending.iter().flatten().any(|pending| pending.address == address)
    }

    /// Takes the add of one address, if it waits.
    pub(crate) fn recall(&mut self, address: usize) -> bool {
        let found = self.pending.iter_mut().find(|slot| slot.is_some_and(|pending| pending.address == address));
        let Some(slot) = found else { return false };
        *slot = None;
        self.waiting -= 1;
        true
    }
}

impl Region {
    /// A region with this many elements of this size. Products beyond 32 bits are split again: the wire has 32 bits for
    /// each factor, and a large number of bytes is rounded up to 16, as the C library's blocks are.
    pub(crate) fn new(thread: u64, element_bytes: u64, elements: u64, name: u32, is_typed: bool) -> Self {
        let fits = |n: u64| u32::try_from(n).ok();
        let (element_bytes, elements) = match (fits(element_bytes), fits(elements)) {
            (Some(element_bytes), Some(elements)) => (element_bytes, elements),
            _ => {
                let bytes = element_bytes.saturating_mul(elements);
                let block = (bytes >> 32).checked_next_power_of_two().map_or(1 << 31, |n| (n << 1).max(16));
                let block = u32::try_from(block).unwrap_or(1 << 31);
                (block, u32::try_from(bytes.div_ceil(u64::from(block))).unwrap_or(u32::MAX))
            }
        };
        Self { thread, element_bytes, elements, name, is_typed, is_kept: false }
    }

    /// What `realloc` makes of a region: the same elements, more or fewer of them, where the size allows it.
    pub(crate) fn resized(self, thread: u64, bytes: u64) -> Option<Self> {
        let element = u64::from(self.element_bytes);
        let is_array = self.is_typed && self.elements > 1 && element > 0 && bytes.is_multiple_of(element);
        let (element, elements) = if is_array { (element, bytes / element) } else { (bytes, 1) };
        self.is_typed.then(|| Self { is_kept: true, ..Self::new(thread, element, elements, self.name, true) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Random;

    /// An event and the first add that is due then.
    fn due(regions: &mut Regions, event: Event, token: usize, address: usize, bytes: usize) -> Option<usize> {
        regions.pass(token);
        regions.due(event, token, address, bytes)
    }

    fn region(regions: &mut Regions) -> Region {
        let name = regions.intern(b"struct.Node");
        Region::new(3, 24, 1, name, false)
    }

    #[test]
    fn an_add_waits_for_its_own_thread_for_a_touch_or_for_long() {
        use Event::{Access, Region};
        let mut regions = Regions::default();
        let region = region(&mut regions);
        assert_eq!(regions.wait(0x1000, region, 7), None);
        assert!(regions.is_waiting());
        assert_eq!(due(&mut regions, Access, 8, 0x1018, 8), None, "behind the region");
        assert_eq!(due(&mut regions, Access, 8, 0xff8, 8), None, "in front of it");
        assert_eq!(due(&mut regions, Access, 8, 0xffc, 8), Some(0x1000), "across its start");
        assert!(!regions.is_waiting());
        regions.wait(0x1000, region, 7);
        assert_eq!(due(&mut regions, Region, 8, 0, 1), None, "another thread goes on");
        assert_eq!(due(&mut regions, Region, 7, 0, 1), Some(0x1000), "its own thread goes on");
        regions.wait(0x1000, region, 7);
        let waited = (1..).find(|_| due(&mut regions, Access, 7, 0, 1).is_some());
        assert_eq!(waited, Some(OWN_PATIENCE + 1), "its own thread reads and writes elsewhere");
        regions.wait(0x1000, region, 7);
        assert!(regions.recall(0x1000) && !regions.recall(0x1000));
        regions.wait(0x1000, region, 7);
        let waited = (0..=PATIENCE).find_map(|_| due(&mut regions, Access, 8, 0, 1));
        assert_eq!(waited, Some(0x1000));
    }

    #[test]
    fn when_too_many_wait_one_gives_way() {
        let mut regions = Regions::default();
        let region = region(&mut regions);
        for n in 0..PENDING_MAX {
            assert_eq!(regions.wait(n + 1, region, n), None);
        }
        assert!(regions.wait(0x5000, region, 99).is_some());
        let mut left = 0;
        while regions.any().is_some() {
            left += 1;
        }
        assert_eq!((left, regions.is_waiting()), (PENDING_MAX, false));
    }

    #[test]
    fn factors_that_do_not_fit_are_split_anew() {
        for bytes in [1_u64 << 32, (5 << 32) + 16, 100 << 30, (1 << 40) + 4096, 1 << 46] {
            let region = Region::new(0, bytes, 1, 0, false);
            let recorded = u64::from(region.element_bytes) * u64::from(region.elements);
            assert!(recorded >= bytes && recorded - bytes < u64::from(region.element_bytes), "{bytes} {region:?}");
        }
        let plain = Region::new(0, 40, 1000, 0, false);
        assert_eq!((plain.element_bytes, plain.elements), (40, 1000));
    }

    #[test]
    fn resizing_keeps_the_elements_of_an_array() {
        let array = Region::new(0, 8, 4, 5, true).resized(1, 80);
        assert!(matches!(array, Some(Region { element_bytes: 8, elements: 10, name: 5, thread: 1, .. })));
        let odd = Region::new(0, 8, 4, 5, true).resized(1, 81);
        assert!(matches!(odd, Some(Region { element_bytes: 81, elements: 1, .. })));
        assert!(Region::new(0, 8, 4, 5, false).resized(1, 80).is_none(), "a place is reported by the new call");
    }

    /// An add that waits, in the slow version: how many events passed, and how many of its own thread.
    #[derive(Debug, Clone, Copy)]
    struct Waits {
        bytes: u64,
        token: usize,
        own: u32,
        age: u32,
    }

    #[test]
    fn adds_are_due_when_a_list_of_all_events_says() {
        let mut random = Random(3);
        let mut below = |end| random.below(end);
        let mut regions = Regions::default();
        let mut list: BTreeMap<usize, Waits> = BTreeMap::new();
        let (mut written, mut left_early) = (0, 0);
        for _ in 0..60_000 {
            let token = below(40) as usize;
            let address = 0x1000 + below(64) as usize * 32;
            if below(3) > 0 && !list.contains_key(&address) {
                let (element_bytes, elements) = (1 + below(40), 1 + below(3));
                let gone = regions.wait(address, Region::new(token as u64, element_bytes, elements, 0, false), token);
                let oldest = list.values().map(|waits| waits.age).max();
                assert_eq!(gone.is_some(), list.len() == PENDING_MAX);
                if let Some(gone) = gone {
                    assert_eq!(list.remove(&gone).map(|waits| waits.age), oldest, "one that waited longest");
                    left_early += 1;
                }
                list.insert(address, Waits { bytes: element_bytes * elements, token, own: 0, age: 0 });
            } else if below(9) == 0 {
                assert_eq!(regions.waits_for(address), list.contains_key(&address));
                assert_eq!(regions.recall(address), list.remove(&address).is_some());
            } else {
                let event = if below(12) == 0 { Event::Region } else { Event::Access };
                let bytes = 1 + below(16) as usize;
                for waits in list.values_mut() {
                    waits.age += 1;
                    waits.own += u32::from(waits.token == token);
                }
                let is_due = |at: usize, waits: &Waits| {
                    let touches =
                        (at..at + waits.bytes as usize).any(|byte| (address..address + bytes).contains(&byte));
                    touches || waits.token == token && (event == Event::Region || waits.own > OWN_PATIENCE)
                };
                let mut expected: Vec<usize> =
                    list.iter().filter(|(at, waits)| is_due(**at, waits)).map(|(at, _)| *at).collect();
                list.retain(|at, _| !expected.contains(at));
                regions.pass(token);
                let mut found: Vec<usize> = std::iter::from_fn(|| regions.due(event, token, address, bytes)).collect();
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected);
                written += found.len();
            }
            assert_eq!(regions.is_waiting(), !list.is_empty());
        }
        assert!(written > 1000 && left_early > 100, "{written} {left_early}");
    }
}
