//! The prompt: statements that may take several lines, history, completion of names.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper, Highlighter, Hinter};

use crate::program::request::Request;
use crate::program::{FAILED, INTERRUPTED, listing, spill};
use crate::{Form, How, Session, message, table_names};

/// Words of SQL that are completed.
const WORDS: [&str; 26] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "DISTINCT",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "JOIN",
    "USING",
    "WITH",
    "UNION",
    "DESC",
    "BETWEEN",
    "EXPLAIN",
    "bucket",
    "hex",
    "duration",
    "percentile",
    "stack_path",
    "attr",
];

const HELP: &str = "\
Statements end with a semicolon. Commands: \\d lists the tables, \\d TABLE its columns, \\q ends.";

/// Asks for statements until the end of the input.
pub(crate) async fn run(session: &Session, request: &Request) -> ExitCode {
    let mut editor: Editor<Words, FileHistory> = match Editor::new() {
        Ok(editor) => editor,
        Err(error) => return crate::program::fail(&error.to_string()),
    };
    editor.set_helper(Some(Words::of(session)));
    editor.set_auto_add_history(true);
    if let Some(history) = &request.history {
        // A first session has none.
        let _ = editor.load_history(history);
    }
    end_with_signals();
    eprintln!("{HELP}");
    loop {
        match editor.readline("anytrace> ") {
            Ok(text) => {
                let text = text.trim();
                // Now, because a signal may end the prompt.
                if let Some(history) = &request.history {
                    keep(&mut editor, history);
                }
                if matches!(text, "\\q" | "exit" | "quit" | "exit;" | "quit;") {
                    break ExitCode::SUCCESS;
                }
                answer(session, request, text).await;
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("anytrace: error: {error}");
                break ExitCode::from(FAILED);
            }
        }
    }
}

/// Adds what was typed to the history; a prompt without one works too.
fn keep(editor: &mut Editor<Words, FileHistory>, history: &Path) {
    if let Some(folder) = history.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = editor.append_history(history);
}

/// Ends the prompt at SIGTERM and SIGHUP, and leaves the terminal as it was: while it reads a line, keys are neither
/// shown nor collected into lines.
#[cfg(unix)]
fn end_with_signals() {
    use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
    use tokio::signal::unix::{SignalKind, signal};

    let before = tcgetattr(std::io::stdin()).ok();
    let (Ok(mut end), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = hang_up.recv() => {}
        }
        if let Some(before) = before {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
        }
        eprintln!();
        spill::exit(INTERRUPTED);
    });
}

#[cfg(not(unix))]
fn end_with_signals() {}

/// Runs what was typed; Ctrl-C ends the statement, not the prompt.
async fn answer(session: &Session, request: &Request, text: &str) {
    if text.is_empty() {
        return;
    }
    let mut out = BufWriter::new(std::io::stdout());
    if let Some(command) = text.strip_prefix('\\') {
        let _ = special(session, command.trim(), &mut out);
        let _ = out.flush();
        return;
    }
    let how = How { form: prompt_form(request.form), is_raw_csv: request.is_raw_csv, is_terminal: true };
    let result = tokio::select! {
        result = session.run(text, false, how, &mut out) => result,
        _ = tokio::signal::ctrl_c() => {
            session.cancel().await;
            eprintln!("interrupted");
            return;
        }
    };
    let _ = out.flush();
    if let Err(error) = result {
        eprintln!("error: {}", message(&error, Some(session)));
    }
    for file in session.files() {
        file.damage().0.iter().for_each(|line| eprintln!("{}", anytrace_core::text::printable(line)));
    }
}

/// Files of columns are for `-o`.
fn prompt_form(form: Form) -> Form {
    match form {
        Form::Parquet | Form::Arrow => Form::Table,
        other => other,
    }
}

fn special(session: &Session, command: &str, out: &mut dyn Write) -> std::io::Result<()> {
    match command.split_once(' ') {
        None if command == "d" => listing::tables(session, Form::Table, out),
        Some(("d", table)) => match session.table(table.trim().trim_end_matches(';')) {
            Some(table) => listing::columns(table, Form::Table, out),
            None => writeln!(out, "no table {table}; tables: {}", table_names(session)),
        },
        _ => writeln!(out, "{HELP}"),
    }
}

/// Names that can be completed.
#[derive(Helper, Hinter, Highlighter)]
struct Words(Vec<String>);

impl Words {
    fn of(session: &Session) -> Self {
        let mut words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        for (schema, tables) in session.tables() {
            words.extend(schema.clone());
            for table in tables {
                words.push(table.name.to_owned());
                words.extend(table.columns.iter().map(|column| column.name.to_owned()));
            }
        }
        words.sort();
        words.dedup();
        Self(words)
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or(line);
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |end| end + 1);
        let typed = before.get(start..).unwrap_or("").to_lowercase();
        let fits = self.0.iter().filter(|word| !typed.is_empty() && word.to_lowercase().starts_with(&typed));
        Ok((start, fits.map(|word| Pair { display: word.clone(), replacement: word.clone() }).collect()))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text: Cow<'_, str> = context.input().trim().into();
        let is_whole =
            text.is_empty() || text.starts_with('\\') || text.ends_with(';') || matches!(&*text, "exit" | "quit");
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}
