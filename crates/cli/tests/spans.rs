//! `stats`, `flame` and `timeline` on real traces: what they say agrees with each other and with what is there.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_analysis::accounting::{Accounting, By};
use anytrace_analysis::events::Events;
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::flame::{FlameGraph, Side, StackWeights, Weight};
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::histogram::Histograms;
use anytrace_analysis::longest::{Longest, Measure};
use anytrace_analysis::migrations::Migrations;
use anytrace_analysis::overview::Overview;
use anytrace_analysis::pass::Pass;
use anytrace_core::{Collect, Input, OpenOptions, SpanOptions, TimeBound};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).current_dir(root()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

const THREADS: &str = "examples/traces/threads4.xray";
const TAIL: &str = "crates/xray/corpus/tail.xray";

/// Small traces of the project, all forms and versions.
fn samples() -> Vec<PathBuf> {
    let folder = root().join("crates/xray/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "xray" || end == "yaml"));
    files.sort();
    assert!(files.len() > 20);
    files
}

/// Runs every engine on bytes, and checks what must hold on any trace.
fn assert_engines_agree(name: &str, bytes: Vec<u8>, tail_chains: bool) {
    assert_engines_agree_on("xray", name, bytes, tail_chains);
}

fn assert_engines_agree_on(format: &str, name: &str, bytes: Vec<u8>, tail_chains: bool) {
    let format = anytrace_formats::by_name(format).unwrap();
    let (mut by_name, mut by_thread, mut by_both) =
        (Accounting::new(By::Name), Accounting::new(By::Thread), Accounting::new(By::NameAndThread));
    let (mut weights, mut counts) = (StackWeights::new(Weight::Time), StackWeights::new(Weight::Count));
    let (mut histograms, mut longest) = (Histograms::new(Box::new(|_| true)), Longest::new(5, Measure::Length));
    let (mut gaps, mut migrations, mut events) =
        (Gaps::new(TimeBound::Open, 5), Migrations::default(), Events::default());
    let mut overview = Overview::default();
    let mut pass = Pass::new(
        SpanFilter::default(),
        true,
        vec![
            &mut by_name,
            &mut by_thread,
            &mut by_both,
            &mut weights,
            &mut counts,
            &mut histograms,
            &mut longest,
            &mut gaps,
            &mut migrations,
            &mut events,
            &mut overview,
        ],
    );
    let Ok(trace) = format.open(Input::from_bytes(name, bytes), &OpenOptions::default()) else { return };
    let options = SpanOptions { tail_chains, symbols: None, ..SpanOptions::default() };
    if trace.spans(&options, &mut pass, &mut Collect::default()).is_err() {
        return;
    }
    let done = pass.finish();
    assert!(done.counts.is_clean(), "{name}: {:?}", done.counts);
    let spans = done.counts.spans;
    let rows = [by_name, by_thread, by_both].map(Accounting::into_rows);
    let own: Vec<u128> = rows.iter().map(|rows| rows.iter().map(|row| row.self_time).sum()).collect();
    assert_eq!(own, [own[0]; 3], "{name}: own times");
    for rows in &rows {
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), spans, "{name}");
        assert!(rows.iter().all(|row| row.total <= row.sum && row.self_time <= row.total), "{name}: {rows:?}");
        assert!(rows.iter().all(|row| row.lengths.is_sorted()), "{name}");
    }
    assert_eq!(rows[1].iter().map(|row| row.total).sum::<u128>(), own[0], "{name}");
    assert_eq!(histograms.histograms().iter().map(|histogram| histogram.count()).sum::<u64>(), spans, "{name}");
    let longest: Vec<u64> = longest.into_spans().iter().map(|long| long.span.duration()).collect();
    assert_eq!(longest.first().copied().unwrap_or(0), rows[0].iter().map(|row| row.lengths[4]).max().unwrap_or(0));
    let weighed: u128 = weights.weights().iter().map(|&weight| u128::from(weight)).sum();
    assert_eq!(weighed, own[0], "{name}: weights of stacks");
    let picture = overview.picture(60);
    assert_eq!(picture.lines.iter().map(|line| line.busy).sum::<u128>(), own[0], "{name}: the overview");
    assert_eq!(picture.names.iter().map(|(_, own)| own).sum::<u128>(), own[0], "{name}");
    let mut graph = FlameGraph::default();
    graph.add(Side::Shown, counts, done.stacks.unwrap(), &done.directory).unwrap();
    assert_eq!(graph.total(Side::Shown), u128::from(spans), "{name}");
}

