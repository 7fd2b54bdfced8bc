//! Parses bytes to tokens, one step at a time. It can resume anywhere and does no I/O.

use anytrace_core::Limits;

use crate::wire::record::{
    BytesKind, Origin, SignatureRef, Space, Token, VERSION_ENUM_SETS, VERSION_MAX, VERSION_THREADS,
};
use crate::wire::scan::{FaultKind, Scan, Stop};
use crate::wire::signatures::Signatures;

/// Strings and blobs up to this size come as one token.
pub(crate) const WHOLE_BYTES_MAX: u64 = 64 * 1024;

/// Values nested deeper than this are not followed. The stack is a vector, so this bounds memory only.
const LEVELS_MAX: usize = 1 << 18;

/// Longest name that is plausible after damage.
const GUESSED_NAME_MAX: u64 = 256;

/// Most arguments or members that are plausible after damage.
const GUESSED_COUNT_MAX: u64 = 256;

/// Walks through events token by token.
#[derive(Debug)]
pub(crate) struct Walker {
    version: u64,
    token_bytes_max: u64,
    state: WalkerState,
    /// For each open array, structure or pair: how many values are still to come.
    levels: Vec<u64>,
    /// A number of the last token took more than ten bytes.
    pub(crate) has_long_number: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkerState {
    Start,
    Function,
    Detail,
    Value,
    Frames(u64),
    Pieces(BytesKind, u64),
}

type Step<'w> = Result<(Token<'w>, usize), Stop>;

/// What the walker asks about signature ids, and where it puts definitions.
pub(crate) trait Definitions {
    /// The slot of an id, if it is known, and whether its definition is at the start of `rest`, the bytes after the id.
    fn find(&mut self, space: Space, id: u64, version: u64, rest: &[u8]) -> Result<(Option<u32>, bool), Stop>;

    /// Adds a signature and returns its slot.
    fn define(&mut self, space: Space, id: u64, definition: &[u8], is_lost: bool) -> u32;

    /// How many members a structure has; `None` if its definition is lost.
    fn members(&self, id: u64, slot: u32) -> Option<u64>;
}

/// The reader's own tables.
impl Definitions for Signatures {
    #[inline]
    fn find(&mut self, space: Space, id: u64, version: u64, rest: &[u8]) -> Result<(Option<u32>, bool), Stop> {
        let known = self.table(space).slot(id);
        Ok((known, is_definition(self, known, space, version, rest)?))
    }

    #[inline]
    fn define(&mut self, space: Space, id: u64, definition: &[u8], is_lost: bool) -> u32 {
        Self::define(self, space, id, definition, is_lost)
    }

    #[inline]
    fn members(&self, _: u64, slot: u32) -> Option<u64> {
        self.get(Space::Struct, slot).filter(|row| !row.is_lost).map(|row| row.count)
    }
}

/// True when the definition of an id follows it.
#[inline]
pub(crate) fn is_definition(
    signatures: &Signatures,
    known: Option<u32>,
    space: Space,
    version: u64,
    rest: &[u8],
) -> Result<bool, Stop> {
    match known {
        None if !signatures.may_be_lost => Ok(true),
        None => is_plausible(space, version, rest),
        Some(slot) if space == Space::Function => is_repeated(signatures, slot, rest),
        Some(_) => Ok(false),
    }
}

impl Walker {
    pub(crate) fn new(version: u64, limits: &Limits) -> Self {
        Self {
            version,
            token_bytes_max: limits.record_bytes_max,
            state: WalkerState::Start,
            levels: Vec::new(),
            has_long_number: false,
        }
    }

    /// Forgets the event that was begun.
    pub(crate) fn reset(&mut self) {
        self.state = WalkerState::Start;
        self.levels.clear();
    }

