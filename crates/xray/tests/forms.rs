//! Conversions between forms, versions and byte orders; and trimming.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::path::Path;

use anytrace_core::testing::{examine, rewrite, shared_corpus};
use anytrace_core::{Endian, Kind, Plan, Selection, Settings, TargetOptions, TimeBound};
use anytrace_xray::Xray;

fn to(form: &str) -> TargetOptions {
    TargetOptions { to: Some(form.to_owned()), ..TargetOptions::default() }
}

fn version(version: u32) -> TargetOptions {
    TargetOptions { version: Some(version), ..TargetOptions::default() }
}

fn endian(endian: Endian) -> TargetOptions {
    TargetOptions { endian: Some(endian), ..TargetOptions::default() }
}

fn convert(bytes: &[u8], target: TargetOptions) -> Vec<u8> {
    rewrite(&Xray, bytes, &Plan::Convert(target)).unwrap().0
}

/// The entries of a trace, as lines of YAML.
fn entries(bytes: &[u8]) -> Vec<String> {
    let yaml = String::from_utf8(convert(bytes, to("yaml"))).unwrap();
    yaml.lines().filter(|line| line.starts_with("  - ")).map(str::to_owned).collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// A sample of this crate, or of the shared corpus if that is available.
fn sample(name: &str) -> Option<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{name}.xray"));
    if own.exists() {
        return Some(std::fs::read(own).unwrap());
    }
    let shared = shared_corpus("xray")?;
    let path = ["synth", "real", "bad"].map(|folder| shared.join(folder).join(format!("{name}.xray")));
    Some(std::fs::read(path.iter().find(|path| path.exists()).unwrap()).unwrap())
}

fn no_errors(bytes: &[u8], what: &str) {
    let exam = examine(&Xray, bytes);
    assert!(exam.errors().is_empty(), "{what}: {:#?}", exam.errors());
}

/// Removes the peer's two faults from one of its lines: a stale type, and the function of an event.
fn without_faults(line: &str) -> String {
    let field = |name: &str| {
        let rest = line.split_once(&format!("{name}: ")).unwrap().1;
        rest.split([',', ' ']).next().unwrap().to_owned()
    };
    let kind = field("kind");
    let is_event = kind.ends_with("-event");
    let mut line = line.to_owned();
    if kind != "typed-event" {
        line = line.replacen(&format!("type: {}", field("type")), "type: 0", 1);
    }
    if is_event {
        line = line.replacen(&format!("func-id: {}", field("func-id")), "func-id: 0", 1);
        line = line.replacen(&format!("function: {}", field("function")), "function: '0'", 1);
    }
    line
}

/// The peer's YAML of a trace; that of a compressed copy is the text itself.
fn yaml_beside(path: &Path) -> Option<Vec<u8>> {
    let bytes = ["yaml", "yaml.gz"].iter().find_map(|e| std::fs::read(path.with_extension(e)).ok())?;
    Some(convert(&bytes, TargetOptions::default()))
}

#[test]
fn yaml_is_the_peers_but_for_its_faults() {
    let Some(corpus) = shared_corpus("xray") else { return };
    let mut equal = 0;
    for folder in ["real", "synth"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_none_or(|e| e != "xray") {
                continue;
            }
            let Some(theirs) = yaml_beside(&path) else { continue };
            let theirs = String::from_utf8(theirs).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let ours = String::from_utf8(convert(&bytes, to("yaml"))).unwrap();
            if ours == theirs {
                equal += 1;
                continue;
            }
            let lines =
                |text: &str| sorted(text.lines().filter(|l| l.starts_with("  - ")).map(without_faults).collect());
            let (ours, mut theirs): (Vec<String>, Vec<String>) = (lines(&ours), lines(&theirs));
            if name == "v5-gap-fake-extent" {
                // The peer reads eight bytes after a false introducer as a function record.
                theirs.retain(|line| !line.contains("func-id: 9,"));
            }
            for (ours, theirs) in ours.iter().zip(&theirs) {
                // Custom events of versions 1 to 3 have no processor; the peer reads reserved bytes.
                let is_old = ["v1", "v2"].contains(&name.as_str()) && ours.contains("custom-event");
                // The peer stops at the first byte that is not UTF-8.
                let is_garbage = ours.contains("data: !!binary") || ours.contains("\\x7F");
                if !is_old && !is_garbage {
                    assert_eq!(ours, theirs, "{name}");
                }
            }
            assert_eq!(ours.len(), theirs.len(), "{name}");
        }
    }
    println!("{equal} byte for byte");
    assert!(equal >= 25);
}

