//! Lines and inlining: of this test itself, and of debug data made to harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use anytrace_core::InputOptions;
use anytrace_core::span::Mangling;
use anytrace_symbols::{Binary, ObjectFile, demangle};
use common::{ABBREVIATIONS, debug, ranged, unit};

#[inline(never)]
fn anytrace_symbols_test_outer(n: u32) -> u32 {
    inner(n).wrapping_mul(3)
}

#[inline(always)]
fn inner(n: u32) -> u32 {
    std::hint::black_box(n).wrapping_add(0x1234_5678)
}

#[test]
fn this_test_finds_its_own_lines_and_what_was_inlined() {
    assert_eq!(anytrace_symbols_test_outer(0), 0x369d_0368);
    let program = std::env::current_exe().unwrap();
    let binary = Binary::open(&program, InputOptions::default()).unwrap();
    let object = ObjectFile::parse(&binary, None).unwrap();
    let data = object.debug_data().unwrap();
    if data.is_empty() {
        return;
    }
    let lines = data.lines().unwrap();
    let table = object.symbols();
    let is_outer = |name: &str| demangle(name, Mangling::Demangled).ends_with("anytrace_symbols_test_outer");
    let mut named = table.symbols().iter().filter(|symbol| std::str::from_utf8(symbol.name).is_ok_and(is_outer));
    let symbol = named.next().unwrap();
    assert!(lines.location(symbol.address).is_some());
    // The first instruction may be inlined: the function itself is the last frame.
    let location = lines.frames(symbol.address).pop().unwrap().location.unwrap();
    assert!(Path::new(&location.file).ends_with("tests/debug_data.rs"), "{location:?}");
    assert!((15..17).contains(&location.line), "{location:?}");
    let mut deepest = Vec::new();
    for address in symbol.address..symbol.address + symbol.size_bytes {
        let frames = lines.frames(address);
        let outer = frames.last().unwrap();
        assert!(outer.name.as_deref().is_some_and(is_outer), "{outer:?}");
        if frames.len() > deepest.len() {
            deepest = frames;
        }
    }
    assert!(deepest.len() >= 2, "{deepest:?}");
    let call = deepest.last().unwrap().location.as_ref().unwrap();
    assert_eq!(call.line, 16, "the place of the call that was inlined");
    assert!(lines.location(u64::MAX).is_none() && lines.frames(u64::MAX).is_empty());
}

/// A function with inlined ones in it, nested to a depth.
fn nested(depth: usize) -> Vec<u8> {
    let mut entries = ranged(1, 0x10, 0x20);
    entries.extend(ranged(2, 0x10, 0x20));
    entries.extend(b"outer\0");
    entries.resize(entries.len() + depth, 5);
    entries.resize(entries.len() + depth + 2, 0);
    unit(&entries)
}

#[test]
fn functions_nested_deeper_than_the_stack_are_not_followed() {
    for (depth, is_followed) in [(1, true), (900, true), (2_000, false), (500_000, false)] {
        let binary = debug(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &nested(depth))]);
        let object = ObjectFile::parse(&binary, None).unwrap();
        let data = object.debug_data().unwrap();
        let frames = data.lines().unwrap().frames(0x14);
        assert_eq!(frames.last().and_then(|frame| frame.name.as_deref()), is_followed.then_some("outer"), "{depth}");
    }
}

/// Many units that name one list of ranges.
#[test]
fn units_that_share_a_long_list_are_refused() {
    let mut ranges = Vec::new();
    for n in 0..5_000_u64 {
        ranges.extend((0x100 + n * 2).to_le_bytes());
        ranges.extend((0x101 + n * 2).to_le_bytes());
    }
    ranges.extend([0; 16]);
    let one = unit(&[4, 0, 0, 0, 0]);
    for (units, is_fine) in [(1, true), (5_000, false)] {
        let binary =
            debug(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &one.repeat(units)), (".debug_ranges", &ranges)]);
        let object = ObjectFile::parse(&binary, None).unwrap();
        let data = object.debug_data().unwrap();
        let lines = data.lines();
        assert_eq!(lines.is_ok(), is_fine, "{units}");
    }
}

#[test]
fn a_file_without_debug_data_has_none() {
    let binary = debug(&[]);
    let object = ObjectFile::parse(&binary, None).unwrap();
    assert!(object.debug_data().unwrap().is_empty());
    assert!(object.debug_data().unwrap().lines().unwrap().location(4).is_none());
}

#[test]
fn damaged_debug_data_are_answered() {
    let good = nested(3);
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let binary = debug(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &bad)]);
            let object = ObjectFile::parse(&binary, None).unwrap();
            let data = object.debug_data().unwrap();
            if let Ok(lines) = data.lines() {
                let _ = (lines.frames(0x14), lines.location(0x14));
            }
        }
    }
}
