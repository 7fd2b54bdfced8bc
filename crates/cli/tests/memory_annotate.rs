//! From a run to the lines that miss: `cacheray record` and `memory annotate`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod recorded;

use std::path::Path;
use std::process::Command;

use recorded::Bench;
use serde_json::Value;

/// Three loops: over a list, over a table by columns, and one that `memcpy` does.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; long value; char rest[48]; };
static long table[256][64], copy[256][64];
static __attribute__((noinline)) long walk(struct node *node)
{
    long sum = 0;
    for (; node; node = node->next)
        sum += node->value; /* the list */
    return sum;
}
static __attribute__((noinline)) long columns(void)
{
    long sum = 0;
    for (int x = 0; x < 64; x++)
        for (int y = 0; y < 256; y++)
            sum += table[y][x]; /* the table */
    return sum;
}
int main(void)
{
    struct node *first = 0;
    for (long n = 0; n < 3000; n++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        node->value = n; /* the value */
        first = node;
        table[n % 256][n / 256] = n;
    }
    memcpy(copy, table, sizeof copy); /* the copy */
    printf("%ld\n", walk(first) + columns() + copy[3][4]);
    return 0;
}
"#;

/// The program, and the trace of a run.
fn recorded() -> Bench {
    let bench = Bench::new(SOURCE);
    bench.run(&["cacheray", "record", "-o", "app.trace", "--", "./app"], 0);
    bench
}

fn json(bench: &Bench, arguments: &[&str]) -> Value {
    let all = [&["memory"], arguments, &["--config", "zen3", "--format", "json"]].concat();
    serde_json::from_slice(&bench.run(&all, 0).stdout).unwrap()
}

fn rows(object: &Value) -> &Vec<Value> {
    object["rows"].as_array().unwrap()
}

/// A figure of all rows and of what has no instruction.
fn sum(object: &Value, figure: &str) -> u64 {
    let of = |row: &Value| row[figure].as_u64().unwrap();
    rows(object).iter().map(of).sum::<u64>() + of(&object["unknown"])
}

/// The line with a comment.
fn line_of(comment: &str) -> usize {
    1 + SOURCE.lines().position(|line| line.contains(comment)).unwrap()
}

#[test]
fn lines_functions_and_instructions_add_up_to_what_is_simulated() {
    let bench = recorded();
    let simulated = json(&bench, &["sim", "app.trace"]);
    let served = simulated["results"]["zen3"]["records_served_by"].as_object().unwrap();
    let beyond: u64 = served.iter().filter(|(level, _)| *level != "L1").map(|(_, n)| n.as_u64().unwrap()).sum();
    for by in ["line", "function", "instruction"] {
        let found = json(&bench, &["annotate", "--by", by, "app.trace"]);
        assert_eq!(found["total"]["reads"], simulated["reads"], "{by}");
        for figure in ["reads", "writes", "misses", "memory"] {
            assert_eq!(Value::from(sum(&found, figure)), found["total"][figure], "{by}: {figure}");
        }
        assert_eq!(found["total"]["misses"], beyond, "{by}");
    }
}

#[test]
fn every_loop_has_its_accesses_at_its_line() {
    let bench = recorded();
    let found = json(&bench, &["annotate", "app.trace"]);
    let at = |comment: &str| {
        let line = line_of(comment);
        rows(&found).iter().find(|row| row["line"] == line).unwrap_or_else(|| panic!("{comment}: {found}")).clone()
    };
    let (list, table, value, copy) = (at("the list"), at("the table"), at("the value"), at("the copy"));
    assert_eq!((&list["reads"], &list["function"]), (&3000.into(), &"walk".into()));
    assert_eq!((&table["reads"], &table["function"]), (&(64 * 256).into(), &"columns".into()));
    // Lines of 64 bytes in 128 KiB: by columns every access misses 32 KiB.
    assert_eq!(table["misses"], 64 * 256);
    assert_eq!(value["writes"], 3000);
    // `memcpy` in pieces of 16 bytes.
    assert_eq!((&copy["reads"], &copy["writes"]), (&8192.into(), &8192.into()));
    assert!(list["file"].as_str().unwrap().ends_with("app.c"));
}

#[test]
fn functions_have_the_types_that_miss_in_them() {
    let bench = recorded();
    let found = json(&bench, &["annotate", "--by", "function", "app.trace"]);
    let of = |name: &str| rows(&found).iter().find(|row| row["function"] == name).unwrap().clone();
    let (walk, columns) = (of("walk"), of("columns"));
    let name = walk["types"][0]["type"].as_str().unwrap().to_owned();
    assert!(name.starts_with("main"), "the site of the allocation: {name}");
    assert_eq!(columns["types"][0]["type"], "table (global)");
    // Only this type.
    let only = json(&bench, &["annotate", "--by", "function", "--type", &name, "app.trace"]);
    let names: Vec<_> = rows(&only).iter().map(|row| row["function"].as_str().unwrap_or_default()).collect();
    assert!(names.contains(&"walk") && names.contains(&"main") && !names.contains(&"columns"), "{names:?}");
    let refused = bench.run(&["memory", "annotate", "--type", "nonsense", "app.trace"], 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("unknown type nonsense"));
}

