//! Runs the files of `tests/slt` (the format of sqllogictest) with every number of partitions, with and without an index.
//!
//! Beside SQL they have two statements of their own. `OPEN TRACE…` begins a session: a trace is one of `examples/traces` or
//! `CRATE:PATH` in a corpus, `X=` before it gives it a schema, `!OFFSET+LENGTH` after it overwrites bytes, `!..LENGTH` cuts
//! it, and `-mPROGRAM` names its functions. `DAMAGE` has a row for each rule that reading found broken so far.
//!
//! Where the expected rows come from is said in the files: see `tests/slt/expected.py`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[cfg(feature = "codec")]
#[path = "common/encoded.rs"]
mod encoded;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anytrace_core::span::SymbolSource;
use anytrace_core::testing::skip;
use anytrace_core::{Collect, OpenOptions, index};
use anytrace_query::{OpenWith, Options, Session, TraceFile, message};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

/// Bytes between two marks of an index: few, so that small traces have parts.
const EVERY_BYTES: u64 = 512;

/// Bytes of a part of a plan for other processes, for the same reason.
const PART_BYTES: u64 = 1500;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt")
}

fn scripts() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<_> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "slt")).collect();
    scripts.sort();
    assert!(scripts.len() >= 8, "{scripts:?}");
    scripts
}

/// Why a statement failed, as people see it.
#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

type Answer = Result<DBOutput<DefaultColumnType>, Failed>;

/// The engine with the traces of the last `OPEN`.
struct Engine {
    partitions: usize,
    has_index: bool,
    /// Plans become bytes and are run as another process runs them.
    is_encoded: bool,
    runtime: tokio::runtime::Runtime,
    session: Option<Session>,
    /// Copies of the traces.
    copies: tempfile::TempDir,
    opened: usize,
}

impl Engine {
    fn new(partitions: usize, has_index: bool, is_encoded: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let copies = tempfile::tempdir().unwrap();
        Self { partitions, has_index, is_encoded, runtime, session: None, copies, opened: 0 }
    }

    fn open(&mut self, words: &str) {
        let sources = words.split(' ').filter_map(|word| word.strip_prefix("-m"));
        let source = |path: &str| SymbolSource { object: None, path: original(path) };
        let with = OpenWith { sources: sources.map(source).collect(), ..OpenWith::default() };
        let (mut files, mut schemas) = (Vec::new(), Vec::new());
        for word in words.split(' ').filter(|word| !word.starts_with("-m")) {
            let (schema, word) = word.rsplit_once('=').map_or((None, word), |(schema, word)| (Some(schema), word));
            let (copy, name) = self.copy(word);
            files.push(Arc::new(TraceFile::open(copy, Some(name), &with).unwrap()));
            schemas.push(schema.map(str::to_owned));
        }
        let part_bytes = self.is_encoded.then_some(PART_BYTES);
        let options = Options { schemas, partitions: self.partitions, part_bytes, ..Options::default() };
        let engine = self.is_encoded.then(encoded_engine).flatten();
        self.session = Some(self.runtime.block_on(Session::with_engine(&options, files, engine)).unwrap());
    }

    /// A copy of a trace, damaged as is asked for, with its index beside it; and its name.
    fn copy(&mut self, word: &str) -> (PathBuf, String) {
        let (of, damage) = word.split_once('!').unwrap_or((word, ""));
        let mut bytes = std::fs::read(original(of)).unwrap();
        if let Some(length) = damage.strip_prefix("..") {
            bytes.truncate(length.parse().unwrap());
        } else if let Some((offset, length)) = damage.split_once('+') {
            let (offset, length): (usize, usize) = (offset.parse().unwrap(), length.parse().unwrap());
            bytes[offset..offset + length].fill(0xee);
        }
        self.opened += 1;
        let folder = self.copies.path().join(self.opened.to_string());
        std::fs::create_dir(&folder).unwrap();
        let name = original(of).file_name().unwrap().to_string_lossy().into_owned();
        let copy = folder.join(&name);
        std::fs::write(&copy, bytes).unwrap();
        let format = TraceFile::open(copy.clone(), None, &OpenWith::default()).unwrap().format;
        if let Some(format) = format.filter(|_| self.has_index) {
            let how = OpenOptions::default();
            let made = index::build(format, &copy, &how, EVERY_BYTES, &mut |_| {}, &mut Collect::default()).unwrap();
            std::fs::write(index::path_of(&copy, None), made.encode()).unwrap();
        }
        (copy, name)
    }

