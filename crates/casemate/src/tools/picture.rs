//! A story as a picture: records from top to bottom, a lane for each thread, the entry's states as a band.

use std::fmt::Write;

use anytrace_core::text::xml;

use super::history::Where;

/// Widths, in units of the drawing: the numbers of records, the band of states, the words.
const NUMBERS: u32 = 92;
const BAND: u32 = 122;
const WORDS: u32 = 510;

/// Characters of a line of words, and of a record in its smaller letters.
const WORD_CHARACTERS: usize = 68;
const RECORD_CHARACTERS: usize = 82;

/// Distance of lines, and the height of a row beside its lines.
const LINE: u32 = 15;
const ROW: u32 = 18;

/// Where the rows begin.
const TOP: u32 = 34;

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something changed.
    Step,
    /// A step on the lock.
    Lock,
    /// A barrier or TLBI that had no effect.
    Miss,
    /// The step that is missing.
    Missing,
    /// A rule is broken.
    Violation,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Lock => "lock",
            Self::Miss => "miss",
            Self::Missing => "missing",
            Self::Violation => "violation",
        }
    }
}

/// A row of the picture.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// Its record; that of the violation, for what is missing before it.
    pub(super) at: Where,
    /// What happened.
    pub(super) words: String,
    /// The state of the entry from here on, in the reference's letters; `None` if it does not change.
    pub(super) state: Option<&'static str>,
}

/// A state for people, and the class of its color.
fn state_words(letters: &str) -> (&'static str, &'static str) {
    match letters {
        "V" => ("valid", "valid"),
        "I" => ("clean", "clean"),
        "IU n" => ("invalid, unclean", "unclean"),
        "IU d" => ("written (DSB)", "written"),
        "IU ti" => ("stage 2 TLBI sent", "sent"),
        "IU td" => ("stage 2 dropped", "sent"),
        "IU ta" => ("TLBI sent", "sent"),
        "VS n" => ("stale rights", "unclean"),
        "VS d" => ("stale, written", "written"),
        "VS ti" => ("stale, stage 2 sent", "sent"),
        "VS td" => ("stale, stage 2 gone", "sent"),
        "VS ta" => ("stale, TLBI sent", "sent"),
        _ => ("other", "clean"),
    }
}

/// Text in lines of at most so many characters, broken at spaces where there are any.
pub(super) fn wrapped(text: &str, characters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + rest.len() > characters {
            lines.push(String::new());
            length = 0;
        } else if length > 0 {
            lines.iter_mut().last().into_iter().for_each(|line| line.push(' '));
            length += 1;
        }
        while !rest.is_empty() {
            let room = characters.saturating_sub(length).max(1);
            let piece: Vec<char> = rest.drain(..room.min(rest.len())).collect();
            length += piece.len();
            lines.iter_mut().last().into_iter().for_each(|line| line.extend(&piece));
            if !rest.is_empty() {
                lines.push(String::new());
                length = 0;
            }
        }
    }
    lines
}

/// Text of at most so many characters, on one line.
fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

/// The lines beside a row: what happened, and where.
struct Laid<'a> {
    row: &'a Row,
    words: Vec<String>,
    place: String,
    record: String,
    top: u32,
    height: u32,
    /// Records since the row before.
    skipped: u64,
}

fn laid(rows: &[Row]) -> (Vec<Laid<'_>>, u32) {
    let mut top = TOP;
    let mut before: Option<u64> = None;
    let mut all = Vec::new();
    for row in rows {
        let skipped = before.map_or(0, |before| row.at.index.saturating_sub(before).saturating_sub(1));
        let is_again = before.replace(row.at.index) == Some(row.at.index) && row.kind == Kind::Step;
        if skipped > 0 {
            top += LINE;
        }
        let words = wrapped(&row.words, WORD_CHARACTERS);
        let is_record = row.kind != Kind::Missing && !is_again;
        let place = row.at.source.clone().filter(|_| is_record).unwrap_or_default();
        let record = if is_record { shortened(&row.at.text, RECORD_CHARACTERS) } else { String::new() };
        let lines = words.len() as u32 + u32::from(!place.is_empty()) + u32::from(is_record);
        let height = ROW + LINE * lines;
        all.push(Laid { row, words, place, record, top, height, skipped });
        top += height;
    }
    (all, top)
}

