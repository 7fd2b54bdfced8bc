//! A type without a trace: offsets, sizes, holes, lines.

use anytrace_core::layout::Layout;
use anytrace_core::text::printable;

use super::fields::{label, offset, size};
use crate::table::{Align, Table};
use crate::units::counted;

/// A type without a trace: offsets, sizes, holes, lines.
pub(in crate::verbs::memory::types) fn declaration(layout: &Layout, line: u64) -> String {
    let mut table = Table::new(&[("offset", Align::Right), ("size", Align::Right), ("field", Align::Left)]);
    let rows = anytrace_analysis::type_profile::rows_of(layout);
    let mut line_at = 0;
    for row in rows.iter() {
        let this = row.offset_bytes / line;
        if this > line_at && row.depth == 0 {
            line_at = this;
            table.row(vec![String::new(), String::new(), format!("---- line {this}: from byte {} ----", this * line)]);
        }
        table.row(vec![offset(row), size(row), label(row)]);
    }
    let name = printable(&layout.name);
    let mut out = format!("{} {name}, {}\n{}", layout.kind.word(), size_of(layout), table.render());
    for base in &layout.virtual_bases {
        out.push_str(&format!("  virtual base {}: its offset is not in the debug data\n", printable(base)));
    }
    out
}

/// The size of a type; dwarf2json does not know all.
pub(super) fn size_of(layout: &Layout) -> String {
    let is_known = layout.bytes > 0 || layout.fields.is_empty();
    if is_known { counted(layout.bytes, "byte") } else { "unknown size".to_owned() }
}
