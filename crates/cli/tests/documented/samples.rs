//! Files for the names that the documentation makes up: `documented.tsv`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::root;
use super::shell::Shell;

const TABLE: &str = include_str!("../documented.tsv");

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    /// `file` or `not-run`.
    kind: &'static str,
    /// The name of the file; the beginning of the command.
    name: &'static str,
    /// Where the file comes from; why the command is not run.
    from: &'static str,
    /// The file is for commands that begin so; all, where this is empty.
    only: &'static str,
}

pub(crate) fn table() -> Vec<Row> {
    let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        Row { kind: field(), name: field(), from: field(), only: field() }
    })
    .collect()
}

/// Why a command is not run.
pub(crate) fn not_run(table: &[Row], command: &str) -> Option<&'static str> {
    table.iter().find(|row| row.kind == "not-run" && command.starts_with(row.name)).map(|row| row.name)
}

/// The commands that are listed as not to be run.
pub(crate) fn all_not_run(table: &[Row]) -> impl Iterator<Item = &'static str> {
    table.iter().filter(|row| row.kind == "not-run").map(|row| row.name)
}

/// Puts the files for a block's commands into a folder. A later row comes before an earlier one.
pub(crate) fn place(table: &[Row], commands: &[String], folder: &Path, shell: &Shell) {
    let commands: Vec<&String> = commands.iter().filter(|command| not_run(table, command).is_none()).collect();
    for row in table.iter().filter(|row| row.kind == "file") {
        let is_wanted = match row.only {
            // Most blocks need one or two of the files.
            "" => commands.iter().find_map(|command| is_read(command, row.name)).unwrap_or(false),
            only => commands.iter().any(|command| command.starts_with(only)),
        };
        if !is_wanted {
            continue;
        }
        let path = folder.join(row.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let quoted = format!("'{}'", path.display());
        let source = root().join(row.from);
        let made = if let Some(text) = row.from.strip_prefix('=') {
            std::fs::write(&path, text.replace("\\n", "\n").replace("\\t", "\t")).is_ok()
        } else if let Some(command) = row.from.strip_prefix("! ") {
            shell.run(&format!("{command} > {quoted}"), &root()).code == Some(0)
        } else if source.is_dir() {
            shell.run(&format!("cp -r {}/. {quoted}", row.from), &root()).code == Some(0)
        } else {
            std::fs::copy(source, &path).is_ok()
        };
        if path.extension().is_none() && path.is_file() {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        assert!(made, "{}: cannot be made from {}", row.name, row.from);
    }
}

/// Whether a command that names a file first reads it: no where the name follows `-o`; nothing where it is not named.
fn is_read(command: &str, name: &str) -> Option<bool> {
    let name = name.split('/').next().unwrap();
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "._-*".contains(c);
    let words: Vec<&str> = command.split(|c| !is_of_word(c)).collect();
    let all = name.rfind('.').map(|at| format!("*{}", &name[at..]));
    let at = words.iter().position(|word| *word == name || all.as_deref() == Some(*word))?;
    Some(at == 0 || words[at - 1] != "-o")
}