#[test]
fn engines_agree_on_every_sample() {
    for path in samples() {
        for tail_chains in [false, true] {
            assert_engines_agree(&path.display().to_string(), std::fs::read(&path).unwrap(), tail_chains);
        }
    }
}

#[test]
fn engines_agree_on_cut_and_spoiled_samples() {
    for path in samples() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        let step = (bytes.len() / 40).max(1);
        for at in (0..bytes.len()).step_by(step) {
            assert_engines_agree(&name, bytes[..at].to_vec(), false);
            let mut spoiled = bytes.clone();
            spoiled[at] ^= 1 << (at % 8);
            assert_engines_agree(&name, spoiled, at % 2 == 0);
        }
    }
}

#[test]
fn the_three_forms_of_stats_have_the_same_figures() {
    let value = json(&["stats", THREADS, "--format", "json", "--sort", "name"]);
    assert_eq!((&value["version"], &value["format"], &value["unit"]), (&1.into(), &"xray".into(), &"ns".into()));
    let csv = text(&run(&["stats", THREADS, "--format", "csv", "--sort", "name"]).stdout);
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(lines.clone().count(), rows.len());
    for (line, row) in lines.zip(rows) {
        for (column, cell) in columns.iter().zip(line.split(',')) {
            match *column {
                "file" => assert_eq!(cell, THREADS),
                "unit" => assert_eq!(cell, "ns"),
                "process" | "thread" => assert_eq!(cell, ""),
                "name" => assert_eq!(cell, row["name"].as_str().unwrap()),
                number => assert_eq!(cell, row[number].to_string(), "{number}"),
            }
        }
    }
    let page = text(&run(&["stats", THREADS]).stdout);
    assert!(rows.iter().all(|row| page.contains(row["name"].as_str().unwrap())), "{page}");
}

#[test]
fn parts_are_there_when_asked_for() {
    let plain = json(&["stats", TAIL, "--format", "json"]);
    let keys = ["histograms", "longest", "outliers", "gaps", "migrations", "events", "attributes"];
    assert!(keys.iter().all(|key| plain.get(key).is_none()));
    let all = ["--histogram", ".", "--longest", "3", "--outliers", "2", "--gaps", "--migrations", "--events"];
    let full = json(&[&["stats", TAIL, "--format", "json"], &all[..]].concat());
    assert!(keys.iter().all(|key| full.get(key).is_some()), "{full}");
    assert_eq!(full["longest"].as_array().unwrap().len(), 3);
    assert_eq!(full["longest"][1]["stack"].as_array().unwrap().len(), 2);
    let refused = run(&["stats", TAIL, "--format", "csv", "--events"]);
    assert_eq!(refused.status.code(), Some(2));
    let several = json(&["stats", TAIL, THREADS, "--format", "json"]);
    assert_eq!(several.as_array().map(Vec::len), Some(2));
}

#[test]
fn each_name_has_its_outliers_against_its_median() {
    let value = json(&["stats", THREADS, "--format", "json", "--outliers", "3"]);
    let (rows, groups) = (value["rows"].as_array().unwrap(), value["outliers"].as_array().unwrap());
    assert_eq!(rows.len(), groups.len());
    let lengths = |group: &Value, key: &str| -> Vec<u64> {
        group["spans"].as_array().unwrap().iter().map(|span| span[key].as_u64().unwrap()).collect()
    };
    for (row, group) in rows.iter().zip(groups) {
        assert_eq!((&group["name"], &group["p50"], &group["count"]), (&row["name"], &row["p50"], &row["count"]));
        let found = lengths(group, "duration");
        assert_eq!(found.len() as u64, row["count"].as_u64().unwrap().min(3));
        assert!(found.is_sorted_by(|a, b| a >= b) && found[0] == row["max"].as_u64().unwrap());
        assert!(
            group["spans"]
                .as_array()
                .unwrap()
                .iter()
                .all(|span| span["stack"].as_array().unwrap().last() == row.get("name"))
        );
    }
    let page = text(&run(&["stats", THREADS, "--outliers", "3", "--top", "2"]).stdout);
    assert!(page.contains("#3: 4 spans, median 57.43 µs") && page.contains("1.0 x"), "{page}");
    assert!(!page.contains("#1: ") && !page.contains("#6: "), "one span is no outlier, --top holds: {page}");
    // What only contains others is not long by itself.
    let longest = |more: &[&str]| {
        let value = json(&[&["stats", THREADS, "--format", "json", "--longest", "5"], more].concat());
        value["longest"].as_array().unwrap().clone()
    };
    let own: Vec<u64> = longest(&["--self"]).iter().map(|span| span["self"].as_u64().unwrap()).collect();
    assert!(own.is_sorted_by(|a, b| a >= b));
    assert_ne!(longest(&["--self"]), longest(&[]));
    assert_eq!(run(&["stats", THREADS, "--self"]).status.code(), Some(2));
}

