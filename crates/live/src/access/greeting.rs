//! How a connection begins where senders must be known: with a token, in a packet of its own.

use std::io::{ErrorKind, Read};

use anytrace_heph::{METADATA_MAGIC, TOKEN_OPTION};

/// Longest packet that is read from somebody unknown, in bytes.
const PACKET_BYTES_MAX: usize = 1024;

/// Bytes before the name of an option: magic, size, and the length of the name.
const NAME_AT: usize = 10;

/// A connection whose first packet is not there yet.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    bytes: Vec<u8>,
}

/// What came first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Greeted {
    /// It is not all there.
    NotYet,
    /// A token.
    Token(Vec<u8>),
    /// Something else, which begins like this.
    Other(Vec<u8>),
    /// The end of the connection, with what went wrong.
    End(Option<String>),
}

impl Greeting {
    /// Reads on, and no further than the packet.
    pub(crate) fn read(&mut self, from: &mut impl Read) -> Greeted {
        loop {
            let missing = self.missing();
            if missing == 0 {
                return self.is_over();
            }
            let before = self.bytes.len();
            self.bytes.resize(before + missing, 0);
            let read = from.read(self.bytes.get_mut(before..).unwrap_or_default());
            self.bytes.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) if self.bytes.is_empty() => return Greeted::End(None),
                Ok(0) => return Greeted::Other(std::mem::take(&mut self.bytes)),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Greeted::NotYet;
                }
                Err(error) => return Greeted::End(Some(error.to_string())),
            }
        }
    }

    /// How many bytes are still needed to know what it is.
    fn missing(&self) -> usize {
        let needed = match self.size() {
            Some(size) if self.may_be_token() => size,
            Some(_) => 0,
            None => 8,
        };
        needed.saturating_sub(self.bytes.len())
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
    }

    fn size(&self) -> Option<usize> {
        self.word(4).map(|size| size as usize)
    }

    fn may_be_token(&self) -> bool {
        let fits = |size: usize| (NAME_AT + TOKEN_OPTION.len()..=PACKET_BYTES_MAX).contains(&size);
        self.word(0) == Some(METADATA_MAGIC) && self.size().is_some_and(fits)
    }

    fn is_over(&mut self) -> Greeted {
        let bytes = std::mem::take(&mut self.bytes);
        let name = [&(TOKEN_OPTION.len() as u16).to_be_bytes(), TOKEN_OPTION.as_bytes()].concat();
        match bytes.get(8..).and_then(|rest| rest.strip_prefix(&name[..])) {
            Some(token) => Greeted::Token(token.to_vec()),
            None => Greeted::Other(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(option: &str, value: &[u8]) -> Vec<u8> {
        let mut out = METADATA_MAGIC.to_be_bytes().to_vec();
        out.extend_from_slice(&(10 + option.len() as u32 + value.len() as u32).to_be_bytes());
        out.extend_from_slice(&(option.len() as u16).to_be_bytes());
        out.extend_from_slice(option.as_bytes());
        out.extend_from_slice(value);
        out
    }

    /// Bytes that come one by one.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(ErrorKind::WouldBlock.into()) } else { self.0.read(&mut into[..1]) }
        }
    }

    #[test]
    fn a_token_is_taken_and_nothing_after_it() {
        let token = metadata(TOKEN_OPTION, b"secret");
        let all = [&token[..], b"after"].concat();
        let mut from = &all[..];
        assert_eq!(Greeting::default().read(&mut from), Greeted::Token(b"secret".to_vec()));
        assert_eq!(from, b"after");
        let (mut slow, mut greeting, mut waits) = (Slow(&all, false), Greeting::default(), 0);
        let greeted = loop {
            match greeting.read(&mut slow) {
                Greeted::NotYet => waits += 1,
                greeted => break greeted,
            }
        };
        assert_eq!((greeted, slow.0), (Greeted::Token(b"secret".to_vec()), &b"after"[..]));
        assert_eq!(waits, token.len());
    }

    #[test]
    fn anything_else_is_kept_as_it_came() {
        let event = [&0xC1FC_1FB7_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes(), b"rest"].concat();
        let mut from = &event[..];
        assert_eq!(Greeting::default().read(&mut from), Greeted::Other(event[..8].to_vec()));
        assert_eq!(from, b"rest");
        for other in
            [metadata("epoch", &[0; 8]), metadata("another name of 14", b""), metadata(TOKEN_OPTION, &[0; 2000])]
        {
            let mut from = &other[..];
            let Greeted::Other(begin) = Greeting::default().read(&mut from) else { panic!("{other:?}") };
            assert_eq!([&begin, from].concat(), other);
        }
        assert_eq!(Greeting::default().read(&mut &b""[..]), Greeted::End(None));
        assert_eq!(Greeting::default().read(&mut &b"GET"[..]), Greeted::Other(b"GET".to_vec()));
    }
}
