//! JSON lines: one object per record, with typed fields and what is needed to reproduce its spelling.
//!
//! `form` (a few words) describes how the record is written; if no form reproduces its bytes, `text` contains them.
//! `before` contains the white space and comments before a record unless they are one line end.

use anytrace_core::jsonl::{Object, push_header_start};
use anytrace_core::{Error, text};

use crate::wire::output::claim_text;
use crate::wire::parse::parse;
use crate::wire::record::{
    AtomicOp, Barrier, Domain, HintKind, Kind, MemoryOrder, Operand, Record, Source, Spelling, Sysreg, Transition,
};
use crate::wire::style::Radix;
use crate::wire::writer::Layout;
use anytrace_casemate_model::Name;
use anytrace_casemate_model::TlbiOp;

/// White space and comments that are buffered until the next record.
const BEFORE_BYTES_MAX: usize = 1 << 16;

/// Appends JSON lines.
#[derive(Debug)]
pub(crate) struct JsonLines {
    has_offsets: bool,
    /// Only the meaning of records: no ids, no spelling, and apart from verdicts nothing that is not a record.
    is_plain: bool,
    before: Vec<u8>,
    is_first: bool,
    scratch: Vec<u8>,
}

impl JsonLines {
    pub(crate) fn new(has_offsets: bool) -> Self {
        Self { has_offsets, is_plain: false, before: Vec::new(), is_first: true, scratch: Vec::new() }
    }

    /// Lines that are equal if records have the same meaning, for `diff`.
    pub(crate) fn plain() -> Self {
        Self { is_plain: true, ..Self::new(false) }
    }

    pub(crate) fn header(out: &mut Vec<u8>, radix: Radix) {
        push_header_start(out, "casemate");
        // The format has no versions and no byte order, and its addresses have 64 bits.
        out.extend_from_slice(b",\"format_version\":null,\"byte_order\":null,\"pointer_width\":8,\"radix\":");
        out.extend_from_slice(if radix == Radix::Hex { b"\"hex\"" } else { b"\"dec\"" });
        out.extend_from_slice(b"}\n");
    }

    pub(crate) fn space(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        if self.is_plain {
            return;
        }
        self.before.extend_from_slice(bytes);
        if self.before.len() > BEFORE_BYTES_MAX {
            self.end(out);
        }
    }

    /// The text after the last record, if it is not one line end.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_plain || self.before == b"\n" || self.before.is_empty() && self.is_first {
            return;
        }
        out.extend_from_slice(b"{\"kind\":\"space\",\"before\":");
        text::push_json_bytes(out, &self.before);
        out.extend_from_slice(b"}\n");
        self.before.clear();
        self.is_first = true;
    }

    /// A claimed verdict or a line of the reference's output.
    pub(crate) fn line(&mut self, out: &mut Vec<u8>, kind: &str, offset: u64, bytes: &[u8]) {
        if self.is_plain && kind != "claim" {
            return;
        }
        out.extend_from_slice(b"{\"kind\":");
        text::push_json_str(out, kind);
        if kind == "claim" {
            out.extend_from_slice(b",\"message\":");
            text::push_json_bytes(out, claim_text(bytes));
        }
        if !self.is_plain {
            out.extend_from_slice(b",\"text\":");
            text::push_json_bytes(out, bytes);
        }
        self.close(out, offset);
    }

    pub(crate) fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, offset: u64) {
        out.extend_from_slice(b"{\"kind\":\"");
        out.extend_from_slice(record.kind().name().as_bytes());
        out.push(b'"');
        if !self.is_plain {
            push_u64(out, "id", record.id);
        }
        push_u64(out, "tid", u64::from(record.thread));
        self.fields(out, record);
        self.close(out, offset);
    }

    /// All fields except kind and thread, as an object.
    pub(crate) fn attributes(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        out.extend_from_slice(b"{\"id\":");
        text::push_dec(out, record.id);
        self.fields(out, record);
        out.push(b'}');
    }

    /// The fields after id and thread.
    fn fields(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        match record.transition {
            Transition::Tlbi { op, operand: Operand::AddressLevel { address, level } }
                if self.is_plain && address < 1 << 44 && level <= 0xf =>
            {
                let operand = Operand::Value(address | level << 44);
                push_transition(out, &Transition::Tlbi { op, operand });
            }
            transition => push_transition(out, &transition),
        }
        match record.source {
            Source::Absent => {}
            Source::Text(bytes) => {
                out.extend_from_slice(b",\"src\":");
                text::push_json_bytes(out, bytes);
            }
            Source::Key(key) => push_u64(out, "src", key),
        }
        if !self.is_plain {
            self.spelling(out, record);
        }
    }

    fn spelling(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let form = Layout::nearest(record);
        self.scratch.clear();
        form.push(&mut self.scratch, record);
        if self.scratch != record.text {
            out.extend_from_slice(b",\"text\":");
            text::push_json_bytes(out, record.text);
            return;
        }
        let words = form.words();
        if !words.is_empty() {
            out.extend_from_slice(b",\"form\":");
            text::push_json_str(out, &words);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, offset: u64) {
        if self.has_offsets {
            push_u64(out, "offset", offset);
        }
        let usual: &[u8] = if self.is_first { b"" } else { b"\n" };
        if self.before != usual && !self.is_plain {
            out.extend_from_slice(b",\"before\":");
            text::push_json_bytes(out, &self.before);
        }
        self.before.clear();
        self.is_first = false;
        out.extend_from_slice(b"}\n");
    }
}

