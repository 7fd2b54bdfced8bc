//! Response files, and the words in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Reads response files (`@FILE`) in, as the compilers do: words between white space, quotes and backslashes.
pub(super) fn expand(arguments: &[OsString], depth: usize) -> Result<Vec<OsString>, String> {
    let mut all = Vec::new();
    for argument in arguments {
        let file = argument.as_bytes().strip_prefix(b"@").map(OsStr::from_bytes);
        match file.and_then(|file| fs::read(file).ok()) {
            Some(_) if depth >= 10 => return Err("response files include each other".to_owned()),
            Some(text) => all.extend(expand(&words(&text), depth + 1)?),
            // A name that begins with @ and is not a file is just that.
            None => all.push(argument.clone()),
        }
    }
    Ok(all)
}

pub(super) fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => word.get_or_insert_default().extend(bytes.next()),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(open), byte) if byte == open => quote = None,
            (None, byte) if byte.is_ascii_whitespace() => words.extend(word.take().map(OsString::from_vec)),
            (_, byte) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}
