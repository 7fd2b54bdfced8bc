//! Lines of `apitrace dump` compared: below one another, side by side, or word by word.

use std::hash::{DefaultHasher, Hasher};
use std::io::Write;

use anytrace_analysis::diff::{Record, Step, align_steps};
use anytrace_core::Error;

use crate::tools::diff::engine::Show;
use crate::tools::diff::entry::Entry;
use crate::tools::diff::gnu;
use crate::tools::diff::side::Property;
use crate::tools::diff::{DiffOptions, DiffTotals, LineForm};

const STRUCK: &[u8] = b"\x1b[9m\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const NORMAL: &[u8] = b"\x1b[0m";

/// Columns between tab stops.
const TAB: usize = 8;

/// Minimum number of columns between the halves.
const GUTTER: usize = 3;

/// The lines of a text.
pub(crate) fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// Prints lines.
pub(crate) struct Printer<'a> {
    form: LineForm,
    has_color: bool,
    hides_common: bool,
    /// Width of each half, and the column where the second begins.
    half: usize,
    second: usize,
    out: &'a mut dyn Write,
    line: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(form: LineForm, options: &DiffOptions, out: &'a mut dyn Write) -> Self {
        let &DiffOptions { has_color, hides_common, width, .. } = options;
        // Divides the width like GNU sdiff: halves as wide as possible, the second at a tab stop.
        let middle = width / 2 + (TAB + GUTTER) / 2 + (width & (TAB + GUTTER) & 1);
        let middle = middle - middle % TAB;
        let half = middle.saturating_sub(GUTTER).min(width.saturating_sub(middle));
        let second = if half == 0 { width } else { middle };
        Self { form, has_color, hides_common, half, second, out, line: Vec::new() }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// A line both have.
    pub(crate) fn same(&mut self, old: &[u8], new: &[u8]) -> Result<(), Error> {
        if self.hides_common {
            return Ok(());
        }
        match self.form {
            LineForm::Below => {
                self.line.extend_from_slice(if self.has_color { b"" } else { b"  " });
                self.line.extend_from_slice(old);
            }
            LineForm::Beside => self.beside(Some(old), b' ', Some(new)),
            LineForm::Words => self.line.extend_from_slice(new),
        }
        self.end()
    }

    /// Lines that correspond to each other and differ.
    pub(crate) fn differ(&mut self, removed: &[&[u8]], added: &[&[u8]]) -> Result<(), Error> {
        if self.form == LineForm::Below {
            for (lines, sign, color) in [(removed, b"- ", STRUCK), (added, b"+ ", GREEN)] {
                for line in lines {
                    self.marked(line, sign, color)?;
                }
            }
            return Ok(());
        }
        let pairs = removed.len().min(added.len());
        for (old, new) in removed.iter().zip(added) {
            if self.form == LineForm::Beside {
                self.beside(Some(old), b'|', Some(new));
            } else {
                self.words(old, new);
            }
            self.end()?;
        }
        for old in removed.iter().skip(pairs) {
            if self.form == LineForm::Beside {
                self.beside(Some(old), b'<', None)
            } else {
                self.words(old, b"")
            }
            self.end()?;
        }
        for new in added.iter().skip(pairs) {
            if self.form == LineForm::Beside {
                self.beside(None, b'>', Some(new))
            } else {
                self.words(b"", new)
            }
            self.end()?;
        }
        Ok(())
    }

    fn marked(&mut self, line: &[u8], sign: &[u8], color: &[u8]) -> Result<(), Error> {
        self.line.extend_from_slice(if self.has_color { color } else { sign });
        self.line.extend_from_slice(line);
        if self.has_color {
            self.line.extend_from_slice(NORMAL);
        }
        self.end()
    }

    /// Two halves and a sign between them.
    fn beside(&mut self, old: Option<&[u8]>, sign: u8, new: Option<&[u8]>) {
        let mut column = old.map_or(0, |old| self.half_line(old, 0));
        if sign != b' ' {
            column = self.tab(column, (self.half + self.second - 1) / 2) + 1;
            self.line.push(sign);
        }
        if let Some(new) = new
            && !new.is_empty()
        {
            let column = self.tab(column, self.second);
            self.half_line(new, column);
        }
    }

    /// Writes tabs and blanks from one column to another.
    fn tab(&mut self, from: usize, to: usize) -> usize {
        let mut at = from;
        let mut stop = from + TAB - from % TAB;
        while stop <= to {
            self.line.push(b'\t');
            at = stop;
            stop += TAB;
        }
        self.line.resize(self.line.len() + to.saturating_sub(at), b' ');
        to
    }

    /// Writes as much of a line as fits a half. Returns the column after it.
    fn half_line(&mut self, line: &[u8], indent: usize) -> usize {
        let (mut wanted, mut written) = (0, 0);
        for char in
            line.utf8_chunks().flat_map(|chunk| chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().map(Err)))
        {
            match char {
                Ok('\t') => {
                    let columns = TAB - wanted % TAB;
                    if wanted == written && written + columns < self.half {
                        written += columns;
                        self.line.push(b'\t');
                    }
                    wanted += columns;
                }
                Ok(char) => {
                    wanted += usize::from(!char.is_control());
                    if wanted <= self.half {
                        written = wanted;
                        self.line.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
                Err(byte) => {
                    wanted += 1;
                    if wanted <= self.half {
                        written = wanted;
                        self.line.push(*byte);
                    }
                }
            }
        }
        indent + written
    }

    /// Writes one line with the words of both.
    fn words(&mut self, old: &[u8], new: &[u8]) {
        let words = |line: &[u8]| {
            let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            words.map(|word| Word(word.to_vec())).collect::<Vec<_>>()
        };
        let has_color = self.has_color;
        let out = &mut self.line;
        let mut is_first = true;
        let mut push = |words: Vec<(u64, Word)>, begin: &[u8], end: &[u8]| {
            if words.is_empty() {
                return;
            }
            if !std::mem::replace(&mut is_first, false) {
                out.push(b' ');
            }
            out.extend_from_slice(begin);
            let words: Vec<&[u8]> = words.iter().map(|(_, word)| word.0.as_slice()).collect();
            out.extend_from_slice(&words.join(&b' '));
            out.extend_from_slice(end);
        };
        let ends: [&[u8]; 4] = if has_color { [STRUCK, NORMAL, GREEN, NORMAL] } else { [b"[-", b"-]", b"{+", b"+}"] };
        let result: Result<(), std::convert::Infallible> =
            align_steps(words(old).into_iter(), words(new).into_iter(), &mut |step| {
                match step {
                    Step::Same(_, word) => push(vec![word], b"", b""),
                    Step::Differ(removed, added) => {
                        push(removed, ends[0], ends[1]);
                        push(added, ends[2], ends[3]);
                    }
                }
                Ok(())
            });
        match result {
            Ok(()) => {}
        }
    }
}

struct Word(Vec<u8>);

impl Record for Word {
    fn hash(&self) -> u64 {
        hash(&self.0)
    }

    fn buffered_bytes(&self) -> usize {
        self.0.len()
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Texts of up to this many lines are compared exactly.
const SHORT_LINES: usize = 20_000;

/// Compares two short texts as GNU diff does: a shortest difference, with each run of changes moved down as far as
/// possible, unless it can be aligned with a run of the other text.
pub(crate) fn compare(a: &[&[u8]], b: &[&[u8]], printer: &mut Printer<'_>) -> Result<DiffTotals, Error> {
    let hashes = [a, b].map(|lines| lines.iter().map(|line| hash(line)).collect::<Vec<_>>());
    let [hashes_a, hashes_b] = &hashes;
    let changed = if a.len().max(b.len()) <= SHORT_LINES {
        gnu::changed(hashes_a, hashes_b)
    } else {
        aligned(hashes_a, hashes_b)
    };
    let [mut in_a, mut in_b] = changed;
    shift(hashes_a, &mut in_a, &in_b);
    shift(hashes_b, &mut in_b, &in_a);
    let mut totals = DiffTotals::default();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (from_i, from_j) = (i, j);
        while in_a.get(i) == Some(&true) {
            i += 1;
        }
        while in_b.get(j) == Some(&true) {
            j += 1;
        }
        if (i, j) != (from_i, from_j) {
            totals.removed += (i - from_i) as u64;
            totals.added += (j - from_j) as u64;
            printer.differ(a.get(from_i..i).unwrap_or_default(), b.get(from_j..j).unwrap_or_default())?;
            continue;
        }
        if let (Some(old), Some(new)) = (a.get(i), b.get(j)) {
            totals.same += 1;
            printer.same(old, new)?;
        }
        (i, j) = (i + 1, j + 1);
    }
    Ok(totals)
}

/// For long texts: not the shortest difference, but found quickly.
fn aligned(a: &[u64], b: &[u64]) -> [Vec<bool>; 2] {
    let mut changed = [vec![false; a.len()], vec![false; b.len()]];
    let place = |hashes: &[u64]| hashes.iter().map(|hash| Placed(*hash)).collect::<Vec<_>>().into_iter();
    let result: Result<(), std::convert::Infallible> = align_steps(place(a), place(b), &mut |step| {
        if let Step::Differ(removed, added) = step {
            for (flags, lines) in changed.iter_mut().zip([removed, added]) {
                for (at, _) in lines {
                    if let Some(flag) = flags.get_mut(at as usize) {
                        *flag = true;
                    }
                }
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => changed,
    }
}

struct Placed(u64);

impl Record for Placed {
    fn hash(&self) -> u64 {
        self.0
    }

    fn buffered_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Moves runs of changed lines where lines repeat.
fn shift(lines: &[u64], changed: &mut [bool], other: &[bool]) {
    let is = |flags: &[bool], at: usize| flags.get(at).copied().unwrap_or(false);
    let set = |flags: &mut [bool], at: usize, value: bool| {
        if let Some(flag) = flags.get_mut(at) {
            *flag = value;
        }
    };
    let before = |flags: &[bool], at: usize| at.checked_sub(1).is_some_and(|at| is(flags, at));
    let (mut i, mut j) = (0, 0);
    loop {
        while i < lines.len() && !is(changed, i) {
            while is(other, j) {
                j += 1;
            }
            (i, j) = (i + 1, j + 1);
        }
        if i >= lines.len() {
            return;
        }
        let mut start = i;
        while is(changed, i) {
            i += 1;
        }
        while is(other, j) {
            j += 1;
        }
        let mut across;
        loop {
            let length = i - start;
            // Up, as long as the line before the run equals its last one. Runs that touch are merged.
            while start > 0 && lines.get(start - 1) == lines.get(i - 1) {
                (start, i) = (start - 1, i - 1);
                set(changed, start, true);
                set(changed, i, false);
                while before(changed, start) {
                    start -= 1;
                }
                j = j.saturating_sub(1);
                while is(other, j) && j > 0 {
                    j -= 1;
                }
            }
            across = if before(other, j) { i } else { lines.len() };
            // Down again as far as it goes.
            while i < lines.len() && lines.get(start) == lines.get(i) {
                set(changed, start, false);
                set(changed, i, true);
                (start, i) = (start + 1, i + 1);
                while is(changed, i) {
                    i += 1;
                }
                j += 1;
                while is(other, j) {
                    (j, across) = (j + 1, i);
                }
            }
            if length == i - start {
                break;
            }
        }
        // Back up to where the other text has a run, too.
        while across < i && start > 0 {
            (start, i) = (start - 1, i - 1);
            set(changed, start, true);
            set(changed, i, false);
            j = j.saturating_sub(1);
            while is(other, j) && j > 0 {
                j -= 1;
            }
        }
    }
}

/// Shows calls as lines; of long traces, aligned by frames.
pub(crate) struct LineDiff<'a> {
    printer: Printer<'a>,
    removed: Vec<u8>,
    added: Vec<u8>,
}

impl<'a> LineDiff<'a> {
    pub(crate) fn new(form: LineForm, options: &DiffOptions, out: &'a mut dyn Write) -> Self {
        Self { printer: Printer::new(form, options, out), removed: Vec::new(), added: Vec::new() }
    }
}

/// Text buffered before it is shown.
const GATHERED_BYTES: usize = 4 << 20;

impl Show for LineDiff<'_> {
    fn properties(&mut self, a: &[Property], b: &[Property]) -> Result<(), Error> {
        let text = |properties: &[Property]| properties.first().map(|(text, _)| text.clone()).unwrap_or_default();
        let (a, b) = (text(a), text(b));
        let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (split(&a).collect(), split(&b).collect());
        compare(&old, &new, &mut self.printer).map(drop)
    }

    fn frame(&mut self, _: Option<u64>, _: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn same(&mut self, a: Entry, b: Entry) -> Result<(), Error> {
        split(a.tail()).zip(split(b.tail())).try_for_each(|(old, new)| self.printer.same(old, new))
    }

    fn changed(&mut self, a: Entry, b: Entry, _: &[u32]) -> Result<(), Error> {
        self.removed.extend_from_slice(a.tail());
        self.added(b)
    }

    fn removed(&mut self, a: Entry) -> Result<(), Error> {
        self.removed.extend_from_slice(a.tail());
        if self.removed.len() > GATHERED_BYTES { self.settle() } else { Ok(()) }
    }

    fn added(&mut self, b: Entry) -> Result<(), Error> {
        self.added.extend_from_slice(b.tail());
        if self.added.len() > GATHERED_BYTES { self.settle() } else { Ok(()) }
    }

    fn settle(&mut self) -> Result<(), Error> {
        let (removed, added) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (split(&removed).collect(), split(&added).collect());
        if old.is_empty() && new.is_empty() {
            return Ok(());
        }
        compare(&old, &new, &mut self.printer).map(drop)
    }

    fn finish(&mut self, _: &DiffTotals) -> Result<(), Error> {
        Ok(self.printer.out.flush()?)
    }
}
