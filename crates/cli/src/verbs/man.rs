//! `anytrace man`: manual pages.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::Verdict;
use crate::arguments::{Arguments, ManArguments};
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(options: &ManArguments) -> Result<Verdict, Failure> {
    let command = Arguments::command();
    match &options.dir {
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            terminal::stdout().write_all(&page)?;
        }
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| write_failed(folder, &error))?;
            if !options.force && folder.join("anytrace.1").exists() {
                return Err(Failure::usage(format!("{} has the pages; --force replaces them", folder.display())));
            }
            clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
                .map_err(|error| write_failed(folder, &error))?;
        }
    }
    Ok(Verdict::Fine)
}

fn write_failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}
