//! `anytrace apitrace gltrim`.

mod report;

use std::path::PathBuf;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{ExplainForm, GltrimOptions, Plan, plan};
use anytrace_apitrace::tools::index::Wanted;
use anytrace_apitrace::tools::index::find::Choice;
use clap::{Args, ValueEnum};

use super::edited::EditedArguments;
use super::opening::Nothing;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::one_on_stdout;
use crate::{Verdict, open, terminal};

/// `apitrace gltrim`.
#[derive(Debug, Args)]
pub(crate) struct GltrimArguments {
    /// Trace
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Keep these frames, counted from 0; see below. May be repeated
    #[arg(short, long, value_name = "FRAMESET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// Also keep all calls of these frames except those that end them. May be repeated
    #[arg(short, long, value_name = "FRAMESET", allow_hyphen_values = true)]
    setupframes: Vec<String>,
    /// Print the N frames with the most calls
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    top_calls_per_frame: usize,
    /// Keep all calls that set state
    #[arg(short, long)]
    keep_all_states: bool,
    /// Print to standard output why each call is kept
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    explain: Option<Explain>,
    #[command(flatten)]
    edited: EditedArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// How reasons are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Explain {
    /// One line per call
    Text,
    /// One document
    Json,
}

pub(crate) fn run(options: &GltrimArguments) -> Result<Verdict, Failure> {
    let set = |texts: &[String], option: &str| -> Result<Option<CallSet>, Failure> {
        if texts.is_empty() { Ok(None) } else { super::call_sets::parse_call_set(option, texts).map(Some) }
    };
    let (frames, setup) = (set(&options.frames, "--frames")?, set(&options.setupframes, "--setupframes")?);
    if frames.is_none() && options.top_calls_per_frame == 0 {
        return Err(Failure::usage("use --frames to select the frames to keep"));
    }
    one_on_stdout(&[
        options.edited.is_stdout().then_some("the trace"),
        // Reasons and frames go together: in one JSON document, or as text.
        if options.explain.is_some() {
            Some("the reasons of --explain")
        } else {
            (options.top_calls_per_frame > 0).then_some("the frames of --top-calls-per-frame")
        },
    ])?;
    if open::is_read_once(&options.file) {
        return Err(Failure::usage("the trace is read twice: it must be a file"));
    }
    let how = GltrimOptions {
        frames,
        setup,
        keeps_states: options.keep_all_states,
        explains: options.explain.is_some(),
        top: options.top_calls_per_frame,
    };
    let destination = how.frames.is_some().then(|| options.edited.create(&options.file, "-trim.trace")).transpose()?;
    let (mut plan, read, lost) = match make_plan(options, &how)? {
        Ok(made) => made,
        Err(nothing) => return without_calls(options, nothing.lost),
    };
    let mut out = terminal::stdout();
    let is_json = options.explain == Some(Explain::Json);
    if how.top > 0 && !is_json {
        report::top(&plan, &mut out)?;
    }
    let Some(destination) = destination else {
        if is_json {
            plan.explain(ExplainForm::Json, lost, &mut out).map_err(|error| Failure::of("standard output", &error))?;
        }
        return Ok(read);
    };
    if plan.wanted == 0 {
        let there = plan.frames;
        let message = format!(
            "{}: none of the frames exist: the trace has {there} frames; nothing was written",
            options.file.display()
        );
        if is_json {
            report::nothing(&message, lost, &mut out)?;
        }
        return Err(if read == Verdict::Fine { Failure::usage(message) } else { Failure::breach(message) });
    }
    if options.explain.is_some() {
        let form = if is_json { ExplainForm::Json } else { ExplainForm::Text };
        plan.explain(form, lost, &mut out).map_err(|error| Failure::of("standard output", &error))?;
    }
    drop(out);
    // Nothing may follow a JSON document.
    let done = if is_json { "" } else { "Trimmed" };
    let all = (&Choice::None, &Wanted::default());
    let written = options.edited.fill(destination, &options.file, &options.input, all, done, |reader, out, _| {
        let outcome = plan.write(reader, options.edited.container(), options.edited.level(), out)?;
        Ok(report::noted(outcome, &plan))
    })?;
    Ok(if read == Verdict::Fine { written } else { read })
}

/// Decides what is kept; damage is reported here.
fn make_plan(options: &GltrimArguments, how: &GltrimOptions) -> Result<Result<(Plan, Verdict, u64), Nothing>, Failure> {
    let mut opened = match super::opening::open_reader(&options.file, &options.input)? {
        Ok(opened) => opened,
        Err(nothing) => return Ok(Err(nothing)),
    };
    let plan =
        plan(&mut opened.reader, how, &mut opened.reporter).map_err(|error| Failure::of(&opened.name, &error))?;
    Ok(Ok((plan, opened.verdict()?, opened.lost())))
}

/// The file has no trace: nothing is written.
fn without_calls(options: &GltrimArguments, lost: u64) -> Result<Verdict, Failure> {
    let message = format!("{}: no calls; nothing was written", options.file.display());
    if options.explain == Some(Explain::Json) {
        report::nothing(&message, lost, &mut crate::terminal::stdout().json(true))?;
    }
    Err(Failure::breach(message))
}
