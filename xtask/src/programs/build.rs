//! Finds sources and builds programs of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Bench;
use super::list::Program;
use crate::shell::{cargo, output, root};

/// The folders of the crates that have the sources, by name.
pub(super) struct Sources(HashMap<String, PathBuf>);

impl Sources {
    /// Asks cargo, which fetches what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let manifest = root().join("xtask/programs/Cargo.toml");
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]).arg(manifest);
        let found: Value = serde_json::from_slice(&output(&mut metadata)?).map_err(|error| error.to_string())?;
        let packages = found["packages"].as_array().into_iter().flatten();
        let folder = |one: &Value| Some(Path::new(one["manifest_path"].as_str()?).parent()?.to_owned());
        Ok(Self(packages.filter_map(|one| Some((one["name"].as_str()?.to_owned(), folder(one)?))).collect()))
    }

    pub(super) fn of(&self, program: &Program) -> Result<&Path, String> {
        self.0.get(program.package).map(PathBuf::as_path).ok_or_else(|| format!("no crate {}", program.package))
    }
}

impl Bench<'_> {
    /// Builds the program, as `recorded` and as `native`.
    pub(super) fn build(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        let files = files(self.program, self.sources.of(self.program)?, self.program.name)?;
        let is_cxx = files.iter().any(|file| file.extension().is_some_and(|extension| extension == "cc"));
        let compiler = if is_cxx { "g++" } else { "gcc" };
        let mut recorded = self.anytrace();
        recorded.args(["cacheray", "cc", "--", compiler]);
        std::thread::scope(|scope| {
            let native = scope.spawn(|| self.compile(Command::new(compiler), &files, "native"));
            let recorded = self.compile(recorded, &files, "recorded");
            native.join().unwrap_or_else(|_| Err("the compiler was lost".to_owned())).and(recorded)
        })
    }

    fn compile(&self, mut command: Command, files: &[PathBuf], name: &str) -> Result<(), String> {
        let sources = self.sources.of(self.program)?;
        command.current_dir(&self.folder).args(["-g", "-O1", "-w"]).args(self.program.options);
        command.args(self.program.headers.iter().map(|folder| format!("-I{}", sources.join(folder).display())));
        command.args(files).args(["-o", name, "-lm", "-lpthread", "-ldl"]);
        output(&mut command).map(drop)
    }
}

/// The program of ours called `own`, if there is one, and the sources, which are below a folder.
pub(super) fn files(program: &Program, sources: &Path, own: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("xtask/programs");
    let named = ["c", "cc"].map(|extension| folder.join(own).with_extension(extension));
    let mut files: Vec<PathBuf> = named.into_iter().filter(|file| file.exists()).collect();
    let is_compiled = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        (name.ends_with(".c") || name.ends_with(".cc")) && !program.but.iter().any(|end| name.ends_with(end))
    };
    for part in program.parts {
        let place = sources.join(part);
        if place.is_file() {
            files.push(place);
            continue;
        }
        let entries = std::fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_compiled));
    }
    files.sort();
    Ok(files)
}
