//! The files of a shape, and what is made of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::jobs::Family;
use super::others::PNG;
use super::{Shape, clear};

/// The files of one size.
pub(super) struct Files {
    file: PathBuf,
    /// The same shape, a quarter shorter.
    other: PathBuf,
    /// JSON lines of any format, and of calls.
    lines: PathBuf,
    calls: PathBuf,
}

/// The files of a shape.
pub(super) struct Inputs {
    family: Family,
    pub(super) of_sizes: Vec<Files>,
    /// What a verb writes.
    pub(super) out: PathBuf,
}

impl Inputs {
    /// Makes those that some verb names, in three sizes.
    pub(super) fn make(
        shape: &Shape,
        count: u64,
        binary: &Path,
        folder: &Path,
        verbs: &[String],
    ) -> Result<Self, String> {
        let wants = |word: &str| verbs.iter().any(|verb| verb.split(' ').any(|one| one == word));
        let (extension, family) = (shape.family.extension(), shape.family);
        let mut of_sizes = Vec::new();
        for times in [1, 2, 4] {
            let path = |name: &str, extension: &str| folder.join(format!("{name}{times}.{extension}"));
            let files = Files {
                file: path("", extension),
                other: path("other-", extension),
                lines: path("", "jsonl"),
                calls: path("calls-", "jsonl"),
            };
            put(family, &files.file, &(shape.make)(count * times))?;
            if wants("OTHER") {
                put(family, &files.other, &(shape.make)(count * times * 3 / 4))?;
            }
            clear(&files.lines);
            if wants("LINES") {
                let words = ["convert", "--force", "--to", "jsonl", "-o"];
                run(Command::new(binary).args(words).args([&files.lines, &files.file]).stdout(Stdio::null()))?;
            }
            clear(&files.calls);
            if wants("CALLS") {
                let lines = std::fs::File::create(&files.calls).map_err(|error| error.to_string())?;
                run(Command::new(binary).args(["apitrace", "jsonl"]).arg(&files.file).stdout(lines))?;
            }
            of_sizes.push(files);
        }
        Ok(Self { family, of_sizes, out: folder.join("out") })
    }

    /// The words of a verb for one size.
    pub(super) fn words(&self, verb: &str, files: &Files) -> Vec<String> {
        let word = |word: &str| match word {
            "FILE" => files.file.display().to_string(),
            "OTHER" => files.other.display().to_string(),
            "LINES" => files.lines.display().to_string(),
            "CALLS" => files.calls.display().to_string(),
            "OUT" => self.out.display().to_string(),
            "FORM" => self.family.form().to_owned(),
            other => other.to_owned(),
        };
        verb.split_whitespace().map(word).collect()
    }
}

/// Runs a command whose exit code says of a broken shape that it is one.
fn run(command: &mut Command) -> Result<(), String> {
    command.stdin(Stdio::null()).stderr(Stdio::null()).status().map(drop).map_err(|error| error.to_string())
}

/// Writes a file, or a folder of pictures.
fn put(family: Family, path: &Path, bytes: &[u8]) -> Result<(), String> {
    clear(path);
    let put = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).map_err(|error| error.to_string());
    if family != Family::Pictures {
        return put(path, bytes);
    }
    std::fs::create_dir(path).map_err(|error| error.to_string())?;
    let begins = |at: &usize| bytes[*at..].starts_with(PNG);
    let starts: Vec<usize> = (0..bytes.len()).filter(begins).chain([bytes.len()]).collect();
    for (number, ends) in starts.windows(2).enumerate() {
        put(&path.join(format!("{number:06}.png")), &bytes[ends[0]..ends[1]])?;
    }
    Ok(())
}
