use std::sync::Arc;

use anytrace_core::AccessSink;
use anytrace_core::Error;
use anytrace_core::access::{Access, AccessFlags, AccessKind, RegionAdded};
use anytrace_core::layout::{Dimension, Field, Layout, Layouts, NoLayouts, RecordKind};

use super::*;
use crate::cache::config::{Config, Level};
use crate::cache::{CorePlan, Options, Simulation};

fn small() -> Config {
    let mut config = Config::new("c", vec![Level::new("L1", 4096, 64, 4)]);
    config.levels[0].is_private = true;
    config
}

struct Tape<'a> {
    out: &'a mut dyn AccessSink,
    seq: u64,
}

impl Tape<'_> {
    fn add(&mut self, address: u64, element_bytes: u64, elements: u64) {
        let region = RegionAdded { seq: self.seq, address, element_bytes, elements, type_number: 0, thread: 0 };
        self.out.region_added(&region).unwrap();
        self.seq += 1;
    }

    fn touch(&mut self, thread: u32, kind: AccessKind, address: u64, bytes: u16) {
        let access = Access { address, seq: self.seq, thread, bytes, kind, flags: AccessFlags::NONE };
        self.out.accesses(&[access]).unwrap();
        self.seq += 1;
    }
}

/// Surveys a scene and tries all proposals, as the verb does.
fn advised(layouts: &mut dyn Layouts, scene: &dyn Fn(&mut Tape<'_>)) -> Vec<Tried> {
    let options = Options { with_types: true, ..Options::default() };
    let mut survey = Survey::new(layouts, Simulation::new(vec![small()], options).unwrap(), 64);
    let emit = |out: &mut dyn AccessSink| {
        out.thread(0, Some(1))?;
        out.thread(1, Some(2))?;
        out.type_name(0, Some(b"struct.T"))?;
        scene(&mut Tape { out, seq: 0 });
        Ok::<(), Error>(())
    };
    emit(&mut survey).unwrap();
    let surveyed = survey.finish().unwrap();
    let before = Measured::of(surveyed.profile.caches.as_ref().unwrap());
    let proposals = candidates(&surveyed, 8);
    let mut plans: Vec<_> = proposals.iter().map(|one| vec![one.plan.clone()]).collect();
    plans.extend(proposals.iter().map(|one| vec![unchanged("struct.T", one.plan.old_bytes)]));
    let found = Trial::new(&small(), &CorePlan::default(), plans).unwrap().run(layouts, emit).unwrap();
    let (after, moved) = found.split_at(proposals.len());
    let all = proposals.into_iter().zip(after).zip(moved);
    let mut tried: Vec<Tried> =
        all.map(|((one, after), moved)| Tried::new(one, before.clone(), moved.clone(), after.clone())).collect();
    rank(&mut tried);
    tried
}

use AccessKind::{Read, Write};

/// Nodes of 64 bytes of which 16 are used, over and over.
fn list(tape: &mut Tape<'_>) {
    (0..200).for_each(|n| tape.add(4096 + n * 80, 64, 1));
    for _ in 0..3 {
        for n in 0..200 {
            tape.touch(0, Write, 4096 + n * 80, 8);
            tape.touch(0, Read, 4096 + n * 80 + 8, 8);
        }
    }
}

#[test]
fn what_is_never_used_is_split_off_without_type_data() {
    let tried = advised(&mut NoLayouts, &list);
    let best = &tried[0];
    assert!(best.is_advice() && best.candidate.kind == Kind::Split, "{best:#?}");
    let cold: Vec<_> =
        best.candidate.placed.iter().filter(|(_, one)| one.part == 1).map(|(unit, _)| &unit.name).collect();
    assert_eq!(cold, ["bytes 16..64"]);
    assert_eq!((best.candidate.plan.pointer, best.candidate.plan.parts[0].bytes), (Some(16), 24));
    assert!(best.after.levels[0].1 * 10 < best.before.levels[0].1 * 6, "{best:#?}");
}

struct Known(Arc<Layout>);

impl Layouts for Known {
    fn layout(&mut self, _name: &str, _recorded: u64) -> Option<Arc<Layout>> {
        Some(Arc::clone(&self.0))
    }
}

fn node() -> Known {
    let mut layout = Layout::new("T", RecordKind::Struct, 64);
    layout.push(Field::new("next", 0, 8, "T*"));
    layout.push(Field::new("val", 8, 8, "long"));
    layout.push(Field::new("cold", 16, 1, "char").repeated(Dimension { stride_bytes: 1, count: 48 }));
    Known(Arc::new(layout))
}

#[test]
fn type_data_name_what_is_split_off() {
    let tried = advised(&mut node(), &list);
    let cold = tried[0].candidate.placed.iter().find(|(_, one)| one.part == 1).map(|(unit, _)| unit.name.clone());
    assert_eq!((tried[0].candidate.kind, cold.as_deref()), (Kind::Split, Some("cold")));
    assert!(tried[0].candidate.reason.contains("cold: 48 of 64 bytes, never used"), "{}", tried[0].candidate.reason);
}

#[test]
fn a_class_with_virtual_bases_is_left_as_it_is() {
    // Fields end at 16; after that comes what type data do not place.
    let mut layout = Layout::new("T", RecordKind::Class, 64);
    layout.push(Field::new("a", 0, 8, "long"));
    layout.push(Field::new("b", 8, 8, "long"));
    layout.virtual_bases.push("Base".to_owned());
    assert!(advised(&mut Known(Arc::new(layout)), &list).is_empty());
}

#[test]
fn what_is_all_used_in_order_gets_no_advice() {
    let tried = advised(&mut NoLayouts, &|tape| {
        tape.add(4096, 16, 64);
        for _ in 0..4 {
            (0..128).for_each(|n| tape.touch(0, Read, 4096 + n * 8, 8));
        }
    });
    assert!(tried.iter().all(|one| !one.is_advice()), "{tried:#?}");
}

#[test]
fn fields_that_two_threads_write_are_put_apart() {
    let tried = advised(&mut NoLayouts, &|tape| {
        tape.add(4096, 16, 1);
        for _ in 0..200 {
            tape.touch(0, Write, 4096, 8);
            tape.touch(1, Write, 4104, 8);
        }
    });
    let best = &tried[0];
    assert!(best.is_advice() && best.candidate.kind == Kind::Separate, "{tried:#?}");
    assert_eq!(best.candidate.plan.parts[0].bytes, 128);
    assert!(best.after.levels[0].1 <= 4, "{best:#?}");
}

#[test]
fn an_array_of_which_one_field_is_walked_becomes_arrays_or_is_split() {
    let tried = advised(&mut NoLayouts, &|tape| {
        tape.add(4096, 32, 512);
        for pass in 0..6 {
            // Each pass uses one field, always another.
            (0..512).for_each(|n| tape.touch(0, Read, 4096 + n * 32 + (pass % 4) * 8, 8));
        }
    });
    assert!(tried[0].is_advice() && tried[0].candidate.kind == Kind::Arrays, "{tried:#?}");
}

#[test]
fn pieces_in_another_order_take_no_more_room_than_before() {
    // 96 bytes in pieces of 8, of which three are used.
    let tried = advised(&mut NoLayouts, &|tape| {
        for n in 0..400 {
            tape.add(0x10000 + n * 112, 96, 1);
        }
        for _ in 0..4 {
            for n in 0..400 {
                tape.touch(0, AccessKind::Read, 0x10000 + n * 112 + 8, 8);
                tape.touch(0, AccessKind::Write, 0x10000 + n * 112 + 72, 8);
                if n % 10 == 0 {
                    tape.touch(0, AccessKind::Read, 0x10000 + n * 112 + 32, 8);
                }
            }
        }
    });
    let of = |kind: &str| tried.iter().find(|one| one.candidate.kind.word() == kind).unwrap();
    let sizes = |kind: &str| of(kind).candidate.plan.parts.iter().map(|part| part.bytes).collect::<Vec<_>>();
    assert_eq!(sizes("reorder"), [96]);
    assert!(sizes("split").iter().sum::<u64>() <= 96 + 8 + 8, "{:?}", sizes("split"));
}

/// A record of random fields, as a compiler places them in the order given.
fn random_record(below: &mut dyn FnMut(u64) -> u64) -> Layout {
    let fields: Vec<(u64, u64)> = (0..3 + below(14)).map(|_| (1 << below(4), 1 + below(3) / 2)).collect();
    let mut end = 0_u64;
    let mut placed = Vec::new();
    for (bytes, count) in &fields {
        let at = end.next_multiple_of(*bytes);
        placed.push((at, *bytes, *count));
        end = at + bytes * count;
    }
    let widest = fields.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1);
    let mut layout = Layout::new("T", RecordKind::Struct, end.next_multiple_of(widest));
    for (number, (at, bytes, count)) in placed.into_iter().enumerate() {
        let field = Field::new(&format!("f{number}"), at, bytes, "int");
        layout.push(if count > 1 { field.repeated(Dimension { stride_bytes: bytes, count }) } else { field });
    }
    layout
}