/// The picture as SVG. Its colors are those of [`super::PAGE_STYLE`]. `state`: that of the entry before the first row.
pub(super) fn svg(rows: &[Row], state: Option<&'static str>, title: &str) -> String {
    let mut threads: Vec<u32> = rows.iter().map(|row| row.at.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let count = u32::try_from(threads.len()).unwrap_or(u32::MAX).max(1);
    // A box has room for `tlbi vmalls12e1is`; many lanes share what three of these take.
    let lane = (420 / count).clamp(56, 132);
    let (laid, bottom) = laid(rows);
    let band_at = NUMBERS + lane.saturating_mul(count) + 12;
    let words_at = band_at + BAND + 16;
    let (width, height) = (words_at + WORDS, bottom + 8);
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" style=\"max-width: {}px\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n",
        width + width / 5,
        xml(title)
    );
    let center = |thread: u32| {
        let at = threads.binary_search(&thread).unwrap_or(0);
        NUMBERS + lane * u32::try_from(at).unwrap_or(0) + lane / 2
    };
    // Writing to a String cannot fail.
    let _ = write!(out, "<g class=\"head\"><text x=\"0\" y=\"14\">record</text>");
    for thread in &threads {
        let x = center(*thread);
        let _ = write!(
            out,
            "<text x=\"{x}\" y=\"14\" text-anchor=\"middle\">CPU {thread}</text>\
             <line class=\"lane\" x1=\"{x}\" x2=\"{x}\" y1=\"22\" y2=\"{bottom}\"/>"
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"14\" text-anchor=\"middle\">the entry</text><text x=\"{words_at}\" y=\"14\">what \
         happens</text></g>",
        band_at + BAND / 2
    );
    for Laid { row, top, height, .. } in &laid {
        let (from, to, y) = (center(row.at.thread), words_at - 8, top + height / 2);
        let _ = write!(out, "<line class=\"link\" x1=\"{from}\" x2=\"{to}\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    band(&mut out, &laid, state, band_at, bottom);
    for row in &laid {
        self::row(&mut out, row, center(row.row.at.thread), lane, words_at);
    }
    out.push_str("</svg>\n");
    out
}

/// The states of the entry, each from the record that begins it.
fn band(out: &mut String, rows: &[Laid<'_>], state: Option<&'static str>, x: u32, bottom: u32) {
    let begins = rows.iter().filter_map(|row| Some((row.row.state?, row.top + row.height / 2)));
    let mut all: Vec<(&str, u32)> = state.map(|state| (state, 22)).into_iter().chain(begins).collect();
    // Of states that one record passes through, the last one stays.
    all.dedup_by(|next, before| {
        let is_same = next.0 == before.0;
        if next.1 == before.1 {
            before.0 = next.0;
        }
        is_same || next.1 == before.1
    });
    let ends = all.iter().skip(1).map(|(_, top)| *top).chain([bottom]);
    for ((letters, top), end) in all.iter().zip(ends) {
        let (words, class) = state_words(letters);
        let (height, middle) = (end.saturating_sub(*top), x + BAND / 2);
        let _ = write!(
            out,
            "<rect class=\"state {class}\" x=\"{x}\" y=\"{top}\" width=\"{BAND}\" height=\"{height}\"/>\
             <text class=\"in\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{words}</text>",
            top + 14.min(height / 2 + 4)
        );
    }
    out.push('\n');
}

/// One row: its record, its box on the lane, and the words.
fn row(out: &mut String, laid: &Laid<'_>, center: u32, lane: u32, words_at: u32) {
    let Laid { row, top, height, .. } = laid;
    let class = row.kind.class();
    if laid.skipped > 0 {
        let records = if laid.skipped == 1 { "1 record" } else { "records" };
        let number = if laid.skipped == 1 { String::new() } else { format!("{} ", laid.skipped) };
        let y = top.saturating_sub(4);
        let _ = write!(out, "<text class=\"gap\" x=\"{words_at}\" y=\"{y}\">⋮ {number}{records} between</text>");
    }
    let middle = top + height / 2;
    if row.kind != Kind::Missing {
        let _ = write!(
            out,
            "<text class=\"number\" x=\"0\" y=\"{}\">{}</text><text class=\"dim\" x=\"0\" y=\"{}\">id {}</text>",
            middle - 2,
            row.at.index,
            middle + 12,
            row.at.id
        );
    }
    let (box_width, characters) = (lane - 6, ((lane - 10) / 7) as usize);
    let label = if row.kind == Kind::Missing { "missing" } else { &row.at.step };
    let (x, y) = (center - box_width / 2, middle - 11);
    let _ = write!(
        out,
        "<g class=\"{class}\"><rect x=\"{x}\" y=\"{y}\" width=\"{box_width}\" height=\"22\" rx=\"4\"/><text x=\"{center}\" y=\"{}\" \
         text-anchor=\"middle\">{}</text></g>",
        middle + 4,
        xml(&shortened(label, characters))
    );
    let mut y = top + 20;
    for line in &laid.words {
        let _ = write!(out, "<text class=\"words {class}\" x=\"{words_at}\" y=\"{y}\">{}</text>", xml(line));
        y += LINE;
    }
    if !laid.place.is_empty() {
        let place = shortened(&laid.place, WORD_CHARACTERS);
        let _ = write!(out, "<text class=\"source\" x=\"{words_at}\" y=\"{y}\">{}</text>", xml(&place));
        y += LINE;
    }
    if !laid.record.is_empty() {
        let _ = write!(out, "<text class=\"text\" x=\"{words_at}\" y=\"{y}\">{}</text>", xml(&laid.record));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(index: u64, thread: u32, text: &str) -> Where {
        let source = Some("<a&b>.c:7".to_owned());
        Where { index, id: index + 1, thread, source, text: text.to_owned(), step: "dsb \"ish\"".to_owned() }
    }

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("ab  cd", 80), ["ab  cd"]);
        for text in ["x".repeat(500), "a b ".repeat(90), "é".repeat(77)] {
            let lines = wrapped(&text, 10);
            assert!(lines.iter().all(|line| line.chars().count() <= 11), "{lines:?}");
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').count();
            assert_eq!(letters(&lines.concat()), letters(&text));
        }
        assert_eq!(shortened("abcdef", 4), "abc…");
    }

    #[test]
    fn a_picture_is_well_formed_whatever_the_trace_says() {
        let row = |kind, index, thread, state| Row {
            kind,
            at: at(index, thread, "(lock \"]]>\u{1}<script>\")"),
            words: "had <no> effect & more ".repeat(9),
            state,
        };
        let rows = [
            row(Kind::Lock, 3, 7, None),
            row(Kind::Step, 9, 0, Some("IU n")),
            row(Kind::Miss, 10, u32::MAX, None),
            row(Kind::Missing, 12, 0, None),
            row(Kind::Violation, 12, 0, Some("I")),
            row(Kind::Step, 12, 0, Some("V")),
        ];
        let picture = svg(&rows, Some("V"), "a <title>");
        assert!(!picture.contains("<script") && !picture.contains('\u{1}'), "{picture}");
        for part in ["CPU 0", "CPU 7", "CPU 4294967295", "⋮ 5 records between", "⋮ 1 record between", "a &lt;title&gt;"]
        {
            assert!(picture.contains(part), "{part}\n{picture}");
        }
        assert_eq!(picture.matches("<rect class=\"state").count(), 4, "{picture}");
        assert!(svg(&[], None, "").ends_with("</svg>\n"));
    }
}
