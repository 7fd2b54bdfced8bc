//! Weighed call stacks as folded lines, and as an interactive SVG flame graph.
//!
//! Folded lines are `main;parse;read 1234`: the weight of a stack without its callees. A comparison has two numbers,
//! the base's first. Brendan Gregg's `flamegraph.pl`, speedscope and inferno read both.
//!
//! ```
//! use anytrace_export::flame::FoldedLines;
//!
//! let mut lines = FoldedLines::new([&b"main"[..], b"a;b"].into_iter());
//! lines.push(&[0, 1], &[12]);
//! assert_eq!(lines.text(), "main;a:b 12\n");
//! ```

use std::io::{self, Write};

use anytrace_core::text;
use inferno::flamegraph::{self, Direction, Options};

use crate::plot::shown_text;

/// Above this, sums are no longer exact in floating point: weights are scaled down.
const SUM_MAX: u128 = 1 << 52;

/// How an SVG is drawn.
#[derive(Debug, Clone, Default)]
pub struct SvgOptions {
    /// Over the picture.
    pub title: String,
    /// Below the title; none where empty.
    pub subtitle: String,
    /// The unit of the weights: `ns`, `calls`.
    pub unit: String,
    /// From the top down.
    pub is_inverted: bool,
}

/// Builds folded lines. Names are made safe once, see [`frame`]; the common part of consecutive lines is reused.
#[derive(Debug)]
pub struct FoldedLines {
    frames: Vec<String>,
    text: String,
    /// The last path, its text, and where each of its frames ends there.
    path: Vec<u32>,
    prefix: String,
    ends: Vec<usize>,
}

impl FoldedLines {
    /// Lines of these names, which paths number from 0.
    pub fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let frames = names.map(frame).collect();
        Self { frames, text: String::new(), path: Vec::new(), prefix: String::new(), ends: Vec::new() }
    }

    /// Adds a line: outermost frame first, and one weight or two.
    pub fn push(&mut self, path: &[u32], weights: &[u64]) {
        let same = self.path.iter().zip(path).take_while(|(a, b)| a == b).count();
        self.path.truncate(same);
        self.ends.truncate(same);
        self.prefix.truncate(self.ends.last().copied().unwrap_or(0));
        for &name in path.get(same..).unwrap_or_default() {
            if !self.prefix.is_empty() {
                self.prefix.push(';');
            }
            self.prefix.push_str(self.frames.get(name as usize).map_or("(no name)", String::as_str));
            self.path.push(name);
            self.ends.push(self.prefix.len());
        }
        self.text.push_str(&self.prefix);
        for &weight in weights {
            self.text.push(' ');
            push_number(&mut self.text, weight);
        }
        self.text.push('\n');
    }

    /// The lines since the last [`Self::clear`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Removes the lines, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
    }
}

fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        // A remainder of ten fits a byte.
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}

/// A name as a frame: the form has no escapes, so `;` becomes `:`, a space before a last word of digits becomes a
/// no-break space (the word would be taken for a weight), and an empty name becomes `(no name)`. Characters that could
/// control a terminal or are not allowed in XML are escaped or replaced.
pub fn frame(name: &[u8]) -> String {
    let shown = text::printable(&String::from_utf8_lossy(name));
    let mut shown = text::xml_characters(shown.trim()).replace(';', ":");
    if shown.is_empty() {
        return "(no name)".to_owned();
    }
    if let Some(space) = shown.rfind(char::is_whitespace)
        && shown[space..].trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        let length = shown[space..].chars().next().map_or(1, char::len_utf8);
        shown.replace_range(space..space + length, "\u{a0}");
    }
    if shown.starts_with("# ") {
        // A line that begins so is a comment.
        shown.replace_range(1..2, "\u{a0}");
    }
    shown
}

