//! Caches the names of enumeration values: a signature may list thousands, so each name is searched once.

use std::collections::HashMap;

use crate::wire::record::Signed;
use crate::wire::scan::Scan;

/// Most values remembered at a time.
const NAMES_MAX: usize = 1 << 16;

/// Where a name ends in its definition, and its length.
type Place = (usize, usize);

/// Where in their definitions the names of values seen so far are.
#[derive(Debug, Default)]
pub(crate) struct EnumNames {
    /// By slot and value; `None` for values without a name.
    found: HashMap<(u32, Option<Signed>), Option<Place>>,
}

impl EnumNames {
    /// Name of a value in the definition of a slot. Before version 3 the value is the signature's.
    pub(crate) fn name<'a>(&mut self, slot: u32, definition: &'a [u8], value: Option<Signed>) -> Option<&'a [u8]> {
        if self.found.len() >= NAMES_MAX {
            self.found.clear();
        }
        let place = *self.found.entry((slot, value)).or_insert_with(|| find(definition, value));
        let (end, length) = place?;
        definition.get(end.checked_sub(length)?..end)
    }
}

/// End and length of the first name of a value.
fn find(definition: &[u8], value: Option<Signed>) -> Option<Place> {
    let mut scan = Scan::new(definition);
    let Some(value) = value else {
        let name = scan.string().ok()?;
        return Some((scan.at, name.len()));
    };
    let count = scan.uint().ok()?;
    for _ in 0..count {
        let name = scan.string().ok()?;
        let end = scan.at;
        if scan.signed().ok()?.value() == value.value() {
            return Some((end, name.len()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_value_counts_and_unknown_values_have_none() {
        let definition = b"\x03\x01A\x04\x05\x02BB\x04\x05\x01C\x03\x01";
        let mut names = EnumNames::default();
        let value = |is_negative, magnitude| Some(Signed { is_negative, magnitude });
        for _ in 0..2 {
            assert_eq!(names.name(0, definition, value(false, 5)), Some(&b"A"[..]));
            assert_eq!(names.name(0, definition, value(true, 1)), Some(&b"C"[..]));
            assert_eq!(names.name(0, definition, value(false, 1)), None);
            assert_eq!(names.name(1, b"\x01Z\x04\x01", None), Some(&b"Z"[..]));
        }
    }
}
