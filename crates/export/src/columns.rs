//! What the writers of tables share: which columns a file has, whether a batch fits them, numbers as bytes.

use anytrace_core::Error;
use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Strings, Table, Values};

/// The columns of a file, in the order of [`anytrace_core::table::Scan::columns`]; `None` is all of the table.
pub(crate) fn chosen(table: &Table, columns: Option<&[usize]>) -> Result<Vec<Column>, Error> {
    let Some(numbers) = columns else { return Ok(table.columns.to_vec()) };
    let column = |number: &usize| {
        let unknown = || Error::usage(format!("table {} has no column number {number}", table.name));
        table.columns.get(*number).copied().ok_or_else(unknown)
    };
    numbers.iter().map(column).collect()
}

/// Refuses rows that are not of these columns: a file of them could not be read.
pub(crate) fn check(batch: &Batch, columns: &[Column]) -> Result<(), Error> {
    if batch.columns.len() != columns.len() {
        let (found, expected) = (batch.columns.len(), columns.len());
        return Err(Error::usage(format!("rows have {found} columns, the file has {expected}")));
    }
    batch.columns.iter().zip(columns).try_for_each(|(values, column)| {
        let wrong = fault(values, column, batch.rows);
        wrong.map_or(Ok(()), |what| Err(Error::usage(format!("column {}: {what}", column.name))))
    })
}

/// What is wrong with the values of a column.
fn fault(values: &BatchColumn, column: &Column, rows: usize) -> Option<&'static str> {
    let strings = match &values.values {
        Values::Text(strings) | Values::Bytes(strings) => Some(strings),
        _ => None,
    };
    if kind(&values.values) != column.kind {
        Some("values are not of its type")
    } else if strings.is_some_and(|strings| !is_sound(strings, column.kind)) {
        Some("offsets do not fit the bytes, or texts are not UTF-8")
    } else if values.values.len() != rows || !matches!(values.validity.len(), 0) && values.validity.len() != rows {
        Some("there is not one value a row")
    } else if !column.is_nullable && values.validity.contains(&false) {
        Some("a value is absent, which its table does not allow")
    } else {
        None
    }
}

fn kind(values: &Values) -> ColumnType {
    match values {
        Values::Boolean(_) => ColumnType::Boolean,
        Values::Int32(_) => ColumnType::Int32,
        Values::Int64(_) => ColumnType::Int64,
        Values::UInt32(_) => ColumnType::UInt32,
        Values::UInt64(_) => ColumnType::UInt64,
        Values::Float64(_) => ColumnType::Float64,
        Values::Text(_) => ColumnType::Text,
        Values::Bytes(_) => ColumnType::Bytes,
        Values::Name { .. } => ColumnType::Name,
    }
}

/// True when each offset is where a string may begin or end.
fn is_sound(strings: &Strings, kind: ColumnType) -> bool {
    let Some(last) = strings.offsets.last() else { return false };
    let is_inside = usize::try_from(*last).is_ok_and(|last| last <= strings.bytes.len());
    if strings.offsets.first().is_none_or(|first| *first < 0) || !is_inside || !strings.offsets.is_sorted() {
        return false;
    }
    if kind != ColumnType::Text {
        return true;
    }
    let is_boundary = |text: &str, offset: i32| usize::try_from(offset).is_ok_and(|at| text.is_char_boundary(at));
    std::str::from_utf8(&strings.bytes)
        .is_ok_and(|text| text.is_ascii() || strings.offsets.iter().all(|offset| is_boundary(text, *offset)))
}

/// Appends numbers, each by its bytes.
pub(crate) fn push_numbers<T: Copy, const N: usize>(out: &mut Vec<u8>, values: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + values.len() * N, 0);
    let (slots, _) = out[start..].as_chunks_mut::<N>();
    slots.iter_mut().zip(values).for_each(|(slot, value)| *slot = bytes(*value));
}

