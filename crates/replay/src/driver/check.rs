//! `--check`: errors and messages of the driver, and answers that differ from those in the trace.

use std::collections::BTreeMap;

use anytrace_apitrace::tools::program::{Answer, GlCall};

use super::{Driver, error_name};

/// Most different things that are kept of each sort.
const KEPT_MAX: usize = 64;

/// Longest text of a message that is kept.
const TEXT_MAX: usize = 400;

/// What was found, by function and what makes it alike: the first call and its text, and how often.
#[derive(Debug, Default)]
struct Found {
    kept: BTreeMap<(&'static str, String), (u64, String, u64)>,
    rest: u64,
}

impl Found {
    fn add(&mut self, call: &GlCall<'_>, alike: String, text: String) {
        let key = (call.name, alike);
        if self.kept.len() < KEPT_MAX || self.kept.contains_key(&key) {
            self.kept.entry(key).or_insert((call.number, text, 0)).2 += 1;
        } else {
            self.rest += 1;
        }
    }

    fn lines(&self, what: &str) -> impl Iterator<Item = String> {
        let mut all: Vec<_> = self.kept.iter().collect();
        all.sort_by_key(|(_, (first, ..))| *first);
        let lines = all.into_iter().map(|((name, _), (first, text, count))| {
            let more = if *count == 1 { String::new() } else { format!(", the first of {count} alike") };
            format!("call {first} {name}: {text}{more}")
        });
        lines.chain((self.rest > 0).then(|| format!("{} more {what} are not shown", self.rest)))
    }
}

/// What was found in a replay.
#[derive(Debug, Default)]
pub(super) struct Findings {
    errors: Found,
    messages: Found,
    differences: Found,
}

impl Findings {
    /// Errors and messages.
    pub(super) fn notes(&self) -> Vec<String> {
        self.errors.lines("errors").chain(self.messages.lines("messages")).collect()
    }

    /// Answers that differ.
    pub(super) fn differences(&self) -> Vec<String> {
        self.differences.lines("differences").collect()
    }

    /// A name that the trace found is not there.
    pub(super) fn is_missing(&mut self, call: &GlCall<'_>, what: &str, traced: u32) {
        let text = format!("{what} {traced} of the trace does not exist here");
        self.differences.add(call, text.clone(), text);
    }
}

impl Driver<'_> {
    /// Finds out whether the call was an error, and what the driver says of it.
    pub(super) fn check(&mut self, call: &GlCall<'_>) {
        let (number, _) = self.current.unwrap_or_default();
        if self.context(number).is_inside {
            return;
        }
        let Some(gl) = &self.gl else { return };
        let code = gl.error();
        while let Some(message) = gl.debug_message() {
            let text: String = message.chars().take(TEXT_MAX).collect();
            // Messages that differ only by numbers, of buffers, bytes and times, are alike.
            let alike = text.replace(|letter: char| letter.is_ascii_digit(), "");
            self.findings.messages.add(call, alike, text);
        }
        if code != 0 {
            self.findings.errors.add(call, error_name(code), error_name(code));
            let context = self.context(number);
            context.error = if context.error == 0 { code } else { context.error };
        }
    }

    /// Compares an answer with that in the trace.
    pub(super) fn compare(&mut self, call: &GlCall<'_>, answer: Answer, result: u64) {
        let (number, _) = self.current.unwrap_or_default();
        let (traced, here) = match answer {
            Answer::Error(traced) => {
                let before = std::mem::take(&mut self.context(number).error);
                (traced, if before == 0 { result as u32 } else { before })
            }
            Answer::Returned(traced) => (traced, result as u32),
            Answer::Stored(traced) => (traced, self.scratch.read(0, 1).next().unwrap_or(traced)),
        };
        if traced != here {
            let name = |value: u32| match answer {
                Answer::Error(_) => error_name(value),
                _ => value_name(value),
            };
            let text = format!("{} here, {} in the trace", name(here), name(traced));
            self.findings.differences.add(call, text.clone(), text);
        }
    }
}

/// A state of a framebuffer by its name, anything else as a number.
fn value_name(value: u32) -> String {
    let known = match value {
        0x8cd5 => "GL_FRAMEBUFFER_COMPLETE",
        0x8cd6 => "GL_FRAMEBUFFER_INCOMPLETE_ATTACHMENT",
        0x8cd7 => "GL_FRAMEBUFFER_INCOMPLETE_MISSING_ATTACHMENT",
        0x8cdb => "GL_FRAMEBUFFER_INCOMPLETE_DRAW_BUFFER",
        0x8cdc => "GL_FRAMEBUFFER_INCOMPLETE_READ_BUFFER",
        0x8cdd => "GL_FRAMEBUFFER_UNSUPPORTED",
        0x8d56 => "GL_FRAMEBUFFER_INCOMPLETE_MULTISAMPLE",
        0x8219 => "GL_FRAMEBUFFER_UNDEFINED",
        _ => return (value as i32).to_string(),
    };
    known.to_owned()
}
