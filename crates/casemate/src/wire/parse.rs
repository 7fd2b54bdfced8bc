//! Bytes to a borrowed [`Record`]: pure, no I/O, no allocation except for an error.
//!
//! Every form of table 1.2 of the format's chapter is accepted: each field may be `(key value)` or a bare value, keyed
//! fields may appear in any order, white space and `;` comments may appear between tokens.

use std::borrow::Cow;
use std::ops::Range;

use anytrace_core::{Rule, text};

use crate::rules;
use crate::wire::field::{Field, extra_fields, mask, own_fields};
use crate::wire::record::{AtomicOp, Barrier, Domain, HintKind, Kind, MemoryOrder, Record, Source, Spelling, Sysreg};
use crate::wire::style::Radix;
use crate::wire::words::{Class, DIGIT, Key, class, key_at, key_of};
use crate::wire::writer::Layout;
use anytrace_casemate_model::Name;
use anytrace_casemate_model::TlbiOp;

mod errors;
mod finish;
mod older;

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Box<Fault>>;

/// Where and how bytes break the grammar.
#[derive(Debug)]
pub struct Fault {
    /// The rule.
    pub rule: &'static Rule,
    /// Offset from the record's first byte.
    pub at: usize,
    /// The field.
    pub field: Option<&'static str>,
    /// What was expected there.
    pub expected: Option<Cow<'static, str>>,
    /// What was found there, escaped.
    pub found: Option<Cow<'static, str>>,
}

/// Receives the place of each field's value; for writers that change a part of a record and for diagnostics with
/// places.
pub(crate) trait Watch {
    /// The value of `field` is at `value`, counted from the record's first byte, quotes included.
    fn field(&mut self, field: Field, value: Range<usize>);
}

/// Ignores the places.
impl Watch for () {
    #[inline(always)]
    fn field(&mut self, _: Field, _: Range<usize>) {}
}

/// Stores every place.
impl Watch for Vec<(Field, Range<usize>)> {
    fn field(&mut self, field: Field, value: Range<usize>) {
        self.push((field, value));
    }
}

/// Reads the record that begins at the first byte, which must be `(`. Returns it and its length in bytes.
///
/// Of the layout, only the base of numbers without `0x` matters (ids and threads are decimal in any case).
///
/// ```
/// use anytrace_casemate::{Layout, Transition, parse};
///
/// let (record, used) = parse(b"(lock 2 1 42 \"a.c:1\") ", &Layout::default()).unwrap();
/// assert_eq!((record.id, record.thread, used), (2, 1, 21));
/// assert_eq!(record.transition, Transition::Lock { address: 0x42 });
/// ```
///
/// # Errors
/// [`Need::More`] when the bytes end inside the record: text does not say how long it is, so that it requests one byte
/// more than there are. [`Need::Bad`] when the bytes break the grammar.
#[inline]
pub fn parse<'a>(bytes: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    match bytes.first() {
        Some(b'(') => parse_watched(bytes, layout.radix, &mut ()),
        None => Err(Need::More(1)),
        Some(first) => Err(Need::Bad(Box::new(Fault {
            rule: &rules::STRAY_TEXT,
            at: 0,
            field: None,
            expected: Some("'('".into()),
            found: Some(format!("'{}'", text::escaped(&[*first])).into()),
        }))),
    }
}

/// [`parse`] of bytes that begin with `(`, with a watcher.
#[inline]
pub(crate) fn parse_watched<'a, W: Watch>(
    bytes: &'a [u8],
    radix: Radix,
    watch: &mut W,
) -> Result<(Record<'a>, usize), Need> {
    let mut parser = Parser {
        bytes,
        at: 1,
        watch,
        is_hex: radix == Radix::Hex,
        kind: Kind::Lock,
        seen: 0,
        required: 0,
        allowed: 0,
        own: 0,
        before_source: 0,
        last: 0,
        spelling: Spelling::default(),
        numbers: [0; 16],
        order: MemoryOrder::Plain,
        barrier: Barrier::Isb,
        domain: Domain::Ish,
        op: TlbiOp::Alle1is,
        register: Sysreg::VttbrEl2,
        hint: HintKind::SetRootLock,
        atomic: AtomicOp::Swp,
        other: None,
        source: Source::Absent,
    };
    parser.record()
}

