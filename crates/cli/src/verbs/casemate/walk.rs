//! `anytrace casemate walk`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_casemate::tools::machine::unusual;
use anytrace_casemate::tools::walk::{Tree, entry_json, entry_text};
use anytrace_casemate::tools::{At, Checkpoints, StateAt, walk_diff};
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
    /// Print what changed between the states after two records, each a number from 0 or id:N
    #[arg(long, value_name = "FROM..TO", value_parser = super::records, conflicts_with = "at")]
    diff: Option<(At, At)>,
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
    if let Some((from, to)) = options.diff {
        diff(options, [points.state(from), points.state(to)].map(|state| state.map_err(failed)))?;
        return Ok(damage.verdict());
    }
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

/// `--diff`.
fn diff(options: &WalkArguments, states: [Result<StateAt, Failure>; 2]) -> Result<(), Failure> {
    let [before, after] = states;
    let (before, after) = (before?, after?);
    let name = options.file.display().to_string();
    let diff = walk_diff(&before, &after, options.root, options.address);
    let diff = diff.map_err(|error| Failure::of(&name, &error))?;
    let sides = [(&before, &diff.root_before), (&after, &diff.root_after)];
    if options.format == ResultForm::Json {
        let [from, to] = [0, 1].map(|side| {
            let ((state, root), output) = (sides[side], diff.outputs[side]);
            let at = state.at.as_ref();
            serde_json::json!({
                "index": at.map(|at| at.index),
                "record_id": at.map(|at| at.id),
                "stage": root.as_ref().map(|root| root.stage),
                "id": root.as_ref().map(|root| root.id),
                "output": output.map(|output| format!("{output:#x}")),
            })
        });
        let value = serde_json::json!({
            "version": 1,
            "root": format!("{:#x}", options.root),
            "address": options.address.map(|address| format!("{address:#x}")),
            "from": from,
            "to": to,
            "changes": diff.json(),
        });
        return print_json(vec![value], false);
    }
    let mut text = String::new();
    for (word, (state, root)) in ["from", "to"].into_iter().zip(sides) {
        let at = state.at.as_ref().map_or_else(|| "the start".to_owned(), |at| at.words());
        let root = root.as_ref().map_or_else(
            || "not a root".to_owned(),
            |root| format!("stage {}, id {}{}", root.stage, root.id, unusual(root)),
        );
        text.push_str(&format!("{word} {at}: {:#x}, {root}\n", options.root));
    }
    text.push_str(&diff.text(options.address));
    terminal::stdout().write_all(text.as_bytes())?;
    Ok(())
}
