//! A type's fields with their counts, as rows of a table.

use anytrace_core::access::TypeNumber;
use anytrace_core::layout::{Bits, Field, Layout, Role};

use super::{Counts, TypeProfile};

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A field that accesses are counted for.
    Leaf,
    /// A field that contains others: counts of accesses to any of them.
    Group,
    /// Bytes that belong to no field; in arrays those of the first element, counted for all of them.
    Hole,
    /// An offset and a size of a type whose fields are unknown.
    Offset,
    /// Bytes after the end of the type in longer elements.
    Behind,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its kind.
    pub kind: RowKind,
    /// Path from the type: `a.b[].c`; empty where there is no name.
    pub path: String,
    /// The last part of the path; for holes `(padding)` or another description.
    pub name: String,
    /// The type as declared: `char[48]`.
    pub type_text: String,
    /// Depth of nesting.
    pub depth: u16,
    /// Offset of the first of it in the element.
    pub offset_bytes: u64,
    /// Bytes, of the entire array for arrays.
    pub bytes: u64,
    /// For bit fields.
    pub bits: Option<Bits>,
    /// Member, base, …
    pub role: Role,
    /// Records that touch it. One that touches several fields counts for each.
    pub counts: Counts,
}

impl TypeProfile {
    /// The counts of a type by offset and size.
    pub fn offsets_of(&self, number: TypeNumber) -> &[((TypeNumber, u64, u16), Counts)] {
        let from = self.offsets.partition_point(|((one, _, _), _)| *one < number);
        let to = self.offsets.partition_point(|((one, _, _), _)| *one <= number);
        self.offsets.get(from..to).unwrap_or_default()
    }

    /// The rows of a type: its fields in the order of declaration, with holes between; offsets and sizes where no
    /// fields are known.
    pub fn rows(&self, number: TypeNumber) -> Vec<Row> {
        let offsets = self.offsets_of(number);
        match self.table.layout(number).filter(|layout| !layout.fields.is_empty()) {
            Some(layout) => of_layout(layout, offsets),
            None => offsets.iter().map(|((_, offset, bytes), counts)| of_offset(*offset, *bytes, counts)).collect(),
        }
    }
}

/// The rows of a type without any counts.
pub fn rows_of(layout: &Layout) -> Vec<Row> {
    of_layout(layout, &[])
}

fn of_offset(offset_bytes: u64, bytes: u16, counts: &Counts) -> Row {
    Row {
        kind: RowKind::Offset,
        path: String::new(),
        name: String::new(),
        type_text: String::new(),
        depth: 0,
        offset_bytes,
        bytes: u64::from(bytes),
        bits: None,
        role: Role::Member,
        counts: *counts,
    }
}

pub(super) fn of_layout(layout: &Layout, offsets: &[((TypeNumber, u64, u16), Counts)]) -> Vec<Row> {
    let mut counts = vec![Counts::default(); layout.fields.len()];
    let mut holes = Holes::of(layout);
    let mut behind = Counts::default();
    for ((_, offset, bytes), found) in offsets {
        let mut is_placed = false;
        for field in with_parents(layout, layout.touched(*offset, u64::from(*bytes))) {
            is_placed = true;
            if let Some(counts) = counts.get_mut(field) {
                counts.add(found);
            }
        }
        is_placed |= holes.count(*offset, offset.saturating_add(u64::from(*bytes)), found);
        if !is_placed {
            behind.add(found);
        }
    }
    let fields = layout.fields.iter().zip(counts).enumerate();
    let mut rows: Vec<Row> = fields.map(|(number, (field, counts))| of_field(layout, number, field, counts)).collect();
    holes.place(layout, &mut rows);
    if behind != Counts::default() {
        let offset_bytes = layout.bytes;
        rows.push(Row { kind: RowKind::Behind, offset_bytes, ..of_offset(offset_bytes, 0, &behind) });
    }
    rows
}

/// Fields and all they are part of, each once.
fn with_parents(layout: &Layout, touched: Vec<usize>) -> Vec<usize> {
    let mut all = touched;
    let mut at = 0;
    while let Some(number) = all.get(at) {
        at += 1;
        all.extend(layout.fields.get(*number).and_then(|field| field.parent));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn of_field(layout: &Layout, number: usize, field: &Field, counts: Counts) -> Row {
    Row {
        kind: if field.is_leaf { RowKind::Leaf } else { RowKind::Group },
        path: layout.path(number),
        name: field.name.clone(),
        type_text: field.type_text(),
        depth: field.depth,
        offset_bytes: field.offset_bytes,
        bytes: field.total_bytes(),
        bits: field.bits,
        role: field.role,
        counts,
    }
}

/// The holes of a type. Those of an array's elements are shown once, as its fields are.
struct Holes {
    /// Offset and length, ascending.
    all: Vec<(u64, u64)>,
    /// For each of them, the number of the one that is shown.
    shown: Vec<usize>,
    /// By the numbers of those that are shown.
    counts: Vec<Counts>,
}

impl Holes {
    fn of(layout: &Layout) -> Self {
        let all = layout.holes();
        let arrays: Vec<&Field> = layout.fields.iter().filter(|field| field.own_dimensions > 0).collect();
        let shown = all.iter().enumerate().map(|(number, (start, bytes))| {
            let firsts = arrays.iter().filter_map(|array| in_first(array, *start));
            // The same hole must exist: at the end of an array it may be longer.
            firsts.filter_map(|first| all.binary_search(&(first, *bytes)).ok()).min().unwrap_or(number)
        });
        Self { shown: shown.collect(), counts: vec![Counts::default(); all.len()], all }
    }

    /// Counts accesses to bytes from a start to an end; false where these are not a hole.
    fn count(&mut self, start: u64, end: u64, found: &Counts) -> bool {
        let first = self.all.partition_point(|(at, bytes)| at + bytes <= start);
        let touched = self.all.iter().zip(&self.shown).skip(first).take_while(|((at, _), _)| *at < end);
        let mut touched: Vec<usize> =
            touched.filter(|((at, _), _)| start < end && *at < end).map(|(_, to)| *to).collect();
        touched.sort_unstable();
        touched.dedup();
        for number in &touched {
            if let Some(counts) = self.counts.get_mut(*number) {
                counts.add(found);
            }
        }
        !touched.is_empty()
    }

    /// Inserts a row for each hole shown, after the field that ends last before it.
    fn place(&self, layout: &Layout, rows: &mut Vec<Row>) {
        let each = self.all.iter().zip(&self.counts).zip(&self.shown).enumerate();
        let each = each.filter(|(number, (_, shown))| number == *shown).map(|(_, (hole, _))| hole);
        for ((start, bytes), counts) in each.rev() {
            let before = rows.iter().rposition(|row| row.offset_bytes < *start && row.kind != RowKind::Hole);
            let depth = before.and_then(|at| rows.get(at)).map_or(0, |row| row.depth);
            let name = layout.describe_hole(*start);
            let hole = Row { kind: RowKind::Hole, name, depth, bytes: *bytes, ..of_offset(*start, 0, counts) };
            rows.insert(before.map_or(0, |at| at + 1), hole);
        }
    }
}

/// Where an offset in an array would be if it were in its first element, and those of all arrays it is in.
fn in_first(array: &Field, offset: u64) -> Option<u64> {
    let mut inside = offset.checked_sub(array.offset_bytes)?;
    if offset >= array.end_bytes() {
        return None;
    }
    for dimension in &array.dimensions {
        inside = inside.checked_rem(dimension.stride_bytes)?;
    }
    Some(array.offset_bytes.saturating_add(inside))
}