struct Parser<'a, 'w, W> {
    bytes: &'a [u8],
    at: usize,
    watch: &'w mut W,
    is_hex: bool,
    kind: Kind,
    /// Fields read so far.
    seen: u16,
    /// Fields that must have been read at the end.
    required: u16,
    /// Fields that may still follow.
    allowed: u16,
    /// The kind's own fields.
    own: u16,
    /// The fields read before the source place.
    before_source: u16,
    /// The highest field so far, to detect reordering.
    last: u16,
    spelling: Spelling,
    numbers: [u64; 16],
    order: MemoryOrder,
    barrier: Barrier,
    domain: Domain,
    op: TlbiOp,
    register: Sysreg,
    hint: HintKind,
    atomic: AtomicOp,
    /// A TLBI or register that is in no table.
    other: Option<Name>,
    source: Source<'a>,
}

impl<'a, W: Watch> Parser<'a, '_, W> {
    #[inline(always)]
    fn record(&mut self) -> Result<(Record<'a>, usize), Need> {
        self.name()?;
        loop {
            match self.skip_space()? {
                b'(' => self.keyed()?,
                b')' => break,
                b'"' => {
                    self.spelling.set(Spelling::POSITIONAL);
                    self.claim_field(Field::Src, self.at)?;
                    self.source_text()?;
                }
                _ => self.positional()?,
            }
        }
        if self.seen & self.required != self.required {
            return Err(self.missing());
        }
        self.at += 1;
        let transition = self.transition()?;
        if self.seen & Field::Src.bit() == 0 {
            self.spelling.set(Spelling::SOURCE_ABSENT);
        } else if self.before_source & self.own != self.seen & self.own {
            self.spelling.set(Spelling::SOURCE_EARLY);
        }
        let record = Record {
            id: self.numbers[Field::Id as usize],
            // Checked when it was read.
            thread: self.numbers[Field::Tid as usize] as u32,
            transition,
            source: self.source,
            spelling: self.spelling,
            text: &self.bytes[..self.at],
        };
        Ok((record, self.at))
    }

    #[inline(always)]
    fn name(&mut self) -> Result<(), Need> {
        let first = self.skip_space()?;
        if class(first) != Class::Word {
            return Err(self.bad(
                &rules::RECORD_WITHOUT_NAME,
                0,
                None,
                "the name of a transition",
                self.at,
                self.at + 1,
            ));
        }
        let (start, end) = self.word()?;
        let key = key_at(self.bytes, start, end);
        let Some(kind) = Kind::from_key(key) else {
            return Err(self.bad(&rules::UNKNOWN_KIND, start, None, "the name of a transition", start, end));
        };
        self.note_keyword(start, kind.is_synonym(key), Spelling::UPPER_CASE);
        self.kind = kind;
        let own = own_fields(kind);
        self.own = own;
        self.required = own | const { mask(&[Field::Id, Field::Tid]) };
        self.allowed = self.required | Field::Src.bit() | extra_fields(kind);
        Ok(())
    }

    /// A `(key value)` field; at its parenthesis.
    #[inline(always)]
    fn keyed(&mut self) -> Result<(), Need> {
        let open = self.at;
        self.at += 1;
        let first = self.skip_space()?;
        if class(first) != Class::Word {
            return Err(self.bad(&rules::MALFORMED_FIELD, open, None, "a key and a value", self.at, self.at + 1));
        }
        let (start, end) = self.word()?;
        let key = key_at(self.bytes, start, end);
        let Some(field) = Field::from_key(key) else { return Err(self.unknown_key(open, start, end, key)) };
        self.note_keyword(start, field.is_synonym(key), Spelling::UPPER_CASE_FIELD);
        self.spelling.set(Spelling::KEYED);
        if matches!(field, Field::Dsb | Field::Isb) {
            self.oldest_barrier(field, open)?;
        } else {
            self.claim_field(field, open)?;
            let first = self.skip_space()?;
            if matches!(first, b'(' | b')') {
                return Err(self.bad(
                    &rules::MALFORMED_FIELD,
                    self.at,
                    Some(field.name()),
                    "a value",
                    self.at,
                    self.at + 1,
                ));
            }
            self.value(field, first)?;
        }
        if self.skip_space()? != b')' {
            return Err(self.bad(&rules::MALFORMED_FIELD, self.at, Some(field.name()), "')'", self.at, self.at + 1));
        }
        self.at += 1;
        Ok(())
    }

    /// A bare value; it belongs to the first field that has not been read yet.
    #[inline(always)]
    fn positional(&mut self) -> Result<(), Need> {
        let left = self.required & !self.seen;
        if matches!(self.kind, Kind::Lock | Kind::Unlock | Kind::Trylock) && left == Field::Address.bit() {
            return self.positional_of_lock();
        }
        if left == 0 {
            return self.second_operand();
        }
        let field = Field::ALL[left.trailing_zeros() as usize % Field::ALL.len()];
        // The operation of a barrier or TLBI has no key in any known log.
        if field != Field::Op || self.kind == Kind::MemAtomic {
            self.spelling.set(Spelling::POSITIONAL);
        }
        self.claim_field(field, self.at)?;
        let first = self.bytes[self.at];
        self.value(field, first)
    }

    /// Marks a field as read; an error if it does not belong here or was read before.
    #[inline(always)]
    fn claim_field(&mut self, field: Field, at: usize) -> Result<(), Need> {
        let bit = field.bit();
        if self.seen & bit != 0 || self.allowed & bit == 0 {
            return Err(self.unwanted(field, at));
        }
        if field == Field::Src {
            self.before_source = self.seen;
        } else {
            if bit < self.last {
                self.spelling.set(Spelling::REORDERED);
            }
            self.last = bit;
        }
        self.seen |= bit;
        Ok(())
    }

    /// The value of a field; at its first byte.
    #[inline(always)]
    fn value(&mut self, field: Field, first: u8) -> Result<(), Need> {
        let start = self.at;
        match field {
            Field::Location
            | Field::Address
            | Field::Addr
            | Field::Size
            | Field::Level
            | Field::Value
            | Field::Read => {
                let value = self.number(field, self.is_hex)?;
                let flag = if self.bytes[start..].get(1).is_some_and(|b| b | 0x20 == b'x') {
                    Spelling::PREFIXED
                } else {
                    Spelling::BARE
                };
                self.spelling.set(flag);
                self.numbers[field as usize] = value;
                if matches!(field, Field::Addr | Field::Level) {
                    self.older_operand();
                }
            }
            Field::Id => self.numbers[Field::Id as usize] = self.number(field, false)?,
            Field::Tid => {
                let value = self.number(field, false)?;
                if value > u64::from(u32::MAX) {
                    return Err(self.bad(
                        &rules::NUMBER_TOO_LARGE,
                        start,
                        Some("tid"),
                        "at most 4294967295",
                        start,
                        self.at,
                    ));
                }
                self.numbers[Field::Tid as usize] = value;
            }
            Field::Src => return self.source(first),
            _ => self.keyword(field)?,
        }
        self.watch.field(field, start..self.at);
        Ok(())
    }

    #[inline(always)]
    fn keyword(&mut self, field: Field) -> Result<(), Need> {
        let (start, end) = self.word()?;
        let key = key_at(self.bytes, start, end);
        let is_synonym = match (field, self.kind) {
            (Field::MemOrder, _) => {
                let Some(order) = MemoryOrder::from_key(key).filter(|order| order.belongs_to(self.kind)) else {
                    return Err(self.unknown_order(field, start, end));
                };
                self.order = order;
                order.is_synonym(key)
            }
            (Field::Op, Kind::Barrier) => return self.barrier_op(key, start, end),
            (Field::Op, Kind::MemAtomic) => {
                let Some(op) = AtomicOp::from_key(key) else {
                    return Err(self.bad_word(&rules::UNKNOWN_ATOMIC, field, AtomicOp::ALL_NAMES, start, end));
                };
                self.atomic = op;
                op.is_synonym(key)
            }
            (Field::Op, _) => return self.tlbi_op(key, start, end),
            (Field::Sysreg, _) => match Sysreg::from_key(key) {
                Some(register) => {
                    self.register = register;
                    register.is_synonym(key)
                }
                None => self.other_name(&rules::UNKNOWN_SYSREG, field, start, end)?,
            },
            (_, Kind::Barrier) => {
                let Some(domain) = Domain::from_key(key) else {
                    return Err(self.bad_word(&rules::UNKNOWN_BARRIER_KIND, field, "ish, ishst, nsh, sy", start, end));
                };
                self.domain = domain;
                domain.is_synonym(key)
            }
            (_, Kind::Hint) => {
                let Some(hint) = HintKind::from_key(key) else {
                    return Err(self.bad_word(&rules::UNKNOWN_HINT, field, HintKind::ALL_NAMES, start, end));
                };
                self.hint = hint;
                hint.is_synonym(key)
            }
            _ => {
                let Some(kind) = Kind::from_key(key).filter(|kind| own_fields(*kind) == self.own) else {
                    return Err(self.bad_word(&rules::UNKNOWN_LOCK_KIND, field, "lock, unlock, trylock", start, end));
                };
                self.kind = kind;
                true
            }
        };
        self.note_keyword(start, is_synonym, Spelling::UPPER_CASE_FIELD);
        Ok(())
    }

    fn barrier_op(&mut self, key: Key, start: usize, end: usize) -> Result<(), Need> {
        self.barrier = match key {
            _ if key == const { key_of("dsb") } => Barrier::Dsb(self.domain),
            _ if key == const { key_of("isb") } => Barrier::Isb,
            _ => return Err(self.bad_word(&rules::UNKNOWN_BARRIER, Field::Op, "dsb, isb", start, end)),
        };
        if self.barrier == Barrier::Isb {
            self.refuse_rest(const { mask(&[Field::Kind]) });
        }
        self.note_keyword(start, false, Spelling::UPPER_CASE_FIELD);
        Ok(())
    }

    fn tlbi_op(&mut self, key: Key, start: usize, end: usize) -> Result<(), Need> {
        match TlbiOp::from_key(key) {
            Some(op) => {
                self.op = op;
                if !op.takes_operand() {
                    self.refuse_rest(const { mask(&[Field::Value, Field::Addr, Field::Level]) });
                }
            }
            None => {
                self.other_name(&rules::UNKNOWN_TLBI, Field::Op, start, end)?;
                // It may have an operand.
                self.required &= !Field::Value.bit();
            }
        }
        self.note_keyword(start, false, Spelling::UPPER_CASE_FIELD);
        Ok(())
    }

    /// The operation has no such fields.
    fn refuse_rest(&mut self, fields: u16) {
        self.required &= !fields;
        self.allowed &= !fields;
        self.own &= !fields;
    }

    #[inline(always)]
    fn source(&mut self, first: u8) -> Result<(), Need> {
        if first == b'"' {
            return self.source_text();
        }
        let start = self.at;
        if DIGIT[usize::from(first)] > 9 {
            let (start, end) = self.word()?;
            return Err(self.bad(
                &rules::MALFORMED_FIELD,
                start,
                Some("src"),
                "a string in quotes or an integer",
                start,
                end,
            ));
        }
        self.source = Source::Key(self.number(Field::Src, false)?);
        self.spelling.set(Spelling::SOURCE_KEY);
        self.watch.field(Field::Src, start..self.at);
        Ok(())
    }

    /// A string; at its quote. It ends on its line: a lost quote must not consume the records after it.
    #[inline(always)]
    fn source_text(&mut self) -> Result<(), Need> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let Some(length) = rest.iter().position(|b| *b == b'"' || *b == b'\n') else { return Err(self.more()) };
        if rest[length] == b'\n' {
            let end = start + 1 + length;
            return Err(self.bad(&rules::UNTERMINATED_STRING, start, Some("src"), "a closing quote", start, end));
        }
        self.source = Source::Text(&rest[..length]);
        self.at = start + length + 2;
        self.watch.field(Field::Src, start..self.at);
        Ok(())
    }

    /// An unsigned number; at its first byte.
    #[inline(always)]
    fn number(&mut self, field: Field, is_hex: bool) -> Result<u64, Need> {
        let start = self.at;
        let mut at = start;
        let mut is_hex = is_hex;
        let mut first_digit = start;
        if self.bytes[at] == b'0' && self.bytes.get(at + 1).is_some_and(|b| b | 0x20 == b'x') {
            at += 2;
            first_digit = at;
            is_hex = true;
        }
        let mut value = 0_u64;
        let mut too_large = false;
        let (base, top_bits) = if is_hex { (16, 60) } else { (10, 64) };
        loop {
            let Some(&byte) = self.bytes.get(at) else { return Err(self.more()) };
            let digit = DIGIT[usize::from(byte)];
            if digit >= base {
                break;
            }
            if is_hex {
                too_large |= value >> top_bits != 0;
                value = value << 4 | u64::from(digit);
            } else if value < 1_000_000_000_000_000_000 {
                value = value * 10 + u64::from(digit);
            } else {
                let next = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit)));
                too_large |= next.is_none();
                value = next.unwrap_or(u64::MAX);
            }
            at += 1;
        }
        if class(self.bytes[at]) == Class::Word || at == first_digit || too_large {
            return Err(self.bad_number(field, too_large));
        }
        self.at = at;
        Ok(value)
    }

    /// A word: its start and its end.
    #[inline(always)]
    fn word(&mut self) -> Result<(usize, usize), Need> {
        let start = self.at;
        loop {
            let Some(&byte) = self.bytes.get(self.at) else { return Err(self.more()) };
            match class(byte) {
                Class::Word => self.at += 1,
                Class::Control => return Err(self.control_character()),
                _ if self.at == start => return Err(self.misplaced_mark()),
                _ => return Ok((start, self.at)),
            }
        }
    }

    /// Skips white space and comments; returns the byte that follows, which is not consumed.
    #[inline(always)]
    fn skip_space(&mut self) -> Result<u8, Need> {
        loop {
            let Some(&byte) = self.bytes.get(self.at) else { return Err(self.more()) };
            match class(byte) {
                Class::Space => self.at += 1,
                Class::Word if byte == b';' => self.skip_comment()?,
                Class::Control => return Err(self.control_character()),
                _ => return Ok(byte),
            }
        }
    }

    #[cold]
    fn skip_comment(&mut self) -> Result<(), Need> {
        let Some(length) = memchr::memchr(b'\n', &self.bytes[self.at..]) else { return Err(self.more()) };
        self.at += length;
        Ok(())
    }

    #[inline(always)]
    fn note_keyword(&mut self, start: usize, is_synonym: bool, upper: Spelling) {
        // Keywords begin with a letter: bit 5 distinguishes lower case from upper case.
        if self.bytes[start] & 0x20 == 0 {
            self.spelling.set(upper);
        }
        if is_synonym {
            self.spelling.set(Spelling::SYNONYM);
        }
    }
}

/// The place of a field's value in a record that parsed, for diagnostics with places.
#[cold]
pub(crate) fn value_offset(text: &[u8], radix: Radix, field: Field) -> usize {
    let mut places: Vec<(Field, Range<usize>)> = Vec::new();
    let _ = parse_watched(text, radix, &mut places);
    places.iter().find(|(f, _)| *f == field).map_or(0, |(_, range)| range.start)
}
