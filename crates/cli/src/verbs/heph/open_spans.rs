//! `anytrace heph open`.

use std::path::{Path, PathBuf};

use anytrace_core::text::{escaped, printable};
use anytrace_heph::memory::{OpenSpan, OpenSpans, open_spans};
use clap::Args;

use super::recover::memories;
use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::paint;
use crate::results::print_json;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, nanoseconds};
use crate::{Verdict, terminal};

/// `heph open`.
#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// Folder with recordings, a trace, or its TRACE.memory
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
}

pub(crate) fn run(options: &OpenArguments) -> Result<Verdict, Failure> {
    let files = files(&options.path)?;
    let mut objects = Vec::new();
    for (n, file) in files.iter().enumerate() {
        let name = file.display().to_string();
        let found = open_spans(file).map_err(|error| Failure::of(&name, &error))?;
        match options.format {
            ResultForm::Json => objects.push(found.to_json()),
            ResultForm::Text => {
                terminal::put(if n == 0 { "" } else { "\n" })?;
                terminal::put(&page(&found))?;
            }
        }
    }
    if options.format == ResultForm::Json {
        print_json(objects, options.path.is_dir())?;
    }
    Ok(Verdict::Fine)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.is_dir() {
        let found = memories(path)?;
        if found.is_empty() {
            let what = "no TRACE.memory here: nothing records with survive_kill, and nothing was killed";
            return Err(Failure::usage(format!("{}: {what}", path.display())));
        }
        return Ok(found);
    }
    if path.extension().is_some_and(|extension| extension == "memory") {
        return Ok(vec![path.to_owned()]);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".memory");
    Ok(vec![PathBuf::from(beside)])
}

fn page(found: &OpenSpans) -> String {
    let (bold, name) = (paint::BOLD, printable(&found.file.display().to_string()));
    let fate = if found.is_running { "runs" } else { "is gone" };
    let mut out = format!(
        "{bold}{name}{bold:#}: {}; process {} {fate}, last heard of at {}\n",
        counted(found.spans.len() as u64, "open span"),
        found.process,
        nanoseconds(found.last_ns.into()),
    );
    if found.spans.is_empty() {
        return out;
    }
    let columns = ["id", "parent", "open for", "polls", "busy"].map(|name| (name, Align::Right));
    let columns = columns.into_iter().chain(["inside", "name", "fields"].map(|name| (name, Align::Left)));
    let mut table = Table::new(&columns.collect::<Vec<_>>());
    for span in &found.spans {
        table.row(row(span, found.last_ns));
    }
    out.push_str(&table.render());
    out
}

fn row(span: &OpenSpan, now: u64) -> Vec<String> {
    let fields: Vec<String> = span
        .fields
        .iter()
        .map(|(name, value)| format!("{}={}", escaped(name.as_bytes()), escaped(value.as_bytes())))
        .collect();
    let inside = span
        .inside
        .map(|(thread, since)| format!("thread {thread} for {}", nanoseconds(now.saturating_sub(since).into())));
    vec![
        span.id.to_string(),
        if span.parent == 0 { "-".to_owned() } else { span.parent.to_string() },
        nanoseconds(now.saturating_sub(span.since_ns).into()),
        grouped(span.polls.into()),
        nanoseconds(span.busy_ns.into()),
        inside.unwrap_or_else(|| "-".to_owned()),
        printable(&span.name),
        fields.join(" ") + if span.is_cut { " …" } else { "" },
    ]
}
