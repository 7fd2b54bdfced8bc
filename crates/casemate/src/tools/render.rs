//! Reports of `casemate check` as text, JSON, SARIF 2.1.0 and JUnit XML.

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_core::Severity;
use anytrace_core::text::xml;
use serde_json::{Value, json};

use super::check::{Found, Report, Verdict};
use crate::model::{BREACHES, Handover, LiveChange, Reuse, StaleUse};

/// Version of the JSON results.
pub const VERSION: u64 = 1;

/// An address as JSON: a string, because JSON numbers lose bits above 2^53.
pub(crate) fn hex(address: u64) -> Value {
    Value::String(format!("{address:#x}"))
}

/// A change of a live entry as JSON: the fields that change, the deciding ones first.
fn change_json(change: &LiveChange) -> Value {
    let fields: Vec<Value> = change
        .fields()
        .iter()
        .map(|field| {
            json!({"attribute": field.name, "field": field.field, "bits": field.bits, "old": hex(field.old),
                   "new": hex(field.new), "needs_break": field.needs_break})
        })
        .collect();
    json!({"old": hex(change.old), "new": hex(change.new), "stage": change.stage, "level": change.level,
           "needs_break_by_architecture": change.deciding_architecture != 0, "attributes": fields})
}

/// What is relied on too early, as JSON.
fn stale_json(stale: &StaleUse) -> Value {
    let (how, root) = match stale.handover {
        Handover::Table => ("table", None),
        Handover::Initialised => ("mem-init", None),
        Handover::OwnerRoot => ("set_owner_root", None),
        Handover::Mapped { root } => ("mapped", Some(root)),
    };
    json!({"memory": hex(stale.memory), "handover": how, "root": root.map(hex), "rights": stale.lost.words(),
           "old": hex(stale.old), "new": hex(stale.new), "above": stale.above.map(hex),
           "state": stale.progress.letters()})
}

/// The tree that had an identifier before, as JSON.
fn reuse_json(reuse: &Reuse) -> Value {
    json!({"other": hex(reuse.other), "register": reuse.kind.base().name(), "vmid": reuse.vmid, "asid": reuse.asid,
           "thread": reuse.thread, "is_direct": reuse.is_direct})
}

/// One violation as JSON.
pub fn violation_json(found: &Found) -> Value {
    let related: Vec<Value> = found
        .related
        .iter()
        .map(|related| json!({"location": hex(related.location), "role": related.role.name()}))
        .collect();
    json!({
        "rule": found.breach.rule.code,
        "severity": found.severity.name(),
        "message": found.breach.message,
        "record_id": found.record_id,
        "index": found.index,
        "offset": found.offset,
        "line": found.line,
        "thread": found.thread,
        "src": found.source,
        "location": found.location.map(hex),
        "change": found.change.as_ref().map(change_json),
        "stale": found.stale.as_ref().map(stale_json),
        "reuse": found.reuse.as_ref().map(reuse_json),
        "related": related,
        "related_not_listed": found.more,
        "record": found.text,
    })
}

/// A report as JSON.
pub fn report_json(report: &Report) -> Value {
    json!({
        "version": VERSION,
        "file": report.file,
        "events": report.events,
        "verdict": report.verdict.word(),
        "reasons": report.reasons(),
        "assertion": report.verdict == Verdict::Assertion,
        "lost": report.lost,
        "errors": report.errors,
        "warnings": report.warnings,
        "damage": report.damage,
        "claim": report.claim.as_ref().map(|claim| json!({"message": claim.text, "is_same": claim.is_same})),
        "violations": report.violations.iter().map(violation_json).collect::<Vec<_>>(),
    })
}

/// Which attribute of a live entry decides, and what else changes; what is stale; nothing for other violations.
pub(crate) fn change_lines(found: &Found) -> Vec<String> {
    if let Some(reuse) = &found.reuse {
        return vec![reuse.words()];
    }
    if let Some(stale) = &found.stale {
        let (lost, old, new) = (stale.lost.words(), stale.old, stale.new);
        let why = match stale.above {
            Some(above) => format!("the table entry at {above:#x} above {new:#x} was changed in place"),
            None => format!("changed in place: {old:#x} -> {new:#x}"),
        };
        return vec![stale.words(), format!("TLBs may still grant: {lost} ({why})")];
    }
    let Some(change) = &found.change else { return Vec::new() };
    let mut lines = Vec::new();
    match change.words(true) {
        Some(words) => lines.push(format!("changed, which needs a break: {words}")),
        None => lines.push("the same value is rewritten".to_owned()),
    }
    lines.extend(change.words(false).map(|words| format!("changed, which needs none: {words}")));
    lines
}

