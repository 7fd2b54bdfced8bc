//! Walks the bits of a structure, and shows its values to a visitor.

use anytrace_core::Endian;

use super::bits::{Bits, Stop, signed};
use crate::model::node::{Field, Integer, Label, NO_SLOT, Node, ROLES, Role};

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// With the base in which it is to be shown.
    U64(u64, u8),
    I64(i64),
    F32(f32),
    F64(f64),
    Text(&'a [u8]),
    /// With all labels of its type.
    Label(i128, &'a [Label]),
}

/// The label of a value.
pub(crate) fn label(value: i128, labels: &[Label]) -> Option<&str> {
    labels.iter().find(|label| (label.first..=label.last).contains(&value)).map(|label| label.name.as_str())
}

/// What a structure or an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Structure,
    Array,
}

/// Sees the values of a structure. Elements of arrays have no names.
pub(crate) trait Visitor {
    fn value(&mut self, name: &str, value: Scalar<'_>);
    fn enter(&mut self, name: &str, shape: Shape);
    fn leave(&mut self, shape: Shape);

    /// The bits of a number, as they are in the packet.
    #[inline]
    fn bits(&mut self, _size: u32, _align: u32, _order: Endian, _value: u64) {}

    /// The bytes of text, with the zero at its end where it has one.
    #[inline]
    fn bytes(&mut self, _bytes: &[u8], _has_zero: bool) {}

    /// What follows begins at a multiple of so many bits.
    #[inline]
    fn align(&mut self, _bits: u32) {}
}

/// Sees nothing: only the length counts.
pub(crate) struct Blind;

impl Visitor for Blind {
    #[inline]
    fn value(&mut self, _: &str, _: Scalar<'_>) {}
    #[inline]
    fn enter(&mut self, _: &str, _: Shape) {}
    #[inline]
    fn leave(&mut self, _: Shape) {}
}

/// What the values so far mean for those that follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Values that types refer to.
    pub(crate) slots: Vec<i128>,
    roles: [Option<u64>; ROLES],
    /// Where each of them is, in bits.
    places: [u64; ROLES],
    /// The last time of the clock.
    pub(crate) ticks: u64,
    /// True when a time was read.
    pub(crate) has_time: bool,
    /// The UUID of the packet.
    pub(crate) uuid: Option<[u8; 16]>,
}

impl Memory {
    pub(crate) fn with_slots(slots: usize) -> Self {
        Self { slots: vec![0; slots], ..Self::default() }
    }

    /// Forgets the values of an earlier structure.
    #[inline]
    pub(crate) fn clear_roles(&mut self) {
        self.roles = [None; ROLES];
    }

    #[inline]
    pub(crate) fn role(&self, role: Role) -> Option<u64> {
        self.roles.get(role as usize).copied().flatten()
    }

    /// The bit at which a value begins.
    pub(crate) fn place(&self, role: Role) -> Option<u64> {
        self.role(role).and_then(|_| self.places.get(role as usize).copied())
    }

    /// A time of fewer than 64 bits has the low ones of the full time: the next such time counts.
    #[inline]
    fn time(&mut self, value: u64, size: u32) {
        self.has_time = true;
        if size >= 64 {
            self.ticks = value;
            return;
        }
        let mask = (1_u64 << size) - 1;
        let carry = if value < self.ticks & mask { mask + 1 } else { 0 };
        self.ticks = ((self.ticks & !mask) | value).wrapping_add(carry);
    }

    #[inline]
    fn integer(&mut self, of: &Integer, bits: &mut Bits<'_>) -> Result<u64, Stop> {
        let value = bits.integer(of.size, of.align, of.order)?;
        if of.slot != NO_SLOT
            && let Some(slot) = self.slots.get_mut(of.slot as usize)
        {
            *slot = if of.is_signed { signed(value, of.size).into() } else { value.into() };
        }
        if of.role != Role::None {
            if let Some(role) = self.roles.get_mut(of.role as usize) {
                *role = Some(value);
            }
            if let Some(place) = self.places.get_mut(of.role as usize) {
                *place = bits.at - u64::from(of.size);
            }
        }
        if of.is_time {
            self.time(value, of.size);
        }
        Ok(value)
    }