#[test]
fn the_peers_own_yaml_is_read_back() {
    let Some(corpus) = shared_corpus("xray") else { return };
    for name in ["real/fib12-tsc", "real/args", "real/basic-args", "real/tail", "synth/v5"] {
        let yaml = yaml_beside(&corpus.join(format!("{name}.xray"))).unwrap();
        let trace = std::fs::read(corpus.join(format!("{name}.xray"))).unwrap();
        no_errors(&yaml, name);
        assert_eq!(convert(&yaml, TargetOptions::default()), yaml, "{name}: copied");
        let form = if name.contains("basic") { "basic" } else { "fdr" };
        let back = convert(&yaml, to(form));
        no_errors(&back, name);
        assert_eq!(sorted(entries(&back)), sorted(entries(&trace)), "{name}");
    }
}

#[test]
fn yaml_of_any_style_is_read() {
    let text = "# made by hand\nheader:\n  version: 1\n  type: 0\n  constant-tsc: True\n  nonstop-tsc: false\n  cycle-frequency: 0x10\nrecords:\n\
                - {kind: function-enter, tsc: 5,thread: 7,\n   func-id: 3, cpu: 1, function: \"ma\\x69n\" , type: 0}\n\
                - kind: function-exit\n  tsc: 9\n  thread: 7\n  func-id: 3\n  cpu: 1\n...\n";
    no_errors(text.as_bytes(), "styles");
    let found = entries(&convert(text.as_bytes(), to("basic")));
    assert_eq!(found.len(), 2);
    assert!(
        found[0].contains("func-id: 3, function: '3', cpu: 1, thread: 7, kind: function-enter, tsc: 5,"),
        "{}",
        found[0]
    );
    assert_eq!(convert(text.as_bytes(), TargetOptions::default()), text.as_bytes());
}

#[test]
fn byte_order_flips_there_and_back() {
    for name in [
        "v1",
        "v2",
        "v4",
        "v5",
        "basic-v1",
        "basic-v3",
        "fib12-thr5",
        "basic-dso",
        "v1-rubbish-after-end",
        "v5-gap-zero",
    ] {
        let Some(little) = sample(name) else { continue };
        let big = convert(&little, endian(Endian::Big));
        assert_ne!(big, little);
        no_errors(&big, name);
        assert_eq!(entries(&big), entries(&little), "{name}");
        let info = examine(&Xray, &big).info.0;
        assert_eq!(info.byte_order, Some(Endian::Big));
        assert_eq!(convert(&big, endian(Endian::Little)), little, "{name}");
    }
}

#[test]
fn llvms_own_big_endian_form_is_recognized() {
    let Some(little) = sample("fib12-thr5") else { return };
    let document = convert(&little, endian(Endian::Big));
    // What LLVM's writer would produce: big-endian words, with the bit positions of a little-endian host.
    let mut llvm = document.clone();
    llvm[4..8].copy_from_slice(&3_u32.to_be_bytes());
    let mut at = 32;
    while at < llvm.len() {
        if llvm[at] & 0x80 != 0 {
            llvm[at] = (llvm[at] & 0x7f) << 1 | 1;
            at += 16;
        } else {
            let word = u32::from_be_bytes(llvm[at..at + 4].try_into().unwrap());
            llvm[at..at + 4].copy_from_slice(&((word & 0x0fff_ffff) << 4 | (word >> 28) << 1).to_be_bytes());
            at += 8;
        }
    }
    no_errors(&llvm, "llvm big");
    assert_eq!(entries(&llvm), entries(&little));
    assert_eq!(examine(&Xray, &llvm).info.0.dialect.as_deref(), Some("llvm-big-endian"));
    assert_eq!(convert(&llvm, TargetOptions::default()), llvm);
}

