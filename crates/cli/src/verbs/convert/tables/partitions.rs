//! Tables of several traces: a folder for each table, and in it one for each trace, named as Hive names partitions. DuckDB,
//! Polars, pyarrow and DataFusion read the folder of a table as one table with a further column, which says of which trace
//! a row is.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anytrace_core::table::Table;
use anytrace_core::tables::origin_column;
use anytrace_export::tables::TableOutput;

use super::source::{Source, commit, extension};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::output::{Output, remove_on_signal};

/// Writes the tables of all inputs: all files, or none.
pub(super) fn write(output: &'static TableOutput, options: &ConvertArguments) -> Result<Verdict, Failure> {
    let inputs: Vec<ConvertArguments> = [&options.file]
        .into_iter()
        .chain(&options.more)
        .map(|file| ConvertArguments { file: file.clone(), more: Vec::new(), ..options.clone() })
        .collect();
    let paths: Vec<&Path> = inputs.iter().map(|input| input.file.as_path()).collect();
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("standard input has no name to tell its rows from those of other traces"));
    }
    let names = names(&paths)?;
    // Known before anything is read, which may take long. They are closed again: there may be any number of them.
    for (input, name) in inputs.iter().zip(&names) {
        let source = Source::open(output, input)?;
        source.tables.iter().try_for_each(|table| may_write(&file_of(options, source.output, table, name), options))?;
    }
    let mut folders = Folders::default();
    let (mut files, mut worst) = (Vec::new(), Verdict::Fine);
    for (input, name) in inputs.iter().zip(&names) {
        let source = Source::open(output, input)?;
        let output = source.output;
        let mut done = source.write(&mut |table| {
            let path = file_of(options, output, table, name);
            folders.make(path.parent().unwrap_or(Path::new("")))?;
            Output::create(&path, options.output.force)
        })?;
        files.append(&mut done.files);
        worst = worst.max(done.verdict);
    }
    commit(files)?;
    folders.keep();
    Ok(worst)
}

/// `OUT/TABLE/file=NAME/part-0.parquet`.
fn file_of(options: &ConvertArguments, output: &TableOutput, table: &Table, name: &str) -> PathBuf {
    let partition = format!("{}={}", origin_column(table), escaped(name));
    options.output.output.join(table.name).join(partition).join(format!("part-0.{}", extension(output)))
}

fn may_write(path: &Path, options: &ConvertArguments) -> Result<(), Failure> {
    if path.exists() && !options.output.force {
        return Err(Failure::usage(format!("{} exists; use --force to replace it", path.display())));
    }
    Ok(())
}

/// What the column says of each trace: the name of its file, with as many of the folders before it as tell it from others
/// of that name.
fn names(paths: &[&Path]) -> Result<Vec<String>, Failure> {
    let words = |path: &&Path| -> Vec<String> {
        let normal = |part: Component<'_>| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        };
        path.components().filter_map(normal).collect()
    };
    let words: Vec<Vec<String>> = paths.iter().map(words).collect();
    let mut lengths = vec![1; paths.len()];
    loop {
        let name = |(words, length): (&Vec<String>, &usize)| words[words.len().saturating_sub(*length)..].join("/");
        let names: Vec<String> = words.iter().zip(&lengths).map(name).collect();
        let mut of_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        (0..).zip(&names).for_each(|(at, name)| of_name.entry(name).or_default().push(at));
        let Some(same) = of_name.into_values().find(|same| same.len() > 1) else { return Ok(names) };
        if same.iter().all(|at| lengths[*at] >= words[*at].len()) {
            let shown: Vec<_> = same.iter().map(|at| paths[*at].display().to_string()).collect();
            return Err(Failure::usage(format!(
                "{}: the same name twice; convert them into folders of their own",
                shown.join(" and ")
            )));
        }
        same.iter().for_each(|at| lengths[*at] += 1);
    }
}

/// A name as a part of a path: readers take `%2F` for `/`.
fn escaped(name: &str) -> String {
    // What Hive calls the partition of no value.
    let is_null = name.starts_with("__HIVE");
    let mut out = String::new();
    for (at, byte) in name.bytes().enumerate() {
        if (byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)) && !(is_null && at == 0) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Folders that were made; removed again if nothing came of it.
#[derive(Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes a folder and those that it is in.
    fn make(&mut self, path: &Path) -> Result<(), Failure> {
        let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
        for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            let failed = |error| Failure::usage(format!("cannot write {}: {error}", folder.display()));
            fs::create_dir(folder).map_err(failed)?;
            if self.0.is_empty() {
                // All others are in it, or are empty when their files are gone.
                remove_on_signal(folder);
            }
            self.0.push(folder.to_owned());
        }
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // What somebody else has put there stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Result<Vec<String>, Failure> {
        names(&paths.iter().map(Path::new).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_has_as_many_folders_as_it_takes_to_be_its_own() {
        assert_eq!(of(&["a.xray", "x/b.xray"]).ok(), Some(vec!["a.xray".to_owned(), "b.xray".to_owned()]));
        let three = of(&["/x/1/app.xray", "y/2/app.xray", "z/2/app.xray"]).ok();
        assert_eq!(three, Some(["1/app.xray", "y/2/app.xray", "z/2/app.xray"].map(str::to_owned).to_vec()));
        assert_eq!(of(&["app", "run/app"]).ok(), Some(vec!["app".to_owned(), "run/app".to_owned()]));
        for twice in [["a", "a"], ["./a", "a"], ["x/a", "/x/a"]] {
            assert!(of(&twice).is_err_and(|failure| failure.message().contains("twice")), "{twice:?}");
        }
    }

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(escaped("run 1/äpp=x.xray"), "run%201%2F%C3%A4pp%3Dx.xray");
        assert_eq!(escaped("__HIVE_DEFAULT_PARTITION__"), "%5F_HIVE_DEFAULT_PARTITION__");
        assert_eq!(escaped("a-b_c.~7"), "a-b_c.~7");
    }
}
