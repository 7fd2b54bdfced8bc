//! Every documented command line, run by `sh` exactly as it is printed.
//!
//! Transcripts (the help of each verb in `tests/cmd`, and the book) must print what is shown:
//! `UPDATE_GOLDENS=1 cargo test -p anytrace --test transcripts` rewrites them: read the difference. Examples of the
//! help, of READMEs and of the book that name made-up files run on the samples of `documented.tsv`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

mod documented;

use std::fmt::Write;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anytrace_core::testing::skip;
use documented::samples::{self, Row};
use documented::shell::{Output, Shell};
use documented::{Block, Command, blocks, files, is_shown, root};

/// Programs of others in documented commands: without them a command is skipped.
const TOOLS: [&str; 7] = ["clang", "clang++", "gcc", "g++", "jq", "man", "python3"];

/// The widths of a narrow terminal, of which no example may be longer, and of one that wraps nothing.
const NARROW: u16 = 80;
const WIDE: u16 = 1000;

#[test]
fn every_transcript_prints_what_is_shown() {
    let mut files = files("crates/cli/tests/cmd", "trycmd");
    files.extend(documented::files("docs/book/src/guide", "md"));
    files.extend(documented::files("docs/book/src/verbs", "md"));
    files.extend(documented::files("docs/book/src/formats", "md"));
    let shell = Shell::new(100);
    let wrong = in_threads(&files, |file| transcripts(file, &shell));
    assert!(wrong.is_empty(), "run with UPDATE_GOLDENS=1 and read the change\n{wrong}");
}

