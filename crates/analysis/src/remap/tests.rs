use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Keeps what it receives.
#[derive(Default)]
struct Heard {
    accesses: Vec<Access>,
    regions: Vec<(u64, u64, u64, TypeNumber)>,
    removed: Vec<u64>,
    names: Vec<String>,
}

impl AccessSink for Heard {
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        Ok(())
    }
    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        assert_eq!(number as usize, self.names.len());
        self.names.push(String::from_utf8(name.unwrap().to_vec()).unwrap());
        Ok(())
    }
    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.regions.push((region.address, region.element_bytes, region.elements, region.type_number));
        Ok(())
    }
    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.removed.push(region.address);
        Ok(())
    }
    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        self.accesses.extend_from_slice(batch);
        Ok(())
    }
}

fn access(address: u64, bytes: u16) -> Access {
    Access { address, seq: 9, thread: 0, bytes, kind: AccessKind::Write, flags: AccessFlags::NONE }
}

fn region(address: u64, element_bytes: u64, elements: u64, type_number: TypeNumber) -> RegionAdded {
    RegionAdded { seq: 0, address, element_bytes, elements, type_number, thread: 0 }
}

fn mv(from: u64, bytes: u64, part: usize, to: u64) -> Move {
    Move { from, bytes, part, to }
}

fn plan(old_bytes: u64, parts: &[u64], moves: &[Move]) -> TypePlan {
    TypePlan {
        name: "struct A".to_owned(),
        old_bytes,
        parts: parts.iter().map(|bytes| Part { bytes: *bytes, align: 8 }).collect(),
        moves: moves.to_vec(),
        pointer: None,
        always_moves: false,
    }
}

#[test]
fn fields_that_change_places_stay_in_their_region() {
    let mut heard = Heard::default();
    let swap = plan(16, &[16], &[mv(0, 8, 0, 8), mv(8, 8, 0, 0)]).checked().unwrap();
    let mut remap = Remap::new(vec![swap], &mut heard);
    remap.type_name(0, Some(b"struct.A.3")).unwrap();
    remap.region_added(&region(1000, 16, 4, 0)).unwrap();
    remap.accesses(&[access(1000, 4), access(1028, 4), access(1004, 8), access(2000, 1)]).unwrap();
    assert_eq!(remap.done(), RemapDone { regions: 1, other_sizes: 0, accesses: 3 });
    let places: Vec<_> = heard.accesses.iter().map(|one| (one.address, one.bytes)).collect();
    assert_eq!(places, [(1008, 4), (1020, 4), (1012, 4), (1000, 4), (2000, 1)]);
}

#[test]
fn parts_lie_apart_and_the_pointer_to_them_is_read_first() {
    let mut heard = Heard::default();
    let mut split = plan(64, &[24, 48], &[mv(0, 16, 0, 0), mv(16, 48, 1, 0)]);
    split.pointer = Some(16);
    let mut remap = Remap::new(vec![split.checked().unwrap()], &mut heard);
    remap.type_name(0, Some(b"struct.A")).unwrap();
    remap.type_name(1, Some(b"struct.B")).unwrap();
    remap.region_added(&region(1000, 64, 1, 0)).unwrap();
    remap.region_added(&region(5000, 8, 1, 1)).unwrap();
    remap.region_added(&region(6000, 32, 1, 0)).unwrap();
    remap.accesses(&[access(1008, 8), access(1020, 1), access(5000, 8)]).unwrap();
    remap.region_removed(&RegionRemoved { seq: 10, address: 1000, thread: 0 }).unwrap();
    assert_eq!(remap.done().other_sizes, 1);
    assert_eq!(heard.names, ["struct.A", "struct.A (part 2)", "struct.B"]);
    let (hot, cold) = (heard.regions[0].0, heard.regions[1].0);
    assert_eq!(heard.regions[2..], [(5000, 8, 1, 2), (6000, 32, 1, 0)]);
    let places: Vec<_> = heard.accesses.iter().map(|one| (one.address, one.kind.name())).collect();
    assert_eq!(places, [(hot + 8, "write"), (hot + 16, "read"), (cold + 4, "write"), (5000, "write")]);
    assert_eq!(heard.removed, [hot, cold]);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let why = |plan: TypePlan| plan.checked().unwrap_err();
    assert!(why(plan(0, &[8], &[])).contains("unknown"));
    assert!(why(plan(8, &[], &[])).contains("parts"));
    assert!(why(plan(8, &[8], &[mv(4, 8, 0, 0)])).contains("past its end"));
    assert!(why(plan(16, &[16], &[mv(0, 8, 0, 0), mv(4, 4, 0, 8)])).contains("moved twice"));
    assert!(why(plan(16, &[8], &[mv(0, 8, 0, 4)])).contains("past the end"));
    assert!(why(plan(16, &[16], &[mv(0, 8, 0, 0), mv(8, 8, 0, 4)])).contains("share"));
    assert!(why(plan(16, &[16], &[mv(0, 8, 1, 0)])).contains("past the end"));
}

