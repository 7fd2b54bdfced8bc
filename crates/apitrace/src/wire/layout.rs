//! What must be known to read an event.

use std::fmt;

use anytrace_core::Limits;

use crate::wire::container::{Container, parse_header};
use crate::wire::encode::encode_header;
use crate::wire::record::{Header, Space, Token, VERSION_MAX};
use crate::wire::scan::{Fault, Stop};
use crate::wire::signatures::{Signature, Signatures};
use crate::wire::walker::Walker;

/// Why no event was parsed.
pub type Need = anytrace_core::Need<Fault>;

/// What must be known to read an event: the header, and the signatures that earlier events defined.
///
/// The default is an empty trace of version 6 in a Snappy container. A copy takes as long as the signatures are many.
#[derive(Clone)]
pub struct Layout {
    /// Version, semantic version and properties of the raw stream.
    pub header: Header,
    /// The container around the raw stream, the outermost if there are several.
    pub container: Container,
    pub(crate) signatures: Signatures,
    pub(crate) limits: Limits,
}

impl Default for Layout {
    fn default() -> Self {
        let mut header = Header { version: VERSION_MAX, semantic_version: VERSION_MAX, ..Header::default() };
        header.raw = encode_header(&header);
        Self::new(header, Container::Snappy, Limits::default())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = self.signatures.table(Space::Function).rows().len();
        let mut out = f.debug_struct("Layout");
        out.field("header", &self.header).field("container", &self.container).field("functions", &functions);
        out.finish_non_exhaustive()
    }
}

impl Layout {
    pub(crate) fn new(header: Header, container: Container, limits: Limits) -> Self {
        Self { header, container, signatures: Signatures::new(&limits), limits }
    }

    /// Parses the header of a raw stream. The container of the result is [`Container::Raw`], and it knows no signature.
    /// Returns the length of the header too: the first event begins there.
    ///
    /// # Errors
    /// [`Need::More`] where the header is cut, [`Need::Bad`] where it is longer than a record may be.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Need> {
        let limits = Limits::default();
        let header = parse_header(bytes, &limits).map_err(|stop| need(stop, 0))?;
        let length = header.raw.len();
        Ok((Self::new(header, Container::Raw, limits), length))
    }

    /// The same with another container.
    pub fn with_container(mut self, container: Container) -> Self {
        self.container = container;
        self
    }

    /// Learns the definitions in the event at the start of `bytes`, and returns its length. A parser calls it after
    /// each event; readers and writers do so themselves.
    ///
    /// # Errors
    /// As [`crate::parse()`]; the layout is not changed then.
    pub fn learn(&mut self, bytes: &[u8]) -> Result<usize, Need> {
        let mut walker = Walker::new(self.header.version, &self.limits);
        self.signatures.begin_trial();
        let mut at = 0;
        loop {
            match walker.next(bytes.get(at..).unwrap_or_default(), &mut self.signatures) {
                Ok((token, used)) => {
                    at += used;
                    if token == Token::EndEvent {
                        self.signatures.keep_trial();
                        return Ok(at);
                    }
                }
                Err(stop) => {
                    self.signatures.end_trial();
                    return Err(need(stop, at));
                }
            }
        }
    }

    /// What an id means, if its definition was read.
    pub fn signature(&self, space: Space, id: u64) -> Option<&Signature> {
        let slot = self.signatures.table(space).slot(id)?;
        self.signatures.get(space, slot).filter(|row| row.is_at_hand())
    }
}

/// Counts from the start of the event, not of the token at `at`.
pub(crate) fn need(stop: Stop, at: usize) -> Need {
    match stop {
        Stop::More(more) => Need::More((at as u64).saturating_add(more as u64)),
        Stop::Bad(fault) => Need::Bad(Fault { at: at + fault.at, ..fault }),
    }
}
