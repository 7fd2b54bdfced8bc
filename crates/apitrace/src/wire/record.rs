//! The units of the wire: the header, events, and the tokens they consist of.

/// Highest version of the raw stream this crate reads and writes.
pub const VERSION_MAX: u64 = 6;

/// First version whose enter events carry a thread number.
pub(crate) const VERSION_THREADS: u64 = 4;

/// First version with semantic version, properties, call flags and wide strings.
pub(crate) const VERSION_PROPERTIES: u64 = 6;

/// First version whose enumeration signatures contain all names.
pub(crate) const VERSION_ENUM_SETS: u64 = 3;

/// First version with backtraces.
pub(crate) const VERSION_BACKTRACES: u64 = 5;

/// The start of the raw stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Version of the encoding.
    pub version: u64,
    /// Version of the calls' meaning; the encoding's version if the stream has no separate one.
    pub semantic_version: u64,
    /// Names and values, in wire order; empty before version 6.
    pub properties: Vec<(Vec<u8>, Vec<u8>)>,
    /// The original bytes, kept because numbers may be longer than needed.
    pub raw: Vec<u8>,
}

/// The two kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A call begins; its number is the count of enters before it.
    Enter,
    /// A call ends.
    Leave,
}

impl EventKind {
    /// `enter` or `leave`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enter => "enter",
            Self::Leave => "leave",
        }
    }
}

/// How a leave event relates to the enters before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The enter is there and was waiting. Always so for enters themselves.
    Paired,
    /// The enter was in a part of the stream that could not be read.
    Lost,
    /// The call was left before.
    Repeated,
    /// No call of this number was entered.
    Unknown,
}

/// One event: what is known about it when its tokens are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Event number on the wire, from 0.
    pub seq: u64,
    /// Offset in the raw stream.
    pub offset: u64,
    /// Enter or leave.
    pub kind: EventKind,
    /// Call number: counted for enters, stored in leaves.
    pub call: u64,
    /// Thread of the call; 0 if the stream does not specify it.
    pub thread: u64,
    /// Slot of the function in the signature tables, once it is known.
    pub function: Option<u32>,
    /// Frame the call belongs to, from 0.
    pub frame: u64,
    /// For leaves: whether there is an enter.
    pub pairing: Pairing,
    /// What the visitor returned for the call's enter; 0 where there is none.
    pub mark: u64,
}

/// The five name spaces of signature ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Functions.
    Function,
    /// Structures.
    Struct,
    /// Enumerations.
    Enum,
    /// Bit masks.
    Bitmask,
    /// Stack frames.
    Frame,
}

impl Space {
    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Struct => "struct",
            Self::Enum => "enum",
            Self::Bitmask => "bitmask",
            Self::Frame => "frame",
        }
    }
}

/// A signature id, with its definition if it is defined here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureRef<'a> {
    /// The id.
    pub id: u64,
    /// Where in the token's bytes the id ends. A definition, if any, begins there.
    pub(crate) id_end: usize,
    /// The bytes of the definition, if it is here.
    pub definition: Option<&'a [u8]>,
    /// Slot in the table of its space.
    pub(crate) slot: u32,
    /// How the id came to be known.
    pub(crate) origin: Origin,
}

/// How a signature id came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Defined earlier, or found to be lost earlier.
    Known,
    /// Defined here.
    Defined,
    /// Defined here although it was defined before.
    Redefined,
    /// Used here for the first time, its definition is lost.
    Lost,
}

/// A signed number as stored: the sign as a type byte, then the magnitude. Minus zero exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signed {
    /// Type byte 3.
    pub is_negative: bool,
    /// The number without its sign.
    pub magnitude: u64,
}

impl Signed {
    /// The value in a type that holds all of them.
    pub fn value(self) -> i128 {
        let magnitude = i128::from(self.magnitude);
        if self.is_negative { -magnitude } else { magnitude }
    }
}

/// Strings and blobs have the same layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesKind {
    /// Type 7.
    Text,
    /// Type 8.
    Blob,
}

