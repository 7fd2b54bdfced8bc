//! The picture of `timeline`: a headline, an axis, two rows a thread, a legend.

mod axis;
mod legend;
mod rows;

use anytrace_analysis::directory::Directory;
use anytrace_analysis::overview::{Line, Overview, Picture};
use anytrace_analysis::pass::Done;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::paint;
use crate::units::{Times, counted};
use axis::axis;
use legend::legend;
use rows::row;

/// How it looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Columns of the complete picture.
    pub(super) width: usize,
    /// Most threads.
    pub(super) rows: usize,
    /// Only ASCII.
    pub(super) is_ascii: bool,
}

/// Widest thread label.
const LABEL_MAX: usize = 22;

/// Room for the share at a row's end.
const SHARE_WIDTH: usize = 7;

/// The complete picture of one trace.
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
        out.push_str(&format!("  {} {more} more, less busy (--top)\n", if look.is_ascii { "..." } else { "…" }));
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

/// Text of at most this many columns; truncated text ends in `…` (`~` if only that fits).
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
