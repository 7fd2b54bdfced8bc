//! Forms from before today's tracer: lock kinds as fields, TLBIs with separate page and level, `(DSB INNER_SHAREABLE)`.

use super::{Need, Parser, Watch};
use crate::rules;
use crate::wire::field::{Field, mask, own_fields};
use crate::wire::record::{Barrier, Kind, Spelling};
use crate::wire::words::key_at;

/// What a TLBI may name.
const OPERAND: u16 = mask(&[Field::Value, Field::Addr, Field::Level]);

impl<W: Watch> Parser<'_, '_, W> {
    /// The oldest logs put `LOCK` or `UNLOCK` before the address.
    pub(super) fn positional_of_lock(&mut self) -> Result<(), Need> {
        self.spelling.set(Spelling::POSITIONAL);
        let (start, end) = self.word()?;
        self.at = start;
        let is_kind = matches!(Kind::from_key(key_at(self.bytes, start, end)), Some(k) if own_fields(k) == self.own);
        let field = if is_kind { Field::Kind } else { Field::Address };
        self.claim_field(field, start)?;
        self.value(field, self.bytes[start])
    }

    /// A second bare value after a TLBI by address: the older form, page number and level. A TLBI that is in no table
    /// may have one value or two.
    #[cold]
    pub(super) fn second_operand(&mut self) -> Result<(), Need> {
        if self.other.is_some() && self.kind == Kind::Tlbi && self.seen & OPERAND == 0 {
            self.spelling.set(Spelling::POSITIONAL);
            self.claim_field(Field::Value, self.at)?;
            return self.value(Field::Value, self.bytes[self.at]);
        }
        let is_older_form = self.kind == Kind::Tlbi
            && self.seen & Field::Value.bit() != 0
            && self.seen & mask(&[Field::Addr, Field::Level]) == 0;
        if !is_older_form {
            let (start, end) = self.word()?;
            return Err(self.bad(&rules::UNEXPECTED_FIELD, start, Some("value"), "')' or the source", start, end));
        }
        self.numbers[Field::Addr as usize] = self.numbers[Field::Value as usize];
        self.seen = self.seen & !Field::Value.bit() | mask(&[Field::Addr, Field::Level]);
        self.required = self.seen;
        self.own |= mask(&[Field::Addr, Field::Level]);
        self.spelling.set(Spelling(Spelling::SYNONYM.0 | Spelling::POSITIONAL.0));
        self.value(Field::Level, self.bytes[self.at])
    }

    /// `(addr p)` and `(level l)` mean `(value v)`.
    pub(super) fn older_operand(&mut self) {
        self.spelling.set(Spelling::SYNONYM);
        let both = const { mask(&[Field::Addr, Field::Level]) };
        self.required = self.required & !Field::Value.bit() | both;
        self.allowed &= !Field::Value.bit();
        self.own = self.own & !Field::Value.bit() | both;
    }

    /// `(DSB INNER_SHAREABLE)` and `(ISB)`; after the key.
    #[cold]
    pub(super) fn oldest_barrier(&mut self, field: Field, open: usize) -> Result<(), Need> {
        if self.kind != Kind::Barrier {
            return Err(self.unwanted(field, open));
        }
        self.spelling.set(Spelling::SYNONYM);
        self.claim_field(Field::Op, open)?;
        if field == Field::Isb {
            self.barrier = Barrier::Isb;
            self.refuse_rest(const { mask(&[Field::Kind]) });
            return Ok(());
        }
        self.barrier = Barrier::Dsb(self.domain);
        self.claim_field(Field::Kind, open)?;
        let first = self.skip_space()?;
        self.value(Field::Kind, first)
    }
}
