//! Tables of a trace as files of a folder: one pass over the trace for each.

use std::fs;
use std::path::{Path, PathBuf};

use anytrace_core::table::Table;
use anytrace_export::tables::{TableOutput, by_name};

use super::partitions;
use super::source::{Source, commit, extension};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::output::Output;

/// Tables that were asked for as files of a folder.
pub(in crate::verbs::convert) struct IntoFolder(&'static TableOutput);

impl IntoFolder {
    /// An output of tables into a folder: one that exists, has a `/` at its end, or that `--all-tables` makes one.
    pub(in crate::verbs::convert) fn chosen(options: &ConvertArguments) -> Result<Option<Self>, Failure> {
        let is_asked_for = options.table_output.all_tables;
        let has_more = !options.more.is_empty();
        let path = options.output.output.as_path();
        let is_folder = || path.to_string_lossy().ends_with(std::path::is_separator) || path.is_dir();
        match options.to.as_deref().and_then(by_name) {
            Some(_) if is_asked_for && path.as_os_str() == "-" => {
                Err(Failure::usage("--all-tables writes several files: use -o to name a folder"))
            }
            Some(_) if has_more && path.as_os_str() == "-" => {
                Err(Failure::usage("tables of several traces are several files: use -o to name a folder"))
            }
            Some(output) if is_asked_for || has_more || is_folder() => Ok(Some(Self(output))),
            None if is_asked_for => Err(Failure::usage("--all-tables applies only to tables: --to arrow, parquet")),
            None if has_more => Err(Failure::usage(
                "several traces can be converted to timelines (--to chrome, perfetto and the like) and tables (--to \
                     arrow, parquet)",
            )),
            _ => Ok(None),
        }
    }

    /// Writes them: all files, or none.
    pub(in crate::verbs::convert) fn write(self, options: &ConvertArguments) -> Result<Verdict, Failure> {
        if !options.more.is_empty() {
            return partitions::write(self.0, options);
        }
        let source = Source::open(self.0, options)?;
        let folder = Folder::open(&options.output.output)?;
        let mut files = folder.files(&source.tables, source.output, options.output.force)?.into_iter();
        let done = source.write(&mut |_| files.next().map_or_else(|| Err(Failure::usage("no such table")), Ok))?;
        commit(done.files)?;
        folder.keep();
        Ok(done.verdict)
    }
}

/// The folder that files are written to; removed again if it was made and nothing came of it.
struct Folder {
    path: PathBuf,
    is_new: bool,
}

impl Folder {
    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        let is_new = !path.is_dir();
        if is_new {
            fs::create_dir(path).map_err(failed)?;
        }
        Ok(Self { path: path.to_owned(), is_new })
    }

    /// A file for each table. That they can be written is known before the input is read, which may take long.
    fn files(&self, tables: &[Table], output: &TableOutput, force: bool) -> Result<Vec<Output>, Failure> {
        let extension = extension(output);
        let file = |table: &Table| Output::create(&self.path.join(format!("{}.{extension}", table.name)), force);
        tables.iter().map(file).collect()
    }

    fn keep(mut self) {
        self.is_new = false;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_new {
            // What somebody else has put there stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
