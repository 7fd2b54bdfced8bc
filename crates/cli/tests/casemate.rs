//! The group `anytrace casemate` as its users meet it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A tree of four tables under VMID 1 whose last entry is live.
const TREE: &str = "(mem-init (id 1) (tid 0) (address 0x1000) (size 0x4000))
(hint (id 2) (tid 0) (kind set_root_lock) (location 0x1000) (value 0x90000))
(mem-write (id 3) (tid 0) (mem-order plain) (address 0x1000) (value 0x2003))
(mem-write (id 4) (tid 0) (mem-order plain) (address 0x2000) (value 0x3003))
(mem-write (id 5) (tid 0) (mem-order plain) (address 0x3000) (value 0x4003))
(mem-write (id 6) (tid 0) (mem-order plain) (address 0x4000) (value 0x507c3))
(sysreg-write (id 7) (tid 0) (sysreg vttbr_el2) (value 0x1000000001000))
(lock (id 8) (tid 0) (address 0x90000))
";

/// The TLBI names another address, and the round goes on without another.
const BROKEN: &str = "(mem-write (id 9) (tid 0) (mem-order release) (address 0x4000) (value 0x0) (src \"hyp.c:9\"))
(barrier (id 10) (tid 0) dsb (kind ish) (src \"hyp.c:10\"))
(tlbi (id 11) (tid 0) ipas2e1is (value 0x77) (src \"hyp.c:11\"))
(barrier (id 12) (tid 0) dsb (kind ish) (src \"hyp.c:12\"))
(mem-write (id 13) (tid 0) (mem-order release) (address 0x4000) (value 0x517c3) (src \"hyp.c:13\"))
";

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        std::fs::write(files.path("good.log"), TREE).unwrap();
        std::fs::write(files.path("bad.log"), format!("{TREE}{BROKEN}")).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.arg("casemate").args(words.split_ascii_whitespace()).current_dir(self.0.path());
        command.env("NO_COLOR", "1").output().unwrap()
    }

    fn json(&self, words: &str) -> Value {
        let output = self.run(words);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words}: {error}: {}", text(&output)))
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn check_exits_0_1_and_2_and_names_the_violation() {
    let files = Files::new();
    assert_eq!(files.run("check good.log").status.code(), Some(0));
    let bad = files.run("check bad.log good.log");
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad).contains("[casemate/bbm-unclean-valid]"), "{}", text(&bad));
    assert!(text(&bad).ends_with("good.log: ok, 8 transitions, 0 violations, 0 warnings\n"), "{}", text(&bad));
    assert_eq!(files.run("check missing.log bad.log").status.code(), Some(2));
    assert_eq!(files.run("check --rule nonsense=on bad.log").status.code(), Some(2));
}

#[test]
fn check_reads_a_pipe_and_says_the_same() {
    let files = Files::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .args(["casemate", "check", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{TREE}{BROKEN}").as_bytes()).unwrap();
    let mut piped: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    piped["file"] = json!("bad.log");
    assert_eq!(piped, files.json("check --format json bad.log"));
    let violation = &piped["violations"][0];
    assert_eq!(
        (&violation["record_id"], &violation["index"], &violation["line"]),
        (&json!(13), &json!(12), &json!(13))
    );
    assert_eq!((&violation["src"], &violation["location"]), (&json!("hyp.c:13"), &json!("0x4000")));
    assert_eq!(violation["related"].as_array().unwrap().len(), 3);
}

#[test]
fn sarif_and_junit_are_for_all_files_together() {
    let files = Files::new();
    let sarif = files.json("check --format sarif bad.log good.log");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&json!("hyp.c"), &json!(13)));
    let junit = text(&files.run("check --format junit bad.log good.log"));
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
}

#[test]
fn explain_names_the_missing_step_and_the_near_miss() {
    let files = Files::new();
    let output = files.run("explain bad.log");
    let story = text(&output);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "stage 2 entry of level 3, input addresses 0x0 to 0xfff, root 0x1000",
        "record 8 (id 9), thread 0, hyp.c:9: made invalid; TLBs may still hold 0x507c3",
        "missing: tlbi vmalls12e1is or alle1is",
        "record 10 (id 11), thread 0, hyp.c:11: had no effect: the TLBI names an address outside the entry's range",
        "its lock 0x90000 is held by thread 0",
    ] {
        assert!(story.contains(part), "{part}\n{story}");
    }
    let value = files.json("explain --format json bad.log");
    assert_eq!(value["stories"][0]["near_misses"][0]["reason"], "wrong-address");
    assert_eq!(value["stories"][0]["entry"]["level"], 3);
    assert_eq!(files.run("explain good.log").status.code(), Some(0));
}

/// In place: other permissions of the live entry, or another type of memory.
const PERMISSIONS: &str = "(mem-write (id 9) (tid 0) (mem-order release) (address 0x4000) (value 0x50743))\n";
const CONTIGUOUS: &str = "(mem-write (id 9) (tid 0) (mem-order release) (address 0x4000) (value 0x100000000507c3))\n";
const TYPE: &str = "(mem-write (id 9) (tid 0) (mem-order release) (address 0x4000) (value 0x507c7))\n";

#[test]
fn every_verb_uses_the_rule_set_that_is_asked_for() {
    let files = Files::new();
    std::fs::write(files.path("perm.log"), format!("{TREE}{PERMISSIONS}")).unwrap();
    std::fs::write(files.path("type.log"), format!("{TREE}{TYPE}")).unwrap();
    std::fs::write(files.path("size.log"), format!("{TREE}{CONTIGUOUS}")).unwrap();
    for (words, file, code) in [
        ("check", "perm.log", 0),
        ("check --rules architecture", "perm.log", 0),
        ("check --rules strict", "perm.log", 1),
        ("check --compat", "perm.log", 0),
        ("check", "type.log", 1),
        ("check --rules strict", "type.log", 1),
        ("check --compat", "type.log", 0),
        ("explain", "perm.log", 0),
        ("explain --rules strict", "perm.log", 1),
        ("minimise -o -", "perm.log", 1),
        ("minimise -o - --rules strict", "perm.log", 0),
        ("minimise -o -", "type.log", 0),
        ("check --rules strict --compat", "perm.log", 2),
        ("check", "size.log", 1),
        ("check --bbm 0 --rules strict", "size.log", 1),
        ("check --bbm 1", "size.log", 0),
        ("check --bbm 2", "size.log", 0),
        ("check --bbm 3", "size.log", 2),
        ("explain --bbm 1", "size.log", 0),
        ("minimise -o - --bbm 2", "size.log", 1),
        ("check --bbm 1 --compat", "size.log", 2),
        ("check --bbm 1 --rules strict", "size.log", 2),
        ("walk --bbm 2 --rules strict --root 0x1000", "size.log", 2),
    ] {
        assert_eq!(files.run(&format!("{words} {file}")).status.code(), Some(code), "{words} {file}");
    }
    let decides = "memory type (MemAttr, bits 5:2) 0x0 -> 0x1";
    for words in ["check", "check --format sarif", "explain"] {
        assert!(text(&files.run(&format!("{words} type.log"))).contains(decides), "{words}");
    }
    let attributes = &files.json("check --format json type.log")["violations"][0]["change"]["attributes"];
    assert_eq!(
        attributes,
        &json!([{"attribute": "memory type", "field": "MemAttr", "bits": "5:2", "old": "0x0",
                                    "new": "0x1", "needs_break": true}])
    );
    let story = text(&files.run("explain --rules strict perm.log"));
    assert!(story.contains("missing: nothing by the architecture"), "{story}");
    let story = text(&files.run("explain type.log"));
    assert!(story.contains("missing: the break: the entry is live and must be made invalid and cleaned before its memory type may change\n"), "{story}");
    let line = "changed in place, which needs no break: permissions (S2AP, bits 7:6) 0x3 -> 0x1 [V]";
    assert!(text(&files.run("timeline perm.log --location 0x4000")).contains(line));
    assert!(
        text(&files.run("timeline --rules strict perm.log --location 0x4000")).contains("VIOLATION: BBM valid->valid")
    );
    let generic = |file: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).arg("check").arg(files.path(file)).output().unwrap();
        (output.status.code(), text(&output))
    };
    assert_eq!(generic("perm.log").0, Some(0));
    let (code, words) = generic("type.log");
    assert!(code == Some(1) && words.contains(decides), "{words}");
}

#[test]
fn timeline_state_and_walk_show_the_machine() {
    let files = Files::new();
    let timeline = text(&files.run("timeline bad.log --location 0x4000"));
    assert!(timeline.contains("became a level 3 entry under root 0x1000"), "{timeline}");
    assert!(timeline.contains("[IU d]"), "{timeline}");
    assert_eq!(files.json("timeline bad.log --all-unclean --format json")["events"][0]["state"], "IU n");
    let state = files.json("state bad.log --at id:10 --format json");
    assert_eq!(
        state["unclean"],
        json!([{"location": "0x4000", "state": "d", "thread": 0, "root": "0x1000",
        "level": 3, "input_start": "0x0"}])
    );
    assert_eq!((&state["index"], &state["held_locks"][0]["thread"]), (&json!(9), &json!(0)));
    assert_eq!(files.run("state bad.log --at 13").status.code(), Some(2));
    let walk = files.json("walk bad.log --at 7 --root 0x1000 --address 0xabc --format json");
    assert_eq!(walk["output"], "0x50abc");
    assert_eq!(walk["entries"].as_array().unwrap().len(), 4);
    let tree = text(&files.run("walk bad.log --at 7 --root 1000"));
    assert!(tree.contains("maps to 0x50000 (rwx, memory 0b0000, inner shareable, AF); V"), "{tree}");
    assert_eq!(files.run("walk bad.log --root 0x5000").status.code(), Some(2));
}

#[test]
fn a_minimised_trace_fails_in_the_same_way_and_is_not_written_over_another() {
    let files = Files::new();
    let output = files.run("minimise bad.log -o small.log");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = files.json("check --format json small.log");
    assert_eq!(
        (&report["violations"][0]["rule"], &report["violations"][0]["location"]),
        (&json!("casemate/bbm-unclean-valid"), &json!("0x4000"))
    );
    assert!(report["events"].as_u64().unwrap() <= 10);
    assert_eq!(files.run("minimise bad.log -o small.log").status.code(), Some(2));
    assert_eq!(files.run("minimise good.log -o other.log").status.code(), Some(1));
    assert!(!files.path("other.log").exists());
}

#[test]
fn minimise_says_why_an_unknown_verdict_is_not_minimised() {
    let files = Files::new();
    let doubt = "(sysreg-write (id 8) (tid 0) tcr2_el2 (value 0x1))\n";
    std::fs::write(files.path("doubt.log"), format!("{TREE}{doubt}{BROKEN}")).unwrap();
    let output = files.run("minimise doubt.log -o small.log");
    let why = "the verdict is unknown (a system register is not modelled), so there is nothing to minimise";
    assert!(text(&output).contains(why), "{}", text(&output));
    assert_eq!((output.status.code(), files.path("small.log").exists()), (Some(1), false));
    // A small budget is used up, and the trace still has its verdict.
    let cut = files.run("minimise bad.log -o cut.log --patience 0");
    assert!(text(&cut).contains("the search was cut short by --patience"), "{}", text(&cut));
    assert_eq!(files.run("check cut.log").status.code(), Some(1));
}

#[test]
fn stats_names_maintenance_that_can_be_removed() {
    let files = Files::new();
    let value = files.json("stats bad.log --format json");
    let tlbi = &value["maintenance"][1];
    assert_eq!((&tlbi["operation"], &tlbi["records"]), (&json!("tlbi ipas2e1is"), &json!(1)));
    assert_eq!((&tlbi["unneeded"], &tlbi["example"]["record_id"]), (&json!(1), &json!(11)));
    assert_eq!((&value["locks"][0]["open_since"], &value["lost"]), (&json!(7), &json!(0)));
    assert_eq!(value["entries"][0]["location"], "0x4000");
    // Without it the verdict is the same.
    let rest: Vec<&str> = BROKEN.lines().filter(|line| !line.contains("tlbi")).collect();
    std::fs::write(files.path("rest.log"), format!("{TREE}{}\n", rest.join("\n"))).unwrap();
    let rule = |file: &str| files.json(&format!("check --format json {file}"))["violations"][0]["record_id"].clone();
    assert_eq!(rule("rest.log"), rule("bad.log"));
    assert!(text(&files.run("stats bad.log --top 1")).contains("record 10 (id 11), thread 0, hyp.c:11"));
    assert_eq!(files.run("stats missing.log").status.code(), Some(2));
}

#[test]
fn walk_shows_what_changed_between_two_records() {
    let files = Files::new();
    let value = files.json("walk bad.log --diff 7..12 --root 0x1000 --address 0xabc --format json");
    assert_eq!((&value["from"]["output"], &value["to"]["output"]), (&json!("0x50abc"), &json!("0x51abc")));
    assert_eq!(value["changes"][0]["changed"], json!(["value", "output"]));
    let broken = text(&files.run("walk bad.log --diff id:8..id:9 --root 0x1000"));
    assert!(broken.contains("L3 0x0..0xfff: value, kind, attributes, state\n"), "{broken}");
    for (words, code) in [("7..99", 2), ("7", 2), ("7..12 --at 7", 2), ("7..7", 0)] {
        let output = files.run(&format!("walk bad.log --root 0x1000 --diff {words}"));
        assert_eq!(output.status.code(), Some(code), "{words}: {}", text(&output));
    }
}

#[test]
fn rewrite_and_diff_agree_on_what_is_the_same() {
    let files = Files::new();
    assert_eq!(
        files.run("rewrite bad.log -o short.log --style positional --renumber=100 --no-src").status.code(),
        Some(0)
    );
    let short = std::fs::read_to_string(files.path("short.log")).unwrap();
    assert!(short.starts_with("(mem-init 100 0 0x1000 0x4000)\n"), "{short}");
    assert_eq!(files.run("diff bad.log short.log").status.code(), Some(0));
    let moved = short.replace("0x1000 0x4000", "0x1000 0x3000");
    std::fs::write(files.path("moved.log"), moved).unwrap();
    let different = files.run("diff bad.log moved.log");
    assert_eq!(different.status.code(), Some(1));
    assert!(text(&different).contains("b: record 0 (id 100)"), "{}", text(&different));
}

#[test]
fn the_reference_options_print_its_text() {
    let files = Files::new();
    let output = files.run("check --compat -c -p good.log");
    assert!(text(&output).contains("(lock 8 0 90000)\nstate:\nroots: [0x............1000/1]\n"), "{}", text(&output));
    assert!(text(&output).ends_with("casemate-check: log checked successfully.\n"));
    let bad = files.run("check --compat -T bad.log");
    assert!(
        text(&bad).starts_with("casemate error\nmsg: BBM invalid unclean->valid\nrelated locations:\n"),
        "{}",
        text(&bad)
    );
    assert!(text(&bad).ends_with("! BBM invalid unclean->valid\n"));
    assert!(!text(&files.run("check --compat -qq -T bad.log")).contains("\n! "));
}

#[test]
fn rules_lists_every_switch_with_its_state_in_each_set() {
    let files = Files::new();
    let value = files.json("rules --format json");
    let rules = value["rules"].as_array().unwrap();
    let states = |name: &str| {
        let rule = rules.iter().find(|rule| rule["name"] == name).unwrap();
        ["architecture", "strict", "compat"].map(|set| rule[set].as_str().unwrap().to_owned())
    };
    assert_eq!(states("af-inverted"), ["off", "off", "on"]);
    assert_eq!(states("any-attribute"), ["off", "on", "on"]);
    assert_eq!(states("nsh-fires"), ["on", "on", "on"]);
    assert!(rules.iter().all(|rule| rule["reference"].as_str().is_some_and(|text| !text.is_empty())));
    assert!(text(&files.run("rules --messages")).contains("BBM valid->valid"));
}

/// Read as hexadecimal, decimal numbers are others, and long ones too large.
#[test]
fn decimal_numbers_are_announced_and_read_back() {
    let files = Files::new();
    let anytrace = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(words.split_ascii_whitespace()).current_dir(files.0.path()).output().unwrap()
    };
    std::fs::write(files.path("long.log"), "(mem-init 1 0 bf36e000bf371000 1000)\n").unwrap();
    let note = "open it with --radix dec";
    for words in [
        "convert long.log -o plain --to-radix dec",
        "convert long.log -o styled --style canonical --to-radix dec",
        "trim long.log -o part --records 0..1 --to-radix dec",
        "convert long.log -o lines.jsonl",
        "convert lines.jsonl -o back --to casemate --to-radix dec",
    ] {
        let output = anytrace(words);
        assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output));
        assert_eq!(text(&output).contains(note), words.ends_with("dec"), "{words}: {}", text(&output));
    }
    for file in ["plain", "styled", "part", "back"] {
        let output = anytrace(&format!("dump --radix dec {file}"));
        assert_eq!(output.status.code(), Some(0), "{file}: {}", text(&output));
        assert_eq!(output.stdout, anytrace("dump long.log").stdout, "{file}");
    }
    let hex = anytrace("convert long.log -o hex --style canonical --to-radix hex");
    assert!(hex.status.success() && !text(&hex).contains(note), "{}", text(&hex));
}

