//! The same option does the same in every verb: numbers of rows, sets of frames, foreign formats, extensions. Which verbs
//! have an option is read from the manual pages, so that a new one cannot be forgotten.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const GROUPS: [&str; 6] = ["apitrace", "cacheray", "casemate", "heph", "memory", "xray"];

/// A trace of the examples.
fn sample(name: &str) -> String {
    Path::new(ROOT).join("examples/traces").join(name).display().to_string()
}

/// Runs a line: words separated by blanks, of which those with a dot that are examples are their paths.
fn run(folder: &Path, line: &str) -> Output {
    let words = line.split(' ').map(|word| if Path::new(&sample(word)).is_file() { sample(word) } else { word.into() });
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every verb with its manual page.
fn pages() -> &'static [(String, String)] {
    static PAGES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        assert!(run(folder.path(), "man --dir .").status.success());
        let pages = std::fs::read_dir(folder.path()).unwrap().filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().strip_prefix("anytrace-")?.to_owned();
            let inner = GROUPS.iter().find_map(|group| Some((group, name.strip_prefix(group)?.strip_prefix('-')?)));
            let verb = inner.map_or(name.clone(), |(group, verb)| format!("{group} {verb}"));
            Some((verb, std::fs::read_to_string(&path).unwrap().replace("\\-", "-").replace("\\fB", "")))
        });
        pages.collect()
    })
}

/// The verbs that have an option.
fn with_option(option: &str) -> BTreeSet<String> {
    let has = |page: &str| {
        let ends = |at: usize| !page[at + option.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-');
        // An option begins its line; elsewhere it is only spoken of.
        page.match_indices(option).any(|(at, _)| {
            let line = page[..at].rsplit('\n').next().unwrap_or_default();
            ends(at) && line.chars().filter(|c| c.is_alphanumeric()).count() <= 4 && !line.contains('`')
        })
    };
    pages().iter().filter(|(_, page)| has(page)).map(|(verb, _)| verb.clone()).collect()
}

/// That the lines begin with these verbs, each at least once.
fn must_cover(lines: &[&str], verbs: &BTreeSet<String>, what: &str) {
    let is_of = |line: &str, verb: &str| line.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' '));
    let missing: Vec<_> = verbs.iter().filter(|verb| !lines.iter().any(|line| is_of(line, verb))).collect();
    assert!(missing.is_empty(), "{what}: no line above for {missing:?}");
    let strange: Vec<_> = lines.iter().filter(|line| !verbs.iter().any(|verb| is_of(line, verb))).collect();
    assert!(strange.is_empty(), "{what}: {strange:?} have none");
}

#[test]
fn no_number_of_rows_is_all_rows() {
    const LINES: &[&str] = &[
        "stats threads4.xray",
        "stats --format csv threads4.xray",
        "stats --format json threads4.xray",
        "stats --against relay.heph relay.heph",
        "timeline threads4.xray",
        "apitrace stats imm.trace",
        "apitrace stats --by state --format csv imm.trace",
        "heph stats relay.heph",
        "heph stats --against relay.heph relay.heph",
        "casemate stats free_tree.casemate",
        "heph tasks relay.heph",
        "memory sim --config zen3 --types boxes.cacheray",
        "memory compare --config zen3 boxes.cacheray rows.lackey",
        "memory mrc --by type boxes.cacheray",
        "memory annotate --config zen3 rows.lackey",
        "memory numa boxes.cacheray",
        "memory sharing boxes.cacheray",
        "memory types --config zen3 boxes.cacheray",
        "memory lifetime boxes.cacheray",
        "memory advise --config zen3 boxes.cacheray",
        "memory heatmap --by line boxes.cacheray",
        "memory report --config zen3 boxes.cacheray -o -",
        "xray account threads4.xray",
        "xray stack threads4.xray",
    ];
    must_cover(LINES, &with_option("--top"), "--top");
    let folder = TempDir::new().unwrap();
    let mut longer = 0;
    for line in LINES {
        let lines = |top: &str| {
            let output = run(folder.path(), &format!("{line} --top {top}"));
            assert!(output.status.success(), "{line} --top {top}: {}", said(&output));
            output.stdout.iter().filter(|byte| **byte == b'\n').count()
        };
        let (all, one, many) = (lines("0"), lines("1"), lines("1000"));
        assert!(all >= one, "{line}: {all} lines for all, {one} for one");
        assert!(all >= many, "{line}: {all} lines for all, {many} for 1000");
        longer += usize::from(all > one);
    }
    assert!(longer * 2 > LINES.len(), "only {longer} samples have more than one row");
    for line in ["timeline -n 2 threads4.xray", "memory heatmap -n 2 boxes.cacheray", "xray account -n 2 threads4.xray"]
    {
        assert!(run(folder.path(), line).status.success(), "{line}");
    }
}

