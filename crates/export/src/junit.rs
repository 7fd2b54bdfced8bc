//! JUnit XML, as CI systems read it: a test suite a file, a test case a rule.
//!
//! A rule broken by an error is a failure; one that only warned passes, with the warnings in
//! `system-out`.

use std::fmt::Write;

use anytrace_core::text::xml;
use anytrace_core::{Diagnostic, Severity};

use crate::FileReport;

/// The complete document.
pub fn document(reports: &[FileReport]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let total: usize = reports.iter().map(|report| report.rules.len()).sum();
    let failed: usize = reports.iter().map(failures).sum();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "<testsuites name=\"anytrace check\" tests=\"{total}\" failures=\"{failed}\" errors=\"0\">");
    for report in reports {
        suite(&mut out, report);
    }
    out.push_str("</testsuites>\n");
    out
}

fn failures(report: &FileReport) -> usize {
    report.rules.iter().filter(|rule| breaches(report, rule.code).any(|d| d.severity == Severity::Error)).count()
}

fn breaches<'a>(report: &'a FileReport, code: &'a str) -> impl Iterator<Item = &'a Diagnostic> {
    report.diagnostics.iter().filter(move |d| d.code() == code)
}

fn suite(out: &mut String, report: &FileReport) {
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">",
        xml(&report.file),
        report.rules.len(),
        failures(report)
    );
    for rule in &report.rules {
        let found: Vec<&Diagnostic> = breaches(report, rule.code).collect();
        let head = format!("    <testcase classname=\"{}\" name=\"{}\"", xml(report.format), xml(rule.code));
        if found.is_empty() {
            let _ = writeln!(out, "{head}/>");
            continue;
        }
        let mut text = String::new();
        for diagnostic in &found {
            let _ = diagnostic.render(report.noun, &mut text);
            text.push('\n');
        }
        let count = report.counts.get(rule.code).copied().unwrap_or_default();
        let _ = writeln!(out, "{head}>");
        if found.iter().any(|d| d.severity == Severity::Error) {
            let message = xml(rule.summary);
            let _ = writeln!(
                out,
                "      <failure type=\"{}\" message=\"{message} ({count})\">{}</failure>",
                xml(rule.code),
                xml(&text)
            );
        } else {
            let _ = writeln!(out, "      <system-out>{}</system-out>", xml(&text));
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anytrace_core::Rule;

    use super::*;

    static BROKEN: Rule = Rule::error("x/broken", "something is <broken>");
    static FINE: Rule = Rule::error("x/fine", "something else");

    #[test]
    fn a_broken_rule_is_a_failure_and_the_others_pass() {
        let report = FileReport {
            file: "a&b".to_owned(),
            format: "x",
            noun: "record",
            rules: vec![&BROKEN, &FINE],
            records: 1,
            diagnostics: vec![BROKEN.at(1).found("\u{1b}")],
            counts: BTreeMap::from([("x/broken", 1)]),
            lost: 1,
            errors: 1,
            warnings: 0,
            notes: 0,
        };
        let xml = document(&[report]);
        assert!(xml.contains("<testsuites name=\"anytrace check\" tests=\"2\" failures=\"1\" errors=\"0\">"));
        assert!(xml.contains("<testsuite name=\"a&amp;b\""));
        assert!(xml.contains("something is &lt;broken&gt; (1)"));
        assert!(xml.contains("name=\"x/fine\"/>"));
        assert!(!xml.contains('\u{1b}'));
    }
}
