//! Other commands: their words as a shell takes them, and a program that takes the place of this one.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

/// A word in quotes where a shell would not take it as it is. Bytes that are not UTF-8 are replaced.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./,+:%@".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Becomes that program, which then has the terminal and its signals. Where that cannot be, waits for it. Returns its
/// exit code, or the error when it does not start.
#[cfg(unix)]
pub(crate) fn become_program(command: &mut Command) -> io::Result<Option<i32>> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

/// Runs that program, which Ctrl-C is for, and returns its exit code.
#[cfg(not(unix))]
pub(crate) fn become_program(command: &mut Command) -> io::Result<Option<i32>> {
    // A handler that is there already belongs to outputs, which are complete.
    let _ = ctrlc::set_handler(|| {});
    command.status().map(|status| status.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_and_quotes_are_quoted() {
        assert_eq!(quoted("a/b-1.xray"), "a/b-1.xray");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