#[test]
fn versions_go_up_and_come_down() {
    let Some(v5) = sample("v5") else { return };
    for step in [4, 3] {
        let down = convert(&v5, version(step));
        no_errors(&down, "down");
        assert_eq!(entries(&down), entries(&v5), "version {step}");
        assert_eq!(entries(&convert(&down, version(5))), entries(&v5), "version {step} and up");
    }
    for step in [1, 2] {
        let error = rewrite(&Xray, &v5, &Plan::Convert(version(step))).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().starts_with("record "), "{error}");
    }
    for name in ["v1", "v2", "be-v1", "be-v2", "v1-rubbish-after-end", "llvmw-v1"] {
        let Some(old) = sample(name) else { continue };
        for step in 3..=5 {
            let new = convert(&old, version(step));
            no_errors(&new, name);
            let without_process = |lines: Vec<String>| -> Vec<String> {
                lines
                    .into_iter()
                    .map(|l| l.split(", ").filter(|f| !f.starts_with("process")).collect::<Vec<_>>().join(", "))
                    .collect()
            };
            assert_eq!(without_process(entries(&new)), without_process(entries(&old)), "{name} to {step}");
        }
    }
    let v1 = sample("v1").unwrap();
    let back = convert(&convert(&v1, version(2)), version(1));
    no_errors(&back, "2 to 1");
    assert_eq!(entries(&back), entries(&v1));
}

#[test]
fn basic_takes_functions_and_refuses_events() {
    for name in ["args", "tail", "exc", "threads4", "dso"] {
        let Some(fdr) = sample(name) else { continue };
        let basic = convert(&fdr, to("basic"));
        no_errors(&basic, name);
        assert_eq!(entries(&basic), entries(&fdr), "{name}");
        let again = convert(&basic, to("fdr"));
        no_errors(&again, name);
        assert_eq!(sorted(entries(&again)), sorted(entries(&fdr)), "{name}");
    }
    let error = rewrite(&Xray, &sample("customs").unwrap(), &Plan::Convert(to("basic"))).unwrap_err();
    assert!(error.to_string().contains("custom-event"), "{error}");
    let error =
        rewrite(&Xray, &sample("tail").unwrap(), &Plan::Convert(TargetOptions { version: Some(1), ..to("basic") }))
            .unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
}