/// Calls inside one another have stacks whose length together is the square of their number.
#[test]
fn stacks_of_deep_calls_are_listed_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.yaml");
    let mut trace = "---\nheader:\n  version: 5\n  type: 1\n  constant-tsc: true\n  nonstop-tsc: true\n  \
                     cycle-frequency: 1000000000\nrecords:\n"
        .to_owned();
    for n in 1..=2000_u32 {
        trace.push_str(&format!(
            "  - {{ type: 0, func-id: {n}, function: 'f{n}', cpu: 1, thread: 1, process: 1, kind: function-enter, \
             tsc: {n}, data: '' }}\n"
        ));
    }
    std::fs::write(&file, trace).unwrap();
    let file = file.to_str().unwrap();
    let value = json(&["stats", file, "--format", "json", "--longest", "4294967296"]);
    let spans = value["longest"].as_array().unwrap();
    assert_eq!(spans.len(), 2000);
    let (mut names, mut cut) = (0, 0);
    for span in spans {
        let stack = span["stack"].as_array().unwrap();
        let left_out = span["stack_left_out"].as_u64().unwrap_or(0);
        assert_eq!(stack.last(), Some(&span["name"]));
        assert_eq!(stack.len() as u64 + left_out, span["depth"].as_u64().unwrap() + 1);
        (names, cut) = (names + stack.len(), cut + u64::from(left_out > 0));
    }
    assert!(names < 110_000 + 2000 * 64 && cut > 1000, "{names} names, {cut} stacks cut");
    let few = json(&["stats", file, "--format", "json", "--longest", "3"]);
    assert!(few["longest"].as_array().unwrap().iter().all(|span| span.get("stack_left_out").is_none()));
}

#[test]
fn filters_take_away_what_they_say() {
    let count = |more: &[&str]| json(&[&["stats", TAIL, "--format", "json"], more].concat())["spans"].as_u64().unwrap();
    let all = count(&[]);
    assert_eq!(count(&["--name", "^#7$"]) + count(&["--name", "^#[^7]"]), all);
    assert_eq!(count(&["--depth", "0"]) + count(&["--depth", "1.."]), all);
    assert_eq!(count(&["--duration", "..500ns"]) + count(&["--duration", "500ns.."]), all);
    assert_eq!(count(&["--time", "..20us"]) + count(&["--time", "20us.."]), all);
    assert_eq!((count(&["--thread", "29016"]), count(&["--thread", "1"])), (all, 0));
    let nothing = json(&["stats", THREADS, "--format", "json", "--thread", "1"]);
    for key in ["spans", "threads", "unfinished", "deduced", "orphans", "events_count"] {
        assert_eq!(nothing[key], 0, "{key}");
    }
    let far = text(&run(&["stats", TAIL, "--time", "0..10"]).stderr);
    assert!(far.contains("the trace's times begin at"), "{far}");
    let backward = run(&["stats", TAIL, "--duration", "5us..1us"]);
    assert_eq!(backward.status.code(), Some(2));
    assert!(text(&backward.stderr).contains("ends before it starts"), "{}", text(&backward.stderr));
}

#[test]
fn a_map_of_another_program_is_reported_so() {
    let right = "crates/xray/corpus/maps/threads-14.map.yaml";
    let wrong = "crates/xray/corpus/maps/fib-14.map.yaml";
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let verbs: [&[&str]; 4] =
        [&["stats"], &["flame"], &["timeline"], &["convert", "--to", "chrome", "-o", &out, "--force"]];
    for verb in verbs {
        let said = |map| text(&run(&[verb, &[THREADS, "-m", map]].concat()).stderr);
        assert_eq!(said(right), "");
        let note = said(wrong);
        assert!(note.contains("functions are not in any file given with -m"), "{verb:?}: {note}");
    }
}

