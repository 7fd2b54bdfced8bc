//! `anytrace memory mrc` and `sharing` through the program.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use anytrace_core::testing::has_program;
use serde_json::Value;

const FALSE_SHARING: &str = "crates/cacheray/corpus/curves/falseshare.rh14-O0.trace.gz";
const LAYOUTS: &str = "crates/cacheray/corpus/curves/layouts.up14-O0.trace.gz";
const CUT: &str = "crates/cacheray/corpus/broken/trunc-read-after-9.trace";

fn run(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.arg("cacheray").args(arguments).current_dir(root).output().unwrap()
}

fn ended(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&ended(arguments, 0)).unwrap()
}

fn expected() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cacheray/corpus/curves/expected.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn objects_are_those_of_the_corpus_with_a_version() {
    for (name, file) in [("layouts.up14-O0", LAYOUTS), ("falseshare.rh14-O0", FALSE_SHARING)] {
        let mut object = json(&["mrc", "--format=json", file]);
        assert_eq!(object.as_object_mut().unwrap().remove("version"), Some(1.into()));
        // The curve appears twice: by itself, and under the key of the line's size.
        let under_key = object.as_object_mut().unwrap().remove("reuse64");
        assert_eq!(under_key.as_ref(), Some(&object), "{name}");
        assert_eq!(object, expected()[name]["reuse64"], "{name}");
    }
    let object = json(&["sharing", "--format=json", FALSE_SHARING]);
    let wanted = &expected()["falseshare.rh14-O0"]["mesi"];
    assert_eq!((&object["version"], &object["mesi"]["stats"]), (&1.into(), &wanted["stats"]));
    let (lines, others) = (&object["mesi"]["contended_lines"], wanted["contended_lines"].as_array().unwrap());
    assert!(
        lines.as_array().unwrap().len() == others.len()
            && others.iter().all(|line| lines.as_array().unwrap().contains(line))
    );
    let sides = &object["pairs"][0]["sides"];
    assert_eq!(
        (&sides[0]["thread"], &sides[0]["type"], &sides[0]["offset"]),
        (&1.into(), &"struct.Counters".into(), &0.into())
    );
    assert_eq!((&sides[1]["thread"], &sides[1]["offset"], &sides[1]["size"]), (&2.into(), &8.into(), &8.into()));
}

#[test]
fn parts_windows_and_samples_are_reported_where_they_are_asked_for() {
    let object = json(&["mrc", "--format=json", "--by=type", "--working-set", "--line=4k", LAYOUTS]);
    assert_eq!((&object["by"], &object["line"], &object["parts_count"]), (&"type".into(), &4096.into(), &3.into()));
    let parts = object["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["line_accesses"].as_u64().unwrap()).sum();
    assert_eq!(object["line_accesses"], sum);
    assert!(object["working_set"]["windows"].as_array().unwrap().len() > 10);
    let object = json(&["mrc", "--format=json", "--sample-lines=100", LAYOUTS]);
    assert_eq!(object["sampled"]["lines"], 100);
    let list = json(&["mrc", "--format=json", LAYOUTS, FALSE_SHARING]);
    assert_eq!((list.as_array().unwrap().len(), &list[1]["file"]), (2, &FALSE_SHARING.into()));
}

#[test]
fn tables_for_spreadsheets_have_a_line_a_size_or_a_window() {
    let csv = ended(&["mrc", "--format=csv", "--by=thread", FALSE_SHARING], 0);
    assert!(csv.starts_with("file,part,lines,bytes,line_accesses,misses,miss_ratio\n"), "{csv}");
    assert!(csv.contains(",(all),1,64,8412,7211,0.857") && csv.contains(",thread 2,"), "{csv}");
    let csv = ended(&["mrc", "--format=csv", "--working-set", "--window=5000", LAYOUTS], 0);
    assert_eq!(csv.lines().nth(2).unwrap().split(',').nth(1), Some("5000"), "{csv}");
}

#[test]
fn pictures_are_written_completely_and_replace_nothing_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svg");
    let plot = format!("--plot={}", path.display());
    ended(&["mrc", &plot, "--by=type", "--working-set", LAYOUTS], 0);
    let picture = std::fs::read_to_string(&path).unwrap();
    assert!(picture.ends_with("</svg>\n") || picture.ends_with("</svg>"));
    for word in ["struct.Particle", "L1 32 KiB", "Distinct lines in 1024 records"] {
        assert!(picture.contains(word), "{word}");
    }
    ended(&["mrc", &plot, LAYOUTS], 2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), picture);
    ended(&["mrc", &plot, "--force", "--mark=here=48k", LAYOUTS], 0);
    assert!(std::fs::read_to_string(&path).unwrap().contains("here 48 KiB"));
}

