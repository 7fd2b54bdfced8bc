//! A folder of programs before the others on the PATH, and `sh`, which runs what a reader would paste.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Programs of others that results are piped into, and that are rarely installed: these read it all.
const STAND_INS: [&str; 2] = ["dot", "flamegraph.pl"];

/// Called as `anytrace`: notes command and exit code. What waits for senders is interrupted after a while; ports are
/// replaced, because the documented one may be in use. Without --foreground the program would get the signal twice.
const WRAPPER: &str = r#"#!/bin/sh
case "$1 $2" in
    "heph collect") port=0 ;;
    *) port=$REPLAY_PORT ;;
esac
if [ "$1" = heph ]; then
    for word do
        shift
        set -- "$@" "$(printf %s "$word" | sed "s/127\.0\.0\.1:9300\$/127.0.0.1:$port/")"
    done
fi
case "$1 $2" in
    "heph collect") timeout --foreground --signal=INT --preserve-status 2 "$PROGRAM" "$@" ;;
    *) "$PROGRAM" "$@" ;;
esac
code=$?
printf '%s\t%s\n' "$code" "$*" >> "$NOTES"
exit "$code"
"#;

/// True where a shell would not ask for another line.
pub(crate) fn is_complete(text: &str) -> bool {
    let ends = !text.ends_with('\\') && !text.trim_end().ends_with('|');
    ends && Command::new("sh").args(["-n", "-c", text]).stderr(Stdio::null()).status().unwrap().success()
}

/// What a command printed, in order, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) code: Option<i32>,
    /// Exit code and arguments of each `anytrace` in it.
    pub(crate) calls: Vec<(i32, String)>,
}

/// A shell and the programs that it finds first.
#[derive(Debug)]
pub(crate) struct Shell {
    /// Removed with everything that the commands wrote.
    temporary: tempfile::TempDir,
    program: PathBuf,
    columns: u16,
    replay_port: u16,
    /// Commands that were run: each has notes of its own, because several may run at a time.
    runs: AtomicU64,
}

impl Shell {
    /// `anytrace` is the program itself.
    pub(crate) fn new(columns: u16) -> Self {
        let shell = Self::empty(columns);
        std::os::unix::fs::symlink(&shell.program, shell.programs().join("anytrace")).unwrap();
        shell
    }

    /// `anytrace` is a script around the program: see [`Output::calls`]. `heph collect` listens on any free port, `heph
    /// replay` sends to the one given.
    pub(crate) fn noting(columns: u16, replay_port: u16) -> Self {
        let shell = Self { replay_port, ..Self::empty(columns) };
        shell.add_program("anytrace", WRAPPER);
        for name in STAND_INS {
            shell.add_program(name, "#!/bin/sh\nexec cat > /dev/null\n");
        }
        shell
    }

    fn empty(columns: u16) -> Self {
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(temporary.path().join("programs")).unwrap();
        std::fs::create_dir_all(temporary.path().join("home/.local/share/bash-completion/completions")).unwrap();
        Self {
            temporary,
            program: PathBuf::from(env!("CARGO_BIN_EXE_anytrace")),
            columns,
            replay_port: 0,
            runs: AtomicU64::new(0),
        }
    }

    fn programs(&self) -> PathBuf {
        self.temporary.path().join("programs")
    }

    fn add_program(&self, name: &str, text: &str) {
        let path = self.programs().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A new folder to run commands in.
    pub(crate) fn folder(&self) -> PathBuf {
        tempfile::tempdir_in(self.temporary.path()).unwrap().keep()
    }

    /// Runs a command line as it is, in a folder.
    pub(crate) fn run(&self, text: &str, folder: &Path) -> Output {
        let notes = self.temporary.path().join(format!("notes-{}", self.runs.fetch_add(1, Ordering::Relaxed)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.programs()].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", text]).current_dir(folder).env("PATH", path).env("PROGRAM", &self.program);
        command.env("NO_COLOR", "1").env("COLUMNS", self.columns.to_string()).env("NOTES", &notes);
        command.env("HOME", self.temporary.path().join("home")).stdin(Stdio::null());
        // The recorder is built once for all tests.
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cacheray-cache"));
        // Where rustup keeps its compilers: it would look below HOME.
        for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            if let (None, Some(home)) = (std::env::var_os(name), std::env::var_os("HOME")) {
                command.env(name, Path::new(&home).join(folder));
            }
        }
        command.env("REPLAY_PORT", self.replay_port.to_string());
        command.env_remove("CACHERAY_OPTIONS").env_remove("ANYTRACE_CACHERAY_RECORDER");
        let (mut reader, writer) = std::io::pipe().unwrap();
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        // It has the pipe's other ends, which must be closed here.
        drop(command);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        let code = child.wait().unwrap().code();
        let notes = std::fs::read_to_string(notes).unwrap_or_default();
        let call = |line: &str| line.split_once('\t').map(|(code, words)| (code.parse().unwrap(), words.to_owned()));
        let calls = notes.lines().filter_map(call).collect();
        Output { text: String::from_utf8_lossy(&bytes).into_owned(), code, calls }
    }
}
