//! `anytrace man`: manual pages.

use std::io::Write;
use std::path::Path;

use clap_mangen::Man;

use crate::Verdict;
use crate::arguments::ManArguments;
use crate::command;
use crate::failure::Failure;
use crate::output::{Output, commit_all, remove_on_signal};
use crate::terminal;

pub(crate) fn run(options: &ManArguments) -> Result<Verdict, Failure> {
    let command = command::command();
    match &options.dir {
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            terminal::stdout().write_all(&page)?;
        }
        Some(folder) => {
            write_all(command, folder, options.force)?;
        }
    }
    Ok(Verdict::Fine)
}

/// Writes all pages, or none.
fn write_all(command: clap::Command, folder: &Path, may_replace: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| write_failed(folder, &error);
    let staged = tempfile::tempdir().map_err(failed)?;
    remove_on_signal(staged.path());
    clap_mangen::generate_to(command.disable_help_subcommand(true), staged.path()).map_err(failed)?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut pages = Vec::new();
    for page in std::fs::read_dir(staged.path()).map_err(failed)? {
        let page = page.map_err(failed)?;
        let mut output = Output::create(&folder.join(page.file_name()), may_replace)?;
        output.write_all(&std::fs::read(page.path()).map_err(failed)?)?;
        pages.push(output.set_aside()?);
    }
    commit_all(pages)
}

fn write_failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}
