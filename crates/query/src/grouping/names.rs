//! The names of a partition, and their numbers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anytrace_core::hash::Map;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::error::{DataFusionError, Result};

/// The names of each partition and column.
#[derive(Debug)]
pub(super) struct Names(Vec<Vec<Mutex<Numbered>>>);

impl Names {
    pub(super) fn new(partitions: usize, columns: usize) -> Self {
        let of = |_| (0..columns).map(|_| Mutex::default()).collect();
        Self((0..partitions).map(of).collect())
    }

    /// Those of a column of a partition.
    pub(super) fn of(&self, partition: usize, column: usize) -> Result<MutexGuard<'_, Numbered>> {
        let names = self.0.get(partition).and_then(|columns| columns.get(column));
        let missing = || DataFusionError::Internal(format!("no names of column {column} in partition {partition}"));
        Ok(names.ok_or_else(missing)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Names, numbered in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    numbers: Map<Arc<str>, i32>,
    names: Vec<Arc<str>>,
    /// The last dictionary, and the number of each of its names.
    last: Option<StringArray>,
    table: Vec<i32>,
    /// The dictionary's own numbers are the same.
    is_same: bool,
    /// All names as an array, as long as there are no more.
    array: Option<ArrayRef>,
}

impl Numbered {
    /// The numbers of a column of names.
    pub(super) fn numbers(&mut self, column: &dyn Array) -> Result<Int32Array> {
        let names = column.as_dictionary::<Int32Type>();
        self.learn(names.values().as_string::<i32>())?;
        let has_null_names = names.values().null_count() > 0;
        if has_null_names {
            // A key may be there, and its name not.
            let number = |row: usize| {
                let key = names.key(row).filter(|key| names.values().is_valid(*key))?;
                self.table.get(key).copied()
            };
            return Ok((0..names.len()).map(number).collect());
        }
        if self.is_same {
            return Ok(names.keys().clone());
        }
        // Keys of rows that are null may be anything.
        let number = |key: i32| usize::try_from(key).ok().and_then(|key| self.table.get(key)).copied().unwrap_or(0);
        Ok(names.keys().unary(number))
    }

    /// Numbers the names of a dictionary. Dictionaries of a scan begin with the names of those before.
    fn learn(&mut self, dictionary: &StringArray) -> Result<()> {
        let known = match &self.last {
            Some(last) if is_beginning(last, dictionary) => last.len(),
            _ => 0,
        };
        if known == dictionary.len() && known == self.table.len() {
            return Ok(());
        }
        self.table.truncate(known);
        if known == 0 {
            self.is_same = true;
        }
        for at in known..dictionary.len() {
            let number = self.number(if dictionary.is_null(at) { "" } else { dictionary.value(at) })?;
            self.is_same &= usize::try_from(number).is_ok_and(|number| number == at);
            self.table.push(number);
        }
        self.last = Some(dictionary.clone());
        Ok(())
    }

    fn number(&mut self, name: &str) -> Result<i32> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let too_many = |_| DataFusionError::ResourcesExhausted("more than 2,147,483,647 names".to_owned());
        let number = i32::try_from(self.names.len()).map_err(too_many)?;
        let name: Arc<str> = name.into();
        self.numbers.insert(Arc::clone(&name), number);
        self.names.push(name);
        self.array = None;
        Ok(number)
    }

    /// The names of a column of numbers.
    pub(super) fn names(&mut self, numbers: &dyn Array) -> Result<ArrayRef> {
        let numbers = numbers.as_primitive::<Int32Type>();
        let names = &self.names;
        if numbers.len() < names.len() {
            // Whoever has few of many names gets these only: each batch of a grouping with many groups is such a one.
            let name =
                |number: i32| usize::try_from(number).ok().and_then(|number| names.get(number)).map(AsRef::as_ref);
            let texts = StringArray::from_iter_values(numbers.iter().map(|number| number.and_then(name).unwrap_or("")));
            let rows = (0_i32..).zip(numbers.iter()).map(|(row, number)| number.map(|_| row));
            return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(rows.collect(), Arc::new(texts))?));
        }
        let make = || -> ArrayRef { Arc::new(StringArray::from_iter_values(names.iter())) };
        let values = Arc::clone(self.array.get_or_insert_with(make));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(numbers.clone(), values)?))
    }
}

