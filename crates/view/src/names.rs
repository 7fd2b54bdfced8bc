//! The names of all files: the same name has the same number, and so the same color, in each.

use std::sync::{Arc, PoisonError, RwLock};

use anytrace_core::hash::Map;
use anytrace_core::span::Location;

/// A name.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    /// Its text; bytes that are not UTF-8 are replaced.
    pub(crate) text: Arc<str>,
    /// Where it is in the source, if the trace or its symbols say so.
    pub(crate) location: Option<Location>,
}

/// The names so far, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    list: Vec<Name>,
    numbers: Map<Arc<str>, u32>,
}

impl Names {
    /// The number of a name; a new one if it is new.
    pub(crate) fn number(&self, bytes: &[u8], location: Option<&Location>) -> u32 {
        let text: Arc<str> = String::from_utf8_lossy(bytes).into();
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = table.numbers.get(&text) {
            return *number;
        }
        // The last number means none.
        let number = u32::try_from(table.list.len()).unwrap_or(u32::MAX).min(u32::MAX - 1);
        table.list.push(Name { text: Arc::clone(&text), location: location.cloned() });
        table.numbers.insert(text, number);
        number
    }

    /// A name.
    pub(crate) fn get(&self, number: u32) -> Option<Name> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.list.get(number as usize).cloned()
    }

    /// The text of a name; empty where there is none.
    pub(crate) fn text(&self, number: u32) -> Arc<str> {
        self.get(number).map_or_else(|| Arc::from(""), |name| name.text)
    }

    /// The texts from a number on.
    pub(crate) fn texts_from(&self, first: usize) -> Vec<Arc<str>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.list.get(first..).unwrap_or_default().iter().map(|name| Arc::clone(&name.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_number() {
        let names = Names::default();
        assert_eq!((names.number(b"a", None), names.number(b"\xff", None), names.number(b"a", None)), (0, 1, 0));
        assert_eq!(names.texts_from(1).iter().map(|text| text.as_ref()).collect::<Vec<_>>(), ["\u{fffd}"]);
        assert!(names.texts_from(9).is_empty());
    }
}
