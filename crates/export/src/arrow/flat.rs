//! FlatBuffers, as far as Arrow's metadata need them (`docs/source/internals.md` of FlatBuffers).
//!
//! A buffer is written front to back: a table, then what it refers to, because references point forward. Vtables are not
//! shared; ours are few.

/// What a field of a table is.
pub(super) enum Value<'a> {
    U8(u8),
    Bool(bool),
    I16(i16),
    I32(i32),
    I64(i64),
    Text(&'a str),
    Table(Table<'a>),
    Tables(Vec<Table<'a>>),
    /// A vector of structs: their bytes, which begin at a multiple of 8, and how many there are.
    Structs(Vec<u8>, usize),
}

/// Fields of a table in ascending order of their numbers, which count from 0.
pub(super) struct Table<'a>(pub(super) Vec<(u16, Value<'a>)>);

/// A buffer with this table as its root; its length is a multiple of 8.
pub(super) fn buffer(root: &Table<'_>) -> Vec<u8> {
    let mut out = vec![0; 4];
    let at = table(&mut out, root);
    refer(&mut out, 0, at);
    align(&mut out, 8, 0);
    out
}

/// Writes a table and returns its place.
fn table(out: &mut Vec<u8>, Table(fields): &Table<'_>) -> usize {
    // The vtable: its length, the table's length, where each field is in the table.
    align(out, 2, 0);
    let vtable = out.len();
    let slots = fields.last().map_or(0, |(number, _)| usize::from(*number) + 1);
    out.resize(vtable + 4 + slots * 2, 0);
    align(out, 4, 0);
    let start = out.len();
    put(out, &difference(start, vtable).to_le_bytes());
    let mut references = Vec::new();
    for (number, value) in fields {
        let place = inline(out, value);
        let slot = vtable + 4 + usize::from(*number) * 2;
        out[slot..slot + 2].copy_from_slice(&short(place - start).to_le_bytes());
        if value.is_elsewhere() {
            references.push((place, value));
        }
    }
    let (vtable_bytes, table_bytes) = (short(4 + slots * 2), short(out.len() - start));
    out[vtable..vtable + 2].copy_from_slice(&vtable_bytes.to_le_bytes());
    out[vtable + 2..vtable + 4].copy_from_slice(&table_bytes.to_le_bytes());
    for (place, value) in references {
        let at = elsewhere(out, value);
        refer(out, place, at);
    }
    start
}

impl Value<'_> {
    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Table(_) | Self::Tables(_) | Self::Structs(..))
    }
}

/// Writes a field's part of its table; returns its place.
fn inline(out: &mut Vec<u8>, value: &Value<'_>) -> usize {
    match value {
        Value::U8(value) => aligned(out, &value.to_le_bytes()),
        Value::Bool(value) => aligned(out, &[u8::from(*value)]),
        Value::I16(value) => aligned(out, &value.to_le_bytes()),
        Value::I32(value) => aligned(out, &value.to_le_bytes()),
        Value::I64(value) => aligned(out, &value.to_le_bytes()),
        Value::Text(_) | Value::Table(_) | Value::Tables(_) | Value::Structs(..) => aligned(out, &[0; 4]),
    }
}

/// Writes what a field refers to; returns its place.
fn elsewhere(out: &mut Vec<u8>, value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => {
            let at = aligned(out, &long(text.len()).to_le_bytes());
            put(out, text.as_bytes());
            out.push(0);
            at
        }
        Value::Table(inner) => table(out, inner),
        Value::Tables(tables) => {
            let at = aligned(out, &long(tables.len()).to_le_bytes());
            out.resize(out.len() + tables.len() * 4, 0);
            for (number, inner) in tables.iter().enumerate() {
                let place = table(out, inner);
                refer(out, at + 4 + number * 4, place);
            }
            at
        }
        Value::Structs(bytes, count) => {
            align(out, 8, 4);
            let at = aligned(out, &long(*count).to_le_bytes());
            put(out, bytes);
            at
        }
        _ => 0,
    }
}

/// Writes the distance from a reference to what it refers to.
fn refer(out: &mut [u8], place: usize, at: usize) {
    out[place..place + 4].copy_from_slice(&long(at - place).to_le_bytes());
}

/// Appends a number at a multiple of its size; returns its place.
fn aligned(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
    align(out, bytes.len(), 0);
    put(out, bytes);
    out.len() - bytes.len()
}

/// Appends zeros until the length is a multiple of `to` and `beyond` more.
fn align(out: &mut Vec<u8>, to: usize, beyond: usize) {
    while out.len() % to != beyond {
        out.push(0);
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

// Tables are a few dozen bytes; a buffer grows by 24 bytes a batch and is checked against 2 GiB when it is complete.

fn short(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn long(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn difference(a: usize, b: usize) -> i32 {
    i32::try_from(a - b).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a field of the table at `at`, by an obvious reader.
    fn field(buffer: &[u8], at: usize, number: usize) -> Option<usize> {
        let vtable = at - word(buffer, at);
        let half = |at: usize| usize::from(u16::from_le_bytes([buffer[at], buffer[at + 1]]));
        let slot = 4 + number * 2;
        let offset = if slot < half(vtable) { half(vtable + slot) } else { 0 };
        assert!(offset < half(vtable + 2));
        (offset > 0).then_some(at + offset)
    }

    fn word(buffer: &[u8], at: usize) -> usize {
        u32::from_le_bytes(buffer[at..at + 4].try_into().unwrap()) as usize
    }

    #[test]
    fn fields_are_found_where_the_vtable_says() {
        let inner = |text| Table(vec![(1, Value::Text(text))]);
        let root = Table(vec![
            (0, Value::I16(-2)),
            (2, Value::Bool(true)),
            (3, Value::I64(1 << 40)),
            (4, Value::Tables(vec![inner("a"), inner("longer")])),
            (5, Value::Structs(vec![7; 16], 2)),
            (7, Value::I32(9)),
        ]);
        let bytes = buffer(&root);
        assert_eq!(bytes.len() % 8, 0);
        let at = word(&bytes, 0);
        let place = |number| field(&bytes, at, number).unwrap();
        assert_eq!(bytes[place(0)..place(0) + 2], [0xfe, 0xff]);
        assert_eq!(
            (field(&bytes, at, 1), bytes[place(2)], field(&bytes, at, 6), field(&bytes, at, 8)),
            (None, 1, None, None)
        );
        assert_eq!((place(3) % 8, bytes[place(3) + 5], word(&bytes, place(7))), (0, 1, 9));
        let tables = place(4) + word(&bytes, place(4));
        assert_eq!(word(&bytes, tables), 2);
        for (number, text) in [(1, "a"), (2, "longer")] {
            let reference = tables + number * 4;
            let inner = field(&bytes, reference + word(&bytes, reference), 1).unwrap();
            let start = inner + word(&bytes, inner);
            assert_eq!(word(&bytes, start), text.len());
            assert_eq!(&bytes[start + 4..start + 5 + text.len()], [text.as_bytes(), &[0]].concat());
        }
        let structs = place(5) + word(&bytes, place(5));
        assert_eq!((word(&bytes, structs), structs % 8, &bytes[structs + 4..structs + 20]), (2, 4, &[7; 16][..]));
    }
}
