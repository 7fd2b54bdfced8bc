//! Writes a YAML trace again with its original text: every good entry, and a new header if the old one is damaged.

use anytrace_core::{Diagnostic, Error, Outcome, Place, Sink};

use crate::verbs::pick::Picker;
use crate::wire::moment::MomentKind;
use crate::wire::put::Out;
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor};
use crate::wire::yaml_write::{put_yaml_end, put_yaml_header};

/// Longest text before the list that is copied unchanged.
const HEADER_TEXT_MAX: usize = 1 << 16;

/// Copies text.
pub(crate) struct YamlCopier<'a, 't> {
    out: &'a mut Out<'t>,
    sink: &'a mut dyn Sink,
    pick: Picker<'a>,
    is_wanted: bool,
    /// Text before the list, buffered until it is known to be good.
    header_text: Vec<u8>,
    header: Option<YamlHeader>,
    is_header_damaged: bool,
    is_in_list: bool,
    pub(crate) outcome: Outcome,
}

impl<'a, 't> YamlCopier<'a, 't> {
    pub(crate) fn new(out: &'a mut Out<'t>, sink: &'a mut dyn Sink, pick: Picker<'a>) -> Self {
        let (is_wanted, header_text, outcome) = (true, Vec::new(), Outcome::default());
        Self {
            out,
            sink,
            pick,
            is_wanted,
            header_text,
            header: None,
            is_header_damaged: false,
            is_in_list: false,
            outcome,
        }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        if !self.is_in_list {
            put_yaml_header(&mut self.out.buffer, &self.header.unwrap_or_default());
            put_yaml_end(&mut self.out.buffer, 0);
            self.outcome.notes.push("An empty list of records was added.".to_owned());
        }
        Ok(self.out.flush()?)
    }

    fn header_text(&mut self, text: &[u8], is_damaged: bool) -> Result<(), Error> {
        self.is_header_damaged |= is_damaged || self.header_text.len() + text.len() > HEADER_TEXT_MAX;
        if !self.is_header_damaged {
            self.header_text.extend_from_slice(text);
        }
        let Some(header) = self.header else { return Ok(()) };
        self.is_in_list = true;
        if !self.is_header_damaged {
            return Ok(self.out.put(&self.header_text)?);
        }
        put_yaml_header(&mut self.out.buffer, &header);
        self.out.buffer.push(b'\n');
        self.outcome.notes.push("The header was rewritten from its valid lines.".to_owned());
        Ok(())
    }
}

impl YamlVisitor for YamlCopier<'_, '_> {
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        self.header = Some(*header);
        Ok(())
    }

    fn entry(&mut self, entry: &YamlEntry, at: Place, _line: u64) -> Result<(), Error> {
        let is_function = matches!(entry.kind, MomentKind::Function(_));
        let id = entry.function.cast_unsigned();
        self.is_wanted = self.pick.is_all()
            || (self.pick.has_time(entry.tsc)
                && self.pick.has_place(at.seq, entry.thread, 0)
                && (!self.pick.has_name_condition() || (is_function && self.pick.has_name(id, &entry.name))));
        self.outcome.records_written += u64::from(self.is_wanted);
        Ok(())
    }

    fn text(&mut self, text: &[u8], is_damaged: bool) -> Result<(), Error> {
        if is_damaged {
            self.outcome.bytes_lost += text.len() as u64;
        }
        if !self.is_in_list {
            return self.header_text(text, is_damaged);
        }
        if std::mem::replace(&mut self.is_wanted, true) && !is_damaged {
            self.out.put(text)?;
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
