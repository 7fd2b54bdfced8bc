//! Which fields an access touches.

use super::{Dimension, Field, Layout};

/// Most fields named for one access: for a copy of an entire record, the first ones and the number of the rest.
const NAMED_MAX: usize = 4;

/// Most hits of one look-up.
const HITS_MAX: usize = 256;

/// A field that an access touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Number of the field.
    pub field: usize,
    /// Where it begins in the element.
    pub offset_bytes: u64,
    /// Which one of it, for each of its dimensions.
    pub indices: Vec<u64>,
}

impl Layout {
    /// The leaves that overlap `bytes` at `offset` of an element, in memory order; all members of a union and all bit
    /// fields of the bytes. At most 256. Empty for padding and for accesses of no bytes.
    pub fn hits(&self, offset: u64, bytes: u64) -> Vec<Hit> {
        let mut hits = Vec::new();
        if bytes == 0 {
            return hits;
        }
        let range = (offset, offset.saturating_add(bytes));
        for (number, field) in self.leaves() {
            if self.bytes == 0 && field.bytes == 0 && field.dimensions.is_empty() && field.offset_bytes < range.1 {
                // Neither the field nor the type has a known size, so its end is unknown.
                hits.push(Hit { field: number, offset_bytes: field.offset_bytes, indices: Vec::new() });
            }
            if field.bytes == 0 || field.offset_bytes >= range.1 {
                continue;
            }
            let mut indices = Vec::with_capacity(field.dimensions.len());
            let end = if field.is_open() { u64::MAX } else { field.end_bytes() };
            if end > range.0 {
                collect(field, number, 0, field.offset_bytes, range, &mut indices, &mut hits);
            }
        }
        hits.sort_by_key(|hit| (hit.offset_bytes, hit.field));
        hits
    }

