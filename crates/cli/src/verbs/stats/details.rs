//! The parts of `stats` that are asked for one by one, for people.

mod events;
mod histograms;

use anytrace_analysis::accounting::{Row, Statistic};
use anytrace_analysis::arguments::Arguments;
use anytrace_analysis::directory::Directory;
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::longest::{Long, Outliers};
use anytrace_analysis::migrations::Migrations;
use anytrace_analysis::pass::Done;
use anytrace_core::span::Span;

use crate::paint::heading;
use crate::table::{Align, Table};
use crate::units::{Times, counted, grouped};
pub(super) use events::events;
pub(super) use histograms::histograms;

/// Most names of a stack shown, from the innermost.
const STACK_SHOWN: usize = 12;

/// The longest spans, outermost caller first.
pub(super) fn longest(spans: Vec<Long>, done: &Done) -> String {
    let times = Times(done.directory.source().unit);
    let mut table = Table::new(&[
        ("length", Align::Right),
        ("self", Align::Right),
        ("begins", Align::Right),
        ("thread", Align::Left),
        ("stack", Align::Left),
    ]);
    for Long { span, arguments } in spans {
        table.row(vec![
            times.length(u128::from(span.duration())),
            times.length(u128::from(span.self_time)),
            since(span.start, &done.directory),
            thread(&done.directory, done.directory.thread_of(span.track)),
            stack(&span, done) + &shown_arguments(&arguments, &done.directory),
        ]);
    }
    heading("Longest spans") + &table.render()
}

/// The longest spans of each name that has several, against its median.
pub(super) fn outliers(rows: &[Row], mut outliers: Outliers, done: &Done) -> String {
    let directory = &done.directory;
    let times = Times(directory.source().unit);
    let mut out = String::new();
    for (row, name) in rows.iter().filter_map(|row| Some((row, row.name?))).filter(|(row, _)| row.count > 1) {
        let median = row.get(Statistic::P50);
        let mut table = Table::new(&[
            ("length", Align::Right),
            ("of median", Align::Right),
            ("self", Align::Right),
            ("begins", Align::Right),
            ("record", Align::Right),
            ("thread", Align::Left),
            ("stack", Align::Left),
        ]);
        for Long { span, arguments } in outliers.take(name) {
            let length = u128::from(span.duration());
            // In tenths, rounded; nothing is a multiple of a median of nothing.
            let tenths = (length * 10 + median / 2).checked_div(median);
            table.row(vec![
                times.length(length),
                tenths.map_or_else(|| "-".to_owned(), |tenths| format!("{}.{} x", grouped(tenths / 10), tenths % 10)),
                times.length(u128::from(span.self_time)),
                since(span.start, directory),
                grouped(u128::from(span.seq)),
                thread(directory, directory.thread_of(span.track)),
                stack(&span, done) + &shown_arguments(&arguments, directory),
            ]);
        }
        let place = directory.location(name).map_or_else(String::new, |place| {
            let line = if place.line > 0 { format!(":{}", place.line) } else { String::new() };
            format!(" at {}{line}", anytrace_core::text::printable(&place.file))
        });
        let shown = directory.shown_name(name);
        out.push_str(&heading(&format!(
            "{shown}{place}: {}, median {}",
            counted(row.count, "span"),
            times.length(median)
        )));
        out.push_str(&table.render());
    }
    if out.is_empty() { heading("Outliers: no name has several spans") } else { out }
}

/// The names around a span and its own, outermost first, and what is special about its end.
fn stack(span: &Span, done: &Done) -> String {
    let path = done.stacks.as_ref().map(|stacks| stacks.path(span.stack)).unwrap_or_default();
    let shown = path.iter().skip(path.len().saturating_sub(STACK_SHOWN)).map(|&name| done.directory.shown_name(name));
    let mut stack = shown.collect::<Vec<_>>().join(" > ");
    if path.len() > STACK_SHOWN {
        stack = format!("({} more) > {stack}", path.len() - STACK_SHOWN);
    }
    let flags: Vec<_> = span.flags.words().collect();
    if !flags.is_empty() {
        stack.push_str(&format!("  [{}]", flags.join(", ")));
    }
    stack
}

/// Most characters of the attributes of a span; JSON has more.
const ARGUMENTS_SHOWN: usize = 120;

/// Attributes behind a stack: ` (key=value, …)`.
fn shown_arguments(arguments: &Arguments, directory: &Directory) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let one = |(key, value): &(_, String)| format!("{}={value}", directory.shown_name(*key));
    let mut shown = arguments.values.iter().map(one).collect::<Vec<_>>().join(", ");
    let is_cut = arguments.left_out > 0 || shown.chars().count() > ARGUMENTS_SHOWN;
    if is_cut {
        shown = shown.chars().take(ARGUMENTS_SHOWN).collect::<String>() + "…";
    }
    format!(" ({})", anytrace_core::text::printable(&shown))
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
    heading("Processor migrations") + &table.render()
}

/// A time since the trace's start; before it, with a sign.
fn since(time: u64, directory: &Directory) -> String {
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
