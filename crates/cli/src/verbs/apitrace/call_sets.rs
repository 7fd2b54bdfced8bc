//! The sets of calls that options give, and the files that options name.

use std::io::Read;

use anytrace_apitrace::tools::callset::CallSet;

use crate::failure::Failure;

/// The set of `--calls`, given any number of times; all calls without it.
pub(super) fn call_set(texts: &[String]) -> Result<CallSet, Failure> {
    if texts.is_empty() {
        return Ok(CallSet::default());
    }
    parse_call_set("--calls", texts)
}

/// The set of an option that is given.
pub(super) fn parse_call_set(option: &str, texts: &[String]) -> Result<CallSet, Failure> {
    let mut read = |name: &str| String::from_utf8(read_named(name)?).map_err(std::io::Error::other);
    CallSet::parse(texts.iter().map(String::as_str), &mut read)
        .map_err(|error| Failure::usage(format!("{option}={error}")))
}

/// Most bytes of a file that an option names.
const NAMED_BYTES_MAX: u64 = 1 << 24;

/// The content of a file that an option names, `@FILE` or `@file(PATH)`; a device or a huge one is an error.
pub(super) fn read_named(name: &str) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(name)?.take(NAMED_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > NAMED_BYTES_MAX {
        return Err(std::io::Error::other(format!("more than {NAMED_BYTES_MAX} bytes")));
    }
    Ok(content)
}
