//! SARIF 2.1.0: the static-analysis result format that code review and CI systems show beside the code.
//!
//! One `run` with all files; a diagnostic's byte offset is `region.byteOffset`, for text formats with
//! `startLine` and `startColumn` (SARIF 2.1.0, sections 3.30.5 and 3.30.11).

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Rule, Severity};
use serde_json::{Value, json};

use crate::FileReport;

/// The complete log.
pub fn log(reports: &[FileReport]) -> Value {
    let rules: BTreeMap<&str, &Rule> =
        reports.iter().flat_map(|report| &report.rules).map(|rule| (rule.code, *rule)).collect();
    let index: BTreeMap<&str, usize> = rules.keys().enumerate().map(|(at, code)| (*code, at)).collect();
    let results: Vec<Value> =
        reports.iter().flat_map(|report| report.diagnostics.iter().map(|d| result(report, d, &index))).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "anytrace",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "artifacts": reports.iter().map(|r| json!({"location": {"uri": uri(&r.file)}})).collect::<Vec<_>>(),
            "results": results,
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "shortDescription": {"text": format!("{}.", rule.summary)},
        "defaultConfiguration": {"level": rule.severity.name()},
    })
}

fn result(report: &FileReport, diagnostic: &Diagnostic, index: &BTreeMap<&str, usize>) -> Value {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = diagnostic.render(report.noun, &mut text);
    let mut region = json!({"byteOffset": diagnostic.offset, "byteLength": diagnostic.skipped_bytes});
    if let Some((line, column)) = diagnostic.line {
        region["startLine"] = json!(line);
        region["startColumn"] = json!(column);
    }
    let mut value = json!({
        "ruleId": diagnostic.code(),
        "level": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning", Severity::Note => "note" },
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(&report.file)}, "region": region}}],
        "properties": {
            "record": diagnostic.record, "field": diagnostic.field,
            "expected": diagnostic.expected, "found": diagnostic.found,
        },
    });
    if let Some(at) = index.get(diagnostic.code()) {
        value["ruleIndex"] = json!(at);
    }
    value
}

/// A relative URI reference of a path: reserved and non-ASCII bytes are percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    static BROKEN: Rule = Rule::error("x/broken", "something is broken");

    #[test]
    fn a_result_names_rule_file_and_byte() {
        let report = FileReport {
            file: "a b.trace".to_owned(),
            format: "x",
            noun: "record",
            rules: vec![&BROKEN],
            records: 3,
            diagnostics: vec![BROKEN.at(9).line(2, 5)],
            counts: BTreeMap::from([("x/broken", 1)]),
            lost: 1,
            errors: 1,
            warnings: 0,
            notes: 0,
        };
        let log = log(&[report]);
        let result = &log["runs"][0]["results"][0];
        assert_eq!(
            (&result["ruleId"], &result["ruleIndex"], &result["level"]),
            (&json!("x/broken"), &json!(0), &json!("error"))
        );
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b.trace");
        assert_eq!((&place["region"]["byteOffset"], &place["region"]["startLine"]), (&json!(9), &json!(2)));
        assert_eq!(log["version"], "2.1.0");
    }
}
