//! Thrift's compact protocol, as far as Parquet's metadata need it
//! (`doc/specs/thrift-compact-protocol.md` of Apache Thrift).

/// Type of an element of a list: 32-bit integer.
pub(super) const I32: u8 = 5;
/// Type of an element of a list: string of bytes.
pub(super) const BINARY: u8 = 8;
/// Type of an element of a list: struct.
pub(super) const STRUCT: u8 = 12;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I64: u8 = 6;
const LIST: u8 = 9;

/// Writes one struct, field by field in ascending order.
#[derive(Debug, Default)]
pub(super) struct Thrift {
    out: Vec<u8>,
    /// Number of the last field of the struct at hand.
    last: u8,
}

impl Thrift {
    /// Ends the struct.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }

    /// A field.
    pub(super) fn bool(&mut self, id: u8, value: bool) {
        self.header(id, if value { TRUE } else { FALSE });
    }

    /// A field: 8 bits.
    pub(super) fn byte(&mut self, id: u8, value: u8) {
        self.header(id, BYTE);
        self.out.push(value);
    }

    /// A field.
    pub(super) fn i32(&mut self, id: u8, value: i32) {
        self.header(id, I32);
        self.zigzag(value.into());
    }

    /// A field.
    pub(super) fn i64(&mut self, id: u8, value: i64) {
        self.header(id, I64);
        self.zigzag(value);
    }

    /// A field: bytes or text.
    pub(super) fn bytes(&mut self, id: u8, value: &[u8]) {
        self.header(id, BINARY);
        self.element(value);
    }

    /// A field: a struct.
    pub(super) fn fields(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.header(id, STRUCT);
        self.nested(fill);
    }

    /// A field: a list, whose elements follow by the methods below.
    pub(super) fn list(&mut self, id: u8, element: u8, count: usize) {
        self.header(id, LIST);
        match u8::try_from(count).ok().filter(|count| *count < 15) {
            Some(count) => self.out.push(count << 4 | element),
            None => {
                self.out.push(0xf0 | element);
                varint(&mut self.out, count as u64);
            }
        }
    }

    /// An element: a struct.
    pub(super) fn nested(&mut self, fill: impl FnOnce(&mut Self)) {
        let around = std::mem::take(&mut self.last);
        fill(self);
        self.out.push(0);
        self.last = around;
    }

    /// An element: a struct that was written by another.
    pub(super) fn written(&mut self, other: Self) {
        self.out.extend_from_slice(&other.finish());
    }

    /// An element: a 32-bit integer.
    pub(super) fn number(&mut self, value: i32) {
        self.zigzag(value.into());
    }

    /// An element: bytes or text.
    pub(super) fn element(&mut self, value: &[u8]) {
        varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    fn header(&mut self, id: u8, kind: u8) {
        // Numbers of Parquet's fields are small and ascend: the short form always fits.
        debug_assert!((1..=15).contains(&id.wrapping_sub(self.last)), "fields ascend by at most 15");
        self.out.push(id.wrapping_sub(self.last) << 4 | kind);
        self.last = id;
    }

    fn zigzag(&mut self, value: i64) {
        varint(&mut self.out, (value << 1 ^ value >> 63).cast_unsigned());
    }
}

/// Appends a number, seven bits a byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_is_what_the_specification_says() {
        let mut thrift = Thrift::default();
        thrift.i32(1, -1);
        thrift.i64(3, 150);
        thrift.bool(4, true);
        thrift.fields(5, |inner| {
            inner.bool(2, false);
            inner.bytes(3, b"ab");
        });
        thrift.list(6, I32, 2);
        thrift.number(0);
        thrift.number(i32::MIN);
        thrift.list(9, STRUCT, 15);
        (0..15).for_each(|_| thrift.nested(|_| ()));
        let mut expected = vec![0x15, 1, 0x26, 0xac, 2, 0x11, 0x1c, 0x22, 0x18, 2, b'a', b'b', 0];
        expected.extend([0x19, 0x25, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        expected.extend([0x39, 0xfc, 15]);
        expected.extend([0; 16]);
        assert_eq!(thrift.finish(), expected);
    }
}