#[test]
fn calls_that_end_frames_are_a_set_in_every_verb_with_sets() {
    const LINES: &[&str] = &[
        "dump --frames frame imm.trace",
        "dump --frames 0..2/frame,1 imm.trace",
        "trim --frames frame -o trim.trace imm.trace",
        "diff --frames frame imm.trace imm.trace",
        "apitrace diff --calls frame imm.trace imm.trace",
        "apitrace dump --calls frame imm.trace",
        "apitrace dump --frames frame imm.trace",
        "apitrace dump --frames 0..2/frame,1 imm.trace",
        "apitrace dump-images --calls frame -o picture. imm.trace",
        "apitrace gltrim --frames frame -o gltrim.trace imm.trace",
        "apitrace jsonl --calls frame imm.trace",
        "apitrace pickle --calls frame imm.trace",
        "apitrace replay --frames frame imm.trace",
        "apitrace sed --calls frame -e s/a/b/ -o sed.trace imm.trace",
        "apitrace stats --calls frame imm.trace",
        "apitrace stats --frames frame imm.trace",
        "apitrace to-c --calls frame -o c imm.trace",
        "apitrace to-c --frames frame -o d imm.trace",
        "apitrace trim --calls frame -o calls.trace imm.trace",
        "apitrace trim --frames frame -o frames.trace imm.trace",
    ];
    let verbs: BTreeSet<_> = &with_option("--calls") | &with_option("--frames");
    // It lists frames.
    let verbs: BTreeSet<_> = verbs.into_iter().filter(|verb| verb != "apitrace index").collect();
    must_cover(LINES, &verbs, "sets");
    let folder = TempDir::new().unwrap();
    for line in LINES {
        let output = run(folder.path(), line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        let wrong = run(
            folder.path(),
            &line.replace(" frame ", " frames ").replace("/frame,1", "/frames").replace("-o ", "-o x"),
        );
        assert_eq!(wrong.status.code(), Some(2), "{line}, but frames: {}", said(&wrong));
    }
}

#[test]
fn frames_of_a_dump_are_those_of_trim() {
    let folder = TempDir::new().unwrap();
    for set in ["0", "1", "1..", "0..=1/draw", "frame"] {
        let trimmed = run(folder.path(), &format!("apitrace trim --frames {set} --force -o part.trace imm.trace"));
        assert!(trimmed.status.success(), "{set}: {}", said(&trimmed));
        let of_part = run(folder.path(), "apitrace dump --call-nos=no -v part.trace").stdout;
        let dumped = run(folder.path(), &format!("apitrace dump --call-nos=no -v --frames {set} imm.trace")).stdout;
        assert!(!dumped.is_empty(), "{set}");
        assert_eq!(String::from_utf8(of_part), String::from_utf8(dumped), "{set}");
    }
}

/// What follows a group's verb so that it reads FOREIGN.
const READING: &[&str] = &[
    "apitrace diff FOREIGN imm.trace",
    "apitrace diff imm.trace FOREIGN",
    "apitrace dump FOREIGN",
    "apitrace dump-images -o out FOREIGN",
    "apitrace frames -o out FOREIGN",
    "apitrace gltrim -f 0 -o out FOREIGN",
    "apitrace index -o out FOREIGN",
    "apitrace info FOREIGN",
    "apitrace jsonl FOREIGN",
    "apitrace leaks FOREIGN",
    "apitrace pickle FOREIGN",
    "apitrace repack FOREIGN out",
    "apitrace replay FOREIGN",
    "apitrace sed -e s/a/b/ -o out FOREIGN",
    "apitrace state FOREIGN",
    "apitrace stats FOREIGN",
    "apitrace to-c -o out FOREIGN",
    "apitrace trim --calls 1 -o out FOREIGN",
    "casemate check FOREIGN",
    "casemate diff FOREIGN free_tree.casemate",
    "casemate explain FOREIGN",
    "casemate minimise FOREIGN -o out",
    "casemate rewrite FOREIGN -o out",
    "casemate state FOREIGN",
    "casemate stats FOREIGN",
    "casemate timeline --all-unclean FOREIGN",
    "casemate walk --root 0x1000 FOREIGN",
    "heph convert --compat FOREIGN -o out",
    "heph loss FOREIGN",
    "heph replay --to - FOREIGN",
    "heph spans FOREIGN",
    "heph stats FOREIGN",
    "heph tasks FOREIGN",
    "memory advise FOREIGN",
    "memory annotate FOREIGN",
    "memory compare FOREIGN boxes.cacheray",
    "memory compare FOREIGN --against boxes.cacheray",
    "memory heatmap FOREIGN",
    "memory lifetime FOREIGN",
    "memory mrc FOREIGN",
    "memory numa FOREIGN",
    "memory report FOREIGN -o -",
    "memory sharing FOREIGN",
    "memory sim FOREIGN",
    "memory types FOREIGN",
    "xray account FOREIGN",
    "xray convert FOREIGN",
    "xray fdr-dump FOREIGN",
    "xray graph FOREIGN",
    "xray graph-diff FOREIGN threads4.xray",
    "xray stack FOREIGN",
];

#[test]
fn groups_refuse_foreign_traces_in_one_wording_that_names_the_way_out() {
    let verbs: BTreeSet<_> = with_option("--input-format").into_iter().filter(|verb| verb.contains(' ')).collect();
    must_cover(READING, &verbs, "--input-format");
    let folder = TempDir::new().unwrap();
    for line in READING {
        let group = line.split(' ').next().unwrap();
        let (foreign, found) = match group {
            "xray" => ("relay.heph", "a Heph trace"),
            _ => ("threads4.xray", "an LLVM XRay trace"),
        };
        let (expected, ways) = match group {
            "apitrace" => ("an apitrace", "--input-format=apitrace"),
            "casemate" => ("a Casemate offline trace", "--input-format=casemate"),
            "heph" => ("a Heph trace", "--input-format=heph"),
            "memory" => (
                "a Cacheray trace or a Valgrind lackey memory trace",
                "--input-format=cacheray or --input-format=lackey",
            ),
            _ => ("an LLVM XRay trace", "--input-format=xray"),
        };
        let output = run(folder.path(), &line.replace("FOREIGN", foreign));
        let wording = format!(": expected {expected}, found {found}; use {ways} to read it anyway");
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(said(&output).contains(&wording), "{line}: {} has no {wording}", said(&output));
        let other = if group == "xray" { "heph" } else { "xray" };
        let output = run(folder.path(), &format!("{} --input-format={other}", line.replace("FOREIGN", foreign)));
        let wording = format!(": expected {expected}, but --input-format is {other}");
        assert!(output.status.code() == Some(2) && said(&output).contains(&wording), "{line}: {}", said(&output));
    }
}

#[test]
fn an_extension_of_no_form_is_refused_where_no_option_chooses() {
    // What chooses the form by the name of its output, or writes one form of picture.
    const LINES: &[(&str, &[&str])] = &[
        ("convert threads4.xray -o OUT", &["xray", "yaml", "folded"]),
        ("flame threads4.xray -o OUT", &["folded", "svg", "SVG"]),
        ("memory mrc boxes.cacheray --plot OUT", &["svg"]),
        ("memory heatmap boxes.cacheray -o OUT", &["svg"]),
        ("apitrace stats imm.trace --plot OUT", &["svg"]),
    ];
    let folder = TempDir::new().unwrap();
    for (line, extensions) in LINES {
        let to = |name: &str| run(folder.path(), &line.replace("OUT", name));
        for name in ["out.pdf", "out.svg.bak"] {
            let output = to(name);
            assert_eq!(output.status.code(), Some(2), "{line} {name}");
            let list = extensions[0];
            assert!(said(&output).contains(&format!(".{list}")), "{line} {name}: {}", said(&output));
            assert!(!folder.path().join(name).exists(), "{line} {name}");
        }
        for extension in *extensions {
            let output = to(&format!("out.{extension}"));
            assert!(output.status.success(), "{line} {extension}: {}", said(&output));
            std::fs::remove_file(folder.path().join(format!("out.{extension}"))).unwrap();
        }
        for name in ["out", "-"] {
            assert!(to(name).status.success(), "{line} {name}: {}", said(&to(name)));
        }
        std::fs::remove_file(folder.path().join("out")).unwrap();
    }
    for line in ["flame threads4.xray --format svg -o a.pdf", "convert threads4.xray --to yaml -o b.pdf"] {
        assert!(run(folder.path(), line).status.success(), "{line}");
    }
}

#[test]
fn types_and_advice_are_simulated_in_the_caches_that_sim_has() {
    let folder = TempDir::new().unwrap();
    let caches = |verb: &str| {
        let output = run(folder.path(), &format!("memory {verb} boxes.cacheray"));
        assert!(output.status.success(), "{}", said(&output));
        said(&output).lines().find(|line| line.contains("no --config")).map(str::to_owned)
    };
    let of_sim = caches("sim");
    assert!(of_sim.is_some());
    assert_eq!([caches("types"), caches("advise")], [of_sim.clone(), of_sim]);
}

#[test]
fn a_comparison_against_a_base_is_that_of_both_in_order() {
    let folder = TempDir::new().unwrap();
    let run = |line: &str| run(folder.path(), line).stdout;
    let both = run("memory compare --config zen3 boxes.cacheray rows.lackey");
    assert!(!both.is_empty());
    assert_eq!(run("memory compare --config zen3 rows.lackey --against boxes.cacheray"), both);
}

#[test]
fn a_replay_of_a_range_of_times_is_that_of_its_two_old_options() {
    let folder = TempDir::new().unwrap();
    let replay = |times: &str| {
        let output = run(folder.path(), &format!("heph replay --speed max --to - {times} relay.heph"));
        assert!(output.status.success(), "{times}: {}", said(&output));
        output.stdout
    };
    let all = replay("--time 0..");
    for (range, old) in
        [("1ms..", "--from-time 1ms"), ("..2ms", "--to-time 2ms"), ("1ms+1ms", "--from-time 1ms --to-time 2ms")]
    {
        assert_eq!(replay(&format!("--time {range}")), replay(old), "{range}");
    }
    assert!(replay("--time ..1ms").len() < all.len());
    assert_eq!(run(folder.path(), "heph replay --to - --time 1.. --from-time 1 relay.heph").status.code(), Some(2));
}
