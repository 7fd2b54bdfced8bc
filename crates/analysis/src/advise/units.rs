//! What of a type can be moved: its fields, or the pieces that accesses show.

use anytrace_core::access::TypeNumber;
use anytrace_core::layout::{Layout, Role};

use super::survey::Surveyed;

/// Most units of a type; a type with more is left alone.
pub(super) const UNITS_MAX: usize = 512;

/// A piece of an element that moves as a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name: a field, several that share bytes, or `bytes 16..64`.
    pub name: String,
    /// As it is declared; empty without type data.
    pub declared: String,
    /// Where it is.
    pub from: u64,
    /// Bytes.
    pub bytes: u64,
    /// Alignment it needs, a power of two.
    pub align: u64,
    /// True for parts that the compiler places first: bases and pointers to virtual functions.
    pub is_pinned: bool,
    /// Records that touch it.
    pub accesses: u64,
    /// Of these, records that the first level did not serve.
    pub misses: u64,
}

/// The units of a type by offset; empty where nothing can be moved.
pub(super) fn units(surveyed: &Surveyed, number: TypeNumber, element_bytes: u64) -> Vec<Unit> {
    let layout = surveyed.table().layout(number).filter(|layout| layout.bytes == element_bytes);
    let mut units = match layout {
        // The place of virtual bases is unknown too, and that a base with one of its own is shorter inside another
        // class.
        Some(layout) if layout.is_cut || layout.is_open() || !layout.virtual_bases.is_empty() => return Vec::new(),
        Some(layout) if !layout.fields.is_empty() => of_layout(layout),
        Some(_) => return Vec::new(),
        None if surveyed.profile.types.get(number as usize).is_some_and(|one| one.has_parts) => return Vec::new(),
        None => of_accesses(surveyed, number, element_bytes),
    };
    if units.len() > UNITS_MAX || units.len() < 2 {
        return Vec::new();
    }
    for ((_, offset, bytes), counts) in surveyed.profile.offsets_of(number) {
        let end = offset.saturating_add(u64::from(*bytes));
        for unit in units.iter_mut().filter(|unit| unit.from < end && unit.from + unit.bytes > *offset) {
            unit.accesses += counts.accesses();
            unit.misses += counts.misses;
        }
    }
    units
}

/// Fields at the top; those that share bytes (bit fields, anonymous unions) are one.
fn of_layout(layout: &Layout) -> Vec<Unit> {
    let top = layout.fields.iter().enumerate().filter(|(_, field)| field.parent.is_none() && field.total_bytes() > 0);
    let mut all: Vec<Unit> = top
        .map(|(number, field)| {
            let path = layout.path(number);
            let name = if field.name.is_empty() { field.type_text() } else { path.replace("[]", "") };
            Unit {
                name,
                declared: field.type_text(),
                from: field.offset_bytes,
                bytes: field.total_bytes(),
                align: align_of(layout, number),
                is_pinned: matches!(field.role, Role::Base | Role::Vptr | Role::Tag | Role::Variant),
                accesses: 0,
                misses: 0,
            }
        })
        .collect();
    all.sort_by_key(|unit| unit.from);
    let mut units: Vec<Unit> = Vec::new();
    for unit in all {
        match units.last_mut() {
            Some(last) if unit.from < last.from + last.bytes => {
                let end = (last.from + last.bytes).max(unit.from + unit.bytes);
                last.bytes = end - last.from;
                last.align = last.align.max(unit.align);
                last.is_pinned |= unit.is_pinned;
                last.name.push_str(", ");
                last.name.push_str(&unit.name);
                last.declared.clear();
            }
            _ => units.push(unit),
        }
    }
    units
}

/// Alignment of a field: that of its greatest number or pointer, as far as its place has it.
fn align_of(layout: &Layout, number: usize) -> u64 {
    let is_inside = |mut at: usize| loop {
        if at == number {
            return true;
        }
        match layout.fields.get(at).and_then(|field| field.parent).filter(|parent| *parent < at) {
            Some(parent) => at = parent,
            None => return false,
        }
    };
    let leaves = layout.leaves().filter(|(at, _)| is_inside(*at));
    leaves.map(|(_, leaf)| natural(leaf.bytes, leaf.offset_bytes)).max().unwrap_or(1)
}

/// The alignment of this many bytes at an offset: packed records have less than the usual one.
fn natural(bytes: u64, offset: u64) -> u64 {
    let usual = if bytes.is_power_of_two() { bytes.min(16) } else { 1 };
    let place = if offset == 0 { 16 } else { 1 << offset.trailing_zeros().min(4) };
    usual.min(place)
}

/// Without type data: bytes that are accessed together are one unit, the bytes between them another.
fn of_accesses(surveyed: &Surveyed, number: TypeNumber, element_bytes: u64) -> Vec<Unit> {
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    for ((_, offset, bytes), _) in surveyed.profile.offsets_of(number) {
        let bytes = u64::from(*bytes);
        let end = offset.saturating_add(bytes).min(element_bytes);
        if *offset >= end {
            continue;
        }
        let align = natural(bytes, *offset);
        match spans.last_mut() {
            Some((_, last, most)) if *offset < *last => {
                *last = end.max(*last);
                *most = align.max(*most);
            }
            _ => spans.push((*offset, end, align)),
        }
        if spans.len() > UNITS_MAX {
            return Vec::new();
        }
    }
    let unit = |from: u64, end: u64, align: u64| Unit {
        name: format!("bytes {from}..{end}"),
        declared: String::new(),
        from,
        bytes: end - from,
        align,
        is_pinned: false,
        accesses: 0,
        misses: 0,
    };
    // The type of untouched bytes is unknown, but usually not wider than a pointer: more would only make holes.
    let untouched = |from: u64, end: u64| unit(from, end, natural(8, from));
    let mut units = Vec::new();
    let mut at = 0;
    for (from, end, align) in spans {
        if from > at {
            units.push(untouched(at, from));
        }
        units.push(unit(from, end, align));
        at = end;
    }
    if at < element_bytes {
        units.push(untouched(at, element_bytes));
    }
    units
}