/// Calls a function for each item, several at a time (some commands wait); joins what it returns.
fn in_threads<T: Sync>(items: &[T], run: impl Fn(&T) -> String + Sync) -> String {
    let results = Mutex::new(String::new());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(4, |count| count.get().max(4));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(item);
                    results.lock().unwrap().push_str(&result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Runs a file's transcripts in the project's root, in order; returns what differs, or writes it.
fn transcripts(file: &Path, shell: &Shell) -> String {
    let mut wrong = String::new();
    let mut changes = Vec::new();
    for command in blocks(file).into_iter().filter(is_transcript).flat_map(|block| block.commands) {
        let output = shell.run(&command.text, &root());
        let printed: Vec<&str> = output.text.trim_end().lines().collect();
        let mut shown = command.shown.clone();
        while shown.last().is_some_and(String::is_empty) {
            shown.pop();
        }
        if output.code != Some(command.code) || !is_shown(&shown, &printed) {
            let (code, text) = (output.code, &output.text);
            let _ = writeln!(wrong, "{}:{}: {}\n{code:?}\n{text}", file.display(), command.line, command.text);
            changes.push((command, output));
        }
    }
    if changes.is_empty() || std::env::var_os("UPDATE_GOLDENS").is_none() {
        return wrong;
    }
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the last: the lines of those before stay where they are.
    for (command, output) in changes.into_iter().rev() {
        replace(&mut lines, &command, &output);
    }
    std::fs::write(file, lines.join("\n") + "\n").unwrap();
    String::new()
}

fn is_transcript(block: &Block) -> bool {
    ["console", "trycmd", ""].contains(&block.language.as_str()) && block.commands.iter().all(|c| c.has_prompt)
}

fn replace(lines: &mut Vec<String>, command: &Command, output: &Output) {
    let start = command.line - 1 + command.text.lines().count();
    let end = start + usize::from(command.code != 0) + command.shown.len();
    let code = output.code.filter(|code| *code != 0).map(|code| format!("? {code}"));
    let blanks = command.shown.iter().rev().take_while(|line| line.is_empty()).count();
    let printed = output.text.trim_end().lines().map(str::to_owned);
    lines.splice(start..end, code.into_iter().chain(printed).chain(std::iter::repeat_n(String::new(), blanks)));
}

/// The names below `Commands:` in a help.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The commands below `Example:`: a line begins one, lines with a deeper indent continue it.
fn examples(help: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let lines = help.lines().skip_while(|line| !["Example:", "Examples:"].contains(line)).skip(1);
    for line in lines.take_while(|line| !line.is_empty()) {
        let line = line.strip_prefix("  ").unwrap_or(line);
        match commands.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => *last = format!("{last}\n{line}"),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

/// The examples of each verb's help, and the verbs below it.
fn of_verb(verb: &str, narrow: &Shell, wide: &Shell, found: &mut Vec<(String, Vec<String>)>, wrong: &mut String) {
    let line = format!("{verb} --help");
    let [help, unwrapped] = [narrow, wide].map(|shell| shell.run(&line, &root()).text);
    let commands = examples(&help);
    if commands != examples(&unwrapped) {
        let _ = writeln!(wrong, "{line}: an example is longer than {NARROW} columns: {:#?}", examples(&unwrapped));
    }
    if !commands.is_empty() {
        found.push((line, commands));
    }
    for name in subcommands(&help) {
        of_verb(&format!("{verb} {name}"), narrow, wide, found, wrong);
    }
}

/// Scripts of the documents: blocks without transcripts, each with the place where it is.
fn of_documents() -> Vec<(String, Vec<String>)> {
    let mut files = files("docs/book/src", "md");
    files.push(root().join("README.md"));
    for folder in ["crates", "recorders"] {
        let readmes = std::fs::read_dir(root().join(folder)).unwrap();
        files.extend(readmes.map(|entry| entry.unwrap().path().join("README.md")).filter(|path| path.is_file()));
    }
    let mut found = Vec::new();
    for block in files.iter().flat_map(|file| blocks(file)).filter(|block| !is_transcript(block)) {
        let place = format!("{}:{}", block.file.strip_prefix(root()).unwrap().display(), block.commands[0].line);
        found.push((place, block.commands.into_iter().map(|command| command.text).collect()));
    }
    found
}

/// Takes what `heph replay` sends, from as many as there are.
fn receive() -> u16 {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while udp.recv(&mut bytes).is_ok() {}
    });
    std::thread::spawn(move || {
        for sender in tcp.incoming() {
            let _ = sender.and_then(|mut sender| sender.read_to_end(&mut Vec::new()));
        }
    });
    port
}

/// Runs a block's commands in order in a folder of their own; returns what fails.
fn run_block(
    place: &str,
    commands: &[String],
    table: &[Row],
    shell: &Shell,
    used: &Mutex<Vec<&'static str>>,
) -> String {
    let mut wrong = String::new();
    let folder = shell.folder();
    samples::place(table, commands, &folder, shell);
    for command in commands {
        if let Some(row) = samples::not_run(table, command) {
            used.lock().unwrap().push(row);
            continue;
        }
        let missing = TOOLS.iter().find(|tool| {
            let is_named = command.split([' ', '\'', '|']).any(|word| word == **tool);
            is_named && !std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|path| path.join(tool).is_file())
        });
        if let Some(tool) = missing {
            skip(&format!("{tool} is not installed: {command}"));
            continue;
        }
        let output = shell.run(command, &folder);
        // 1: a rule is broken, or the files differ. What comes after a pipe decides the shell's own code.
        let is_fine = |code: i32| code == 0 || code == 1;
        let is_run = !output.calls.is_empty() && output.calls.iter().all(|(code, _)| is_fine(*code));
        if !is_run || !output.code.is_some_and(is_fine) {
            let Output { text, code, calls } = output;
            let _ = writeln!(wrong, "{place}: {command}\n{code:?} {calls:?}\n{text}");
        }
    }
    wrong
}

#[test]
fn every_example_of_help_and_documents_runs_in_a_shell() {
    let (narrow, wide) = (Shell::new(NARROW), Shell::new(WIDE));
    let shell = Shell::noting(100, receive());
    let mut found = Vec::new();
    let mut wrong = String::new();
    of_verb("anytrace", &narrow, &wide, &mut found, &mut wrong);
    found.extend(of_documents());
    let table = samples::table();
    let used = Mutex::new(Vec::new());
    wrong += &in_threads(&found, |(place, commands)| run_block(place, commands, &table, &shell, &used));
    let used = used.into_inner().unwrap();
    for row in samples::all_not_run(&table).filter(|row| !used.contains(row)) {
        let _ = writeln!(wrong, "documented.tsv: no command begins with {row}");
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    let count: usize = found.iter().map(|(_, commands)| commands.len()).sum();
    assert!(count > 150, "only {count} commands were found");
}
