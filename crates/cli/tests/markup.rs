//! Whatever names a trace and its file have, XML, SVG and HTML that hold them are well-formed.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::{Document, ParsingOptions};
use serde_json::json;

/// Every C0 and C1 control, markup, what XML forbids, and characters that turn or hide text.
fn special() -> String {
    let forbidden = "]]>--><!--&amp;&#0;&#x1b;<![CDATA[</text></title><script>alert(1)</script>\"'\u{fdd0}\u{fffe}\u{ffff}\u{1ffff}";
    let unseen = "\u{202e}\u{2066}\u{200b}\u{2028}\u{feff}\u{ad}\u{e0041}";
    (0..0xa1).filter_map(char::from_u32).collect::<String>() + forbidden + unseen + "é🦀"
}

fn anytrace(arguments: &[&Path]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Traces with such names, under names of files with all that a file may be called.
fn traces(folder: &Path) -> [PathBuf; 4] {
    let name: String = special().chars().filter(|c| !matches!(c, '\0' | '/')).take(60).collect();
    let special = special();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let write = |suffix: &str, lines: &[serde_json::Value], to: &str| {
        let source = folder.join("lines.jsonl");
        std::fs::write(&source, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let made = folder.join(format!("{name}<&\"'>{suffix}"));
        anytrace(&["convert".as_ref(), &source, "-o".as_ref(), &made, "--to".as_ref(), to.as_ref()]);
        made
    };
    let event = |counter: u32, start: u32| {
        json!({"kind": "event", "stream": 1, "counter": counter, "substream": 0, "start": start, "end": 100 - start,
               "description": special, "attributes": [[special, "str", special]]})
    };
    let epoch = json!({"kind": "metadata", "option": "epoch", "value": 1});
    let heph = write("heph", &[epoch, event(0, 1), event(1, 2)], "heph");
    let copied = |source: &str, suffix: &str| {
        let made = folder.join(format!("{name}<&\"'>{suffix}"));
        std::fs::copy(root.join(source), &made).unwrap();
        made
    };
    let casemate = copied("tests/evil/e.casemate", "casemate");
    [heph, casemate, copied("tests/evil/e.cacheray", "cacheray"), copied("tests/evil/e.trace", "trace")]
}

#[test]
fn every_document_is_well_formed_whatever_the_names_are() {
    let folder = tempfile::tempdir().unwrap();
    let [heph, casemate, cacheray, trace] = traces(folder.path());
    let commands: [(&str, &Path); 13] = [
        ("check --format junit", &heph),
        ("check --format junit", &casemate),
        ("check --format junit", &cacheray),
        ("casemate check --all --format junit", &casemate),
        ("convert -o - --to svg", &heph),
        ("flame --format svg --title", &heph),
        ("flame --format svg", &heph),
        ("memory heatmap -o -", &cacheray),
        ("memory heatmap --by line -o -", &cacheray),
        ("memory mrc --by type --plot -", &cacheray),
        ("memory mrc --working-set --plot -", &cacheray),
        ("apitrace stats --plot -", &trace),
        ("apitrace stats --by frame --plot -", &trace),
    ];
    for (line, file) in commands {
        let title = special().replace('\0', "");
        let mut words: Vec<&Path> = line.split(' ').map(Path::new).collect();
        if line.starts_with("apitrace") {
            words.push(Path::new("--input-format=apitrace"));
        }
        if line.ends_with("--title") {
            words.push(Path::new(&title));
        }
        words.push(file);
        let text = anytrace(&words);
        // The tables of `stats` are before the picture.
        let text = text.find("<?xml").or_else(|| text.find("<svg")).map_or(text.as_str(), |at| &text[at..]);
        let end = text.rfind('>').map_or(text.len(), |at| at + 1);
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document =
            Document::parse_with_options(&text[..end], options).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(document.descendants().count() > 3, "{line}");
        // A name is text: nothing in it became an element.
        let scripts = document.descendants().filter(|node| node.is_element() && node.text() == Some("alert(1)"));
        assert_eq!(scripts.count(), 0, "{line}");
        let is_unsafe = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!text.contains(is_unsafe), "{line}: {:?}", text.find(is_unsafe).map(|at| &text[at..]));
    }
}