    /// How deep the open values are nested.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The next token at the start of `window`, and its length.
    pub(crate) fn next<'w>(&mut self, window: &'w [u8], signatures: &mut impl Definitions) -> Step<'w> {
        let mut scan = Scan::new(window);
        let result = match self.state {
            WalkerState::Start => self.start(&mut scan),
            WalkerState::Function => self.function(&mut scan, signatures),
            WalkerState::Detail => self.detail(&mut scan),
            WalkerState::Frames(left) => self.frame(&mut scan, signatures, left),
            WalkerState::Value => self.value(&mut scan, signatures),
            WalkerState::Pieces(kind, left) => self.piece(&mut scan, kind, left),
        };
        match result {
            Ok(token) => {
                self.has_long_number = scan.has_long_number;
                Ok((token, scan.at))
            }
            Err(Stop::More(need)) if need as u64 > self.token_bytes_max => scan.bad(FaultKind::TooLong, 0, need as u64),
            Err(stop) => Err(stop),
        }
    }

    fn start<'w>(&mut self, scan: &mut Scan<'w>) -> Result<Token<'w>, Stop> {
        let token = match scan.byte()? {
            0 if self.version >= VERSION_THREADS => Token::Enter { thread: Some(scan.uint()?) },
            0 => Token::Enter { thread: None },
            1 => Token::Leave { call: scan.uint()? },
            other => return scan.bad(FaultKind::Event, 0, u64::from(other)),
        };
        self.state = if matches!(token, Token::Enter { .. }) { WalkerState::Function } else { WalkerState::Detail };
        Ok(token)
    }

    fn function<'w>(&mut self, scan: &mut Scan<'w>, signatures: &mut impl Definitions) -> Result<Token<'w>, Stop> {
        let token = self.signature(scan, signatures, Space::Function)?;
        self.state = WalkerState::Detail;
        Ok(Token::Function(token))
    }

    fn detail<'w>(&mut self, scan: &mut Scan<'w>) -> Result<Token<'w>, Stop> {
        let (token, next) = match scan.byte()? {
            0 => (Token::EndEvent, WalkerState::Start),
            1 => (Token::Argument(scan.uint()?), WalkerState::Value),
            2 => (Token::Return, WalkerState::Value),
            3 if self.version < VERSION_THREADS => (Token::Thread(scan.uint()?), WalkerState::Detail),
            4 => {
                let count = scan.uint()?;
                (Token::Backtrace(count), WalkerState::Frames(count))
            }
            5 => (Token::Flags(scan.uint()?), WalkerState::Detail),
            other => return scan.bad(FaultKind::Detail, 0, u64::from(other)),
        };
        self.state = next;
        Ok(token)
    }

    fn frame<'w>(
        &mut self,
        scan: &mut Scan<'w>,
        signatures: &mut impl Definitions,
        left: u64,
    ) -> Result<Token<'w>, Stop> {
        if left == 0 {
            self.state = WalkerState::Detail;
            return Ok(Token::EndLevel);
        }
        let token = self.signature(scan, signatures, Space::Frame)?;
        self.state = WalkerState::Frames(left - 1);
        Ok(Token::Frame(token))
    }

    fn piece<'w>(&mut self, scan: &mut Scan<'w>, kind: BytesKind, left: u64) -> Result<Token<'w>, Stop> {
        if left == 0 {
            self.end_value();
            return Ok(Token::BytesEnd(kind));
        }
        let at_hand = scan.rest().len() as u64;
        if at_hand == 0 {
            return Err(Stop::More(1));
        }
        let bytes = scan.take(at_hand.min(left))?;
        self.state = WalkerState::Pieces(kind, left - bytes.len() as u64);
        Ok(Token::BytesPiece(bytes))
    }

    /// Opens a level, or none where the value is at the top.
    fn begin_level(&mut self, scan: &Scan<'_>, count: u64) -> Result<(), Stop> {
        if self.levels.len() >= LEVELS_MAX {
            return scan.bad(FaultKind::TooDeep, 0, self.levels.len() as u64);
        }
        if let Some(left) = self.levels.last_mut() {
            *left -= 1;
        }
        self.levels.push(count);
        self.state = WalkerState::Value;
        Ok(())
    }

    /// Ends a value without parts.
    fn end_value(&mut self) {
        self.state = match self.levels.last_mut() {
            Some(left) => {
                *left = left.saturating_sub(1);
                WalkerState::Value
            }
            None => WalkerState::Detail,
        };
    }

    fn value<'w>(&mut self, scan: &mut Scan<'w>, signatures: &mut impl Definitions) -> Result<Token<'w>, Stop> {
        if self.levels.last() == Some(&0) {
            self.levels.pop();
            self.state = if self.levels.is_empty() { WalkerState::Detail } else { WalkerState::Value };
            return Ok(Token::EndLevel);
        }
        let token = match scan.byte()? {
            0 => Token::Null,
            1 => Token::Bool(false),
            2 => Token::Bool(true),
            kind @ (3 | 4) => {
                Token::Integer(crate::wire::record::Signed { is_negative: kind == 3, magnitude: scan.uint()? })
            }
            5 => Token::Float(u32::from_le_bytes(scan.array()?)),
            6 => Token::Double(u64::from_le_bytes(scan.array()?)),
            7 => return self.bytes(scan, BytesKind::Text),
            8 => return self.bytes(scan, BytesKind::Blob),
            9 => {
                let signature = self.signature(scan, signatures, Space::Enum)?;
                let value = if self.version >= VERSION_ENUM_SETS { Some(scan.signed()?) } else { None };
                Token::Enum(self.defined(signatures, signature, Space::Enum), value)
            }
            10 => {
                let signature = self.signature(scan, signatures, Space::Bitmask)?;
                let value = scan.uint()?;
                Token::Bitmask(self.defined(signatures, signature, Space::Bitmask), value)
            }
            12 => return self.structure(scan, signatures),
            11 => {
                let count = scan.uint()?;
                self.begin_level(scan, count)?;
                return Ok(Token::Array(count));
            }
            13 => Token::Pointer(scan.uint()?),
            14 => {
                self.begin_level(scan, 2)?;
                return Ok(Token::Repr);
            }
            15 => {
                let count = scan.uint()?;
                let from = scan.at;
                // Each character takes a byte at least: a hostile count ends with the data or the limit.
                for _ in 0..count {
                    scan.uint()?;
                }
                Token::Wide(count, scan.since(from))
            }
            other => return scan.bad(FaultKind::Type, 0, u64::from(other)),
        };
        self.end_value();
        Ok(token)
    }

    fn bytes<'w>(&mut self, scan: &mut Scan<'w>, kind: BytesKind) -> Result<Token<'w>, Stop> {
        let length = scan.uint()?;
        if length > WHOLE_BYTES_MAX {
            self.state = WalkerState::Pieces(kind, length);
            return Ok(Token::BytesStart(kind, length));
        }
        let bytes = scan.take(length)?;
        self.end_value();
        Ok(Token::Bytes(kind, bytes))
    }

    fn structure<'w>(&mut self, scan: &mut Scan<'w>, signatures: &mut impl Definitions) -> Result<Token<'w>, Stop> {
        let signature = self.signature(scan, signatures, Space::Struct)?;
        let signature = self.defined(signatures, signature, Space::Struct);
        let Some(count) = signatures.members(signature.id, signature.slot) else {
            return scan.bad(FaultKind::LostStruct, 1, signature.id);
        };
        self.begin_level(scan, count)?;
        Ok(Token::Struct(signature, count))
    }

    /// An id and, at its first use, its definition. Functions and frames are entered into the table here; value types
    /// by [`Self::defined`] once the token is complete.
    fn signature<'w>(
        &self,
        scan: &mut Scan<'w>,
        signatures: &mut impl Definitions,
        space: Space,
    ) -> Result<SignatureRef<'w>, Stop> {
        let id = scan.uint()?;
        let id_end = scan.at;
        let mut definition = None;
        let found = signatures.find(space, id, self.version, scan.rest());
        let (known, is_defined_here) = found.map_err(|stop| match stop {
            Stop::More(need) => Stop::More(id_end.saturating_add(need)),
            bad => bad,
        })?;
        if is_defined_here {
            pass_definition(scan, space, self.version)?;
            definition = Some(scan.since(id_end));
        }
        let origin = match (known.is_some(), is_defined_here) {
            (true, false) => Origin::Known,
            (true, true) => Origin::Redefined,
            (false, true) => Origin::Defined,
            (false, false) => Origin::Lost,
        };
        let signature = SignatureRef { id, id_end, definition, slot: known.unwrap_or(u32::MAX), origin };
        Ok(match space {
            Space::Function | Space::Frame => self.defined(signatures, signature, space),
            _ => signature,
        })
    }

    fn defined<'w>(
        &self,
        signatures: &mut impl Definitions,
        mut signature: SignatureRef<'w>,
        space: Space,
    ) -> SignatureRef<'w> {
        if signature.origin != Origin::Known {
            let is_lost = signature.origin == Origin::Lost;
            signature.slot = signatures.define(space, signature.id, signature.definition.unwrap_or_default(), is_lost);
        }
        signature
    }
}

