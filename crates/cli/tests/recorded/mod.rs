//! Programs in C that are built for recording, and what verbs make of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the program `app`, from `app.c`.
pub(crate) struct Bench(tempfile::TempDir);

impl Bench {
    pub(crate) fn new(source: &str) -> Self {
        Self::of("gcc", "app.c", source)
    }

    /// The program of a file, by a compiler.
    pub(crate) fn of(compiler: &str, file: &str, source: &str) -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let bench = Self(tempfile::tempdir_in(tmp).unwrap());
        let (exe, alone) = (env!("CARGO_BIN_EXE_anytrace"), bench.path("anytrace"));
        // A recorder beside the program may be an older one.
        if std::fs::hard_link(exe, &alone).is_err() {
            std::fs::copy(exe, &alone).unwrap();
        }
        std::fs::write(bench.path(file), source).unwrap();
        bench.run(&["cacheray", "cc", "--", compiler, "-g", "-O1", "-o", "app", file], 0);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `anytrace` in the folder.
    pub(crate) fn run(&self, arguments: &[&str], code: i32) -> Output {
        // Shared by the tests and by later runs: a version of the recorder is built once.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cacheray-cache");
        let mut command = Command::new(self.path("anytrace"));
        command.args(arguments).current_dir(self.0.path()).env("XDG_CACHE_HOME", cache);
        command.env_remove("CACHERAY_OPTIONS").env_remove("ANYTRACE_CACHERAY_RECORDER");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        output
    }
}