fn push_u64(out: &mut Vec<u8>, key: &str, value: u64) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    text::push_dec(out, value);
}

fn push_word(out: &mut Vec<u8>, key: &str, word: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":\"");
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

fn push_transition(out: &mut Vec<u8>, transition: &Transition) {
    match *transition {
        Transition::MemWrite { order, address, value } => {
            push_word(out, "mem-order", order.name());
            push_u64(out, "address", address);
            push_u64(out, "value", value);
        }
        Transition::MemAtomic { op, order, address, value, read } => {
            push_word(out, "op", op.name());
            push_word(out, "mem-order", order.name());
            push_u64(out, "address", address);
            push_u64(out, "value", value);
            push_u64(out, "read", read);
        }
        Transition::MemRead { address, value } => {
            push_u64(out, "address", address);
            push_u64(out, "value", value);
        }
        Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
            push_u64(out, "address", address);
            push_u64(out, "size", size);
        }
        Transition::MemSet { address, size, value } => {
            push_u64(out, "address", address);
            push_u64(out, "size", size);
            push_u64(out, "value", value);
        }
        Transition::Barrier(Barrier::Isb) => push_word(out, "barrier", "isb"),
        Transition::Barrier(Barrier::Dsb(domain)) => {
            push_word(out, "barrier", "dsb");
            push_word(out, "domain", domain.name());
        }
        Transition::Tlbi { op, operand } => {
            push_word(out, "op", op.name());
            push_operand(out, operand);
        }
        Transition::OtherTlbi { name, operand } => {
            push_word(out, "op", name.as_str());
            push_operand(out, operand);
        }
        Transition::OtherSysreg { name, value } => {
            push_word(out, "sysreg", name.as_str());
            push_u64(out, "value", value);
        }
        Transition::SysregWrite { register, value } => {
            push_word(out, "sysreg", register.name());
            push_u64(out, "value", value);
        }
        Transition::Hint { hint, location, value } => {
            push_word(out, "hint", hint.name());
            push_u64(out, "location", location);
            push_u64(out, "value", value);
        }
        Transition::Lock { address } | Transition::Unlock { address } | Transition::Trylock { address } => {
            push_u64(out, "address", address);
        }
    }
}

fn push_operand(out: &mut Vec<u8>, operand: Operand) {
    match operand {
        Operand::None => {}
        Operand::Value(value) => push_u64(out, "value", value),
        Operand::AddressLevel { address, level } => {
            push_u64(out, "addr", address);
            push_u64(out, "level", level);
        }
    }
}

/// A line read back.
#[derive(Debug)]
pub(crate) enum Piece {
    Record(Owned),
    /// A verdict or a line of output: its kind and its text.
    Line(&'static str, Vec<u8>),
    /// Only white space and comments.
    Space,
}

/// A record that owns its bytes.
#[derive(Debug)]
pub(crate) struct Owned {
    id: u64,
    thread: u32,
    transition: Transition,
    source: OwnedSource,
    form: Option<Layout>,
    text: Option<Vec<u8>>,
}

#[derive(Debug)]
enum OwnedSource {
    Absent,
    Text(Vec<u8>),
    Key(u64),
}

impl Owned {
    /// The record and its own bytes, if it has any: those of `text` if its fields still agree with them.
    pub(crate) fn as_record(&self) -> Record<'_> {
        let source = match &self.source {
            OwnedSource::Absent => Source::Absent,
            OwnedSource::Text(text) => Source::Text(text),
            OwnedSource::Key(key) => Source::Key(*key),
        };
        Record {
            id: self.id,
            thread: self.thread,
            transition: self.transition,
            source,
            spelling: Spelling::default(),
            text: &[],
        }
    }

    /// Appends the record as it was spelled.
    pub(crate) fn push(&self, out: &mut Vec<u8>, radix: Radix) {
        let record = self.as_record();
        let mut form = self.form.unwrap_or(Layout { keeps_operand: true, ..Layout::default() });
        if let Some(text) = &self.text
            && let Ok((spelt, used)) = parse(text, &Layout { radix, ..Layout::default() })
        {
            if used == text.len() && spelt.means_same(&record) {
                out.extend_from_slice(text);
                return;
            }
            // A field was changed: the rest of the spelling is preserved as far as a form can.
            form = Layout::nearest(&spelt);
        }
        if radix == Radix::Decimal && form.is_bare {
            form.radix = Radix::Decimal;
        }
        form.push(out, &record);
    }
}

