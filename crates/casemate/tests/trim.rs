//! Parts of traces: what is selected, and that the preamble rebuilds the state of a slow, obvious model at that record.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

// Repaired and trimmed traces keep the violations of the traced program.
use anytrace_casemate::GrammarOnly as Casemate;
use anytrace_casemate::Style;
use anytrace_core::testing::{examine, rewrite, shared_corpus};
use anytrace_core::{Kind, Plan, Selection, Settings, TargetOptions};

const MARK: &str = "anytrace-preamble:1";

/// Words of one record; parentheses and quotes count as blanks, and keys before values are skipped.
fn words(record: &str) -> Vec<String> {
    let keys =
        ["id", "tid", "address", "size", "value", "mem-order", "kind", "location", "sysreg", "src", "addr", "level"];
    let blank = |c: char| c.is_whitespace() || "()\"".contains(c);
    let words = record.split(blank).filter(|word| !word.is_empty()).map(str::to_lowercase);
    words.filter(|word| !keys.contains(&word.as_str())).collect()
}

/// Records of a log that has neither comments nor damage.
fn records(log: &str) -> Vec<String> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in log.char_indices() {
        if c == '(' {
            if depth == 0 {
                start = at;
            }
            depth += 1;
        } else if c == ')' {
            depth -= 1;
            if depth == 0 {
                found.push(log[start..=at].to_owned());
            }
        }
    }
    found
}

/// Memory by word, registers by thread, locks and hints, processed word by word.
#[derive(Debug, Default, PartialEq)]
struct Model {
    memory: BTreeMap<u64, u64>,
    registers: BTreeMap<(u64, String), u64>,
    held: BTreeMap<u64, (u64, u64)>,
    root_locks: BTreeMap<u64, u64>,
    owners: BTreeMap<u64, u64>,
}

impl Model {
    fn step(&mut self, record: &str) {
        let words = words(record);
        let number = |at: usize| u64::from_str_radix(words[at].trim_start_matches("0x"), 16).unwrap();
        let thread: u64 = words[2].parse().unwrap();
        match words[0].as_str() {
            "mem-write" => {
                if let Some(word) = self.memory.get_mut(&(number(4) & !7)) {
                    *word = number(5);
                }
            }
            "mem-init" => (number(3)..number(3) + number(4)).step_by(8).for_each(|at| {
                self.memory.entry(at & !7).or_insert(0);
            }),
            "mem-free" => (number(3)..number(3) + number(4)).step_by(8).for_each(|at| {
                self.memory.remove(&(at & !7));
                self.owners.remove(&(at & !7));
            }),
            "mem-set" => (number(3)..number(3) + number(4)).step_by(8).for_each(|at| {
                if let Some(word) = self.memory.get_mut(&(at & !7)) {
                    *word = number(5);
                }
            }),
            "sysreg-write" | "msr" => drop(self.registers.insert((thread, words[3].clone()), number(4))),
            "hint" => match words[3].as_str() {
                "set_root_lock" => drop(self.root_locks.insert(number(4), number(5))),
                "release_table" | "release" => drop(self.root_locks.remove(&number(4))),
                _ => {}
            },
            "lock" | "trylock" => self.held.entry(number(3)).or_insert((thread, 0)).1 += 1,
            "unlock" => {
                if let Some(held) = self.held.get_mut(&number(3)) {
                    held.1 -= 1;
                    if held.1 == 0 {
                        self.held.remove(&number(3));
                    }
                }
            }
            _ => {}
        }
    }
}

fn trim(bytes: &[u8], selection: Selection) -> (String, Vec<String>) {
    let plan = Plan::Trim(selection, TargetOptions::default());
    let (part, outcome, _) = rewrite(&Casemate, bytes, &plan).unwrap();
    (String::from_utf8(part).unwrap(), outcome.notes)
}

fn from_record(from: u64) -> Selection {
    Selection { records: Some(from..u64::MAX), ..Selection::default() }
}

