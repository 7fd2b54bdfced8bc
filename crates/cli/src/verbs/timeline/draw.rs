//! The picture of `timeline`: a headline, an axis, two rows a thread, a legend.

use anstyle::AnsiColor;
use anytrace_analysis::directory::Directory;
use anytrace_analysis::overview::{Column, Line, Overview, Picture};
use anytrace_analysis::pass::Done;
use anytrace_core::span::NameId;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::paint::{self, Paint};
use crate::units::{Times, counted, grouped, percent};

/// How it looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Columns of the whole picture.
    pub(super) width: usize,
    /// Most threads.
    pub(super) rows: usize,
    /// Only ASCII.
    pub(super) is_ascii: bool,
}

/// Names in the legend, each with a letter.
const LEGEND: usize = 12;

/// Widest thread label.
const LABEL_MAX: usize = 22;

/// Room for the share at a row's end.
const SHARE_WIDTH: usize = 7;

/// Least columns between the labels of the axis.
const TICK_COLUMNS: usize = 11;

/// Density of eight levels, lowest first; the last is full.
const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_BLOCKS: [&str; 8] = [".", ":", "-", "=", "+", "*", "%", "#"];

/// Colours of the legend's names, in turn.
const COLOURS: [AnsiColor; 6] =
    [AnsiColor::Blue, AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Magenta, AnsiColor::Cyan, AnsiColor::Red];

/// The whole picture of one trace.
pub(super) fn page(name: &str, overview: &Overview, done: &Done, look: &Look) -> String {
    let directory = &done.directory;
    // The width of labels is known only from the threads that are shown, and they only from the picture.
    let threads = shown_threads(&overview.picture(1), look.rows);
    let labels: Vec<String> = threads.iter().map(|line| label(line, directory)).collect();
    let label_width = labels.iter().map(|label| label.width()).max().unwrap_or(0);
    let plot_width = look.width.saturating_sub(label_width + SHARE_WIDTH + 3).max(10);
    let picture = overview.picture(plot_width);
    let mut out = headline(name, &picture, done);
    if threads.is_empty() {
        return out;
    }
    let indent = " ".repeat(label_width + 3);
    for axis_line in axis(&picture, plot_width, directory, look.is_ascii) {
        out.push_str(format!("{indent}{axis_line}").trim_end());
        out.push('\n');
    }
    let length = u128::from(picture.to - picture.from);
    for (line, label) in threads.iter().zip(&labels) {
        let Some(line) = picture.lines.iter().find(|drawn| drawn.thread == line.thread) else { continue };
        out.push_str(&row(line, label, label_width, length, &picture, directory, look));
    }
    let left = picture.lines.len() - threads.len();
    if left > 0 {
        let more = counted(left as u64, "thread");
        out.push_str(&format!("  {} {more} more, less busy (--rows)\n", if look.is_ascii { "..." } else { "…" }));
    }
    out.push_str(&legend(&picture, directory, look));
    if look.is_ascii { out.replace(" µs", " us") } else { out }
}

/// The busiest threads, in order of first appearance.
fn shown_threads(picture: &Picture, rows: usize) -> Vec<Line> {
    let has_something = |line: &&Line| line.spans > 0 || line.busy > 0 || line.columns.iter().any(|c| c.has_instant);
    let mut lines: Vec<&Line> = picture.lines.iter().filter(has_something).collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.busy), line.thread));
    lines.truncate(rows.max(1));
    lines.sort_by_key(|line| line.thread);
    lines.into_iter().cloned().collect()
}

fn label(line: &Line, directory: &Directory) -> String {
    let label = match line.is_shared {
        true => "other threads".to_owned(),
        false => anytrace_core::text::printable(&directory.thread_label(line.thread)),
    };
    cut(&label, LABEL_MAX)
}

fn headline(name: &str, picture: &Picture, done: &Done) -> String {
    let times = Times(done.directory.source().unit);
    let length = times.length(u128::from(picture.to - picture.from));
    let length = if times.heading().is_empty() { length } else { format!("{length} {}s", times.word()) };
    let spans: u64 = picture.lines.iter().map(|line| line.spans).sum();
    let note = if times.word() == "record" { format!(", {}", times.heading()) } else { String::new() };
    let (spans, threads) = (counted(spans, "span"), counted(picture.threads, "thread"));
    let bold = paint::BOLD;
    format!("{bold}{name}{bold:#}: {spans}, {threads}, {length}{note}\n")
}

