//! Callgrind's text format, version 1, for `callgrind_annotate` and KCachegrind: costs of functions of files, and of
//! calls between them.
//!
//! A name is written in full once, with a number, and by this number from then on. Source: the chapter "Callgrind
//! Format Specification" of Valgrind's manual.
//!
//! ```
//! use anytrace_export::callgrind::{Header, Profile};
//!
//! let mut profile = Profile::new(&Header { command: "app", positions: "line", events: &["ns"] });
//! profile.summary(&[12]);
//! profile.file("app.c");
//! profile.function("main");
//! profile.costs("3", &[5]);
//! profile.calls("lib.c", "work", 2, 40);
//! profile.costs("3", &[7]);
//! let end = "fl=(1) app.c\nfn=(1) main\n3 5\ncfi=(2) lib.c\ncfn=(2) work\ncalls=2 40\n3 7\n";
//! assert!(profile.take().ends_with(end));
//! ```

use std::fmt::Write;

use anytrace_core::hash::Map;

/// What Callgrind itself writes where it does not know a name.
pub const UNKNOWN: &str = "???";

/// The lines before all costs.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// The traced program, or the name of the trace; none where empty.
    pub command: &'a str,
    /// What precedes the costs in a line: `line`, or `instr line`.
    pub positions: &'a str,
    /// Names of the costs. A name is one word.
    pub events: &'a [&'a str],
}

/// A profile being written. A line applies to the names before it: an object and a file to the functions that follow,
/// a function to its costs and calls.
#[derive(Debug)]
pub struct Profile {
    text: String,
    objects: Names,
    files: Names,
    functions: Names,
    /// The number of the file that was named last.
    file: usize,
}

impl Profile {
    /// Begins a profile with its header.
    pub fn new(header: &Header<'_>) -> Self {
        let mut text = format!("# callgrind format\nversion: 1\ncreator: anytrace {}\n", env!("CARGO_PKG_VERSION"));
        if !header.command.is_empty() {
            let _ = writeln!(text, "cmd: {}", one_line(header.command));
        }
        let _ = writeln!(text, "positions: {}\nevents: {}", header.positions, header.events.join(" "));
        Self { text, objects: Names::default(), files: Names::default(), functions: Names::default(), file: 0 }
    }

    /// The costs of everything; before the first function.
    pub fn summary(&mut self, costs: &[u64]) {
        self.costs("summary:", costs);
        self.text.push('\n');
    }

    /// A line that readers skip.
    pub fn comment(&mut self, comment: &str) {
        let _ = writeln!(self.text, "# {}\n", one_line(comment));
    }

    /// The object file of the functions that follow.
    pub fn object(&mut self, name: &str) {
        self.objects.push(&mut self.text, "ob", name);
    }

    /// The source file of the functions that follow.
    pub fn file(&mut self, name: &str) {
        self.file = self.files.push(&mut self.text, "fl", name);
    }

    /// The function of the costs and calls that follow.
    pub fn function(&mut self, name: &str) {
        self.functions.push(&mut self.text, "fn", name);
    }

    /// Calls of a function that begins at `line` of `file`; the next costs are those of its calls.
    pub fn calls(&mut self, file: &str, function: &str, count: u64, line: u32) {
        // A callee is in its caller's file unless another is named.
        if self.files.number(file) != Some(self.file) {
            self.files.push(&mut self.text, "cfi", file);
        }
        self.functions.push(&mut self.text, "cfn", function);
        let _ = writeln!(self.text, "calls={count} {line}");
    }

    /// A line of costs, one for each event of the header, at a place in the form that its positions say.
    pub fn costs(&mut self, positions: &str, costs: &[u64]) {
        self.text.push_str(positions);
        for cost in costs {
            let _ = write!(self.text, " {cost}");
        }
        self.text.push('\n');
    }

    /// What was written since this was last called.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// Names of one kind that were written, with their numbers.
#[derive(Debug, Default)]
struct Names(Map<String, usize>);

impl Names {
    /// A line that names something: `fn=(1) main` the first time, then `fn=(1)`. Returns the number.
    fn push(&mut self, out: &mut String, key: &str, name: &str) -> usize {
        if let Some(number) = self.number(name) {
            let _ = writeln!(out, "{key}=({number})");
            return number;
        }
        let number = self.0.len() + 1;
        let _ = writeln!(out, "{key}=({number}) {}", one_line(name));
        self.0.insert(name.to_owned(), number);
        number
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}

/// A name as it can be written: it ends with its line, begins with something visible, and is not empty, because a
/// number without a name refers to an earlier one.
pub fn one_line(name: &str) -> String {
    let name = name.replace(['\n', '\r'], " ");
    let name = name.trim();
    if name.is_empty() { UNKNOWN.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_in_full_once_and_always_in_one_line() {
        let mut profile = Profile::new(&Header { command: "a\nb", positions: "line", events: &["ns", "calls"] });
        profile.object("/usr/bin/a b");
        for _ in 0..2 {
            profile.file("x.c");
            profile.function("two\r\nlines");
            profile.calls("x.c", "", u64::MAX, 7);
            profile.costs("0", &[1, u64::MAX]);
        }
        let text = profile.take();
        let creator = concat!("creator: anytrace ", env!("CARGO_PKG_VERSION"));
        let wanted = [
            "# callgrind format",
            "version: 1",
            creator,
            "cmd: a b",
            "positions: line",
            "events: ns calls",
            "ob=(1) /usr/bin/a b",
            "fl=(1) x.c",
            "fn=(1) two  lines",
            "cfn=(2) ???",
            "calls=18446744073709551615 7",
            "0 1 18446744073709551615",
            "fl=(1)",
            "fn=(1)",
            "cfn=(2)",
            "calls=18446744073709551615 7",
            "0 1 18446744073709551615",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
        assert!(profile.take().is_empty());
    }
}
