//! How a connection begins where senders must be known: with a token, in a packet of its own.

use std::io::{ErrorKind, Read};

use anytrace_heph::{EVENT_MAGIC, Layout, METADATA_MAGIC, TOKEN_OPTION, parse};

/// Longest packet with a token, in bytes.
const TOKEN_BYTES_MAX: usize = 1024;

/// Longest first packet that is read before a connection has a place, in bytes.
const PACKET_BYTES_MAX: usize = 1 << 16;

/// How much is read at once: nothing is allocated from a size alone.
const STEP_BYTES: usize = 4096;

/// Bytes before the name of an option: magic, size, and the length of the name.
const NAME_AT: usize = 10;

/// A connection whose first packet is not there yet.
#[derive(Debug)]
pub(crate) struct Greeting {
    bytes: Vec<u8>,
    /// Only a token is read.
    is_strict: bool,
}

/// What came first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Greeted {
    /// It is not all there.
    NotYet,
    /// A token.
    Token(Vec<u8>),
    /// A packet, or the beginning of a long one.
    Packet(Vec<u8>),
    /// Something else, which begins like this.
    Other(Vec<u8>),
    /// The end of the connection, with what was wrong with who is at its other end.
    End(Option<String>),
}

impl Greeting {
    /// A connection that was just accepted. `is_strict`: it must begin with a token.
    pub(crate) fn new(is_strict: bool) -> Self {
        Self { bytes: Vec::new(), is_strict }
    }

    /// Reads on, and no further than the packet.
    pub(crate) fn read(&mut self, from: &mut impl Read) -> Greeted {
        loop {
            let missing = self.missing().min(STEP_BYTES);
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
                // TLS refuses a certificate, or bytes that are none of its own. All else is a connection that broke.
                Err(error) if error.kind() == ErrorKind::InvalidData => return Greeted::End(Some(error.to_string())),
                Err(_) => return Greeted::End(None),
            }
        }
    }

    /// How many bytes are still needed to know what it is.
    fn missing(&self) -> usize {
        let needed = match self.size() {
            Some(size) if self.may_be_token() => size,
            Some(size) if self.may_be_packet() && !self.is_strict => size.min(PACKET_BYTES_MAX),
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
        let fits = |size: usize| (NAME_AT + TOKEN_OPTION.len()..=TOKEN_BYTES_MAX).contains(&size);
        self.word(0) == Some(METADATA_MAGIC) && self.size().is_some_and(fits)
    }

    fn may_be_packet(&self) -> bool {
        let is_magic = matches!(self.word(0), Some(EVENT_MAGIC | METADATA_MAGIC));
        is_magic && self.size().is_some_and(|size| size > 8)
    }

    fn is_over(&mut self) -> Greeted {
        let (may_be_packet, is_long) = (self.may_be_packet(), self.size() > Some(self.bytes.len()));
        let bytes = std::mem::take(&mut self.bytes);
        let name = [&(TOKEN_OPTION.len() as u16).to_be_bytes(), TOKEN_OPTION.as_bytes()].concat();
        match bytes.get(8..).and_then(|rest| rest.strip_prefix(&name[..])) {
            Some(token) if !is_long => Greeted::Token(token.to_vec()),
            // A size that is wrong is found here.
            _ if may_be_packet && (is_long || parse(&bytes, &Layout::default()).is_ok()) => Greeted::Packet(bytes),
            _ => Greeted::Other(bytes),
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

    fn greeted(mut from: &[u8], is_strict: bool) -> (Greeted, &[u8]) {
        let greeted = Greeting::new(is_strict).read(&mut from);
        (greeted, from)
    }

    #[test]
    fn a_token_is_taken_and_nothing_after_it() {
        let token = metadata(TOKEN_OPTION, b"secret");
        let all = [&token[..], b"after"].concat();
        for is_strict in [false, true] {
            assert_eq!(greeted(&all, is_strict), (Greeted::Token(b"secret".to_vec()), &b"after"[..]));
        }
        let (mut slow, mut greeting, mut waits) = (Slow(&all, false), Greeting::new(true), 0);
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
    fn the_first_packet_is_known_when_it_is_complete() {
        let packet = metadata("epoch", &[0; 8]);
        let all = [&packet[..], b"after"].concat();
        assert_eq!(greeted(&all, false), (Greeted::Packet(packet.clone()), &b"after"[..]));
        // Where a token is wanted, no more is read: a certificate decides.
        assert_eq!(greeted(&all, true), (Greeted::Packet(packet[..8].to_vec()), &all[8..]));
        let long = metadata("filler", &vec![0; 100_000]);
        let (begin, rest) = greeted(&long, false);
        assert_eq!((begin, rest.len()), (Greeted::Packet(long[..1 << 16].to_vec()), long.len() - (1 << 16)));
        // Half of one, and one whose body is none.
        assert_eq!(greeted(&packet[..15], false).0, Greeted::Other(packet[..15].to_vec()));
        let mut wrong = packet.clone();
        wrong[9] = 200;
        assert_eq!(greeted(&wrong, false).0, Greeted::Other(wrong.clone()));
    }

    #[test]
    fn anything_else_is_kept_as_it_came() {
        for other in [b"GET / HTTP/1.1"[..].to_vec(), metadata("", &[])[..8].to_vec(), vec![0x75; 100]] {
            let (Greeted::Other(begin), rest) = greeted(&other, false) else { panic!("{other:?}") };
            assert_eq!([&begin, rest].concat(), other);
        }
        assert_eq!(greeted(b"", false).0, Greeted::End(None));
        assert_eq!(greeted(b"GET", false).0, Greeted::Other(b"GET".to_vec()));
    }

    /// A connection that fails.
    struct Broken(ErrorKind);

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_connection_that_breaks_is_no_stranger() {
        for kind in [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof] {
            assert_eq!(Greeting::new(true).read(&mut Broken(kind)), Greeted::End(None));
        }
        assert!(matches!(Greeting::new(true).read(&mut Broken(ErrorKind::InvalidData)), Greeted::End(Some(_))));
    }
}
