//! The type names in a trace: how often each occurs, with which element size.

use std::collections::HashMap;

use anytrace_core::Limits;
use anytrace_core::text::{escaped, push_hex_bytes};

/// Most bytes of names kept.
const NAME_BYTES_MAX: usize = 4 << 20;

/// Adds by type name and element size, in order of first appearance, bounded.
pub(crate) struct TypeTable {
    rows: Vec<TypeRow>,
    index: HashMap<(Vec<u8>, u32), usize>,
    name_bytes: usize,
    rows_max: usize,
    /// Adds past the bound.
    pub(crate) other_adds: u64,
}

/// One type with one element size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeRow {
    pub(crate) name: Vec<u8>,
    pub(crate) elemsize: u32,
    pub(crate) adds: u64,
    pub(crate) elements: u64,
}

impl std::fmt::Debug for TypeTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.rows).finish()
    }
}

impl TypeTable {
    pub(crate) fn new(limits: Limits) -> Self {
        let rows_max = limits.distinct_max.min(1 << 14);
        Self { rows: Vec::new(), index: HashMap::new(), name_bytes: 0, rows_max, other_adds: 0 }
    }

    pub(crate) fn add(&mut self, name: &[u8], elemsize: u32, elemcount: u32) {
        // Traces name the type of their latest region again and again.
        let is_last = |row: &TypeRow| row.elemsize == elemsize && row.name == name;
        if let Some(row) = self.rows.last_mut().filter(|row| is_last(row)) {
            row.count(elemcount);
            return;
        }
        if name.len() > NAME_BYTES_MAX {
            self.other_adds += 1;
            return;
        }
        let key = (name.to_vec(), elemsize);
        let has_room = self.rows.len() < self.rows_max && self.name_bytes + name.len() <= NAME_BYTES_MAX;
        if let Some(row) = self.index.get(&key).and_then(|&row| self.rows.get_mut(row)) {
            row.count(elemcount);
        } else if has_room {
            self.name_bytes += name.len();
            self.index.insert(key, self.rows.len());
            let mut row = TypeRow { name: name.to_vec(), elemsize, adds: 0, elements: 0 };
            row.count(elemcount);
            self.rows.push(row);
        } else {
            self.other_adds += 1;
        }
    }

    pub(crate) fn rows(&self) -> &[TypeRow] {
        &self.rows
    }
}

impl TypeRow {
    fn count(&mut self, elemcount: u32) {
        self.adds += 1;
        self.elements = self.elements.saturating_add(u64::from(elemcount));
    }
}

/// A name for people: escaped, and cut where it is long.
pub(crate) fn shown_name(name: &[u8]) -> String {
    const SHOWN_MAX: usize = 120;
    match name.get(..SHOWN_MAX) {
        Some(head) if name.len() > SHOWN_MAX => format!("\"{}\"… ({} bytes)", escaped(head), name.len()),
        _ => format!("\"{}\"", escaped(name)),
    }
}

/// A name as JSON: text where it is UTF-8, else `{"hex":…}`.
pub(crate) fn name_value(name: &[u8]) -> serde_json::Value {
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut hex = Vec::new();
            push_hex_bytes(&mut hex, name);
            serde_json::json!({ "hex": String::from_utf8_lossy(&hex) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_type_with_two_sizes_makes_two_rows_in_order_of_appearance() {
        let mut table = TypeTable::new(Limits::default());
        for (name, size) in [(&b"b"[..], 8), (b"a", 8), (b"b", 16), (b"b", 8)] {
            table.add(name, size, 2);
        }
        let rows: Vec<_> = table.rows().iter().map(|r| (r.name.as_slice(), r.elemsize, r.adds, r.elements)).collect();
        assert_eq!(rows, [(&b"b"[..], 8, 2, 4), (b"a", 8, 1, 2), (b"b", 16, 1, 2)]);
    }

    #[test]
    fn types_past_the_bound_are_counted_together() {
        let mut table = TypeTable::new(Limits::default());
        table.add(&vec![b'x'; NAME_BYTES_MAX], 1, 1);
        table.add(b"one more", 1, 1);
        assert_eq!((table.rows().len(), table.other_adds), (1, 1));
    }

    #[test]
    fn names_are_never_shown_raw() {
        assert_eq!(shown_name(b"a\x1b[31m\0"), "\"a\\u{1b}[31m\\u{0}\"");
        assert!(shown_name(&[b'n'; 4096]).ends_with("(4096 bytes)"));
        assert_eq!(name_value(&[0xff]), serde_json::json!({"hex": "ff"}));
    }
}
