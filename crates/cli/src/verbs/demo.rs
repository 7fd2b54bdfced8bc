//! `anytrace demo`: traces of small real programs to try the verbs on, one of them shown at once.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anytrace_core::text::printable;
use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use crate::shell::{become_program, quoted};
use crate::{Verdict, terminal};

/// The traces; `examples/README.md` has their provenance.
const TRACES: [(&str, &[u8]); 3] = [
    ("missing-tlbi.casemate", include_bytes!("../../demo/missing-tlbi.casemate")),
    ("particles.cacheray.gz", include_bytes!("../../demo/particles.cacheray.gz")),
    ("threads.yaml.gz", include_bytes!("../../demo/threads.yaml.gz")),
];

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Folder to write the traces to; it is made if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = "anytrace-demo")]
    output: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Only write the traces, and do not show one in the browser
    #[arg(long)]
    no_open: bool,
}

pub(crate) fn run(options: &DemoArguments) -> Result<Verdict, Failure> {
    let folder = &options.output;
    let failed = |error| Failure::usage(format!("cannot make {}: {error}", printable(&folder.display().to_string())));
    fs::create_dir_all(folder).map_err(failed)?;
    let paths: Vec<_> = TRACES.iter().map(|(name, _)| folder.join(name)).collect();
    for (path, (_, bytes)) in paths.iter().zip(TRACES) {
        let mut output = Output::create(path, options.force)?;
        output.write_all(bytes)?;
        output.commit(Verdict::Fine)?;
    }
    let verdict = highlights(&paths)?;
    let (threads, particles) = (quoted(&paths[2]), quoted(&paths[1]));
    terminal::put(&format!(
        "\nMore to try:\n  anytrace view {threads}\n  anytrace timeline {threads}\n  anytrace flame {threads} -o flame.svg\n  \
         anytrace memory heatmap {particles} -o heatmap.svg\n"
    ))?;
    // Where nobody looks, a server would only wait.
    if options.no_open || !terminal::stdout_is_terminal() || !super::view::has_display() {
        return Ok(verdict);
    }
    terminal::put("\nCtrl-C ends the picture in the browser.\n")?;
    terminal::stdout().flush()?;
    let failed = |error| Failure::usage(format!("cannot show {threads}: {error}"));
    let mut view = Command::new(std::env::current_exe().map_err(failed)?);
    become_program(view.args(["view", "--"]).arg(&paths[2])).map_err(failed)?;
    Ok(verdict)
}

/// Prints the highlights of these traces, as the verb does without options.
fn highlights(paths: &[PathBuf]) -> Result<Verdict, Failure> {
    let words = ["anytrace", "highlights", "--"].map(OsString::from);
    let given: Vec<_> = words.into_iter().chain(paths.iter().map(|path| path.clone().into_os_string())).collect();
    let mut arguments = crate::parse(&given, &mut false).map_err(|error| Failure::usage(error.to_string()))?;
    crate::run(&mut arguments)
}
