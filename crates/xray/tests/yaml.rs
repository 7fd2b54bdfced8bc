//! YAML as people and other programs write it, and malformed YAML.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine, rewrite};
use anytrace_core::{Plan, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::{Content, fdr, yaml};
use common::slow::{What, meanings};
use common::{convert, no_errors, sample, target};

/// What the crate reads from a text: its entries, in the peer's form, decoded slowly.
fn read(text: &str) -> Vec<What> {
    no_errors(text.as_bytes(), text);
    assert_eq!(convert(text.as_bytes(), TargetOptions::default()), text.as_bytes(), "a copy is the text itself");
    meanings(&convert(text.as_bytes(), target(Some("yaml"), Some(1), None)))
}

fn entries(list: &str) -> Vec<What> {
    read(&String::from_utf8(yaml(list).bytes).unwrap())
}

fn data(spelling: &str) -> Vec<u8> {
    let all = entries(&format!("  - {{ kind: custom-event, thread: 1, tsc: 5, data: {spelling} }}\n"));
    assert_eq!((all.len(), all[0].tsc), (1, 5), "{spelling}");
    all[0].data.clone()
}

#[test]
fn data_is_read_in_every_spelling() {
    for (spelling, expected) in [
        ("''", &b""[..]),
        ("\"\"", b""),
        ("plain", b"plain"),
        ("two words", b"two words"),
        ("a, b, c", b"a, b, c"),
        ("'it''s'", b"it's"),
        ("'a } b'", b"a } b"),
        ("'a # b'", b"a # b"),
        ("'key: 5, tsc: 9'", b"key: 5, tsc: 9"),
        ("\"tab\\there\"", b"tab\there"),
        ("\"\\0\\a\\b\\e\\f\\v\\r\\n\"", b"\0\x07\x08\x1b\x0c\x0b\r\n"),
        ("\"\\x41\\u00e9\\U0001F600\"", "Aé😀".as_bytes()),
        ("\"quote \\\" and \\\\ and \\/\"", b"quote \" and \\ and /"),
        ("'back\\slash'", b"back\\slash"),
        ("!!binary \"AP8=\"", b"\0\xff"),
        ("!!binary AP8=", b"\0\xff"),
        ("été", "été".as_bytes()),
        ("\"braces {}[]\"", b"braces {}[]"),
        ("\"one \\\n      line\"", b"one line"),
    ] {
        assert_eq!(data(spelling), expected, "{spelling}");
    }
}

#[test]
fn order_spacing_and_quotes_of_fields_do_not_matter() {
    let plain = entries(
        "  - { type: 0, func-id: 3, function: f, args: [ 1, 2 ], cpu: 4, thread: 5, process: 6, kind: function-enter-arg, tsc: 7, data: '' }\n",
    );
    for list in [
        "  - {tsc: 7,data: '',kind: function-enter-arg,process: 6,thread: 5,cpu: 4,args: [1,2],function: f,func-id: 3,type: 0}\n",
        "- { \"tsc\" : 7, 'kind': 'function-enter-arg', process: \"6\", thread: '5', cpu: 0x4, args: [ 0x1,2 ], func-id: 3 }\n",
        "  -   {   tsc:   7  ,  kind:  function-enter-arg , process: 6 , thread: 5 , cpu: 4, args: [  1 ,  2  ] , func-id: 3   }   \n",
        "  - {\n      tsc: 7,\n      kind: function-enter-arg,\n      process: 6, thread: 5,\n      cpu: 4, args: [1,\n 2],\n      func-id: 3\n    }\n",
        "  - tsc: 7\n    kind: function-enter-arg\n    process: 6\n    thread: 5\n    cpu: 4\n    args: [1, 2]\n    func-id: 3\n",
        "  - { tsc: 7, kind: function-enter-arg, process: 6, thread: 5, cpu: 4, args: [1, 2], func-id: 3, }\n",
        "  - { tsc: 7, kind: function-enter-arg, process: 6, # why\n thread: 5, cpu: 4, args: [1, 2], func-id: 3 } # an entry\n",
        "\n# a comment\n\n  - { tsc: 7, kind: function-enter-arg, process: 6, thread: 5, cpu: 4, args: [1, 2], func-id: 3 }\n\n",
        "  - { tsc: 7, kind: function-enter-arg, process: 6, thread: 5, cpu: 4, args: [1, 2], func-id: 3 }\r\n",
    ] {
        assert_eq!(entries(list), plain, "{list}");
    }
}

#[test]
fn headers_are_read_in_every_spelling() {
    let list = "records:\n  - { kind: function-exit, thread: 1, tsc: 5 }\n";
    for header in [
        "header:\n  version: 1\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: false\n  cycle-frequency: 5\n",
        "---\nheader:\n  cycle-frequency: 0x5\n  'version': 1\n  \"type\": 0\n  nonstop-tsc: False\n  constant-tsc: TRUE\n",
        "# made by hand\n---\n# header\nheader:   \n\tversion: 1 # one\n  type: 0\n\n  # more\n  constant-tsc: True\n  nonstop-tsc: FALSE\n  cycle-frequency:     5\n",
        "\u{feff}header:\n  version: 1\n  type: 0\n  constant-tsc: true\n  nonstop-tsc: false\n  cycle-frequency: 5\n",
        "header:\r\n  version: 1\r\n  type: 0\r\n  constant-tsc: true\r\n  nonstop-tsc: false\r\n  cycle-frequency: 5\r\n",
    ] {
        let text = format!("{header}{list}");
        assert_eq!(read(&text).len(), 1, "{text}");
        let basic = convert(text.as_bytes(), target(Some("basic"), None, None));
        assert_eq!(basic[..16], [1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0], "{text}");
    }
}

#[test]
fn an_empty_list_is_a_trace_without_records() {
    for list in ["records: []\n", "records:\n", "records:         []\n...\n", "records: [ ]"] {
        let text = format!("header:\n  version: 1\n  type: 0\n{list}");
        assert!(read(&text).is_empty(), "{text}");
        assert_eq!(examine(&Xray, text.as_bytes()).info.0.records, 0);
    }
}

#[test]
fn a_list_without_its_last_line_end_is_complete() {
    let text = String::from_utf8(yaml("  - { kind: function-exit, thread: 1, tsc: 5 }\n").bytes).unwrap();
    let cut = text.trim_end().trim_end_matches("...").trim_end();
    assert_eq!(read(cut), read(&text));
}

#[test]
fn errors_are_reported_by_line_and_field() {
    let good = "  - { kind: function-enter, thread: 1, tsc: 5 }\n";
    for (bad, code, field, column) in [
        ("  - { kind: function-enter, thread: 1 }\n", "yaml-field", Some("tsc"), None),
        ("  - { kind: function-enter, tsc: 1 }\n", "yaml-field", Some("thread"), None),
        ("  - { thread: 1, tsc: 1 }\n", "yaml-field", Some("kind"), None),
        ("  - { kind: jump, thread: 1, tsc: 1 }\n", "yaml-field", Some("kind"), None),
        ("  - { kind: function-exit, thread: -1, tsc: 1 }\n", "yaml-field", Some("thread"), Some(36)),
        ("  - { kind: function-exit, thread: 4294967296, tsc: 1 }\n", "yaml-field", Some("thread"), Some(36)),
        ("  - { kind: function-exit, thread: 1, tsc: 18446744073709551616 }\n", "yaml-field", Some("tsc"), Some(44)),
        ("  - { kind: function-exit, thread: 1, tsc: [ 1 ] }\n", "yaml-field", Some("tsc"), None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, args: 5 }\n", "yaml-field", Some("args"), None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, args: [ x ] }\n", "yaml-field", Some("args"), None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, cpu: 65536 }\n", "yaml-field", Some("cpu"), None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, func-id: 2147483648 }\n", "yaml-field", Some("func-id"), None),
        ("  - { kind: typed-event, thread: 1, tsc: 1, type: 65536 }\n", "yaml-field", Some("type"), None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, data: \"\\q\" }\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, data: \"\\ud800\" }\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, data: !!binary \"?\" }\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit, thread: 1, tsc: 1, data: 'open }\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit, thread: 1, tsc: 1\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit, thread: 1, tsc: 1 } more\n", "yaml-syntax", None, None),
        ("  - { kind: function-exit; thread: 1, tsc: 1 }\n", "yaml-field", None, None),
        ("  - function-exit\n", "yaml-syntax", None, None),
        ("rubbish\n", "yaml-syntax", None, None),
    ] {
        let made = yaml(&format!("{good}{bad}{good}"));
        let exam = examine(&Xray, &made.bytes);
        let errors = exam.errors();
        assert_eq!(errors.len(), 1, "{bad}: {errors:#?}");
        assert_eq!(errors[0].code(), format!("xray/{code}"), "{bad}");
        let line = errors[0].line.unwrap();
        assert!(line.0 == 10 || bad.contains("tsc: 1\n") || bad.contains("open"), "{bad}: {line:?}");
        if let Some(field) = field {
            assert_eq!(errors[0].field.as_deref(), Some(field), "{bad}");
        }
        if let Some(column) = column {
            assert_eq!(line.1, column, "{bad}");
        }
        assert_eq!(exam.info.0.records, 2, "{bad}: the entries around it are kept");
        let repaired = assert_repairs(&Xray, &made.bytes, bad);
        assert_eq!(repaired, yaml(&format!("{good}{good}")).bytes, "{bad}");
    }
}

