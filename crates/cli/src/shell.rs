//! Words of commands that are shown, as a shell takes them.

use std::ffi::OsStr;

/// A word in quotes where a shell would not take it as it is. Bytes that are not UTF-8 are replaced.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./,+:%@".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
