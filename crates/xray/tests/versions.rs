//! Every version to every version, every byte order to the other, every form to the others: equal, or rejected with a
//! message.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{Endian, Kind, Plan, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::{Content, Made, basic, fdr};
use common::slow::{What, by_thread, meanings};
use common::{convert, no_errors, sample, target, try_convert};

fn version(version: u32) -> TargetOptions {
    target(None, Some(version), None)
}

fn without_process(mut all: Vec<What>) -> Vec<What> {
    all.iter_mut().for_each(|what| what.process = 0);
    all
}

#[track_caller]
fn refusal(bytes: &[u8], to: TargetOptions) -> String {
    let error = try_convert(bytes, to).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    error.to_string()
}

#[test]
fn fdr_of_any_version_becomes_any_version_that_holds_it() {
    for from in 1..=5_u16 {
        for to in 1..=5_u32 {
            for content in [Content::Rich, Content::Plain] {
                let source = fdr(from, false, content).bytes;
                let what = format!("{from} to {to}, {content:?}");
                if from >= 3 && to < 3 && content == Content::Rich {
                    let text = refusal(&source, version(to));
                    assert_eq!(text, format!("record 3 (pid): version {to} has no process ids, found 900 (thread 11)"));
                    continue;
                }
                let made = convert(&source, version(to));
                no_errors(&made, &what);
                assert_eq!(u32::from(made[0]), to, "{what}");
                let (mut found, mut expected) = (meanings(&made), meanings(&source));
                if to < 3 || from < 3 {
                    // Versions 1 and 2 have no process ids: version 1 has none, and version 2 uses the thread id.
                    (found, expected) = (without_process(found), without_process(expected));
                }
                assert_eq!(found, expected, "{what}");
                if u32::from(from) == to {
                    assert_eq!(made, source, "{what}");
                }
            }
        }
    }
}

#[test]
fn version_2_gives_its_threads_as_processes_to_later_versions() {
    let made = convert(&fdr(2, false, Content::Plain).bytes, version(4));
    assert!(meanings(&made).iter().all(|what| what.process == what.thread));
    let made = convert(&fdr(1, false, Content::Plain).bytes, version(4));
    assert!(meanings(&made).iter().all(|what| what.process == 0));
}

#[test]
fn a_process_equal_to_the_thread_fits_version_2() {
    let source = Made::header(5, 1, 4096).buffer(7, Some(7), 1, 100, Made::pair);
    let made = convert(&source.bytes, version(2));
    no_errors(&made, "to 2");
    assert_eq!(meanings(&made), meanings(&source.bytes));
    assert!(refusal(&source.bytes, version(1)).contains("(pid): version 1 has no process ids, found 7"));
}

#[test]
fn typed_events_are_refused_below_version_3() {
    let source = Made::header(5, 1, 4096).buffer(7, None, 1, 100, |made| made.function(0, 1, 1).typed(b"abc"));
    for to in 1..=2 {
        assert_eq!(
            refusal(&source.bytes, version(to)),
            format!("record 5 (typed-event): version {to} has no typed events")
        );
    }
}

#[test]
fn a_custom_event_keeps_the_processor_that_only_version_4_can_give_it() {
    let body = |made: Made| made.function(0, 1, 5).custom_at(0, 300, 8, b"there").function(1, 1, 5);
    let source = Made::header(4, 1, 4096).buffer(7, None, 1, 100, body).bytes;
    for to in [1, 2, 3, 5] {
        let made = convert(&source, version(to));
        no_errors(&made, "to");
        assert_eq!(without_process(meanings(&made)), meanings(&source), "to {to}");
    }
}

#[test]
fn records_that_fit_no_version_1_buffer_are_refused() {
    let source = Made::header(5, 1, 256).buffer(7, None, 1, 100, |made| made.custom_at(1, 1, 1, &[7; 300])).bytes;
    let text = refusal(&source, version(1));
    assert!(text.starts_with("record 4: 316 bytes do not fit in a version 1 buffer of 256 bytes"), "{text}");
}

