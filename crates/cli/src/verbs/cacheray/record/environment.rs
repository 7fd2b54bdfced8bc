//! The environment of the program: the options of the recorder, and its library where it is to be loaded.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use super::super::recorder_library;
use super::{Order, RecordArguments};
use crate::failure::Failure;
use crate::verbs::recording;

/// The environment variable: the user's own first, as the last word counts.
pub(super) fn recorder_options(options: &RecordArguments) -> Result<OsString, Failure> {
    let output = std::path::absolute(&options.output).unwrap_or_else(|_| options.output.clone());
    if output.as_os_str().as_bytes().contains(&b':') {
        return Err(Failure::usage(format!(
            "{}: the recorder's options are separated by colons, so a path may not contain one",
            output.display()
        )));
    }
    let mut text = std::env::var_os("CACHERAY_OPTIONS").unwrap_or_default();
    if !text.is_empty() {
        text.push(":");
    }
    text.push("enabled=1:tracefile=");
    text.push(output);
    text.push(format!(":range={}", options.range));
    if options.no_malloc {
        text.push(":malloc=0");
    }
    text.push(if options.no_globals { ":globals=0" } else { ":globals=1" });
    for name in &options.wrapper {
        text.push(":wrapper=");
        text.push(without_colons(name));
    }
    if options.keep_wrappers {
        text.push(":wrappers=0");
    }
    if options.callers > 0 {
        text.push(format!(":callers={}", options.callers));
    }
    text.push(if options.no_pc { ":pc=0" } else { ":pc=1" });
    match options.order {
        Order::Auto => {}
        Order::Strict => text.push(":strict=1"),
        Order::Buffered => text.push(":strict=0"),
    }
    if let Some(records) = options.flush {
        text.push(format!(":flush={records}"));
    }
    Ok(text)
}

/// A name with its colons as the recorder wants them, since colons divide options.
fn without_colons(name: &OsStr) -> OsString {
    let parts: Vec<&[u8]> = name.as_bytes().split(|byte| *byte == b':').collect();
    OsString::from_vec(parts.join(&b"%3A"[..]))
}

/// Loads the recorder into a program that was linked without it.
pub(super) fn preload(command: &mut Command, children: bool) -> Result<(), Failure> {
    let library = recorder_library::find()?;
    let before = recording::preload(command, library.shared)?;
    if !children {
        command.env("CACHERAY_PRELOAD_BEFORE", before);
    }
    Ok(())
}
