//! Which field an access touches, against a map from each byte to its fields.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::layout::{Dimension, Field, Layout, RecordKind, bare_name, canonical_name};
use anytrace_core::{Endian, NumberSet};

mod common;

use common::Random;

/// Offset, bytes, and dimensions (padding between elements, count), the outermost first.
type Plan = (u64, u64, Vec<(u64, u64)>);

fn plans(random: &mut Random) -> Vec<Plan> {
    (0..1 + random.below(5))
        .map(|_| {
            let (gap, bytes) = (random.below(6), 1 + random.below(8));
            (gap, bytes, (0..random.below(3)).map(|_| (random.below(4), 1 + random.below(3))).collect())
        })
        .collect()
}

/// Fields one after the other, and the bytes of each with their indices.
fn built(plans: &[Plan]) -> (Layout, BTreeMap<u64, (usize, Vec<u64>)>) {
    let mut fields = Vec::new();
    let mut bytes_of = BTreeMap::new();
    let mut next = 0;
    for (number, (gap, bytes, dimensions)) in plans.iter().enumerate() {
        let offset = next + gap;
        // Strides from the innermost out: each holds all of what is inside it, and padding.
        let mut strides = Vec::new();
        let mut inner = *bytes;
        for (padding, count) in dimensions.iter().rev() {
            let stride = inner + padding;
            strides.push(Dimension { stride_bytes: stride, count: *count });
            inner += stride * (count - 1);
        }
        let mut field = Field::new(&format!("f{number}"), offset, *bytes, "t");
        for dimension in strides.iter().rev() {
            field = field.repeated(*dimension);
        }
        let mut places = vec![(offset, Vec::new())];
        for dimension in strides.iter().rev() {
            let inside = |(at, indices): &(u64, Vec<u64>)| {
                let (at, indices) = (*at, indices.clone());
                (0..dimension.count)
                    .map(move |index| {
                        let mut indices = indices.clone();
                        indices.push(index);
                        (at + index * dimension.stride_bytes, indices)
                    })
                    .collect::<Vec<_>>()
            };
            places = places.iter().flat_map(inside).collect();
        }
        for (at, indices) in places {
            for byte in at..at + bytes {
                assert!(bytes_of.insert(byte, (number, indices.clone())).is_none());
            }
        }
        next = offset + inner;
        fields.push(field);
    }
    let mut layout = Layout::new("T", RecordKind::Struct, next + 3);
    for field in fields {
        layout.push(field).unwrap();
    }
    (layout, bytes_of)
}

#[test]
fn hits_are_the_elements_whose_bytes_are_touched() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let (plans, offset, bytes) = (plans(random), random.below(80), random.below(20));
        let (layout, bytes_of) = built(&plans);
        let expected: BTreeSet<(usize, Vec<u64>)> =
            bytes_of.range(offset..offset + bytes).map(|(_, element)| element.clone()).collect();
        let hits = layout.hits(offset, bytes);
        let found: BTreeSet<(usize, Vec<u64>)> = hits.iter().map(|hit| (hit.field, hit.indices.clone())).collect();
        assert_eq!(found.len(), hits.len());
        assert_eq!(&found, &expected);
        for hit in &hits {
            let first = bytes_of.iter().find(|(_, element)| **element == (hit.field, hit.indices.clone())).unwrap().0;
            assert_eq!(hit.offset_bytes, *first);
        }
        assert!(hits.windows(2).all(|pair| pair[0].offset_bytes <= pair[1].offset_bytes));
        let touched: BTreeSet<usize> = expected.iter().map(|(field, _)| *field).collect();
        assert_eq!(layout.touched(offset, bytes), touched.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn holes_are_the_bytes_of_no_field() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let plans = plans(random);
        let (layout, bytes_of) = built(&plans);
        let holes: BTreeSet<u64> = layout.holes().iter().flat_map(|(at, bytes)| *at..at + bytes).collect();
        let expected: BTreeSet<u64> = (0..layout.bytes).filter(|byte| !bytes_of.contains_key(byte)).collect();
        assert_eq!(holes, expected);
        assert!(layout.holes().windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "joined, ascending");
    }
}

#[test]
fn a_field_ends_with_its_last_element() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let plans = plans(random);
        let (layout, bytes_of) = built(&plans);
        for (number, field) in layout.leaves() {
            let own: Vec<u64> = bytes_of.iter().filter(|(_, of)| of.0 == number).map(|(byte, _)| *byte).collect();
            assert_eq!(field.end_bytes(), own.last().unwrap() + 1);
            assert_eq!(field.total_bytes(), own.last().unwrap() + 1 - own[0]);
            let count: u64 = field.dimensions.iter().map(|dimension| dimension.count).product();
            assert_eq!(own.len() as u64, count * field.bytes);
            assert_eq!(field.type_text().matches('[').count(), field.dimensions.len());
        }
    }
}

#[test]
fn elements_divide_what_was_recorded() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let (bytes, recorded) = (random.below(40), random.below(400) * random.below(10));
        let layout = Layout::new("T", RecordKind::Struct, bytes);
        let found = layout.element_bytes(recorded);
        let divides = bytes > 0 && recorded > 0 && recorded % bytes == 0;
        assert_eq!(found, if divides { bytes } else { recorded });
    }
}

#[test]
fn sets_of_numbers_contain_what_was_added() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let ranges: Vec<(u64, u64, u64)> =
            (0..random.below(6)).map(|_| (random.below(60), random.below(40), 1 + random.below(8))).collect();
        let (mut set, mut other, mut slow) = (NumberSet::default(), NumberSet::default(), BTreeSet::new());
        for (number, (from, length, step)) in ranges.iter().enumerate() {
            let into = if number % 2 == 0 { &mut set } else { &mut other };
            into.add(*from..from + length, (*step).try_into().unwrap());
            slow.extend((*from..from + length).step_by(usize::try_from(*step).unwrap()));
        }
        set.add_set(&other);
        for number in 0..120 {
            assert_eq!(set.contains(number), slow.contains(&number), "{}", number);
        }
    }
}

#[test]
fn both_byte_orders_write_what_they_read() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let (number, short) = (random.next(), random.next() as u16);
        for order in [Endian::Little, Endian::Big] {
            assert_eq!(order.u64(order.put_u64(number)), number);
            assert_eq!(order.u16(order.put_u16(short)), short);
            let mut swapped = order.put_u64(number);
            swapped.reverse();
            assert_eq!(order.swapped().u64(swapped), number);
            assert_eq!(Endian::from_name(order.name()), Some(order));
        }
        assert_eq!(Endian::Little.put_u64(number), number.to_le_bytes());
        assert_eq!(Endian::Big.put_u64(number), number.to_be_bytes());
    }
}

#[test]
fn a_type_has_one_canonical_name() {
    for names in [["struct.A", "struct A", "A"], ["class.ns::B", "class ns::B", "ns::B"], ["union.U", "union U", "U"]] {
        let canonical: BTreeSet<String> = names.iter().map(|name| canonical_name(bare_name(name))).collect();
        assert_eq!(canonical.len(), 1, "{canonical:?}");
    }
    assert_ne!(canonical_name(bare_name("struct.A")), canonical_name(bare_name("struct.B")));
}
