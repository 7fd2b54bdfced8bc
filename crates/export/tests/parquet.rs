//! Parquet files read back by a reader that shares nothing with the writer: the footer and page headers as
//! `parquet.thrift` has them, pages, levels and dictionaries as the format's documents describe them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod made;

use std::collections::BTreeMap;

use anytrace_core::table::ColumnType;
use anytrace_export::parquet::Limits;
use made::Made;
use serde_json::{Value, json};

/// A value of Thrift's compact protocol.
#[derive(Debug, Clone, PartialEq)]
enum Thrift {
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<Thrift>),
    Struct(BTreeMap<i64, Thrift>),
}

struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (own, rest) = self.0.split_at(length);
        self.0 = rest;
        own
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn zigzag(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
    }

    fn value(&mut self, kind: u8) -> Thrift {
        match kind {
            1 | 2 => Thrift::Bool(kind == 1),
            3 => Thrift::Int(i64::from(self.byte().cast_signed())),
            4..=6 => Thrift::Int(self.zigzag()),
            8 => {
                let length = self.varint() as usize;
                Thrift::Bytes(self.take(length).to_vec())
            }
            9 => {
                let head = self.byte();
                let length = if head >> 4 == 15 { self.varint() as usize } else { usize::from(head >> 4) };
                Thrift::List((0..length).map(|_| self.value(head & 15)).collect())
            }
            12 => self.fields(),
            other => panic!("type {other} of Thrift"),
        }
    }

    fn fields(&mut self) -> Thrift {
        let (mut fields, mut last) = (BTreeMap::new(), 0);
        loop {
            let head = self.byte();
            if head == 0 {
                return Thrift::Struct(fields);
            }
            last = if head >> 4 == 0 { self.zigzag() } else { last + i64::from(head >> 4) };
            assert!(fields.insert(last, self.value(head & 15)).is_none(), "field {last} twice");
        }
    }
}

impl Thrift {
    fn get(&self, field: i64) -> Option<&Self> {
        let Self::Struct(fields) = self else { panic!("no struct: {self:?}") };
        fields.get(&field)
    }

    fn int(&self, field: i64) -> i64 {
        match self.get(field) {
            Some(Self::Int(value)) => *value,
            other => panic!("field {field}: {other:?}"),
        }
    }

    fn bytes(&self, field: i64) -> &[u8] {
        match self.get(field) {
            Some(Self::Bytes(bytes)) => bytes,
            other => panic!("field {field}: {other:?}"),
        }
    }

    fn list(&self, field: i64) -> &[Self] {
        match self.get(field) {
            Some(Self::List(list)) => list,
            other => panic!("field {field}: {other:?}"),
        }
    }
}

/// Numbers of a few bits: runs and groups of eight, mixed.
fn hybrid(bytes: &[u8], bits: u32, count: usize) -> Vec<u32> {
    let (mut wire, mut numbers) = (Wire(bytes), Vec::new());
    while numbers.len() < count {
        let head = wire.varint() as usize;
        if head & 1 == 0 {
            let bytes = wire.take(bits.div_ceil(8) as usize);
            let number = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            assert!(head > 0, "a run of nothing");
            numbers.extend(vec![number; head >> 1]);
        } else {
            let group = wire.take((head >> 1) * bits as usize);
            let bit = |n: usize| u32::from(group[n / 8] >> (n % 8) & 1);
            let number = |n: usize| (0..bits as usize).map(|b| bit(n * bits as usize + b) << b).sum::<u32>();
            numbers.extend((0..(head >> 1) * 8).map(number));
        }
    }
    assert!(wire.0.is_empty(), "bytes behind the last number");
    assert!(numbers.len() < count + 8 || bits == 0);
    numbers.truncate(count);
    numbers
}

/// Values one after the other; as bytes of the lowest first, texts without their lengths.
fn plain(physical: i64, bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut wire = Wire(bytes);
    let values = match physical {
        0 => (0..count).map(|n| vec![bytes[n / 8] >> (n % 8) & 1]).collect(),
        6 => (0..count)
            .map(|_| {
                let length = u32::from_le_bytes(wire.take(4).try_into().unwrap());
                wire.take(length as usize).to_vec()
            })
            .collect(),
        _ => (0..count).map(|_| wire.take(if physical == 1 { 4 } else { 8 }).to_vec()).collect::<Vec<_>>(),
    };
    let is_all = if physical == 0 { bytes.len() == count.div_ceil(8) } else { wire.0.is_empty() };
    assert!(is_all, "bytes behind the last value");
    values
}

/// A column of a row group, and what the file says of it.
struct Chunk {
    values: Vec<Option<Vec<u8>>>,
    dictionary: Option<usize>,
    pages: BTreeMap<(i64, i64), i64>,
}

