//! `memory types`, `lifetime`, `heatmap`, `advise` and `sim --remap` as their users meet them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn sample(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cacheray/corpus/types").join(name).display().to_string()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory-types");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).arg("cacheray").args(arguments).env("NO_COLOR", "1").output().unwrap()
}

/// A configuration of two levels, `d`, whatever this machine has.
fn caches(name: &str) -> String {
    let config = scratch(name);
    let levels = r#"{"d":{"levels":[{"name":"L1","size":32768,"line":64,"ways":8},{"name":"L2","size":1048576,"line":64,"ways":16}]}}"#;
    std::fs::write(&config, levels).unwrap();
    config.display().to_string()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_str(&text(&output)).unwrap()
}

#[test]
fn every_access_is_in_a_type_or_untyped() {
    let (trace, types) = (sample("layouts.trace.gz"), sample("layouts.dwarf.json"));
    let value = json(&["types", &trace, "--binary", &types, "--format", "json"]);
    assert_eq!((&value["version"], value["file"].as_str()), (&Value::from(1), Some(trace.as_str())));
    let of = |one: &Value| one["reads"].as_u64().unwrap() + one["writes"].as_u64().unwrap();
    let typed: u64 = value["types"].as_array().unwrap().iter().map(of).sum();
    let regions = 1004;
    assert_eq!(typed + of(&value["untyped"]) + regions, value["records"].as_u64().unwrap());
    let particle = value["types"].as_array().unwrap().iter().find(|one| one["type"] == "struct.Particle").unwrap();
    let field =
        |path: &str| particle["fields"].as_array().unwrap().iter().find(|one| one["path"] == path).unwrap().clone();
    // The compiler leaves out the read of `x` in `x += vx`.
    assert_eq!((&field("x")["reads"], &field("x")["writes"]), (&Value::from(0), &Value::from(1500)));
    assert_eq!((&field("vx")["reads"], &field("name[]")["reads"]), (&Value::from(1500), &Value::from(0)));
    assert_eq!(particle["elements"], 500);
}

#[test]
fn accesses_of_no_bytes_are_distinguished_and_both_verbs_count_the_same() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cacheray/corpus/broken/access-size-0.trace");
    let trace = trace.display().to_string();
    let found = json(&["types", &trace, "--format", "json"]);
    let simulated = json(&["sim", &trace, "--types", "--config", "zen3", "--format", "json"]);
    let (of_types, untyped) =
        (&simulated["results"]["zen3.types"]["types"], &simulated["results"]["zen3.types"]["untyped"]);
    let zero = found["zero_size_records"].as_u64().unwrap();
    assert!(zero > 0 && simulated["results"]["zen3"]["zero_size_records"] == zero, "{simulated:#}");
    let of = |one: &Value| [one["reads"].as_u64().unwrap(), one["writes"].as_u64().unwrap()];
    for one in found["types"].as_array().unwrap() {
        assert!(one["offsets"].as_object().unwrap().keys().all(|key| !key.ends_with("+0")), "{one:#}");
        let same = of_types.as_array().unwrap().iter().find(|other| other["type"] == one["type"]);
        assert_eq!(same.map_or([0, 0], of), of(one), "{one:#} {of_types:#}");
    }
    assert_eq!(of(&found["untyped"]), of(untyped));
    assert!(text(&run(&["types", &trace])).contains("of 0 bytes"));
}

#[test]
fn advise_splits_what_is_cold_with_and_without_type_data() {
    let (trace, types) = (sample("layouts.trace.gz"), sample("layouts.dwarf.json"));
    for (with, node, particle) in
        [(vec!["--binary", types.as_str()], "cold", "name"), (vec![], "bytes 16..64", "bytes 24..56")]
    {
        let config = caches("split.json");
        let mut arguments = vec!["advise", trace.as_str(), "--format", "json", "--config", config.as_str()];
        arguments.extend(with);
        let value = json(&arguments);
        for (name, cold) in [("struct.Node", node), ("struct.Particle", particle)] {
            let found = value["advice"].as_array().unwrap().iter().find(|one| {
                one["type"] == name
                    && one["kind"] == "split"
                    && one["split_off"].as_array().unwrap().iter().any(|field| field == cold)
            });
            let found = found.unwrap_or_else(|| panic!("{name} {cold}: {value:#}"));
            let misses = |at: &str| found[at]["missed_lines"]["L1"].as_u64().unwrap();
            assert!(
                misses("after") * 10 < misses("before") * 9 && misses("after") < misses("moved_unchanged"),
                "{found:#}"
            );
        }
    }
}

