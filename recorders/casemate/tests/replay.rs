//! Traces replayed by a C program through the library: what each step breaks is what the engine says that it breaks.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod common;
#[allow(unused_imports, unreachable_pub, clippy::panic, reason = "it is the oracle of another package's tests")]
#[path = "../../../crates/casemate/tests/oracle/mod.rs"]
mod oracle;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anytrace_casemate::model::{BbmLevel, Checker, Options, QUIRKS, Quirk, Quirks};
use anytrace_casemate::{Barrier, Operand, Reader, Transition};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Input, OpenOptions, Step};
use common::{PLAIN, SANITIZED, VALGRIND, Variant, run};

/// A step and its thread.
type Steps = Vec<(u32, Transition)>;

/// Fields of `struct casemate_step`: kind, what, address, value, extra.
fn fields(transition: &Transition) -> (u32, u32, u64, u64, u64) {
    let kind = transition.kind() as u32 + 1;
    let (what, address, value, extra) = match *transition {
        Transition::MemWrite { order, address, value } => (order as u32, address, value, 0),
        Transition::MemAtomic { order, address, value, read, .. } => (order as u32, address, value, read),
        Transition::MemRead { address, value } => (0, address, value, 0),
        Transition::MemInit { address, size } | Transition::MemFree { address, size } => (0, address, size, 0),
        Transition::MemSet { address, size, value } => (0, address, size, value),
        Transition::Barrier(Barrier::Isb) => (0, 0, 0, 0),
        Transition::Barrier(Barrier::Dsb(domain)) => (domain as u32 + 1, 0, 0, 0),
        Transition::Tlbi { op, operand } => (op as u32, 0, operand.value().unwrap_or(0), 0),
        Transition::OtherTlbi { .. } => (u32::MAX, 0, 0, 0),
        Transition::SysregWrite { register, value } => (register as u32, 0, value, 0),
        Transition::OtherSysreg { value, .. } => (u32::MAX, 0, value, 0),
        Transition::Hint { hint, location, value } => (hint as u32, location, value, 0),
        Transition::Lock { address } | Transition::Unlock { address } | Transition::Trylock { address } => {
            (0, address, 0, 0)
        }
    };
    (kind, what, address, value, extra)
}

/// A file of steps.
fn encoded(steps: &Steps) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (thread, transition) in steps {
        let (kind, what, address, value, extra) = fields(transition);
        for number in [kind, *thread, what, 0] {
            bytes.extend(number.to_le_bytes());
        }
        for number in [address, value, extra] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

/// What the C program must print.
fn expected(steps: &Steps, options: Options, out: &mut String) {
    let mut checker = Checker::new(options);
    let (mut verdict, mut doubts) = (0, false);
    'steps: for (at, (thread, transition)) in steps.iter().enumerate() {
        // The interface does not name what it does not know: every such register may matter.
        let transition = match transition {
            Transition::OtherSysreg { value, .. } => {
                let name = anytrace_casemate::Name::new(b"unnamed").unwrap();
                Transition::OtherSysreg { name, value: *value }
            }
            other => *other,
        };
        let found = checker.step(*thread, &transition);
        let is_error = found.iter().any(|found| found.is_error());
        let result = match (is_error, found.iter().any(|found| found.breach.is_doubt)) {
            (true, _) if doubts => 2,
            (true, _) => 1,
            (false, is_doubt) => 2 * i32::from(is_doubt),
        };
        if verdict == 0 {
            verdict = result;
            doubts = verdict == 2;
        }
        for found in found {
            let change = found.change.map_or((0, 0, 0), |change| (change.old, change.new, change.deciding));
            let (old, new, bits) = found.stale.map_or(change, |stale| (stale.old, stale.new, 0));
            let (location, has_location) = (found.location.unwrap_or(0), u8::from(found.location.is_some()));
            let code = found.breach.rule.code;
            let (more, message) = (found.more, found.breach.message);
            writeln!(out, "{at} {result} {code} {has_location} {location:x} {more} {old:x} {new:x} {bits:x}|{message}")
                .unwrap();
        }
        if is_error && !options.goes_on {
            // A refused step has the number of the violation; after an unknown one the program sees it at the next.
            if result != 1 && at + 1 < steps.len() {
                writeln!(out, "{} result 3", at + 1).unwrap();
            }
            break 'steps;
        }
    }
    writeln!(out, "verdict {verdict}").unwrap();
}

