//! One file a verb: options to one library call, and a printer.

pub(crate) mod apitrace;
pub(crate) mod cacheray;
pub(crate) mod casemate;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod flame;
pub(crate) mod formats;
pub(crate) mod heph;
pub(crate) mod highlights;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod query;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod stats;
pub(crate) mod timeline;
pub(crate) mod trim;
pub(crate) mod view;
pub(crate) mod xray;

/// A path as a shell takes it, for commands that are shown.
fn quoted(path: &std::path::Path) -> String {
    let path = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:,@%".contains(letter);
    match path.chars().all(is_plain) && !path.is_empty() {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_and_quotes_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.xray".as_ref()), "a/b-1.xray");
        assert_eq!(quoted("it's $HOME".as_ref()), r"'it'\''s $HOME'");
    }
}