#[test]
fn a_long_buffer_is_split_for_version_1() {
    let body = |made: Made| (0..100).fold(made, |made, n| made.function(n % 2, 1 + n / 2, 7));
    let source = Made::header(5, 1, 512).buffer(7, None, 1, 100, body).bytes;
    let (made, outcome, _) = rewrite(&Xray, &source, &Plan::Convert(version(1))).unwrap();
    no_errors(&made, "split");
    assert_eq!(meanings(&made), meanings(&source));
    assert!(outcome.notes.iter().any(|note| note.contains("buffers were split")), "{:?}", outcome.notes);
}

#[test]
fn versions_there_are_not_are_refused() {
    for (source, to) in [(fdr(5, false, Content::Plain), 6), (basic(3, false, Content::Plain), 4), (v5(), 0)] {
        let error = try_convert(&source.bytes, version(to)).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().starts_with(&format!("--version {to}: expected 1 to")), "{error}");
    }
}

fn v5() -> Made {
    common::made::v5()
}

#[test]
fn basic_of_any_version_becomes_any_version_that_holds_it() {
    for from in 1..=3_u16 {
        for to in 1..=3_u32 {
            for content in [Content::Rich, Content::Plain] {
                let source = basic(from, false, content).bytes;
                let what = format!("{from} to {to}, {content:?}");
                if content == Content::Rich && u32::from(from) > to {
                    let text = refusal(&source, version(to));
                    let expected = if from == 3 {
                        format!(
                            "record 0 (function-enter-arg), field process: version {to} has no process ids, found 60"
                        )
                    } else {
                        "record 6 (function-tail-exit), field kind: version 1 has no tail exits".to_owned()
                    };
                    assert_eq!(text, expected, "{what}");
                    continue;
                }
                let made = convert(&source, version(to));
                no_errors(&made, &what);
                assert_eq!(meanings(&made), meanings(&source), "{what}");
                assert_eq!(u32::from(made[0]), to);
            }
        }
    }
}

#[test]
fn the_other_byte_order_equals_the_output_of_a_writer_in_that_order() {
    for (little, big) in (1..=5)
        .map(|version| (fdr(version, false, Content::Rich), fdr(version, true, Content::Rich)))
        .chain((1..=3).map(|version| (basic(version, false, Content::Rich), basic(version, true, Content::Rich))))
    {
        assert_eq!(convert(&little.bytes, target(None, None, Some(Endian::Big))), big.bytes, "{}", little.version);
        assert_eq!(convert(&big.bytes, target(None, None, Some(Endian::Little))), little.bytes, "{}", little.version);
        assert_eq!(convert(&big.bytes, target(None, None, Some(Endian::Big))), big.bytes, "{}", little.version);
        assert_eq!(meanings(&big.bytes), meanings(&little.bytes));
        let orders = [&little, &big].map(|made| examine(&Xray, &made.bytes).info.0.byte_order);
        assert_eq!(orders, [Some(Endian::Little), Some(Endian::Big)]);
    }
}

#[test]
fn version_and_order_change_in_one_step_as_in_two() {
    let source = fdr(3, false, Content::Rich).bytes;
    let steps = convert(&convert(&source, version(5)), target(None, None, Some(Endian::Big)));
    assert_eq!(convert(&source, target(None, Some(5), Some(Endian::Big))), steps);
}

#[test]
fn yaml_holds_every_form_and_gives_it_back() {
    for big in [false, true] {
        for version in 1..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            let yaml = convert(&source, target(Some("yaml"), None, None));
            no_errors(&yaml, "yaml");
            assert_eq!(meanings(&yaml), meanings(&source), "version {version}");
            let back = convert(&yaml, target(Some("fdr"), Some(u32::from(version)), None));
            no_errors(&back, "back");
            assert_eq!(by_thread(meanings(&back)), by_thread(meanings(&source)), "version {version}");
        }
        for version in 1..=3 {
            let source = basic(version, big, Content::Rich).bytes;
            let yaml = convert(&source, target(Some("yaml"), None, None));
            assert_eq!(meanings(&yaml), meanings(&source), "version {version}");
            let back = convert(&yaml, target(Some("basic"), Some(u32::from(version)), None));
            no_errors(&back, "back");
            assert_eq!(meanings(&back), meanings(&source), "version {version}");
        }
    }
}

