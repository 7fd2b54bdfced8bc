//! Layouts as JSON: our own form, written and read, and that of dwarf2json, version 4, read.

use std::io::{self, Write};
use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::layout::{Bits, Dimension, Field, Layout, NESTING_MAX, RecordKind, Role};
use serde_json::{Map, Value, json};

use crate::Binary;

/// Layouts of a file, each with all its names, and the name of the file.
pub(super) type Named = (String, Vec<(Vec<String>, Layout)>);

/// Writes layouts: `{"version":1,"types":[{"name","kind","size","members":[…]}]}`. Members have `name`, `type`,
/// `offset`, `size`; further, where they apply, `bits` (first and count), `dimensions` (stride and count), `role` and
/// their own `members`.
///
/// # Errors
/// When writing fails.
pub fn write_layouts(layouts: &[Arc<Layout>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\"version\":1,\"types\":[")?;
    for (number, layout) in layouts.iter().enumerate() {
        let end = if number + 1 < layouts.len() { "," } else { "" };
        writeln!(out, "{}{end}", object(layout))?;
    }
    writeln!(out, "]}}")
}

fn object(layout: &Layout) -> Value {
    let mut value = json!({
        "name": layout.name,
        "kind": layout.kind.word(),
        "size": layout.bytes,
        "members": members(layout, None, 0),
    });
    if !layout.virtual_bases.is_empty() {
        value["virtual_bases"] = json!(layout.virtual_bases);
    }
    if layout.is_cut {
        value["cut"] = json!(true);
    }
    value
}

fn members(layout: &Layout, parent: Option<usize>, depth: u16) -> Vec<Value> {
    if depth > NESTING_MAX {
        return Vec::new();
    }
    let mut all = Vec::new();
    // The parts of a field follow it.
    let from = parent.map_or(0, |parent| parent + 1);
    for (number, field) in layout.fields.iter().enumerate().skip(from) {
        if parent.is_some() && field.depth < depth {
            break;
        }
        if field.parent != parent {
            continue;
        }
        let mut value = json!({
            "name": field.name,
            "type": field.type_name,
            "offset": field.offset_bytes,
            "size": field.bytes,
        });
        if let Some(bits) = field.bits {
            value["bits"] = json!([bits.first, bits.count]);
        }
        if !field.own().is_empty() {
            let own = field.own().iter().map(|one| json!([one.stride_bytes, one.count]));
            value["dimensions"] = own.collect();
        }
        if field.role != Role::Member {
            value["role"] = json!(field.role.word());
        }
        if !field.is_leaf {
            value["members"] = json!(members(layout, Some(number), depth + 1));
        }
        all.push(value);
    }
    all
}

/// Reads layouts from JSON of either form.
///
/// # Errors
/// [`anytrace_core::Kind::Unsupported`] with the place or key when it is neither form.
pub fn read_layouts(file: &Binary) -> Result<Named, Error> {
    let name = file.name();
    let refused = |what: String| Error::unsupported(format!("{name}: neither a program nor type data: {what}"));
    let value: Value = serde_json::from_slice(file.bytes()).map_err(|error| refused(error.to_string()))?;
    let version = value.get("version").and_then(Value::as_u64);
    let all = match (version, value.get("types"), value.get("structs")) {
        (Some(1), Some(types), _) => list(types, "types", &refused)?.iter().map(|one| own(one, &refused)).collect(),
        (Some(4), _, Some(_)) => upstream(&value, &refused),
        (Some(1), None, _) => Err(refused("types: expected a list".to_owned())),
        (Some(4), _, None) => Err(refused("structs: expected a list".to_owned())),
        (Some(version), _, _) => Err(refused(format!("unknown version {version}: expected 1, or 4 for dwarf2json"))),
        _ => Err(refused("expected the keys version and types, or structs".to_owned())),
    }?;
    Ok((name.to_owned(), all))
}

type Refused<'a> = &'a dyn Fn(String) -> Error;

