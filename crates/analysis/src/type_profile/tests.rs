use std::sync::Arc;

use anytrace_core::access::{AccessFlags, AccessKind};
use anytrace_core::layout::{Dimension, Field, Layout, RecordKind};
use proptest::prelude::*;

use super::rows::of_layout;
use super::*;
use crate::cache::Options;
use crate::cache::config::{Config, Level};

struct One(Arc<Layout>);

impl Layouts for One {
    fn layout(&mut self, name: &str, _recorded: u64) -> Option<Arc<Layout>> {
        (name == "struct.P").then(|| Arc::clone(&self.0))
    }
}

fn particle() -> Arc<Layout> {
    let mut layout = Layout::new("P", RecordKind::Struct, 24);
    layout.push(Field::new("id", 0, 4, "int"));
    layout.push(Field::new("pos", 8, 4, "float").repeated(Dimension { stride_bytes: 4, count: 3 }));
    Arc::new(layout)
}

fn access(seq: u64, address: u64, bytes: u16, kind: AccessKind) -> Access {
    Access { address, seq, thread: 0, bytes, kind, flags: AccessFlags::NONE }
}

fn caches() -> Simulation {
    let config = Config::new("c", vec![Level::new("L1", 4096, 64, 4)]);
    Simulation::new(vec![config], Options { with_types: true, ..Options::default() }).unwrap()
}

fn profile(regions: &[RegionAdded], accesses: &[Access]) -> TypeProfile {
    let mut layouts = One(particle());
    let mut profiler = TypeProfiler::new(&mut layouts, caches(), 64);
    profiler.type_name(0, Some(b"struct.P")).unwrap();
    profiler.type_name(1, Some(b"struct.Q")).unwrap();
    regions.iter().for_each(|region| profiler.region_added(region).unwrap());
    accesses.chunks(7).for_each(|batch| profiler.accesses(batch).unwrap());
    profiler.finish().unwrap()
}

#[test]
fn one_block_of_all_bytes_is_counted_as_elements_of_the_type() {
    let region = RegionAdded { seq: 0, address: 4096, element_bytes: 240, elements: 1, type_number: 0, thread: 0 };
    let reads = [access(1, 4096 + 24 * 3 + 12, 4, AccessKind::Read), access(2, 4096 + 4, 8, AccessKind::Write)];
    let found = profile(&[region], &reads);
    let one = &found.types[0];
    assert_eq!(
        (one.elements, one.regions, one.element_bytes.as_slice(), one.straddling_elements),
        (10, 1, &[(24, 1)][..], 2)
    );
    let rows = found.rows(0);
    let brief: Vec<_> =
        rows.iter().map(|row| (row.path.as_str(), row.bytes, row.counts.reads, row.counts.writes)).collect();
    assert_eq!(brief, [("id", 4, 0, 0), ("", 4, 0, 1), ("pos[]", 12, 1, 1), ("", 4, 0, 0)]);
    assert_eq!(rows[1].kind, RowKind::Hole);
    assert_eq!((one.live_bytes_peak, one.live.sparkline(8).chars().count()), (240, 3));
}

