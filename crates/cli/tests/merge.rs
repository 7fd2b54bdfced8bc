//! `merge`, and `convert`, `stats`, `flame`, `timeline` of several traces as one.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const XRAY: &str = "threads4.xray";
const HEPH: &str = "relay.heph";
const CALLS: &str = "imm-trim.trace";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces")
}

/// Runs in the folder of examples: messages have short names.
fn anytrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(examples()).args(arguments).output().unwrap()
}

fn out(arguments: &[&str]) -> String {
    let output = anytrace(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Begin (of the first) and length by process, thread and name, from a trace in Chrome's form, in nanoseconds.
type Spans = BTreeMap<(String, u64, String), Vec<(i64, i64)>>;

/// An independent reading of Chrome's form: pairs of B and E, and X.
fn spans(json: &str) -> Spans {
    let trace: Value = serde_json::from_str(json).unwrap();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    let (mut processes, mut open, mut spans) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new(), Spans::new());
    for event in trace["traceEvents"].as_array().unwrap() {
        let (pid, tid) = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
        let name = || event["name"].as_str().unwrap_or_default().to_owned();
        let key = |name| (processes.get(&pid).cloned().unwrap_or_default(), tid, name);
        match event["ph"].as_str().unwrap() {
            "M" if event["name"] == "process_name" => {
                processes.insert(pid, event["args"]["name"].as_str().unwrap().to_owned());
            }
            "B" => open.entry((pid, tid)).or_default().push((name(), ns(&event["ts"]))),
            "E" => {
                let (name, begin) = open.get_mut(&(pid, tid)).unwrap().pop().unwrap();
                spans.entry(key(name)).or_default().push((begin, ns(&event["ts"]) - begin));
            }
            "X" => spans.entry(key(name())).or_default().push((ns(&event["ts"]), ns(&event["dur"]))),
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "all ended");
    spans
}

/// The spans of one file, of those of several.
fn of_file(all: &Spans, file: &str) -> Spans {
    let own = all.iter().filter(|((process, ..), _)| process.contains(file));
    own.map(|((_, thread, name), spans)| ((String::new(), *thread, name.clone()), spans.clone())).collect()
}

/// All lengths by thread and name, in order; and the first beginning.
fn lengths(spans: &Spans) -> (BTreeMap<(u64, String), Vec<i64>>, i64) {
    let mut all = BTreeMap::new();
    for ((_, thread, name), spans) in spans {
        let lengths: &mut Vec<_> = all.entry((*thread, name.clone())).or_default();
        lengths.extend(spans.iter().map(|span| span.1));
        lengths.sort_unstable();
    }
    (all, spans.values().flatten().map(|span| span.0).min().unwrap())
}

#[test]
fn a_merged_trace_has_the_spans_of_each_and_nothing_else() {
    let merged = spans(&out(&["merge", XRAY, HEPH, CALLS, "-o", "-", "--to", "chrome"]));
    let mut count = 0;
    for file in [XRAY, HEPH] {
        let alone = spans(&out(&["convert", file, "-o", "-", "--to", "chrome"]));
        let within = of_file(&merged, file);
        count += within.values().map(Vec::len).sum::<usize>();
        let (within, alone) = (lengths(&within).0, lengths(&alone).0);
        assert!(within.keys().eq(alone.keys()), "{file}");
        for (key, lengths) in within {
            // Ticks are less than a nanosecond: each end is rounded.
            let is_near = lengths.iter().zip(&alone[&key]).all(|(one, other)| one.abs_diff(*other) <= 1);
            assert!(is_near && lengths.len() == alone[&key].len(), "{file}: {key:?}");
        }
    }
    // What has no clock is spread over the time of the others: as many spans, none outside it.
    let calls = of_file(&merged, CALLS);
    let alone = spans(&out(&["convert", CALLS, "-o", "-", "--to", "chrome"]));
    let number = |spans: &Spans| spans.values().map(Vec::len).sum::<usize>();
    assert_eq!(number(&calls), number(&alone));
    assert_eq!(number(&merged), count + number(&calls));
    let ends = |spans: &Spans| spans.values().flatten().map(|(begin, length)| begin + length).max().unwrap();
    assert_eq!((lengths(&calls).1, ends(&calls)), (0, ends(&merged)), "from the first to the last time");
}

#[test]
fn offsets_move_one_trace_by_exactly_that() {
    let first = |arguments: &[&str], file: &str| lengths(&of_file(&spans(&out(arguments)), file)).1;
    let plain = ["merge", XRAY, HEPH, "-o", "-", "--to", "chrome"];
    assert_eq!((first(&plain, XRAY), first(&plain, HEPH)), (0, 0));
    let later = [&plain[..], &["--offset", "relay.heph=+3ms"]].concat();
    assert_eq!((first(&later, XRAY), first(&later, HEPH)), (0, 3_000_000));
    // Nothing is before the beginning: the other moves away.
    let earlier = [&plain[..], &["--offset", "relay.heph=-3ms", "--offset", "relay.heph=-1us"]].concat();
    assert_eq!((first(&earlier, XRAY), first(&earlier, HEPH)), (3_001_000, 0));
    let output = anytrace(&[&plain[..], &["--offset", "other.heph=3ms"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no trace of this name"), "{}", said(&output));
}

/// Two traces of one program: the second is the first with another epoch, 2.5 ms later.
fn two_dated(folder: &Path) -> [PathBuf; 2] {
    let lines = out(&["dump", "--format", "jsonl", HEPH]);
    let header = lines.lines().find(|line| line.contains("\"epoch\"")).unwrap();
    let epoch = header.split(|c: char| !c.is_ascii_digit()).find(|digits| digits.len() == 19).unwrap();
    let later = (epoch.parse::<u64>().unwrap() + 2_500_000).to_string();
    [("a", lines.clone()), ("b", lines.replace(epoch, &later))].map(|(name, lines)| {
        let (from, to) = (folder.join(format!("{name}.jsonl")), folder.join(format!("{name}.heph")));
        std::fs::write(&from, lines).unwrap();
        out(&["convert", from.to_str().unwrap(), "-o", to.to_str().unwrap(), "--to", "heph"]);
        to
    })
}

#[test]
fn dates_place_traces_and_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = two_dated(folder.path());
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let output = anytrace(&["merge", b, a, "-o", "-", "--to", "chrome"]);
    let merged = spans(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(lengths(&of_file(&merged, "a.heph")).1, 0);
    assert_eq!(lengths(&of_file(&merged, "b.heph")).1, 2_500_000);
    assert!(said(&output).contains("b.heph: begins at 2.500 ms, by its dates"), "{}", said(&output));
    let begin = spans(&out(&["convert", b, a, "--align", "begin", "-o", "-", "--to", "chrome"]));
    assert_eq!(lengths(&of_file(&begin, "b.heph")).1, 0);
    // Conditions on times are on the common axis.
    let rows = |time: &str| {
        let table = out(&["stats", "--merge", a, b, "--time", time, "--format", "json"]);
        serde_json::from_str::<Value>(&table).unwrap()["spans"].as_u64().unwrap()
    };
    let one = |time: &str| {
        let table = out(&["stats", a, "--time", time, "--format", "json"]);
        serde_json::from_str::<Value>(&table).unwrap()["spans"].as_u64().unwrap()
    };
    assert_eq!(rows("0ns..2.5ms"), one("0ns..2.5ms"));
    assert_eq!(rows("0ns..20ms"), one("0ns..20ms") + one("0ns..17.5ms"));
}

#[test]
fn statistics_of_all_are_the_sums_of_each() {
    let rows = |arguments: &[&str]| {
        let table: Value = serde_json::from_str(&out(arguments)).unwrap();
        let tables = table.as_array().cloned().unwrap_or_else(|| vec![table]);
        let mut rows = BTreeMap::<String, (u64, u64)>::new();
        for row in tables.iter().flat_map(|table| table["rows"].as_array().unwrap()) {
            let sum = rows.entry(row["name"].as_str().unwrap().to_owned()).or_default();
            *sum = (sum.0 + row["count"].as_u64().unwrap(), sum.1 + row["sum"].as_u64().unwrap());
        }
        rows
    };
    let each = rows(&["stats", XRAY, HEPH, "--format", "json"]);
    let merged = rows(&["stats", "--merge", XRAY, HEPH, "--format", "json"]);
    assert_eq!(merged.len(), each.len());
    for (name, (count, sum)) in merged {
        let (own_count, own_sum) = each[&name];
        assert_eq!(count, own_count, "{name}");
        // A tick is less than a nanosecond: each end is rounded.
        assert!(sum.abs_diff(own_sum) <= count, "{name}: {sum}, {own_sum}");
    }
    // A second file of the same names adds to their rows.
    let twice = out(&["stats", "--merge", XRAY, "../traces/threads4.xray", "--format", "json"]);
    let twice: Value = serde_json::from_str(&twice).unwrap();
    assert_eq!(twice["rows"].as_array().unwrap().len(), rows(&["stats", XRAY, "--format", "json"]).len());
    assert_eq!((twice["spans"].as_u64(), twice["threads"].as_u64()), (Some(2 * 1613), Some(10)));
}

#[test]
fn flame_and_timeline_show_one_picture() {
    let folded = out(&["flame", "--merge", XRAY, HEPH]);
    let mut apart: Vec<_> = [XRAY, HEPH].map(|file| out(&["flame", file])).concat().lines().map(stack).collect();
    let mut merged: Vec<_> = folded.lines().map(stack).collect();
    apart.sort();
    merged.sort();
    assert_eq!(merged, apart);
    let picture = out(&["timeline", "--merge", "--ascii", XRAY, HEPH]);
    assert_eq!(picture.matches("8 threads").count(), 1, "{picture}");
    assert!(picture.contains("threads4.xray/28973") && picture.contains("relay.heph"), "{picture}");
}

fn stack(line: &str) -> String {
    line.rsplit_once(' ').unwrap().0.to_owned()
}

#[test]
fn damage_is_reported_for_its_file_and_the_rest_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.heph");
    let whole = std::fs::read(examples().join(HEPH)).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 5]).unwrap();
    let empty = folder.path().join("empty.heph");
    std::fs::write(&empty, "").unwrap();
    let to = folder.path().join("out.json");
    let (cut, empty, to) = (cut.to_str().unwrap(), empty.to_str().unwrap(), to.to_str().unwrap());
    let output = anytrace(&["merge", XRAY, cut, empty, "-o", to]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("cut.heph: byte 0x"), "{}", said(&output));
    let merged = spans(&std::fs::read_to_string(to).unwrap());
    assert_eq!(of_file(&merged, XRAY).values().map(Vec::len).sum::<usize>(), 1613);
    assert!(!of_file(&merged, "cut.heph").is_empty());
    let again = anytrace(&["merge", XRAY, HEPH, "-o", to]);
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten: {}", said(&again));
    // Nothing at all is no error where nothing is wrong.
    assert_eq!(anytrace(&["merge", empty, "-o", "-", "--to", "csv"]).status.code(), Some(0));
}

#[test]
fn what_cannot_be_merged_is_refused_with_a_reason() {
    let refused = |arguments: &[&str], why: &str| {
        let output = anytrace(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{arguments:?}: {}", said(&output));
    };
    refused(&["merge", XRAY, "-", "-o", "-", "--to", "csv"], "read once only");
    refused(&["merge", XRAY, "rows.lackey", "-o", "-", "--to", "csv"], "lackey traces have no spans");
    refused(&["merge", XRAY, HEPH, "-o", "x.xray"], "no timeline has this extension");
    refused(&["convert", XRAY, HEPH, "-o", "x.xray"], "several traces can be converted to timelines");
    refused(&["convert", XRAY, "-o", "x.json", "--align", "begin"], "are for several traces");
    refused(&["stats", "--merge", XRAY, HEPH, "--against", HEPH], "--merge makes one of several");
    refused(&["flame", "--merge", "--async", HEPH], "--async");
    refused(&["convert", XRAY, HEPH, "-o", "x.json", "--all-tables"], "tables");
}

#[test]
fn each_trace_has_the_names_of_its_own_program() {
    let folder = tempfile::tempdir().unwrap();
    let map = |name: &str, function: &str| {
        let path = folder.path().join(name);
        let sled = format!(
            "---\n- {{ id: 1, address: 0x10, function: 0x10, kind: function-enter, always-instrument: true, \
             function-name: {function} }}\n...\n"
        );
        std::fs::write(&path, sled).unwrap();
        path
    };
    let (one, two) = (map("one.yaml", "serve"), map("two.yaml", "request"));
    let other = folder.path().join("other.xray");
    std::fs::copy(examples().join(XRAY), &other).unwrap();
    let other = other.to_str().unwrap();
    let (first, second) = (format!("{XRAY}={}", one.display()), format!("{other}={}", two.display()));
    let merged = spans(&out(&["merge", XRAY, other, "-m", &first, "-m", &second, "-o", "-", "--to", "chrome"]));
    let has = |file: &str, name: &str| of_file(&merged, file).keys().any(|(_, _, own)| own == name);
    assert!(has(XRAY, "serve") && has("other.xray", "request"));
    assert!(!has(XRAY, "request") && !has("other.xray", "serve"));
    // So it is where they are not merged.
    for verb in [&["stats"][..], &["flame"], &["timeline", "--width", "200"]] {
        let text = out(&[verb, &[XRAY, other, "-m", &first, "-m", &second]].concat());
        assert!(text.contains("serve") && text.contains("request"), "{verb:?}: {text}");
    }
    let compared = out(&["stats", XRAY, "--against", other, "-m", &first, "-m", &second]);
    assert!(compared.contains("serve") && compared.contains("request"), "{compared}");
}