fn list<'v>(value: &'v Value, key: &str, refused: Refused<'_>) -> Result<&'v [Value], Error> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| refused(format!("{key}: expected a list")))
}

fn text(value: &Value, key: &str, refused: Refused<'_>) -> Result<String, Error> {
    let found = value.get(key).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| refused(format!("{key}: expected text in {}", start_of(value))))
}

fn number(value: &Value, key: &str, refused: Refused<'_>) -> Result<u64, Error> {
    let found = value.get(key).and_then(Value::as_u64);
    found.ok_or_else(|| refused(format!("{key}: expected a number from 0 in {}", start_of(value))))
}

/// The start of a value, for error messages.
fn start_of(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

fn own(value: &Value, refused: Refused<'_>) -> Result<(Vec<String>, Layout), Error> {
    let name = text(value, "name", refused)?;
    let word = text(value, "kind", refused)?;
    let kind = RecordKind::from_word(&word).ok_or_else(|| refused(format!("unknown kind {word:?}")))?;
    let mut layout = Layout::new(&name, kind, number(value, "size", refused)?);
    if let Some(bases) = value.get("virtual_bases") {
        layout.virtual_bases =
            list(bases, "virtual_bases", refused)?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    own_members(value, &mut layout, None, &[], 0, refused)?;
    layout.is_cut |= value.get("cut").and_then(Value::as_bool).unwrap_or(false);
    Ok((vec![name], layout))
}

fn own_members(
    value: &Value,
    layout: &mut Layout,
    parent: Option<usize>,
    outer: &[Dimension],
    depth: u16,
    refused: Refused<'_>,
) -> Result<(), Error> {
    let Some(members) = value.get("members") else { return Ok(()) };
    for member in list(members, "members", refused)? {
        let field = Field::new(
            &text(member, "name", refused)?,
            number(member, "offset", refused)?,
            number(member, "size", refused)?,
            &text(member, "type", refused)?,
        );
        let mut field = Field { parent, depth, dimensions: outer.to_vec(), ..field };
        if let Some(bits) = member.get("bits") {
            let (first, count) = pair(bits, "bits", refused)?;
            field.bits = Some(Bits { first, count });
        }
        if let Some(own) = member.get("dimensions") {
            for one in list(own, "dimensions", refused)?.iter().take(usize::from(NESTING_MAX)) {
                let (stride_bytes, count) = pair(one, "dimensions", refused)?;
                field = field.repeated(Dimension { stride_bytes, count });
            }
        }
        if let Some(word) = member.get("role").and_then(Value::as_str) {
            field.role = Role::from_word(word).ok_or_else(|| refused(format!("unknown role {word:?}")))?;
        }
        let dimensions = field.dimensions.clone();
        let Some(number) = layout.push(field) else { return Ok(()) };
        own_members(member, layout, Some(number), &dimensions, depth.saturating_add(1), refused)?;
    }
    Ok(())
}

fn pair(value: &Value, key: &str, refused: Refused<'_>) -> Result<(u64, u64), Error> {
    let numbers: Vec<u64> = value.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    match numbers.as_slice() {
        [first, second] => Ok((*first, *second)),
        _ => Err(refused(format!("{key}: expected two numbers in {}", start_of(value)))),
    }
}

/// dwarf2json's: no size of a record, sizes of -1, one name for all it cannot spell, arrays without a count.
fn upstream(value: &Value, refused: Refused<'_>) -> Result<Vec<(Vec<String>, Layout)>, Error> {
    let mut all = Vec::new();
    for (key, kind) in [("structs", RecordKind::Struct), ("unions", RecordKind::Union)] {
        let Some(records) = value.get(key) else { continue };
        for record in list(records, key, refused)? {
            let Some(name) = record.get("name").and_then(Value::as_str) else { continue };
            let bare = anytrace_core::layout::bare_name(name);
            let mut layout = Layout::new(bare, kind, 0);
            for member in list(record.get("members").unwrap_or(&Value::Null), "members", refused)? {
                layout.push(upstream_member(member, refused)?);
            }
            upstream_sizes(&mut layout);
            all.push((vec![bare.to_owned()], layout));
        }
    }
    let aliases = value.get("typedefs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for alias in aliases.iter().map(Value::as_object).filter_map(|alias| alias.and_then(alias_of)) {
        let (new, old) = alias;
        let target = anytrace_core::layout::bare_name(old);
        if let Some((names, _)) = all.iter_mut().find(|(names, _)| names.first().is_some_and(|name| name == target))
            && !names.iter().any(|name| name == new)
        {
            names.push(new.to_owned());
        }
    }
    Ok(all)
}

fn alias_of(alias: &Map<String, Value>) -> Option<(&str, &str)> {
    Some((alias.get("type")?.as_str()?, alias.get("def")?.as_str()?))
}

fn upstream_member(member: &Value, refused: Refused<'_>) -> Result<Field, Error> {
    let name = member.get("memberName").and_then(Value::as_str).unwrap_or_default();
    let type_name = member.get("name").and_then(Value::as_str).unwrap_or("<unsupported type>");
    // A size below 0 is one that dwarf2json did not find.
    let bytes = member.get("size").and_then(Value::as_i64).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let offset = match member.get("offset") {
        None => 0,
        Some(offset) => {
            offset.as_u64().ok_or_else(|| refused(format!("offset: expected a number in {}", start_of(member))))?
        }
    };
    let bytes_of_element = type_name.strip_suffix("[]").and_then(element_bytes);
    let field = match bytes_of_element.filter(|one| *one > 0 && bytes > 0 && bytes.is_multiple_of(*one)) {
        Some(one) => {
            let element = type_name.trim_end_matches("[]");
            let dimension = Dimension { stride_bytes: one, count: bytes / one };
            Field::new(name, offset, one, element).repeated(dimension)
        }
        None => Field::new(name, offset, bytes, type_name),
    };
    Ok(field)
}

/// Bytes of types whose names imply their size, on 64-bit machines.
fn element_bytes(name: &str) -> Option<u64> {
    let bytes = match name {
        "char" | "signed char" | "unsigned char" | "_Bool" | "bool" => 1,
        "short" | "short int" | "unsigned short" | "short unsigned int" => 2,
        "int" | "unsigned int" | "float" => 4,
        "long" | "unsigned long" | "long int" | "long unsigned int" | "long long" | "unsigned long long" | "double" => {
            8
        }
        name if name.ends_with('*') => 8,
        _ => return None,
    };
    Some(bytes)
}

/// Adds the sizes that dwarf2json omits: members end where the next begins, the record after the last, rounded up to
/// the alignment of its members.
fn upstream_sizes(layout: &mut Layout) {
    let is_union = layout.kind == RecordKind::Union;
    let offsets: Vec<u64> = layout.fields.iter().map(|field| field.offset_bytes).collect();
    for field in layout.fields.iter_mut().filter(|field| field.bytes == 0 && !is_union) {
        let next = offsets.iter().filter(|offset| **offset > field.offset_bytes).min();
        // What follows the last member is unknown.
        field.bytes = next.map_or(0, |next| next - field.offset_bytes);
    }
    let has_unknown_end = layout.fields.iter().any(|field| field.bytes == 0);
    let end = layout.fields.iter().map(Field::end_bytes).max().unwrap_or(0);
    let power = |field: &Field| {
        field.bytes.is_power_of_two() && field.bytes <= 16 && field.offset_bytes.is_multiple_of(field.bytes)
    };
    let is_packed = layout.fields.iter().any(|field| {
        field.bytes.is_power_of_two() && field.bytes <= 8 && !field.offset_bytes.is_multiple_of(field.bytes)
    });
    let align =
        if is_packed { 1 } else { layout.fields.iter().filter(|f| power(f)).map(|f| f.bytes).max().unwrap_or(1) };
    layout.bytes = if has_unknown_end { 0 } else { end.checked_next_multiple_of(align).unwrap_or(0) };
}
