//! Constant tables of names with a value each, several per source line.

/// Lines of words `key=value` with a space between; keys are sorted over all lines.
pub(crate) type Packed = &'static [&'static str];

/// A key in a table, and its value.
pub(crate) fn find(table: Packed, key: &[u8]) -> Option<(&'static str, &'static str)> {
    // Only the last line whose first key is not above the wanted one can contain it.
    let after = table.partition_point(|line| entries(line).next().is_some_and(|(first, _)| first.as_bytes() <= key));
    let line = table.get(after.checked_sub(1)?)?;
    entries(line).find(|(known, _)| known.as_bytes() == key)
}

/// The entries of a line.
fn entries(line: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    line.split(' ').filter_map(|word| word.split_once('='))
}

/// All keys of a table, provided that they are sorted and each can be found.
#[cfg(test)]
pub(crate) fn checked_keys(table: Packed) -> Vec<&'static str> {
    let words = table.iter().flat_map(|line| line.split(' '));
    let keys: Vec<_> = words.map(|word| word.split_once('=').unwrap().0).collect();
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert!(keys.iter().all(|key| find(table, key.as_bytes()).unwrap().0 == *key));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Packed = &["b=1 d=two", "f=", "h=8 j=9 l=10"];

    #[test]
    fn existing_keys_are_found_and_no_others() {
        assert_eq!(checked_keys(FEW), ["b", "d", "f", "h", "j", "l"]);
        assert_eq!(find(FEW, b"d"), Some(("d", "two")));
        assert_eq!(find(FEW, b"f"), Some(("f", "")));
        for absent in ["", "a", "c", "dd", "e", "g", "hj", "k", "m", "b=1", "b=1 d"] {
            assert_eq!(find(FEW, absent.as_bytes()), None, "{absent}");
            assert_eq!(find(&[], absent.as_bytes()), None);
        }
        assert_eq!(find(FEW, &[0xff]), None);
    }
}
