//! What the verbs that write an edited trace share: where it goes and in which container.

mod made_up;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::index::Wanted;
use anytrace_apitrace::tools::index::find::Choice;
use anytrace_apitrace::{Apitrace, Container, Reader};
use anytrace_core::{Error, Outcome, Sink, Target};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, terminal, verbs};

/// A trace to be written. The path is free, or its file may be replaced.
pub(crate) struct Destination {
    path: PathBuf,
    output: Output,
}

/// Where the edited trace goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EditedArguments {
    /// Trace to write, written completely or not at all; - is standard output [default: see below]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Container to write, if not that of the input
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Container::ALL.map(|(_, name)| name)))]
    container: Option<String>,
    /// Compression level of the container
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
}

impl EditedArguments {
    /// The container to write; `None`: that of the input.
    pub(crate) fn container(&self) -> Option<Container> {
        self.container.as_deref().and_then(Container::from_name)
    }

    /// The level of compression; `None`: the container's usual one.
    pub(crate) fn level(&self) -> Option<i32> {
        self.level
    }

    /// True when the trace goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Edits a trace: `edit` writes it, `done` is the word for it (empty: where it went is not printed), `suffix` what a
    /// name made up ends with.
    pub(crate) fn write(
        &self,
        file: &Path,
        input: &InputArguments,
        words: (&str, &str),
        edit: impl FnOnce(Reader, &mut dyn Target, &mut dyn Sink) -> Result<Outcome, Error>,
    ) -> Result<Verdict, Failure> {
        self.write_late(file, input, (&Choice::None, &Wanted::default()), words, edit)
    }

    /// Edits a part of a trace that an index may find; otherwise as [`Self::write`].
    pub(crate) fn write_late(
        &self,
        file: &Path,
        input: &InputArguments,
        (choice, wanted): (&Choice, &Wanted),
        (done, suffix): (&str, &str),
        edit: impl FnOnce(Reader, &mut dyn Target, &mut dyn Sink) -> Result<Outcome, Error>,
    ) -> Result<Verdict, Failure> {
        self.fill(self.create(file, suffix)?, file, input, (choice, wanted), done, edit)
    }

    /// Makes sure that the trace can be put where it is wanted: before a verb reads much, or prints. `suffix` is what a
    /// name made up ends with.
    pub(crate) fn create(&self, file: &Path, suffix: &str) -> Result<Destination, Failure> {
        let path = match &self.output {
            Some(path) => path.clone(),
            None => made_up::name(file, suffix)?,
        };
        let output = Output::create(&path, self.force)?;
        Ok(Destination { path, output })
    }

    /// Edits a trace into a destination; otherwise as [`Self::write_late`].
    pub(crate) fn fill(
        &self,
        destination: Destination,
        file: &Path,
        input: &InputArguments,
        (choice, wanted): (&Choice, &Wanted),
        done: &str,
        edit: impl FnOnce(Reader, &mut dyn Target, &mut dyn Sink) -> Result<Outcome, Error>,
    ) -> Result<Verdict, Failure> {
        let Destination { path, mut output } = destination;
        let opened = super::opening::open_reader_late(file, input, choice, wanted);
        let super::opening::Opened { reader, mut reporter, name, progress, .. } = match opened? {
            Ok(opened) => opened,
            Err(_) => {
                let message = format!("{}: no calls; nothing was written", file.display());
                return Err(Failure::breach(message));
            }
        };
        let outcome = edit(reader, &mut output, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
        drop(progress);
        reporter.print_rest()?;
        // A container without a stream is not a trace.
        if outcome.records_read == 0 && reporter.verdict() == Verdict::Breach {
            return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
        }
        crate::written::must_open(&mut output, &Apitrace, outcome.records_written, (file, &path), input)?;
        let verdict = output.commit(reporter.verdict())?;
        if !outcome.notes.is_empty() {
            verbs::repair::print_outcome(&name, &outcome);
        }
        if path.as_os_str() != "-" && !done.is_empty() {
            let path = path.display().to_string();
            let path = anytrace_core::text::printable(&path);
            writeln!(terminal::stdout(), "{done} trace is available as {path}")?;
        }
        Ok(verdict)
    }
}