#[test]
fn a_bad_header_line_is_named_and_the_rest_is_read() {
    for (from, to, code) in [
        ("version: 1", "version: x", "xray/yaml-field"),
        ("type: 0", "type: -1", "xray/yaml-field"),
        ("constant-tsc: true", "constant-tsc: maybe", "xray/yaml-field"),
        ("nonstop-tsc: true", "nonstop: true", "xray/yaml-syntax"),
        ("cycle-frequency: 1", "cycle-frequency 1", "xray/yaml-syntax"),
    ] {
        let text = String::from_utf8(yaml("  - { kind: function-exit, thread: 1, tsc: 5 }\n").bytes).unwrap();
        let text = text.replacen(from, to, 1);
        let exam = examine(&Xray, text.as_bytes());
        assert_eq!((exam.error_codes(), exam.info.0.records), (vec![code], 1), "{to}");
        let repaired = assert_repairs(&Xray, text.as_bytes(), to);
        assert_eq!(meanings(&repaired).len(), 1, "{to}");
    }
}

#[test]
fn a_text_that_ends_before_its_list_is_truncated() {
    for text in ["---\nheader:\n", "header:\n  version: 1\n", "header:\n  version: 1\n  cycle-fre"] {
        let exam = examine(&Xray, text.as_bytes());
        assert!(exam.error_codes().contains(&"xray/truncated"), "{text}: {:?}", exam.error_codes());
        assert_repairs(&Xray, text.as_bytes(), text);
    }
}

