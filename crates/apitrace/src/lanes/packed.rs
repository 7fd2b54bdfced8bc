//! Constant tables of names with a value each, as text: `src/tables/NAME.txt`, written by `cargo xtask tables`.

use std::cmp::Ordering;

/// Lines `key=value` of ASCII, sorted by key; each key once.
pub(crate) type Packed = &'static str;

/// A key in a table, and its value.
pub(crate) fn find(table: Packed, key: &[u8]) -> Option<(&'static str, &'static str)> {
    // Both are starts of lines, or the end. The key is in no line before `low`, and in none from `high` on.
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let before = table.as_bytes().get(low..middle)?;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(low, |at| low + at + 1);
        let line = table.get(start..)?.lines().next()?;
        let (known, value) = line.split_once('=')?;
        match known.as_bytes().cmp(key) {
            Ordering::Equal => return Some((known, value)),
            Ordering::Greater => high = start,
            Ordering::Less => low = start + table.get(start..)?.find('\n')? + 1,
        }
    }
    None
}

/// All keys of a table, provided that they are sorted and each can be found.
#[cfg(test)]
pub(crate) fn checked_keys(table: Packed) -> Vec<&'static str> {
    assert!(table.is_ascii() && table.ends_with('\n'));
    let keys: Vec<_> = table.lines().map(|line| line.split_once('=').unwrap().0).collect();
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert!(keys.iter().all(|key| find(table, key.as_bytes()).unwrap().0 == *key));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Packed = "b=1\nd=two\nf=\nh=8\nj=9\nl=10\n";

    #[test]
    fn existing_keys_are_found_and_no_others() {
        assert_eq!(checked_keys(FEW), ["b", "d", "f", "h", "j", "l"]);
        assert_eq!(find(FEW, b"d"), Some(("d", "two")));
        assert_eq!(find(FEW, b"f"), Some(("f", "")));
        for absent in ["", "a", "c", "dd", "e", "g", "hj", "k", "m", "b=1", "b=1\nd"] {
            assert_eq!(find(FEW, absent.as_bytes()), None, "{absent}");
            assert_eq!(find("", absent.as_bytes()), None);
        }
        assert_eq!(find(FEW, &[0xff]), None);
    }
}
