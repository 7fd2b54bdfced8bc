//! The names of functions in the outputs of the tools.

use std::collections::BTreeMap;

use anytrace_core::span::Symbols;

/// Most names stored for one trace: YAML traces have their own.
const NAMES_MAX: usize = 1 << 20;

/// Names from a map or from the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<u32, String>);

impl Names {
    /// Stores the name that a record has, if it is more than the function's number.
    #[inline]
    pub(crate) fn note(&mut self, function: u32, name: &[u8]) {
        if !name.is_empty() {
            self.note_new(function, name);
        }
    }

    #[cold]
    fn note_new(&mut self, function: u32, name: &[u8]) {
        if self.0.len() >= NAMES_MAX || self.0.contains_key(&function) {
            return;
        }
        let name = String::from_utf8_lossy(name);
        let digits = name.strip_prefix('#').unwrap_or(&name);
        if digits.parse() != Ok(i64::from(function)) {
            self.0.insert(function, name.into_owned());
        }
    }

    /// Adds the names of another part of the trace.
    pub(crate) fn merge(&mut self, other: Self) {
        for (function, name) in other.0 {
            if self.0.len() < NAMES_MAX {
                self.0.entry(function).or_insert(name);
            }
        }
    }

    /// The name of a function: from the map, else from the trace, else `#ID`.
    pub fn of(&self, function: u32, symbols: Option<&dyn Symbols>) -> String {
        if let Some((name, _)) = symbols.and_then(|symbols| symbols.symbol(u64::from(function))) {
            return name.to_owned();
        }
        self.0.get(&function).cloned().unwrap_or_else(|| format!("#{}", function.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_no_names() {
        let mut names = Names::default();
        names.note(1, b"1");
        names.note(2, b"#2");
        names.note(3, b"main");
        names.note(3, b"other");
        assert_eq!(
            (names.of(1, None), names.of(2, None), names.of(3, None)),
            ("#1".into(), "#2".into(), "main".into())
        );
        assert_eq!(names.of(u32::MAX, None), "#-1", "the peer prints ids as signed");
    }
}