/// One violation for people.
pub fn found_text(file: &str, found: &Found, out: &mut impl Write) -> std::fmt::Result {
    let file = anytrace_core::text::escaped(file.as_bytes());
    writeln!(out, "{file}: {}: {}", found.severity.name(), found.breach.message)?;
    write!(out, "  [{}] {}", found.breach.rule.code, found.breach.rule.summary)?;
    for line in change_lines(found) {
        write!(out, "\n  {line}")?;
    }
    write!(out, "\n  record {} (id {}), thread {}", found.index, found.record_id, found.thread)?;
    write!(out, ", line {}, byte {:#x}", found.line, found.offset)?;
    if let Some(source) = &found.source {
        write!(out, ", from {source}")?;
    }
    write!(out, "\n  {}", found.text)?;
    if let Some(location) = found.location {
        write!(out, "\n  at {location:#x}")?;
    }
    for related in &found.related {
        write!(out, "\n    {}: {:#x}", related.role.name(), related.location)?;
    }
    if found.more > 0 {
        write!(out, "\n    and {} more", found.more)?;
    }
    out.write_char('\n')
}

/// A report for people: the violations that it lists, then the totals.
pub fn report_text(report: &Report, out: &mut impl Write) -> std::fmt::Result {
    let file = anytrace_core::text::escaped(report.file.as_bytes());
    report.violations.iter().try_for_each(|found| found_text(&report.file, found, out))?;
    let found = report.errors + report.warnings;
    if report.listed < found {
        writeln!(out, "{file}: {} more not shown (--limit)", found - report.listed)?;
    }
    if let Some(claim) = &report.claim {
        let answer = match (report.verdict, claim.is_same) {
            (_, true) => "the same was found here",
            (Verdict::Ok | Verdict::Unknown, false) => "no violation was found here",
            (_, false) => "another violation was found here",
        };
        writeln!(out, "{file}: the log says '{}'; {answer}", claim.text)?;
    }
    if report.damage > 0 {
        writeln!(out, "{file}: {} syntax errors: records are missing", report.damage)?;
    }
    for reason in report.doubts.iter().filter(|_| report.verdict == Verdict::Unknown) {
        writeln!(out, "{file}: the verdict is unknown: {}", reason.message)?;
    }
    writeln!(
        out,
        "{file}: {}, {} transitions, {} violations, {} warnings",
        report.verdict.name(),
        report.events,
        report.errors,
        report.warnings
    )
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

/// SARIF 2.1.0: results point at the traced program's source if `src` names it, else at the trace.
pub fn sarif(reports: &[Report]) -> Value {
    let index: BTreeMap<&str, usize> = BREACHES.iter().enumerate().map(|(at, b)| (b.rule.code, at)).collect();
    let rules: Vec<Value> = BREACHES
        .iter()
        .map(|breach| {
            json!({
                "id": breach.rule.code,
                "shortDescription": {"text": format!("{}.", breach.rule.summary)},
                "fullDescription": {"text": breach.message},
                "defaultConfiguration": {"level": level(breach.rule.severity)},
            })
        })
        .collect();
    let results: Vec<Value> = reports
        .iter()
        .flat_map(|report| report.violations.iter().map(|found| sarif_result(report, found, &index)))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "anytrace casemate check",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "artifacts": reports.iter().map(|r| json!({"location": {"uri": uri(&r.file)}})).collect::<Vec<_>>(),
            "results": results,
        }],
    })
}