/// Labels of times, and a ruler below them.
fn axis(picture: &Picture, width: usize, directory: &Directory, is_ascii: bool) -> [String; 2] {
    let source = directory.source();
    let times = Times(source.unit);
    let length = picture.to - picture.from;
    // Times count from the trace's start; what begins before it counts from the picture's.
    let zero = source.origin.min(picture.from);
    let columns_per_unit = width as f64 / (length.max(1)) as f64;
    let step_units = step(source.unit, TICK_COLUMNS as f64 / columns_per_unit);
    let mut ruler: Vec<&str> = vec![if is_ascii { "-" } else { "─" }; width];
    let mut labels = String::new();
    let offset = u128::from(picture.from - zero);
    let mut tick = offset.div_ceil(step_units.units) * step_units.units;
    while tick <= offset + u128::from(length) {
        let column = ((tick - offset) as f64 * columns_per_unit) as usize;
        if column >= width {
            break;
        }
        ruler[column] = if is_ascii { "+" } else { "┬" };
        let text = tick_label(tick, &step_units, times);
        // A label never runs into the one before it, nor out of the picture.
        if labels.width() <= column && column + text.width() <= width {
            labels.push_str(&" ".repeat(column - labels.width()));
            labels.push_str(&text);
            labels.push(' ');
        }
        tick += step_units.units;
    }
    [labels, ruler.concat()]
}

/// Distance of two marks of the axis.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// In the source's unit.
    units: u128,
    /// In nanoseconds, where the unit is of known length.
    ns: Option<u128>,
}

/// 1, 2 or 5 times a power of ten, at least `least` units long.
fn step(unit: anytrace_core::span::TimeUnit, least: f64) -> Step {
    let units_of = |n: u64| anytrace_analysis::filter::units_of_ns(n, unit).ok();
    let has_unit = units_of(1).is_some();
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    for n in powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit))) {
        let units = units_of(n).unwrap_or(n);
        if units as f64 >= least {
            return Step { units: u128::from(units.max(1)), ns: has_unit.then_some(u128::from(n)) };
        }
    }
    Step { units: u128::from(u64::MAX), ns: None }
}

/// A round time in the unit of its step: `0`, `1.5 ms`.
fn tick_label(tick: u128, step: &Step, times: Times) -> String {
    if tick == 0 {
        return "0".to_owned();
    }
    let Some(step_ns) = step.ns else { return times.length(tick) };
    // Marks are whole multiples of the step, whatever the rounding of ticks.
    let ns = tick / step.units * step_ns;
    let (unit, size) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let (whole, rest) = (ns / size, ns % size);
    let digits = size.to_string().len() - 1;
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{} {unit}", grouped(whole)),
        fraction => format!("{}.{fraction} {unit}", grouped(whole)),
    }
}

/// A thread's rows: density, names, and marks where something of no length happened.
fn row(
    line: &Line,
    label: &str,
    label_width: usize,
    length: u128,
    picture: &Picture,
    directory: &Directory,
    look: &Look,
) -> String {
    let (bold, dim) = (paint::BOLD, paint::DIM);
    let space = " ".repeat(label_width - label.width());
    // Lanes of one thread may overlap, and be busy more than all of the time.
    let share = percent(line.busy as f64, length as f64);
    let mut out = format!("  {bold}{label}{bold:#}{space} ");
    out.push_str(&painted(&line.columns, picture, |column| density(column.busy, look.is_ascii).to_owned()));
    out.push_str(&format!(" {share:>6}\n"));
    let indent = " ".repeat(label_width + 3);
    let names = name_row(&line.columns, picture, directory, look);
    let mut at = 0;
    let names = painted(&line.columns, picture, |_| {
        at += 1;
        names.get(at - 1).cloned().unwrap_or_default()
    });
    if line.columns.iter().any(|column| column.name.is_some()) {
        out.push_str(&format!("{indent}{names}\n"));
    }
    if line.columns.iter().any(|column| column.has_instant) {
        let mark = if look.is_ascii { "^" } else { "▴" };
        let marks: String = line.columns.iter().map(|column| if column.has_instant { mark } else { " " }).collect();
        out.push_str(&format!("{indent}{dim}{}{dim:#}\n", marks.trim_end()));
    }
    out
}

