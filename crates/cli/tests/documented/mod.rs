//! Command lines in the documentation: where they are, what they print, and a shell that runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

pub(crate) mod samples;
pub(crate) mod shell;

use std::path::{Path, PathBuf};

/// A command line as it is printed, and what is printed below it.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// The command's line in its file, from 1.
    pub(crate) line: usize,
    /// Several lines where the shell asks for more.
    pub(crate) text: String,
    /// After `?` in the line below, else 0.
    pub(crate) code: i32,
    /// What is shown, and the lines that it takes in the file: from the one below the command to the next command.
    pub(crate) shown: Vec<String>,
    /// True where a prompt precedes the command, so that what follows is its output.
    pub(crate) has_prompt: bool,
}

/// A fenced block with commands.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) file: PathBuf,
    /// What follows the three backticks.
    pub(crate) language: String,
    pub(crate) commands: Vec<Command>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files with an ending, below a folder of the project.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut open = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The blocks of a file that contain commands: those with prompts, and those of a shell's language without.
pub(crate) fn blocks(file: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<(String, Vec<(usize, &str)>)> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some((language.to_owned(), Vec::new())),
            (Some(_), Some((language, lines))) => {
                let commands = commands(&language, &lines);
                if !commands.is_empty() {
                    blocks.push(Block { file: file.to_owned(), language, commands });
                }
            }
            (None, Some((language, mut lines))) => {
                lines.push((index + 1, line));
                open = Some((language, lines));
            }
            (None, None) => {}
        }
    }
    blocks
}

fn commands(language: &str, lines: &[(usize, &str)]) -> Vec<Command> {
    if lines.iter().any(|(_, line)| line.starts_with("$ ")) {
        return with_prompts(lines);
    }
    let is_shell = match language {
        "sh" | "console" => true,
        "text" => lines.iter().all(|(_, line)| line.starts_with("anytrace ") && !line.starts_with("anytrace: ")),
        _ => false,
    };
    if !is_shell {
        return Vec::new();
    }
    let mut commands: Vec<Command> = Vec::new();
    for (line, text) in lines {
        match commands.last_mut().filter(|last| !shell::is_complete(&last.text)) {
            Some(last) => last.text = format!("{}\n{text}", last.text),
            None => commands.push(Command::new(*line, (*text).to_owned(), false)),
        }
    }
    commands.retain(|command| !command.text.trim().is_empty());
    commands
}

fn with_prompts(lines: &[(usize, &str)]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (line, text) in lines {
        if let Some(command) = text.strip_prefix("$ ") {
            commands.push(Command::new(*line, command.to_owned(), true));
            continue;
        }
        let Some(last) = commands.last_mut() else { continue };
        if last.shown.is_empty() && last.code == 0 && !shell::is_complete(&last.text) {
            last.text = format!("{}\n{text}", last.text);
        } else if let Some(code) = text.strip_prefix("? ").filter(|_| last.shown.is_empty()) {
            last.code = code.trim().parse().unwrap_or_else(|_| panic!("line {line}: no exit code: {code}"));
        } else {
            last.shown.push((*text).to_owned());
        }
    }
    commands
}

impl Command {
    pub(crate) fn new(line: usize, text: String, has_prompt: bool) -> Self {
        Self { line, text, code: 0, shown: Vec::new(), has_prompt }
    }
}

/// Whether a text is what is shown: `...` in a line of its own is any number of lines, `[..]` any part of a line.
pub(crate) fn is_shown(shown: &[String], printed: &[&str]) -> bool {
    let Some((first, rest)) = shown.split_first() else { return printed.is_empty() };
    if first == "..." {
        return (0..=printed.len()).any(|skipped| is_shown(rest, &printed[skipped..]));
    }
    printed.split_first().is_some_and(|(line, after)| is_line(first, line) && is_shown(rest, after))
}

fn is_line(shown: &str, printed: &str) -> bool {
    match shown.split_once("[..]") {
        None => shown == printed,
        Some((start, rest)) => printed.strip_prefix(start).is_some_and(|printed| {
            printed.char_indices().map(|(at, _)| at).chain([printed.len()]).any(|at| is_line(rest, &printed[at..]))
        }),
    }
}
