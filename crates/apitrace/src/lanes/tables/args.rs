//! The table of arguments.

use anytrace_core::table::{Column, ColumnType, Rows, Table};
use anytrace_core::{Error, Sink};

use super::{ValueText, int32};
use crate::lanes::calls::{Call, CallVisitor};
use crate::lanes::dictionary::{Definition, Dictionary, Named};
use crate::lanes::walk::{Place, note_details};
use crate::lanes::wire::{Value, Wire};
use crate::wire::record::Header;

pub(super) const ARGS: Table = Table {
    name: "args",
    help: "an argument of a call, in the order of `calls`",
    columns: &[
        Column::new("call", ColumnType::Int64, "number of the call"),
        Column::new("position", ColumnType::Int32, "its place among the arguments, from 0"),
        Column::new("name", ColumnType::Name, "its name; #N where it has none"),
        Column::new("type", ColumnType::Name, "null, bool, int, uint, float, double, text, enum, struct and the like"),
        Column::nullable("int", ColumnType::Int64, "a whole number, enumeration or truth value, if it fits"),
        Column::nullable("uint", ColumnType::UInt64, "a whole number, bit mask or pointer that is not negative"),
        Column::nullable("float", ColumnType::Float64, "a floating-point number"),
        Column::nullable("text", ColumnType::Text, "a string; other values that are not numbers as dump prints them"),
        Column::nullable("blob_bytes", ColumnType::Int64, "bytes of a blob"),
    ],
};

/// Makes the rows.
pub(super) struct ArgRows<'a> {
    rows: Rows<'a>,
    dictionary: Dictionary,
    values: ValueText,
    places: Vec<Place>,
}

impl<'a> ArgRows<'a> {
    pub(super) fn new(rows: Rows<'a>) -> Self {
        Self { rows, dictionary: Dictionary::default(), values: ValueText::new(), places: Vec::new() }
    }

    pub(super) fn into_rows(self) -> Rows<'a> {
        self.rows
    }
}

impl CallVisitor for ArgRows<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let Self { rows, dictionary, values, places } = self;
        let unknown = Named::default();
        let function = dictionary.function(call.function).unwrap_or(&unknown);
        note_details(call, function, dictionary, places);
        for (at, place) in places.iter().enumerate() {
            // As everywhere, the last one of each index counts.
            if places.get(at + 1).is_some_and(|next| next.index() == place.index()) {
                continue;
            }
            rows.count(call.number);
            rows.int32(int32(place.index()));
            match function.get(place.index()).filter(|name| !name.is_empty()) {
                Some(name) => rows.raw_name(name),
                None => rows.name(format!("#{}", place.index()).as_str()),
            }
            push_value(rows, place.wire(call, dictionary), call, dictionary, values)?;
            rows.end()?;
        }
        Ok(())
    }
}

/// The columns that depend on the type of a value.
#[derive(Default)]
struct Cells<'a> {
    kind: &'static str,
    int: Option<i64>,
    uint: Option<u64>,
    float: Option<f64>,
    text: Text<'a>,
    blob_bytes: Option<u64>,
}

/// What the column `text` has.
#[derive(Default)]
enum Text<'a> {
    #[default]
    None,
    /// What dump prints.
    Printed,
    /// A string's own bytes.
    Bytes(&'a [u8]),
    Wide(Wire<'a>),
}

impl<'a> Cells<'a> {
    fn of(value: Value<'a>, dictionary: &'a Dictionary) -> Self {
        let cells = |kind| Self { kind, ..Self::default() };
        let printed = |kind| Self { kind, text: Text::Printed, ..Self::default() };
        match value {
            Value::Null => Self { uint: Some(0), ..printed("null") },
            Value::Bool(value) => Self { int: Some(i64::from(value)), ..cells("bool") },
            Value::Negative(magnitude) => match i64::try_from(-i128::from(magnitude)) {
                Ok(value) => Self { int: Some(value), ..cells("int") },
                Err(_) => printed("int"),
            },
            Value::Unsigned(value) => Self { int: i64::try_from(value).ok(), uint: Some(value), ..cells("uint") },
            Value::Float(value) => Self { float: Some(f64::from(value)), ..cells("float") },
            Value::Double(value) => Self { float: Some(value), ..cells("double") },
            Value::Text(bytes) => Self { text: Text::Bytes(bytes), ..cells("text") },
            Value::Blob(length, _) => Self { blob_bytes: Some(length), ..cells("blob") },
            Value::Enum(id, value) => {
                let names = dictionary.enumeration(id);
                let int = match value {
                    Some(value) => i64::try_from(value.value()).ok(),
                    None => names.map(|names| names.value(None)),
                };
                let text = names.and_then(|names| names.name(value)).map_or(Text::None, Text::Bytes);
                Self { int, text, ..cells("enum") }
            }
            Value::Bitmask(_, value) => Self { uint: Some(value), ..printed("bitmask") },
            Value::Array(_) => printed("array"),
            Value::Struct(_) => printed("struct"),
            Value::Pointer(value) => Self { uint: Some(value), ..printed("pointer") },
            Value::Repr => printed("repr"),
            Value::Wide(chars) => Self { text: Text::Wide(chars), ..cells("wide") },
            Value::Unknown => cells("unknown"),
        }
    }
}

fn push_value(
    rows: &mut Rows<'_>,
    wire: Wire<'_>,
    call: &Call<'_>,
    dictionary: &Dictionary,
    values: &mut ValueText,
) -> Result<(), Error> {
    let mut after = wire;
    let cells = Cells::of(after.value(), dictionary);
    rows.name(cells.kind);
    rows.int64(cells.int);
    rows.uint64(cells.uint);
    rows.float64(cells.float);
    match cells.text {
        Text::Printed if rows.wants_next() => rows.raw_text(values.of(wire, call, dictionary)?),
        Text::None | Text::Printed => rows.text(None),
        Text::Bytes(bytes) => rows.raw_text(bytes),
        Text::Wide(chars) => rows.text_with(|| Some(wide_text(chars))),
    }
    rows.count(cells.blob_bytes);
    Ok(())
}

/// The characters of a wide string. Invalid ones become the replacement character.
fn wide_text(mut chars: Wire<'_>) -> String {
    let mut out = String::new();
    while !chars.rest().is_empty() {
        out.push(u32::try_from(chars.uint()).ok().and_then(char::from_u32).unwrap_or('\u{fffd}'));
    }
    out
}