/// Skips a definition, which starts after the id.
pub(crate) fn pass_definition(scan: &mut Scan<'_>, space: Space, version: u64) -> Result<(), Stop> {
    match space {
        Space::Function | Space::Struct => {
            scan.string()?;
            let count = scan.uint()?;
            for _ in 0..count {
                scan.string()?;
            }
        }
        Space::Enum if version < VERSION_ENUM_SETS => {
            scan.string()?;
            scan.signed()?;
        }
        Space::Enum => {
            let count = scan.uint()?;
            for _ in 0..count {
                scan.string()?;
                scan.signed()?;
            }
        }
        Space::Bitmask => {
            let count = scan.uint()?;
            for _ in 0..count {
                scan.string()?;
                scan.uint()?;
            }
        }
        Space::Frame => loop {
            let at = scan.at;
            match scan.byte()? {
                0 => break,
                1..=3 => {
                    scan.string()?;
                }
                4 | 5 => {
                    scan.uint()?;
                }
                other => return scan.bad(FaultKind::FrameDetail, at, u64::from(other)),
            }
        },
    }
    Ok(())
}

/// True when the definition of a known function appears again: the same bytes, or a name where no detail can be. Two
/// writers on one file cause this (apitrace issues #27, #110).
fn is_repeated(signatures: &Signatures, slot: u32, rest: &[u8]) -> Result<bool, Stop> {
    let Some(row) = signatures.function(slot) else { return Ok(false) };
    match rest.first() {
        // An event ends with a byte of its own, so it is safe to require one more byte.
        None => Err(Stop::More(1)),
        Some(0) => Ok(false),
        Some(1..=5) if row.definition.len() < 6 => Ok(false),
        Some(1..=5) if rest.len() < row.definition.len() && row.definition.starts_with(rest) => {
            Err(Stop::More(row.definition.len()))
        }
        Some(1..=5) => Ok(rest.starts_with(&row.definition)),
        Some(_) => is_plausible(Space::Function, VERSION_MAX, rest),
    }
}