#[test]
fn a_preamble_rebuilds_what_a_slow_model_has() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let verdicts = std::fs::read_to_string(corpus.join("verdicts.tsv")).unwrap();
    let mut compared = 0;
    for row in verdicts.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>()) {
        // The model walks sizes word by word and assumes the verdict.
        if row[4] != "ok" || row[2] != "-" || row[0].starts_with("large") {
            continue;
        }
        let log = std::fs::read_to_string(corpus.join("traces").join(row[0])).unwrap();
        let all = records(&log);
        for from in [1, all.len() / 3, all.len() / 2, all.len() - 1] {
            if from == 0 || from >= all.len() {
                continue;
            }
            let mut expected = Model::default();
            all[..from].iter().for_each(|record| expected.step(record));
            let (part, _) = trim(log.as_bytes(), from_record(from as u64));
            let mut rebuilt = Model::default();
            let part = records(&part);
            let preamble = part.iter().take_while(|record| record.contains(MARK)).count();
            part[..preamble].iter().for_each(|record| rebuilt.step(record));
            assert_eq!(rebuilt, expected, "{} from {from}", row[0]);
            assert_eq!(part.len() - preamble, all.len() - from, "{} from {from}", row[0]);
            assert!(part[preamble..].iter().zip(&all[from..]).all(|(a, b)| a == b), "{} from {from}", row[0]);
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}

#[test]
fn a_part_checks_as_well_as_its_source() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for name in ["c0002.log", "c0006.log", "s0171.log", "b0002.log", "c0015.log"] {
        let bytes = std::fs::read(corpus.join("traces").join(name)).unwrap();
        let source = examine(&Casemate, &bytes);
        for from in [3, 40, 90] {
            let exam = examine(&Casemate, trim(&bytes, from_record(from)).0.as_bytes());
            assert_eq!(exam.info.1, [], "{name} from {from}");
            for diagnostic in &exam.check {
                let is_new = !source.check.iter().any(|d| d.rule == diagnostic.rule);
                assert!(!is_new || diagnostic.code() == "casemate/mixed-spelling", "{name} {from}: {diagnostic}");
            }
        }
    }
}

/// One root with one last-level table, and an entry invalidated but not clean.
const UNCLEAN: &str = "\
(mem-init 0 0 1000 1000)
(mem-init 1 0 2000 1000)
(mem-init 2 0 3000 1000)
(mem-init 3 0 4000 1000)
(hint 4 0 set_root_lock 1000 9000)
(mem-write 5 0 plain 1000 2003)
(mem-write 6 0 plain 2000 3003)
(mem-write 7 0 plain 3000 4003)
(mem-write 8 0 plain 4000 8000403)
(sysreg-write 9 0 vttbr_el2 1000000001000)
(lock 10 0 9000)
(mem-write 11 0 plain 4000 0)
(barrier 12 0 dsb ish)
(tlbi 13 0 ipas2e1is 0)
(barrier 14 0 dsb ish)
(unlock 15 0 9000)
(lock 16 1 9000)
";

#[test]
fn an_entry_that_is_not_clean_is_invalidated_again_under_its_lock() {
    let (part, notes) = trim(UNCLEAN.as_bytes(), from_record(16));
    let lines = part.lines().filter(|line| line.contains(MARK)).map(words);
    let made: Vec<String> = lines.map(|w| format!("{} {}", w[0], w[3..w.len() - 1].join(" "))).collect();
    assert_eq!(
        made[made.len() - 8..],
        [
            "mem-write plain 0x4000 0x8000403",
            "sysreg-write vttbr_el2 0x1000000001000",
            "lock 0x9000",
            "mem-write plain 0x4000 0x0",
            "barrier dsb ish",
            "tlbi ipas2e1is 0x0",
            "barrier dsb ish",
            "unlock 0x9000",
        ]
    );
    assert!(part.contains("(address 0x4000) (value 0x8000403)"), "{part}");
    assert_eq!(notes.len(), 1);
}

