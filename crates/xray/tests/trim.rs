//! Parts of traces: the kept records mean what they meant in the source, as a separate slow decoder reads both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{Kind, NameMatch, Plan, Selection, Settings, TargetOptions, TimeBound};
use anytrace_xray::Xray;

mod common;
use common::made::{Content, basic, fdr};
use common::slow::{Entry, What, decode, meanings};
use common::{convert, no_errors, sample, target, trim};

/// Every version of both binary forms in both orders, the same as YAML, and real traces.
fn sources() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for big in [false, true] {
        for version in 1..=5 {
            let made = fdr(version, big, Content::Rich);
            all.push((format!("fdr {version} big {big}"), made.bytes));
        }
        for version in 1..=3 {
            all.push((format!("basic {version} big {big}"), basic(version, big, Content::Rich).bytes));
        }
    }
    for name in ["fib12-thr5", "customs-tinybuf", "ring", "tail", "longrun", "be-v1", "v2", "v4", "basic-exc"] {
        all.push((name.to_owned(), sample(&format!("{name}.xray"))));
    }
    let yaml = convert(&all[4].1, target(Some("yaml"), None, None));
    all.push(("yaml".to_owned(), yaml));
    all
}

fn kept(bytes: &[u8], wanted: impl Fn(&Entry) -> bool) -> Vec<What> {
    decode(bytes).entries.into_iter().filter(wanted).map(|entry| entry.what).collect()
}

#[track_caller]
fn assert_part(name: &str, bytes: &[u8], selection: Selection, wanted: impl Fn(&Entry) -> bool) {
    let what = format!("{name}: {selection:?}");
    let part = trim(bytes, selection);
    no_errors(&part, &what);
    assert_eq!(meanings(&part), kept(bytes, wanted), "{what}");
}

fn by_name(wanted: &'static str) -> Selection {
    let name: NameMatch = Box::new(move |found| found == wanted.as_bytes());
    Selection { name: Some(name), ..Selection::default() }
}

#[test]
fn the_slow_decoder_and_the_yaml_agree_on_every_source() {
    for (name, bytes) in sources() {
        let yaml = convert(&bytes, target(Some("yaml"), None, None));
        assert_eq!(meanings(&yaml), meanings(&bytes), "{name}");
        assert_eq!(examine(&Xray, &bytes).info.0.records, decode(&bytes).records.len() as u64, "{name}");
    }
}

#[test]
fn a_range_of_records_keeps_their_meaning() {
    for (name, bytes) in sources() {
        let records = (decode(&bytes).records.len() as u64).min(70);
        for from in 0..records {
            for length in [1, 3, 11] {
                let range = from..from + length;
                let selection = Selection { records: Some(range.clone()), ..Selection::default() };
                assert_part(&name, &bytes, selection, |entry| range.contains(&entry.seq));
            }
        }
    }
}