/// Some regions of one type, over each other in part, some of them gone again, and accesses between.
fn emit(sink: &mut dyn AccessSink) {
    sink.type_name(0, Some(b"A")).unwrap();
    for number in 0..40_u64 {
        sink.region_added(&RegionAdded { seq: number, ..region(4096 + 40 * number, 16, 4, 0) }).unwrap();
        let all: Vec<Access> = (0..30).map(|at| access(4096 + at * number, 8)).collect();
        sink.accesses(&all).unwrap();
        if number % 3 == 2 {
            sink.region_removed(&RegionRemoved { seq: number, address: 4096 + 40 * (number - 1), thread: 0 }).unwrap();
        }
    }
}

#[test]
fn several_together_do_what_each_does_alone() {
    let swapped = plan(16, &[16], &[mv(0, 8, 0, 8), mv(8, 8, 0, 0)]);
    let plans = [swapped.clone(), plan(16, &[8, 8], &[mv(0, 8, 0, 0), mv(8, 8, 1, 0)]), plan(24, &[24], &[])];
    let alone = plans.clone().map(|plan| {
        let mut heard = Heard::default();
        emit(&mut Remap::new(vec![plan], &mut heard));
        heard
    });
    assert_ne!(alone[0].accesses, alone[2].accesses);
    let mut together = plans.clone().map(|_| Heard::default());
    let all = together.iter_mut().zip(plans).map(|(heard, plan)| Remap::new(vec![plan], heard)).collect();
    emit(&mut Remaps::new(all));
    for (together, alone) in together.iter().zip(&alone) {
        assert_eq!(together.accesses, alone.accesses);
        assert_eq!((&together.regions, &together.removed), (&alone.regions, &alone.removed));
    }
}

/// Each byte of an element has one new place; a slow model finds it byte by byte.
fn slow(plan: &TypePlan, bases: &[u64], start: u64, access: &Access) -> Vec<u64> {
    (0..u64::from(access.bytes))
        .map(|at| {
            let inside = access.address + at - start;
            let (index, offset) = (inside / plan.old_bytes, inside % plan.old_bytes);
            let found = plan.moves.iter().find(|one| (one.from..one.from + one.bytes).contains(&offset));
            let one = found.expect("all bytes are moved here");
            bases[one.part] + index * plan.parts[one.part].bytes + one.to + offset - one.from
        })
        .collect()
}

proptest! {
    #[test]
    fn every_byte_goes_where_the_slow_model_says(
        cuts in proptest::collection::btree_set(1_u64..24, 0..6),
        order in any::<u64>(),
        touched in proptest::collection::vec((0_u64..90, 1_u16..20), 1..30),
    ) {
        // Pieces in a shuffled order, dealt to two parts.
        let mut edges: Vec<u64> = cuts.into_iter().collect();
        edges.insert(0, 0);
        edges.push(24);
        let mut pieces: Vec<(u64, u64)> = edges.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect();
        pieces.sort_by_key(|(from, _)| (from.wrapping_mul(order | 1)) >> 3);
        let mut ends = [0_u64; 2];
        let mut moves = Vec::new();
        for (number, (from, bytes)) in pieces.into_iter().enumerate() {
            let part = number % 2;
            moves.push(mv(from, bytes, part, ends[part]));
            ends[part] += bytes;
        }
        let plan = plan(24, &[ends[0].max(1), ends[1].max(1)], &moves).checked().unwrap();
        let mut heard = Heard::default();
        let mut remap = Remap::new(vec![plan.clone()], &mut heard);
        remap.type_name(0, Some(b"A")).unwrap();
        remap.region_added(&region(4096, 24, 4, 0)).unwrap();
        let all: Vec<Access> = touched.iter().map(|(at, bytes)| access(4096 + at, (*bytes).min((96 - at) as u16))).collect();
        remap.accesses(&all).unwrap();
        let bases: Vec<u64> = heard.regions.iter().map(|region| region.0).collect();
        let wanted: Vec<u64> = all.iter().flat_map(|one| slow(&plan, &bases, 4096, one)).collect();
        let found: Vec<u64> = heard.accesses.iter().flat_map(|one| one.address..=one.last()).collect();
        prop_assert_eq!(found, wanted);
        let mut counts = BTreeMap::new();
        bases.iter().for_each(|base| *counts.entry(base).or_insert(0) += 1);
        prop_assert!(counts.values().all(|count| *count == 1));
    }
}