/// Columns with their names' colours; neighbours of one colour share the escape.
fn painted(columns: &[Column], picture: &Picture, mut shown: impl FnMut(&Column) -> String) -> String {
    let mut out = String::new();
    let mut current = paint::PLAIN;
    for column in columns {
        let style = column.name.map_or(paint::PLAIN, |name| style(rank(name, picture)));
        if style != current {
            out.push_str(&format!("{current:#}{style}"));
            current = style;
        }
        out.push_str(&shown(column));
    }
    out.push_str(&format!("{current:#}"));
    out
}

fn density(busy: f64, is_ascii: bool) -> &'static str {
    let blocks = if is_ascii { ASCII_BLOCKS } else { BLOCKS };
    if busy <= 0.0 {
        return " ";
    }
    // Only all of the time is full; the least bit is seen.
    let level = (busy * 8.0 - 1e-9).floor().clamp(0.0, 7.0) as usize;
    blocks[level]
}

/// Place of a name in the legend; `None` behind its end.
fn rank(name: NameId, picture: &Picture) -> Option<usize> {
    picture.names.iter().take(LEGEND).position(|(known, _)| *known == name)
}

fn style(rank: Option<usize>) -> Paint {
    match rank {
        Some(rank) => paint::color(COLOURS[rank % COLOURS.len()]),
        None => paint::DIM,
    }
}

fn letter(rank: Option<usize>) -> char {
    rank.and_then(|rank| char::from_u32(u32::from('A') + u32::try_from(rank).ok()?)).unwrap_or('~')
}

/// What stands below each column: a name where a stretch of one is long enough, else its letter.
fn name_row(columns: &[Column], picture: &Picture, directory: &Directory, look: &Look) -> Vec<String> {
    let mut cells = Vec::with_capacity(columns.len());
    for stretch in columns.chunk_by(|a, b| a.name == b.name) {
        let Some(name) = stretch.first().and_then(|column| column.name) else {
            cells.extend(stretch.iter().map(|_| " ".to_owned()));
            continue;
        };
        let fill = if look.is_ascii { "-" } else { "─" };
        let letter = letter(rank(name, picture));
        let text = format!("{letter} {}", directory.shown_name(name));
        // The last column of a stretch is free, so that neighbours do not run together.
        let room = stretch.len().saturating_sub(1);
        let mut own: Vec<String> = Vec::with_capacity(stretch.len());
        if room >= 5 {
            for c in cut(&text, room).chars() {
                own.push(c.to_string());
                // A wide character stands in two columns.
                own.extend((1..c.width().unwrap_or(0)).map(|_| String::new()));
            }
        } else {
            own.push(letter.to_string());
        }
        own.resize(stretch.len(), fill.to_owned());
        if stretch.len() > 1
            && let Some(last) = own.last_mut()
        {
            " ".clone_into(last);
        }
        cells.extend(own);
    }
    // Nothing stands behind the last name.
    for cell in cells.iter_mut().rev().take_while(|cell| *cell == " ") {
        cell.clear();
    }
    cells
}

fn legend(picture: &Picture, directory: &Directory, look: &Look) -> String {
    let all: u128 = picture.names.iter().map(|(_, own)| own).sum();
    let times = Times(directory.source().unit);
    let room = look.width.saturating_sub(4 + 7 + 13);
    let mut out = String::new();
    for (rank, &(name, own)) in picture.names.iter().take(LEGEND).enumerate() {
        let style = style(Some(rank));
        let share = percent(own as f64, all as f64);
        let time = times.length(own);
        let shown = cut(&directory.shown_name(name), room);
        out.push_str(&format!("  {style}{}{style:#} {share:>6} {time:>11}  {shown}\n", letter(Some(rank))));
    }
    let rest: u128 = picture.names.iter().skip(LEGEND).map(|(_, own)| own).sum();
    if picture.names.len() > LEGEND {
        let (share, time) = (percent(rest as f64, all as f64), times.length(rest));
        let more = cut(&counted((picture.names.len() - LEGEND) as u64, "further name"), room);
        out.push_str(&format!("  {} {share:>6} {time:>11}  {more}\n", letter(None)));
    }
    out
}

/// Text of at most so many columns; what is cut ends in `…` (`~` where that is all there is room for).
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if out.width() + c.width().unwrap_or(0) + 1 > columns {
            break;
        }
        out.push(c);
    }
    out.push(if text.is_ascii() { '~' } else { '…' });
    out
}
