//! Writes records: the document's form, without keys, or one field per line.

use std::io::Write;

use anytrace_core::{Error, text};

use crate::wire::record::{Barrier, Dialect, Operand, Record, Source, Spelling, Transition};
use crate::wire::style::{Radix, Style};

/// Longest record that a reader accepts, unless the caller's limit is lower. The reference writes records of at most
/// 256 bytes.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;

/// The buffer of a [`Writer`] is written when it reaches this size.
const FLUSH_BYTES: usize = 1 << 16;

/// How records are written, and the base in which their numbers are read.
///
/// A reader accepts every spelling, whatever the layout: only [`Self::radix`] changes what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// One line or several, with keys or without.
    pub style: Style,
    /// Base of the kind's own numbers without `0x`. Decimal numbers have no prefix: a reader must be given the base.
    pub radix: Radix,
    /// Hexadecimal numbers have no `0x`, as in today's logs.
    pub is_bare: bool,
    /// Capitals and `MSR`, as in the document's example.
    pub is_upper: bool,
    /// The source place comes after the thread, as in the document's example.
    pub is_source_early: bool,
    /// A TLBI's address and level stay separate if the record has them so.
    pub keeps_operand: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self::new(Style::Canonical, Radix::Hex)
    }
}

impl Layout {
    /// Lower case, `0x` before hexadecimal numbers, the source last, one register operand for a TLBI.
    pub fn new(style: Style, radix: Radix) -> Self {
        Self { style, radix, is_bare: false, is_upper: false, is_source_early: false, keeps_operand: false }
    }

    /// The layout that is nearest to a record's spelling, with hexadecimal numbers.
    pub fn nearest(record: &Record<'_>) -> Self {
        let spelling = record.spelling;
        let style = match spelling.dialect() {
            Dialect::Positional => Style::Positional,
            _ if record.text.contains(&b'\n') => Style::Pretty,
            _ => Style::Canonical,
        };
        Self {
            style,
            radix: Radix::Hex,
            is_bare: spelling.has(Spelling::BARE) && !spelling.has(Spelling::PREFIXED),
            is_upper: spelling.has(Spelling::UPPER_CASE),
            is_source_early: spelling.has(Spelling::SOURCE_EARLY),
            keeps_operand: true,
        }
    }

    /// A few words that [`Self::from_words`] reads back; empty for the default.
    pub(crate) fn words(self) -> String {
        let style = match self.style {
            Style::Canonical => None,
            Style::Positional => Some("positional"),
            Style::Pretty => Some("pretty"),
        };
        let flags = [
            style,
            self.is_bare.then_some("bare"),
            self.is_upper.then_some("upper"),
            self.is_source_early.then_some("early"),
        ];
        flags.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Parses the output of [`Self::words`].
    pub(crate) fn from_words(words: &str) -> Option<Self> {
        let mut form = Self { keeps_operand: true, ..Self::default() };
        for word in words.split_ascii_whitespace() {
            match word {
                "positional" => form.style = Style::Positional,
                "pretty" => form.style = Style::Pretty,
                "bare" => form.is_bare = true,
                "upper" => form.is_upper = true,
                "early" => form.is_source_early = true,
                _ => return None,
            }
        }
        Some(form)
    }

    /// Rejects a record that was read and that this layout cannot represent, naming record and field.
    pub(crate) fn holds(&self, record: &Record<'_>, seq: u64) -> Result<(), Error> {
        let Transition::Tlbi { operand: Operand::AddressLevel { address, level }, .. } = record.transition else {
            return Ok(());
        };
        if self.keeps_operand || level <= 0xf && address < 1 << 44 {
            return Ok(());
        }
        let (field, value, bits) = if level > 0xf { ("level", level, 4) } else { ("addr", address, 44) };
        Err(Error::unsupported(format!(
            "transition {seq}: {field}: {value:#x} does not fit the {bits} bits it has in a register operand"
        )))
    }

    /// Appends the record, without a line end.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, record: &Record<'_>) {
        let mut fields = Fields { out, form: *self };
        fields.out.push(b'(');
        let name = match record.transition {
            Transition::SysregWrite { .. } if self.is_upper => "MSR",
            transition => transition.kind().name(),
        };
        fields.keyword(name);
        fields.decimal("id", record.id);
        fields.decimal("tid", u64::from(record.thread));
        if self.is_source_early {
            fields.source(record.source);
        }
        fields.transition(&record.transition);
        if !self.is_source_early {
            fields.source(record.source);
        }
        fields.out.push(b')');
    }
}