#[test]
fn a_thread_keeps_its_meaning() {
    for (name, bytes) in sources() {
        let mut threads: Vec<u32> = meanings(&bytes).iter().map(|what| what.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        for &thread in &threads {
            let selection = Selection { threads: vec![u64::from(thread)], ..Selection::default() };
            assert_part(&name, &bytes, selection, |entry| entry.what.thread == thread);
        }
        let two: Vec<u64> = threads.iter().take(2).map(|&thread| u64::from(thread)).collect();
        let selection = Selection { threads: two.clone(), ..Selection::default() };
        assert_part(&name, &bytes, selection, |entry| two.contains(&u64::from(entry.what.thread)));
    }
}

#[test]
fn a_negative_thread_is_selected_by_its_signed_number_too() {
    let made = fdr(5, false, Content::Rich);
    let thread = (-5_i64).cast_unsigned();
    let selection = Selection { threads: vec![thread], ..Selection::default() };
    assert_part("signed", &made.bytes, selection, |entry| entry.what.thread == (-5_i32).cast_unsigned());
}

#[test]
fn a_range_of_times_keeps_their_meaning() {
    for (name, bytes) in sources() {
        let mut times: Vec<u64> = meanings(&bytes).iter().map(|what| what.tsc).collect();
        times.sort_unstable();
        times.dedup();
        let step = times.len().div_ceil(12);
        for &from in times.iter().step_by(step) {
            for &to in times.iter().rev().step_by(step) {
                let time = Some((TimeBound::Native(from), TimeBound::Native(to)));
                let selection = Selection { time, ..Selection::default() };
                assert_part(&name, &bytes, selection, |entry| (from..to).contains(&entry.what.tsc));
            }
            let open = Some((TimeBound::Open, TimeBound::Native(from)));
            let selection = Selection { time: open, ..Selection::default() };
            assert_part(&name, &bytes, selection, |entry| entry.what.tsc < from);
            let open = Some((TimeBound::Native(from), TimeBound::Open));
            let selection = Selection { time: open, ..Selection::default() };
            assert_part(&name, &bytes, selection, |entry| entry.what.tsc >= from);
        }
    }
}

#[test]
fn a_name_keeps_functions_and_their_arguments_and_no_events() {
    for (name, bytes) in sources() {
        for (wanted, id) in [("1", 1), ("#3", 3), ("268435455", 0x0fff_ffff), ("#99", 99)] {
            assert_part(&name, &bytes, by_name(wanted), |entry| {
                entry.what.id == id && !entry.what.kind.ends_with("-event")
            });
        }
    }
}

#[test]
fn buffers_keep_their_meaning() {
    for (name, bytes) in sources().into_iter().filter(|(name, _)| !name.starts_with("basic") && name != "yaml") {
        let last = decode(&bytes).entries.last().unwrap().buffer;
        for from in 0..=last {
            let selection =
                Selection { own: Settings::default().with("buffers", from..from + 2), ..Selection::default() };
            assert_part(&name, &bytes, selection, |entry| (from..from + 2).contains(&entry.buffer));
        }
    }
}

#[test]
fn several_conditions_must_all_hold() {
    for version in 1..=5 {
        let made = fdr(version, version % 2 == 0, Content::Rich);
        let time = Some((TimeBound::Native(1_000_010), TimeBound::Open));
        let selection = Selection {
            time,
            threads: vec![11],
            own: Settings::default().with("buffers", 0..2),
            records: Some(0..22),
            ..by_name("3")
        };
        assert_part("all", &made.bytes, selection, |entry| {
            let what = &entry.what;
            what.tsc >= 1_000_010 && what.thread == 11 && entry.buffer < 2 && entry.seq < 22 && what.id == 3
        });
    }
}

#[test]
fn a_part_in_another_version_and_order_keeps_its_meaning() {
    for version in 3..=5 {
        let made = fdr(version, false, Content::Rich);
        for other in 3..=5 {
            let selection = Selection { threads: vec![11], ..Selection::default() };
            let to = target(None, Some(other), Some(anytrace_core::Endian::Big));
            let (part, _, _) = rewrite(&Xray, &made.bytes, &Plan::Trim(selection, to)).unwrap();
            no_errors(&part, "part");
            assert_eq!(part[..4], [0, u8::try_from(other).unwrap(), 0, 1]);
            assert_eq!(meanings(&part), kept(&made.bytes, |entry| entry.what.thread == 11), "{version} to {other}");
        }
    }
}

#[test]
fn a_part_of_a_part_is_the_part_of_both() {
    let bytes = sample("fib12-thr5.xray");
    let time =
        |from, to| Selection { time: Some((TimeBound::Native(from), TimeBound::Native(to))), ..Selection::default() };
    let all = meanings(&bytes);
    let at = |n: usize| all[n].tsc;
    let (a, b, c, d) = (at(all.len() / 5), at(all.len() / 3), at(all.len() / 2), at(all.len() - 9));
    assert_eq!(meanings(&trim(&trim(&bytes, time(a, c)), time(b, d))), meanings(&trim(&bytes, time(b, c))));
}

#[test]
fn nothing_selected_leaves_a_valid_trace_without_records() {
    for (name, bytes) in sources() {
        let part = trim(&bytes, Selection { threads: vec![4_000_000_000], ..Selection::default() });
        no_errors(&part, &name);
        assert!(meanings(&part).is_empty(), "{name}");
        let mut info = examine(&Xray, &part).info.0;
        info.details.retain(|(key, _)| *key == "type");
        assert_eq!(info.details, [("type", examine(&Xray, &bytes).info.0.details[0].1.clone())], "{name}");
    }
}

#[test]
fn a_trimmed_trace_reports_how_much_was_written() {
    for (name, bytes) in sources() {
        let selection = Selection { records: Some(0..9), ..Selection::default() };
        let (part, outcome, _) = rewrite(&Xray, &bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap();
        assert_eq!(outcome.records_written, decode(&part).records.len() as u64, "{name}");
        assert_eq!(outcome.records_read, decode(&bytes).records.len() as u64, "{name}");
    }
}

#[test]
fn conditions_a_form_does_not_have_are_refused_by_name() {
    let refused = |bytes: &[u8], selection| {
        let error = rewrite(&Xray, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        error.to_string()
    };
    let made = basic(3, false, Content::Rich).bytes;
    let text = refused(&made, Selection { own: Settings::default().with("buffers", 0..1), ..Selection::default() });
    assert!(text.contains("--buffers"), "{text}");
    let made = fdr(5, false, Content::Rich).bytes;
    let text = refused(&made, Selection { own: Settings::default().with("frames", 0..1), ..Selection::default() });
    assert!(text.contains("--frames"), "{text}");
}
