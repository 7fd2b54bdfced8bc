//! Smallest and largest values of a column chunk, by which readers skip row groups.

use anytrace_core::table::ColumnType;

use super::thrift::Thrift;

/// Texts are cut to this many bytes.
const TEXT_BYTES_MAX: usize = 64;

/// What is known of the values of a column chunk.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// Absent values.
    pub(super) nulls: i64,
    range: Range,
}

#[derive(Debug, Default)]
enum Range {
    /// No values yet, or none that compare.
    #[default]
    None,
    Boolean(bool, bool),
    Signed(i64, i64),
    Unsigned(u64, u64),
    Float(f64, f64),
    Bytes(Vec<u8>, Vec<u8>),
}

impl Statistics {
    /// Takes booleans.
    pub(super) fn booleans(&mut self, values: impl Iterator<Item = bool>) {
        let Some((least, most)) = ends(values) else { return };
        self.range = match self.range {
            Range::Boolean(min, max) => Range::Boolean(min & least, max | most),
            _ => Range::Boolean(least, most),
        };
    }

    /// Takes signed numbers.
    pub(super) fn signed<T: Copy + PartialOrd + Into<i64>>(&mut self, values: impl Iterator<Item = T>) {
        let Some((least, most)) = ends(values) else { return };
        let (least, most) = (least.into(), most.into());
        self.range = match self.range {
            Range::Signed(min, max) => Range::Signed(min.min(least), max.max(most)),
            _ => Range::Signed(least, most),
        };
    }

    /// Takes unsigned numbers.
    pub(super) fn unsigned<T: Copy + PartialOrd + Into<u64>>(&mut self, values: impl Iterator<Item = T>) {
        let Some((least, most)) = ends(values) else { return };
        let (least, most) = (least.into(), most.into());
        self.range = match self.range {
            Range::Unsigned(min, max) => Range::Unsigned(min.min(least), max.max(most)),
            _ => Range::Unsigned(least, most),
        };
    }

    /// Takes floating-point numbers. What is not a number has no place in the order of the others and is left out, as
    /// the format demands.
    pub(super) fn floats(&mut self, values: impl Iterator<Item = f64>) {
        let Some((least, most)) = ends(values.filter(|value| !value.is_nan())) else { return };
        self.range = match self.range {
            Range::Float(min, max) => Range::Float(min.min(least), max.max(most)),
            _ => Range::Float(least, most),
        };
    }

    /// Takes a text, or bytes.
    #[inline]
    pub(super) fn bytes(&mut self, value: &[u8]) {
        match &mut self.range {
            Range::Bytes(min, max) => {
                if value < min.as_slice() {
                    replace(min, value);
                } else if value > max.as_slice() {
                    replace(max, value);
                }
            }
            range => *range = Range::Bytes(value.to_vec(), value.to_vec()),
        }
    }

    /// Writes them as the field of a column chunk's metadata.
    pub(super) fn write(&self, thrift: &mut Thrift, id: u8, kind: ColumnType) {
        let [min, max] = self.bounds(kind);
        thrift.fields(id, |thrift| {
            thrift.i64(3, self.nulls);
            if let Some((max, _)) = &max {
                thrift.bytes(5, max);
            }
            if let Some((min, _)) = &min {
                thrift.bytes(6, min);
            }
            if let Some((_, is_exact)) = max {
                thrift.bool(7, is_exact);
            }
            if let Some((_, is_exact)) = min {
                thrift.bool(8, is_exact);
            }
        });
    }

    /// A value that is not above the smallest and one that is not below the largest, each with whether it is that.
    fn bounds(&self, kind: ColumnType) -> [Option<(Vec<u8>, bool)>; 2] {
        let is_short = matches!(kind, ColumnType::Int32 | ColumnType::UInt32);
        let number = |bytes: [u8; 8]| Some((bytes[..if is_short { 4 } else { 8 }].to_vec(), true));
        match &self.range {
            Range::None => [None, None],
            Range::Boolean(min, max) => [min, max].map(|value| Some((vec![u8::from(*value)], true))),
            Range::Signed(min, max) => [min, max].map(|value| number(value.to_le_bytes())),
            Range::Unsigned(min, max) => [min, max].map(|value| number(value.to_le_bytes())),
            // The two zeros are equal, so that either may be in the data.
            Range::Float(min, max) => {
                let min = if *min == 0.0 { -0.0 } else { *min };
                let max = if *max == 0.0 { 0.0 } else { *max };
                [min, max].map(|value| number(value.to_le_bytes()))
            }
            Range::Bytes(min, max) => {
                let is_text = kind != ColumnType::Bytes;
                [Some(cut(min, is_text)), raised(max, is_text)]
            }
        }
    }
}

/// The smallest and the largest.
fn ends<T: Copy + PartialOrd>(mut values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let first = values.next()?;
    Some(values.fold((first, first), |(min, max), value| {
        (if value < min { value } else { min }, if value > max { value } else { max })
    }))
}

