//! SQL, by the program `anytrace-query`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anytrace_core::index::Choice;
use anytrace_core::tables;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::{Problem, Reply};
use crate::view::{File, View};

/// Rows of an answer.
const ROWS_MAX: usize = 10_000;

/// Bytes of results that are read.
const BYTES_MAX: u64 = 64 << 20;

/// Bytes of complaints that are read.
const COMPLAINT_BYTES_MAX: u64 = 64 << 10;

/// How long a statement may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// `api/sql`: runs a statement.
pub(crate) async fn run(view: &View, sql: String) -> Result<Reply, Problem> {
    let program = view.options.query.as_ref().ok_or_else(absent)?;
    if !view.files.iter().all(File::can_be_read_again) {
        return Err(Problem::new(400, "what comes through a pipe cannot be read again for SQL"));
    }
    let started = Instant::now();
    let mut command = Command::new(program);
    // All but those that a collector has removed.
    let files: Vec<_> = view.files.iter().map(|file| file.path().into_owned()).filter(|path| path.is_file()).collect();
    command.arg(request(view, &sql, files.len())?.to_string()).args(files);
    // The engine ends when its standard input does: with this server, or when nobody waits for the answer.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| Problem::new(500, format!("anytrace-query: {error}")))?;
    let read = tokio::time::timeout(PATIENCE, output(&mut child)).await;
    let (out, complaints, code) =
        read.map_err(|_| Problem::new(504, "the statement took longer than ten minutes"))??;
    let complaints = String::from_utf8_lossy(&complaints).into_owned();
    // 0 is fine, 1 is damage: the rows are there all the same.
    let was_cut = out.len() as u64 >= BYTES_MAX;
    if !matches!(code, Some(0 | 1)) && !was_cut {
        let text = complaints.trim().trim_start_matches("anytrace: error: ").to_owned();
        return Err(Problem::new(400, if text.is_empty() { "the statement failed".to_owned() } else { text }));
    }
    let (columns, rows, truncated) = table(&out, was_cut);
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let diagnostics: Vec<&str> = complaints.lines().collect();
    Ok(Reply::Json(json!({
        "columns": columns, "rows": rows, "diagnostics": diagnostics, "elapsed_ms": elapsed_ms, "truncated": truncated,
    })))
}

fn absent() -> Problem {
    Problem::new(
        501,
        "SQL needs the program anytrace-query, which is not beside anytrace and not in PATH; `cargo install \
         anytrace-query` installs it",
    )
}

/// What the engine is asked, of so many files.
fn request(view: &View, sql: &str, files: usize) -> Result<Value, Problem> {
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| Problem::new(400, "the name of a file is not UTF-8"))
    };
    let programs =
        view.options.symbols.iter().map(|source| Ok(json!({"object": source.object, "path": text(&source.path)?})));
    let index = match &view.options.index {
        Choice::None => Value::Null,
        Choice::Auto(folder) => json!({"folder": folder.as_deref().map(text).transpose()?}),
        Choice::File(path) => json!({"file": text(path)?}),
    };
    let nothing: Vec<Value> = vec![Value::Null; files];
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "action": "query",
        "sql": sql,
        "format": "jsonl",
        "csv_raw": true,
        "schemas": nothing,
        "shown": nothing,
        "input_format": view.files.first().and_then(|file| file.source.format.as_deref()),
        "programs": programs.collect::<Result<Vec<_>, Problem>>()?,
        "demangle": view.options.mangling == anytrace_core::span::Mangling::Demangled,
        "threads": view.options.threads,
        "memory_bytes": Value::Null,
        "parameters": [],
        "index": index,
        "lifeline": true,
        "progress": false,
        "history": Value::Null,
    }))
}

