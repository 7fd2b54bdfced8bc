//! Block style, duplicate fields, and missing fields.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::OpenOptions;
use anytrace_core::testing::{examine, through_jsonl};
use anytrace_xray::Xray;

mod common;
use common::made::yaml;
use common::{convert, target};

const REST: &str = "    cpu: 0\n    thread: 1\n    kind: function-enter-arg\n    tsc: 5\n";

#[test]
fn a_list_in_block_style_is_read() {
    let one = "  - { type: 0, func-id: 2, args: [ 1, 2 ], cpu: 0, thread: 1, kind: function-enter-arg, tsc: 5 }\n";
    let flow = convert(&yaml(one).bytes, target(Some("basic"), None, None));
    for list in [
        "    args:\n      - 1\n      - 2\n",
        "    args:\n    - 1\n    - 2\n",
        "    args: # two\n      - 1 # one\n      -   0x2\n",
        "    args:\r\n      - 1\r\n      - 2\r\n",
        "    args: [ 1, 2 ]\n",
    ] {
        for entry in
            [format!("  - type: 0\n    func-id: 2\n{list}{REST}"), format!("  - type: 0\n    func-id: 2\n{REST}{list}")]
        {
            let two = format!("{entry}{entry}");
            let bytes = yaml(&two).bytes;
            let exam = examine(&Xray, &bytes);
            assert!(exam.errors().is_empty(), "{entry}: {:?}", exam.errors());
            assert_eq!(exam.info.0.records, 2, "{entry}");
            let basic = convert(&yaml(&entry).bytes, target(Some("basic"), None, None));
            assert_eq!(basic, flow, "{entry}");
        }
    }
}

#[test]
fn a_list_of_words_in_block_style_is_an_error() {
    for list in ["    args:\n      - 1\n      - two\n", "    args:\n      -\n", "    args:\n      - 1, 2\n"] {
        let bytes = yaml(&format!("  - type: 0\n    func-id: 2\n{list}{REST}")).bytes;
        assert_eq!(examine(&Xray, &bytes).errors().len(), 1, "{list}");
    }
}

#[test]
fn a_duplicate_field_is_an_error_at_the_second() {
    let text = "  - { type: 0, func-id: 2, cpu: 0, thread: 1, kind: function-enter, tsc: 5, cpu: 7 }\n";
    let made = yaml(text);
    let exam = examine(&Xray, &made.bytes);
    let error = exam.errors()[0].clone();
    assert_eq!((error.rule.code, error.field.as_deref()), ("xray/yaml-field", Some("cpu")));
    assert_eq!(error.offset as usize, made.labels["here"] + text.rfind("cpu").unwrap());
}

#[test]
fn json_lines_and_other_versions_add_no_function_name() {
    let text = "  - { type: 0, func-id: 2, cpu: 0, thread: 1, kind: function-enter, tsc: 5, data: '' }\n";
    let bytes = yaml(text).bytes;
    for made in
        [through_jsonl(&Xray, &OpenOptions::default(), &bytes).unwrap(), convert(&bytes, target(None, Some(3), None))]
    {
        let made = String::from_utf8(made).unwrap();
        assert!(made.contains("func-id: 2") && !made.contains("function:"), "{made}");
    }
}
