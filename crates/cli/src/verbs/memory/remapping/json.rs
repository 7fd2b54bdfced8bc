//! Our form: JSON, read and written.

use anytrace_analysis::remap::{Move, Part, TypePlan};
use anytrace_core::layout::Layouts;
use serde_json::{Value, json};

use super::{field_of, layout_of};

/// A plan in our form.
pub(in crate::verbs::memory) fn written(plan: &TypePlan) -> Value {
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

pub(super) fn of_json(text: &str, layouts: &mut dyn Layouts) -> Result<Vec<TypePlan>, String> {
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
        .ok_or_else(|| wrong("size: expected the current element size in bytes, or --program"))?;
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
                    .ok_or_else(|| wrong(&format!("unknown field {path:?}")))?,
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
