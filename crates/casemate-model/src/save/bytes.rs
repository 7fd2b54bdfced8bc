//! Numbers and lists as bytes, and back. Numbers have eight bytes, little-endian.

use alloc::vec::Vec;

use crate::bits::Bits;

/// Writes.
#[derive(Debug, Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    /// A number.
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A flag, in one byte.
    pub fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// Bytes behind their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A number that may be absent.
    pub fn option(&mut self, number: Option<u64>) {
        self.flag(number.is_some());
        self.number(number.unwrap_or(0));
    }

    /// A list: its length, then each element.
    pub fn list<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.number(items.len() as u64);
        items.for_each(|item| write(self, item));
    }

    pub(super) fn bits(&mut self, bits: &Bits) {
        bits.words().iter().for_each(|word| self.number(*word));
    }
}

/// Reads; every method returns `None` where the bytes end too early or mean nothing.
#[derive(Debug)]
pub struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    /// A number that fits a smaller type.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// A flag.
    pub fn flag(&mut self) -> Option<bool> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (*first < 2).then_some(*first == 1)
    }

    /// Bytes behind their number; those of the input, so that a wrong number allocates nothing.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.small()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number that may be absent.
    pub fn option(&mut self) -> Option<Option<u64>> {
        let is_some = self.flag()?;
        let number = self.number()?;
        Some(is_some.then_some(number))
    }

    /// A list. Its length allocates nothing: an element takes bytes that must be there.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(read(self)?);
        }
        Some(items)
    }

    pub(super) fn bits(&mut self) -> Option<Bits> {
        let mut words = [0; 8];
        for word in &mut words {
            *word = self.number()?;
        }
        Some(Bits::from_words(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_every_shorter_text_is_refused() {
        let mut out = Out::default();
        out.number(7);
        out.flag(true);
        out.bytes(b"abc");
        out.option(Some(9));
        out.option(None);
        out.list([1_u64, 2].into_iter(), Out::number);
        out.bits(&Bits::range(3, 70));
        let read = |bytes: &[u8]| {
            let mut input = In(bytes);
            let found = (
                input.number()?,
                input.flag()?,
                input.bytes()?.to_vec(),
                input.option()?,
                input.option()?,
                input.list(In::number)?,
                input.bits()?,
            );
            input.0.is_empty().then_some(found)
        };
        let expected = (7, true, b"abc".to_vec(), Some(9), None, vec![1, 2], Bits::range(3, 70));
        assert_eq!(read(&out.0), Some(expected));
        for length in 0..out.0.len() {
            assert_eq!(read(&out.0[..length]), None, "{length}");
        }
        assert_eq!(In(&u64::MAX.to_le_bytes()).list(In::number), None);
        assert_eq!(In(&[2]).flag(), None);
        assert_eq!(In(&300_u64.to_le_bytes()).small::<u8>(), None);
    }
}
