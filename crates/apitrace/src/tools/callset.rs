//! Call sets: call numbers and kinds, as written in `--calls`.

use crate::lanes::flags::CallFlags;
use crate::tools::callset_parse;

pub use crate::tools::call_range::{CallRange, CallSetError};

/// A set of calls: what `--calls` selects, one or several times.
///
/// The grammar is that of apitrace 11.1: items separated by commas, each `@FILE` or ranges separated by blanks or
/// nothing; a range is a kind (`frame`, `rendertarget` or `fbo`, `render` or `draw`), or `*`, `N`, `N-` or `N-M` and
/// then `/STEP` or `/KIND`. Ranges may also be written as everywhere in anytrace: `N..M` (without M), `N..`, `..M`,
/// `N..=M` and `N+COUNT`.
///
/// ```
/// use anytrace_apitrace::tools::callset::CallSet;
/// use anytrace_apitrace::tools::flags::CallFlags;
///
/// let set = CallSet::parse(["2-7/2", "frame"], &mut |_| unreachable!()).unwrap();
/// assert!(set.has(4, CallFlags::default()) && !set.has(5, CallFlags::default()));
/// assert!(set.has(100, CallFlags::END_FRAME));
/// assert_eq!(CallSet::parse(["3-x"], &mut |_| unreachable!()).unwrap_err().to_string(),
///     "3-x: character 3: expected frame, rendertarget, fbo, render or draw, found x");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSet {
    ranges: Vec<CallRange>,
    /// Single calls: one bit each, from number 0 on.
    numbers: Box<[u64]>,
    last: u64,
}

impl Default for CallSet {
    /// All calls.
    fn default() -> Self {
        Self { ranges: vec![CallRange::ALL], numbers: Box::default(), last: u64::MAX }
    }
}