/// Writes records, each with a line end. Comments and other text between records are not part of a record.
///
/// ```
/// use anytrace_casemate::{Layout, Writer, parse};
///
/// let (record, _) = parse(b"(MSR 3 1 \"f.c:2\" TTBR_EL2 93)", &Layout::default()).unwrap();
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&record)?;
/// let out = writer.finish()?;
/// assert_eq!(out, b"(sysreg-write (id 3) (tid 1) (sysreg ttbr0_el2) (value 0x93) (src \"f.c:2\"))\n");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    layout: Layout,
    buffer: Vec<u8>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Writes in the document's form, with hexadecimal numbers.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// Writes in a given layout.
    pub fn with_layout(out: W, layout: &Layout) -> Self {
        Self { out, layout: *layout, buffer: Vec::new(), records: 0 }
    }

    /// Writes a record by its fields; [`Record::spelling`] and [`Record::text`] are ignored.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`], naming record and field, when the record would not read back; I/O errors.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.layout.holds(record, self.records)?;
        if let Some((field, why)) = refusal(record) {
            return Err(Error::unsupported(format!("transition {}: {field}: {why}", self.records)));
        }
        let start = self.buffer.len();
        self.layout.push(&mut self.buffer, record);
        if self.buffer.len() - start > RECORD_BYTES_MAX {
            self.buffer.truncate(start);
            let why = format!("the record is longer than {RECORD_BYTES_MAX} bytes");
            return Err(Error::unsupported(format!("transition {}: src: {why}", self.records)));
        }
        self.buffer.push(b'\n');
        self.records += 1;
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered and returns the output.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush()?;
        self.out.flush().map_err(|error| Error::io("cannot write the trace", error))?;
        Ok(self.out)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| Error::io("cannot write the trace", error))
    }
}

/// Why no text reads back as this record: its field and the reason.
fn refusal(record: &Record<'_>) -> Option<(&'static str, &'static str)> {
    if let Source::Text(text) = record.source
        && text.iter().any(|byte| matches!(byte, b'"' | b'\n'))
    {
        return Some(("src", "a quote or a line end cannot be written"));
    }
    match record.transition {
        Transition::Tlbi { op, operand } if op.takes_operand() == matches!(operand, Operand::None) => {
            let why = if op.takes_operand() { "this TLBI needs an operand" } else { "this TLBI has no operand" };
            Some(("value", why))
        }
        Transition::MemWrite { order, .. } | Transition::MemAtomic { order, .. }
            if !order.belongs_to(record.kind()) =>
        {
            Some(("mem-order", "this kind of record has no such order"))
        }
        _ => None,
    }
}

struct Fields<'a> {
    out: &'a mut Vec<u8>,
    form: Layout,
}

impl Fields<'_> {
    #[inline]
    fn transition(&mut self, transition: &Transition) {
        match *transition {
            Transition::MemWrite { order, address, value } => {
                self.word("mem-order", order.name(), false);
                self.number("address", address);
                self.number("value", value);
            }
            Transition::MemAtomic { op, order, address, value, read } => {
                self.word("op", op.name(), false);
                self.word("mem-order", order.name(), false);
                self.number("address", address);
                self.number("value", value);
                self.number("read", read);
            }
            Transition::MemRead { address, value } => {
                self.number("address", address);
                self.number("value", value);
            }
            Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
                self.number("address", address);
                self.number("size", size);
            }
            Transition::MemSet { address, size, value } => {
                self.number("address", address);
                self.number("size", size);
                self.number("value", value);
            }
            Transition::Barrier(Barrier::Isb) => self.bare_word("isb"),
            Transition::Barrier(Barrier::Dsb(domain)) => {
                self.bare_word("dsb");
                if self.form.style == Style::Pretty && self.form.is_upper {
                    // The document's example puts the kind on the operation's line.
                    self.out.extend_from_slice(b" (kind ");
                    self.out.extend_from_slice(domain.name().as_bytes());
                    self.out.push(b')');
                } else {
                    self.word("kind", domain.name(), false);
                }
            }
            Transition::Tlbi { op, operand } => {
                self.bare_word(op.name());
                self.operand(operand);
            }
            Transition::OtherTlbi { name, operand } => {
                self.bare_word(name.as_str());
                match operand {
                    Operand::AddressLevel { address, level } => {
                        self.number("addr", address);
                        self.number("level", level);
                    }
                    operand => self.operand(operand),
                }
            }
            Transition::OtherSysreg { name, value } => {
                self.word("sysreg", name.as_str(), true);
                self.number("value", value);
            }
            Transition::SysregWrite { register, value } => {
                self.word("sysreg", register.name(), true);
                self.number("value", value);
            }
            Transition::Hint { hint, location, value } => {
                self.word("kind", hint.name(), true);
                self.number("location", location);
                self.number("value", value);
            }
            Transition::Lock { address } | Transition::Unlock { address } | Transition::Trylock { address } => {
                self.number("address", address);
            }
        }
    }

    fn operand(&mut self, operand: Operand) {
        match operand {
            Operand::AddressLevel { address, level } if self.form.keeps_operand => {
                self.number("addr", address);
                self.number("level", level);
            }
            _ => {
                if let Some(value) = operand.value() {
                    self.number("value", value);
                }
            }
        }
    }

    #[inline]
    fn source(&mut self, source: Source<'_>) {
        match source {
            Source::Absent => {}
            Source::Text(bytes) => {
                self.open("src");
                self.out.push(b'"');
                self.out.extend_from_slice(bytes);
                self.out.push(b'"');
                self.close();
            }
            Source::Key(key) => {
                // Without its key, an integer could belong to any field.
                self.separate();
                self.out.extend_from_slice(b"(src ");
                text::push_dec(self.out, key);
                self.out.push(b')');
            }
        }
    }

    #[inline]
    fn decimal(&mut self, key: &str, value: u64) {
        self.open(key);
        text::push_dec(self.out, value);
        self.close();
    }

    #[inline]
    fn number(&mut self, key: &str, value: u64) {
        self.open(key);
        push_number(self.out, value, self.form);
        self.close();
    }

    #[inline]
    fn word(&mut self, key: &str, word: &str, may_be_upper: bool) {
        self.open(key);
        if may_be_upper {
            self.keyword(word);
        } else {
            self.out.extend_from_slice(word.as_bytes());
        }
        self.close();
    }

    #[inline]
    fn bare_word(&mut self, word: &str) {
        self.separate();
        self.keyword(word);
    }

    #[inline]
    fn keyword(&mut self, word: &str) {
        let start = self.out.len();
        self.out.extend_from_slice(word.as_bytes());
        if self.form.is_upper {
            self.out[start..].make_ascii_uppercase();
        }
    }

    #[inline]
    fn separate(&mut self) {
        self.out.extend_from_slice(if self.form.style == Style::Pretty { b"\n  " } else { b" " });
    }

    #[inline]
    fn open(&mut self, key: &str) {
        self.separate();
        if self.form.style != Style::Positional {
            self.out.push(b'(');
            self.out.extend_from_slice(key.as_bytes());
            self.out.push(b' ');
        }
    }

    #[inline]
    fn close(&mut self) {
        if self.form.style != Style::Positional {
            self.out.push(b')');
        }
    }
}

