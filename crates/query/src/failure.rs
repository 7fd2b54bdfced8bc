//! Why a query could not be run, in few lines.

use anytrace_core::text::printable;
use datafusion::error::DataFusionError;

use crate::session::Session;

/// Lines of a message.
const LINES_MAX: usize = 4;

/// Characters of a line.
const LINE_MAX: usize = 400;

/// What went wrong, for people: without the engine's own names for things, and with the tables where one is unknown.
pub fn message(error: &DataFusionError, session: Option<&Session>) -> String {
    let text = error.strip_backtrace();
    let text = text.replace("datafusion.public.", "").replace("datafusion.", "");
    let prefixes = [
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "Execution error: ",
        "External error: ",
        "This feature is not implemented: ",
    ];
    let mut text = text.as_str();
    while let Some(rest) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    let text = match text.strip_prefix("ParserError(\"").and_then(|rest| rest.strip_suffix("\")")) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => text.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(shortened).collect();
    lines.truncate(LINES_MAX);
    if text.contains("Resources exhausted") {
        lines.truncate(LINES_MAX - 1);
        lines.push("give it more by --memory, or divide it less by --threads 1".to_owned());
    }
    if text.contains("not found")
        && text.contains("table")
        && let Some(session) = session
    {
        lines.truncate(LINES_MAX - 1);
        lines.push(shortened(&format!("tables: {}", table_names(session))));
    }
    lines.join("\n")
}

/// The tables of a session.
pub fn table_names(session: &Session) -> String {
    let of = |schema: &Option<String>, table: &str| match schema {
        Some(schema) => format!("{schema}.{table}"),
        None => table.to_owned(),
    };
    let names =
        session.tables().iter().flat_map(|(schema, tables)| tables.iter().map(move |table| of(schema, table.name)));
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none: there is no trace in the files".to_owned() } else { names.join(", ") }
}

fn shortened(line: &str) -> String {
    let line = printable(line);
    if line.chars().count() <= LINE_MAX {
        return line;
    }
    let mut cut: String = line.chars().take(LINE_MAX - 1).collect();
    cut.push('…');
    cut
}