#[test]
fn basic_becomes_fdr_and_comes_back() {
    for from in 1..=3 {
        let source = basic(from, false, Content::Rich).bytes;
        for to in 1..=5 {
            let options = || target(Some("fdr"), Some(to), None);
            if from == 3 && to < 3 {
                let text = refusal(&source, options());
                assert!(text.starts_with("record 0 (function-enter-arg), field process: version"), "{text}");
                continue;
            }
            let made = convert(&source, options());
            no_errors(&made, "fdr");
            let (found, expected) = (by_thread(meanings(&made)), by_thread(meanings(&source)));
            assert_eq!(without_process(found), without_process(expected.clone()), "{from} to {to}");
            if to >= 3 {
                let back = convert(&made, target(Some("basic"), None, None));
                assert_eq!(by_thread(meanings(&back)), expected, "{from} to {to} and back");
            }
        }
    }
}

#[test]
fn data_that_basic_cannot_store_is_rejected_by_record_and_field() {
    let to = || target(Some("basic"), None, None);
    let made = |body: &dyn Fn(Made) -> Made| v5().buffer(7, None, 300, 100, body).bytes;
    let text = refusal(&made(&|made| made.on_cpu(1, 5).custom(3, b"abc")), to());
    assert_eq!(text, "record 5 (custom-event), field kind: a Basic trace has no events");
    let text = refusal(&made(&|made| made.on_cpu(1, 5).typed(b"abc")), to());
    assert_eq!(text, "record 5 (typed-event), field kind: a Basic trace has no events");
    let text = refusal(&made(&Made::pair), to());
    assert_eq!(text, "record 4 (function-enter), field cpu: a Basic trace has processors up to 255, found 300");
}

#[test]
fn data_that_fdr_cannot_store_is_rejected_by_record_and_field() {
    let yaml = |entry: &str| common::made::yaml(entry).bytes;
    let to = |version| target(Some("fdr"), Some(version), None);
    let text = refusal(&yaml("  - { kind: function-enter, thread: 1, tsc: 5, func-id: -1 }\n"), to(5));
    assert_eq!(text, "record 0 (function-enter), field func-id: an FDR trace has ids of 28 bits, found 4294967295");
    let text = refusal(&yaml("  - { kind: custom-event, thread: 1, tsc: 5, data: '' }\n"), to(5));
    assert_eq!(text, "record 0 (custom-event), field data: an FDR trace has no events without data");
    let text = refusal(&yaml("  - { kind: typed-event, thread: 1, tsc: 5, type: 3, data: x }\n"), to(2));
    assert_eq!(text, "record 0 (typed-event), field kind: version 2 has no typed events");
    let text = refusal(&yaml("  - { kind: function-exit, thread: 1, process: 4, tsc: 5 }\n"), to(1));
    assert_eq!(text, "record 0 (function-exit), field process: version 1 has no process ids, found 4");
}

#[test]
fn yaml_and_json_lines_have_no_byte_order() {
    for form in ["yaml", "jsonl"] {
        let source = fdr(5, false, Content::Rich).bytes;
        let error = try_convert(&source, target(Some(form), None, Some(Endian::Big))).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{form}");
    }
    let error = try_convert(&sample("v5.yaml"), target(None, None, Some(Endian::Big))).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
}

#[test]
fn samples_of_the_runtime_pass_through_every_later_version() {
    for name in ["args", "customs", "fib12-thr5", "longrun", "tail", "ring"] {
        let source = sample(&format!("{name}.xray"));
        for to in 3..=5 {
            let made = convert(&source, version(to));
            no_errors(&made, name);
            assert_eq!(meanings(&made), meanings(&source), "{name} to {to}");
        }
    }
}
