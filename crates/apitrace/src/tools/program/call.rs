//! A call as a machine gets it: arguments by what they are, and what is done around it.

use anytrace_core::Error;

use crate::lanes::dictionary::Dictionary;
use crate::lanes::wire::{Value, Wire};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::{Elements, float, integer};

/// Why a call cannot be repeated.
#[derive(Debug)]
pub enum Unfit {
    /// A value does not have the parameter's type, or the machine cannot do it: a description.
    Value(&'static str),
    /// The machine failed.
    Failed(Error),
}

impl From<Error> for Unfit {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What a machine is asked to do.
pub(super) enum Act<'a, 'v> {
    Call(&'a GlCall<'v>),
    Memory(&'a MemoryChange<'v>),
}

/// A function of OpenGL and its arguments.
#[derive(Debug)]
pub struct GlCall<'a> {
    /// The call's number.
    pub number: u64,
    /// The function.
    pub name: &'static str,
    /// The function without the suffix of its extension.
    pub stem: &'static str,
    /// Types of the result and the parameters, as [`split_types`](super::split_types) splits them: a letter each, `p`
    /// before what a pointer points to.
    pub types: &'static str,
    /// One for each parameter.
    pub arguments: &'a [Argument<'a>],
    /// What the machine does besides calling.
    pub around: Around<'a>,
    /// What ids of values denote.
    pub dictionary: &'a Dictionary,
}

impl GlCall<'_> {
    /// The first argument, where it is an integer, an enumeration or a name, as the trace has it; else 0.
    pub fn first(&self) -> u32 {
        match self.arguments.first() {
            Some(Argument::Scalar(Scalar::Integer(number))) => *number as u32,
            Some(Argument::Scalar(Scalar::Enum(number, _) | Scalar::Object(_, number))) => *number,
            _ => 0,
        }
    }

    /// How many objects it makes whose names are stored where [`Argument::NewNames`] is.
    pub fn made(&self) -> usize {
        match self.around {
            Around::MakesMany { names, .. } => names.len(),
            _ => 0,
        }
    }
}

/// What a call answered in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// By its result: an error code, which depends on all calls before.
    Error(u32),
    /// By its result.
    Returned(u32),
    /// In memory, to which its only pointer points.
    Stored(u32),
}

/// What is done besides calling. Names and addresses are those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around<'a> {
    /// Nothing.
    Nothing,
    /// The program is current from then on.
    UsesProgram(u32),
    /// The result is the location of a uniform.
    FindsLocation {
        /// The program.
        program: u32,
        /// Its location in the trace; not negative.
        location: i32,
    },
    /// The result is the index of a uniform block.
    FindsBlock {
        /// The program.
        program: u32,
        /// Its index in the trace.
        block: u32,
    },
    /// The sync object no longer exists.
    DeletesSync(u64),
    /// The result is an address of mapped memory.
    Maps {
        /// Its address in the trace.
        address: u64,
        /// The argument with its length in bytes; `None`: the whole buffer.
        length: Option<usize>,
        /// The first argument names the buffer itself, not a target.
        is_name: bool,
    },
    /// The memory of the buffer is no longer mapped, before the call.
    Unmaps {
        /// As for [`Around::Maps`].
        is_name: bool,
    },
    /// Pixels are written to the program's memory, which nobody reads, or into a buffer: called only for the latter.
    Packs,
    /// It changes nothing; its answer may differ here. Only for machines that want such calls.
    Asks(Answer),
    /// The result names a new object.
    Makes {
        /// What it is.
        kind: Kind,
        /// Its name in the trace.
        name: u32,
    },
    /// New objects are stored where [`Argument::NewNames`] is.
    MakesMany {
        /// What they are.
        kind: Kind,
        /// Their names in the trace.
        names: &'a [u32],
    },
    /// The result is the first of consecutive names.
    MakesRange {
        /// What they are.
        kind: Kind,
        /// The first name in the trace.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// The result is a new sync object.
    MakesSync(u64),
}

/// A change of the program's memory that the tracer recorded. Addresses are those of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryChange<'a> {
    /// So many bytes exist at the address.
    Allocated(u64, u64),
    /// They no longer exist.
    Released(u64),
    /// The first moved, and has the length, to the second.
    Moved(u64, u64, u64),
    /// The bytes are written to the address.
    Copied(u64, &'a [u8]),
}

