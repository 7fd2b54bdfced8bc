//! The fields of records: their keys, their order, and which kinds have them.

use crate::wire::record::Kind;
use crate::wire::words::keywords;

keywords! {
    /// The fields of records, in the order of the document; the name is the key on the wire.
    Field {
        /// Sequence number.
        Id = "id",
        /// Thread.
        Tid = "tid" | "thread" | "cpu",
        /// Which barrier, TLBI or atomic access; a bare word for the first two in every known log.
        Op = "op",
        /// Memory order.
        MemOrder = "mem-order" | "order",
        /// System register.
        Sysreg = "sysreg",
        /// Kind of DSB, hint or (in the oldest logs) lock operation.
        Kind = "kind",
        /// The object of a hint.
        Location = "location",
        /// Address.
        Address = "address",
        /// Page number of a TLBI in its older form.
        Addr = "addr",
        /// Length in bytes.
        Size = "size",
        /// Level of a TLBI in its older form.
        Level = "level",
        /// Value.
        Value = "value",
        /// The value that an atomic access read.
        Read = "read",
        /// Place in the source.
        Src = "src",
        /// The oldest logs' `(DSB INNER_SHAREABLE)`.
        Dsb = "dsb",
        /// The same for ISB.
        Isb = "isb",
    }
}

impl Field {
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of fields.
pub(crate) const fn mask(fields: &[Field]) -> u16 {
    let mut bits = 0;
    let mut at = 0;
    while at < fields.len() {
        bits |= fields[at].bit();
        at += 1;
    }
    bits
}

/// Fields that each kind must have besides id and tid; for barriers and TLBIs the operation decides more.
pub(crate) const fn own_fields(kind: Kind) -> u16 {
    use Field::{Address, Kind as Of, Location, MemOrder, Op, Read, Size, Sysreg, Value};
    match kind {
        Kind::MemWrite => mask(&[MemOrder, Address, Value]),
        Kind::MemAtomic => mask(&[Op, MemOrder, Address, Value, Read]),
        Kind::MemRead => mask(&[Address, Value]),
        Kind::MemInit | Kind::MemFree => mask(&[Address, Size]),
        Kind::MemSet => mask(&[Address, Size, Value]),
        Kind::Barrier => mask(&[Op, Of]),
        Kind::Tlbi => mask(&[Op, Value]),
        Kind::SysregWrite => mask(&[Sysreg, Value]),
        Kind::Hint => mask(&[Of, Location, Value]),
        Kind::Lock | Kind::Unlock | Kind::Trylock => mask(&[Address]),
    }
}

/// Fields that a kind may have besides those of [`own_fields`].
pub(crate) const fn extra_fields(kind: Kind) -> u16 {
    match kind {
        Kind::Tlbi => mask(&[Field::Addr, Field::Level]),
        Kind::Lock | Kind::Unlock | Kind::Trylock => mask(&[Field::Kind]),
        _ => 0,
    }
}