/// Bits, the first of each byte the lowest: booleans and validity in both forms.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Appends one.
    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        let at = self.len % 8;
        self.len += 1;
        match self.bytes.last_mut().filter(|_| at != 0) {
            Some(last) => *last |= u8::from(bit) << at,
            None => self.bytes.push(u8::from(bit)),
        }
    }

    /// Appends many.
    pub(crate) fn extend(&mut self, bits: &[bool]) {
        bits.iter().for_each(|bit| self.push(*bit));
    }

    /// Appends ones.
    pub(crate) fn extend_ones(&mut self, count: usize) {
        let until_byte = count.min((8 - self.len % 8) % 8);
        (0..until_byte).for_each(|_| self.push(true));
        let rest = count - until_byte;
        self.bytes.resize(self.bytes.len() + rest / 8, 0xff);
        self.len += rest / 8 * 8;
        (0..rest % 8).for_each(|_| self.push(true));
    }

    /// The bytes; bits beyond the last are 0.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Table = Table {
        name: "things",
        help: "",
        columns: &[Column::new("n", ColumnType::Int64, ""), Column::nullable("t", ColumnType::Text, "")],
    };

    fn batch(numbers: Vec<i64>, offsets: Vec<i32>, bytes: &[u8], validity: Vec<bool>) -> Batch {
        let texts = Values::Text(Strings { offsets, bytes: bytes.to_vec() });
        Batch {
            rows: numbers.len(),
            columns: vec![
                BatchColumn { values: Values::Int64(numbers), validity: vec![] },
                BatchColumn { values: texts, validity },
            ],
        }
    }

    fn complaint(batch: &Batch) -> String {
        check(batch, TABLE.columns).map_or_else(|error| error.to_string(), |()| "fine".into())
    }

    #[test]
    fn batches_that_no_file_can_have_are_refused() {
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 1, 3], "aä".as_bytes(), vec![true, false])), "fine");
        let unsound = "column t: offsets do not fit the bytes, or texts are not UTF-8";
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 2, 3], "aä".as_bytes(), vec![])), unsound);
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 2, 1], b"abc", vec![])), unsound);
        assert_eq!(complaint(&batch(vec![1, 2], vec![-1, 2, 3], b"abc", vec![])), unsound);
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 2, 9], b"abc", vec![])), unsound);
        assert_eq!(complaint(&batch(vec![1, 2], vec![], b"abc", vec![])), unsound);
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 2, 3], b"ab\xff", vec![])), unsound);
        let uneven = "column t: there is not one value a row";
        assert_eq!(complaint(&batch(vec![1], vec![0, 2, 3], b"abc", vec![])), uneven);
        assert_eq!(complaint(&batch(vec![1, 2], vec![0, 2, 3], b"abc", vec![true])), uneven);
        let mut absent = batch(vec![1, 2], vec![0, 2, 3], b"abc", vec![]);
        absent.columns[0].validity = vec![true, false];
        assert_eq!(complaint(&absent), "column n: a value is absent, which its table does not allow");
        absent.columns.swap(0, 1);
        assert_eq!(complaint(&absent), "column n: values are not of its type");
        absent.columns.pop();
        assert_eq!(complaint(&absent), "rows have 1 columns, the file has 2");
        assert_eq!(chosen(&TABLE, Some(&[1, 0])).unwrap()[0].name, "t");
        assert_eq!(chosen(&TABLE, Some(&[2])).unwrap_err().to_string(), "table things has no column number 2");
    }

    #[test]
    fn bits_begin_with_the_lowest_however_they_come() {
        for ones in 0..20 {
            let (mut many, mut single) = (Bits::default(), Bits::default());
            for bits in [&mut many, &mut single] {
                bits.extend(&[false, true, false]);
            }
            many.extend_ones(ones);
            (0..ones).for_each(|_| single.push(true));
            for bits in [&mut many, &mut single] {
                bits.push(false);
                bits.push(true);
            }
            assert_eq!((many.bytes(), many.len), (single.bytes(), ones + 5));
        }
    }
}