/// A page as a browser reads it: elements that are opened and closed in order, and no script.
fn is_page(html: &str) {
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</body>\n</html>\n"));
    let mut open = Vec::new();
    for token in html5gum::Tokenizer::new(html).map(Result::unwrap) {
        match token {
            html5gum::Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                assert!(name != "script" && !tag.attributes.keys().any(|key| key.starts_with(b"on")), "{name}");
                assert!(
                    !tag.attributes
                        .keys()
                        .any(|key| ["src", "href"].iter().any(|word| key.as_slice() == word.as_bytes()))
                );
                if !tag.self_closing && name != "meta" {
                    open.push(name);
                }
            }
            html5gum::Token::EndTag(tag) => {
                assert_eq!(open.pop().map(String::into_bytes).as_deref(), Some(tag.name.as_slice()));
            }
            html5gum::Token::Error(error) => panic!("{error:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn explain_and_timeline_are_pages_for_a_browser() {
    let files = Files::new();
    let page = files.run("explain --html bad.log");
    assert_eq!(page.status.code(), Some(1));
    let html = text(&page);
    is_page(&html);
    for part in [
        "hyp.c:13",
        "Missing:",
        "tlbi vmalls12e1is or alle1is",
        "CPU 0",
        "VIOLATION",
        "missing</text>",
        "written (DSB)",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    assert_eq!(html, text(&files.run("explain --format html bad.log")));
    let html = text(&files.run("timeline --html --location 0x4000 --location 0x3000 bad.log"));
    is_page(&html);
    assert!(html.contains("what happened to 2 entries") && html.contains("<rect class=\"state"), "{html}");
    is_page(&text(&files.run("timeline --html --all-unclean good.log")));
    is_page(&text(&files.run("explain --html good.log")));
    let evil = format!("{TREE}{}", BROKEN.replace("hyp.c:13", "<script>alert(1)</script>&\u{1b}[31m"));
    std::fs::write(files.path("<b>evil&.log"), evil).unwrap();
    for verb in ["explain --html", "timeline --html --all-unclean"] {
        let html = text(&files.run(&format!("{verb} <b>evil&.log")));
        is_page(&html);
        assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains('\u{1b}'), "{html}");
    }
}