    /// Numbers of the leaves that overlap; each once, ascending.
    pub fn touched(&self, offset: u64, bytes: u64) -> Vec<usize> {
        let mut fields: Vec<_> = self.hits(offset, bytes).into_iter().map(|hit| hit.field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// What an access touches, as text: paths, `(padding)`, or nothing for types without fields.
    pub fn describe(&self, offset: u64, bytes: u64) -> String {
        if self.fields.is_empty() {
            return String::new();
        }
        let hits = self.hits(offset, bytes);
        if hits.is_empty() {
            return match bytes {
                0 => "(no bytes)".to_owned(),
                _ => self.describe_hole(offset),
            };
        }
        let mut text = String::new();
        for hit in hits.iter().take(NAMED_MAX) {
            if !text.is_empty() {
                text.push_str(", ");
            }
            let path = self.path_at(hit.field, &hit.indices);
            text.push_str(if path.is_empty() { "(unnamed)" } else { &path });
        }
        if hits.len() > NAMED_MAX {
            text.push_str(&format!(", … ({})", hits.len()));
        }
        text
    }
}

impl Layout {
    /// The description of an offset without a field: `(padding)`, or the virtual bases, which follow everything else.
    pub fn describe_hole(&self, offset: u64) -> String {
        let is_behind = || self.leaves().all(|(_, field)| field.offset_bytes < offset);
        match self.virtual_bases.as_slice() {
            [only] if is_behind() => format!("(virtual base {only} or padding)"),
            [_, _, ..] if is_behind() => "(virtual bases or padding)".to_owned(),
            _ if self.is_cut => "(not known)".to_owned(),
            _ => "(padding)".to_owned(),
        }
    }
}

fn collect(
    field: &Field,
    number: usize,
    level: usize,
    start: u64,
    range: (u64, u64),
    indices: &mut Vec<u64>,
    hits: &mut Vec<Hit>,
) {
    let Some(dimension) = field.dimensions.get(level) else {
        let end = start.saturating_add(field.bytes);
        if start < range.1 && end > range.0 && hits.len() < HITS_MAX {
            hits.push(Hit { field: number, offset_bytes: start, indices: indices.clone() });
        }
        return;
    };
    if dimension.stride_bytes == 0 {
        return;
    }
    // How far one of this dimension reaches.
    let inner = field.dimensions.get(level + 1..).unwrap_or_default();
    let reach = inner.iter().fold(field.bytes, |bytes, inner| {
        bytes.saturating_add(inner.stride_bytes.saturating_mul(inner.count.saturating_sub(1)))
    });
    let before = range.0.saturating_sub(start).saturating_sub(reach.saturating_sub(1));
    let mut index = before.div_ceil(dimension.stride_bytes);
    while (dimension.count == 0 || index < dimension.count) && hits.len() < HITS_MAX {
        let at = start.saturating_add(index.saturating_mul(dimension.stride_bytes));
        if at >= range.1 {
            break;
        }
        indices.push(index);
        collect(field, number, level + 1, at, range, indices, hits);
        indices.pop();
        index += 1;
    }
}

/// Bytes a field covers, as start and end; adjacent ranges are merged. `budget` bounds the work and is 0 when it did
/// not suffice.
pub(super) fn spans(field: &Field, out: &mut Vec<(u64, u64)>, budget: &mut usize) {
    if field.bytes > 0 {
        cover(&field.dimensions, field.offset_bytes, field.bytes, out, budget);
    }
}

fn cover(dimensions: &[Dimension], start: u64, bytes: u64, out: &mut Vec<(u64, u64)>, budget: &mut usize) {
    let Some((last, outer)) = dimensions.split_last() else {
        *budget = budget.saturating_sub(1);
        out.push((start, start.saturating_add(bytes)));
        return;
    };
    if last.stride_bytes == bytes {
        return cover(outer, start, bytes.saturating_mul(last.count), out, budget);
    }
    for index in 0..last.count {
        if *budget == 0 {
            return;
        }
        cover(outer, start.saturating_add(index.saturating_mul(last.stride_bytes)), bytes, out, budget);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bits, RecordKind};
    use super::*;

    fn nested() -> Layout {
        let mut layout = Layout::new("Outer", RecordKind::Struct, 56);
        layout.push(Field::new("id", 0, 4, "int"));
        let parent = layout.push(Field::new("b", 8, 12, "Inner").repeated(Dimension { stride_bytes: 12, count: 3 }));
        let inside = |name: &str, offset: u64, bytes: u64| Field {
            parent,
            depth: 1,
            dimensions: vec![Dimension { stride_bytes: 12, count: 3 }],
            ..Field::new(name, offset, bytes, "short")
        };
        layout.push(inside("c", 8, 4));
        layout.push(inside("d", 12, 2).repeated(Dimension { stride_bytes: 2, count: 2 }));
        for (name, first, count) in [("visible", 352, 1), ("layer", 353, 9)] {
            let bits = Some(Bits { first, count });
            layout.push(Field { bits, ..Field::new(name, 44, if count == 1 { 1 } else { 2 }, "unsigned") });
        }
        layout
    }

    #[test]
    fn paths_have_the_indices_of_every_level() {
        let layout = nested();
        assert_eq!(layout.describe(8, 4), "b[0].c");
        assert_eq!(layout.describe(24, 2), "b[1].d[0]");
        assert_eq!(layout.describe(38, 2), "b[2].d[1]");
        assert_eq!(layout.describe(18, 4), "b[1].c");
        assert_eq!(layout.describe(14, 8), "b[0].d[1], b[1].c");
        assert_eq!(layout.path(3), "b[].d[]");
    }

    #[test]
    fn all_bit_fields_of_a_byte_are_touched() {
        let layout = nested();
        assert_eq!(layout.describe(44, 1), "visible, layer");
        assert_eq!(layout.describe(45, 1), "layer");
        assert_eq!(layout.describe(46, 1), "(padding)");
    }

    #[test]
    fn holes_are_found_between_and_behind_repeated_fields() {
        assert_eq!(nested().holes(), [(4, 4), (16, 4), (28, 4), (40, 4), (46, 10)]);
        assert!(Layout::new("int", RecordKind::Scalar, 4).holes().is_empty());
    }

    #[test]
    fn an_array_without_an_end_takes_all_that_follows_and_is_not_divided() {
        let mut layout = Layout::new("Text", RecordKind::Struct, 4);
        layout.push(Field::new("length", 0, 4, "int"));
        layout.push(Field::new("bytes", 4, 1, "char").repeated(Dimension { stride_bytes: 1, count: 0 }));
        assert_eq!(layout.describe(1000, 1), "bytes[996]");
        assert_eq!((layout.element_bytes(104), layout.holes().len()), (104, 0));
    }

    #[test]
    fn elements_have_the_size_of_the_type_where_it_divides_that_of_the_trace() {
        let layout = Layout::new("double", RecordKind::Scalar, 8);
        assert_eq!([3872, 8, 12, 0].map(|recorded| layout.element_bytes(recorded)), [8, 8, 12, 0]);
        assert_eq!(Layout::new("unknown", RecordKind::Struct, 0).element_bytes(12), 12);
    }

    #[test]
    fn bytes_outside_fields_are_padding_or_after_them_a_virtual_base() {
        let mut layout = nested();
        assert_eq!((layout.describe(4, 4), layout.describe(48, 4)), ("(padding)".to_owned(), "(padding)".to_owned()));
        layout.virtual_bases.push("Base".to_owned());
        assert_eq!(layout.describe(4, 4), "(padding)");
        assert_eq!(layout.describe(48, 4), "(virtual base Base or padding)");
    }

    #[test]
    fn claimed_counts_do_not_bound_a_loop() {
        let mut layout = Layout::new("Big", RecordKind::Struct, u64::MAX);
        let huge = Dimension { stride_bytes: 1, count: u64::MAX };
        layout.push(Field::new("a", 0, 1, "char").repeated(huge).repeated(huge).repeated(huge));
        assert!(layout.hits(u64::MAX - 2, u64::MAX).len() <= HITS_MAX);
        assert!(layout.hits(5, 300).len() <= HITS_MAX);
        let _ = layout.holes();
        let strange = Dimension { stride_bytes: 0, count: 5 };
        layout.push(Field::new("b", 0, 1, "char").repeated(strange));
        let _ = (layout.hits(0, 1), layout.holes());
    }
}