fn replace(old: &mut Vec<u8>, new: &[u8]) {
    old.clear();
    old.extend_from_slice(new);
}

/// The beginning of a value, which is not above it, and whether that is all of it.
fn cut(value: &[u8], is_text: bool) -> (Vec<u8>, bool) {
    if value.len() <= TEXT_BYTES_MAX {
        return (value.to_vec(), true);
    }
    let is_boundary = |at: &usize| !is_text || value.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (0..=TEXT_BYTES_MAX).rev().find(is_boundary).unwrap_or(0);
    (value[..end].to_vec(), false)
}

/// The beginning of a value, raised so that it is above all of it; `None` where no beginning can be raised.
fn raised(value: &[u8], is_text: bool) -> Option<(Vec<u8>, bool)> {
    let (mut bytes, is_exact) = cut(value, is_text);
    if is_exact {
        return Some((bytes, true));
    }
    if is_text {
        let mut text = String::from_utf8(bytes).ok()?;
        while let Some(last) = text.pop() {
            if let Some(next) = next_char(last) {
                text.push(next);
                return Some((text.into_bytes(), false));
            }
        }
        return None;
    }
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some((bytes, false));
        }
    }
    None
}

/// The character after this one; UTF-8 sorts as characters do.
fn next_char(character: char) -> Option<char> {
    match character {
        // Surrogates are no characters.
        '\u{d7ff}' => Some('\u{e000}'),
        other => char::from_u32(u32::from(other) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_texts(texts: &[&str]) -> [Option<(String, bool)>; 2] {
        let mut statistics = Statistics::default();
        texts.iter().for_each(|text| statistics.bytes(text.as_bytes()));
        let text = |(bytes, is_exact)| (String::from_utf8(bytes).unwrap(), is_exact);
        statistics.bounds(ColumnType::Text).map(|bound| bound.map(text))
    }

    #[test]
    fn long_texts_are_cut_to_a_lower_and_raised_to_an_upper_bound() {
        assert_eq!(of_texts(&[]), [None, None]);
        let some = |text: &str, is_exact| Some((text.to_owned(), is_exact));
        assert_eq!(of_texts(&["b", "", "ä"]), [some("", true), some("ä", true)]);
        let (a, b) = ("a".repeat(64), "a".repeat(63) + "b");
        assert_eq!(of_texts(&[&a]), [some(&a, true), some(&a, true)]);
        assert_eq!(of_texts(&[&(a.clone() + "c")]), [some(&a, false), some(&b, false)]);
        // A character is not cut in two, and what cannot be raised is left out.
        let wide = "a".repeat(63) + "ä" + "x";
        assert_eq!(of_texts(&[&wide]), [some(&"a".repeat(63), false), some(&("a".repeat(62) + "b"), false)]);
        let highest = "a".repeat(4) + &"\u{10ffff}".repeat(20);
        assert_eq!(of_texts(&[&highest])[1], some("aaab", false));
        assert_eq!(of_texts(&[&"\u{10ffff}".repeat(17)])[1], None);
        let surrogate = "a".repeat(61) + "\u{d7ff}\u{d7ff}";
        assert_eq!(of_texts(&[&surrogate])[1], some(&("a".repeat(61) + "\u{e000}"), false));
    }

    #[test]
    fn bytes_are_raised_by_the_last_that_can_be() {
        let mut statistics = Statistics::default();
        statistics.bytes(&[[0xfe].as_slice(), &[0xff; 70]].concat());
        let raised = statistics.bounds(ColumnType::Bytes)[1].clone();
        assert_eq!(raised, Some((vec![0xff], false)));
        statistics.bytes(&[0xff; 70]);
        let [min, max] = statistics.bounds(ColumnType::Bytes);
        assert_eq!((min.map(|(bytes, is_exact)| (bytes.len(), is_exact)), max), (Some((64, false)), None));
    }

    #[test]
    fn numbers_compare_by_their_sign_and_what_is_no_number_is_left_out() {
        let mut unsigned = Statistics::default();
        unsigned.unsigned([1_u64 << 63, 5].into_iter());
        unsigned.unsigned([7_u32].into_iter());
        let [min, max] = unsigned.bounds(ColumnType::UInt64);
        assert_eq!([min, max], [5_u64, 1 << 63].map(|value| Some((value.to_le_bytes().to_vec(), true))));
        let mut signed = Statistics::default();
        signed.signed([-3_i32, 2].into_iter());
        let bounds = [-3_i32, 2].map(|value| Some((value.to_le_bytes().to_vec(), true)));
        assert_eq!(signed.bounds(ColumnType::Int32), bounds);
        let mut floats = Statistics::default();
        floats.floats([f64::NAN].into_iter());
        assert_eq!(floats.bounds(ColumnType::Float64), [None, None]);
        floats.floats([0.0, f64::NAN, -0.0].into_iter());
        let bounds = [-0.0_f64, 0.0].map(|value| Some((value.to_le_bytes().to_vec(), true)));
        assert_eq!(floats.bounds(ColumnType::Float64), bounds);
    }
}
