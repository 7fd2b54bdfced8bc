//! Values of options: numbers, sizes, ranges, times.

use std::num::NonZeroU64;

use anytrace_analysis::threshold::Threshold;
use anytrace_core::{NumberSet, TimeBound};

/// How ranges are written; the help of every option that takes one has this text.
pub(crate) const RANGE: &str = "A..B (without B), A..=B or A-B (with B), A+N, A.., ..B or N";

/// The help of `--top`, the same in all verbs.
pub(crate) const TOP: &str = "Show at most N rows; 0 shows all";

/// The value of `--top`: 0 is all rows.
pub(crate) fn rows(text: &str) -> Result<usize, String> {
    number(text).map(|rows| if rows == 0 { usize::MAX } else { usize::try_from(rows).unwrap_or(usize::MAX) })
}

pub(crate) fn byte_count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1_u64),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number with an optional suffix k, M or G".to_owned())?;
    number.checked_mul(factor).filter(|n| *n > 0).ok_or_else(|| "expected 1 to 2^64-1 bytes".to_owned())
}

pub(super) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("expected an unsigned integer, found {text:?}"))
}

/// Thread ids are unsigned on most systems; XRay's are signed 32-bit and may be given so.
pub(super) fn thread_id(text: &str) -> Result<u64, String> {
    match text.parse::<i32>() {
        Ok(id) if id < 0 => Ok(u64::from(id.cast_unsigned())),
        _ => number(text),
    }
}

/// Splits a range into its start and its end: `A..B`, `A-B`, `A+N`; nothing else.
fn ends(text: &str) -> Option<(&str, Ends<'_>)> {
    if let Some((from, to)) = text.split_once("..") {
        return Some((from, to.strip_prefix('=').map_or(Ends::Before(to), Ends::With)));
    }
    let plus = text.split_once('+').map(|(from, count)| (from, Ends::After(count)));
    plus.or_else(|| text.split_once('-').map(|(from, to)| (from, Ends::With(to))))
}

/// The second half of a range.
enum Ends<'t> {
    /// `..B`: before B; nothing means no end.
    Before(&'t str),
    /// `-B` and `..=B`: with B.
    With(&'t str),
    /// `+N`: N further.
    After(&'t str),
}

pub(super) fn number_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    range_of(text, number)
}

/// A range of what `read` makes numbers of; without an end it ends with the greatest.
pub(crate) fn range_of(
    text: &str,
    number: impl Fn(&str) -> Result<u64, String>,
) -> Result<std::ops::Range<u64>, String> {
    let past = |last: u64| last.checked_add(1).ok_or("too large");
    let Some((from, to)) = ends(text) else {
        let at = number(text)?;
        return Ok(at..past(at)?);
    };
    let start = if from.is_empty() { 0 } else { number(from)? };
    let end = match to {
        Ends::Before("") | Ends::With("") => u64::MAX,
        Ends::Before(end) => number(end)?,
        Ends::With(last) => past(number(last)?)?,
        Ends::After(count) => start.checked_add(number(count)?).ok_or("too large")?,
    };
    if start > end {
        return Err(format!("{text} is empty: it ends before it starts"));
    }
    Ok(start..end)
}

/// Ranges separated by commas, each with a step or one of the words, or `*` for all: `1,3,10-20,30../2,*/frame`. A word
/// alone chooses among all.
pub(super) fn number_set(text: &str, words: &[&'static str]) -> Result<NumberSet, String> {
    let mut set = NumberSet::default();
    let word = |text: &str| words.iter().copied().find(|word| *word == text);
    for item in text.split(',') {
        if let Some(word) = word(item) {
            set.add_word(0..u64::MAX, word);
            continue;
        }
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let range = if range == "*" { 0..u64::MAX } else { number_range(range)? };
        if let Some(word) = word(step) {
            set.add_word(range, word);
            continue;
        }
        let step = NonZeroU64::new(number(step)?).ok_or_else(|| format!("{item}: a step is at least 1"))?;
        set.add(range, step);
    }
    Ok(set)
}

pub(super) fn time_range(text: &str) -> Result<(TimeBound, TimeBound), String> {
    let (from, to) = ends(text).unwrap_or((text, Ends::With(text)));
    if text.is_empty() {
        return Err(format!("expected {RANGE}"));
    }
    let start = time_bound(from)?;
    let end = match to {
        Ends::Before(to) => time_bound(to)?,
        Ends::With(to) => match time_bound(to)? {
            TimeBound::Native(last) => TimeBound::Native(last.checked_add(1).ok_or("too large")?),
            TimeBound::Nanoseconds(last) => TimeBound::Nanoseconds(last.checked_add(1).ok_or("too large")?),
            TimeBound::Open => TimeBound::Open,
        },
        Ends::After(length) => match (start, time_bound(length)?) {
            (TimeBound::Native(from), TimeBound::Native(more)) => {
                TimeBound::Native(from.checked_add(more).ok_or("too large")?)
            }
            (TimeBound::Nanoseconds(from), TimeBound::Nanoseconds(more)) => {
                TimeBound::Nanoseconds(from.checked_add(more).ok_or("too large")?)
            }
            _ => return Err(format!("{text}: a time and a length must both be plain numbers or both have a unit")),
        },
    };
    let bounds = (start, end);
    let is_backward = match bounds {
        (TimeBound::Native(from), TimeBound::Native(to))
        | (TimeBound::Nanoseconds(from), TimeBound::Nanoseconds(to)) => from > to,
        // Which is the later of a count and a time, only the trace knows.
        _ => false,
    };
    if is_backward {
        return Err(format!("{text} is empty: it ends before it starts"));
    }
    Ok(bounds)
}

pub(crate) fn time_bound(text: &str) -> Result<TimeBound, String> {
    if text.is_empty() {
        return Ok(TimeBound::Open);
    }
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000_u64)];
    let Some((digits, factor)) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
    else {
        return number(text)
            .map(TimeBound::Native)
            .map_err(|_| format!("expected a time such as 5, 5ns, 5us, 5ms or 5s, found {text:?}"));
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut ns = number(integer)?.checked_mul(factor).ok_or("too large")?;
    let mut place = factor;
    for digit in fraction.chars() {
        let digit = digit.to_digit(10).ok_or_else(|| format!("{text:?} is no time"))?;
        place /= 10;
        ns = ns.checked_add(u64::from(digit) * place).ok_or("too large")?;
    }
    Ok(TimeBound::Nanoseconds(ns))
}

/// A threshold that was read from a text, or what the words and the form of one are; `example` is one.
pub(crate) fn threshold<S>(
    read: Option<Threshold<S>>,
    text: &str,
    words: &[&str],
    example: &str,
) -> Result<Threshold<S>, String> {
    let words = words.join(", ");
    read.ok_or_else(|| {
        format!("expected a threshold: one of {words} and a percentage, such as {example}, found {text:?}")
    })
}