impl CallSet {
    /// Parses and unites sets. `read` reads the files that `@FILE` names.
    ///
    /// # Errors
    /// The first place that does not fit the grammar; files that cannot be read.
    pub fn parse<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        read: &mut dyn FnMut(&str) -> std::io::Result<String>,
    ) -> Result<Self, CallSetError> {
        let mut set = Self { ranges: Vec::new(), numbers: Box::default(), last: 0 };
        for text in texts {
            callset_parse::parse(text, read, &mut |range| set.add(range))?;
        }
        Ok(set)
    }

    /// The calls of these numbers: one bit each, from number 0 on, the lowest bit of each word first.
    pub(crate) fn of_numbers(words: &[u64]) -> Self {
        let last = words.iter().rposition(|word| *word != 0).map_or(0, |at| {
            let word = words.get(at).copied().unwrap_or(1);
            at as u64 * 64 + u64::from(63 - word.leading_zeros())
        });
        Self { ranges: Vec::new(), numbers: words.into(), last }
    }

    #[inline]
    fn has_number(&self, number: u64) -> bool {
        // Numbers past the end of the bits are simply not in the set.
        let word = usize::try_from(number / 64).ok().and_then(|at| self.numbers.get(at));
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    fn add(&mut self, range: CallRange) {
        // An empty range must not raise `last`, which decides when reading may stop.
        if range.start <= range.stop {
            self.last = self.last.max(range.stop);
            self.ranges.push(range);
        }
    }

    /// True when a call with these flags is in the set.
    #[inline]
    pub fn has(&self, number: u64, flags: CallFlags) -> bool {
        // The bound answers most questions of a long trace without a walk over the ranges.
        number <= self.last && (self.ranges.iter().any(|range| range.has(number, flags)) || self.has_number(number))
    }

    /// No call below this number is in the set; `None` for an empty set.
    pub fn first(&self) -> Option<u64> {
        self.ranges.iter().map(|range| range.start).min()
    }

    /// True when all calls with these flags, from this number on, are in the set.
    pub fn has_all_from(&self, number: u64, flags: CallFlags) -> bool {
        self.ranges.iter().any(|range| range.stop == u64::MAX && range.step == 1 && range.has(number, flags))
    }

    /// No call above this number is in the set.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// True when every call is in the set.
    pub fn is_all(&self) -> bool {
        self.ranges.contains(&CallRange::ALL)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> Result<CallSet, String> {
        let mut read = |name: &str| match name {
            "five" => Ok("5\n".to_owned()),
            "bare" => Ok("5".to_owned()),
            "many" => Ok("5,7\n9-11 draw\n".to_owned()),
            _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        CallSet::parse([text], &mut read).map_err(|error| error.to_string())
    }

    fn numbers(text: &str) -> Vec<u64> {
        let set = set(text).unwrap();
        (0..60).filter(|n| set.has(*n, if n % 10 == 9 { CallFlags::RENDER } else { CallFlags::default() })).collect()
    }

    #[test]
    fn what_the_format_s_own_tool_takes_is_taken() {
        assert_eq!(numbers("4"), [4]);
        assert_eq!(numbers("0 2,4,5"), [0, 2, 4, 5]);
        assert_eq!(numbers("0-10/3"), [0, 3, 6, 9]);
        assert_eq!(numbers("5-30/draw"), [9, 19, 29]);
        assert_eq!(numbers("1 -\t3 / 2"), [1, 3]);
        assert_eq!(numbers(",,3,"), [3]);
        assert!(numbers("").is_empty());
        assert!(numbers("10-5").is_empty());
        assert_eq!(numbers("frame3"), [3]);
        assert_eq!(numbers("3draw"), [3, 9, 19, 29, 39, 49, 59]);
        assert_eq!(numbers("57-").len(), 3);
        assert_eq!(numbers("*3").len(), 60);
    }

    #[test]
    fn files_hold_sets_with_or_without_a_line_end() {
        assert_eq!(numbers("@five,8"), [5, 8]);
        assert_eq!(numbers("@bare"), [5]);
        assert_eq!(numbers("@many"), [5, 7, 9, 10, 11, 19, 29, 39, 49, 59]);
        assert_eq!(set("@none").unwrap_err(), "@none: entity not found");
        assert!(set(" @five").is_err() && set("5 @five").is_err());
    }

    #[test]
    fn single_calls_are_bits() {
        let set = CallSet::of_numbers(&[0b1000, 0, 1 << 63, 0]);
        assert_eq!((0..400).filter(|n| set.has(*n, CallFlags::default())).collect::<Vec<_>>(), [3, 191]);
        assert_eq!((set.last(), CallSet::of_numbers(&[]).last(), set.is_all()), (191, 0, false));
    }

    #[test]
    fn errors_name_their_place() {
        for (text, message) in [
            ("xyz", "xyz: character 1: expected frame, rendertarget, fbo, render or draw, found xyz"),
            ("4,3-x", "4,3-x: character 5: expected frame, rendertarget, fbo, render or draw, found x"),
            ("1;2", "1;2: character 2: expected a digit or *, found ;"),
            ("-5", "-5: character 1: expected a digit or *, found -"),
            ("FRAME", "FRAME: character 1: expected a digit or *, found F"),
            ("draw/2", "draw/2: character 5: expected a digit or *, found /"),
            ("3/", "3/: character 3: expected a step or a kind of call, found the end"),
            ("*/0", "*/0: character 3: expected a step of at least 1, found 0"),
            (
                "99999999999999999999",
                "99999999999999999999: character 1: expected a number below 2^64, found 99999999999999999999",
            ),
        ] {
            assert_eq!(set(text).unwrap_err(), message);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-0-9a-z*/,@ \u{e9}]{0,12}") {
            let _ = set(&text);
        }

        #[test]
        fn a_range_is_what_counting_says(start in 0..50_u64, length in 0..50_u64, step in 1..7_u64) {
            let stop = start + length;
            let found = numbers(&format!("{start}-{stop}/{step}"));
            let counted: Vec<u64> = (start..=stop).step_by(step as usize).filter(|n| *n < 60).collect();
            prop_assert_eq!(found, counted);
        }
    }
}
