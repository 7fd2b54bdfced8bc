//! Runs the engine as `anytrace query` does.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::{Format, Input, InputOptions};
use anytrace_formats::{Recognized, recognize};
use serde_json::{Value, json};

/// Traces of the repository, one of each format.
pub(crate) const EXAMPLES: [&str; 6] =
    ["imm.trace", "boxes.cacheray", "free_tree.casemate", "relay.heph", "rows.lackey", "threads4.xray"];

/// The format of a trace.
pub(crate) fn format_of(path: &Path) -> &'static dyn Format {
    match recognize(&Input::open(path, InputOptions::default()).unwrap().head()) {
        Recognized::Trace(format) => format,
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// A trace of the repository.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

/// One call.
pub(crate) struct Call {
    request: Value,
    files: Vec<PathBuf>,
    /// Where temporary files are made.
    temporary: Option<PathBuf>,
}

impl Call {
    /// Statements in CSV, with two partitions.
    pub(crate) fn sql(sql: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let request = json!({"version": version, "action": "query", "sql": sql, "format": "csv", "threads": 2});
        Self { request, files: Vec::new(), temporary: None }
    }

    /// Adds a trace.
    pub(crate) fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Sets a field of the request.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.request[field] = value.into();
        self
    }

    /// Makes temporary files in a folder.
    pub(crate) fn temporary(mut self, folder: &Path) -> Self {
        self.temporary = Some(folder.to_owned());
        self
    }

    /// Runs it.
    pub(crate) fn output(&self) -> Output {
        let mut request = self.request.clone();
        if request.get("schemas").is_none() {
            request["schemas"] = json!(vec![Value::Null; self.files.len()]);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace-query"));
        if let Some(folder) = &self.temporary {
            command.env("TMPDIR", folder).env("TMP", folder);
        }
        command.arg(request.to_string()).args(&self.files).output().unwrap()
    }

    /// What it prints; it must succeed.
    pub(crate) fn prints(&self) -> String {
        let output = self.output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}: {said}", self.request);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The exit code and what it says when it fails.
    pub(crate) fn fails(&self) -> (Option<i32>, String) {
        let output = self.output();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
