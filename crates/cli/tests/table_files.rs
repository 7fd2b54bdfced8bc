//! `convert --to arrow|parquet`: tables of traces as files, through the program.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::table::{Scan, Table};
use anytrace_core::tables::{all, read};
use anytrace_core::{Collect, Format, Input, InputOptions, OpenOptions, SpanOptions};
use anytrace_export::tables::{OUTPUTS, TableOutput, by_name};
use anytrace_formats::{Recognized, recognize};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn run(folder: &Path, line: &str) -> Output {
    let word = |word: &str| match word.strip_prefix("EXAMPLES/") {
        Some(name) => example(name).into_os_string(),
        None => word.into(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.current_dir(folder).args(line.split(' ').map(word)).output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that works.
fn fine(folder: &Path, line: &str) -> Output {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", error(&output));
    output
}

/// Runs a command that makes no sense; returns what it says.
fn refused(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(2), "{line}: {}", error(&output));
    assert!(output.stdout.is_empty(), "{line}");
    error(&output)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn opened(path: &Path) -> (&'static dyn Format, Input) {
    let input = Input::open(path, InputOptions::default()).unwrap();
    match recognize(&input.head()) {
        Recognized::Trace(format) => (format, input),
        _ => panic!("{}: not a trace", path.display()),
    }
}

/// The file that the libraries make of a table.
fn expected(path: &Path, table: &Table, output: &TableOutput) -> Vec<u8> {
    let (format, input) = opened(path);
    let trace = format.open(input, &OpenOptions::default()).unwrap();
    let mut out = Vec::new();
    let mut writer = (output.open)(&mut out, table).unwrap();
    let (scan, options) = (Scan::default(), SpanOptions::default());
    read(format, trace, table.name, &scan, &options, &mut *writer, &mut Collect::default()).unwrap();
    writer.finish().unwrap();
    out
}

#[test]
fn every_table_of_a_trace_is_a_file_of_a_folder_or_one_file() {
    for name in ["threads4.xray", "boxes.cacheray", "rows.lackey", "relay.heph", "imm.trace"] {
        let tables = all(opened(&example(name)).0);
        for output in &OUTPUTS {
            let folder = tempfile::tempdir().unwrap();
            fine(folder.path(), &format!("convert EXAMPLES/{name} --to {} -o all/", output.name));
            let extension = output.extensions[0];
            let mut names: Vec<_> = tables.iter().map(|table| format!("{}.{extension}", table.name)).collect();
            names.sort();
            assert_eq!(files(&folder.path().join("all")), names, "{name}");
            for table in &tables {
                let file = fs::read(folder.path().join(format!("all/{}.{extension}", table.name))).unwrap();
                assert!(file == expected(&example(name), table, output), "{name}, {}, {}", table.name, output.name);
                let line = format!("convert EXAMPLES/{name} --to {} --table {} -o -", output.name, table.name);
                assert!(fine(folder.path(), &line).stdout == file, "{line}");
            }
        }
    }
}

#[test]
fn the_form_is_that_of_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    for (extension, name) in [("parquet", "parquet"), ("arrow", "arrow"), ("feather", "arrow")] {
        fine(folder.path(), &format!("convert EXAMPLES/rows.lackey --table accesses -o out.{extension}"));
        let file = fs::read(folder.path().join(format!("out.{extension}"))).unwrap();
        let lackey = example("rows.lackey");
        let tables = all(opened(&lackey).0);
        let table = tables.iter().find(|table| table.name == "accesses").unwrap();
        assert!(file == expected(&lackey, table, by_name(name).unwrap()), "{extension}");
    }
}

#[test]
fn a_table_comes_from_a_pipe_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(["convert", "-", "--to", "parquet", "--table", "spans", "-o", "-"]);
    let input = fs::File::open(example("threads4.xray")).unwrap();
    let output = command.stdin(Stdio::from(input)).stdout(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let line = "convert EXAMPLES/threads4.xray --to parquet --table spans -o -";
    assert!(output.stdout == fine(Path::new("."), line).stdout);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    let folder = tempfile::tempdir().unwrap();
    command.current_dir(folder.path()).args(["convert", "-", "--to", "parquet", "--all-tables", "-o", "out"]);
    let input = fs::File::open(example("threads4.xray")).unwrap();
    let output = command.stdin(Stdio::from(input)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error(&output).contains("read only once, which gives one table: choose with --table"),
        "{}",
        error(&output)
    );
    assert!(files(folder.path()).is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_and_says_which_tables_there_are() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let lines = fine(folder.path(), "convert EXAMPLES/relay.heph --to jsonl -o -").stdout;
    fs::write(folder.path().join("lines.jsonl"), lines).unwrap();
    let before = files(folder.path());
    for (line, says) in [
        ("EXAMPLES/threads4.xray --to parquet -o out.parquet", "has one table: choose with --table "),
        ("EXAMPLES/threads4.xray -o out.arrow", "spans, stacks, or write all into a folder: --all-tables -o DIR"),
        ("EXAMPLES/threads4.xray --to parquet --table nothing -o out", "no table nothing; there are "),
        ("EXAMPLES/threads4.xray --to parquet --table nothing -o out/", "spans, stacks\n"),
        ("EXAMPLES/threads4.xray --to chrome --table spans -o out", "--table applies only to tables"),
        ("EXAMPLES/threads4.xray --table spans -o out.json", "--table applies only to tables"),
        ("EXAMPLES/threads4.xray --to yaml --all-tables -o out", "--all-tables applies only to tables"),
        ("EXAMPLES/threads4.xray --all-tables -o out", "--all-tables applies only to tables"),
        ("EXAMPLES/threads4.xray --to parquet --all-tables -o -", "use -o to name a folder"),
        ("EXAMPLES/threads4.xray --to parquet --all-tables -o no/such", "cannot write no/such: "),
        ("EXAMPLES/threads4.xray --to parquet --all-tables -o empty", "cannot write empty: "),
        ("EXAMPLES/threads4.xray --to parquet --table spans --csv-raw -o out", "apply only to timelines"),
        ("EXAMPLES/threads4.xray --to parquet --table spans --version 3 -o out", "--version does not apply to parquet"),
        ("EXAMPLES/threads4.xray --to parquet --all-tables --version 3 -o out", "--version does not apply to parquet"),
        ("lines.jsonl --to parquet --table spans -o out", "JSON lines of heph; first convert them"),
        ("lines.jsonl --to parquet --all-tables -o out", "JSON lines of heph; first convert them"),
        ("empty --to parquet --all-tables -o out", "no bytes, so that its tables are not known"),
        ("empty --to parquet --table nothing -o out", "no table nothing; there are "),
    ] {
        let said = refused(folder.path(), &format!("convert {line}"));
        assert!(said.contains(says), "{line}: {said}");
        assert_eq!(files(folder.path()), before, "{line}");
    }
}

#[test]
fn a_table_of_nothing_is_a_file_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    for output in &OUTPUTS {
        let mut out = Vec::new();
        (output.open)(&mut out, &anytrace_core::table::STACKS).unwrap().finish().unwrap();
        let name = output.name;
        assert!(fine(folder.path(), &format!("convert empty --to {name} --table stacks -o -")).stdout == out);
        fine(folder.path(), &format!("convert empty --to {name} --input-format xray -o {name}/"));
        assert!(fs::read(folder.path().join(format!("{name}/stacks.{name}"))).unwrap() == out);
    }
}

#[test]
fn nothing_is_replaced_without_force_and_other_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    let file = |name: &str| folder.path().join("out").join(name);
    fs::write(file("stacks.parquet"), "mine").unwrap();
    let said = refused(folder.path(), "convert EXAMPLES/threads4.xray --to parquet -o out");
    assert!(said.contains("stacks.parquet exists; use --force"), "{said}");
    assert_eq!(files(&folder.path().join("out")), ["stacks.parquet"]);
    assert_eq!(fs::read(file("stacks.parquet")).unwrap(), b"mine");
    fine(folder.path(), "convert EXAMPLES/threads4.xray --to parquet -o out --table spans");
    assert_eq!(files(&folder.path().join("out")), ["spans.parquet", "stacks.parquet"]);
    fine(folder.path(), "convert EXAMPLES/threads4.xray --to parquet -o out --force");
    assert!(fs::read(file("stacks.parquet")).unwrap().starts_with(b"PAR1"));
}

#[test]
fn of_a_damaged_trace_every_table_is_written_and_the_damage_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(example("boxes.cacheray")).unwrap();
    bytes.truncate(bytes.len() - 3);
    fs::write(folder.path().join("cut.cacheray"), &bytes).unwrap();
    let one = run(folder.path(), "convert cut.cacheray --table accesses -o one.parquet");
    assert_eq!(one.status.code(), Some(1), "{}", error(&one));
    let all = run(folder.path(), "convert cut.cacheray --to parquet --all-tables -o all");
    assert_eq!(all.status.code(), Some(1), "{}", error(&all));
    assert_eq!(error(&one), error(&all));
    assert!(error(&all).contains("byte 0x"), "{}", error(&all));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("one.parquet") == read("all/accesses.parquet"));
    // Nothing could be read: no file, and no folder.
    fs::write(folder.path().join("cut.cacheray"), &bytes[..5]).unwrap();
    let before = files(folder.path());
    for line in
        ["--to arrow --input-format cacheray --table accesses -o none", "--to arrow --input-format cacheray -o none/"]
    {
        let none = run(folder.path(), &format!("convert cut.cacheray {line}"));
        assert_eq!(none.status.code(), Some(1), "{}", error(&none));
        assert!(error(&none).contains("nothing could be read; nothing was written"), "{}", error(&none));
        assert_eq!(files(folder.path()), before);
    }
}

