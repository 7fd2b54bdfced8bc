//! `cargo xtask lines [FOLDER]`: lines of code, tests and comments of each crate, as a table.
//!
//! What counts as what:
//! - A line is a line of a file that git tracks, in a language of [`count::Language`]. Blank lines count nowhere.
//! - *Comments* are lines that hold nothing else, documentation and doc tests included, wherever they are.
//! - *Tests* are files below `tests/`, modules and items under `#[cfg(test)]` or under the feature `testing`, and the
//!   fuzz targets.
//! - *Examples* are files below `examples/`. They are compiled and run by tests, but written for users; they count
//!   neither as code nor as tests.
//! - *Code* is the rest. Tables that are data (`crates/apitrace/src/tables`) are listed apart, as are transcripts
//!   (`.trycmd`, `.slt`), which are text, and the files of corpora, which are not lines.
//! - `xtask` is code of the project but nobody runs it except its developers: it has a row and is not in the sum. The
//!   chores that do nothing but test are named in [`CHORES_THAT_TEST`]; the second ratio counts them as tests.

mod count;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use count::{Counts, Language, TestFiles, count};

use crate::shell::{output, root};

/// Chores that only test the project, as paths below `xtask/`.
const CHORES_THAT_TEST: [&str; 10] = [
    "src/complexity/",
    "src/consumers.rs",
    "src/fuzz.rs",
    "src/hostile/",
    "src/properties.rs",
    "src/python.rs",
    "src/soak.rs",
    "src/test.rs",
    "consumers/",
    "src/dist/trial.rs",
];

/// Least lines of tests for each line of code.
const RATIO_MIN: f64 = 0.6;

/// What a crate consists of.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    code: u64,
    tests: u64,
    comments: u64,
    examples: u64,
    /// Lines of code that are tests in a wider sense: [`CHORES_THAT_TEST`].
    chores: u64,
    transcripts: u64,
    tables: u64,
    /// Files of corpora.
    samples: u64,
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
        self.examples += other.examples;
        self.chores += other.chores;
        self.transcripts += other.transcripts;
        self.tables += other.tables;
        self.samples += other.samples;
    }

    fn print(&self, name: &str) {
        let Self { code, tests, comments, examples, transcripts, tables, samples, .. } = *self;
        let ratio = ratio(tests, code);
        println!(
            "| {name} | {code} | {tests} | {ratio:.2} | {comments} | {examples} | {transcripts} | {tables} | {samples} |"
        );
    }
}

fn ratio(tests: u64, code: u64) -> f64 {
    tests as f64 / code.max(1) as f64
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let folder = match arguments {
        [] => root(),
        [folder] if !folder.starts_with('-') => PathBuf::from(folder),
        _ => return Err("lines takes nothing, or the folder of another checkout".to_owned()),
    };
    let rows = rows(&folder)?;
    println!("| crate | code | tests | ratio | comments | examples | transcripts | tables | samples |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let (mut sum, mut chores) = (Row::default(), Row::default());
    for (name, row) in &rows {
        row.print(name);
        if name == "xtask" { chores.add(row) } else { sum.add(row) }
    }
    sum.print("all but xtask");
    let (code, tests) = (sum.code, sum.tests);
    println!("\nTests for each line of code: {:.2}, of {RATIO_MIN}.", ratio(tests, code));
    let wide = tests + chores.chores + chores.tests + sum.transcripts;
    println!(
        "With xtask, where {} lines of chores only test, and the transcripts: {:.2}.",
        chores.chores,
        ratio(wide, code + chores.code - chores.chores)
    );
    Ok(())
}

/// The rows of a checkout, by crate.
fn rows(folder: &Path) -> Result<BTreeMap<String, Row>, String> {
    let listed = output(Command::new("git").arg("-C").arg(folder).args(["ls-files", "-z"]))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let files: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    let crates: Vec<&str> = files.iter().filter_map(|name| name.strip_suffix("/Cargo.toml")).collect();
    let mut rows = BTreeMap::new();
    for name in &crates {
        let start = format!("{name}/");
        let own: Vec<&str> = files.iter().filter_map(|file| file.strip_prefix(start.as_str())).collect();
        rows.insert((*name).trim_start_matches("crates/").to_owned(), row(&folder.join(name), name, &own)?);
    }
    Ok(rows)
}

fn row(folder: &Path, name: &str, files: &[&str]) -> Result<Row, String> {
    let read = |file: &str| {
        let path = folder.join(file);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut texts = Vec::new();
    let mut row = Row::default();
    for file in files {
        if file.starts_with("corpus/") {
            row.samples += 1;
        } else if let Some(language) = Language::of(file) {
            texts.push((*file, language, String::from_utf8_lossy(&read(file)?).into_owned()));
        } else if file.starts_with("src/tables/") {
            row.tables += filled(&read(file)?);
        } else if file.ends_with(".trycmd") || file.ends_with(".slt") {
            row.transcripts += filled(&read(file)?);
        }
    }
    let rust = texts.iter().filter(|(_, language, _)| *language == Language::Rust);
    let test_files = TestFiles::of(rust.map(|(file, _, text)| (*file, text.as_str())));
    for (file, language, text) in &texts {
        let Counts { code, tests, comments } = count(*language, text);
        row.comments += comments;
        if file.starts_with("tests/") || name == "fuzz" || test_files.contains(file) {
            row.tests += code + tests;
        } else if file.starts_with("examples/") {
            row.examples += code + tests;
        } else {
            row.code += code;
            row.tests += tests;
            if name == "xtask" && CHORES_THAT_TEST.iter().any(|chore| file.starts_with(chore)) {
                row.chores += code;
            }
        }
    }
    Ok(row)
}

/// Lines that are not blank.
fn filled(text: &[u8]) -> u64 {
    text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_counted() {
        let rows = rows(&root()).unwrap();
        let of = |name: &str| rows.get(name).copied().unwrap_or_default();
        let heph = of("heph");
        assert!(heph.code > 3_000 && heph.tests > 3_000 && heph.samples > 100, "{heph:?}");
        assert!(of("apitrace").tables > 1_000 && of("cli").transcripts > 1_000 && of("fuzz").code == 0);
        assert!(of("xtask").chores > 1_000 && of("core").chores == 0);
        // Modules under the feature `testing` are tests.
        let core = of("core");
        assert!(core.tests > 2_000, "{core:?}");
        assert!(CHORES_THAT_TEST.iter().all(|path| root().join("xtask").join(path).exists()));
    }
}
