//! Against a list of regions that is searched from its end.

use anytrace_core::access::{Access, AccessFlags, AccessKind, RegionAdded, RegionRemoved};
use proptest::prelude::*;

use super::*;

/// The rule, word by word.
#[derive(Default)]
struct Slow {
    live: Vec<(u64, Option<u64>, u64)>,
    removed: Vec<(u64, u64)>,
    next: u64,
}

impl Slow {
    fn add(&mut self, start: u64, last: Option<u64>) {
        self.live.push((start, last, self.next));
        self.next += 1;
        if let Some(last) = last {
            self.removed.retain(|(from, to)| *to < start || last < *from);
        }
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let at = self.live.iter().rposition(|(from, ..)| *from == start)?;
        let (_, last, id) = self.live.remove(at);
        self.removed.extend(last.map(|last| (start, last)));
        Some(id)
    }

    fn find(&self, address: u64) -> Option<u64> {
        let holds = |last: &Option<u64>| last.is_some_and(|last| address <= last);
        self.live.iter().rev().find(|(start, last, _)| *start <= address && holds(last)).map(|(.., id)| *id)
    }

    fn is_removed(&self, address: u64) -> bool {
        self.removed.iter().any(|(start, last)| (*start..=*last).contains(&address))
    }
}

fn region(address: u64, element_bytes: u64, elements: u64) -> RegionAdded {
    RegionAdded { seq: 0, address, element_bytes, elements, type_number: 0, thread: 0 }
}

fn touch(address: u64) -> Access {
    Access { address, seq: 0, thread: 0, bytes: 1, kind: AccessKind::Read, flags: AccessFlags::NONE }
}

#[derive(Debug, Clone)]
enum Step {
    Add(u64, u64),
    Remove(u64),
    Find(u32, u64),
}

fn step(places: u64, bytes: u64) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..places, 0..bytes).prop_map(|(at, bytes)| Step::Add(at, bytes)),
        2 => (0..places).prop_map(Step::Remove),
        5 => (0..3_u32, 0..places + bytes).prop_map(|(thread, at)| Step::Find(thread, at)),
    ]
}

fn compare(base: u64, steps: &[Step]) {
    let (mut fast, mut slow) = (LiveRegions::new(), Slow::default());
    for step in steps {
        match *step {
            Step::Add(at, bytes) => {
                let added = region(base.saturating_add(at), bytes, 1);
                let id = fast.add(&added).expect("there is room");
                assert_eq!(id, slow.next);
                slow.add(added.address, added.last());
            }
            Step::Remove(at) => {
                let address = base.saturating_add(at);
                let gone = fast.remove(&RegionRemoved { seq: 0, address, thread: 0 });
                assert_eq!(gone.map(|region| region.id), slow.remove(address));
            }
            Step::Find(thread, at) => {
                let address = base.saturating_add(at);
                assert_eq!(fast.find(thread, address).map(|region| region.id), slow.find(address), "{address}");
                assert_eq!(fast.is_removed(address), slow.is_removed(address), "{address}");
                let located = match fast.locate(thread, address) {
                    Located::Region(region) => (Some(region.id), false),
                    Located::Removed => (None, true),
                    Located::Nothing => (None, false),
                };
                let found = slow.find(address);
                assert_eq!(located, (found, found.is_none() && slow.is_removed(address)), "{address}");
                let near = [0, 1, 15, 40, 5000].map(|n| touch(address.wrapping_add(n)));
                fast.locate_all(&near, &mut Vec::new(), |access, located| {
                    let id = if let Located::Region(region) = located { Some(region.id) } else { None };
                    assert_eq!(id, slow.find(access.address), "{}", access.address);
                    let is_removed = id.is_none() && slow.is_removed(access.address);
                    assert_eq!(located == Located::Removed, is_removed, "{}", access.address);
                });
            }
        }
    }
    let live: Vec<_> = fast.live().iter().map(|region| region.id).collect();
    assert_eq!(live, slow.live.iter().map(|(.., id)| *id).collect::<Vec<_>>());
    assert_eq!(fast.len(), live.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_address_has_the_latest_region_that_holds_it(steps in prop::collection::vec(step(60, 40), 0..200)) {
        compare(0, &steps);
    }

    #[test]
    fn wide_regions_among_narrow_ones(
        steps in prop::collection::vec(prop_oneof![step(3000, 20), step(3000, 6000)], 0..200)
    ) {
        compare(0x5555_0000, &steps);
    }

    #[test]
    fn the_end_of_the_address_space_is_no_place_to_fall_off(steps in prop::collection::vec(step(80, 50), 0..200)) {
        compare(u64::MAX - 70, &steps);
    }
}

#[test]
fn regions_of_no_bytes_are_removed_in_their_turn() {
    let mut regions = LiveRegions::new();
    regions.add(&region(16, 8, 1)).expect("there is room");
    regions.add(&region(16, 0, 5)).expect("there is room");
    assert_eq!(regions.find(0, 16).map(|region| region.id), Some(0));
    let remove = RegionRemoved { seq: 0, address: 16, thread: 0 };
    assert_eq!(regions.remove(&remove).map(|region| region.id), Some(1));
    assert!(!regions.is_removed(16) && regions.find(0, 16).is_some());
    assert_eq!(regions.remove(&remove).map(|region| region.id), Some(0));
    assert!(regions.is_removed(23) && !regions.is_removed(24) && regions.is_empty());
    assert_eq!(regions.remove(&remove), None);
}

#[test]
fn offsets_are_those_in_an_element() {
    let mut regions = LiveRegions::new();
    regions.add(&region(100, 12, 10)).expect("there is room");
    let region = regions.find(0, 150).expect("it is inside");
    assert_eq!((region.offset_in_element(100), region.offset_in_element(150)), (0, 2));
}

/// Each of these orders once took time in the square of its length in one design or another.
#[test]
fn no_order_of_adds_and_removes_is_slow() {
    let many = 20_000_u64;
    let mut regions = LiveRegions::new();
    let wide = |start| region(start, 1 << 30, 1);
    let remove = |address| RegionRemoved { seq: 0, address, thread: 0 };
    for at in 0..many {
        regions.add(&region(4096 + at * 64, 32, 1)).expect("there is room");
    }
    for turn in 0..many {
        regions.add(&wide(16)).expect("there is room");
        assert!(regions.find(0, 4096 + turn * 64).is_some_and(|region| region.id >= many));
        regions.remove(&remove(16));
        assert!(regions.find(0, 4096 + turn * 64).is_some_and(|region| region.id == turn));
    }
    for at in 0..many {
        regions.add(&wide(at % 16)).expect("there is room");
    }
    for at in 0..many {
        regions.add(&region(4096 + at * 64, 32, 1)).expect("there is room");
    }
    for turn in 0..many {
        assert!(regions.find(0, 4096 + 40 + turn * 64).is_some());
        regions.remove(&remove(turn % 16));
    }
    assert!(regions.find(0, 4096 + 40).is_none());
}
