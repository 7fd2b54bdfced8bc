//! A compiler's command line, as far as it must be known to take it apart: what gcc and clang share.

mod notes;
mod options;
mod response_files;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use options::{FOR_LINKER, WITH_VALUE, is_for_linker, is_source};
use response_files::expand;

/// How far the compiler is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is only asked something, or has nothing to do.
    Ask,
    /// Up to assembler or objects.
    Compile,
    /// Up to a program or library.
    Link,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: OsString,
    /// Its position among the arguments.
    pub(super) place: usize,
    /// The options to compile it with: all but output, other inputs and what is for the linker.
    pub(super) options: Vec<OsString>,
}

/// A command line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) step: Step,
    /// All of it, response files read in, `-fsanitize=thread` and options for link-time optimization taken out.
    pub(super) arguments: Vec<OsString>,
    pub(super) sources: Vec<Source>,
    pub(super) is_shared: bool,
    pub(super) is_static: bool,
    pub(super) is_gold: bool,
    pub(super) has_debug_option: bool,
    pub(super) has_lto: bool,
    pub(super) has_language: bool,
    is_relocatable: bool,
    has_no_holes: bool,
}

impl Line {
    /// Takes a command line apart.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, String> {
        let mut line = Self {
            step: Step::Link,
            arguments: Vec::new(),
            sources: Vec::new(),
            is_shared: false,
            is_static: false,
            is_gold: false,
            has_debug_option: false,
            has_lto: false,
            has_language: false,
            is_relocatable: false,
            has_no_holes: false,
        };
        let mut inputs = 0;
        // The language that `-x` has set, for the inputs after it.
        let mut language: Option<OsString> = None;
        let mut common = Vec::new();
        let mut found = Vec::new();
        let mut rest = expand(arguments, 0)?.into_iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy().into_owned();
            if line.leave_out(&text) {
                continue;
            }
            let place = line.arguments.len();
            line.arguments.push(argument.clone());
            if WITH_VALUE.contains(&text.as_str()) {
                let value = rest.next().unwrap_or_default();
                line.note_value(&text, &value);
                line.arguments.push(value.clone());
                match text.as_str() {
                    "-x" => language = (value != "none").then_some(value),
                    "-o" => {}
                    "-l" => inputs += 1,
                    option if FOR_LINKER.contains(&option) => {}
                    _ => common.extend([argument, value]),
                }
            } else if text.starts_with('-') && text != "-" {
                line.note(&text);
                let joined = text.strip_prefix("-x").filter(|value| !value.is_empty());
                match joined {
                    Some(value) => {
                        line.has_language = true;
                        language = (value != "none").then(|| value.into());
                    }
                    None if text.starts_with("-o") || is_for_linker(&text) => {}
                    None => common.push(argument),
                }
            } else {
                inputs += 1;
                if language.is_some() || is_source(&argument) {
                    found.push((argument, place, language.clone()));
                }
            }
        }
        line.sources = sources(found, &common);
        if inputs == 0 {
            line.step = Step::Ask;
        }
        Ok(line)
    }

    /// True when the recorder is to be linked in.
    pub(super) fn needs_library(&self) -> bool {
        !self.is_relocatable && (!self.is_shared || self.has_no_holes)
    }
}

/// Gives each source the options that all share, and its language.
fn sources(found: Vec<(OsString, usize, Option<OsString>)>, common: &[OsString]) -> Vec<Source> {
    let with_options = |(name, place, language): (OsString, usize, Option<OsString>)| {
        let mut options = common.to_vec();
        if let Some(language) = language {
            options.extend(["-x".into(), language]);
        }
        Source { name, place, options }
    };
    found.into_iter().map(with_options).collect()
}

/// The same arguments without languages.
pub(super) fn without_language(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "-x" {
            rest.next();
        } else if !argument.as_bytes().starts_with(b"-x") {
            kept.push(argument.clone());
        }
    }
    kept
}