#[test]
fn fields_in_another_order_take_no_more_room_than_as_declared() {
    let mut state = 7_u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let (mut reordered, mut advised_reorders) = (0, 0);
    for round in 0..300 {
        let layout = random_record(&mut below);
        let bytes = layout.bytes;
        let fields: Vec<(u64, u16)> =
            layout.fields.iter().map(|field| (field.offset_bytes, field.bytes as u16)).collect();
        let hot: Vec<_> = (0..1 + below(4)).map(|_| fields[below(fields.len() as u64) as usize]).collect();
        let stride = bytes + 8 * below(5);
        let rare = fields[below(fields.len() as u64) as usize];
        let tried = advised(&mut Known(Arc::new(layout)), &|tape| {
            (0..150).for_each(|n| tape.add(0x10000 + n * stride, bytes, 1));
            for _ in 0..3 {
                for n in 0..150 {
                    for (offset, bytes) in &hot {
                        tape.touch(0, Read, 0x10000 + n * stride + offset, *bytes);
                    }
                    if n % 9 == 0 {
                        tape.touch(0, Write, 0x10000 + n * stride + rare.0, rare.1);
                    }
                }
            }
        });
        for one in tried.iter().filter(|one| one.candidate.kind == Kind::Reorder) {
            let found: Vec<_> = one.candidate.plan.parts.iter().map(|part| part.bytes).collect();
            assert!(found.len() == 1 && found[0] <= bytes, "round {round}: {bytes} bytes become {found:?}: {one:#?}");
            reordered += 1;
            advised_reorders += usize::from(one.is_advice());
            for (unit, to) in &one.candidate.placed {
                assert!(to.to % unit.align == 0 && to.bytes == unit.bytes, "round {round}: {unit:?} at {to:?}");
            }
        }
    }
    assert!(reordered >= 50 && advised_reorders >= 5, "{reordered} orders, {advised_reorders} of them advice");
}
