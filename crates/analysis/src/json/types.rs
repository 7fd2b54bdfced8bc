//! Counts by type and by field.

use crate::cache::results::{Tally, TypeResults, Types};
use serde_json::{Map, Value, json};

/// What an offset in a type and the bytes accessed there are called, where type data know it.
pub type FieldNames = Box<dyn Fn(&[u8], u64, u16) -> Option<String>>;

pub(super) fn of_types(types: &Types, names: &FieldNames) -> Value {
    let counts = |tally: &Tally| {
        json!({
            "reads": tally.reads,
            "writes": tally.writes,
            "l1_misses": tally.first_level_misses(),
            "memory": tally.memory(),
        })
    };
    let rows = types.types.iter().map(|of| {
        let mut row = counts(&of.total);
        row["type"] = type_name(of);
        row["element_bytes"] = json!(of.element_bytes);
        let fields = of.fields.iter().map(|((offset, bytes), tally)| {
            let Tally { reads, writes, .. } = tally;
            (format!("{offset}+{bytes}"), json!([reads, writes, tally.first_level_misses(), tally.memory()]))
        });
        row["offsets"] = fields.collect::<Map<_, _>>().into();
        let named = of.fields.keys().filter_map(|(offset, bytes)| {
            let known = names(of.name.as_deref()?, *offset, *bytes)?;
            Some((format!("{offset}+{bytes}"), json!(known)))
        });
        let named: Map<_, _> = named.collect();
        if !named.is_empty() {
            row["fields"] = named.into();
        }
        row
    });
    json!({
        "types": rows.collect::<Vec<_>>(),
        "untyped": counts(&types.untyped),
        "accesses_to_removed_regions": types.to_removed_regions,
    })
}

/// A type's name; bytes that are no UTF-8 as `{"hex"}`, `null` for all types beyond the limit.
fn type_name(of: &TypeResults) -> Value {
    let Some(name) = &of.name else { return Value::Null };
    match std::str::from_utf8(name) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut hex = Vec::new();
            anytrace_core::text::push_hex_bytes(&mut hex, name);
            json!({ "hex": String::from_utf8_lossy(&hex) })
        }
    }
}
