//! `anytrace casemate walk`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::machine::unusual;
use anytrace_casemate::tools::walk::{Tree, entry_json, entry_text};
use anytrace_casemate::tools::{At, Checkpoints};
use clap::Args;

use super::options::RuleArguments;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, open, terminal};

/// `casemate walk`. The trace is read into memory.
#[derive(Debug, Args)]
pub(crate) struct WalkArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// After this record: its number from 0, or id:N [default: the last]
    #[arg(long, value_name = "RECORD", value_parser = super::record)]
    at: Option<At>,
    /// Base address of the root; `casemate state` lists them
    #[arg(long, value_name = "ADDR", value_parser = super::address)]
    root: u64,
    /// Translate this input address [default: print the complete tree]
    #[arg(long, value_name = "ADDR", value_parser = super::address)]
    address: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &WalkArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let failed = |error: anytrace_core::Error| Failure::of(&name, &error);
    let mut damage = super::damage(&options.file, &options.input);
    let bytes = super::read_complete(&options.file, &options.input, &mut damage)?;
    let open = open::open_options(&options.input);
    let points = Checkpoints::new(&bytes, &open, options.rules.model()?, &mut damage).map_err(failed)?;
    damage.print_rest()?;
    let state = points.state(options.at.unwrap_or(At::End)).map_err(failed)?;
    let tree = Tree::new(&state.checker, options.root).map_err(failed)?;
    let entries = match options.address {
        Some(address) => tree.walk(address),
        None => tree.entries(),
    };
    let output = options.address.and_then(|address| tree.translate(address));
    if options.format == ResultForm::Json {
        let value = serde_json::json!({
            "version": 1,
            "index": state.at.as_ref().map(|at| at.index),
            "root": format!("{:#x}", options.root),
            "stage": tree.root().stage,
            "id": tree.root().id,
            "granule_bytes": tree.root().format.entry_bytes(3),
            "address": options.address.map(|address| format!("{address:#x}")),
            "output": output.map(|output| format!("{output:#x}")),
            "entries": entries.iter().map(entry_json).collect::<Vec<_>>(),
        });
        print_json(vec![value], false)?;
        return Ok(damage.verdict());
    }
    let mut text = String::new();
    if let Some(at) = &state.at {
        text.push_str(&format!("after {}\n", at.words()));
    }
    let root = tree.root();
    text.push_str(&format!("root {:#x}, stage {}, id {}{}\n", options.root, root.stage, root.id, unusual(root)));
    entries.iter().for_each(|entry| entry_text(entry, tree.root().level, &mut text));
    if let Some(address) = options.address {
        let output = output.map_or("nothing".to_owned(), |output| format!("{output:#x}"));
        text.push_str(&format!("{address:#x} maps to {output}\n"));
    }
    terminal::stdout().write_all(text.as_bytes())?;
    Ok(damage.verdict())
}