fn chunk(file: &[u8], meta: &Thrift, is_optional: bool) -> Chunk {
    let physical = meta.int(1);
    let start = meta.get(11).map_or_else(|| meta.int(9), |_| meta.int(11)) as usize;
    let mut wire = Wire(&file[start..start + meta.int(7) as usize]);
    let (mut dictionary, mut values, mut uncompressed) = (None, Vec::new(), 0);
    let mut pages = BTreeMap::new();
    while !wire.0.is_empty() {
        let before = wire.0.len();
        let header = wire.fields();
        let length = header.int(2) as usize;
        uncompressed += before - wire.0.len() + length;
        let body = zstd::decode_all(wire.take(header.int(3) as usize)).unwrap();
        assert_eq!(body.len(), length);
        let about = header.get(if header.int(1) == 2 { 7 } else { 5 }).unwrap();
        *pages.entry((header.int(1), about.int(2))).or_default() += 1;
        let count = about.int(1) as usize;
        if header.int(1) == 2 {
            assert!(values.is_empty() && dictionary.is_none(), "one dictionary, in front");
            dictionary = Some(plain(physical, &body, count));
            continue;
        }
        let mut body = Wire(&body);
        let levels = if is_optional {
            let length = u32::from_le_bytes(body.take(4).try_into().unwrap());
            hybrid(body.take(length as usize), 1, count)
        } else {
            vec![1; count]
        };
        let present = levels.iter().filter(|level| **level == 1).count();
        let found = match about.int(2) {
            0 => plain(physical, body.0, present),
            8 => {
                let bits = u32::from(body.byte());
                let names = dictionary.as_ref().unwrap();
                hybrid(body.0, bits, present).into_iter().map(|key| names[key as usize].clone()).collect()
            }
            other => panic!("encoding {other}"),
        };
        let mut found = found.into_iter();
        values.extend(levels.iter().map(|level| (*level == 1).then(|| found.next().unwrap())));
    }
    assert_eq!((values.len() as i64, uncompressed as i64), (meta.int(5), meta.int(6)));
    if let Some(first) = meta.get(11) {
        assert!(*first != Thrift::Int(meta.int(9)), "data pages lie behind the dictionary");
    }
    Chunk { values, dictionary: dictionary.map(|names| names.len()), pages }
}