/// Appends one of the kind's own numbers.
#[inline]
pub(crate) fn push_number(out: &mut Vec<u8>, value: u64, form: Layout) {
    match form.radix {
        Radix::Decimal => text::push_dec(out, value),
        Radix::Hex if form.is_bare => {
            let start = out.len();
            text::push_hex(out, value);
            out.drain(start..start + 2);
        }
        Radix::Hex => text::push_hex(out, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse::parse;

    fn written(text: &str, form: Layout) -> String {
        let (record, _) = parse(text.as_bytes(), &Layout::default()).unwrap();
        let mut out = Vec::new();
        form.push(&mut out, &record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_style_has_its_layout() {
        let text = "(barrier (id 4) (tid 1) dsb (kind ish) (src \"a.c:1\"))";
        assert_eq!(written(text, Layout::default()), text);
        let positional = Layout::new(Style::Positional, Radix::Hex);
        assert_eq!(written(text, positional), "(barrier 4 1 dsb ish \"a.c:1\")");
        let pretty = Layout::new(Style::Pretty, Radix::Hex);
        assert_eq!(written(text, pretty), "(barrier\n  (id 4)\n  (tid 1)\n  dsb\n  (kind ish)\n  (src \"a.c:1\"))");
    }

    #[test]
    fn decimal_numbers_have_no_prefix() {
        let form = Layout::new(Style::Positional, Radix::Decimal);
        assert_eq!(written("(lock 0 0 2a (src 7))", form), "(lock 0 0 42 (src 7))");
    }

    #[test]
    fn an_operand_that_does_not_fit_is_refused_by_field() {
        let (record, _) = parse(b"(tlbi 0 0 vae2is (addr 1) (level 10))", &Layout::default()).unwrap();
        let error = Layout::default().holds(&record, 3).unwrap_err();
        assert!(error.to_string().starts_with("transition 3: level"), "{error}");
        assert!(Layout { keeps_operand: true, ..Layout::default() }.holds(&record, 3).is_ok());
    }

    #[test]
    fn the_words_of_a_form_read_back() {
        for style in [Style::Canonical, Style::Positional, Style::Pretty] {
            for flags in 0..8 {
                let form = Layout {
                    is_bare: flags & 1 != 0,
                    is_upper: flags & 2 != 0,
                    is_source_early: flags & 4 != 0,
                    keeps_operand: true,
                    ..Layout::new(style, Radix::Hex)
                };
                assert_eq!(Layout::from_words(&form.words()), Some(form));
            }
        }
        assert_eq!(Layout::from_words("odd"), None);
    }
}
