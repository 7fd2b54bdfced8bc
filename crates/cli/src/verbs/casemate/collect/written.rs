//! Where the trace goes.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::failure::Failure;
use crate::output::Output;
use crate::unwritable::Unwritable;
use crate::{Verdict, terminal};

/// The trace being written. That of a running program is written as its records come: whoever checks it need not wait,
/// and nothing is lost where the collector is killed.
pub(super) enum Written {
    Live(Option<(File, String)>),
    Complete(Output),
}

impl Written {
    pub(super) fn create(path: &Path, force: bool, is_live: bool) -> Result<Self, Failure> {
        if !is_live {
            let is_stdout = path.as_os_str() == "-";
            return Ok(Self::Complete(if is_stdout { Output::streaming() } else { Output::create(path, force)? }));
        }
        if path.as_os_str() == "-" {
            return Ok(Self::Live(None));
        }
        let name = path.display().to_string();
        let mut options = File::options();
        options.write(true);
        // A pipe with a name, or a device, is not replaced but written to.
        let is_new = match std::fs::metadata(path) {
            Ok(meta) => meta.is_file() && !force,
            Err(_) => true,
        };
        let opened = if is_new { options.create_new(true) } else { options.truncate(true) }.open(path);
        match opened {
            Ok(file) => Ok(Self::Live(Some((file, name)))),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::usage(format!("{name} exists; use --force to replace it")))
            }
            Err(error) => Err(Failure::usage(format!("cannot write {name}: {error}"))),
        }
    }

    /// Fails where [`Self::create`] will, because a file is there.
    pub(super) fn look(path: &Path, force: bool) -> Result<(), Failure> {
        let is_there = path.as_os_str() != "-" && std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        if is_there && !force {
            return Err(Failure::usage(format!("{} exists; use --force to replace it", path.display())));
        }
        Ok(())
    }

    /// True where records come while it is written.
    pub(super) fn is_followed(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    pub(super) fn write(&mut self, text: &[u8]) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        match self {
            Self::Live(Some((file, name))) => file.write_all(text).map_err(|error| Unwritable::wrap(name, error))?,
            Self::Live(None) => {
                let mut out = terminal::stdout();
                out.write_all(text)?;
                out.flush()?;
            }
            Self::Complete(output) => output.write_all(text)?,
        }
        Ok(())
    }

    pub(super) fn commit(self, verdict: Verdict) -> Result<Verdict, Failure> {
        match self {
            Self::Live(_) => Ok(verdict),
            Self::Complete(output) => output.commit(verdict),
        }
    }
}