fn sarif_result(report: &Report, found: &Found, index: &BTreeMap<&str, usize>) -> Value {
    let in_trace = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&report.file)},
        "region": {"startLine": found.line.max(1), "byteOffset": found.offset},
    }});
    let in_source = found.source_line.as_ref().map(|(file, line)| {
        json!({"physicalLocation": {
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": (*line).max(1)},
        }})
    });
    let mut related = Vec::new();
    let primary = match in_source {
        Some(source) => {
            related.push(in_trace);
            source
        }
        None => in_trace,
    };
    let place = found.location.map_or(String::new(), |location| format!(" at {location:#x}"));
    let changed = found.change.and_then(|change| change.words(true)).or(found.stale.map(|stale| stale.words()));
    let changed = changed.or(found.reuse.map(|reuse| reuse.words()));
    let changed = changed.map_or(String::new(), |words| format!(": {words}"));
    json!({
        "ruleId": found.breach.rule.code,
        "ruleIndex": index.get(found.breach.rule.code),
        "level": level(found.severity),
        "message": {"text": format!(
            "{}{place} ({}{changed}; record {}, id {}, thread {})",
            found.breach.message, found.breach.rule.summary, found.index, found.record_id, found.thread
        )},
        "locations": [primary],
        "relatedLocations": related,
        "properties": violation_json(found),
    })
}

/// A relative URI reference of a path: reserved and non-ASCII bytes are percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// JUnit XML: one test case per trace.
pub fn junit(reports: &[Report]) -> String {
    let failed = reports.iter().filter(|report| !report.is_fine()).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\"", reports.len());
    out.push_str(&format!("<testsuites name=\"anytrace casemate check\" {counts}>\n"));
    out.push_str(&format!("  <testsuite name=\"break-before-make\" {counts}>\n"));
    for report in reports {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = report_text(report, &mut text);
        out.push_str(&format!("    <testcase classname=\"casemate\" name=\"{}\">\n", xml(&report.file)));
        if report.is_fine() {
            out.push_str(&format!("      <system-out>{}</system-out>\n", xml(&text)));
        } else {
            let first = report.violations.iter().find(|found| found.severity == Severity::Error);
            let kind = first.map_or(report.verdict.name(), |found| found.breach.rule.code);
            let message = first.map_or("the trace is damaged or the verdict it claims differs", |f| f.breach.message);
            let (kind, message, text) = (xml(kind), xml(message), xml(&text));
            out.push_str(&format!("      <failure type=\"{kind}\" message=\"{message}\">{text}</failure>\n"));
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

#[cfg(test)]
mod tests {
    use anytrace_core::{Collect, Input, OpenOptions};

    use super::*;
    use crate::tools::{CheckOptions, check};

    fn report(log: &str) -> Report {
        let input = Input::from_bytes("a b.log", log.as_bytes().to_vec());
        check(input, &OpenOptions::default(), &CheckOptions::default(), &mut Collect::default()).unwrap()
    }

    const BROKEN: &str = "(unlock (id 4) (tid 0) (address 0x10) (src \"dir/x<1>.c:30\"))";

    #[test]
    fn json_has_the_fields_the_page_names() {
        let value = report_json(&report(BROKEN));
        assert_eq!(
            (&value["version"], &value["events"], &value["verdict"]),
            (&json!(1), &json!(1), &json!("violation"))
        );
        let violation = &value["violations"][0];
        assert_eq!(violation["rule"], "casemate/unlock-not-held");
        assert_eq!(violation["message"], "Tried to unlock a component that was not held");
        assert_eq!(
            (&violation["record_id"], &violation["index"], &violation["line"]),
            (&json!(4), &json!(0), &json!(1))
        );
        assert_eq!((&violation["src"], &violation["location"]), (&json!("dir/x<1>.c:30"), &json!("0x10")));
        assert_eq!(violation["related"], json!([]));
    }

    #[test]
    fn sarif_annotates_the_source_line_and_names_the_trace() {
        let log = sarif(&[report(BROKEN)]);
        let result = &log["runs"][0]["results"][0];
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "dir/x%3C1%3E.c");
        assert_eq!(place["region"]["startLine"], 30);
        assert_eq!(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a%20b.log");
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], "casemate/unlock-not-held");
    }

    #[test]
    fn junit_fails_the_broken_trace_only() {
        let xml = junit(&[report(BROKEN), report("(lock 1 1 10)")]);
        assert!(xml.contains("tests=\"2\" failures=\"1\""));
        assert!(xml.contains("<failure type=\"casemate/unlock-not-held\""));
        assert!(xml.contains("<system-out>a b.log: ok, 1 transitions"));
    }

    #[test]
    fn text_ends_with_a_line_of_totals() {
        let mut text = String::new();
        report_text(&report(BROKEN), &mut text).unwrap();
        assert!(text.starts_with("a b.log: error: Tried to unlock a component that was not held\n"));
        assert!(text.ends_with("a b.log: violation, 1 transitions, 1 violations, 0 warnings\n"), "{text}");
    }
}