/// An argument.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// A number, by the parameter's type.
    Scalar(Scalar<'a>),
    /// A number that may name a color buffer of the window, which have other names without a window.
    WindowBuffer(Scalar<'a>),
    /// An array of those.
    WindowBuffers(Elements<'a>),
    /// Location of a uniform of a program, or of the current program.
    Location(Option<u32>, i32),
    /// Index of a uniform block of a program.
    Block(u32, u32),
    /// The null pointer.
    Null,
    /// A pointer to these bytes.
    Bytes(&'a [u8]),
    /// A pointer to these characters; a null character follows.
    Text(&'a [u8]),
    /// An address of the program, or an offset into a buffer.
    Address(u64),
    /// A pointer to values.
    Array(Array<'a>),
    /// A pointer to room for names of new objects.
    NewNames,
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub enum Scalar<'a> {
    /// An integer of any width.
    Integer(i64),
    /// An enumeration or a mask, and its value on the wire, which may have names.
    Enum(u32, Value<'a>),
    /// For parameters of 32 or 64 bits.
    Float(f64),
    /// The name of an object; not 0.
    Object(Kind, u32),
    /// A sync object.
    Sync(u64),
}

impl<'a> Scalar<'a> {
    /// A value for a parameter with this letter. `kind`: it names objects of this kind.
    ///
    /// # Errors
    /// [`Unfit::Value`] for other types.
    pub fn new(letter: u8, kind: Option<Kind>, value: Value<'a>, dictionary: &Dictionary) -> Result<Self, Unfit> {
        let bad = Unfit::Value("a value's type differs from its parameter's");
        if matches!(letter, b'f' | b'd') {
            return float(value, dictionary).map(Self::Float).ok_or(bad);
        }
        let read = match value {
            // Careless programs pass floating-point numbers to some functions for integers.
            Value::Float(_) | Value::Double(_) => float(value, dictionary).map(|number| number as i64),
            _ => integer(value, dictionary),
        };
        let number = read.ok_or(bad)?;
        Ok(match (letter, kind) {
            (b'y', _) => Self::Sync(number as u64),
            (b'u', Some(kind)) if number != 0 => Self::Object(kind, number as u32),
            (b'e', _) => Self::Enum(number as u32, value),
            (b'u' | b'i' | b'b' | b'c' | b'a' | b's' | b'w' | b'l' | b'n' | b'L', _) => Self::Integer(number),
            _ => return Err(Unfit::Value("a parameter has a type that traces cannot represent")),
        })
    }
}

/// Values that a pointer points to.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    /// Letter of the elements' type: `p` for pointers; for untyped memory, what the values suggest.
    pub letter: u8,
    /// What the pointers among the elements point to.
    pub inner: &'static [u8],
    /// The memory is untyped: it may be a vertex array, which must stay in place.
    pub is_untyped: bool,
    /// The elements name objects of this kind.
    pub kind: Option<Kind>,
    /// The elements, as many as there are.
    pub elements: Elements<'a>,
    /// So many elements are said to be there.
    pub count: u64,
}

impl<'a> Array<'a> {
    /// Bytes of the elements in memory.
    pub fn bytes(&self) -> u64 {
        self.elements.count() as u64 * element_bytes(self.letter) as u64
    }

    /// The elements as arguments.
    pub fn arguments(&self, dictionary: &'a Dictionary) -> impl Iterator<Item = Result<Argument<'a>, Unfit>> {
        let this = *self;
        self.elements.map(move |mut wire| {
            if this.letter != b'p' {
                return Scalar::new(this.letter, this.kind, wire.value(), dictionary).map(Argument::Scalar);
            }
            let mut ahead = wire;
            if matches!(ahead.value(), Value::Array(_)) {
                return Err(Unfit::Value("arrays are nested"));
            }
            pointer(this.inner, None, wire, dictionary)
        })
    }
}

/// Bytes of an element of an array in memory; 8 for pointers.
fn element_bytes(letter: u8) -> usize {
    match letter {
        b'b' | b'c' | b'a' => 1,
        b's' | b'w' => 2,
        b'e' | b'u' | b'i' | b'f' => 4,
        _ => 8,
    }
}

impl Scalar<'_> {
    /// Its bytes in the memory of little-endian machines; the trace's own number for names of objects.
    pub fn encode(&self, letter: u8, out: &mut Vec<u8>) {
        let number = match *self {
            Scalar::Float(number) if letter == b'f' => return out.extend((number as f32).to_le_bytes()),
            Scalar::Float(number) => return out.extend(number.to_le_bytes()),
            Scalar::Integer(number) => number as u64,
            Scalar::Enum(number, _) | Scalar::Object(_, number) => u64::from(number),
            Scalar::Sync(number) => number,
        };
        out.extend(number.to_le_bytes().into_iter().take(element_bytes(letter)));
    }
}

/// A value for a parameter that is a pointer `to` something.
pub(super) fn pointer<'a>(
    to: &'static [u8],
    kind: Option<Kind>,
    mut wire: Wire<'a>,
    dictionary: &'a Dictionary,
) -> Result<Argument<'a>, Unfit> {
    Ok(match wire.value() {
        Value::Null | Value::Array(0) => Argument::Null,
        Value::Blob(_, Some(bytes)) => Argument::Bytes(bytes),
        Value::Text(text) if matches!(to, b"a" | b"b" | b"v") => Argument::Text(text),
        Value::Array(count) => Argument::Array(array(to, kind, Elements::new(wire, count, dictionary), count)?),
        Value::Unsigned(number) | Value::Pointer(number) => Argument::Address(number),
        Value::Blob(_, None) => return Err(Unfit::Value("its bytes are not in the trace")),
        _ => return Err(Unfit::Value("a value is not a pointer")),
    })
}

fn array<'a>(to: &'static [u8], kind: Option<Kind>, elements: Elements<'a>, count: u64) -> Result<Array<'a>, Unfit> {
    let (mut letter, inner) = to.split_first().map_or((b'v', &[][..]), |(letter, inner)| (*letter, inner));
    if inner.first() == Some(&b'p') {
        return Err(Unfit::Value("pointers are nested too deeply"));
    }
    let is_untyped = letter == b'v';
    if is_untyped {
        letter = match elements.clone().next().map(|mut first| first.value()) {
            Some(Value::Float(_)) => b'f',
            Some(Value::Double(_)) => b'd',
            _ => b'u',
        };
    }
    Ok(Array { letter, inner, is_untyped, kind, elements, count })
}
