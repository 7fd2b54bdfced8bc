//! JSON lines back to bytes: errors are reported by line and field.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::through_jsonl;
use anytrace_core::{
    Collect, Endian, Error, Format, ImportOptions, Input, Kind, Limits, MemoryTarget, OpenOptions, TargetOptions,
};
use anytrace_xray::Xray;

mod common;
use common::made::{Content, basic, fdr};
use common::{convert, no_errors, sample, target};

fn import_as(text: &[u8], target: &TargetOptions) -> Result<Vec<u8>, Error> {
    let mut out = MemoryTarget::default();
    let options = ImportOptions { target, limits: Limits::default() };
    Xray.import(Input::from_bytes("x.jsonl", text.to_vec()), &options, &mut out, &mut Collect::default())?;
    Ok(out.0)
}

fn import(text: &str) -> Result<Vec<u8>, Error> {
    import_as(text.as_bytes(), &TargetOptions::default())
}

const FDR: &str = r#"{"anytrace":1,"format":"xray","type":"fdr","format_version":5,"byte_order":"little","pointer_width":null,"bit_order":"low","flags":3,"cycle_frequency":1000,"buffer_size":4096,"reserved":0}"#;

fn header_of(bytes: &[u8]) -> String {
    let lines = String::from_utf8(convert(bytes, target(Some("jsonl"), None, None))).unwrap();
    lines.lines().next().unwrap().to_owned()
}

/// Line and field of the error.
#[track_caller]
fn wrong(text: &str) -> (u64, String) {
    let error = import(text).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed, "{error}");
    let diagnostic = error.diagnostic().unwrap();
    (diagnostic.line.unwrap().0, diagnostic.field.clone().unwrap_or_default().into_owned())
}

#[test]
fn the_header_line_of_this_test_is_that_of_a_dump() {
    let dumped = header_of(&sample("v5.xray"));
    let fields = |line: &str| -> Vec<String> {
        line.split(',').map(|field| field.split(':').next().unwrap().trim_matches(['{', '"']).to_owned()).collect()
    };
    let dumped = fields(&dumped);
    for field in fields(FDR) {
        assert!(dumped.contains(&field), "{field} is not in {dumped:?}");
    }
}

