//! The grammar of call sets.

use crate::lanes::flags::CallFlags;
use crate::tools::call_range::{CallRange, CallSetError};

/// Kinds of calls.
const KINDS: [(&str, CallFlags); 5] = [
    ("frame", CallFlags::END_FRAME),
    ("rendertarget", CallFlags(CallFlags::END_FRAME.0 | CallFlags::SWAP_RENDERTARGET.0)),
    ("fbo", CallFlags(CallFlags::END_FRAME.0 | CallFlags::SWAP_RENDERTARGET.0)),
    ("render", CallFlags::RENDER),
    ("draw", CallFlags::RENDER),
];

/// Reads a set: its items and those of the files it names.
pub(super) fn parse(
    text: &str,
    read: &mut dyn FnMut(&str) -> std::io::Result<String>,
    add: &mut dyn FnMut(CallRange),
) -> Result<(), CallSetError> {
    let mut at = 0;
    for item in text.split(',') {
        if let Some(file) = item.strip_prefix('@') {
            let failed = |error: std::io::Error| CallSetError {
                source: item.to_owned(),
                character: None,
                message: error.to_string(),
            };
            let content = read(file).map_err(failed)?;
            Parser { source: item, text: &content, at: 0, end: content.len() }.ranges(true, add)?;
        } else {
            Parser { source: text, text, at, end: at + item.len() }.ranges(false, add)?;
        }
        at += item.len() + 1;
    }
    Ok(())
}

struct Parser<'a> {
    /// The name for error messages.
    source: &'a str,
    text: &'a str,
    at: usize,
    end: usize,
}

impl Parser<'_> {
    /// In files ranges may be separated by commas too.
    fn ranges(&mut self, has_commas: bool, add: &mut dyn FnMut(CallRange)) -> Result<(), CallSetError> {
        self.skip_blanks();
        while self.at < self.end {
            add(self.range()?);
            if has_commas {
                self.has(b',');
            }
        }
        Ok(())
    }

    fn range(&mut self) -> Result<CallRange, CallSetError> {
        let mut range = CallRange::ALL;
        if self.peek().is_some_and(|byte| byte.is_ascii_lowercase()) {
            range.kind = Some(self.kind()?);
            return Ok(range);
        }
        if !self.has(b'*') {
            // `..M` begins at 0, as the range's default does.
            if self.peek() != Some(b'.') {
                range.start = self.number("a digit or *")?;
            }
            self.end_of(&mut range)?;
        }
        if self.has(b'/') {
            let at = self.at;
            match self.peek() {
                Some(b'0'..=b'9') => range.step = self.number("a digit")?,
                Some(b'a'..=b'z') => range.kind = Some(self.kind()?),
                _ => return Err(self.wrong(at, "a step or a kind of call", self.found(at))),
            }
            // Nothing lies in steps of 0.
            if range.step == 0 {
                return Err(self.wrong(at, "a step of at least 1", "0".to_owned()));
            }
        }
        Ok(range)
    }

    /// What follows a range's first number: `-`, `-M`, or, beyond the grammar of apitrace, `..`, `..M`, `..=M` and `+N`.
    fn end_of(&mut self, range: &mut CallRange) -> Result<(), CallSetError> {
        let at = self.at;
        if self.has(b'-') {
            if self.is_digit() {
                range.stop = self.number("a digit")?;
            }
        } else if self.has(b'+') {
            let count = self.number("a digit")?;
            let last = count.checked_sub(1).and_then(|more| range.start.checked_add(more));
            range.stop = last.ok_or_else(|| self.wrong(at, "a count from 1 on", count.to_string()))?;
        } else if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.has(b'.') {
                return Err(self.wrong(self.at, ".", self.found(self.at)));
            }
            let is_with_last = self.has(b'=');
            if is_with_last || self.is_digit() {
                let end = self.number("a digit")?;
                let last = if is_with_last { Some(end) } else { end.checked_sub(1) };
                range.stop = last.ok_or_else(|| self.wrong(at, "an end from 1 on", end.to_string()))?;
            }
        } else {
            range.stop = range.start;
        }
        Ok(())
    }

    fn number(&mut self, expected: &str) -> Result<u64, CallSetError> {
        let at = self.at;
        if !self.is_digit() {
            return Err(self.wrong(at, expected, self.found(at)));
        }
        while self.is_digit() {
            self.at += 1;
        }
        let digits = self.text.get(at..self.at).unwrap_or_default();
        let number = digits.parse();
        self.skip_blanks();
        number.map_err(|_| self.wrong(at, "a number below 2^64", digits.to_owned()))
    }

    fn kind(&mut self) -> Result<CallFlags, CallSetError> {
        let at = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_lowercase()) {
            self.at += 1;
        }
        let word = self.text.get(at..self.at).unwrap_or_default();
        self.skip_blanks();
        let kind = KINDS.iter().find(|(name, _)| *name == word).map(|(_, flags)| *flags);
        kind.ok_or_else(|| self.wrong(at, "frame, rendertarget, fbo, render or draw", word.to_owned()))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied().filter(|_| self.at < self.end)
    }

    fn is_digit(&self) -> bool {
        self.peek().is_some_and(|byte| byte.is_ascii_digit())
    }

    /// Skips a character if it is next.
    fn has(&mut self, sign: u8) -> bool {
        let has = self.peek() == Some(sign);
        if has {
            self.at += 1;
            self.skip_blanks();
        }
        has
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The character at a place.
    fn found(&self, at: usize) -> String {
        let rest = self.text.get(at..self.end).unwrap_or_default();
        rest.chars().next().map_or_else(|| "the end".to_owned(), |c| c.escape_debug().to_string())
    }

    fn wrong(&self, at: usize, expected: &str, found: String) -> CallSetError {
        let character = self.text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        let message = format!("expected {expected}, found {found}");
        CallSetError { source: self.source.to_owned(), character: Some(character), message }
    }
}