#[test]
fn functions_have_their_names_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xray/corpus");
    let map = Command::new("gzip").arg("-dc").arg(corpus.join("maps/threads-14.elf.gz")).output().unwrap();
    fs::write(folder.path().join("app"), map.stdout).unwrap();
    let line = "convert EXAMPLES/threads4.xray --to arrow -o out/ -m app --no-demangle";
    let output = fine(folder.path(), line);
    let has = |table: &str, name: &str| {
        let file = fs::read(folder.path().join(format!("out/{table}.arrow"))).unwrap();
        file.windows(name.len()).any(|window| window == name.as_bytes())
    };
    assert!(has("spans", "main") && has("stacks", "main"), "{}", error(&output));
    assert!(error(&output).matches("functions are not in any file").count() <= 1, "{}", error(&output));
}

/// Every file below a folder, by its path from there.
fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in files(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            found.extend(below(&path).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found
}

#[test]
fn tables_of_several_traces_are_folders_with_a_folder_for_each_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("run=2")).unwrap();
    fs::copy(example("imm-trim.trace"), path("run=2/imm.trace")).unwrap();
    let line = "convert EXAMPLES/imm.trace run=2/imm.trace EXAMPLES/threads4.xray --to parquet --table spans -o out";
    fine(folder.path(), line);
    let names = ["run%3D2%2Fimm.trace", "threads4.xray", "traces%2Fimm.trace"];
    let made: Vec<_> = names.iter().map(|name| format!("spans/file={name}/part-0.parquet")).collect();
    assert_eq!(below(&path("out")), made);
    let traces = [path("run=2/imm.trace"), example("threads4.xray"), example("imm.trace")];
    for (file, trace) in made.iter().zip(&traces) {
        let table = all(opened(trace).0).into_iter().find(|table| table.name == "spans").unwrap();
        let bytes = expected(trace, &table, by_name("parquet").unwrap());
        assert!(fs::read(path("out").join(file)).unwrap() == bytes, "{file}");
    }
    // A later command adds traces; what is there is replaced only if that is asked for.
    assert!(refused(folder.path(), line).contains("use --force"));
    fine(folder.path(), &format!("{line} --force"));
    fine(folder.path(), "convert EXAMPLES/relay.heph EXAMPLES/imm-trim.trace --to parquet --table spans -o out");
    assert_eq!(below(&path("out")).len(), 5);
    // Every table; one that has a column `file` has another name for the trace.
    fs::copy(example("threads4.xray"), path("b.xray")).unwrap();
    fine(folder.path(), "convert EXAMPLES/threads4.xray b.xray --to arrow --all-tables -o all");
    let tables = all(opened(&example("threads4.xray")).0);
    assert_eq!(below(&path("all")).len(), 2 * tables.len());
    assert!(path("all/functions/trace=b.xray/part-0.arrow").is_file());
    assert!(path("all/calls/file=b.xray/part-0.arrow").is_file());
}