#[test]
fn a_proposal_gives_sim_the_figures_that_advise_reported() {
    let trace = sample("layouts.trace.gz");
    let config = caches("figures.json");
    let value = json(&["advise", &trace, "--format", "json", "--config", &config]);
    let advice = value["advice"].as_array().unwrap();
    let split = advice.iter().find(|one| one["type"] == "struct.Particle" && one["kind"] == "split").unwrap();
    let file = scratch("remap.json");
    std::fs::write(&file, serde_json::json!({"version": 1, "types": [split["remap"]]}).to_string()).unwrap();
    let file = file.display().to_string();
    let missed = |more: &[&str]| {
        let mut arguments = vec!["sim", trace.as_str(), "--config", config.as_str(), "--format", "json"];
        arguments.extend(more);
        let found = json(&arguments);
        let l1 = &found["results"]["d"]["levels"][0];
        l1["read_misses"].as_u64().unwrap() + l1["write_misses"].as_u64().unwrap()
    };
    assert_eq!(Value::from(missed(&[])), split["before"]["missed_lines"]["L1"]);
    assert_eq!(Value::from(missed(&["--remap", &file])), split["after"]["missed_lines"]["L1"]);
    std::fs::write(&file, value["together"]["remap"].to_string()).unwrap();
    assert_eq!(Value::from(missed(&["--remap", &file])), value["together"]["missed_lines"]["L1"]);
}

#[test]
fn two_layouts_of_one_trace_stand_side_by_side() {
    let trace = sample("layouts.trace.gz");
    let advice = json(&["advise", &trace, "--format", "json", "--config", &caches("two.json")]);
    let all = advice["advice"].as_array().unwrap();
    let split = |name: &str| {
        let one = all.iter().find(|one| one["type"] == name && one["kind"] == "split").unwrap();
        let file = scratch(&format!("compare-{name}.json"));
        std::fs::write(&file, one["remap"].to_string()).unwrap();
        file.display().to_string()
    };
    let (node, particle) = (split("struct.Node"), split("struct.Particle"));
    let missed = |with: Option<&str>| {
        let remap = with.map(|file| ["--remap", file]);
        let mut arguments = vec!["sim", trace.as_str(), "--config", "zen3", "--format", "json"];
        arguments.extend(remap.iter().flatten());
        let l1 = json(&arguments)["results"]["zen3"]["levels"][0].clone();
        l1["read_misses"].as_u64().unwrap() + l1["write_misses"].as_u64().unwrap()
    };
    let (as_traced, with_node, with_particle) = (missed(None), missed(Some(&node)), missed(Some(&particle)));
    assert!(with_node < as_traced && with_particle < as_traced && with_node != with_particle);
    let compare = |arguments: &[&str]| {
        let value = json(&[&["compare", "--config", "zen3", "--format", "json"], arguments].concat());
        let rows = value["results"]["zen3"]["rows"].as_array().unwrap().clone();
        let l1 = rows.iter().find(|row| row["kind"] == "level" && row["name"] == "L1").unwrap();
        (l1["base"]["misses"].as_u64().unwrap(), l1["shown"]["misses"].as_u64().unwrap())
    };
    assert_eq!(compare(&["--remap", &node, &trace]), (as_traced, with_node));
    assert_eq!(compare(&["--base-remap", &node, &trace]), (with_node, as_traced));
    assert_eq!(compare(&["--base-remap", &node, "--remap", &particle, &trace]), (with_node, with_particle));
    assert_eq!(compare(&["--remap", &node, &trace, &trace]), (as_traced, with_node));
    let page = text(&run(&["compare", "--config", "zen3", "--remap", &particle, &trace]));
    let title = format!("{trace} as {particle} lays it out against {trace}\n");
    assert!(page.starts_with(&title) && page.contains("struct.Particle (part 2)"), "{page}");
    let stdin = run(&["compare", "--config", "zen3", "--remap", &node, "-"]);
    assert_eq!(stdin.status.code(), Some(2), "standard input cannot be read twice");
}