#[test]
fn every_field_of_a_record_is_needed_and_has_a_range() {
    let header = header_of(&sample("v5.xray"));
    for (good, bad) in [
        (
            r#"{"kind":"function-enter","id":1,"delta":5}"#,
            vec![
                (r#"{"id":1,"delta":5}"#, "kind"),
                (r#"{"kind":7,"id":1,"delta":5}"#, "kind"),
                (r#"{"kind":"function-leave","id":1,"delta":5}"#, "kind"),
                (r#"{"kind":"function-enter","delta":5}"#, "id"),
                (r#"{"kind":"function-enter","id":268435456,"delta":5}"#, "id"),
                (r#"{"kind":"function-enter","id":-1,"delta":5}"#, "id"),
                (r#"{"kind":"function-enter","id":1}"#, "delta"),
                (r#"{"kind":"function-enter","id":1,"delta":4294967296}"#, "delta"),
                (r#"{"kind":"function-enter","id":1,"delta":1.5}"#, "delta"),
                (r#"{"kind":"function-enter","id":1,"delta":"5"}"#, "delta"),
            ],
        ),
        (
            r#"{"kind":"new-buffer","thread":-2147483648}"#,
            vec![(r#"{"kind":"new-buffer"}"#, "thread"), (r#"{"kind":"new-buffer","thread":2147483648}"#, "thread")],
        ),
        (
            r#"{"kind":"new-cpu-id","cpu":65535,"tsc":18446744073709551615}"#,
            vec![
                (r#"{"kind":"new-cpu-id","tsc":1}"#, "cpu"),
                (r#"{"kind":"new-cpu-id","cpu":65536,"tsc":1}"#, "cpu"),
                (r#"{"kind":"new-cpu-id","cpu":1,"tsc":-1}"#, "tsc"),
                (r#"{"kind":"new-cpu-id","cpu":1,"tsc":18446744073709551616}"#, "tsc"),
            ],
        ),
        (r#"{"kind":"tsc-wrap","tsc":0}"#, vec![(r#"{"kind":"tsc-wrap"}"#, "tsc")]),
        (
            r#"{"kind":"wall-time","seconds":1,"micros":2}"#,
            vec![
                (r#"{"kind":"wall-time","micros":2}"#, "seconds"),
                (r#"{"kind":"wall-time","seconds":1}"#, "micros"),
                (r#"{"kind":"wall-time","seconds":1,"micros":4294967296}"#, "micros"),
            ],
        ),
        (
            r#"{"kind":"custom-event","delta":-1,"data":"x"}"#,
            vec![
                (r#"{"kind":"custom-event","tsc":1,"data":"x"}"#, "delta"),
                (r#"{"kind":"custom-event","delta":1,"data":5}"#, "data"),
                (r#"{"kind":"custom-event","delta":1,"data":{"hex":"0"}}"#, "data"),
                (r#"{"kind":"custom-event","delta":1}"#, "data"),
            ],
        ),
        (
            r#"{"kind":"typed-event","delta":-1,"type":65535,"data":{"hex":"00ff"}}"#,
            vec![
                (r#"{"kind":"typed-event","delta":1,"data":"x"}"#, "type"),
                (r#"{"kind":"typed-event","delta":1,"type":65536,"data":"x"}"#, "type"),
                (r#"{"kind":"typed-event","delta":2147483648,"type":1,"data":"x"}"#, "delta"),
                (r#"{"kind":"typed-event","delta":1,"type":1}"#, "data"),
            ],
        ),
        (r#"{"kind":"call-argument","value":5}"#, vec![(r#"{"kind":"call-argument"}"#, "value")]),
        (r#"{"kind":"buffer-extents","bytes":0}"#, vec![(r#"{"kind":"buffer-extents","bytes":null}"#, "bytes")]),
        (r#"{"kind":"pid","process":-1}"#, vec![(r#"{"kind":"pid","process":true}"#, "process")]),
        (
            r#"{"kind":"gap","zeros":3}"#,
            vec![
                (r#"{"kind":"gap","zeros":65537}"#, "zeros"),
                (r#"{"kind":"gap"}"#, "bytes"),
                (r#"{"kind":"gap","bytes":"0g"}"#, "bytes"),
            ],
        ),
        (
            r#"{"kind":"end-of-buffer","reserved":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
            vec![
                (r#"{"kind":"end-of-buffer","reserved":"a"}"#, "reserved"),
                (r#"{"kind":"end-of-buffer","reserved":"aa"}"#, "reserved"),
                (r#"{"kind":"end-of-buffer","reserved":[]}"#, "reserved"),
            ],
        ),
    ] {
        import(&format!("{header}\n{good}\n")).unwrap_or_else(|e| panic!("{good}: {e}"));
        for (bad, field) in bad {
            assert_eq!(wrong(&format!("{header}\n{good}\n{bad}\n")), (3, field.to_owned()), "{bad}");
        }
    }
}

#[test]
fn custom_events_have_the_time_of_their_version() {
    for (version, good, bad, field) in [
        (3, r#""tsc":1"#, r#""delta":1"#, "tsc"),
        (4, r#""tsc":1,"cpu":2"#, r#""tsc":1"#, "cpu"),
        (5, r#""delta":1"#, r#""tsc":1"#, "delta"),
    ] {
        let header = header_of(&fdr(version, false, Content::Plain).bytes);
        let line = |time| format!("{header}\n{{\"kind\":\"custom-event\",{time},\"data\":\"x\"}}\n");
        import(&line(good)).unwrap();
        assert_eq!(wrong(&line(bad)), (2, field.to_owned()));
    }
}

#[test]
fn every_field_of_a_basic_record_is_needed_and_has_a_range() {
    let header = header_of(&sample("basic-v3.xray"));
    let good = r#"{"kind":"function-exit","id":-1,"thread":4294967295,"process":0,"cpu":255,"tsc":7}"#;
    import(&format!("{header}\n{good}\n")).unwrap();
    for (from, to, field) in [
        (r#""id":-1,"#, "", "id"),
        ("-1", "2147483648", "id"),
        ("4294967295", "4294967296", "thread"),
        (r#""process":0"#, r#""process":-1"#, "process"),
        ("255", "256", "cpu"),
        (r#","tsc":7"#, "", "tsc"),
        ("function-exit", "pid", "kind"),
        ("}", r#","padding":"00"}"#, "padding"),
    ] {
        assert_eq!(
            wrong(&format!("{header}\n{good}\n\n{}\n", good.replacen(from, to, 1))),
            (4, field.to_owned()),
            "{to}"
        );
    }
    let argument = r#"{"kind":"call-argument","id":1,"thread":1,"process":1,"value":1,"pad":"000000"}"#;
    assert_eq!(wrong(&format!("{header}\n{argument}\n")), (2, "pad".to_owned()));
}

#[test]
fn every_field_of_a_yaml_entry_is_needed_and_has_a_range() {
    let header = header_of(&sample("v5.yaml"));
    let good = r#"{"kind":"function-enter","id":1,"function":"f","args":[1],"cpu":1,"thread":1,"process":0,"tsc":9,"data":""}"#;
    import(&format!("{header}\n{good}\n")).unwrap();
    for (from, to, field) in [
        ("function-enter", "new-buffer", "kind"),
        (r#""id":1"#, r#""id":2147483648"#, "id"),
        (r#""function":"f","#, "", "function"),
        ("[1]", "[-1]", "args"),
        ("[1]", "1", "args"),
        (r#""cpu":1"#, r#""cpu":65536"#, "cpu"),
        (r#","data":"""#, "", "data"),
    ] {
        assert_eq!(wrong(&format!("{header}\n{}\n", good.replacen(from, to, 1))), (2, field.to_owned()), "{to}");
    }
}

#[test]
fn every_field_of_the_header_is_needed_and_has_a_range() {
    let header = header_of(&sample("v5.xray"));
    for (from, to, field) in [
        (r#""type":"fdr","#, "", "type"),
        (r#""type":"fdr""#, r#""type":"profile""#, "type"),
        (r#""little""#, r#""middle""#, "byte_order"),
        (r#""low""#, r#""left""#, "bit_order"),
        (r#""format_version":5"#, r#""format_version":65536"#, "format_version"),
        (r#""flags":3,"#, "", "flags"),
        (r#""cycle_frequency":"#, r#""cycle_frequency":-"#, "cycle_frequency"),
        (r#""reserved":0"#, r#""reserved":"0""#, "reserved"),
    ] {
        assert!(header.contains(from), "{header}");
        assert_eq!(wrong(&header.replacen(from, to, 1)), (1, field.to_owned()), "{to}");
    }
}

#[test]
fn a_line_that_is_not_an_object_is_reported() {
    let header = header_of(&sample("v5.xray"));
    for bad in ["oops", "[1]", "{\"kind\":\"pid\"", "{\"kind\":\"pid\",\"process\":1}}", "7"] {
        let error = import(&format!("{header}\n{bad}\n")).unwrap_err();
        assert_eq!(error.diagnostic().unwrap().line.map(|line| line.0), Some(2), "{bad}: {error}");
    }
}

#[test]
fn a_trace_without_header_has_no_records() {
    let own = String::from_utf8(convert(&[], target(Some("jsonl"), None, None))).unwrap();
    assert!(import(&own).unwrap().is_empty());
    let (line, field) = wrong(&format!("{}{{\"kind\":\"pid\",\"process\":1}}\n", own));
    assert_eq!((line, field.as_str()), (2, "kind"));
}

#[test]
fn every_form_comes_back_byte_for_byte() {
    for big in [false, true] {
        let fdr = (1..=5).map(|version| fdr(version, big, Content::Rich));
        for made in fdr.chain((1..=3).map(|version| basic(version, big, Content::Rich))) {
            assert_eq!(through_jsonl(&Xray, &OpenOptions::default(), &made.bytes).unwrap(), made.bytes);
        }
    }
}

#[test]
fn json_lines_become_another_form_in_one_step() {
    let source = fdr(5, false, Content::Rich).bytes;
    let lines = convert(&source, target(Some("jsonl"), None, None));
    for options in [
        target(Some("yaml"), None, None),
        target(None, Some(4), None),
        target(None, None, Some(Endian::Big)),
        target(Some("xray"), None, None),
    ] {
        assert_eq!(import_as(&lines, &options).unwrap(), convert(&source, options.clone()), "{options:?}");
    }
}

#[test]
fn json_lines_cut_anywhere_become_a_trace_without_errors() {
    for (version, big) in (1..=5).flat_map(|version| [(version, false), (version, true)]) {
        let source = fdr(version, big, Content::Rich).bytes;
        let lines = String::from_utf8(convert(&source, target(Some("jsonl"), None, None))).unwrap();
        let ends: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
        for (number, end) in ends.into_iter().enumerate() {
            for endian in [Endian::Little, Endian::Big] {
                let part = &lines.as_bytes()[..end];
                let what = format!("version {version}, {number} records, to {endian:?}");
                no_errors(&import_as(part, &target(None, None, Some(endian))).unwrap(), &what);
            }
        }
    }
}

#[test]
fn fields_that_are_not_known_are_no_harm() {
    let source = sample("v5.xray");
    let lines = String::from_utf8(convert(&source, target(Some("jsonl"), None, None))).unwrap();
    let marked = lines.replace("}\n", ",\"offset\":5,\"comment\":\"}\"}\n").replace('\n', "\r\n");
    assert_eq!(import(&marked).unwrap(), source);
}

/// llvm-xray writes the function and the type of an earlier entry on events: no verb believes them, and none loses them.
#[test]
fn json_lines_have_every_field_of_a_yaml_entry() {
    let yaml = "---\nheader:\n  version:         3\n  type:            1\n  constant-tsc:    true\n  nonstop-tsc:     true\n  \
                cycle-frequency: 3000000000\nrecords:\n  \
                - { type: 9, func-id: 2, function: f, args: [ 99 ], cpu: 3, thread: 77, process: 66, kind: function-enter-arg, tsc: 1, data: '' }\n  \
                - { type: 7, func-id: 2, function: '2', cpu: 3, thread: 77, process: 66, kind: typed-event, tsc: 2, data: abc }\n  \
                - { type: 7, func-id: -2, function: f, args: [ 1 ], cpu: 3, thread: 77, kind: custom-event, tsc: 3, data: abc }\n  \
                - { type: 0, func-id: 0, cpu: 3, thread: 77, kind: custom-event, tsc: 4, data: abc }\n...\n";
    let lines = String::from_utf8(convert(yaml.as_bytes(), target(Some("jsonl"), None, None))).unwrap();
    let expected = r#"{"kind":"typed-event","id":2,"function":"2","type":7,"cpu":3,"#;
    assert!(lines.lines().nth(2).unwrap().starts_with(expected), "{lines}");
    assert!(lines.lines().nth(4).unwrap().starts_with(r#"{"kind":"custom-event","cpu":3,"#), "{lines}");
    let back = through_jsonl(&Xray, &OpenOptions::default(), yaml.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), yaml);
}