    fn damage(&self) -> Answer {
        let files = self.session.as_ref().map(Session::files).unwrap_or_default();
        let lines: Vec<String> = files.iter().flat_map(|file| file.damage().0).collect();
        // A diagnostic ends in its rule, `[format/rule] what was done`.
        let rule = |line: &String| line.rsplit_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_owned()));
        let rules: BTreeSet<String> = lines.iter().filter_map(rule).collect();
        let rows = rules.into_iter().map(|rule| vec![rule]).collect();
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text], rows })
    }
}

#[cfg(feature = "codec")]
fn encoded_engine() -> Option<Arc<dyn anytrace_query::Engine>> {
    Some(Arc::new(encoded::Encoded::default()))
}

#[cfg(not(feature = "codec"))]
fn encoded_engine() -> Option<Arc<dyn anytrace_query::Engine>> {
    None
}

/// A file of the repository.
fn original(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match name.split_once(':') {
        Some((of, path)) => root.join("crates").join(of).join("corpus").join(path),
        None => root.join("examples/traces").join(name),
    }
}

impl DB for Engine {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Answer {
        if let Some(words) = sql.strip_prefix("OPEN ") {
            self.open(words);
            return Ok(DBOutput::StatementComplete(0));
        }
        if sql == "DAMAGE" {
            return self.damage();
        }
        let session = self.session.as_ref().expect("a file begins with OPEN");
        let (schema, batches) = match self.runtime.block_on(session.rows(sql)) {
            Ok(result) => result,
            Err(error) => return Err(Failed(message(&error, Some(session)))),
        };
        if schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = schema.fields().iter().map(|field| kind(field.data_type())).collect();
        Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(rows).collect() })
    }
}

fn kind(of: &DataType) -> DefaultColumnType {
    match of {
        kind if kind.is_integer() => DefaultColumnType::Integer,
        kind if kind.is_floating() => DefaultColumnType::FloatingPoint,
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => DefaultColumnType::Text,
        DataType::Dictionary(_, values) => kind(values),
        _ => DefaultColumnType::Any,
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap()).collect();
    let cell = |text: String| if text.is_empty() { "(empty)".to_owned() } else { text };
    let row = |row: usize| columns.iter().map(|column| cell(column.value(row).to_string())).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn run_all(partitions: usize, has_index: bool) {
    run_each(partitions, has_index, false);
}

fn run_each(partitions: usize, has_index: bool, is_encoded: bool) {
    let mut wrong = Vec::new();
    for script in scripts() {
        let mut runner = Runner::new(|| async { Ok(Engine::new(partitions, has_index, is_encoded)) });
        runner.with_column_validator(sqllogictest::strict_column_validator);
        if let Err(error) = runner.run_file(&script) {
            wrong.push(error.to_string());
        }
    }
    let of = format!("{partitions} partitions, index: {has_index}, encoded: {is_encoded}");
    assert!(wrong.is_empty(), "{of}\n{}", wrong.join("\n"));
}

#[test]
fn one_partition() {
    run_all(1, false);
}

#[test]
fn two_partitions() {
    run_all(2, false);
}

#[test]
fn four_partitions() {
    run_all(4, false);
}

#[test]
fn seven_partitions() {
    run_all(7, false);
}

#[test]
fn one_partition_with_an_index() {
    run_all(1, true);
}

#[test]
fn two_partitions_with_an_index() {
    run_all(2, true);
}

#[test]
fn four_partitions_with_an_index() {
    run_all(4, true);
}

#[test]
fn seven_partitions_with_an_index() {
    run_all(7, true);
}

#[cfg(feature = "codec")]
#[test]
fn plans_that_were_bytes_give_the_same_rows() {
    for partitions in [1, 2, 4, 7] {
        run_each(partitions, true, true);
    }
}

#[cfg(feature = "codec")]
#[test]
fn shares_by_indexes_made_elsewhere_give_the_same_rows() {
    for partitions in [1, 4] {
        run_each(partitions, false, true);
    }
}

#[test]
fn the_expected_rows_are_those_that_python_works_out() {
    let anytrace = Path::new(env!("CARGO_BIN_EXE_anytrace-query")).with_file_name("anytrace");
    if !anytrace.is_file() {
        skip("anytrace is not built: cargo build");
        return;
    }
    let mut python = Command::new("python3");
    python.arg(folder().join("expected.py")).arg(anytrace).args(scripts());
    let Ok(output) = python.output() else {
        skip("python3 is not installed: the expected rows were not worked out again");
        return;
    };
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}