/// Options as the numbers of `struct casemate_options`: rules, flags, level of FEAT_BBM, rules on and off.
fn numbers(options: Options) -> [u32; 5] {
    let bits = |is_on| {
        let rows = QUIRKS.iter().filter(|row| is_on == options.quirks.has(row.quirk));
        rows.fold(0_u32, |bits, row| bits | 1 << row.quirk as u32)
    };
    let flags = [options.is_racy, options.ignores_uninitialised, options.no_sysreg, options.goes_on];
    let flags = flags.iter().enumerate().fold(0, |flags, (at, is_set)| flags | u32::from(*is_set) << at);
    [0, flags, options.bbm as u32, bits(true), bits(false)]
}

/// The line of a case: options as numbers, and the file of its steps.
fn line(options: Options, kibibytes: u32, path: &Path) -> String {
    let [rules, flags, bbm, on, off] = numbers(options);
    format!("{rules} {flags} {bbm} {on:x} {off:x} {kibibytes} {}\n", path.display())
}

/// Writes the list of cases, and the files of their steps.
fn written(cases: &[(String, Steps, Options)], kibibytes: impl Fn(usize) -> u32, folder: &Path) -> PathBuf {
    let mut list = String::new();
    for (number, (_, steps, options)) in cases.iter().enumerate() {
        let path = folder.join(format!("{number}.steps"));
        std::fs::write(&path, encoded(steps)).unwrap();
        list.push_str(&line(*options, kibibytes(number), &path));
    }
    let cases = folder.join("cases");
    std::fs::write(&cases, list).unwrap();
    cases
}

/// Replays cases, and compares.
fn compare(cases: &[(String, Steps, Options)], variant: &Variant) {
    replay(cases, variant, |_| 32 << 10, |name, shown, text| assert_eq!(shown, text, "{}: {name}", variant.name));
}

/// Replays cases, each with a number of kibibytes, and gives what the program printed and what the engine says.
fn replay(
    cases: &[(String, Steps, Options)],
    variant: &Variant,
    kibibytes: impl Fn(usize) -> u32,
    mut take: impl FnMut(&str, &str, &str),
) {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = Vec::new();
    for (name, steps, options) in cases {
        let mut text = String::new();
        expected(steps, *options, &mut text);
        wanted.push((name, text));
    }
    let cases = written(cases, kibibytes, folder.path());
    let Some(output) = run(folder.path(), "replay", variant, &[cases.to_str().unwrap()]) else { return };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", variant.name);
    let shown = String::from_utf8(output.stdout).unwrap();
    let mut rest = shown.as_str();
    for (name, text) in wanted {
        let end = rest.find("verdict ").and_then(|at| Some(at + rest[at..].find('\n')? + 1)).unwrap();
        take(name, &rest[..end], &text);
        rest = &rest[end..];
    }
    assert_eq!(rest, "");
}

fn read(path: &Path) -> Steps {
    let mut reader =
        Reader::new(Input::from_bytes("trace", std::fs::read(path).unwrap()), &OpenOptions::default()).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = reader.next().unwrap() {
        if let Step::Record(_, record) = step {
            steps.push((record.thread, record.transition));
        }
    }
    steps
}

/// The rule sets, stopping and going on.
fn sets() -> [Options; 4] {
    let goes_on = true;
    [
        Options::COMPAT,
        Options { goes_on, ..Options::COMPAT },
        Options { goes_on, ..Options::STRICT },
        Options { goes_on, bbm: BbmLevel::Two, ..Options::ARCHITECTURE },
    ]
}

#[test]
fn the_samples_of_the_format_have_the_same_verdicts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/casemate/corpus");
    let mut cases = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "log") {
            let name = path.display().to_string();
            cases.extend(sets().map(|options| (name.clone(), read(&path), options)));
        }
    }
    assert!(cases.len() >= 40);
    for variant in [PLAIN, SANITIZED, VALGRIND] {
        compare(&cases, &variant);
    }
}

#[test]
fn generated_traces_have_the_same_verdicts() {
    let steps = |seed| oracle::generate::trace(seed).iter().map(|step| (step.thread, step.action)).collect::<Vec<_>>();
    let cases = |seeds: std::ops::Range<u64>| {
        let cases = seeds.map(|seed| (format!("seed {seed}"), steps(seed), sets()[seed as usize % 4]));
        cases.collect::<Vec<_>>()
    };
    compare(&cases(0..4_000), &PLAIN);
    compare(&cases(4_000..4_600), &SANITIZED);
    compare(&cases(4_600..4_640), &VALGRIND);
}

