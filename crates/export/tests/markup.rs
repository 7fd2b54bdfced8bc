//! Every picture and report is well-formed, whatever the names in it, and says what it was given.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::span::TimeUnit;
use anytrace_core::{Rule, Severity};
use anytrace_export::curves::{Chart, Line};
use anytrace_export::flame::{FoldedLines, SvgOptions, frame};
use anytrace_export::heatmap::{Grid, Row};
use anytrace_export::plot::{Panel, Series};
use anytrace_export::{FileReport, curves, flame, heatmap, json, junit, plot, sarif};
use common::{hard, random};
use serde_json::Value;

/// An element or a piece of text, in the order of the document.
#[derive(Debug, PartialEq, Eq)]
enum Node {
    Open(String, BTreeMap<String, String>),
    Text(String),
    Close(String),
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (entity, more) = after.split_once(';').unwrap_or_else(|| panic!("an & without its end: {after:.20}"));
        out.push_str(match entity {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "apos" | "#39" => "'",
            "#x9" => "\t",
            "#xA" => "\n",
            "#xD" => "\r",
            other => panic!("an unknown entity: {other}"),
        });
        rest = more;
    }
    out.push_str(rest);
    out
}

/// Reads a document by the rules of XML 1.0 that matter here, and panics where one is broken.
fn parsed(document: &str) -> Vec<Node> {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    assert!(document.chars().all(is_allowed), "a character that XML forbids");
    let (mut nodes, mut open) = (Vec::new(), Vec::new());
    let mut rest = document;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("<![CDATA[") {
            rest = after.split_once("]]>").expect("the end of CDATA").1;
        } else if let Some(after) = rest.strip_prefix("<?") {
            rest = after.split_once("?>").expect("the end of an instruction").1;
        } else if let Some(after) = rest.strip_prefix("<!--") {
            let (comment, more) = after.split_once("-->").expect("the end of a comment");
            assert!(!comment.contains("--"));
            rest = more;
        } else if let Some(after) = rest.strip_prefix("<!") {
            rest = after.split_once('>').expect("the end of a declaration").1;
        } else if let Some(after) = rest.strip_prefix("</") {
            let (name, more) = after.split_once('>').expect("the end of a tag");
            assert_eq!(open.pop().as_deref(), Some(name.trim()), "elements nest");
            nodes.push(Node::Close(name.trim().to_owned()));
            rest = more;
        } else if let Some(after) = rest.strip_prefix('<') {
            rest = element(after, &mut nodes, &mut open);
        } else {
            let (text, more) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
            if !text.trim().is_empty() {
                assert!(!open.is_empty(), "text outside of the root: {text:.40}");
                nodes.push(Node::Text(unescaped(text)));
            }
            rest = more;
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
    nodes
}

fn element<'a>(after: &'a str, nodes: &mut Vec<Node>, open: &mut Vec<String>) -> &'a str {
    let end = after.find(|c: char| c.is_whitespace() || c == '>' || c == '/').expect("a name");
    let (name, mut rest) = after.split_at(end);
    assert!(!name.is_empty());
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(more) = rest.strip_prefix("/>") {
            nodes.push(Node::Open(name.to_owned(), attributes));
            nodes.push(Node::Close(name.to_owned()));
            return more;
        }
        if let Some(more) = rest.strip_prefix('>') {
            nodes.push(Node::Open(name.to_owned(), attributes));
            open.push(name.to_owned());
            return more;
        }
        let (key, value) = rest.split_once("=\"").expect("an attribute in quotes");
        let (value, more) = value.split_once('"').expect("the end of an attribute");
        assert!(!value.contains('<') && !key.contains(char::is_whitespace), "{key}={value}");
        assert!(attributes.insert(key.to_owned(), unescaped(value)).is_none(), "{key} twice");
        rest = more;
    }
}

fn elements<'a>(nodes: &'a [Node], wanted: &str) -> Vec<&'a BTreeMap<String, String>> {
    let of = |node: &'a Node| if let Node::Open(name, attributes) = node { Some((name, attributes)) } else { None };
    nodes.iter().filter_map(of).filter(|(name, _)| *name == wanted).map(|(_, attributes)| attributes).collect()
}

fn texts(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().filter_map(|node| if let Node::Text(text) = node { Some(text.trim()) } else { None }).collect()
}

/// Names that would break a document if they were written as they are.
const ODD: [&str; 8] =
    ["a<b>&\"c\"", "'x'", "]]>", "--", "\u{1b}[31m", "line\nend\ttab", "\u{202e}back", "\u{fffe}\u{0}x &amp; y"];

