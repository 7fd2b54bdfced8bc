//! Which words of the command are traces and which is the SQL.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::arguments::QueryArguments;
use crate::failure::Failure;

/// Longest SQL that is read from a file or a pipe, in bytes.
const SQL_MAX: u64 = 1 << 20;

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// These statements.
    Sql(String),
    /// Whatever is typed.
    Prompt,
}

/// The traces of a query and its SQL.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) paths: Vec<PathBuf>,
    /// The schema of each trace.
    pub(super) schemas: Vec<Option<String>>,
    /// The name of each trace where it is not the path.
    pub(super) shown: Vec<Option<String>>,
    pub(super) statement: Statement,
    /// Standard input, which is read more than once.
    _spool: Option<NamedTempFile>,
}

impl Inputs {
    pub(super) fn of(options: &QueryArguments) -> Result<Self, Failure> {
        let has_action = options.tables || options.list || options.describe.is_some() || options.run.is_some();
        let mut words = options.words.clone();
        let sql = if has_action { None } else { sql_of(&mut words)? };
        let reads_stdin = words.iter().any(|word| word == "-");
        let statement = match sql {
            Some(sql) => Statement::Sql(sql),
            None if has_action || (io::stdin().is_terminal() && !reads_stdin) => Statement::Prompt,
            None if reads_stdin => return Err(Failure::usage("the last argument must be the SQL")),
            None => Statement::Sql(limited(&mut io::stdin().lock(), "standard input")?),
        };
        let mut made = Self { paths: Vec::new(), schemas: Vec::new(), shown: Vec::new(), statement, _spool: None };
        for word in words {
            made.add(word, None)?;
        }
        for named in &options.name {
            let (schema, file) = schema_and_file(named)?;
            made.add(file, Some(schema))?;
        }
        if made.paths.is_empty() && !options.list && made.statement == Statement::Prompt {
            return Err(Failure::usage(
                "no trace is given; example: anytrace query app.xray \"SELECT * FROM calls LIMIT 5\"",
            ));
        }
        Ok(made)
    }

    fn add(&mut self, file: OsString, schema: Option<String>) -> Result<(), Failure> {
        self.schemas.push(schema);
        if file != "-" {
            self.shown.push(None);
            self.paths.push(PathBuf::from(file));
            return Ok(());
        }
        if self._spool.is_some() {
            return Err(Failure::usage("standard input can be read only once"));
        }
        let failed = |error: io::Error| Failure::usage(format!("standard input: {error}"));
        let mut spool = NamedTempFile::new().map_err(failed)?;
        io::copy(&mut io::stdin().lock(), spool.as_file_mut()).map_err(failed)?;
        self.shown.push(Some("-".to_owned()));
        self.paths.push(spool.path().to_owned());
        self._spool = Some(spool);
        Ok(())
    }
}

/// Takes the SQL from the words: the last, unless it is a trace.
fn sql_of(words: &mut Vec<OsString>) -> Result<Option<String>, Failure> {
    let Some(last) = words.last() else { return Ok(None) };
    let path = Path::new(last);
    let is_file = path.is_file();
    if is_file && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql")) {
        let name = path.display().to_string();
        let mut file = std::fs::File::open(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let sql = limited(&mut file, &name)?;
        words.pop();
        return Ok(Some(sql));
    }
    if is_file || last == "-" || path.exists() {
        return Ok(None);
    }
    let Some(text) = last.to_str() else { return Ok(None) };
    // SQL has at least two words; one word is a name that was mistyped.
    if !text.trim().contains(char::is_whitespace) {
        return Err(Failure::usage(format!("{text}: there is no such file, and it is no SQL")));
    }
    let text = text.to_owned();
    words.pop();
    Ok(Some(text))
}

fn limited(from: &mut dyn Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let failed = |error: io::Error| Failure::usage(format!("{name}: {error}"));
    from.take(SQL_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > SQL_MAX {
        return Err(Failure::usage(format!("{name}: more than {SQL_MAX} bytes are no query")));
    }
    Ok(text)
}

/// `X=FILE`.
fn schema_and_file(text: &OsStr) -> Result<(String, OsString), Failure> {
    let bytes = text.as_encoded_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=');
    let name = at.and_then(|at| std::str::from_utf8(&bytes[..at]).ok());
    let is_name = |name: &&str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    match name.filter(is_name) {
        Some(name) => {
            // What follows an ASCII character is a valid string of the system's.
            let file = text.to_string_lossy().into_owned().split_off(name.len() + 1);
            let file = if text.to_str().is_some() { OsString::from(file) } else { after(text, name.len() + 1) };
            Ok((name.to_lowercase(), file))
        }
        None => Err(Failure::usage(format!(
            "--name {}: expected NAME=FILE, with a name of letters, digits and _",
            text.display()
        ))),
    }
}

#[cfg(unix)]
fn after(text: &OsStr, at: usize) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(text.as_bytes().get(at..).unwrap_or_default()).to_owned()
}

#[cfg(not(unix))]
fn after(text: &OsStr, at: usize) -> OsString {
    OsString::from(text.to_string_lossy().chars().skip(at).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_the_sql_unless_it_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.xray");
        let script = folder.path().join("q.SQL");
        std::fs::write(&trace, "x").unwrap();
        std::fs::write(&script, "SELECT 2").unwrap();
        let of = |words: &[&OsStr]| {
            let mut words: Vec<OsString> = words.iter().map(|word| (*word).to_owned()).collect();
            let sql = sql_of(&mut words).map_err(|failure| failure.message().to_owned());
            (sql, words.len())
        };
        let (trace, script) = (trace.as_os_str(), script.as_os_str());
        assert_eq!(of(&[trace, OsStr::new("SELECT 1")]), (Ok(Some("SELECT 1".to_owned())), 1));
        assert_eq!(of(&[trace, script]), (Ok(Some("SELECT 2".to_owned())), 1));
        assert_eq!(of(&[trace]), (Ok(None), 1));
        assert_eq!(of(&[OsStr::new("-")]), (Ok(None), 1));
        assert!(of(&[trace, OsStr::new("b.xray")]).0.unwrap_err().contains("no such file"));
    }

    #[test]
    fn a_schema_is_a_word() {
        let of = |text: &str| schema_and_file(OsStr::new(text)).ok();
        assert_eq!(of("Old=a=b.xray"), Some(("old".to_owned(), "a=b.xray".into())));
        assert_eq!((of("a.xray"), of("1=x"), of("=x")), (None, None, None));
    }
}
