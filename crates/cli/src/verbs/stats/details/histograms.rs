//! Histograms of the lengths of spans, for people.

use anytrace_analysis::directory::Directory;
use anytrace_analysis::histogram::{Histogram, Histograms};

use crate::paint::heading;
use crate::table::{Align, Table};
use crate::units::{Times, counted, grouped, nanoseconds, percent};

/// Widest bar of a histogram.
const BAR_WIDTH: u64 = 40;

/// A bar a class of lengths, a block a name.
pub(in crate::verbs::stats) fn histograms(histograms: &Histograms, directory: &Directory) -> String {
    let mut out = String::new();
    for histogram in histograms.histograms() {
        let title = format!("{}: {}", directory.shown_name(histogram.name), counted(histogram.count(), "span"));
        out.push_str(&heading(&title));
        out.push_str(&bars(histogram, histograms, directory));
    }
    if histograms.histograms().is_empty() {
        out.push_str(&heading("Histogram: no matching span names"));
    }
    if histograms.left_out() > 0 {
        let left = counted(histograms.left_out(), "span");
        out.push_str(&format!("  {left} of further names omitted\n"));
    }
    out
}

fn bars(histogram: &Histogram, histograms: &Histograms, directory: &Directory) -> String {
    let has_unit = Times(directory.source().unit).heading().is_empty();
    let shown = |value: u64| if has_unit { round(value) } else { grouped(u128::from(value)) };
    let classes = histograms.classes();
    let first = histogram.counts.iter().position(|&count| count > 0).unwrap_or_default();
    let last = histogram.counts.iter().rposition(|&count| count > 0).unwrap_or_default();
    let most = histogram.counts.iter().copied().max().unwrap_or(1).max(1);
    let mut table = Table::new(&[
        ("from", Align::Right),
        ("below", Align::Right),
        ("count", Align::Right),
        ("share", Align::Right),
        ("", Align::Left),
    ]);
    for class in first..=last {
        let count = histogram.counts.get(class).copied().unwrap_or_default();
        let from = classes.get(class).map_or(0, |class| class.from);
        let below = classes.get(class + 1).map_or_else(|| "…".to_owned(), |next| shown(next.from));
        let share = percent(count as f64, histogram.count() as f64);
        table.row(vec![shown(from), below, grouped(u128::from(count)), share, bar(count, most)]);
    }
    table.render()
}

/// Class borders are round: `500 ns`, `2 µs`.
fn round(ns: u64) -> String {
    let text = nanoseconds(u128::from(ns));
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// A bar in eighths of a character.
fn bar(count: u64, most: u64) -> String {
    let eighths = u128::from(count) * u128::from(BAR_WIDTH) * 8 / u128::from(most);
    let (full, part) = (usize::try_from(eighths / 8).unwrap_or(0), usize::try_from(eighths % 8).unwrap_or(0));
    let mut bar = "█".repeat(full);
    bar.push_str(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(part).copied().unwrap_or_default());
    // What is there is seen.
    if bar.is_empty() && count > 0 { "▏".to_owned() } else { bar }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_eighths_and_never_empty_for_something() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(10, 10).chars().count(), 40);
        assert_eq!(bar(1, 64), "▋");
    }

    #[test]
    fn borders_of_classes_are_round() {
        assert_eq!([0, 500, 2000, 50_000_000].map(round), ["0 ns", "500 ns", "2 µs", "50 ms"]);
    }
}