/// Reads both outputs of the engine to their end, or to the limits.
async fn output(child: &mut Child) -> Result<(Vec<u8>, Vec<u8>, Option<i32>), Problem> {
    let failed = |error: std::io::Error| Problem::new(500, format!("anytrace-query: {error}"));
    let lifeline = child.stdin.take();
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Problem::new(500, "anytrace-query has no output"));
    };
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (stdout.take(BYTES_MAX), stderr.take(COMPLAINT_BYTES_MAX));
    let results = async {
        let read = stdout.read_to_end(&mut out).await;
        drop(stdout);
        read
    };
    let (read, said) = tokio::join!(results, stderr.read_to_end(&mut complaints));
    read.and(said).map_err(failed)?;
    if out.len() as u64 >= BYTES_MAX {
        child.start_kill().map_err(failed)?;
    }
    let status = child.wait().await.map_err(failed)?;
    drop(lifeline);
    Ok((out, complaints, status.code()))
}

/// Columns and rows from lines of objects, whose members are in the order of the columns.
fn table(out: &[u8], was_cut: bool) -> (Vec<Value>, Vec<Value>, bool) {
    let lines: Vec<&[u8]> = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let complete = if was_cut { lines.len().saturating_sub(1) } else { lines.len() };
    let mut names: Vec<String> = Vec::new();
    let mut kinds: Vec<&'static str> = Vec::new();
    let mut rows = Vec::new();
    for line in lines.iter().take(complete.min(ROWS_MAX)) {
        let Some(members) = members(line) else { continue };
        if names.is_empty() {
            names = members.iter().map(|(name, _)| name.clone()).collect();
            kinds = vec!["null"; names.len()];
        }
        for (kind, (_, value)) in kinds.iter_mut().zip(&members) {
            if *kind == "null" {
                *kind = kind_of(value);
            }
        }
        rows.push(Value::Array(members.into_iter().map(|(_, value)| value).collect()));
    }
    let columns = names.iter().zip(&kinds).map(|(name, kind)| json!({"name": name, "type": kind})).collect();
    (columns, rows, was_cut || lines.len() > ROWS_MAX)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) | Value::Object(_) => "json",
    }
}

/// The members of an object in their order. Integers stay as they are, however long: the page reads their digits.
fn members(line: &[u8]) -> Option<Vec<(String, Value)>> {
    struct Ordered(Vec<(String, Value)>);
    impl<'de> serde::de::Visitor<'de> for Ordered {
        type Value = Self;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
            while let Some(member) = map.next_entry()? {
                self.0.push(member);
            }
            Ok(self)
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(line);
    serde::Deserializer::deserialize_map(&mut reader, Ordered(Vec::new())).ok().map(|ordered| ordered.0)
}

/// `api/tables`: the tables of all files, with their columns.
pub(crate) fn tables(view: &View) -> Reply {
    let mut found: Vec<anytrace_core::table::Table> = Vec::new();
    for file in view.files.iter() {
        let format = file.state().format;
        for table in format.map(tables::all).unwrap_or_default() {
            if !found.iter().any(|known| known.name == table.name) {
                found.push(table);
            }
        }
    }
    let several = view.files.len() > 1;
    let of_table = |table: &anytrace_core::table::Table| {
        let own = table.columns.iter().map(|column| {
            json!({"name": column.name, "type": format!("{:?}", column.kind).to_lowercase(), "help": column.help})
        });
        let origin =
            several.then(|| json!({"name": tables::origin_column(table), "type": "name", "help": "the trace"}));
        json!({"table": table.name, "help": table.help, "columns": own.chain(origin).collect::<Vec<_>>()})
    };
    Reply::Json(Value::Array(found.iter().map(of_table).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_statement() {
        let out = b"{\"z\":1,\"a\":null,\"m\":\"x\"}\n{\"z\":2,\"a\":0.5,\"m\":null}\n{\"z\":3";
        let (columns, rows, truncated) = table(out, true);
        assert_eq!(
            Value::Array(columns),
            json!([{"name": "z", "type": "integer"}, {"name": "a", "type": "float"}, {"name": "m", "type": "text"}])
        );
        assert_eq!((Value::Array(rows), truncated), (json!([[1, null, "x"], [2, 0.5, null]]), true));
    }

    #[test]
    fn no_rows_have_no_columns() {
        assert_eq!(table(b"", false), (vec![], vec![], false));
    }
}
