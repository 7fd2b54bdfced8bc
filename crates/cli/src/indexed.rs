//! The index of a trace, for verbs that can begin late in it or read it in parts.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_core::index::{self, Choice, Index, Lookup};
use anytrace_core::{DumpOptions, Format, Input, InputOptions, Outcome, Plan, Target, text};

use crate::arguments::{IndexUseArguments, InputArguments};
use crate::failure::Failure;
use crate::report::Reporter;
use crate::{open, paint};

/// The variable that names the folder of indexes.
const FOLDER: &str = "ANYTRACE_INDEX_DIR";

/// Most bytes of a trace that a thread reads as one part, where there are several threads.
const PART_BYTES: u64 = 1 << 20;

/// The folder of indexes, where it is not that of the trace.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The index of a trace, where there is one that fits. A note says why another is not used.
///
/// # Errors
/// Where an index that was named does not exist or cannot be read.
pub(crate) fn find(
    file: &Path,
    format: &dyn Format,
    input: &InputArguments,
    wanted: &IndexUseArguments,
) -> Result<Option<Index>, Failure> {
    let choice = match &wanted.index {
        _ if wanted.no_index => return Ok(None),
        Some(path) => Choice::File(path.clone()),
        None => Choice::Auto(folder()),
    };
    if let Some(why) = obstacle(file, format, input)? {
        if let Choice::File(path) = choice {
            note(file, &path, why);
        }
        return Ok(None);
    }
    match index::find(file, format.name(), &choice).map_err(|error| Failure::bare(&error))? {
        Lookup::Found(index) => Ok(Some(*index)),
        Lookup::Nothing => Ok(None),
        Lookup::Unused(path, why) => {
            note(file, &path, &why);
            Ok(None)
        }
    }
}

/// Why no index can be used for what is asked.
fn obstacle(file: &Path, format: &dyn Format, input: &InputArguments) -> Result<Option<&'static str>, Failure> {
    let is_other = input.endian.is_some() || input.record_limit.is_some() || !input.own.0.is_empty();
    Ok(if open::is_read_once(file) {
        Some("the trace is not a file")
    } else if input.no_mmap {
        Some("--no-mmap reads the trace from its start")
    } else if is_other {
        Some("it describes the trace as it is read without options that change what a record is")
    } else if !index::is_whole(format, file).map_err(|error| Failure::bare(&error))? {
        Some("it knows nothing of what was not written yet")
    } else {
        None
    })
}

fn note(file: &Path, index: &Path, why: &str) {
    let (file, index) = (file.display().to_string(), index.display().to_string());
    let (file, index) = (text::printable(&file), text::printable(&index));
    paint::complain("note", format!("{file}: the index {index} is not used: {}", text::printable(why)));
}

/// A trace that is read in parts.
pub(crate) struct Parts<'a> {
    pub(crate) index: Index,
    pub(crate) format: &'static dyn Format,
    pub(crate) file: &'a Path,
    pub(crate) input: &'a InputArguments,
}

impl Parts<'_> {
    /// Trims to what is selected; `None`, and nothing is written, where the trace must be read at once.
    pub(crate) fn trim(
        &self,
        plan: &mut Plan,
        output: &mut dyn Target,
        reporter: &mut Reporter,
    ) -> Result<Option<Outcome>, Failure> {
        let failed = |error| Failure::of(&self.file.display().to_string(), &error);
        let Plan::Trim(selection, _) = plan else { return Ok(None) };
        if self.index.chunks.len() < 2 || self.index.chunks.iter().any(|chunk| chunk.is_damaged) {
            return Ok(None);
        }
        // What is wrong with the selection is reported where the trace is read at once.
        let Ok(Some(needs)) = self.format.trim_needs(selection, &self.index) else { return Ok(None) };
        selection.start = needs.start;
        let reopen = || Input::open(self.file, InputOptions::default());
        let (options, parts) = (open::open_options(self.input), self.index.needed(&needs, u64::MAX));
        let outcome = index::trim(self.format, &reopen, &options, plan, parts, output, reporter).map_err(failed)?;
        // Those that were left out are in the trace too.
        Ok(Some(Outcome { records_read: self.index.rows(), ..outcome }))
    }

    /// Dumps what is selected; false, and nothing is written, where the trace must be read at once.
    pub(crate) fn dump(
        &self,
        dump: &mut DumpOptions,
        out: &mut dyn Write,
        reporter: &mut Reporter,
    ) -> Result<bool, Failure> {
        let name = self.file.display().to_string();
        let options = open::open_options(self.input);
        let reopen = || Input::open(self.file, InputOptions::default());
        if self.index.chunks.len() < 2 || options.threads < 2 && dump.selection.is_all() {
            return Ok(false);
        }
        let needs = self.format.dump_needs(dump, &self.index, &reopen, &options);
        let Ok(Some(needs)) = needs else { return Ok(false) };
        dump.selection.start = needs.start;
        let parts = self.index.needed(&needs, if options.threads < 2 { u64::MAX } else { PART_BYTES });
        let dumped = index::dump(self.format, &reopen, &options, dump, parts, out, reporter);
        dumped.map(|()| true).map_err(|error| Failure::of(&name, &error))
    }
}