/// A program whose debugging data begin with garbage, and a trace.
#[test]
fn notes_of_maps_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    let packed = std::fs::File::open(root().join("crates/xray/corpus/maps/fib-14.elf.gz")).unwrap();
    let mut program = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut program).unwrap();
    let word = |at: usize, n: usize| (0..n).rev().fold(0, |sum, byte| sum << 8 | usize::from(program[at + byte]));
    let (table, count, names) = (word(40, 8), word(60, 2), word(62, 2));
    let names = word(table + 64 * names + 24, 8);
    let section =
        (0..count).map(|n| table + 64 * n).find(|at| program[names + word(*at, 4)..].starts_with(b".debug_info\0"));
    let start = word(section.unwrap() + 24, 8);
    program[start..start + 16].fill(0xee);
    std::fs::write(&path, program).unwrap();
    let shown = run(&["stats", "crates/xray/corpus/fib12-thr5.xray", "-m", path.to_str().unwrap()]);
    assert!(text(&shown.stderr).contains("note: "), "{}", text(&shown.stderr));
}

#[test]
fn a_comparison_fails_only_above_its_threshold() {
    let same = run(&["stats", TAIL, "--compare", TAIL, "--fail-above", "total=0%", "--fail-above", "p99=0"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    let base = "crates/xray/corpus/args.xray";
    let value = json(&["stats", TAIL, "--compare", base, "--fail-above", "total=10%", "--format", "json"]);
    let exceeded = value["exceeded"].as_array().unwrap();
    let rows = value["rows"].as_array().unwrap();
    let above = |row: &&Value| {
        let totals = (row["base"]["total"].as_f64(), row["shown"]["total"].as_f64());
        matches!(totals, (Some(base), Some(shown)) if shown > base * 1.1)
    };
    assert_eq!(exceeded.len(), rows.iter().filter(above).count());
    let code = run(&["stats", TAIL, "--compare", base, "--fail-above", "total=10%"]).status.code();
    assert_eq!(code, Some(i32::from(!exceeded.is_empty())));
    assert_eq!(run(&["stats", TAIL, "--compare", base, "--fail-above", "sum=1"]).status.code(), Some(2));
    assert_eq!(run(&["stats", TAIL, "--fail-above", "total=1"]).status.code(), Some(2));
}

#[test]
fn folded_stacks_weigh_what_stats_counts() {
    let folded = text(&run(&["flame", THREADS]).stdout);
    let mut own: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *own.entry(stack.rsplit(';').next().unwrap().to_owned()).or_default() += weight.parse::<u64>().unwrap();
    }
    let stats = json(&["stats", THREADS, "--format", "json"]);
    for row in stats["rows"].as_array().unwrap() {
        let (ours, theirs) = (own[row["name"].as_str().unwrap()], row["self"].as_u64().unwrap());
        // Each stack is rounded to integer nanoseconds for itself.
        assert!(ours.abs_diff(theirs) <= folded.lines().count() as u64, "{ours} for {theirs}");
    }
    let twice = text(&run(&["flame", THREADS, THREADS, "--by", "count"]).stdout);
    let once = text(&run(&["flame", THREADS, "--by", "count"]).stdout);
    for (once, twice) in once.lines().zip(twice.lines()) {
        let number = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(number(once) * 2, number(twice));
    }
}

#[test]
fn pictures_are_complete_files_and_always_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.svg");
    let draw = |more: &[&str]| run(&[&["flame", TAIL, "-o", out.to_str().unwrap()], more].concat());
    assert_eq!(draw(&["--title", "<fast>"]).status.code(), Some(0));
    let svg = std::fs::read_to_string(&out).unwrap();
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>") && svg.contains("&lt;fast&gt;"));
    assert_eq!(draw(&[]).status.code(), Some(2), "nothing is replaced unasked");
    assert_eq!(draw(&["--force", "--title", "<fast>"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), svg);
    assert_eq!(draw(&["--force", "--name", "nothing"]).status.code(), Some(2), "there is nothing to draw");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), svg);
    let compared = run(&["flame", TAIL, "--diff", THREADS, "--format", "svg"]);
    assert_eq!(compared.status.code(), Some(0));
    assert!(text(&compared.stdout).contains("</svg>"));
}