/// Draws folded lines; two numbers per line draw a comparison, as wide as the second and colored by the difference.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where all weights are 0; errors of `out`.
pub fn svg(lines: &str, options: &SvgOptions, out: &mut dyn Write) -> io::Result<()> {
    let total: u128 = lines.lines().filter_map(weight).map(u128::from).sum();
    let mut shift = 0;
    while total >> shift > SUM_MAX {
        shift += 1;
    }
    let scaled = (shift > 0).then(|| scaled(lines, shift));
    let mut drawn = Options::default();
    drawn.title = shown_text(&options.title);
    drawn.subtitle = (!options.subtitle.is_empty()).then(|| shown_text(&options.subtitle));
    drawn.count_name = options.unit.clone();
    drawn.direction = if options.is_inverted { Direction::Inverted } else { Direction::Straight };
    // One name has one color, in every picture.
    drawn.hash = true;
    #[expect(clippy::cast_precision_loss, reason = "a power of two is exact")]
    let factor = (1_u128 << shift) as f64;
    drawn.factor = factor;
    flamegraph::from_lines(&mut drawn, scaled.as_deref().unwrap_or(lines).lines(), out)
}

/// The last number of a line.
fn weight(line: &str) -> Option<u64> {
    line.rsplit(' ').next()?.parse().ok()
}

fn scaled(lines: &str, shift: u32) -> String {
    let mut out = String::with_capacity(lines.len());
    for line in lines.lines() {
        let mut words: Vec<&str> = line.rsplitn(3, ' ').collect();
        words.reverse();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            // Names never end in a number, so a number that parses is a weight.
            match word.parse::<u64>() {
                Ok(weight) if at > 0 => out.push_str(&weight.checked_shr(shift).unwrap_or(0).to_string()),
                _ => out.push_str(word),
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &str) -> io::Result<String> {
        let options = SvgOptions {
            title: "a \u{1b}[31m<title>".to_owned(),
            subtitle: "two & three".to_owned(),
            unit: "ns".to_owned(),
            is_inverted: false,
        };
        let mut out = Vec::new();
        svg(lines, &options, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn names_are_made_safe() {
        let cases: [(&[u8], &str); 8] = [
            (b"fib(int)", "fib(int)"),
            (b"a;b", "a:b"),
            (b"", "(no name)"),
            (b"  ", "(no name)"),
            (b"typed event 7", "typed event\u{a0}7"),
            (b"# 3", "#\u{a0}3"),
            (b"\xff\x1b\n", "\u{fffd}\\u{1b}\\u{a}"),
            ("# über".as_bytes(), "#\u{a0}über"),
        ];
        for (name, expected) in cases {
            assert_eq!(frame(name), expected);
        }
    }

    #[test]
    fn lines_reuse_the_common_part_of_their_neighbors() {
        let names: [&[u8]; 3] = [b"main", b"a;b", b""];
        let mut lines = FoldedLines::new(names.into_iter());
        for (path, weight) in [(&[0][..], 0), (&[0, 1, 2], u64::MAX), (&[0, 1], 10), (&[2], 7), (&[2, 9], 123)] {
            lines.push(path, &[weight]);
        }
        let expected = "main 0\nmain;a:b;(no name) 18446744073709551615\nmain;a:b 10\n(no name) 7\n\
                        (no name);(no name) 123\n";
        assert_eq!(lines.text(), expected);
        lines.clear();
        lines.push(&[0], &[1, 2]);
        assert_eq!(lines.text(), "main 1 2\n");
    }

    #[test]
    fn frames_have_the_widths_of_their_weights() {
        let svg = drawn("main 25\nmain;a 50\nmain;b<c> 25\n").unwrap();
        for title in ["all (100 ns, 100%)", "main (100 ns, 100.00%)", "a (50 ns, 50.00%)", "b&lt;c&gt; (25 ns, 25.00%)"]
        {
            assert!(svg.contains(title), "{title}");
        }
        assert!(!svg.contains('\u{1b}') && svg.contains("two &amp; three"));
        assert_eq!(svg, drawn("main;b<c> 25\nmain 25\nmain;a 50\n").unwrap(), "same stacks, same picture");
    }

    #[test]
    fn a_comparison_shows_growth() {
        let svg = drawn("main 100 50\nmain;a 0 50\n").unwrap();
        assert!(svg.contains("a (50 ns, 50.00%; +50.00%)"), "{svg}");
    }

    #[test]
    fn weights_beyond_floating_point_are_scaled() {
        let most = u64::MAX;
        let svg = drawn(&format!("main {most}\nmain;x {most}\n")).unwrap();
        assert!(svg.contains("x (18,446,744,073,709,5"), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert_eq!(drawn("").unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(drawn("a 0\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