proptest! {
    #[test]
    fn fields_get_the_same_counts_as_in_a_slow_model(
        starts in proptest::collection::vec((0_u64..40, 1_u64..6, 0_u32..2), 1..8),
        touched in proptest::collection::vec((0_u64..1400, 0_u16..20, any::<bool>()), 1..80),
    ) {
        let regions: Vec<RegionAdded> = starts.iter().zip(0..).map(|((at, elements, type_number), seq)| RegionAdded {
            seq, address: 64 + at * 24, element_bytes: 24, elements: *elements, type_number: *type_number, thread: 0,
        }).collect();
        let first = regions.len() as u64;
        let accesses: Vec<Access> = touched.iter().zip(first..).map(|((at, bytes, is_write), seq)| {
            access(seq, *at, *bytes, if *is_write { AccessKind::Write } else { AccessKind::Read })
        }).collect();
        let found = profile(&regions, &accesses);
        // The slow model: for each access look through all regions and all bytes.
        let (mut untyped, mut id, mut pos, mut in_p) = (0, 0, 0, 0);
        // Without bytes there is no first byte that could be in a region.
        for one in accesses.iter().filter(|one| one.bytes > 0) {
            let home = regions.iter().rev().find(|region| (region.address..=region.last().unwrap()).contains(&one.address));
            match home {
                None => untyped += 1,
                Some(region) if region.type_number == 0 => {
                    in_p += 1;
                    let offset = (one.address - region.address) % 24;
                    let bytes = || (offset..offset + u64::from(one.bytes)).filter(|byte| *byte < 24);
                    id += u64::from(bytes().any(|byte| byte < 4));
                    pos += u64::from(bytes().any(|byte| (8..20).contains(&byte)));
                }
                Some(_) => {}
            }
        }
        prop_assert_eq!(found.untyped.accesses(), untyped);
        prop_assert_eq!(found.types[0].counts.accesses(), in_p);
        let rows = found.rows(0);
        let of = |name: &str| rows.iter().find(|row| row.name == name).map_or(0, |row| row.counts.accesses());
        prop_assert_eq!((of("id"), of("pos")), (id, pos));
        let all: u64 = found.types.iter().map(|one| one.counts.accesses()).sum();
        prop_assert_eq!(all + untyped + found.zero_size, accesses.len() as u64);
        // As the simulation counts them.
        let simulated = found.caches.as_ref().and_then(|caches| caches.configs[0].types.as_ref()).unwrap();
        prop_assert_eq!(simulated.untyped.accesses(), untyped);
        prop_assert_eq!(simulated.types.iter().map(|one| one.total.accesses()).sum::<u64>(), all);
        let by_offset: u64 = found.offsets.iter().map(|(_, counts)| counts.misses).sum();
        prop_assert_eq!(by_offset, found.types.iter().map(|one| one.counts.misses).sum::<u64>());
    }
}

/// Elements of 8 bytes: a byte, a hole of 3, an int that ends 2 bytes early; with a hole before and one after it.
fn board(elements: u64) -> Layout {
    let mut layout = Layout::new("Board", RecordKind::Struct, 8 + 8 * elements + 4);
    layout.push(Field::new("id", 0, 4, "int"));
    let each = Dimension { stride_bytes: 8, count: elements };
    let parent = layout.push(Field::new("cells", 8, 8, "Cell").repeated(each));
    let inside = |name: &str, offset: u64, bytes: u64| Field {
        parent,
        depth: 1,
        dimensions: vec![each],
        ..Field::new(name, offset, bytes, "char")
    };
    layout.push(inside("kind", 8, 1));
    layout.push(inside("value", 12, 2));
    layout
}

fn summary(rows: &[Row]) -> Vec<(u64, u64, u16, &str, u64)> {
    rows.iter().map(|row| (row.offset_bytes, row.bytes, row.depth, row.name.as_str(), row.counts.reads)).collect()
}

#[test]
fn holes_in_the_elements_of_an_array_are_shown_once() {
    let reads = |reads| Counts { reads, ..Counts::default() };
    // In the hole of element 2; over that of element 0 into the next field; over two elements; past the end of the
    // array.
    let counted = [((0, 27, 1), reads(1)), ((0, 10, 4), reads(2)), ((0, 9, 16), reads(4)), ((0, 42, 1), reads(8))];
    let rows = of_layout(&board(4), &counted);
    assert_eq!(
        summary(&rows),
        [
            (0, 4, 0, "id", 0),
            (4, 4, 0, "(padding)", 0),
            (8, 32, 0, "cells", 6),
            (8, 1, 1, "kind", 4),
            (9, 3, 1, "(padding)", 7),
            (12, 2, 1, "value", 6),
            (14, 2, 1, "(padding)", 4),
            (38, 6, 1, "(padding)", 8),
        ]
    );
}

#[test]
fn a_hole_behind_all_fields_may_be_a_virtual_base() {
    let mut layout = board(1);
    layout.virtual_bases.push("Base".to_owned());
    let names: Vec<_> = rows_of(&layout).into_iter().map(|row| row.name).filter(|name| name.starts_with('(')).collect();
    assert_eq!(names, ["(padding)", "(padding)", "(virtual base Base or padding)"]);
}

#[test]
fn an_array_of_thousands_of_elements_with_holes_takes_no_more_than_a_moment() {
    let elements = 20_000;
    let layout = board(elements);
    let of = |at: u64| [0, 4, 6].map(|inside| ((0, 8 + at * 8 + inside, 2), Counts { reads: 1, ..Counts::default() }));
    let counted: Vec<_> = (0..elements).flat_map(of).collect();
    let rows = of_layout(&layout, &counted);
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[3].counts.reads, elements);
}