/// One step through an event, in wire order.
///
/// Arrays, structures, pairs of human and machine values and backtraces are followed by their contents, then by
/// [`Token::EndLevel`], which has no bytes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// An enter event begins.
    Enter {
        /// The thread number; `None` before version 4.
        thread: Option<u64>,
    },
    /// A leave event begins.
    Leave {
        /// The number of the call that is left.
        call: u64,
    },
    /// The function of an enter event.
    Function(SignatureRef<'a>),
    /// An argument; its value follows.
    Argument(u64),
    /// The return value follows.
    Return,
    /// The thread detail of the document, before version 4.
    Thread(u64),
    /// A backtrace of this many frames follows.
    Backtrace(u64),
    /// One frame of a backtrace.
    Frame(SignatureRef<'a>),
    /// Call flags.
    Flags(u64),
    /// The event ends.
    EndEvent,
    /// The null pointer.
    Null,
    /// False or true.
    Bool(bool),
    /// A number.
    Integer(Signed),
    /// The bits of a 32-bit float.
    Float(u32),
    /// The bits of a 64-bit float.
    Double(u64),
    /// A string or blob of moderate size.
    Bytes(BytesKind, &'a [u8]),
    /// A long string or blob begins; its pieces follow.
    BytesStart(BytesKind, u64),
    /// A piece of a long string or blob.
    BytesPiece(&'a [u8]),
    /// A long string or blob ends. No bytes of its own.
    BytesEnd(BytesKind),
    /// An enumeration; before version 3 the value is the signature's.
    Enum(SignatureRef<'a>, Option<Signed>),
    /// A bit mask.
    Bitmask(SignatureRef<'a>, u64),
    /// An array of this many values begins.
    Array(u64),
    /// A structure of this many members begins.
    Struct(SignatureRef<'a>, u64),
    /// An opaque pointer.
    Pointer(u64),
    /// A human and a machine value follow.
    Repr,
    /// A wide string of this many characters; the bytes are its encoded numbers.
    Wide(u64, &'a [u8]),
    /// Array, structure, pair or backtrace ends. No bytes of its own.
    EndLevel,
}

impl<'a> Token<'a> {
    /// The signature that the token names, and its space.
    pub fn signature(&self) -> Option<(Space, &SignatureRef<'a>)> {
        Some(match self {
            Self::Function(signature) => (Space::Function, signature),
            Self::Frame(signature) => (Space::Frame, signature),
            Self::Struct(signature, _) => (Space::Struct, signature),
            Self::Enum(signature, _) => (Space::Enum, signature),
            Self::Bitmask(signature, _) => (Space::Bitmask, signature),
            _ => return None,
        })
    }
}

/// True for functions that end a frame.
pub(crate) fn ends_frame(name: &[u8]) -> bool {
    match name {
        b"glXSwapBuffers"
        | b"glXSwapBuffersMscOML"
        | b"eglSwapBuffers"
        | b"eglSwapBuffersWithDamageEXT"
        | b"eglSwapBuffersWithDamageKHR"
        | b"wglSwapBuffers"
        | b"wglSwapLayerBuffers"
        | b"wglSwapMultipleBuffers"
        | b"CGLFlushDrawable"
        | b"glFrameTerminatorGREMEDY" => true,
        // Direct3D methods are named `Interface::Method`. In apitrace 11.1, reading back a render target ends a frame
        // (callflags.tsv of the corpus).
        _ => {
            let Some(colons) = name.windows(2).position(|pair| pair == b"::") else { return false };
            let (interface, method) = (&name[..colons], &name[colons + 2..]);
            match method {
                b"Present" | b"Present1" | b"PresentEx" | b"PresentBuffer" => {
                    interface.starts_with(b"IDXGI") || interface.starts_with(b"IDirect3D")
                }
                b"GetRenderTargetData" => interface.starts_with(b"IDirect3DDevice9"),
                _ => false,
            }
        }
    }
}