/// Reads one object.
pub(crate) fn read(object: &Object) -> Result<(Piece, Option<Vec<u8>>), Error> {
    let before = if object.has("before") { Some(object.bytes("before")?) } else { None };
    let piece = match object.str("kind")? {
        "space" => Piece::Space,
        "claim" => Piece::Line("claim", line_text(object)?),
        "output" => Piece::Line("output", line_text(object)?),
        name => match Kind::from_name(name) {
            Some(kind) => Piece::Record(read_record(object, kind)?),
            None => return Err(object.wrong("kind", "a kind of transition", name)),
        },
    };
    Ok((piece, before))
}

fn line_text(object: &Object) -> Result<Vec<u8>, Error> {
    let text = object.bytes("text")?;
    if text.contains(&b'\n') {
        return Err(object.wrong("text", "one line", "a line end"));
    }
    Ok(text)
}

fn read_record(object: &Object, kind: Kind) -> Result<Owned, Error> {
    let source = match object.get("src") {
        None => OwnedSource::Absent,
        Some(value) if value.is_u64() => OwnedSource::Key(object.u64("src")?),
        Some(_) => OwnedSource::Text(object.bytes("src")?),
    };
    if let OwnedSource::Text(text) = &source
        && text.iter().any(|b| matches!(b, b'"' | b'\n'))
    {
        return Err(object.wrong("src", "text without quotes and line ends", "one of them"));
    }
    let form = match object.has("form") {
        false => None,
        true => {
            let words = object.str("form")?;
            let form = Layout::from_words(words);
            Some(form.ok_or_else(|| object.wrong("form", "positional, pretty, bare, upper, early", words))?)
        }
    };
    Ok(Owned {
        id: object.u64("id")?,
        thread: object.uint("tid")?,
        transition: read_transition(object, kind)?,
        source,
        form,
        text: if object.has("text") { Some(object.bytes("text")?) } else { None },
    })
}

fn read_transition(object: &Object, kind: Kind) -> Result<Transition, Error> {
    let address = || object.u64("address");
    let value = || object.u64("value");
    let size = || object.u64("size");
    Ok(match kind {
        Kind::MemWrite => Transition::MemWrite { order: order(object, kind)?, address: address()?, value: value()? },
        Kind::MemAtomic => Transition::MemAtomic {
            op: word(object, "op", AtomicOp::from_name)?,
            order: order(object, kind)?,
            address: address()?,
            value: value()?,
            read: object.u64("read")?,
        },
        Kind::MemRead => Transition::MemRead { address: address()?, value: value()? },
        Kind::MemInit => Transition::MemInit { address: address()?, size: size()? },
        Kind::MemFree => Transition::MemFree { address: address()?, size: size()? },
        Kind::MemSet => Transition::MemSet { address: address()?, size: size()?, value: value()? },
        Kind::Barrier => Transition::Barrier(match object.str("barrier")? {
            "isb" => Barrier::Isb,
            "dsb" => Barrier::Dsb(word(object, "domain", Domain::from_name)?),
            other => return Err(object.wrong("barrier", "dsb or isb", other)),
        }),
        Kind::Tlbi => read_tlbi(object)?,
        Kind::SysregWrite => {
            let word = object.str("sysreg")?;
            match (Sysreg::from_name(word), Name::new(word.as_bytes())) {
                (Some(register), _) => Transition::SysregWrite { register, value: value()? },
                (None, Some(name)) => Transition::OtherSysreg { name, value: value()? },
                (None, None) => return Err(object.wrong("sysreg", "the name of a register", word)),
            }
        }
        Kind::Hint => Transition::Hint {
            hint: word(object, "hint", HintKind::from_name)?,
            location: object.u64("location")?,
            value: value()?,
        },
        Kind::Lock => Transition::Lock { address: address()? },
        Kind::Unlock => Transition::Unlock { address: address()? },
        Kind::Trylock => Transition::Trylock { address: address()? },
    })
}

/// A memory order that the kind of record has.
fn order(object: &Object, kind: Kind) -> Result<MemoryOrder, Error> {
    word(object, "mem-order", |word| MemoryOrder::from_name(word).filter(|order| order.belongs_to(kind)))
}

fn read_tlbi(object: &Object) -> Result<Transition, Error> {
    let word = object.str("op")?;
    let operand = if object.has("addr") || object.has("level") {
        Operand::AddressLevel { address: object.u64("addr")?, level: object.u64("level")? }
    } else if object.has("value") {
        Operand::Value(object.u64("value")?)
    } else {
        Operand::None
    };
    let Some(op) = TlbiOp::from_name(word) else {
        let name = Name::new(word.as_bytes()).ok_or_else(|| object.wrong("op", "the name of an operation", word))?;
        return Ok(Transition::OtherTlbi { name, operand });
    };
    match (op.takes_operand(), operand) {
        (true, Operand::None) => Err(object.wrong("value", "a number, as the operation takes an address", "nothing")),
        (false, Operand::Value(_) | Operand::AddressLevel { .. }) => {
            Err(object.wrong("value", "nothing, as the operation takes no address", "a number"))
        }
        _ => Ok(Transition::Tlbi { op, operand }),
    }
}

fn word<T>(object: &Object, field: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
    let word = object.str(field)?;
    read(word).ok_or_else(|| object.wrong(field, "a known word", word))
}