#[test]
fn the_source_is_shown_around_the_lines() {
    let bench = recorded();
    let output = bench.run(&["memory", "annotate", "--config", "zen3", "--context", "1", "app.trace"], 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = line_of("the table");
    let shown = text.lines().find(|shown| shown.contains(&format!("  {line}  ")) && shown.contains("sum +=")).unwrap();
    assert!(shown.trim().starts_with("16,384"), "{shown}");
    let before = format!("  {}          for (int y", line - 1);
    assert!(text.contains(&before), "{text}");
    // Without the source the figures remain.
    std::fs::rename(bench.path("app.c"), bench.path("gone.c")).unwrap();
    let output = bench.run(&["memory", "annotate", "--config", "zen3", "app.trace"], 0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the file is not here") && text.contains("16,384"), "{text}");
}

#[test]
fn codes_of_another_run_are_refused_and_none_are_noted() {
    let bench = recorded();
    std::fs::copy(bench.path("app.trace.pc"), bench.path("kept.pc")).unwrap();
    bench.run(&["cacheray", "record", "--force", "--no-pc", "-o", "app.trace", "--", "./app"], 0);
    assert!(!bench.path("app.trace.pc").exists(), "those of the trace before are gone");
    let none = bench.run(&["memory", "annotate", "--config", "zen3", "app.trace"], 0);
    assert!(String::from_utf8_lossy(&none.stderr).contains("no access has a code address"));
    // Addresses of blocks differ from run to run.
    let other = bench.run(&["memory", "annotate", "--config", "zen3", "--pc", "kept.pc", "app.trace"], 1);
    assert!(String::from_utf8_lossy(&other.stderr).contains("does not belong to the accesses"));
    std::fs::write(bench.path("app.trace.pc"), "mine").unwrap();
    let refused = bench.run(&["cacheray", "record", "-o", "new.trace", "--", "./app"], 0);
    assert!(refused.stderr.len() > 10);
    std::fs::remove_file(bench.path("app.trace")).unwrap();
    let refused = bench.run(&["cacheray", "record", "-o", "app.trace", "--", "./app"], 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("app.trace.pc exists; use --force"));
}

#[test]
fn a_program_built_anew_gets_no_wrong_names() {
    let bench = recorded();
    let other = SOURCE.replace("3000", "3001").replace("walk", "stroll");
    std::fs::write(bench.path("app.c"), other).unwrap();
    bench.run(&["cacheray", "cc", "--", "gcc", "-g", "-O1", "-o", "app", "app.c"], 0);
    let output = bench.run(&["memory", "annotate", "--config", "zen3", "--by", "function", "app.trace"], 0);
    let (said, text) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("was built anew since the trace was recorded"), "{said}");
    assert!(!text.contains("stroll") && text.contains("(no name)"), "{text}");
}

#[test]
fn callgrinds_own_program_reads_it() {
    let bench = recorded();
    let arguments = ["memory", "annotate", "--config", "zen3", "--format", "callgrind", "app.trace"];
    let output = bench.run(&arguments, 0);
    std::fs::write(bench.path("app.callgrind"), &output.stdout).unwrap();
    let mut command = Command::new("callgrind_annotate");
    command.arg("app.callgrind").current_dir(bench.path("."));
    // Of valgrind, which the tests' packages bring.
    let read = command.output().unwrap();
    let text = String::from_utf8_lossy(&read.stdout);
    let total = json(&bench, &["annotate", "app.trace"])["total"].clone();
    let grouped = |number: &Value| {
        let digits = number.to_string();
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    };
    let totals = text.lines().find(|line| line.ends_with("PROGRAM TOTALS")).unwrap_or_else(|| panic!("{text}"));
    assert!(totals.starts_with(&grouped(&total["reads"])), "{totals}");
    assert!(totals.contains(&grouped(&total["misses"])), "{totals}");
    assert!(text.lines().any(|line| line.contains("app.c:columns")), "{text}");
}

#[test]
fn the_page_has_the_whole_file_and_leads_to_its_lines() {
    let bench = recorded();
    let output = bench.run(&["memory", "annotate", "--config", "zen3", "--format", "html", "app.trace"], 0);
    let page = String::from_utf8_lossy(&output.stdout);
    let line = line_of("the table");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains(&format!("href=\"#f0-{line}\"")) && page.contains(&format!("id=\"f0-{line}\"")), "{page}");
    assert!(page.contains("id=\"f0-2\"") && page.contains("#include &lt;stdio.h&gt;"), "all lines are there");
    assert!(!["src=", "http:", "https:"].iter().any(|part| page.contains(part)), "nothing is fetched");
}

#[test]
fn a_trace_of_lackey_has_the_instructions_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let trace = root.join("examples/traces/rows.lackey");
    let bench = recorded();
    let found = json(&bench, &["annotate", "--by", "instruction", trace.to_str().unwrap()]);
    assert_eq!(found["unknown"]["reads"], 0);
    let total = |figure: &str| found["total"][figure].as_u64().unwrap();
    assert_eq!((sum(&found, "reads"), sum(&found, "writes")), (total("reads"), total("writes")));
    assert!(rows(&found).len() > 3 && rows(&found).iter().all(|row| row["address"].as_u64().unwrap() > 0));
}
