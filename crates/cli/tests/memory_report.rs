//! `memory report`: a page with the figures of the other verbs, which loads nothing and whose links lead somewhere.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use html5gum::{Token, Tokenizer};
use serde_json::Value;

fn sample(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory-report");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).env("NO_COLOR", "1").output().unwrap()
}

fn page(arguments: &[&str]) -> String {
    let output = run(&[&["memory", "report", "--config", "zen3", "-o", "-"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn grouped(number: u64) -> String {
    anytrace_core::text::grouped(u128::from(number))
}

/// The rows of the first table in the part with this id: the texts of the cells.
fn rows(page: &str, id: &str) -> Vec<Vec<String>> {
    let part = page.split(&format!("id=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("no part {id}"));
    let table = part.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let text = |cell: &str| {
        let html = cell.split("</td>").next().unwrap().split_once('>').unwrap().1;
        let strings = Tokenizer::new(html).flatten().filter_map(|token| match token {
            Token::String(text) => Some(String::from_utf8_lossy(&text.value).into_owned()),
            _ => None,
        });
        strings.collect::<String>()
    };
    table.split("<tr").skip(1).map(|row| row.split("<td").skip(1).map(text).collect()).collect()
}

/// The page is of elements that end, has ids once, leads only to them, and loads and runs nothing.
fn must_be_sound(page: &str) {
    let (mut open, mut ids, mut links) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for token in Tokenizer::new(page).flatten() {
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                assert!(!["script", "iframe", "object", "link", "img"].contains(&name.as_str()), "<{name}>");
                let attributes: BTreeMap<String, String> = tag
                    .attributes
                    .iter()
                    .map(|(key, value)| {
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        (text(key), text(value))
                    })
                    .collect();
                assert!(!attributes.keys().any(|key| key.starts_with("on") || key == "src"), "{attributes:?}");
                if let Some(id) = attributes.get("id") {
                    assert!(ids.insert(id.clone()), "id {id} twice");
                }
                links.extend(attributes.get("href").cloned());
                if !tag.self_closing && !["meta", "br"].contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                assert_eq!(open.pop().as_deref(), Some(name.as_str()), "</{name}>");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for link in links {
        let to = link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leads out of the page"));
        assert!(ids.contains(to), "{link} leads nowhere");
    }
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
}

#[test]
fn the_figures_are_those_of_the_other_verbs() {
    let trace = sample("crates/cacheray/corpus/types/layouts.trace.gz");
    let types = sample("crates/cacheray/corpus/types/layouts.dwarf.json");
    let page = page(&[&trace, "-m", &types, "--top", "0"]);
    must_be_sound(&page);

    let sim = json(&["memory", "sim", "--config", "zen3", "--format", "json", &trace]);
    let levels = sim["results"]["zen3"]["levels"].clone();
    let of_levels = rows(&page, "caches");
    assert_eq!(of_levels.len(), 3);
    for (row, name) in of_levels.iter().zip(["L1", "L2", "L3"]) {
        let level = match &levels {
            Value::Array(all) => all.iter().find(|level| level["name"] == name).unwrap(),
            all => &all[name],
        };
        let count = |key: &str| level[key].as_u64().unwrap();
        assert_eq!(row[2], grouped(count("read_misses") + count("write_misses")), "{name}: {row:?}");
    }

    let mrc = json(&["memory", "mrc", "--format", "json", &trace]);
    let of_sizes = rows(&page, "curve");
    // A cache of 512 lines is the L1 of 32 KiB.
    assert_eq!(of_sizes[0][2..4], ["512".to_owned(), grouped(mrc["lru_misses_fully_assoc"]["512"].as_u64().unwrap())]);
    assert!(page.contains(&format!("The share of {} accesses", grouped(mrc["line_accesses"].as_u64().unwrap()))));

    let found = json(&["memory", "types", "--config", "zen3", "--format", "json", &trace, "-m", &types]);
    let of_types = rows(&page, "types");
    for one in found["types"].as_array().unwrap() {
        let count = |key: &str| one[key].as_u64().unwrap();
        let row = of_types.iter().find(|row| row[7] == one["type"].as_str().unwrap()).unwrap();
        assert_eq!(row[0], grouped(count("misses")), "{row:?}");
        assert_eq!(row[3..5], [grouped(count("reads")), grouped(count("writes"))], "{row:?}");
    }
    let first = &rows(&page, "fields")[0];
    assert!(first[5].chars().all(|letter| !letter.is_ascii_digit()), "fields have names: {first:?}");
}

#[test]
fn leaks_are_those_of_lifetime_by_stack() {
    let trace = sample("crates/cacheray/corpus/types/churn.trace.gz");
    let page = page(&[&trace]);
    must_be_sound(&page);
    let found = json(&["memory", "lifetime", "--by", "stack", "--format", "json", &trace]);
    let stacks = found["stacks"].as_array().unwrap();
    let of_stacks = rows(&page, "leaks");
    assert_eq!(of_stacks.len(), stacks.len());
    let some = |count: &Value| match count.as_u64().unwrap() {
        0 => "·".to_owned(),
        count => grouped(count),
    };
    for (row, stack) in of_stacks.iter().zip(stacks) {
        assert_eq!(row[0], some(&stack["leaked"]), "{row:?}");
        assert_eq!(row[3].split(' ').next().unwrap(), some(&stack["short_lived"]), "{row:?}");
        assert_eq!(row[4].split(' ').next().unwrap(), some(&stack["never_read"]), "{row:?}");
        assert_eq!(row[6], some(&stack["regions"]), "{row:?}");
        assert_eq!(row[8], stack["name"].as_str().unwrap());
    }
    // Types and stacks agree where no type is named after a stack.
    let sum = |rows: &[Value], key: &str| rows.iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    let types = found["types"].as_array().unwrap();
    for key in ["leaked", "leaked_bytes", "short_lived", "never_read_bytes", "never_written", "bytes_at_peak"] {
        assert_eq!(sum(types, key), sum(stacks, key), "{key}");
    }
    assert_eq!(sum(types, "bytes_at_peak"), found["peak_live_bytes"].as_u64().unwrap());
    assert!(page.contains("1 access after removal, 5 reads before the first write"), "misuse is on the page");
}

#[test]
fn advice_has_the_gain_that_sharing_simulates() {
    let trace = sample("crates/cacheray/corpus/curves/falseshare.rh14-O0.trace.gz");
    let page = page(&[&trace]);
    must_be_sound(&page);
    let found = json(&["memory", "sharing", "--format", "json", &trace]);
    let (row, advice) = (&rows(&page, "advice")[0], &found["advice"][0]);
    let count = |key: &str| advice[key].as_u64().unwrap();
    let before = count("misses_before").min(count("misses_moved_only"));
    assert_eq!(row[..3], [before, count("misses_after"), count("gain")].map(grouped));
    assert_eq!(row[4], advice["change"].as_str().unwrap());
    let pairs = rows(&page, "pairs");
    assert_eq!(pairs[0][0], grouped(found["pairs"][0]["false_sharing_misses"].as_u64().unwrap()));
}

/// A trace of a region of a type with this name, an access to it, and its code.
fn of_type(name: &str, file: &str) -> String {
    let mut format =
        serde_json::json!({"version": 1, "format": "cacheray", "byte_order": "little", "pointer_width": 8});
    format["anytrace"] = "jsonl".into();
    let lines = [
        format,
        serde_json::json!({"kind": "rtta_add", "address": 4096, "elemsize": 16, "elemcount": 4, "thread": 0, "type": name}),
        serde_json::json!({"kind": "write", "address": 4104, "size": 8, "thread": 1}),
        serde_json::json!({"kind": "read", "address": 4104, "size": 8, "thread": 2}),
    ];
    let (source, made) = (scratch(&format!("{file}.jsonl")), scratch(&format!("{file}.cacheray")));
    std::fs::write(&source, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let made = made.display().to_string();
    let source = source.display().to_string();
    let output = run(&["convert", &source, "--to", "cacheray", "--force", "-o", &made]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    made
}

#[test]
fn names_are_text_whatever_they_contain() {
    for (file, name) in [
        ("script", "<script>alert(1)</script>"),
        ("attribute", "a\" onmouseover=\"alert(1)"),
        ("style", "</style><b>&amp;"),
        ("place", "f<script>x</script>+0x1<g<b>+0x2"),
    ] {
        let page = page(&[&of_type(name, file)]);
        must_be_sound(&page);
        assert!(!page.contains("<script") && !page.contains("\" onmouseover"), "{name}");
    }
    let escaped = page(&[&of_type("<script>alert(1)</script>", "script")]);
    assert!(escaped.matches("&lt;script&gt;alert(1)&lt;/script&gt;").count() >= 4, "{escaped}");
    must_be_sound(&page(&[&sample("crates/cli/tests/evil/e.cacheray")]));
}

#[test]
fn a_damaged_trace_has_a_page_that_says_so() {
    let bytes = std::fs::read(sample("examples/traces/boxes.cacheray")).unwrap();
    let cut = scratch("cut.cacheray");
    std::fs::write(&cut, &bytes[..bytes.len() - 3]).unwrap();
    let (cut, out) = (cut.display().to_string(), scratch("cut.html").display().to_string());
    let output = run(&["memory", "report", "--config", "zen3", "--force", "-o", &out, &cut]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("[cacheray/"), "{said}");
    let page = std::fs::read_to_string(&out).unwrap();
    must_be_sound(&page);
    assert!(page.contains("The trace is damaged: 1 diagnostic.") && page.contains("[cacheray/"), "{page}");
    // What is no trace at all has no page.
    let nothing = scratch("nothing.html");
    let _ = std::fs::remove_file(&nothing);
    let nothing = nothing.display().to_string();
    assert_ne!(run(&["memory", "report", "-o", &nothing, "/dev/null"]).status.code(), Some(0));
    assert!(!Path::new(&nothing).exists());
}

#[test]
fn a_page_is_replaced_only_by_force_and_comes_from_a_pipe_too() {
    let trace = sample("examples/traces/boxes.cacheray");
    let out = scratch("once.html");
    let _ = std::fs::remove_file(&out);
    let out = out.display().to_string();
    let write = |more: &[&str]| run(&[&["memory", "report", "--config", "zen3", "-o", &out, &trace], more].concat());
    assert_eq!(write(&[]).status.code(), Some(0));
    let before = std::fs::read(&out).unwrap();
    assert_eq!(write(&[]).status.code(), Some(2));
    assert_eq!(write(&["--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read(&out).unwrap(), before, "the same trace has the same page");
    let mut piped = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    piped.args(["memory", "report", "--config", "zen3", "-o", "-", "-"]);
    let piped = piped.stdin(std::fs::File::open(&trace).unwrap()).output().unwrap();
    assert!(piped.status.success() && piped.stdout.starts_with(b"<!doctype html>"));
}

#[test]
fn functions_and_lines_are_those_of_annotate() {
    let trace = sample("examples/traces/rows.lackey");
    let page = page(&[&trace, "--top", "0"]);
    must_be_sound(&page);
    let found = json(&["memory", "annotate", "--config", "zen3", "--by", "function", "--format", "json", &trace]);
    let all = found["rows"].as_array().unwrap();
    let of_functions = rows(&page, "functions");
    assert_eq!(of_functions.len(), all.len());
    for (row, one) in of_functions.iter().zip(all) {
        let count = |key: &str| match one[key].as_u64().unwrap() {
            0 => "·".to_owned(),
            count => grouped(count),
        };
        assert_eq!([&row[0], &row[3], &row[4]], [&count("misses"), &count("reads"), &count("writes")], "{row:?}");
    }
}