#[test]
fn a_picture_on_standard_output_is_alone_there() {
    let picture = ended(&["mrc", "--plot=-", "--by=type", LAYOUTS], 0);
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
    for form in ["--format=csv", "--format=json"] {
        assert_eq!(ended(&["mrc", "--plot=-", form, LAYOUTS], 2), "");
    }
}

#[test]
fn names_with_control_characters_are_safe_in_tables_and_pictures() {
    let trace = "crates/cacheray/corpus/broken/name-nul-newline-escape.trace";
    for form in ["--plot=-", "--format=csv"] {
        let output = run(&["mrc", "--by=type", form, trace]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n') && text.contains("\\u{0}"), "{form}: {text}");
    }
}

#[test]
fn a_cache_size_that_is_not_a_multiple_of_a_set_is_simulated_with_a_note() {
    let output = run(&["sharing", "--ways=3", FALSE_SHARING]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("--size 4096 is not a multiple of a set of 3 lines of 64 bytes: simulating 4032 bytes"),
        "{stderr}"
    );
    assert_eq!(run(&["sharing", FALSE_SHARING]).stderr, b"");
}

#[test]
fn damage_ends_with_one_and_wrong_options_with_two() {
    let output = run(&["mrc", CUT]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cacheray/truncated"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("miss ratio"));
    assert_eq!(run(&["sharing", CUT]).status.code(), Some(1));
    for wrong in [
        &["mrc", "--line=48", LAYOUTS][..],
        &["mrc", "--sample=0", LAYOUTS],
        &["mrc", "--sample=1.5", LAYOUTS],
        &["mrc", "--sample=0.1", "--sample-lines=9", LAYOUTS],
        &["mrc", "--window=9", LAYOUTS],
        &["mrc", "--private", "--by=type", LAYOUTS],
        &["mrc", "--plot=x.svg", LAYOUTS, LAYOUTS],
        &["mrc", "examples/traces/relay.heph"],
        &["sharing", "--line=256", FALSE_SHARING],
        &["sharing", "--size=64", FALSE_SHARING],
        &["sharing", "--core-map=1", FALSE_SHARING],
        &["sharing", "--core-map=1=70000", FALSE_SHARING],
        &["sharing", "nothing.trace"],
        &["sharing", "--binary=nothing", FALSE_SHARING],
        &["sharing", "--binary", FALSE_SHARING, FALSE_SHARING],
    ] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_trace_of_one_thread_is_reported_as_having_no_sharing() {
    let text = ended(&["sharing", LAYOUTS], 0);
    assert!(text.contains("all accesses are by thread 0") && text.contains("sharing cannot be determined"), "{text}");
    let object = json(&["sharing", "--format=json", LAYOUTS]);
    assert!(object["note"].as_str().unwrap().contains("by thread 0"));
    let text = ended(&["sharing", "--cores=1", FALSE_SHARING], 0);
    assert!(text.contains("one core"), "{text}");
    let map = json(&["sharing", "--format=json", "--core-map=1=0,2=0,0=1", FALSE_SHARING]);
    assert_eq!(map["mesi"]["contended_lines"][0]["threads"], Value::Null);
    assert!(map["mesi"]["stats"]["false_sharing_misses"].as_u64().unwrap() < 5);
}

/// Debug data of an own program; `None` where there is no compiler.
fn program(folder: &Path) -> Option<String> {
    const SOURCE: &str = "#include <stdlib.h>\n\
        struct Slot { unsigned hits; struct { short x, y; } at; long total; } *slots;\n\
        struct Counters { long a, b, pad[14], c; } *counters;\n\
        int main(void) { slots = malloc(10 * sizeof *slots); counters = malloc(sizeof *counters); return !slots; }\n";
    if !has_program("gcc") {
        return None;
    }
    let (source, program) = (folder.join("slots.c"), folder.join("slots"));
    std::fs::write(&source, SOURCE).unwrap();
    let output = Command::new("gcc").args(["-g", "-w"]).arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program.display().to_string())
}

/// Two threads that write neighbors in an array of ten slots of 16 bytes, which `malloc` recorded as one of 160.
fn neighbors(folder: &Path) -> String {
    let mut bytes = vec![2];
    bytes.extend(0x5000_u64.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    for number in [160, 1, 11_u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"struct.Slot");
    for _ in 0..50 {
        for (address, size, thread) in [(0x5008_u64, 8, 1_u64), (0x5010, 4, 2)] {
            bytes.push(1);
            bytes.extend(address.to_le_bytes());
            bytes.push(size);
            bytes.extend(thread.to_le_bytes());
        }
    }
    let path = folder.join("neighbors.trace");
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn debug_data_name_the_fields_of_a_pair_and_change_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else { return };
    let plain = json(&["sharing", "--format=json", FALSE_SHARING]);
    let named = json(&["sharing", "--format=json", "--binary", &program, FALSE_SHARING]);
    assert_eq!((&named["mesi"], &named["ping_pong"]), (&plain["mesi"], &plain["ping_pong"]));
    let side = |object: &Value, at: usize| object["pairs"][0]["sides"][at].clone();
    for (at, name) in [(0, "a"), (1, "b")] {
        let (with, without) = (side(&named, at), side(&plain, at));
        assert_eq!((&with["name"], &with["field_type"]), (&name.into(), &"long int".into()), "{with}");
        assert_eq!((&without["name"], &without["field_type"]), (&Value::Null, &Value::Null), "{without}");
        for key in ["type", "offset", "size", "element_bytes", "thread", "core"] {
            assert_eq!(with[key], without[key], "{key}");
        }
    }
    let text = ended(&["sharing", "--types-json", &program, FALSE_SHARING], 0);
    assert!(text.contains("struct.Counters.a 0+8") && text.contains("so that a and b are on separate lines"), "{text}");
}

#[test]
fn what_malloc_recorded_as_one_element_is_divided_by_debug_data() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else { return };
    let trace = neighbors(folder.path());
    let of = |more: &[&str]| {
        let mut arguments = vec!["sharing", "--format=json", "--input-format=cacheray", trace.as_str()];
        arguments.extend(more);
        json(&arguments)["pairs"][0].clone()
    };
    let (plain, named) = (of(&[]), of(&["--binary", &program]));
    assert_eq!((&plain["same_instance"], &named["same_instance"]), (&true.into(), &false.into()), "{named}");
    let fields = |pair: &Value| [0, 1].map(|at| pair["sides"][at]["field"].as_str().unwrap().to_owned());
    assert_eq!(fields(&plain), ["struct.Slot 8+8", "struct.Slot 16+4"]);
    assert_eq!(fields(&named), ["struct.Slot.hits 0+4", "struct.Slot.total 8+8"]);
    assert_eq!((&named["sides"][0]["thread"], &named["sides"][0]["element_bytes"]), (&2.into(), &16.into()));
    assert_eq!(named["sides"][0]["field_type"], "unsigned int");
    assert_eq!(named["advice"], "pad struct.Slot from 16 to 64 bytes and align it to 64");
    // Without debug data the array is one element, and its fields are what is put apart.
    assert!(plain["advice"].as_str().unwrap().contains("on separate lines"), "{plain}");
    for key in ["false_sharing_misses", "true_sharing_misses", "invalidations", "lines", "line"] {
        assert_eq!(plain[key], named[key], "{key}");
    }
}

/// A trace of records: 1 for a write and 0 for a read, address, bytes, thread; with one region before, of one element.
fn trace_of(folder: &Path, region: (u64, u32, &str), records: impl Iterator<Item = (u8, u64, u8, u64)>) -> String {
    let (address, bytes_each, name) = region;
    let mut bytes = vec![2];
    bytes.extend(address.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    for number in [bytes_each, 1, u32::try_from(name.len()).unwrap()] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(name.as_bytes());
    for (tag, address, size, thread) in records {
        bytes.push(tag);
        bytes.extend(address.to_le_bytes());
        bytes.push(size);
        bytes.extend(thread.to_le_bytes());
    }
    let path = folder.join(format!("{}.trace", name.replace('.', "-")));
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// Two threads that each use both fields of an element under a lock: `if (t->key == j) t->val++`.
#[test]
fn fields_used_together_under_a_lock_are_true_sharing_without_advice() {
    let folder = tempfile::tempdir().unwrap();
    let turn =
        |n: u64| [(0, 0x5000, 4), (0, 0x5004, 4), (1, 0x5004, 4)].map(|(tag, at, size)| (tag, at, size, 1 + n % 2));
    let trace = trace_of(folder.path(), (0x5000, 64, "struct.kv"), (0..600).flat_map(turn));
    let arguments = ["sharing", "--input-format=cacheray", trace.as_str()];
    let object = json(&[&arguments[..], &["--format=json"]].concat());
    let sharing = &object["sharing"];
    assert_eq!((&sharing["false_sharing_misses"], &sharing["true_sharing_misses"]), (&0.into(), &598.into()));
    // By the first access, as the corpus defines these counters, they are all false.
    assert_eq!(object["mesi"]["stats"]["false_sharing_misses"], 598);
    assert_eq!((&object["advice"], &object["pairs"][0]["advice"]), (&Value::Array(Vec::new()), &Value::Null));
    let text = ended(&arguments, 0);
    assert!(
        text.contains("padding does not help with these") && !text.contains("Advice, with simulated misses"),
        "{text}"
    );
}

/// The counters of two threads in one line, each thread's loop recorded before the other's.
fn apart(folder: &Path) -> String {
    let turn = |(at, thread): (u64, u64)| (0..5000).flat_map(move |_| [(0, at, 8, thread), (1, at, 8, thread)]);
    trace_of(folder, (0x5000, 128, "struct.counters"), [(0x5000, 1), (0x5008, 2)].into_iter().flat_map(turn))
}

#[test]
fn threads_that_ran_apart_are_noted_and_show_their_false_sharing_when_interleaved() {
    let folder = tempfile::tempdir().unwrap();
    let trace = apart(folder.path());
    let with = |more: &[&'static str]| {
        let mut arguments = vec!["sharing", "--input-format=cacheray", trace.as_str()];
        arguments.extend(more);
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let object = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (plain, note) = with(&["--format=json"]);
    assert!(note.contains("threads hardly interleave: 2 of 2") && note.contains("--interleave auto"), "{note}");
    let plain = object(&plain);
    assert_eq!((&plain["run_lengths"]["apart"], &plain["run_lengths"]["longest"]), (&true.into(), &10_000.into()));
    assert!(plain["sharing"]["false_sharing_misses"].as_u64().unwrap() <= 1 && plain["schedules"] == Value::Null);
    for (option, orders) in [("--interleave=2", 2), ("--interleave=auto", 6)] {
        let (text, note) = with(&[option, "--format=json"]);
        assert_eq!(text, with(&[option, "--format=json"]).0, "the same every time");
        assert!(!note.contains("hardly interleave"), "{note}");
        let found = object(&text);
        assert_eq!(found["schedules"].as_array().unwrap().len(), orders);
        assert_eq!(found["schedules"][0]["schedule"], "as recorded");
        let range = &found["range"]["false_sharing_misses"];
        assert!(range["min"].as_u64().unwrap() <= 1 && range["max"].as_u64().unwrap() > 9000, "{range}");
        // Everything else is of the order with most, and so is the advice.
        assert_eq!(found["sharing"]["false_sharing_misses"], range["max"]);
        assert_eq!(found["pairs"][0]["sides"][1]["offset"], 8);
        let advice = &found["advice"][0];
        assert!(advice["change"].as_str().unwrap().contains("56 bytes between them"), "{advice}");
        assert!(
            advice["misses_before"].as_u64().unwrap() > 9000 && advice["misses_after"].as_u64().unwrap() < 5,
            "{advice}"
        );
    }
    let (text, _) = with(&["--interleave=auto"]);
    assert!(
        text.contains("random turns of 4 (seed 1)")
            && text.contains("range")
            && text.contains("Advice, with simulated misses"),
        "{text}"
    );
}

#[test]
fn private_caches_are_simulated_in_several_orders() {
    let folder = tempfile::tempdir().unwrap();
    let trace = apart(folder.path());
    let config = folder.path().join("two.json");
    let caches = r#"{"one": {"levels": [{"name": "L1", "size": "4KiB", "line": 64, "ways": 4, "private": true}]}}"#;
    std::fs::write(&config, caches).unwrap();
    let config = config.display().to_string();
    let arguments = ["sim", "--input-format=cacheray", "--config", &config, trace.as_str()];
    let noted = run(&arguments);
    assert!(String::from_utf8_lossy(&noted.stderr).contains("threads hardly interleave: 2 of 2"), "{noted:?}");
    let object = json(&[&arguments[..], &["--format=json", "--interleave=auto"]].concat());
    let range = &object["range"]["one"];
    assert!(
        range["L1 misses"]["min"].as_u64().unwrap() < 5 && range["L1 misses"]["max"].as_u64().unwrap() > 9000,
        "{range}"
    );
    assert_eq!(object["schedules"][0]["results"]["one"]["L1 misses"], range["L1 misses"]["min"]);
    let text = ended(&[&arguments[..], &["--interleave=3"]].concat(), 0);
    assert!(text.contains("turns of 3") && text.contains("false sharing misses"), "{text}");
    for wrong in [["--interleave=0", "--format=text"], ["--interleave=auto", "--format=csv"]] {
        assert_eq!(run(&[&arguments[..], &wrong].concat()).status.code(), Some(2));
    }
}
