//! The parser's errors for bytes that break the grammar; separate from the fast path.

use std::borrow::Cow;

use anytrace_core::{Rule, text};

use super::{Fault, Need, Parser, Watch};
use crate::rules;
use crate::wire::field::Field;
use crate::wire::record::Kind;
use crate::wire::words::Key;
use anytrace_casemate_model::Name;

/// How much of a wrong word an error shows.
const SHOWN_BYTES_MAX: usize = 64;

impl<W: Watch> Parser<'_, '_, W> {
    /// The bytes end inside the record.
    #[cold]
    pub(super) fn more(&self) -> Need {
        Need::More(self.bytes.len() as u64 + 1)
    }

    #[cold]
    pub(super) fn bad(
        &self,
        rule: &'static Rule,
        at: usize,
        field: Option<&'static str>,
        expected: &'static str,
        start: usize,
        end: usize,
    ) -> Need {
        let found = self.bytes.get(start..end).unwrap_or_default();
        let shown = &found[..found.len().min(SHOWN_BYTES_MAX)];
        let dots = if found.len() > SHOWN_BYTES_MAX { "…" } else { "" };
        Need::Bad(Box::new(Fault {
            rule,
            at,
            field,
            expected: (!expected.is_empty()).then_some(Cow::Borrowed(expected)),
            found: Some(format!("'{}{dots}'", text::escaped(shown)).into()),
        }))
    }

    #[cold]
    pub(super) fn bad_word(
        &self,
        rule: &'static Rule,
        field: Field,
        names: &'static str,
        start: usize,
        end: usize,
    ) -> Need {
        self.bad(rule, start, Some(field.name()), names, start, end)
    }

    #[cold]
    pub(super) fn unknown_order(&self, field: Field, start: usize, end: usize) -> Need {
        let names = match self.kind {
            Kind::MemAtomic => "one of: plain acquire release acq_rel",
            _ => "one of: plain release page",
        };
        self.bad_word(&rules::UNKNOWN_MEMORY_ORDER, field, names, start, end)
    }

    /// Keeps a word that is in no table, unless it cannot be a name. Never a synonym.
    #[cold]
    pub(super) fn other_name(
        &mut self,
        rule: &'static Rule,
        field: Field,
        start: usize,
        end: usize,
    ) -> Result<bool, Need> {
        self.other = Name::new(self.bytes.get(start..end).unwrap_or_default());
        match self.other {
            Some(_) => Ok(false),
            None => Err(self.bad_word(rule, field, "a name of at most 23 letters, digits and '_'", start, end)),
        }
    }

    #[cold]
    pub(super) fn bad_number(&mut self, field: Field, too_large: bool) -> Need {
        let (start, end) = match self.word() {
            Ok(word) => word,
            Err(need) => return need,
        };
        let word = &self.bytes[start..end];
        let name = Some(field.name());
        if too_large && word.iter().all(|b| b.is_ascii_hexdigit() || b | 0x20 == b'x') {
            return self.bad(&rules::NUMBER_TOO_LARGE, start, name, "a number of 64 bits", start, end);
        }
        if word.eq_ignore_ascii_case(b"0x") {
            return self.bad(&rules::EMPTY_NUMBER, start, name, "digits after 0x", start, end);
        }
        let expected = if word.first() == Some(&b'-') { "a number that is not negative" } else { "a number" };
        self.bad(&rules::BAD_NUMBER, start, name, expected, start, end)
    }

    #[cold]
    pub(super) fn control_character(&self) -> Need {
        self.bad(&rules::CONTROL_CHARACTER, self.at, None, "text", self.at, self.at + 1)
    }

    #[cold]
    pub(super) fn misplaced_mark(&self) -> Need {
        self.bad(&rules::MALFORMED_FIELD, self.at, None, "a word", self.at, self.at + 1)
    }

    /// A field that does not belong here, or occurs a second time.
    #[cold]
    pub(super) fn unwanted(&self, field: Field, at: usize) -> Need {
        let rule = if self.seen & self.allowed & field.bit() != 0 {
            &rules::DUPLICATE_FIELD
        } else {
            &rules::UNEXPECTED_FIELD
        };
        let expected = match rule.code {
            "casemate/duplicate-field" => "it once".into(),
            _ => self.wanted(),
        };
        let found = Some(format!("'{}'", field.name()).into());
        Need::Bad(Box::new(Fault { rule, at, field: Some(field.name()), expected: Some(expected), found }))
    }

    /// A key that no record has, or the start of the next record.
    #[cold]
    pub(super) fn unknown_key(&self, open: usize, start: usize, end: usize, key: Key) -> Need {
        if Kind::from_key(key).is_some() {
            return self.bad(&rules::UNCLOSED_RECORD, open, None, "')'", open, end);
        }
        let found = self.bytes.get(start..end).unwrap_or_default();
        let shown = text::escaped(&found[..found.len().min(SHOWN_BYTES_MAX)]);
        Need::Bad(Box::new(Fault {
            rule: &rules::UNEXPECTED_FIELD,
            at: open,
            field: None,
            expected: Some(self.wanted()),
            found: Some(format!("'{shown}'").into()),
        }))
    }

    #[cold]
    pub(super) fn missing(&self) -> Need {
        let left = self.required & !self.seen;
        let first = Field::ALL[left.trailing_zeros() as usize % Field::ALL.len()];
        Need::Bad(Box::new(Fault {
            rule: &rules::MISSING_FIELD,
            at: self.at,
            field: Some(first.name()),
            expected: Some(self.wanted()),
            found: Some("')'".into()),
        }))
    }

    /// The fields that may come now.
    pub(super) fn wanted(&self) -> Cow<'static, str> {
        let left = self.allowed & !self.seen;
        let first = |of: u16| Field::ALL.iter().find(|f| of & f.bit() != 0).map(|f| f.name());
        match (first(left & self.required), first(left)) {
            (Some(name), _) => format!("'{name}'").into(),
            (None, Some(_)) if left & Field::Src.bit() != 0 => "')' or 'src'".into(),
            _ => "')'".into(),
        }
    }
}