#[test]
fn the_shared_corpus_has_the_same_verdicts() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let table = std::fs::read_to_string(corpus.join("verdicts.tsv")).unwrap();
    let mut cases = Vec::new();
    for row in table.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>()) {
        let mut options = Options::COMPAT;
        for word in row[2].split(' ') {
            match word {
                "-R" => options.is_racy = true,
                "-I" => options.ignores_uninitialised = true,
                "-S" => options.no_sysreg = true,
                "--strict-id" => options.quirks = options.quirks.with(Quirk::ByIdPromoted, false),
                _ => {}
            }
        }
        let steps = read(&corpus.join("traces").join(row[0]));
        cases.push((row[0].to_owned(), steps.clone(), options));
        cases.push((row[0].to_owned(), steps, Options { goes_on: true, quirks: Quirks::ARCHITECTURE, ..options }));
    }
    assert!(cases.len() > 600);
    for variant in [PLAIN, SANITIZED] {
        compare(&cases, &variant);
    }
}

#[test]
fn without_an_operating_system_traces_have_the_same_verdicts_on_both_machines() {
    let steps = |seed| oracle::generate::trace(seed).iter().map(|step| (step.thread, step.action)).collect::<Vec<_>>();
    let (mut blob, mut wanted) = (Vec::new(), String::new());
    for seed in 0..1_500_u64 {
        let (steps, options) = (steps(seed), sets()[seed as usize % 4]);
        expected(&steps, options, &mut wanted);
        let [rules, flags, bbm, on, off] = numbers(options);
        blob.extend([rules, flags, bbm, on, off, 0, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
        blob.extend((steps.len() as u64).to_le_bytes());
        blob.extend(encoded(&steps));
    }
    for (target, emulator) in common::TARGETS.into_iter().zip([None, Some("qemu-aarch64-static")]) {
        let folder = tempfile::tempdir().unwrap();
        let cases = folder.path().join("cases");
        std::fs::write(&cases, &blob).unwrap();
        let Some(output) = common::run_bare(folder.path(), target, emulator, &cases) else { continue };
        assert!(output.status.success(), "{target}: {:?}", output.status);
        let shown = String::from_utf8(output.stdout).unwrap();
        let differs = shown.lines().zip(wanted.lines()).find(|(shown, wanted)| shown != wanted);
        assert_eq!((differs, shown.len()), (None, wanted.len()), "{target}");
    }
}

#[test]
fn no_step_needs_more_stack_than_the_header_says() {
    let steps = |seed| oracle::generate::trace(seed).iter().map(|step| (step.thread, step.action)).collect::<Vec<_>>();
    let set = |seed| Options { goes_on: true, ..sets()[seed as usize % 4] };
    let cases: Vec<_> = (0..2_000).map(|seed| (seed.to_string(), steps(seed), set(seed))).collect();
    let folder = tempfile::tempdir().unwrap();
    let list = written(&cases, |_| 32 << 10, folder.path());
    let Some(output) = run(folder.path(), "replay", &PLAIN, &["-s", list.to_str().unwrap()]) else { return };
    let bytes: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert!((1_000..=8_192).contains(&bytes), "{bytes}");
}

#[test]
fn with_little_memory_a_trace_has_the_same_beginning_and_then_no_verdict() {
    let steps = |seed| oracle::generate::trace(seed).iter().map(|step| (step.thread, step.action)).collect::<Vec<_>>();
    let cases: Vec<_> = (0..600).map(|seed| (seed.to_string(), steps(seed), sets()[seed as usize % 4])).collect();
    for variant in [PLAIN, SANITIZED] {
        let (mut short, mut complete) = (0, 0);
        replay(
            &cases,
            &variant,
            |number| 24 + number as u32 * 7 % 200,
            |name, shown, text| {
                if shown == text {
                    complete += 1;
                    return;
                }
                short += 1;
                let lines: Vec<_> = shown.lines().collect();
                let [known @ .., last, verdict] = lines.as_slice() else { panic!("{name}: {shown}") };
                assert!(last.ends_with(" result 2"), "{name}: {shown}");
                assert!(text.lines().zip(known).all(|(a, b)| a == *b) && text.lines().count() > known.len(), "{name}");
                let is_known = known.iter().any(|line| line.split(' ').nth(1) == Some("1"));
                assert_eq!(*verdict, if is_known { "verdict 1" } else { "verdict 2" }, "{name}: {shown}");
            },
        );
        assert!(short > 100 && complete > 100, "{short} {complete}");
    }
}

#[test]
fn an_operand_of_the_older_form_is_that_of_the_register() {
    let operand = Operand::AddressLevel { address: 0x123, level: 3 };
    let (kind, what, _, value, _) = fields(&Transition::Tlbi { op: anytrace_casemate::TlbiOp::Vae2is, operand });
    assert_eq!((kind, what, value), (7, 6 * 6 + 1, 0x3000_0000_0123));
}