fn trim(bytes: &[u8], selection: Selection) -> Vec<u8> {
    rewrite(&Xray, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap().0
}

#[test]
fn trimmed_by_thread_only_that_thread_is_left() {
    for name in ["threads4", "threads3-smallbuf", "v5", "v1", "v2", "basic-threads"] {
        let Some(bytes) = sample(name) else { continue };
        for (thread, _) in &examine(&Xray, &bytes).info.0.threads {
            let number: u64 = thread.parse().unwrap();
            let part = trim(&bytes, Selection { threads: vec![number], ..Selection::default() });
            no_errors(&part, name);
            let expected: Vec<_> =
                entries(&bytes).into_iter().filter(|l| l.contains(&format!("thread: {thread},"))).collect();
            assert_eq!(entries(&part), expected, "{name} {thread}");
            assert_eq!(examine(&Xray, &part).info.0.threads.len(), 1);
        }
    }
}

fn tsc(line: &str) -> u64 {
    line.split_once("tsc: ").unwrap().1.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn records_trimmed_by_time_keep_their_times() {
    for name in
        ["fib12-tsc", "threads3-smallbuf", "v5", "v1", "v4", "longrun", "be-v5", "basic-args", "ring", "customs"]
    {
        let Some(bytes) = sample(name) else { continue };
        let all = entries(&bytes);
        let mut times: Vec<u64> = all.iter().map(|l| tsc(l)).collect();
        times.sort_unstable();
        let (from, to) = (times[times.len() / 4], times[times.len() * 3 / 4]);
        let time = Some((TimeBound::Native(from), TimeBound::Native(to)));
        let part = trim(&bytes, Selection { time, ..Selection::default() });
        no_errors(&part, name);
        let expected: Vec<_> = all.into_iter().filter(|l| (from..to).contains(&tsc(l))).collect();
        assert_eq!(entries(&part), expected, "{name}");
    }
}

#[test]
fn trimmed_by_name_arguments_follow_their_function() {
    for name in ["args", "v5", "basic-args", "v2"] {
        let Some(bytes) = sample(name) else { continue };
        for wanted in ["3", "#3"] {
            let name_match: anytrace_core::NameMatch = Box::new(move |found| found == wanted.as_bytes());
            let part = trim(&bytes, Selection { name: Some(name_match), ..Selection::default() });
            no_errors(&part, name);
            let is_wanted = |l: &String| l.contains("func-id: 3,") && !l.contains("-event");
            let expected: Vec<_> = entries(&bytes).into_iter().filter(is_wanted).collect();
            assert_eq!(entries(&part), expected, "{name}");
        }
    }
}

#[test]
fn trimmed_by_records_any_range_is_valid() {
    for name in ["v5", "v1", "v2", "be-v5", "threads3-smallbuf", "basic-args", "customs"] {
        let Some(bytes) = sample(name) else { continue };
        let records = examine(&Xray, &bytes).info.0.records.min(140);
        for from in (0..records).step_by(3) {
            for length in [1, 2, 5, 17, 60] {
                let part = trim(&bytes, Selection { records: Some(from..from + length), ..Selection::default() });
                no_errors(&part, &format!("{name} {from}+{length}"));
                let all = entries(&bytes);
                assert!(
                    entries(&part).iter().all(|line| all.contains(line) || line.contains("enter-arg")),
                    "{name} {from}+{length}"
                );
            }
        }
        let complete = trim(&bytes, Selection { records: Some(0..u64::MAX), ..Selection::default() });
        assert_eq!(complete, bytes, "{name}: a range of all records");
    }
}

#[test]
fn trimmed_by_buffers_the_buffers_are_copied() {
    let Some(bytes) = sample("threads3-smallbuf") else { return };
    let part = trim(&bytes, Selection { own: Settings::default().with("buffers", 2..5), ..Selection::default() });
    no_errors(&part, "buffers");
    let info = examine(&Xray, &part).info.0;
    assert!(info.details.contains(&("buffers", 3.into())), "{:?}", info.details);
    let at = bytes.windows(part.len() - 32).position(|window| window == &part[32..]);
    assert!(at.is_some(), "the buffers are not those of the source");
    let error = rewrite(
        &Xray,
        &sample("basic-args").unwrap(),
        &Plan::Trim(
            Selection { own: Settings::default().with("buffers", 0..1), ..Selection::default() },
            TargetOptions::default(),
        ),
    );
    assert_eq!(error.unwrap_err().kind(), Kind::Usage);
}

#[test]
fn relative_times_count_from_the_earliest() {
    let Some(bytes) = sample("fib10-emul") else { return };
    let first = examine(&Xray, &bytes).info.0.time.unwrap().start;
    let time = Some((TimeBound::Nanoseconds(0), TimeBound::Nanoseconds(100_000)));
    let part = entries(&trim(&bytes, Selection { time, ..Selection::default() }));
    let expected: Vec<_> = entries(&bytes).into_iter().filter(|l| tsc(l) < first + 100_000).collect();
    assert_eq!(part, expected);
    let error = rewrite(
        &Xray,
        &sample("v5-freq-zero").unwrap(),
        &Plan::Trim(Selection { time, ..Selection::default() }, TargetOptions::default()),
    );
    assert_eq!(error.unwrap_err().kind(), Kind::Usage);
}

#[test]
fn jsonl_is_one_of_the_targets_and_equals_the_dump() {
    for name in ["v5", "basic-args"] {
        let Some(bytes) = sample(name) else { continue };
        let lines = convert(&bytes, to("jsonl"));
        let records = examine(&Xray, &bytes).info.0.records;
        let count = lines.iter().filter(|&&b| b == b'\n').count() as u64;
        assert_eq!(count, records + 1, "{name}: a header line and a line a record");
    }
}