fn shown(kind: ColumnType, bytes: &[u8]) -> Value {
    let eight = || <[u8; 8]>::try_from(bytes).unwrap();
    let four = || <[u8; 4]>::try_from(bytes).unwrap();
    match kind {
        ColumnType::Boolean => json!(bytes == [1]),
        ColumnType::Int32 => json!(i32::from_le_bytes(four())),
        ColumnType::UInt32 => json!(u32::from_le_bytes(four())),
        ColumnType::Int64 => json!(i64::from_le_bytes(eight())),
        ColumnType::UInt64 => json!(u64::from_le_bytes(eight())),
        ColumnType::Float64 => match f64::from_le_bytes(eight()) {
            number if number.is_finite() => json!(number),
            number => json!(number.to_string()),
        },
        ColumnType::Text | ColumnType::Name => json!(std::str::from_utf8(bytes).unwrap()),
        ColumnType::Bytes => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Orders values as their type says; `None` for what is no number.
fn order(kind: ColumnType, bytes: &[u8]) -> Option<(i128, Vec<u8>)> {
    Some(match kind {
        ColumnType::Boolean => (i128::from(bytes[0]), vec![]),
        ColumnType::Text | ColumnType::Name | ColumnType::Bytes => (0, bytes.to_vec()),
        ColumnType::Float64 => {
            let number = f64::from_le_bytes(bytes.try_into().unwrap());
            let bits = i128::from(number.abs().to_bits());
            (!number.is_nan()).then_some((if number.is_sign_negative() { -bits } else { bits }, vec![]))?
        }
        _ => {
            let value = shown(kind, bytes);
            (value.as_i64().map_or_else(|| i128::from(value.as_u64().unwrap()), i128::from), vec![])
        }
    })
}

/// The smallest and the largest value are bounds of all, and nothing is counted twice.
fn assert_statistics(kind: ColumnType, chunk: &Chunk, meta: &Thrift) {
    let Some(statistics) = meta.get(12) else { panic!("every column has statistics") };
    assert_eq!(statistics.int(3), chunk.values.iter().filter(|value| value.is_none()).count() as i64);
    let all: Vec<_> = chunk.values.iter().flatten().filter_map(|value| order(kind, value)).collect();
    for (field, exact, bound) in [(6, 8, all.iter().min()), (5, 7, all.iter().max())] {
        let Some(found) = statistics.get(field) else { continue };
        let Thrift::Bytes(found) = found else { panic!("{found:?}") };
        let found = order(kind, found).expect("a bound is a number");
        let bound = bound.expect("no bounds without values");
        assert!(if field == 6 { found <= *bound } else { found >= *bound }, "{kind:?}: {found:?}, {bound:?}");
        if statistics.get(exact) == Some(&Thrift::Bool(true)) && kind != ColumnType::Float64 {
            assert_eq!(found, *bound, "{kind:?}");
        }
    }
    let is_bounded = statistics.get(5).is_some() && statistics.get(6).is_some();
    let may_lack = matches!(kind, ColumnType::Float64 | ColumnType::Bytes | ColumnType::Text | ColumnType::Name);
    assert!(is_bounded || all.is_empty() || may_lack, "{kind:?}");
}

/// The file as rows; everything that its footer says is compared with what is there.
fn read(file: &[u8], made: &Made) -> (Value, Vec<Vec<Chunk>>) {
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let mut wire = Wire(&file[end - length..end]);
    let footer = wire.fields();
    assert!(wire.0.is_empty());
    let schema = footer.list(2);
    assert_eq!(schema[0].int(5) as usize, schema.len() - 1);
    let names: Vec<_> = schema[1..].iter().map(|one| std::str::from_utf8(one.bytes(4)).unwrap()).collect();
    for (column, one) in made.table.columns.iter().zip(&schema[1..]) {
        assert_eq!(one.int(3), i64::from(column.is_nullable), "{}", column.name);
        let converted = one.get(6).map(|_| one.int(6));
        let wanted = match column.kind {
            ColumnType::Text | ColumnType::Name => Some(0),
            ColumnType::UInt32 => Some(13),
            ColumnType::UInt64 => Some(14),
            _ => None,
        };
        assert_eq!(converted, wanted, "{}", column.name);
    }
    let (mut rows, mut groups, mut at) = (Vec::new(), Vec::new(), 4);
    for group in footer.list(4) {
        let count = group.int(3) as usize;
        assert_eq!((group.int(5), group.list(1).len()), (at, names.len()), "row groups follow each other");
        at += group.int(6);
        let mut chunks = Vec::new();
        for (column, about) in made.table.columns.iter().zip(group.list(1)) {
            let meta = about.get(3).unwrap();
            assert_eq!(meta.list(3), [Thrift::Bytes(column.name.as_bytes().to_vec())]);
            let chunk = chunk(file, meta, column.is_nullable);
            assert_eq!(chunk.values.len(), count);
            assert_statistics(column.kind, &chunk, meta);
            let counted = meta.list(13).iter().map(|one| ((one.int(1), one.int(2)), one.int(3)));
            assert_eq!(counted.collect::<BTreeMap<_, _>>(), chunk.pages);
            chunks.push(chunk);
        }
        for row in 0..count {
            let cell = |(column, chunk): (&anytrace_core::table::Column, &Chunk)| {
                chunk.values[row].as_ref().map(|bytes| shown(column.kind, bytes))
            };
            rows.push(made.table.columns.iter().zip(&chunks).map(cell).collect::<Value>());
        }
        groups.push(chunks);
    }
    assert_eq!((at as usize, footer.int(3) as usize), (end - length, rows.len()), "nothing between groups and footer");
    (json!({ "columns": names, "rows": rows }), groups)
}

fn assert_reads(made: &Made, limits: Limits) -> Vec<Vec<Chunk>> {
    let (found, groups) = read(&made::parquet(made, limits), made);
    let expected = made::rows(made);
    assert_eq!(found["columns"], expected["columns"], "{}", made.name);
    for (n, (found, expected)) in
        found["rows"].as_array().unwrap().iter().zip(expected["rows"].as_array().unwrap()).enumerate()
    {
        assert_eq!(found, expected, "{}, row {n}", made.name);
    }
    assert_eq!(found["rows"].as_array().unwrap().len(), expected["rows"].as_array().unwrap().len());
    groups
}

#[test]
fn every_value_of_every_table_is_read_back() {
    for made in made::all() {
        assert_reads(&made, Limits::default());
        assert_reads(&made, made::small());
    }
}

#[test]
fn limits_of_any_size_change_no_value() {
    let rows = made::random(700);
    for (n, limits) in [(1, 1, 1), (7, 3, 20), (64, 8, 1), (699, 1000, 1 << 20), (700, 9, 64)].into_iter().enumerate() {
        let (group_rows, page_rows, page_bytes) = limits;
        for dictionary_bytes in [0, 300, 1 << 20] {
            let made = Made { name: "random", table: &made::TYPES, batches: made::typed(&rows, 1 + n * 50) };
            let limits = Limits { group_rows, page_rows, page_bytes, dictionary_bytes, ..Limits::default() };
            let groups = assert_reads(&made, limits);
            assert_eq!(groups.len(), 700_usize.div_ceil(group_rows));
        }
    }
}

#[test]
fn names_that_repeat_are_in_the_dictionary_once() {
    let names = |count: usize, different: usize| {
        let cells: Vec<_> = (0..count).map(|n| json!(format!("name {}", n * 7 % different))).collect();
        let seq = made::values(ColumnType::Int64, &(0..count).map(|n| json!(n)).collect::<Vec<_>>());
        let columns = vec![seq, made::values(ColumnType::Name, &cells)];
        let batches = vec![anytrace_core::table::Batch { rows: count, columns }];
        Made { name: "names", table: &made::NAMES, batches }
    };
    // Numbers of keys around the widths of 0, 1, 2, 8 and 9 bits.
    for different in [1, 2, 3, 4, 5, 255, 256, 257] {
        let groups = assert_reads(&names(2000, different), Limits::default());
        assert_eq!(groups[0][1].dictionary, Some(different));
    }
}
