//! `anytrace apitrace diff-state`.

use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::diff_state::{Node, StateOptions, diff_state, parse, write_json, write_text};
use clap::Args;

use crate::Verdict;
use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::terminal;

/// `apitrace diff-state`.
#[derive(Debug, Args)]
pub(crate) struct DiffStateArguments {
    /// The first state; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second state
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Ignore entries present only in B
    #[arg(long)]
    ignore_added: bool,
    /// Also compare images
    #[arg(long)]
    keep_images: bool,
    /// How differences are printed
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
}

pub(crate) fn run(options: &DiffStateArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin([options.a.as_path(), options.b.as_path()].into_iter())?;
    let a = read(&options.a, options.keep_images)?;
    let b = read(&options.b, options.keep_images)?;
    let how = StateOptions { ignores_added: options.ignore_added };
    let changes = diff_state(&a, &b, how);
    let mut out = BufWriter::new(terminal::stdout().json(options.format == ResultForm::Json));
    let names = [&options.a, &options.b].map(|path| path.display().to_string());
    match options.format {
        ResultForm::Text => write_text(&a, &b, how, &mut out),
        ResultForm::Json => write_json(&changes, [&names[0], &names[1]], &mut out),
    }
    .map_err(|error| Failure::of(&names[0], &error))?;
    out.flush()?;
    Ok(if changes.is_empty() { Verdict::Fine } else { Verdict::Breach })
}

fn read(path: &Path, keeps_images: bool) -> Result<Node, Failure> {
    let name = path.display().to_string();
    let mut text = String::new();
    let result = if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    result.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    parse(&text, keeps_images).map_err(|error| Failure::usage(format!("{name}: {error}")))
}
