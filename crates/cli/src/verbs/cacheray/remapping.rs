//! `--remap`: layouts as they might be, from a file.
//!
//! Upstream's lines, `struct A=field,newoffset;…`, need type data for the fields. Our JSON says the same with more:
//! `{"version":1,"types":[{"name","size","parts":[{"size","align","fields":[{"field"|"from","bytes","offset"}]}],
//! "pointer"}]}`, or one of these types alone.

use std::path::Path;

use anytrace_analysis::remap::{Move, Part, TypePlan};
use anytrace_core::layout::{Layout, Layouts};
use anytrace_core::text::printable;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A plan in our form.
pub(super) fn written(plan: &TypePlan) -> Value {
    let parts = plan.parts.iter().enumerate().map(|(number, part)| {
        let own = plan.moves.iter().filter(|one| one.part == number);
        let fields = own.map(|one| json!({"from": one.from, "bytes": one.bytes, "offset": one.to}));
        json!({"size": part.bytes, "align": part.align, "fields": fields.collect::<Vec<_>>()})
    });
    let mut value = json!({"name": plan.name, "size": plan.old_bytes, "parts": parts.collect::<Vec<_>>()});
    if let Some(at) = plan.pointer {
        value["pointer"] = json!(at);
    }
    value
}

/// Reads the plans of a file of either form.
pub(super) fn load(path: &Path, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, Failure> {
    let shown = printable(&path.display().to_string());
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: expected at most {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let plans =
        if text.trim_start().starts_with(['{', '[']) { of_json(&text, layouts) } else { of_lines(&text, layouts) };
    let plans = plans.map_err(|what| Failure::usage(format!("{shown}: {}", printable(&what))))?;
    if plans.is_empty() {
        return Err(Failure::usage(format!("{shown}: no type is remapped")));
    }
    Ok(plans)
}

fn layout_of(name: &str, layouts: &mut dyn Layouts) -> Option<std::sync::Arc<Layout>> {
    layouts.layout(name, 0).filter(|layout| layout.bytes > 0)
}

/// Offset and bytes of a field by its path.
fn field_of(layout: &Layout, path: &str) -> Option<(u64, u64)> {
    let number = (0..layout.fields.len()).find(|number| {
        let full = layout.path(*number);
        full == path || full.trim_end_matches("[]") == path
    })?;
    let field = layout.fields.get(number)?;
    Some((field.offset_bytes, field.total_bytes()))
}

/// `struct A=field,newoffset;field,newoffset` a line; `#` begins a remark.
fn of_lines(text: &str, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, String> {
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
            wrong(format!("the fields of {name} are not known: --binary names a program that has it"))
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

fn of_json(text: &str, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.get("parts").is_some() {
        // One type alone, as `advise` has it under `remap`.
        return Ok(vec![of_type(&value, layouts)?]);
    }
    if value.get("version").and_then(Value::as_u64) != Some(1) {
        return Err("expected \"version\": 1".to_owned());
    }
    let types = value.get("types").and_then(Value::as_array).ok_or("types: expected a list")?;
    types.iter().map(|one| of_type(one, layouts)).collect()
}

fn of_type(value: &Value, layouts: &mut dyn Layouts) -> Result<TypePlan, String> {
    let name = value.get("name").and_then(Value::as_str).ok_or("types[].name: expected text")?;
    let wrong = |what: &str| format!("{name}: {what}");
    let layout = layout_of(name, layouts);
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
    let old_bytes = number(value, "size")
        .or_else(|| layout.as_ref().map(|layout| layout.bytes))
        .ok_or_else(|| wrong("size: expected the bytes of an element as it is, or --binary"))?;
    let listed = value.get("parts").and_then(Value::as_array).ok_or_else(|| wrong("parts: expected a list"))?;
    let (mut parts, mut moves) = (Vec::new(), Vec::new());
    for (part, one) in listed.iter().enumerate() {
        let bytes = number(one, "size").ok_or_else(|| wrong("parts[].size: expected a number"))?;
        parts.push(Part { bytes, align: number(one, "align").unwrap_or(16) });
        let fields = one.get("fields").and_then(Value::as_array).ok_or_else(|| wrong("fields: expected a list"))?;
        for field in fields {
            let to = number(field, "offset").ok_or_else(|| wrong("fields[].offset: expected a number"))?;
            let by_name = field.get("field").and_then(Value::as_str);
            let (from, bytes) = match by_name {
                Some(path) => layout
                    .as_ref()
                    .and_then(|layout| field_of(layout, path))
                    .ok_or_else(|| wrong(&format!("field {path:?} is not known")))?,
                None => number(field, "from")
                    .zip(number(field, "bytes"))
                    .ok_or_else(|| wrong("fields[]: expected field, or from and bytes"))?,
            };
            moves.push(Move { from, bytes, part, to });
        }
    }
    let pointer = number(value, "pointer");
    TypePlan { name: name.to_owned(), old_bytes, parts, moves, pointer, always_moves: false }.checked()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anytrace_core::layout::{Field, RecordKind};

    use super::*;

    struct Node;

    impl Layouts for Node {
        fn layout(&mut self, name: &str, _recorded: u64) -> Option<Arc<Layout>> {
            let mut layout = Layout::new("Node", RecordKind::Struct, 24);
            layout.push(Field::new("next", 0, 8, "Node*"));
            layout.push(Field::new("val", 8, 4, "int"));
            layout.push(Field::new("big", 16, 8, "long"));
            name.ends_with("Node").then(|| Arc::new(layout))
        }
    }

    #[test]
    fn upstreams_lines_move_fields_and_leave_the_others() {
        let plans = of_lines("# two\nstruct Node=next,8;val,0;\n", &mut Node).unwrap();
        let moves: Vec<_> = plans[0].moves.iter().map(|one| (one.from, one.to)).collect();
        assert_eq!((moves.as_slice(), plans[0].parts[0].bytes), (&[(0, 8), (8, 0), (16, 16)][..], 24));
        let grown = of_lines("Node=next,100", &mut Node).unwrap();
        assert_eq!(grown[0].parts[0].bytes, 112);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let why = |text: &str| of_lines(text, &mut Node).unwrap_err();
        assert_eq!(why("\nstruct Node"), "line 2: expected TYPE=FIELD,OFFSET;…");
        assert!(why("Node=x,8").contains("no field x") && why("Node=next").contains("FIELD,OFFSET"));
        assert!(why("Other=a,1").contains("not known") && why("Node=next,8").contains("share"));
    }

    #[test]
    fn our_form_is_read_as_it_is_written() {
        let plans = of_lines("Node=next,8;val,0", &mut Node).unwrap();
        let text = json!({"version": 1, "types": [written(&plans[0])]}).to_string();
        assert_eq!(of_json(&text, &mut Node).unwrap(), plans);
        assert_eq!(of_json(&written(&plans[0]).to_string(), &mut Node).unwrap(), plans);
        let named = r#"{"version":1,"types":[{"name":"Node","parts":[{"size":16,"fields":[{"field":"next","offset":0}]},
            {"size":16,"fields":[{"field":"big","offset":0},{"from":8,"bytes":4,"offset":8}]}],"pointer":8}]}"#;
        assert_eq!(of_json(named, &mut Node).unwrap()[0].parts.len(), 2);
        assert!(of_json("{}", &mut Node).is_err() && of_json(&named.replace("big", "bag"), &mut Node).is_err());
    }
}