#[test]
fn upstreams_remap_lines_need_the_fields() {
    let (trace, types) = (sample("layouts.trace.gz"), sample("layouts.dwarf.json"));
    let file = scratch("remap.txt");
    std::fs::write(&file, "struct Node=next,8;val,0\n").unwrap();
    let file = file.display().to_string();
    let refused = run(&["sim", &trace, "--config", "zen3", "--remap", &file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("line 1: the fields of struct Node are unknown"));
    let done = run(&["sim", &trace, "--config", "zen3", "--remap", &file, "--binary", &types, "--types"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("500 regions and 4000 accesses"), "{done:?}");
}

#[test]
fn lifetimes_of_churn_are_reported() {
    let value = json(&["lifetime", &sample("churn.trace.gz"), "--format", "json"]);
    assert_eq!(value["accesses_after_remove_count"], 1);
    let late = &value["accesses_after_remove"][0];
    assert!(late["record"].as_u64() > late["removed_at"].as_u64());
    let leaked: u64 = value["types"].as_array().unwrap().iter().map(|one| one["leaked"].as_u64().unwrap()).sum();
    assert_eq!(leaked, 3);
    let failed = run(&["lifetime", &sample("churn.trace.gz"), "--fail"]);
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn pictures_are_written_completely_or_not_at_all() {
    let (trace, out) = (sample("layouts.trace.gz"), scratch("heat.svg").display().to_string());
    let _ = std::fs::remove_file(&out);
    for more in [&["--by", "time"][..], &["--by", "line", "--type", "Node", "--force"]] {
        let mut arguments = vec!["heatmap", trace.as_str(), "-o", out.as_str()];
        arguments.extend(more);
        text(&run(&arguments));
        let picture = std::fs::read_to_string(&out).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    }
    assert_eq!(run(&["heatmap", &trace, "-o", &out]).status.code(), Some(2));
    assert_eq!(run(&["heatmap", &trace, "--type", "Nothing"]).status.code(), Some(2));
}

#[test]
fn rows_of_heatmaps_have_the_names_of_types_and_lines_their_accesses() {
    let picture = |by| text(&run(&["heatmap", &sample("layouts.trace.gz"), "--by", by, "-n", "8", "-o", "-"]));
    assert!(picture("time").contains(">struct.Node 0x"), "{}", picture("time"));
    let by_line = picture("line");
    // As many accesses as the lines have together, not as many as bytes.
    let total: u64 = json(&["types", &sample("layouts.trace.gz"), "--format", "json"])["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            one["reads"].as_u64().unwrap() + one["writes"].as_u64().unwrap() + one["straddles"].as_u64().unwrap()
        })
        .sum();
    let number = |before: &str| {
        let text = by_line.split(before).nth(1).unwrap().split(' ').next().unwrap();
        text.replace(',', "").parse::<u64>().unwrap()
    };
    assert!(by_line.contains(" accesses 0x"), "{by_line}");
    assert!(number("most accesses, ") + number("; ") >= total, "{by_line}");
    assert!(number("most accesses, ") + number("; ") < total * 2, "{by_line}");
}

#[test]
fn layouts_that_are_written_are_read_again() {
    let types = sample("layouts.dwarf.json");
    let once = text(&run(&["types", "--layouts", "--binary", &types, "--format", "json"]));
    let file = scratch("layouts.json");
    std::fs::write(&file, &once).unwrap();
    let file = file.display().to_string();
    assert_eq!(text(&run(&["types", "--layouts", "--binary", &file, "--format", "json"])), once);
    let trace = sample("layouts.trace.gz");
    let (a, b) = (run(&["types", &trace, "--binary", &types]), run(&["types", &trace, "--binary", &file]));
    assert_eq!(text(&a), text(&b));
}

#[test]
fn mistakes_are_reported_with_exit_code_2() {
    let trace = sample("layouts.trace.gz");
    for (arguments, why) in [
        (vec!["types", "--layouts"], "--program"),
        (vec!["types", &trace, "--type", "Nothing"], "unknown type Nothing; the trace has struct.Node"),
        (vec!["types", &trace, "--binary", &trace], "neither a program nor type data"),
        (vec!["types", &trace, "--config", "no-such"], "cannot read the configuration no-such"),
        (vec!["advise", "-"], "give a file"),
        (vec!["heatmap", &trace, "--by", "line", "--line-bytes", "48"], "expected a power of two from 8 to 4096"),
    ] {
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}

#[test]
fn damage_is_reported_and_the_rest_is_still_counted() {
    let complete = std::fs::read(sample("churn.trace.gz")).unwrap();
    let cut = scratch("cut.trace.gz");
    std::fs::write(&cut, &complete[..complete.len() - 4000]).unwrap();
    let cut = cut.display().to_string();
    for verb in ["types", "lifetime", "advise"] {
        let output = run(&[verb, &cut]);
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("struct.Obj"), "{verb}");
    }
    let empty = scratch("empty.trace");
    std::fs::write(&empty, b"").unwrap();
    let empty = empty.display().to_string();
    for verb in ["types", "lifetime", "advise"] {
        assert_eq!(run(&[verb, &empty]).status.code(), Some(0), "{verb}");
    }
}
