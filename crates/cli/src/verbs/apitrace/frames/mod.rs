//! `anytrace apitrace frames`: a page with all frames, small, and what each costs.

mod page;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_core::text;
use anytrace_replay::{Replayed, Strip};
use clap::Args;

use super::replay::Job;
use super::replay_options::RunArguments;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, terminal};
use page::{Page, Pictures};

/// `apitrace frames`.
#[derive(Debug, Args)]
pub(crate) struct FramesArguments {
    /// Trace
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// The page: PAGE.html has everything in it; otherwise a folder for index.html and the pictures
    #[arg(short, long, value_name = "PAGE.html|DIR")]
    output: PathBuf,
    /// Pixels of the longer side of a picture
    #[arg(long, value_name = "PIXELS", default_value_t = 240, value_parser = clap::value_parser!(u32).range(16..=4096))]
    side: u32,
    /// Pictures in the page: of more frames every second has one, or every fourth, and so on
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pictures: u32,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &FramesArguments) -> Result<Verdict, Failure> {
    let is_page = options.output == Path::new("-")
        || options.output.extension().is_some_and(|extension| extension == "html" || extension == "htm");
    let index = if is_page { options.output.clone() } else { options.output.join("index.html") };
    let force = options.run.force;
    if index.exists() && !force {
        return Err(Failure::usage(format!("{} exists; use --force to replace it", index.display())));
    }
    let mut job = Job::new(&options.file, &options.input, &options.run);
    job.options.strip = Some(Strip { side: options.side, most: options.pictures as usize });
    job.run_with(&|name, done, verdict| {
        if done.strip.is_empty() {
            return Err(Failure::breach(format!("{name}: no frame ended; nothing was written")));
        }
        if !is_page {
            let made = std::fs::create_dir_all(&options.output);
            made.map_err(|error| Failure::usage(format!("cannot make {}: {error}", options.output.display())))?;
            write_pictures(&options.output, done, force)?;
        }
        let pictures = if is_page { Pictures::Inside } else { Pictures::Beside };
        let page = Page { name, done, pictures }.html();
        let mut out = Output::create(&index, force)?;
        out.write_all(page.as_bytes()).map_err(|error| Failure::output(&error))?;
        out.commit(verdict)?;
        if options.output != Path::new("-") {
            let shown = text::printable(&index.display().to_string());
            writeln!(terminal::stdout(), "Wrote {shown}: {} frames", text::grouped(done.strip.len() as u128))?;
        }
        Ok(())
    })
}

fn write_pictures(folder: &Path, done: &Replayed, force: bool) -> Result<(), Failure> {
    for frame in &done.strip {
        let Some((_, _, bytes)) = &frame.picture else { continue };
        let mut out = Output::create(&folder.join(page::file_name(frame.number)), force)?;
        out.write_all(bytes).map_err(|error| Failure::output(&error))?;
        out.commit(Verdict::Fine)?;
    }
    Ok(())
}
