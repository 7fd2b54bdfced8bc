//! Upstream's form: lines of fields and their new offsets.

use anytrace_analysis::remap::{Move, Part, TypePlan};
use anytrace_core::layout::{Layout, Layouts};

use super::{field_of, layout_of};

/// `struct A=field,newoffset;field,newoffset` a line; `#` begins a remark.
pub(super) fn of_lines(text: &str, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, String> {
    let mut plans = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| format!("line {number}: {what}");
        let (name, rest) = line.split_once('=').ok_or_else(|| wrong("expected TYPE=FIELD,OFFSET;…".to_owned()))?;
        let name = name.trim();
        let layout = layout_of(name, layouts).ok_or_else(|| {
            wrong(format!("the fields of {name} are unknown: use --program to name a program that defines it"))
        })?;
        let mut wanted = Vec::new();
        for pair in rest.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
            let parts =
                pair.rsplit_once(',').and_then(|(field, offset)| Some((field.trim(), offset.trim().parse().ok()?)));
            let (field, offset) = parts.ok_or_else(|| wrong(format!("expected FIELD,OFFSET, found {pair:?}")))?;
            let (from, bytes) =
                field_of(&layout, field).ok_or_else(|| wrong(format!("{name} has no field {field}")))?;
            wanted.push(Move { from, bytes, part: 0, to: offset });
        }
        plans.push(of_moves(name, &layout, wanted).map_err(wrong)?);
    }
    Ok(plans)
}

/// Fields that are not named stay where they are. The size is what is needed, in multiples of the alignment that the old
/// one shows.
fn of_moves(name: &str, layout: &Layout, mut moves: Vec<Move>) -> Result<TypePlan, String> {
    let named: Vec<(u64, u64)> = moves.iter().map(|one| (one.from, one.from.saturating_add(one.bytes))).collect();
    for field in layout.fields.iter().filter(|field| field.parent.is_none()) {
        let (from, bytes) = (field.offset_bytes, field.total_bytes());
        let is_named = named.iter().any(|(start, end)| *start < from + bytes && *end > from);
        let is_doubled = moves.iter().any(|one| one.from < from + bytes && one.from + one.bytes > from);
        if bytes > 0 && !is_named && !is_doubled {
            moves.push(Move { from, bytes, part: 0, to: from });
        }
    }
    let end = moves.iter().map(|one| one.to.saturating_add(one.bytes)).max().unwrap_or(0);
    let align = 1_u64 << layout.bytes.trailing_zeros().min(4);
    let bytes = end.checked_next_multiple_of(align).ok_or("offsets are too large")?;
    let plan = TypePlan {
        name: name.to_owned(),
        old_bytes: layout.bytes,
        parts: vec![Part { bytes, align: 16 }],
        moves,
        pointer: None,
        always_moves: false,
    };
    plan.checked()
}