/// True if a dictionary begins with all names of another one.
fn is_beginning(one: &StringArray, of: &StringArray) -> bool {
    if one.len() > of.len() || one.null_count() > 0 || of.null_count() > 0 {
        return false;
    }
    let (own, all) = (one.value_offsets(), of.value_offsets());
    let is_same_place = own.as_ptr() == all.as_ptr() && one.value_data().as_ptr() == of.value_data().as_ptr();
    let (Some(first), Some(first_of_all)) = (own.first(), all.first()) else { return false };
    is_same_place
        || own.iter().zip(all).all(|(one_end, end)| one_end - first == end - first_of_all)
            && bytes(one, one.len()) == bytes(of, one.len())
}

/// The bytes of the first names.
fn bytes(names: &StringArray, count: usize) -> Option<&[u8]> {
    let (from, to) = (names.value_offsets().first()?, names.value_offsets().get(count)?);
    names.value_data().get(usize::try_from(*from).ok()?..usize::try_from(*to).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(names: &[Option<&str>], keys: &[Option<i32>]) -> DictionaryArray<Int32Type> {
        let values: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
        DictionaryArray::try_new(Int32Array::from(keys.to_vec()), values).unwrap()
    }

    fn texts(array: &ArrayRef) -> Vec<Option<String>> {
        let names = array.as_dictionary::<Int32Type>();
        let text = |row| names.key(row).map(|key| names.values().as_string::<i32>().value(key).to_owned());
        (0..names.len()).map(text).collect()
    }

    #[test]
    fn names_keep_their_numbers_however_dictionaries_change() {
        let mut known = Numbered::default();
        let all = [
            column(&[Some("a"), Some("b")], &[Some(1), None, Some(0)]),
            column(&[Some("a"), Some("b"), Some("c")], &[Some(2), Some(1)]),
            column(&[Some("c"), Some("d"), Some("a")], &[Some(0), Some(1), Some(2)]),
            column(&[Some("a"), Some("bb")], &[Some(1), Some(0)]),
            column(&[None, Some("d")], &[Some(0), Some(1), None]),
            column(&[Some("a"), Some("b")], &[Some(0), Some(1)]),
        ];
        let found: Vec<Vec<Option<i32>>> =
            all.iter().map(|column| known.numbers(column).unwrap().iter().collect()).collect();
        let expected = [
            vec![Some(1), None, Some(0)],
            vec![Some(2), Some(1)],
            vec![Some(2), Some(3), Some(0)],
            vec![Some(4), Some(0)],
            vec![None, Some(3), None],
            vec![Some(0), Some(1)],
        ];
        assert_eq!(found, expected);
        let back = known.names(&Int32Array::from(vec![Some(4), None, Some(3), Some(0)])).unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(texts(&back), [text("bb"), None, text("d"), text("a")]);
        // A part of them has no others, and all of them share an array.
        let few = known.names(&Int32Array::from(vec![Some(3), None])).unwrap();
        assert_eq!((texts(&few), few.as_dictionary::<Int32Type>().values().len()), (vec![text("d"), None], 2));
        let all = [0, 1, 2, 3, 4, 0].map(Some).to_vec();
        let values = |known: &mut Numbered| {
            let names = known.names(&Int32Array::from(all.clone())).unwrap();
            Arc::clone(names.as_dictionary::<Int32Type>().values())
        };
        assert!(Arc::ptr_eq(&values(&mut known), &values(&mut known)));
    }

    #[test]
    fn dictionaries_that_grow_are_read_once() {
        let first = StringArray::from(vec!["a", "bc"]);
        let cases = [
            (vec!["a", "bc", "d"], true),
            (vec!["a", "bc"], true),
            (vec!["a"], false),
            (vec!["ab", "c"], false),
            (vec!["a", "bd"], false),
        ];
        for (names, expected) in cases {
            assert_eq!(is_beginning(&first, &StringArray::from(names.clone())), expected, "{names:?}");
        }
        let of_slice = StringArray::from(vec!["x", "a", "bc", "d"]).slice(1, 3);
        assert!(is_beginning(&first, &of_slice));
    }
}
