//! What must hold of a recorded program.

use std::process::Command;

use serde_json::Value;

use super::Bench;
use crate::shell::{has_program, output};

pub(super) const HEAD: &str = "\
| program | accesses | threads | names found | D1 misses | cachegrind's | lines' accesses |
|---|---|---|---|---|---|---|";

/// How far D1 misses may be from those that cachegrind counts of the native program: code that is instrumented keeps
/// other values in registers, and cachegrind sees all of the C library.
const RATIO_MAX: f64 = 2.5;

/// Records the program, checks the trace and returns a row.
pub(super) fn row(bench: &Bench<'_>) -> Result<String, String> {
    let native = printed(bench, Command::new("./native"))?;
    let mut record = bench.anytrace();
    record.args(["cacheray", "record", "--force", "-o", "app.mem", "--", "./recorded"]);
    // The exit code says whether anything was lost.
    let recorded = printed(bench, record)?;
    if native != recorded {
        return Err(format!("prints {recorded:?} in place of {native:?}"));
    }
    output(bench.anytrace().args(["check", "app.mem"]))?;
    let types = json(bench, &["memory", "types", "app.mem"])?;
    let names: Vec<&str> =
        types["types"].as_array().into_iter().flatten().filter_map(|one| one["type"].as_str()).collect();
    let has = |part: &str| names.iter().any(|name| name.contains(part));
    if let Some(missing) = bench.program.named.iter().find(|part| !has(part)) {
        return Err(format!("no type is called {missing}: {names:?}"));
    }
    if let Some(found) = bench.program.unnamed.iter().find(|part| names.iter().any(|name| name.starts_with(**part))) {
        return Err(format!("a type is called {found}: {names:?}"));
    }
    let threads = json(bench, &["info", "app.mem"])?["threads"].as_object().map_or(0, serde_json::Map::len);
    if bench.program.has_threads && threads < 4 {
        return Err(format!("{threads} threads"));
    }
    let (misses, accesses) = first_level(bench)?;
    let lines = annotated(bench)?;
    if lines != accesses {
        return Err(format!("lines have {lines} accesses of {accesses}"));
    }
    let peer = if has_program("valgrind") { Some(cachegrind(bench)?) } else { None };
    if let Some(peer) = peer
        && (misses as f64 / peer as f64 > RATIO_MAX || peer as f64 / misses as f64 > RATIO_MAX)
    {
        return Err(format!("{misses} D1 misses; cachegrind counts {peer}"));
    }
    let (name, found) = (bench.program.name, bench.program.named.len());
    let peer = peer.map_or_else(|| "-".to_owned(), |peer| peer.to_string());
    Ok(format!("| {name} | {accesses} | {threads} | {found} | {misses} | {peer} | {lines} |"))
}

/// What the program prints, by itself or at the end of a command.
fn printed(bench: &Bench<'_>, command: Command) -> Result<String, String> {
    let database = bench.folder.join("database");
    if database.exists() {
        std::fs::remove_dir_all(&database).map_err(|error| error.to_string())?;
    }
    let bytes = output(&mut bench.started(command, bench.program.arguments))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn json(bench: &Bench<'_>, arguments: &[&str]) -> Result<Value, String> {
    let bytes = output(bench.anytrace().args(arguments).args(["--format", "json"]))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{arguments:?}: {error}"))
}

/// Misses of cachegrind's usual D1, and accesses.
fn first_level(bench: &Bench<'_>) -> Result<(u64, u64), String> {
    let config = r#"{"levels":[{"name":"D1","size":32768,"ways":8,"line":64,"policy":"lru"}]}"#;
    std::fs::write(bench.folder.join("d1.json"), config).map_err(|error| error.to_string())?;
    let found = json(bench, &["memory", "sim", "--config", "d1.json", "app.mem"])?;
    let level = &found["results"]["d1"]["levels"][0];
    let number = |value: &Value| value.as_u64().ok_or_else(|| format!("no number in {found}"));
    Ok((number(&level["read_misses"])? + number(&level["write_misses"])?, number(&found["accesses"])?))
}

/// Accesses of all lines of the source, with those whose line is not known.
fn annotated(bench: &Bench<'_>) -> Result<u64, String> {
    let found = json(bench, &["memory", "annotate", "--by", "line", "--config", "zen3", "app.mem"])?;
    let count = |row: &Value| row["reads"].as_u64().unwrap_or(0) + row["writes"].as_u64().unwrap_or(0);
    let rows: u64 = found["rows"].as_array().into_iter().flatten().map(count).sum();
    Ok(rows + count(&found["unknown"]))
}

/// D1 misses of the native program.
fn cachegrind(bench: &Bench<'_>) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--cachegrind-out-file=/dev/null"]);
    valgrind.args(["--log-file=cachegrind.log", "./native"]);
    printed(bench, valgrind)?;
    let log = std::fs::read_to_string(bench.folder.join("cachegrind.log")).map_err(|error| error.to_string())?;
    let line = log.lines().find_map(|line| line.split_once("D1  misses:")).ok_or("cachegrind counts no D1 misses")?;
    let digits: String =
        line.1.trim().chars().take_while(|c| !c.is_whitespace()).filter(char::is_ascii_digit).collect();
    digits.parse().map_err(|_| format!("no number: {}", line.1))
}