#[test]
fn held_locks_are_taken_again_as_often() {
    let (part, _) = trim(b"(lock 0 1 8)\n(trylock 1 1 8)\n(lock 2 0 10)\n(barrier 3 0 isb)\n", from_record(3));
    assert_eq!(
        part,
        format!(
            "(lock (id 0) (tid 1) (address 0x8) (src \"{MARK}\"))\n(trylock (id 1) (tid 1) (address 0x8) (src \"{MARK}\"))\n\
             (lock (id 2) (tid 0) (address 0x10) (src \"{MARK}\"))\n(barrier 3 0 isb)\n"
        )
    );
}

#[test]
fn registers_that_were_switched_off_end_switched_off() {
    let log = b"(mem-init 0 0 1000 1000)\n(sysreg-write 1 2 vttbr_el2 1000)\n(sysreg-write 2 2 hcr_el2 0)\n\
                (sysreg-write 3 2 vttbr_el2 5000)\n(barrier 4 2 isb)\n";
    let (part, _) = trim(log, from_record(4));
    let written: Vec<_> =
        part.lines().filter(|line| line.contains("sysreg")).map(|line| words(line)[3..5].join(" ")).collect();
    assert_eq!(written, ["vttbr_el2 0x1000", "hcr_el2 0x0", "vttbr_el2 0x5000"]);
}

#[test]
fn records_are_selected_by_number_thread_and_name() {
    let log = b"(lock 0 0 8 \"a.c:1\")\n(lock 1 1 10 \"b.c:1\")\n(unlock 2 0 8 \"a.c:2\")\n(unlock 3 1 10 \"b.c:2\")\n";
    let kept = |selection| {
        let (part, notes) = trim(log, selection);
        let kept: Vec<_> =
            part.lines().filter(|line| !line.contains(MARK)).map(|line| words(line)[1].clone()).collect();
        (kept.concat(), notes.len())
    };
    assert_eq!(kept(Selection { records: Some(1..3), ..Selection::default() }), ("12".into(), 1));
    assert_eq!(kept(Selection { threads: vec![1], ..Selection::default() }), ("13".into(), 2));
    let name =
        |text: &'static [u8]| Selection { name: Some(Box::new(move |n| n.starts_with(text))), ..Selection::default() };
    assert_eq!(kept(name(b"unlock")), ("23".into(), 1));
    assert_eq!(kept(name(b"a.c")), ("02".into(), 1));
    assert_eq!(kept(Selection { records: Some(9..10), ..Selection::default() }), (String::new(), 0));
    let frames = Selection { own: Settings::default().with("frames", 0..1), ..Selection::default() };
    let plan = Plan::Trim(frames, TargetOptions::default());
    assert_eq!(rewrite(&Casemate, log, &plan).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn a_part_can_be_written_in_any_form() {
    for style in Style::NAMES {
        let target = TargetOptions { own: Settings::default().with("style", style), ..TargetOptions::default() };
        let plan = Plan::Trim(from_record(16), target);
        let (part, outcome, _) = rewrite(&Casemate, UNCLEAN.as_bytes(), &plan).unwrap();
        let exam = examine(&Casemate, &part);
        assert_eq!((exam.info.0.records, exam.errors().len()), (outcome.records_written, 0));
    }
    let target = TargetOptions { to: Some("jsonl".into()), ..TargetOptions::default() };
    let (lines, outcome, _) = rewrite(&Casemate, UNCLEAN.as_bytes(), &Plan::Trim(from_record(16), target)).unwrap();
    assert_eq!(lines.iter().filter(|b| **b == b'\n').count() as u64, outcome.records_written + 1);
}

#[test]
fn sizes_in_a_trace_cost_neither_time_nor_memory() {
    let log = b"(mem-init 0 0 0 ffffffffffffffff)\n(mem-set 1 0 0 fffffffffffffff8 41)\n(mem-free 2 0 1000 ffffffffffff0000)\n\
                (mem-init 3 0 ffffffffffffffff ffffffffffffffff)\n(mem-write 4 0 page ffffffffffffffff 1)\n(barrier 5 0 isb)\n";
    let (part, _) = trim(log, from_record(5));
    assert!(part.contains("(mem-set (id"), "{part}");
    assert!(part.len() < 100_000);
}
