//! What `anytrace query` asks this program for: a JSON object as the first argument, then the files. It is no interface
//! for people; both programs have the same version.

use std::path::PathBuf;

use anytrace_core::index::Choice;
use anytrace_core::span::{Mangling, SymbolSource};
use serde_json::Value;

use crate::{Form, OpenWith, Options};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Run these statements.
    Query(String),
    /// Show how they would be run.
    Explain(String),
    /// Run the query of this name.
    Run(String),
    /// List the named queries.
    List,
    /// List the tables.
    Tables,
    /// List the columns of a table.
    Describe(String),
    /// Ask for statements on the terminal.
    Prompt,
}

/// One call of the program.
#[derive(Debug)]
pub(crate) struct Request {
    /// What to do.
    pub(crate) action: Action,
    /// The form of results.
    pub(crate) form: Form,
    /// Text cells that a spreadsheet would take for formulas stay as they are.
    pub(crate) is_raw_csv: bool,
    /// The name of each file where it is not its path.
    pub(crate) shown: Vec<Option<String>>,
    /// How files are opened.
    pub(crate) open: OpenWith,
    /// How statements are run.
    pub(crate) session: Options,
    /// Where results are written, if not to standard output, and whether what is there is replaced.
    pub(crate) output: Option<(PathBuf, bool)>,
    /// Where plans run, if not in this process.
    pub(crate) cluster: Option<String>,
    /// Standard input ends when the program that asks does.
    pub(crate) has_lifeline: bool,
    /// Show on a terminal how far a query is.
    pub(crate) has_progress: bool,
    /// Where the prompt keeps its history.
    pub(crate) history: Option<PathBuf>,
}

/// Reads a request.
pub(crate) fn parse(text: &str) -> Result<Request, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let version = json["version"].as_str().unwrap_or("");
    if version != env!("CARGO_PKG_VERSION") {
        return Err(format!(
            "anytrace has version {version}, anytrace-query {}; `cargo install anytrace-query --version {version}` \
             installs one that fits",
            env!("CARGO_PKG_VERSION")
        ));
    }
    let text = |key: &str| json[key].as_str().unwrap_or("").to_owned();
    let number = |key: &str| json[key].as_u64();
    Ok(Request {
        action: match json["action"].as_str() {
            Some("query") => Action::Query(text("sql")),
            Some("explain") => Action::Explain(text("sql")),
            Some("run") => Action::Run(text("sql")),
            Some("list") => Action::List,
            Some("tables") => Action::Tables,
            Some("describe") => Action::Describe(text("sql")),
            Some("prompt") => Action::Prompt,
            other => return Err(format!("unknown action {other:?}")),
        },
        form: match json["format"].as_str() {
            Some("table") => Form::Table,
            Some("csv") => Form::Csv,
            Some("json") => Form::Json,
            Some("jsonl") => Form::Jsonl,
            Some("parquet") => Form::Parquet,
            Some("arrow") => Form::Arrow,
            other => return Err(format!("unknown form {other:?}")),
        },
        is_raw_csv: json["csv_raw"].as_bool().unwrap_or(false),
        shown: texts(&json["shown"]),
        open: OpenWith {
            format: json["input_format"].as_str().map(str::to_owned),
            sources: sources(&json["programs"]),
            mangling: if json["demangle"].as_bool().unwrap_or(true) { Mangling::Demangled } else { Mangling::AsIs },
            threads: 1,
            index: choice(&json["index"]),
        },
        session: Options {
            schemas: texts(&json["schemas"]),
            partitions: number("threads").and_then(|threads| usize::try_from(threads).ok()).unwrap_or(1).max(1),
            memory_bytes: number("memory_bytes"),
            spill_folder: None,
            parameters: texts(&json["parameters"]).into_iter().flatten().collect(),
            part_bytes: None,
        },
        output: json["output"].as_str().map(|path| (path.into(), json["force"].as_bool().unwrap_or(false))),
        cluster: json["cluster"].as_str().map(str::to_owned),
        has_lifeline: json["lifeline"].as_bool().unwrap_or(false),
        has_progress: json["progress"].as_bool().unwrap_or(false),
        history: json["history"].as_str().map(PathBuf::from),
    })
}

/// The index: `null` for none, `{"file": PATH}` for this one, `{"folder": PATH}` for those of a folder, `{}` for those
/// beside the traces.
fn choice(json: &Value) -> Choice {
    let path = |key: &str| json[key].as_str().map(PathBuf::from);
    match path("file") {
        Some(file) => Choice::File(file),
        None if json.is_object() => Choice::Auto(path("folder")),
        None => Choice::None,
    }
}

fn texts(json: &Value) -> Vec<Option<String>> {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn sources(json: &Value) -> Vec<SymbolSource> {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let source = |item: &Value| {
        let object = item["object"].as_u64().and_then(|object| u32::try_from(object).ok());
        Some(SymbolSource { object, path: item["path"].as_str()?.into() })
    };
    items.iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_refused_and_says_how_to_get_one_that_fits() {
        let error = parse(r#"{"version":"0.0.1","action":"list","format":"csv"}"#).unwrap_err();
        assert!(error.contains("cargo install anytrace-query --version 0.0.1"), "{error}");
    }

    #[test]
    fn a_request_says_everything() {
        let text = format!(
            r#"{{"version":"{}","action":"query","sql":"select 1","format":"json","schemas":[null,"b"],"threads":3,
            "programs":[{{"object":1,"path":"lib.so"}}],"demangle":false,"memory_bytes":1024,"parameters":["x","2"],"index":{{"folder":"d"}}}}"#,
            env!("CARGO_PKG_VERSION")
        );
        let request = parse(&text).unwrap();
        assert_eq!(request.action, Action::Query("select 1".to_owned()));
        assert_eq!((request.form, request.session.partitions), (Form::Json, 3));
        assert_eq!(request.session.memory_bytes, Some(1024));
        assert_eq!(request.session.schemas, [None, Some("b".to_owned())]);
        assert_eq!(request.open.sources, [SymbolSource { object: Some(1), path: "lib.so".into() }]);
        assert_eq!(request.open.index, Choice::Auto(Some("d".into())));
        assert_eq!((request.open.mangling, request.session.parameters.len()), (Mangling::AsIs, 2));
    }
}