fn drawn(draw: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<Node> {
    let mut out = Vec::new();
    draw(&mut out).unwrap();
    parsed(&String::from_utf8(out).unwrap())
}

#[test]
fn flame_graphs_of_traces_are_well_formed() {
    let played = [hard(), random(1, 300, TimeUnit::Nanoseconds), random(2, 300, TimeUnit::Order)];
    for played in played {
        let nodes = parsed(&String::from_utf8(played.written("svg")).unwrap());
        assert!(elements(&nodes, "rect").len() > 1);
        assert!(elements(&nodes, "svg").iter().any(|svg| svg.contains_key("width")));
    }
}

#[test]
fn a_frame_is_as_wide_as_its_share() {
    let names: Vec<&[u8]> = vec![b"main", b"read", b"write"];
    let mut lines = FoldedLines::new(names.into_iter());
    lines.push(&[0], &[20]);
    lines.push(&[0, 1], &[30]);
    lines.push(&[0, 2], &[50]);
    let options = SvgOptions { title: ODD.join(" "), unit: "ns".to_owned(), ..SvgOptions::default() };
    let nodes = drawn(|out| flame::svg(lines.text(), &options, out));
    let title = |name: &str| {
        texts(&nodes).into_iter().find(|text| text.starts_with(&format!("{name} ("))).unwrap_or_default().to_owned()
    };
    assert_eq!(title("main"), "main (100 ns, 100.00%)");
    assert_eq!((title("read"), title("write")), ("read (30 ns, 30.00%)".into(), "write (50 ns, 50.00%)".into()));
    let width = |name: &str| {
        let at = nodes.iter().position(|node| *node == Node::Text(title(name))).unwrap();
        let rects = elements(&nodes[at..], "rect");
        rects[0]["width"].trim_end_matches('%').parse::<f64>().unwrap()
    };
    assert!((width("read") / width("main") - 0.3).abs() < 0.01);
    assert!((width("write") / width("main") - 0.5).abs() < 0.01);
}

#[test]
fn folded_lines_survive_any_name() {
    let odd: Vec<&[u8]> =
        ODD.iter().map(|name| name.as_bytes()).chain([&b""[..], b"a;b", b"x 12", b"# c", b"\xff"]).collect();
    let mut lines = FoldedLines::new(odd.iter().copied());
    for (number, weight) in (0..odd.len() as u32).zip(1..) {
        lines.push(&[number, number], &[weight]);
    }
    assert_eq!(lines.text().lines().count(), odd.len());
    for ((line, weight), name) in lines.text().lines().zip(1_u64..).zip(&odd) {
        let (path, found) = line.rsplit_once(' ').unwrap();
        assert_eq!(found.parse(), Ok(weight));
        let frames: Vec<&str> = path.split(';').collect();
        assert_eq!(frames, [frame(name), frame(name)], "each name is one frame");
        assert!(!line.starts_with('#') || !line.starts_with("# "), "not a comment");
    }
    let nodes = drawn(|out| flame::svg(lines.text(), &SvgOptions::default(), out));
    assert!(elements(&nodes, "rect").len() > odd.len());
}

#[test]
fn plots_and_curves_are_well_formed_and_name_their_lines() {
    let series = |name: &str, scale: u64| Series {
        name: name.to_owned(),
        values: (0..40).map(|at| (at * 10, at * at * scale)).collect(),
    };
    let panels: Vec<Panel> = ODD
        .iter()
        .map(|name| Panel {
            title: (*name).to_owned(),
            series: vec![series(name, 1), series("plain", u64::MAX / 2000)],
            ..Panel::default()
        })
        .collect();
    let nodes = drawn(|out| plot::svg(ODD[0], ODD[5], &panels, out));
    assert!(texts(&nodes).iter().any(|text| text.contains("a<b>&\"c\"")), "text is unescaped to what it was");
    assert!(texts(&nodes).iter().any(|text| text.contains("plain")));
    let lines = ODD
        .iter()
        .map(|name| Line {
            name: (*name).to_owned(),
            points: (0..20).map(|at| (64 << at, 1.0 / (at as f64 + 1.0))).collect(),
        })
        .collect();
    let chart =
        Chart { lines, marks: vec![(ODD[0].to_owned(), 4096), (ODD[1].to_owned(), 1 << 20)], ..Chart::default() };
    let nodes = drawn(|out| curves::svg(ODD[2], &chart, panels.first(), out));
    assert!(texts(&nodes).iter().any(|text| text.contains("a<b>&\"c\"")));
}

#[test]
fn pictures_of_nothing_are_pictures() {
    drawn(|out| plot::svg("", "", &[], out));
    drawn(|out| plot::svg("", "", &[Panel::default()], out));
    drawn(|out| curves::svg("", &Chart::default(), None, out));
    drawn(|out| heatmap::svg(&Grid::default(), out));
    assert!(flame::svg("", &SvgOptions::default(), &mut Vec::new()).is_err(), "a flame graph needs a weight");
}

#[test]
fn a_heat_map_has_a_mark_for_each_cell_and_darker_ones_for_more() {
    let row = |label: &&str| Row {
        label: (*label).to_owned(),
        name: format!("T {label}"),
        is_apart: label.len().is_multiple_of(2),
    };
    let rows = ODD.iter().map(row).collect();
    let cells: Vec<(usize, usize, u64)> =
        (0..8).flat_map(|row| (0..6).map(move |at| (row, at, 1 << (row + at)))).collect();
    let grid = Grid { title: ODD[0].to_owned(), rows, columns: 6, cells, unit: "<u>".to_owned(), ..Grid::default() };
    let nodes = drawn(|out| heatmap::svg(&grid, out));
    let empty = Grid { cells: vec![(0, 0, 1)], ..grid.clone() };
    let less = drawn(|out| heatmap::svg(&empty, out));
    assert!(elements(&nodes, "rect").len() > elements(&less, "rect").len());
    let colors: std::collections::BTreeSet<&str> =
        elements(&nodes, "rect").iter().filter_map(|rect| rect.get("fill").map(String::as_str)).collect();
    assert!(colors.len() >= 8, "{colors:?}");
}

static BROKEN: Rule = Rule::error("x/broken", "something is <broken> & \"torn\"");
static ODD_RULE: Rule = Rule::warning("x/odd", "something is odd");
static FINE: Rule = Rule::note("x/fine", "nothing is wrong");

fn report(file: &str) -> FileReport {
    let mut diagnostics = Vec::new();
    for (at, odd) in (0..).zip(ODD) {
        let rule = if at % 2 == 0 { &BROKEN } else { &ODD_RULE };
        diagnostics.push(rule.at(at * 100).record(at).expected("nothing").found(odd).line(at + 1, 3));
    }
    FileReport {
        file: file.to_owned(),
        format: "x",
        noun: "record",
        rules: vec![&BROKEN, &ODD_RULE, &FINE],
        records: 800,
        diagnostics,
        counts: BTreeMap::from([("x/broken", 4), ("x/odd", 4)]),
        lost: 4,
        errors: 4,
        warnings: 4,
        notes: 0,
    }
}

#[test]
fn junit_counts_the_elements_it_contains() {
    let reports = [report("a&b.trace"), report(ODD[0]), report("plain")];
    let nodes = parsed(&junit::document(&reports));
    let number = |of: &BTreeMap<String, String>, key: &str| of[key].parse::<usize>().unwrap();
    let all = elements(&nodes, "testsuites")[0];
    assert_eq!(number(all, "tests"), elements(&nodes, "testcase").len());
    assert_eq!(number(all, "failures"), elements(&nodes, "failure").len());
    let suites = elements(&nodes, "testsuite");
    assert_eq!(suites.iter().map(|suite| suite["name"].as_str()).collect::<Vec<_>>(), ["a&b.trace", ODD[0], "plain"]);
    assert_eq!(suites.iter().map(|suite| number(suite, "tests")).sum::<usize>(), number(all, "tests"));
    assert_eq!(suites.iter().map(|suite| number(suite, "failures")).sum::<usize>(), number(all, "failures"));
    for failure in elements(&nodes, "failure") {
        assert_eq!(
            (failure["type"].as_str(), failure["message"].as_str()),
            (BROKEN.code, "something is <broken> & \"torn\" (4)")
        );
    }
}

#[test]
fn sarif_results_point_to_their_rules_and_bytes() {
    let reports = [report("a b.trace"), report("dir/é#1.trace")];
    let log: Value = serde_json::from_str(&sarif::log(&reports).to_string()).unwrap();
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!((rules.len(), results.len()), (3, 16));
    let diagnostics = reports.iter().flat_map(|report| &report.diagnostics);
    for (result, diagnostic) in results.iter().zip(diagnostics) {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!((&rule["id"], &result["ruleId"]), (&result["ruleId"], &Value::from(diagnostic.code())));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["byteOffset"], diagnostic.offset);
        assert_eq!(place["region"]["startLine"], diagnostic.line.unwrap().0);
        let level = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
        assert_eq!(result["level"], level);
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)), "{uri}");
        assert!(run["artifacts"].as_array().unwrap().iter().any(|file| file["location"]["uri"] == uri));
    }
    assert_eq!(run["artifacts"][1]["location"]["uri"], "dir/%C3%A9%231.trace");
}

#[test]
fn json_reports_have_every_field_of_their_diagnostics() {
    let report = report("a.trace");
    let value: Value = serde_json::from_str(&json::report(&report).to_string()).unwrap();
    assert_eq!((&value["version"], &value["lost"], &value["errors"]), (&json::VERSION.into(), &4.into(), &4.into()));
    for (found, diagnostic) in value["diagnostics"].as_array().unwrap().iter().zip(&report.diagnostics) {
        assert_eq!(found["code"], diagnostic.code());
        assert_eq!(found["found"].as_str(), diagnostic.found.as_deref());
        assert_eq!((found["offset"].as_u64(), found["record"].as_u64()), (Some(diagnostic.offset), diagnostic.record));
        assert_eq!(found["line"].as_u64(), diagnostic.line.map(|(line, _)| line));
        assert_eq!(found["message"], diagnostic.rule.summary);
    }
    assert_eq!(value["diagnostics"].as_array().unwrap().len(), 8);
}
