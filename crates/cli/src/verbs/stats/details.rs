//! The parts of `stats` that are asked for one by one, for people.

use anytrace_analysis::directory::Directory;
use anytrace_analysis::events::{AttributeRow, DISTINCT_MAX, Events};
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::histogram::{Histogram, Histograms};
use anytrace_analysis::migrations::Migrations;
use anytrace_analysis::pass::Done;
use anytrace_core::span::{EdgeKind, Span};

use super::text::heading;
use crate::table::{Align, Table};
use crate::units::{Times, counted, grouped, nanoseconds, percent};

/// Widest bar of a histogram.
const BAR_WIDTH: u64 = 40;

/// Most names of a stack shown, from the innermost.
const STACK_SHOWN: usize = 12;

/// A bar a class of lengths, a block a name.
pub(super) fn histograms(histograms: &Histograms, directory: &Directory) -> String {
    let mut out = String::new();
    for histogram in histograms.histograms() {
        let title = format!("{}: {}", directory.shown_name(histogram.name), counted(histogram.count(), "span"));
        out.push_str(&heading(&title));
        out.push_str(&bars(histogram, histograms, directory));
    }
    if histograms.histograms().is_empty() {
        out.push_str(&heading("Histogram: no span has a name that matches"));
    }
    if histograms.left_out() > 0 {
        let left = counted(histograms.left_out(), "span");
        out.push_str(&format!("  {left} of further names are left out\n"));
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
    let (whole, part) = (usize::try_from(eighths / 8).unwrap_or(0), usize::try_from(eighths % 8).unwrap_or(0));
    let mut bar = "█".repeat(whole);
    bar.push_str(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(part).copied().unwrap_or_default());
    // What is there is seen.
    if bar.is_empty() && count > 0 { "▏".to_owned() } else { bar }
}

/// The longest spans, outermost caller first.
pub(super) fn longest(spans: Vec<Span>, done: &Done) -> String {
    let directory = &done.directory;
    let times = Times(directory.source().unit);
    let mut table = Table::new(&[
        ("length", Align::Right),
        ("self", Align::Right),
        ("begins", Align::Right),
        ("thread", Align::Left),
        ("stack", Align::Left),
    ]);
    for span in spans {
        let path = done.stacks.as_ref().map(|stacks| stacks.path(span.stack)).unwrap_or_default();
        let shown = path.iter().skip(path.len().saturating_sub(STACK_SHOWN)).map(|&name| directory.shown_name(name));
        let mut stack = shown.collect::<Vec<_>>().join(" > ");
        if path.len() > STACK_SHOWN {
            stack = format!("({} more) > {stack}", path.len() - STACK_SHOWN);
        }
        let flags: Vec<_> = span.flags.words().collect();
        if !flags.is_empty() {
            stack.push_str(&format!("  [{}]", flags.join(", ")));
        }
        table.row(vec![
            times.length(u128::from(span.duration())),
            times.length(u128::from(span.self_time)),
            since(span.start, directory),
            thread(directory, directory.thread_of(span.track)),
            stack,
        ]);
    }
    heading("Longest spans") + &table.render()
}

/// Idle time by thread, and the longest gaps.
pub(super) fn gaps(gaps: Gaps, done: &Done) -> String {
    let directory = &done.directory;
    let times = Times(directory.source().unit);
    let mut by_track = Table::new(&[
        ("gaps", Align::Right),
        ("idle", Align::Right),
        ("longest", Align::Right),
        ("thread", Align::Left),
    ]);
    for (track, idle) in (0_u32..).zip(gaps.idle()).filter(|(_, idle)| idle.count > 0) {
        by_track.row(vec![
            grouped(u128::from(idle.count)),
            times.length(u128::from(idle.total)),
            times.length(u128::from(idle.longest)),
            track_label(directory, track),
        ]);
    }
    let mut longest = Table::new(&[
        ("gap", Align::Right),
        ("begins", Align::Right),
        ("thread", Align::Left),
        ("between", Align::Left),
    ]);
    let gaps = gaps.into_gaps();
    if gaps.is_empty() {
        return heading("Gaps: none");
    }
    for gap in gaps {
        longest.row(vec![
            times.length(u128::from(gap.duration())),
            since(gap.start, directory),
            track_label(directory, gap.track),
            format!("{} and {}", directory.shown_name(gap.before), directory.shown_name(gap.after)),
        ]);
    }
    heading("Idle time by thread") + &by_track.render() + &heading("Longest gaps") + &longest.render()
}

/// Processors by thread.
pub(super) fn migrations(migrations: &Migrations, done: &Done) -> String {
    let directory = &done.directory;
    let times = Times(directory.source().unit);
    let mut table = Table::new(&[("changes", Align::Right), ("thread", Align::Left), ("processors", Align::Left)]);
    for (track, places) in (0_u32..).zip(migrations.tracks()).filter(|(_, places)| !places.processors.is_empty()) {
        let mut processors = places.processors.clone();
        processors.sort_by_key(|place| (std::cmp::Reverse(place.time), place.cpu));
        let shown: Vec<_> = processors
            .iter()
            .map(|place| {
                format!("{}: {} ({})", place.cpu, times.length(u128::from(place.time)), counted(place.edges, "edge"))
            })
            .collect();
        table.row(vec![grouped(u128::from(places.changes)), track_label(directory, track), shown.join(", ")]);
    }
    heading("Changes of processor") + &table.render()
}

/// Events and attributes.
pub(super) fn events(events: &Events, directory: &Directory) -> String {
    let mut table = Table::new(&[
        ("count", Align::Right),
        ("bytes", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
        ("first", Align::Right),
        ("last", Align::Right),
        ("kind", Align::Left),
        ("event", Align::Left),
    ]);
    for row in events.events() {
        let of_payload = |bytes: u64| if row.payloads > 0 { grouped(u128::from(bytes)) } else { String::new() };
        table.row(vec![
            grouped(u128::from(row.count)),
            of_payload(row.payload_bytes),
            of_payload(row.payload_range.0),
            of_payload(row.payload_range.1),
            since(row.times.0, directory),
            since(row.times.1, directory),
            kind_word(row.kind).to_owned(),
            directory.shown_name(row.name),
        ]);
    }
    let mut out = match events.events() {
        [] => heading("Events: none"),
        _ => heading("Events") + &table.render(),
    };
    if !events.attributes().is_empty() {
        out.push_str(&heading("Arguments and attributes"));
        out.push_str(&attributes(events.attributes(), directory));
    }
    out
}

fn attributes(rows: &[AttributeRow], directory: &Directory) -> String {
    let mut table = Table::new(&[
        ("count", Align::Right),
        ("distinct", Align::Right),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("bytes", Align::Right),
        ("key", Align::Left),
        ("of", Align::Left),
    ]);
    for row in rows {
        let (min, max) = match (row.integer_range, row.numbers) {
            (Some((min, max)), _) => (min.to_string(), max.to_string()),
            (None, 0) => Default::default(),
            _ => (row.range.0.to_string(), row.range.1.to_string()),
        };
        let more = if row.distinct() >= DISTINCT_MAX { "+" } else { "" };
        table.row(vec![
            grouped(u128::from(row.count)),
            format!("{}{more}", grouped(row.distinct() as u128)),
            min,
            row.mean().map(|mean| format!("{mean:.1}")).unwrap_or_default(),
            max,
            if row.text_bytes > 0 { grouped(u128::from(row.text_bytes)) } else { String::new() },
            directory.shown_name(row.key),
            directory.shown_name(row.name),
        ]);
    }
    table.render()
}

/// The word for a kind of event.
pub(super) fn kind_word(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Begin | EdgeKind::End => "span",
        EdgeKind::Instant => "instant",
        EdgeKind::Counter => "counter",
        EdgeKind::FlowOut => "arrow out",
        EdgeKind::FlowIn => "arrow in",
    }
}

/// A time since the trace's start; before it, with a sign.
pub(super) fn since(time: u64, directory: &Directory) -> String {
    let source = directory.source();
    let length = Times(source.unit).length(u128::from(time.abs_diff(source.origin)));
    if time < source.origin { format!("-{length}") } else { length }
}

fn thread(directory: &Directory, index: u32) -> String {
    anytrace_core::text::printable(&directory.thread_label(index))
}

/// The thread of a track, and its lane where it is not the first.
fn track_label(directory: &Directory, track: u32) -> String {
    let label = thread(directory, directory.thread_of(track));
    match directory.track(track).map_or(0, |track| track.lane) {
        0 => label,
        lane => format!("{label}, lane {}", lane.saturating_add(1)),
    }
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