#[test]
fn a_timeline_fits_its_width_and_has_colors_only_when_asked() {
    for width in ["40", "80", "133"] {
        let page = text(&run(&["timeline", THREADS, "--width", width]).stdout);
        let most = page.lines().skip(1).map(|line| line.chars().count()).max().unwrap();
        assert!(most <= width.parse().unwrap(), "{most}\n{page}");
        assert!(!page.contains('\u{1b}'));
        assert!(page.lines().all(|line| line.trim_end() == line), "{page}");
    }
    let ascii = run(&["timeline", THREADS, "--ascii", "--top", "2"]);
    let page = text(&ascii.stdout);
    assert!(page.is_ascii() && page.contains("3 threads more"), "{page}");
    let colored = text(&run(&["timeline", THREADS, "--color=always"]).stdout);
    assert!(colored.contains("\u{1b}[34m"));
}

#[test]
fn formats_without_spans_and_empty_files_are_reported() {
    for verb in ["stats", "flame", "timeline"] {
        let refused = run(&[verb, "examples/traces/boxes.cacheray"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("have no spans"), "{}", text(&refused.stderr));
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, b"").unwrap();
        assert_eq!(run(&[verb, empty.to_str().unwrap()]).status.code(), Some(0));
        assert_eq!(run(&[verb, "-", "-"]).status.code(), Some(2));
    }
    let damaged = run(&["stats", "crates/xray/corpus/typed-tinybuf.xray"]);
    assert_eq!(damaged.status.code(), Some(1), "{}", text(&damaged.stderr));
    assert!(!damaged.stdout.is_empty());
}

#[test]
fn engines_agree_on_graphics_traces() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates/apitrace/corpus")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "trace"));
    files.push(root().join("examples/traces/imm.trace"));
    assert!(files.len() > 15);
    for path in files {
        assert_engines_agree_on("apitrace", &path.display().to_string(), std::fs::read(&path).unwrap(), false);
    }
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.xray");
    let bytes = std::fs::read(root().join(THREADS)).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2 + 1]).unwrap();
    let traces = [THREADS, "examples/traces/relay.heph", "examples/traces/imm.trace", cut.to_str().unwrap()];
    let verbs = [
        "stats --format json --longest 5 --outliers 2 --gaps --events",
        "flame --format folded",
        "timeline --ascii",
        "convert -o - --to chrome",
        "convert -o - --to csv --depth ..2",
        "convert -o - --to speedscope",
    ];
    for (trace, verb) in traces.iter().flat_map(|trace| verbs.map(|verb| (trace, verb))) {
        let of = |threads: &str| {
            let words = verb.split(' ').chain([*trace, "--threads", threads]);
            let output = run(&words.collect::<Vec<_>>());
            (output.status.code(), output.stdout, output.stderr)
        };
        let one = of("1");
        assert!(matches!(one.0, Some(0 | 1)) && !one.1.is_empty(), "{verb} {trace}: {}", text(&one.2));
        for threads in ["2", "7"] {
            assert!(of(threads) == one, "{verb} {trace} with {threads} threads");
        }
    }
}

#[test]
fn listed_spans_have_their_attributes() {
    let relay = json(&["stats", "--format", "json", "--longest", "3", "--outliers", "1", "examples/traces/relay.heph"]);
    let listed = relay["longest"].as_array().unwrap();
    let with: Vec<_> = listed.iter().filter(|span| span["attributes"].is_object()).collect();
    assert!(!with.is_empty(), "{relay:#}");
    // Each is what the CSV has of the same record.
    let csv = text(&run(&["convert", "-o", "-", "--to", "csv", "examples/traces/relay.heph"]).stdout);
    for span in with {
        let record = format!("{},span,", span["record"]);
        let line = csv.lines().find(|line| line.starts_with(&record)).unwrap();
        for (key, value) in span["attributes"].as_object().unwrap() {
            assert!(line.contains(&format!("\"\"{key}\"\":")), "{key}: {line}");
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert!(line.contains(&text), "{text}: {line}");
        }
    }
    let page = text(&run(&["stats", "--longest", "3", "examples/traces/relay.heph"]).stdout);
    let key = listed.iter().find_map(|span| span["attributes"].as_object()?.keys().next()).unwrap();
    assert!(page.contains(&format!(" ({key}=")), "{page}");
}
