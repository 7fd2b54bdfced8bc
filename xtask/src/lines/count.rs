//! Lines of one file: code, tests, comments.

use std::collections::BTreeSet;

/// The languages that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    /// C, C++ and JavaScript: the same comments.
    C,
    Python,
}

impl Language {
    /// By the name's ending.
    pub(super) fn of(file: &str) -> Option<Self> {
        match file.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "c" | "cpp" | "h" | "js" | "mjs" | "ts" | "css" => Some(Self::C),
            "py" => Some(Self::Python),
            _ => None,
        }
    }
}

/// Lines that are not blank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) code: u64,
    /// Lines of items that are there only in tests.
    pub(super) tests: u64,
    /// Lines that hold only a comment, in tests too.
    pub(super) comments: u64,
}

/// Counts the lines of a file. Rust must be formatted by rustfmt: an item ends at a line as far indented as its first.
pub(super) fn count(language: Language, text: &str) -> Counts {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = if language == Language::Rust { test_lines(&lines) } else { vec![false; lines.len()] };
    let mut counts = Counts::default();
    let mut comment = Comment::default();
    for (line, is_test) in lines.iter().zip(is_test) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        *match (comment.covers(language, line), is_test) {
            (true, _) => &mut counts.comments,
            (false, true) => &mut counts.tests,
            (false, false) => &mut counts.code,
        } += 1;
    }
    counts
}

/// Whether the next line is inside a comment of several lines.
#[derive(Debug, Default)]
struct Comment {
    until: Option<&'static str>,
}

impl Comment {
    /// True when the line holds nothing but a comment.
    fn covers(&mut self, language: Language, line: &str) -> bool {
        if let Some(end) = self.until {
            if line.contains(end) {
                self.until = None;
            }
            return true;
        }
        let (short, long, end) = match language {
            Language::Rust | Language::C => ("//", "/*", "*/"),
            Language::Python => ("#", "\"\"\"", "\"\"\""),
        };
        if let Some(rest) = line.strip_prefix(long) {
            if !rest.contains(end) {
                self.until = Some(end);
            }
            return true;
        }
        line.starts_with(short)
    }
}

/// Which lines belong to items under `#[cfg(test)]` and its like.
fn test_lines(lines: &[&str]) -> Vec<bool> {
    let mut is_test = vec![false; lines.len()];
    for item in test_items(lines) {
        is_test.iter_mut().take(item.end).skip(item.start).for_each(|line| *line = true);
    }
    is_test
}

/// The lines of an item and of the attributes before it.
struct Item {
    start: usize,
    /// The line with its name.
    head: usize,
    end: usize,
}

fn is_test_attribute(line: &str) -> bool {
    const STARTS: [&str; 4] =
        ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(feature = \"testing\")]", "#[cfg(any(test, feature = \"testing\"))]"];
    STARTS.iter().any(|start| line.starts_with(start))
}

fn test_items(lines: &[&str]) -> Vec<Item> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut items = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        at += 1;
        let depth = indent(lines[start]);
        if !is_test_attribute(lines[start].trim_start()) {
            continue;
        }
        // Other attributes, which may extend over several lines, and comments.
        let is_before = |line: &str| {
            let text = line.trim_start();
            indent(line) > depth || text.starts_with("#[") || text.starts_with("//") || text.starts_with(")]")
        };
        let Some(head) = (at..lines.len()).find(|line| !is_before(lines[*line])) else { break };
        let ends = |line: &&str| indent(line) == depth && line.trim_end().ends_with(['}', ';', ',']);
        let end = (head..lines.len()).find(|line| ends(&lines[*line])).map_or(lines.len(), |line| line + 1);
        items.push(Item { start, head, end });
        at = end;
    }
    items
}

/// The files of modules that are there only in tests.
#[derive(Debug, Default)]
pub(super) struct TestFiles {
    /// Paths without `.rs`: of a file, and of the folder of its modules.
    stems: BTreeSet<String>,
}

impl TestFiles {
    /// Looks for `#[cfg(test)] mod NAME;` in all files of a crate.
    pub(super) fn of<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut found = Self::default();
        for (file, text) in files {
            let lines: Vec<&str> = text.lines().collect();
            let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
            let stem = name.trim_end_matches(".rs");
            let is_root = matches!(stem, "lib" | "main" | "mod");
            let own = if is_root { folder.to_owned() } else { format!("{folder}/{stem}") };
            for item in test_items(&lines) {
                let words: Vec<&str> =
                    lines[item.head].split_whitespace().filter(|word| !word.starts_with("pub")).collect();
                let ["mod", module] = words[..] else { continue };
                let Some(module) = module.strip_suffix(';') else { continue };
                let given =
                    lines[item.start..item.head].iter().find_map(|line| line.trim().strip_prefix("#[path = \""));
                match given.and_then(|rest| rest.split_once('"')) {
                    Some((path, _)) => found.stems.insert(format!("{folder}/{}", path.trim_end_matches(".rs"))),
                    None => found.stems.insert(format!("{own}/{module}")),
                };
            }
        }
        found
    }

    pub(super) fn contains(&self, file: &str) -> bool {
        let stem = file.trim_end_matches(".rs");
        self.stems
            .iter()
            .any(|known| stem.strip_prefix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_code_tests_or_comments() {
        let text = "\
//! About.

use a::{
    b,
};

/// A function.
pub fn f() {
    /* one */
    g(); // with a comment
}

#[cfg(test)]
#[allow(
    dead_code,
    reason = \"x\"
)]
// Why.
mod tests {
    use super::*;

    #[test]
    fn it() {
        f();
    }
}

struct After {
    #[cfg(test)]
    seen: u64,
    kept: u64,
}
";
        assert_eq!(count(Language::Rust, text), Counts { code: 9, tests: 14, comments: 4 });
    }

    #[test]
    fn comments_of_several_lines_end() {
        let c = "/* a\n   b */\nint x;\n// c\n\nint y; /* d */\n";
        assert_eq!(count(Language::C, c), Counts { code: 2, tests: 0, comments: 3 });
        let python = "\"\"\"About.\n\nMore.\n\"\"\"\nx = 1  # one\n# two\n\"\"\"Short.\"\"\"\ny = 2\n";
        assert_eq!(count(Language::Python, python), Counts { code: 2, tests: 0, comments: 5 });
    }

    #[test]
    fn modules_of_tests_are_found_by_their_declaration() {
        let files = [
            ("src/lib.rs", "#[cfg(test)]\nmod oracle;\npub mod a;\n#[cfg(feature = \"testing\")]\npub mod testing;\n"),
            ("src/a.rs", "#[cfg(test)]\nmod tests;\nmod tested;\n"),
            ("src/b/mod.rs", "#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;\n"),
        ];
        let found = TestFiles::of(files.into_iter());
        for file in ["src/oracle.rs", "src/oracle/deep.rs", "src/testing/x.rs", "src/a/tests.rs", "src/b/b_tests.rs"] {
            assert!(found.contains(file), "{file}");
        }
        for file in ["src/lib.rs", "src/a.rs", "src/a/tested.rs", "src/oracles.rs", "src/b/tests.rs"] {
            assert!(!found.contains(file), "{file}");
        }
    }
}