    fn slot(&self, slot: u32) -> i128 {
        self.slots.get(slot as usize).copied().unwrap_or(0)
    }
}

/// Reads a value of a type.
///
/// # Errors
/// Where its bits are not in the window or not in the packet.
pub(crate) fn decode<V: Visitor>(
    node: &Node,
    name: &str,
    bits: &mut Bits<'_>,
    memory: &mut Memory,
    visitor: &mut V,
) -> Result<(), Stop> {
    match node {
        Node::Integer(of) => {
            let value = memory.integer(of, bits)?;
            visitor.bits(of.size, of.align, of.order, value);
            if of.is_signed {
                visitor.value(name, Scalar::I64(signed(value, of.size)));
            } else {
                visitor.value(name, Scalar::U64(value, of.base));
            }
        }
        Node::Enumeration(of, labels) => {
            let value = memory.integer(of, bits)?;
            visitor.bits(of.size, of.align, of.order, value);
            let value = if of.is_signed { signed(value, of.size).into() } else { value.into() };
            visitor.value(name, Scalar::Label(value, labels));
        }
        Node::Float { size, align, order } => {
            let value = bits.integer(*size, *align, *order)?;
            visitor.bits(*size, *align, *order, value);
            visitor.value(
                name,
                match size {
                    32 => Scalar::F32(f32::from_bits(value as u32)),
                    _ => Scalar::F64(f64::from_bits(value)),
                },
            );
        }
        Node::Text => {
            let text = bits.text()?;
            visitor.bytes(text, true);
            visitor.value(name, Scalar::Text(text));
        }
        Node::Structure { fields, align } => {
            bits.align(*align);
            visitor.align(*align);
            visitor.enter(name, Shape::Structure);
            for Field { name, node } in fields {
                decode(node, name, bits, memory, visitor)?;
            }
            visitor.leave(Shape::Structure);
        }
        Node::Variant { slot, choices, options } => {
            let tag = memory.slot(*slot);
            let choice = choices.iter().find(|(first, last, _)| (*first..=*last).contains(&tag));
            let option = choice.and_then(|(_, _, option)| options.get(*option)).ok_or(Stop::Tag(tag))?;
            decode(&option.node, name, bits, memory, visitor)?;
        }
        Node::Array { of, length } => elements(of, *length, name, bits, memory, visitor)?,
        Node::Sequence { of, slot } => {
            // A negative length is past any end.
            let length = u64::try_from(memory.slot(*slot)).map_err(|_| Stop::Past)?;
            elements(of, length, name, bits, memory, visitor)?;
        }
    }
    Ok(())
}

fn elements<V: Visitor>(
    of: &Node,
    length: u64,
    name: &str,
    bits: &mut Bits<'_>,
    memory: &mut Memory,
    visitor: &mut V,
) -> Result<(), Stop> {
    if of.is_character() {
        let text = bits.run(length)?;
        visitor.bytes(text, false);
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        visitor.value(name, Scalar::Text(text.get(..end).unwrap_or_default()));
        return Ok(());
    }
    bits.align(of.align());
    visitor.align(of.align());
    visitor.enter(name, Shape::Array);
    for _ in 0..length {
        let before = bits.at;
        decode(of, "", bits, memory, visitor)?;
        // Elements without bits are all the same, and there may be any number of them.
        if bits.at == before {
            break;
        }
    }
    visitor.leave(Shape::Array);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_wrap() {
        let mut memory = Memory::default();
        memory.time(0x1_0000_00f0, 64);
        for (value, expected) in [(0xf1, 0x1_0000_00f1_u64), (0x05, 0x1_0000_0105), (0x05, 0x1_0000_0105)] {
            memory.time(value, 8);
            assert_eq!(memory.ticks, expected);
        }
        memory.time(1, 27);
        assert_eq!(memory.ticks, 0x1_0800_0001);
        memory.ticks = u64::MAX;
        memory.time(0, 8);
        assert_eq!(memory.ticks, 0);
    }

    #[test]
    fn elements_without_bits_do_not_loop() {
        let empty = Node::Structure { fields: Vec::new(), align: 1 };
        let node = Node::Array { of: Box::new(empty), length: u64::MAX };
        let mut bits = Bits { window: &[], base: 0, at: 0, end: 0 };
        assert_eq!(decode(&node, "", &mut bits, &mut Memory::default(), &mut Blind), Ok(()));
    }
}