#[test]
fn nothing_is_written_of_several_traces_where_one_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty.xray"), "").unwrap();
    fs::write(folder.path().join("cut.heph"), &fs::read(example("relay.heph")).unwrap()[..7]).unwrap();
    fs::copy(example("relay.heph"), folder.path().join("relay.heph")).unwrap();
    let before = below(folder.path());
    for (line, says) in [
        ("EXAMPLES/imm.trace EXAMPLES/relay.heph -o out --to yaml", "can be converted to timelines"),
        ("EXAMPLES/imm.trace EXAMPLES/relay.heph -o out", "can be converted to timelines"),
        ("EXAMPLES/imm.trace EXAMPLES/relay.heph -o - --to parquet --table events", "use -o to name a folder"),
        ("EXAMPLES/imm.trace - -o out --to parquet --table events", "standard input has no name"),
        ("EXAMPLES/imm.trace EXAMPLES/imm.trace -o out --to parquet --table events", "the same name twice"),
        (
            "EXAMPLES/imm.trace EXAMPLES/relay.heph -o out --to parquet --table frames",
            "no table frames; there are events",
        ),
        ("EXAMPLES/imm.trace empty.xray -o out --to parquet --all-tables", "its tables are not known"),
        ("EXAMPLES/imm.trace missing -o out --to parquet --all-tables", "missing"),
        ("EXAMPLES/imm.trace EXAMPLES/relay.heph -o relay.heph --to parquet --table events", "cannot write relay.heph"),
    ] {
        let said = refused(folder.path(), &format!("convert {line}"));
        assert!(said.contains(says), "{line}: {said}");
        assert_eq!(below(folder.path()), before, "{line}");
        assert!(!folder.path().join("out").exists(), "{line}");
    }
    // The first is complete when it turns out that nothing can be read of the second.
    let line = "convert EXAMPLES/relay.heph cut.heph -o out --to parquet --table events --input-format heph";
    let cut = run(folder.path(), line);
    assert_eq!(cut.status.code(), Some(1), "{}", error(&cut));
    assert!(error(&cut).contains("nothing was written") && !folder.path().join("out").exists(), "{}", error(&cut));
    assert_eq!(below(folder.path()), before);
}
