//! `anytrace query`: SQL on traces. The engine is a program of its own, `anytrace-query`; here are the options, the
//! inputs and the output.

mod engine;
mod inputs;

use std::path::{Path, PathBuf};

use anytrace_core::index::is_whole;
use anytrace_core::text::printable;
use anytrace_core::{Input, InputOptions};
use anytrace_formats::{Recognized, recognize};
use serde_json::{Value, json};

use crate::Verdict;
use crate::arguments::{QueryArguments, QueryForm};
use crate::extension::form_of;
use crate::failure::Failure;
use crate::indexed::folder;
use crate::programs::Program;
use crate::terminal::stdout_is_terminal;
use inputs::{Inputs, Statement};

/// What the extension of an output says.
const FORMS: [(&str, QueryForm); 7] = [
    ("csv", QueryForm::Csv),
    ("json", QueryForm::Json),
    ("jsonl", QueryForm::Jsonl),
    ("parquet", QueryForm::Parquet),
    ("arrow", QueryForm::Arrow),
    ("feather", QueryForm::Arrow),
    ("txt", QueryForm::Table),
];

pub(crate) fn run(options: &QueryArguments) -> Result<Verdict, Failure> {
    // Before anything is read, so that nobody waits for "not found".
    let program = if options.cluster.is_some() { Program::Cluster } else { Program::Query };
    let engine = program.find()?;
    let output = options.output.as_deref().filter(|path| path.as_os_str() != "-");
    let form = form(options, output)?;
    let inputs = Inputs::of(options)?;
    if program == Program::Cluster {
        inputs.paths.iter().try_for_each(|path| must_be_whole(path))?;
    }
    let mut request = request(options, form, &inputs)?;
    let object = output.and_then(Path::to_str).filter(|name| name.starts_with("s3://"));
    let Some(object) = object else {
        return engine::run(&engine, &request, &inputs.paths, output, options.force);
    };
    if program != Program::Cluster {
        return Err(Failure::usage(format!(
            "-o {object}: objects are written with --cluster, such as --cluster local"
        )));
    }
    if !matches!(inputs.statement, Statement::Sql(_)) && options.run.is_none() {
        return Err(Failure::usage(format!("-o {object}: only results of SQL are written to an object")));
    }
    // The engine has the store, and writes the object itself.
    request["output"] = json!(object);
    request["force"] = json!(options.force);
    engine::run(&engine, &request, &inputs.paths, None, options.force)
}

/// Refuses a trace that goes on beside its file: the machines of a cluster read the file alone, and what is not in it would
/// be missing without a word.
fn must_be_whole(path: &Path) -> Result<(), Failure> {
    // What is no file here is an object of a store, or is complained of by who reads it.
    let Ok(input) = Input::open(path, InputOptions::default()) else { return Ok(()) };
    let Recognized::Trace(format) = recognize(&input.head()) else { return Ok(()) };
    if is_whole(format, path).map_err(|error| Failure::bare(&error))? {
        return Ok(());
    }
    let name = printable(&path.display().to_string());
    Err(Failure::usage(format!(
        "{name}: beside it is what a killed recorder had not written yet, which a cluster does not read\n  \
         `anytrace heph recover {name}` makes one file of both; without --cluster both are read"
    )))
}

/// The engine, where it is installed.
pub(crate) fn engine_path() -> Option<PathBuf> {
    Program::Query.find().ok()
}

fn form(options: &QueryArguments, output: Option<&Path>) -> Result<QueryForm, Failure> {
    let is_file = matches!(options.format, Some(QueryForm::Parquet | QueryForm::Arrow));
    if is_file && output.is_none() && stdout_is_terminal() {
        return Err(Failure::usage("a terminal cannot show this form; use -o OUT"));
    }
    if let Some(form) = options.format {
        return Ok(form);
    }
    let named = output.map(|path| form_of(path, &FORMS, "--format")).transpose()?.flatten();
    let default = if output.is_none() && stdout_is_terminal() { QueryForm::Table } else { QueryForm::Csv };
    Ok(named.unwrap_or(default))
}

/// What the engine is to do; files are arguments of their own, because their names need not be UTF-8.
fn request(options: &QueryArguments, form: QueryForm, inputs: &Inputs) -> Result<Value, Failure> {
    let (action, sql) = match (&inputs.statement, options) {
        (_, QueryArguments { list: true, .. }) => ("list", String::new()),
        (_, QueryArguments { tables: true, .. }) => ("tables", String::new()),
        (_, QueryArguments { describe: Some(table), .. }) => ("describe", table.clone()),
        (_, QueryArguments { run: Some(name), .. }) => ("run", name.clone()),
        (Statement::Sql(sql), QueryArguments { explain: true, .. }) => ("explain", sql.clone()),
        (Statement::Sql(sql), _) => ("query", sql.clone()),
        (Statement::Prompt, _) => ("prompt", String::new()),
    };
    let programs = options.symbols.sources().iter().map(|source| {
        let path = source.path.to_str().ok_or_else(|| Failure::usage("the name of a program is not UTF-8"))?;
        Ok(json!({"object": source.object, "path": path}))
    });
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "action": action,
        "sql": sql,
        "format": form.word(),
        "csv_raw": options.csv_raw,
        "schemas": inputs.schemas,
        "shown": inputs.shown,
        "input_format": options.input_format,
        "programs": programs.collect::<Result<Vec<_>, Failure>>()?,
        "demangle": options.symbols.mangling() == anytrace_core::span::Mangling::Demangled,
        "threads": threads.unwrap_or(1).min(64),
        "memory_bytes": options.memory,
        "parameters": options.parameters,
        "index": index(options, inputs)?,
        "cluster": options.cluster,
        "lifeline": action != "prompt",
        "progress": true,
        "history": history(),
    }))
}

/// Which index is used: one that is named, those beside the traces or in the folder of indexes, or none.
fn index(options: &QueryArguments, inputs: &Inputs) -> Result<Value, Failure> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| Failure::usage("the name of an index is not UTF-8"))
    };
    match &options.index.index {
        Some(_) if inputs.paths.len() > 1 => Err(Failure::usage("--index is for a single trace")),
        Some(path) => Ok(json!({"file": text(path)?})),
        None if options.index.no_index => Ok(Value::Null),
        None => Ok(json!({"folder": folder().as_deref().map(text).transpose()?})),
    }
}

/// Where the prompt keeps what was typed.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("anytrace/query-history"))
}