#[test]
fn the_peers_stale_fields_are_not_believed() {
    let all = entries(concat!(
        "  - { type: 0, func-id: 9, function: '9', cpu: 1, thread: 1, kind: function-enter, tsc: 1, data: '' }\n",
        "  - { type: 300, func-id: 9, function: '9', cpu: 1, thread: 1, kind: typed-event, tsc: 2, data: x }\n",
        "  - { type: 300, func-id: 9, function: '9', cpu: 1, thread: 1, kind: function-exit, tsc: 3, data: '' }\n",
    ));
    let found: Vec<_> = all.iter().map(|what| (what.id, what.event_type)).collect();
    assert_eq!(found, [(9, 0), (0, 300), (9, 0)]);
}

#[test]
fn any_payload_comes_back_from_yaml() {
    let mut source = fdr(5, false, Content::Plain);
    let bodies: Vec<Vec<u8>> = (0..=255_u8)
        .flat_map(|b| [vec![b], vec![b'a', b, b'z'], vec![b, b' ', b]])
        .chain(
            [
                "a: b",
                "- x",
                "true",
                "~",
                "1e5",
                " x",
                "x ",
                "'",
                "''",
                "\"",
                "{a: b}",
                "[1]",
                "# x",
                "x #y",
                "x: ",
                "a,b",
                "é\u{85}\u{2028}\u{200b}",
                "data: 5, tsc: 7",
                "...",
                "---",
            ]
            .map(|s| s.as_bytes().to_vec()),
        )
        .collect();
    source = source.buffer(1, None, 1, 100, |made| {
        bodies.iter().fold(made, |made, body| made.custom_at(1, 0, 0, body).typed_at(1, 9, body))
    });
    let yaml = convert(&source.bytes, target(Some("yaml"), None, None));
    no_errors(&yaml, "yaml");
    let back = convert(&yaml, target(Some("fdr"), None, None));
    let events = |bytes: &[u8]| -> Vec<What> {
        meanings(bytes).into_iter().filter(|what| what.thread == 1 && what.kind.ends_with("-event")).collect()
    };
    assert_eq!(events(&source.bytes).len(), bodies.len() * 2);
    assert_eq!(events(&back), events(&source.bytes));
}

#[test]
fn windows_of_any_size_read_hostile_spelling_alike() {
    let text = concat!(
        "  - { kind: custom-event, thread: 1, tsc: 5, data: \"a\\\n   b } \\\" ' # \" }\n",
        "  - kind: function-exit\n    thread: 1\n    tsc: 6\n\n",
        "  - { kind: function-exit, thread: 1,\n\n   tsc: 7 } # end\n",
        "  - { kind: broken\n  - { kind: function-exit, thread: 1, tsc: 8 }\n",
    );
    assert_windows_agree(&Xray, &yaml(text).bytes);
}

#[test]
fn comments_and_spelling_survive_a_repair() {
    let text =
        String::from_utf8(yaml("# one\n  - {kind: function-exit,thread: 1,tsc: 5}\n  - { }\n# two\n").bytes).unwrap();
    let (repaired, outcome, _) = rewrite(&Xray, text.as_bytes(), &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!(String::from_utf8(repaired).unwrap(), text.replace("  - { }\n", ""));
    assert_eq!((outcome.records_read, outcome.records_written, outcome.bytes_lost), (1, 1, 8));
    assert!(!sample("v5.yaml").is_empty());
}
