//! Options that only some formats have: each format declares its own, and the values that were given travel by name.
//!
//! The command line makes its arguments, help, completions and the book's table from what [`crate::Format::options`]
//! returns, so a new format's options need no change anywhere else.

use std::ops::Range;

use crate::{Error, NumberSet};

/// Where an option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptionUse {
    /// When a trace is opened: [`crate::OpenOptions::own`].
    Read,
    /// When records are selected: [`crate::Selection::own`].
    Select,
    /// When a trace is written: [`crate::TargetOptions::own`].
    Write,
}

/// The values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValues {
    /// None: the option is given or not.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An integer, negative ones included.
    Number,
    /// A set of numbers from 0: ranges with steps, and these words, which choose among what the numbers count.
    Numbers(&'static [&'static str]),
}

/// One option of one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatOption {
    /// Without dashes: `pointer-width`. The same name means the same in every format that has it.
    pub name: &'static str,
    /// Earlier spellings, which are accepted and not shown.
    pub aliases: &'static [&'static str],
    /// Where it takes effect.
    pub used_to: OptionUse,
    /// What it takes.
    pub values: OptionValues,
    /// How help shows the value: `N`, `SET`; empty for a flag.
    pub value_name: &'static str,
    /// One line of help, without a full stop and without the format's name.
    pub help: &'static str,
}

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A flag that was given.
    Flag,
    /// A word.
    Word(String),
    /// A number.
    Number(i64),
    /// A set of numbers.
    Numbers(NumberSet),
}

impl From<&str> for Setting {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl From<i64> for Setting {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<NumberSet> for Setting {
    fn from(numbers: NumberSet) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<Range<u64>> for Setting {
    fn from(range: Range<u64>) -> Self {
        NumberSet::from(range).into()
    }
}

/// Options of single formats and their values, by name.
///
/// ```
/// use anytrace_core::Settings;
///
/// let own = Settings::default().with("radix", "dec").with("level", 3);
/// assert_eq!((own.word("radix"), own.number("level"), own.flag("other")), (Some("dec"), Some(3), false));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(&'static str, Setting)>);

impl Settings {
    /// Sets a value; an earlier one of the same name is replaced.
    pub fn set(&mut self, name: &'static str, value: impl Into<Setting>) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value.into()));
    }

    /// [`Self::set`], for building.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Setting>) -> Self {
        self.set(name, value);
        self
    }

    /// Gives a flag.
    #[must_use]
    pub fn with_flag(self, name: &'static str) -> Self {
        self.with(name, Setting::Flag)
    }

    /// True when nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the options that were given, in the order given.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// True when a flag was given.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The value of an option that takes a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Setting::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The value of an option that takes a number.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Setting::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The value of an option that takes a set of numbers.
    pub fn numbers(&self, name: &str) -> Option<&NumberSet> {
        match self.get(name)? {
            Setting::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Refuses what a format did not declare for this use, and values that are none of an option's.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming the option.
    pub fn only(&self, format: &str, options: &[FormatOption], used_to: OptionUse) -> Result<(), Error> {
        for (name, value) in &self.0 {
            let Some(option) = options.iter().find(|option| option.name == *name && option.used_to == used_to) else {
                return Err(means_nothing(name, format));
            };
            if !option.values.accept(value) {
                return Err(Error::usage(format!("--{name}: invalid value {value:?}")));
            }
        }
        Ok(())
    }
}

impl OptionValues {
    fn accept(self, value: &Setting) -> bool {
        match (self, value) {
            (Self::OneOf(words), Setting::Word(word)) => words.contains(&word.as_str()),
            (Self::Numbers(words), Setting::Numbers(set)) => set.words().all(|word| words.contains(&word)),
            (Self::Flag, Setting::Flag) | (Self::Number, Setting::Number(_)) => true,
            _ => false,
        }
    }
}

/// The complaint about an option that a format does not have.
pub(crate) fn means_nothing(name: &str, format: &str) -> Error {
    Error::usage(format!("--{name} does not apply to {format} traces"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: FormatOption = FormatOption {
        name: "base",
        aliases: &[],
        used_to: OptionUse::Read,
        values: OptionValues::OneOf(&["two", "ten"]),
        value_name: "two|ten",
        help: "Base of numbers",
    };

    #[test]
    fn an_option_is_refused_by_name_where_the_format_does_not_declare_it_for_this_use() {
        let own = Settings::default().with("base", "ten");
        assert!(own.only("x", &[BASE], OptionUse::Read).is_ok());
        let error = own.only("x", &[BASE], OptionUse::Write).unwrap_err();
        assert_eq!(error.to_string(), "--base does not apply to x traces");
        assert!(own.with("other", 1).only("x", &[BASE], OptionUse::Read).is_err());
    }

    #[test]
    fn a_value_that_an_option_does_not_take_is_refused() {
        for value in [Setting::Flag, Setting::from("six"), Setting::from(10)] {
            let own = Settings::default().with("base", value);
            assert!(own.only("x", &[BASE], OptionUse::Read).is_err());
        }
    }

    #[test]
    fn the_last_value_counts() {
        let own = Settings::default().with("base", "two").with("base", "ten").with("part", 3..5);
        assert_eq!((own.word("base"), own.number("part")), (Some("ten"), None));
        assert_eq!(own.numbers("part"), Some(&NumberSet::from(3..5)));
        assert_eq!(own.names().collect::<Vec<_>>(), ["base", "part"]);
    }
}
