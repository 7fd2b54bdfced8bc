//! Whether a result is in the form that was asked for.

use super::case::Case;
use super::rows::{Results, Row};

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Any,
    /// One JSON value or more.
    Json,
    /// A JSON value a line; no lines are fine.
    JsonLines,
    Sarif,
    Xml,
    Svg,
}

/// What a case asks for: the form of standard output, and of the file it names first.
pub(super) fn asked(case: &Case, row: &Row) -> (Form, Form) {
    let by_format = match case.option("--format").or_else(|| case.option("--explain")) {
        Some("json") => Form::Json,
        Some("jsonl") => Form::JsonLines,
        Some("sarif") => Form::Sarif,
        Some("junit") => Form::Xml,
        Some("svg") => Form::Svg,
        _ => Form::Any,
    };
    let output = case.option("--output");
    let is_to_stdout = output.is_none_or(|output| output == "-");
    let of_output = match case.verb.as_str() {
        "convert" | "merge" => match case.option("--to") {
            Some("chrome" | "firefox" | "speedscope") => Form::Json,
            Some("jsonl" | "otlp") => Form::JsonLines,
            Some("svg") => Form::Svg,
            _ => Form::Any,
        },
        "flame" if case.option("--format").is_none() && output.is_some_and(|name| name.ends_with(".svg")) => Form::Svg,
        "memory heatmap" => Form::Svg,
        "memory mrc" | "apitrace stats" => match case.option("--plot") {
            Some("-") => return (Form::Svg, Form::Any),
            Some(_) => Form::Svg,
            None => Form::Any,
        },
        "xray convert" if case.option("--output-format") == Some("trace_event") => Form::Json,
        "heph convert" => Form::Json,
        _ if row.results == Results::Output => by_format,
        _ => Form::Any,
    };
    let of_stdout = match case.verb.as_str() {
        "apitrace info" => Form::Json,
        "apitrace jsonl" => Form::JsonLines,
        "convert" | "heph convert" | "memory heatmap" | "xray convert" if is_to_stdout => of_output,
        // What the peer prints of an empty trace is not a document of any form.
        "xray stack" | "xray graph" | "xray graph-diff" if case.has_any(&["--compat"]) => Form::Any,
        "heph replay" if case.option("--to") == Some("-") => Form::Any,
        // With the result on standard output, words about it would be in its way.
        _ if output == Some("-") && row.results == Results::Stdout => Form::Any,
        _ if row.results == Results::Output && !is_to_stdout => Form::Any,
        _ if row.results == Results::Output => of_output,
        _ => by_format,
    };
    (of_stdout, of_output)
}

/// Why bytes are not in a form; they may be compressed, as outputs are whose name ends in `.gz`.
pub(super) fn wrong(form: Form, bytes: &[u8]) -> Option<String> {
    let unzipped = bytes.starts_with(&[0x1f, 0x8b]).then(|| super::samples::unzip(bytes)).flatten();
    let bytes = unzipped.as_deref().unwrap_or(bytes);
    match form {
        Form::Any => None,
        Form::Json => json(bytes).err(),
        Form::JsonLines => lines(bytes),
        Form::Sarif => sarif(bytes),
        Form::Xml => xml(bytes).err(),
        Form::Svg => match xml(bytes) {
            Ok(root) if root == "svg" => None,
            Ok(root) => Some(format!("not SVG: the root is {root}")),
            Err(why) => Some(why),
        },
    }
}

fn json(bytes: &[u8]) -> Result<Vec<serde_json::Value>, String> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter() {
        match value {
            Ok(value) => values.push(value),
            Err(error) if is_only_deep(&error) => return Ok(vec![serde_json::Value::Null]),
            Err(error) => return Err(format!("not JSON: {}", without_place(&error))),
        }
    }
    if values.is_empty() { Err("not JSON: nothing".to_owned()) } else { Ok(values) }
}

fn lines(bytes: &[u8]) -> Option<String> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let errors = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).err());
    let mut errors = errors.filter(|error| !is_only_deep(error));
    errors.next().map(|error| format!("a line is not JSON: {}", without_place(&error)))
}

/// A value as deep as the trace's: JSON, which this parser does not follow all the way.
fn is_only_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

/// Its place belongs to one input, its kind to the class.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or("").to_owned()
}

fn sarif(bytes: &[u8]) -> Option<String> {
    let values = match json(bytes) {
        Ok(values) => values,
        Err(why) => return Some(why),
    };
    let is_sarif = |value: &serde_json::Value| value["version"] == "2.1.0" && value["runs"][0]["tool"].is_object();
    (!values.iter().all(is_sarif)).then(|| "not SARIF".to_owned())
}

/// The name of the root of a document that is well formed.
fn xml(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not XML: no UTF-8".to_owned())?;
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    match roxmltree::Document::parse_with_options(text, options) {
        Ok(document) => Ok(document.root_element().tag_name().name().to_owned()),
        Err(error) => {
            let text = error.to_string();
            Err(format!("not XML: {}", text.split(" at ").next().unwrap_or("")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_recognized() {
        assert_eq!(wrong(Form::Json, b"{\"a\": 1}\n{}\n"), None);
        assert!(wrong(Form::Json, b"").is_some());
        assert!(wrong(Form::Json, b"{\"a\": NaN}").is_some());
        assert_eq!(wrong(Form::JsonLines, b""), None);
        assert!(wrong(Form::JsonLines, b"{}\n{\n").is_some());
        assert_eq!(wrong(Form::JsonLines, format!("{}{}", "[".repeat(500), "]".repeat(500)).as_bytes()), None);
        assert_eq!(wrong(Form::Svg, b"<?xml version=\"1.0\"?><svg a='&lt;'><g/></svg>"), None);
        assert!(wrong(Form::Svg, b"<html/>").is_some());
        assert!(wrong(Form::Xml, b"<a><b></a>").is_some());
        assert!(wrong(Form::Xml, b"<a>\x01</a>").is_some());
        assert!(wrong(Form::Xml, b"<a b=\"<\"/>").is_some());
        assert!(wrong(Form::Sarif, b"{}").is_some());
    }
}