/// True when the bytes look like a definition and not like what follows a known id. Called only where the plain reading
/// fails or definitions may be lost. Requires more bytes only while everything so far is plausible.
fn is_plausible(space: Space, version: u64, rest: &[u8]) -> Result<bool, Stop> {
    let mut scan = Scan::new(rest);
    let count = match space {
        Space::Function | Space::Struct => {
            if !plausible_name(&mut scan)? {
                return Ok(false);
            }
            let count = scan.uint()?;
            if count > GUESSED_COUNT_MAX {
                return Ok(false);
            }
            count
        }
        Space::Enum if version < VERSION_ENUM_SETS => 1,
        Space::Enum | Space::Bitmask => {
            let count = scan.uint()?;
            if count == 0 {
                return Ok(false);
            }
            count
        }
        Space::Frame => return is_plausible_frame(&mut scan),
    };
    // Arguments and members may have no name: nested structures have none.
    let may_be_empty = matches!(space, Space::Function | Space::Struct);
    for _ in 0..count {
        if may_be_empty && scan.rest().first() == Some(&0) {
            scan.byte()?;
        } else if !plausible_name(&mut scan)? {
            return Ok(false);
        }
        match space {
            Space::Enum => match scan.signed() {
                Err(Stop::Bad(_)) => return Ok(false),
                other => {
                    other?;
                }
            },
            Space::Bitmask => {
                scan.uint()?;
            }
            _ => {}
        }
    }
    Ok(true)
}

fn is_plausible_frame(scan: &mut Scan<'_>) -> Result<bool, Stop> {
    for details in 0.. {
        match scan.byte()? {
            0 => return Ok(details > 0),
            1..=3 if !plausible_name(scan)? => return Ok(false),
            1..=3 => {}
            4 | 5 => {
                scan.uint()?;
            }
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// Reads a string and returns whether it is a plausible name. Stops at the first byte that is not.
fn plausible_name(scan: &mut Scan<'_>) -> Result<bool, Stop> {
    let length = scan.uint()?;
    let shown = scan.rest().iter().take(usize::try_from(length).unwrap_or(usize::MAX));
    if length > GUESSED_NAME_MAX || length == 0 || !shown.copied().all(is_name_byte) {
        return Ok(false);
    }
    scan.take(length)?;
    Ok(true)
}

fn is_name_byte(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

/// True for plausible names: not empty, no control bytes.
pub(crate) fn is_plausible_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() as u64 <= GUESSED_NAME_MAX && name.iter().copied().all(is_name_byte)
}
