//! The contents of the wire: header, FDR records, Basic records, with their reserved bytes.

use anytrace_core::Endian;

/// Bytes of the header of both binary types (page, section 1.1).
pub const HEADER_BYTES: usize = 32;
/// Bytes of an FDR function record (seed, "Function Records").
pub const FUNCTION_BYTES: usize = 8;
/// Bytes of an FDR metadata record without an event's payload (seed, "Metadata Records").
pub const METADATA_BYTES: usize = 16;
/// Bytes of a Basic record (page, section 1.5).
pub const BASIC_BYTES: usize = 32;
/// `type` of a Basic trace.
pub const TYPE_BASIC: u16 = 0;
/// `type` of an FDR trace.
pub const TYPE_FDR: u16 = 1;
/// Newest FDR version known.
pub const FDR_VERSION_MAX: u16 = 5;
/// Newest Basic version known.
pub const BASIC_VERSION_MAX: u16 = 3;
/// Largest function id that fits into an FDR record: 28 bits.
pub const FDR_ID_MAX: u32 = 0x0fff_ffff;

/// The 32-byte header (page, section 1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// 1 to 5 for FDR, 1 to 3 for Basic.
    pub version: u16,
    /// 0 Basic, 1 FDR.
    pub type_code: u16,
    /// Two flags and 30 bits that are garbage in real files (`real/basic-dso`).
    pub flags: u32,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
    /// Bytes of one thread buffer as configured; 0 in Basic traces; garbage in traces of LLVM's own writer
    /// (`synth/llvmw-*`).
    pub buffer_size: u64,
    /// Not meaningful.
    pub reserved: u64,
}

impl Header {
    /// Whether the counter runs at a constant rate.
    pub fn constant_tsc(&self, layout: Orders) -> bool {
        self.flags & layout.flag_bits().0 != 0
    }

    /// Whether the counter runs on while a processor sleeps.
    pub fn nonstop_tsc(&self, layout: Orders) -> bool {
        self.flags & layout.flag_bits().1 != 0
    }

    /// True for a version and type this crate reads.
    pub fn is_known(&self) -> bool {
        match self.type_code {
            TYPE_BASIC => (1..=BASIC_VERSION_MAX).contains(&self.version),
            TYPE_FDR => (1..=FDR_VERSION_MAX).contains(&self.version),
            _ => false,
        }
    }
}

/// The end from which bit fields are counted in a byte or word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BitOrder {
    /// Least significant first: all little-endian traces, and what LLVM's writer would produce on a big-endian host.
    #[default]
    Low,
    /// Most significant first: big-endian traces according to the format document.
    High,
}

/// Byte order and bit order of a binary trace: detected at the start, then passed as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Orders {
    /// Order of bytes in integers.
    pub endian: Endian,
    /// Order of bit fields.
    pub bits: BitOrder,
}

impl Orders {
    /// The layout of every trace written today, as a constant for the compiler.
    pub(crate) const LITTLE: Self = Self { endian: Endian::Little, bits: BitOrder::Low };

    /// The bit order that the document defines for a byte order.
    pub fn of(endian: Endian) -> Self {
        let bits = match endian {
            Endian::Little => BitOrder::Low,
            Endian::Big => BitOrder::High,
        };
        Self { endian, bits }
    }

    /// True for the third layout: big-endian words with little-endian bit positions.
    pub fn is_llvm_big(self) -> bool {
        self.endian == Endian::Big && self.bits == BitOrder::Low
    }

    /// Masks of `constant_tsc` and `nonstop_tsc` in the header's flags.
    pub fn flag_bits(self) -> (u32, u32) {
        match self.bits {
            BitOrder::Low => (1, 2),
            BitOrder::High => (1 << 31, 1 << 30),
        }
    }

    /// First byte of a metadata record of a kind.
    #[inline]
    pub fn metadata_byte(self, kind: u8) -> u8 {
        match self.bits {
            BitOrder::Low => kind << 1 | 1,
            BitOrder::High => 0x80 | kind,
        }
    }

    /// The kind in the first byte of a record; `None` when it begins a function record.
    #[inline]
    pub fn metadata_kind(self, first: u8) -> Option<u8> {
        match self.bits {
            BitOrder::Low => (first & 1 == 1).then_some(first >> 1),
            BitOrder::High => (first & 0x80 != 0).then_some(first & 0x7f),
        }
    }

    /// Kind (0 to 7) and id in the first word of a function record.
    #[inline(always)]
    pub fn function_word(self, bytes: [u8; 4]) -> (u8, u32) {
        let word = self.endian.u32(bytes);
        match self.bits {
            BitOrder::Low => ((word >> 1 & 7) as u8, word >> 4),
            BitOrder::High => ((word >> 28 & 7) as u8, word & FDR_ID_MAX),
        }
    }

    /// The first word of a function record. Ids are cut to 28 bits.
    #[inline]
    pub fn put_function_word(self, kind: FunctionKind, id: u32) -> [u8; 4] {
        let (kind, id) = (kind as u32, id & FDR_ID_MAX);
        self.endian.put_u32(match self.bits {
            BitOrder::Low => id << 4 | kind << 1,
            BitOrder::High => kind << 28 | id,
        })
    }

    /// Mask, over the eight bytes of a record read as a native little-endian word, of the bits that are zero in every
    /// valid function record: discriminant and the top bit of the kind.
    #[inline]
    pub(crate) fn function_zero_mask(self) -> u64 {
        match (self.endian, self.bits) {
            (Endian::Little, BitOrder::Low) => 0x09,
            (Endian::Little, BitOrder::High) => 0xc000_0000,
            (Endian::Big, BitOrder::High) => 0xc0,
            (Endian::Big, BitOrder::Low) => 0x0900_0001,
        }
    }
}

/// Kinds of function records (seed, "Function action types").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// A function is entered.
    Enter = 0,
    /// A function returns.
    Exit = 1,
    /// A function jumps to another.
    TailExit = 2,
    /// A function is entered; arguments may follow.
    EnterArgs = 3,
}

impl FunctionKind {
    /// The kind with a number.
    #[inline]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Enter),
            1 => Some(Self::Exit),
            2 => Some(Self::TailExit),
            3 => Some(Self::EnterArgs),
            _ => None,
        }
    }

    /// Name in every output: `function-enter`.
    pub fn name(self) -> &'static str {
        KIND_NAMES[self as usize]
    }

    /// True for both kinds of entry.
    #[inline]
    pub fn is_entry(self) -> bool {
        matches!(self, Self::Enter | Self::EnterArgs)
    }
}

/// An FDR function record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// What happened.
    pub kind: FunctionKind,
    /// Function id, 28 bits.
    pub id: u32,
    /// Ticks since the previous record.
    pub delta: u32,
}

/// An FDR metadata record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// The fields.
    pub body: Body<'a>,
    /// The bytes of the 16 that no field uses: uninitialized memory in real files.
    pub reserved: &'a [u8],
}

/// Fields of a metadata record by kind (page, section 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A thread's buffer begins.
    NewBuffer {
        /// Thread id: four bytes in every real file, though the seed says two.
        thread: i32,
    },
    /// Version 1: this buffer has no more records.
    EndOfBuffer,
    /// The thread runs on a processor; a time base.
    NewCpu {
        /// Processor number.
        cpu: u16,
        /// Absolute ticks.
        tsc: u64,
    },
    /// A time base where a delta does not suffice.
    TscWrap {
        /// Absolute ticks.
        tsc: u64,
    },
    /// Time of day, or since boot.
    WallTime {
        /// Seconds.
        seconds: u64,
        /// Microseconds.
        micros: u32,
    },
    /// Bytes that the program defines.
    CustomEvent {
        /// Time, by version.
        time: CustomTime,
        /// Payload.
        data: &'a [u8],
    },
    /// One argument of the preceding function record.
    CallArgument {
        /// The value.
        value: u64,
    },
    /// Bytes of valid data that follow.
    BufferExtents {
        /// How many.
        bytes: u64,
    },
    /// Bytes that the program defines, with a type.
    TypedEvent {
        /// Ticks since the previous record.
        delta: i32,
        /// The event's type.
        event_type: u16,
        /// Payload.
        data: &'a [u8],
    },
    /// The process.
    Pid {
        /// Process id.
        process: i32,
    },
}

impl Body<'_> {
    /// Number of the kind on the wire.
    pub fn number(&self) -> u8 {
        match self {
            Self::NewBuffer { .. } => kind::NEW_BUFFER,
            Self::EndOfBuffer => kind::END_OF_BUFFER,
            Self::NewCpu { .. } => kind::NEW_CPU,
            Self::TscWrap { .. } => kind::TSC_WRAP,
            Self::WallTime { .. } => kind::WALL_TIME,
            Self::CustomEvent { .. } => kind::CUSTOM_EVENT,
            Self::CallArgument { .. } => kind::CALL_ARGUMENT,
            Self::BufferExtents { .. } => kind::BUFFER_EXTENTS,
            Self::TypedEvent { .. } => kind::TYPED_EVENT,
            Self::Pid { .. } => kind::PID,
        }
    }

    /// Bytes of the 16 that no field uses.
    pub fn reserved_bytes(&self) -> usize {
        let used = match self {
            Self::EndOfBuffer => 1,
            Self::NewBuffer { .. } | Self::Pid { .. } => 5,
            Self::TscWrap { .. } | Self::CallArgument { .. } | Self::BufferExtents { .. } => 9,
            Self::NewCpu { .. } | Self::TypedEvent { .. } => 11,
            Self::WallTime { .. } => 13,
            Self::CustomEvent { time, .. } => match time {
                CustomTime::Delta { .. } => 9,
                CustomTime::Absolute { .. } => 13,
                CustomTime::OnCpu { .. } => 15,
            },
        };
        METADATA_BYTES - used
    }

    /// Name in every output: `new-buffer`.
    pub fn name(&self) -> &'static str {
        KIND_NAMES[4 + usize::from(self.number())]
    }
}

/// Time of a custom event, by version (page, section 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomTime {
    /// Versions 1 to 3: absolute; the time base does not change.
    Absolute {
        /// Ticks.
        tsc: u64,
    },
    /// Version 4: absolute, with the processor.
    OnCpu {
        /// Ticks.
        tsc: u64,
        /// Processor number.
        cpu: u16,
    },
    /// Version 5: relative to the previous record; moves the time base.
    Delta {
        /// Ticks, signed.
        delta: i32,
    },
}

/// Numbers of metadata kinds.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of the format document")]
    pub const NEW_BUFFER: u8 = 0;
    pub const END_OF_BUFFER: u8 = 1;
    pub const NEW_CPU: u8 = 2;
    pub const TSC_WRAP: u8 = 3;
    pub const WALL_TIME: u8 = 4;
    pub const CUSTOM_EVENT: u8 = 5;
    pub const CALL_ARGUMENT: u8 = 6;
    pub const BUFFER_EXTENTS: u8 = 7;
    pub const TYPED_EVENT: u8 = 8;
    pub const PID: u8 = 9;
}

/// Names of function kinds 0 to 3, then of metadata kinds 0 to 9.
pub const KIND_NAMES: [&str; 14] = [
    "function-enter",
    "function-exit",
    "function-tail-exit",
    "function-enter-arg",
    "new-buffer",
    "end-of-buffer",
    "new-cpu-id",
    "tsc-wrap",
    "wall-time",
    "custom-event",
    "call-argument",
    "buffer-extents",
    "typed-event",
    "pid",
];

/// Any FDR record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FdrRecord<'a> {
    /// Eight bytes.
    Function(Function),
    /// Sixteen bytes and an event's payload.
    Metadata(Metadata<'a>),
}

/// A Basic record (page, section 1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasicRecord {
    /// Function or argument.
    pub body: BasicBody,
    /// Function id.
    pub id: i32,
    /// Thread id.
    pub thread: u32,
    /// Process id; versions 1 and 2 have garbage or 0 here.
    pub process: u32,
    /// The last eight bytes: not meaningful.
    pub padding: [u8; 8],
}

/// The contents of a Basic record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasicBody {
    /// A function is entered or left.
    Function {
        /// What happened.
        kind: FunctionKind,
        /// Processor number.
        cpu: u8,
        /// Absolute ticks.
        tsc: u64,
    },
    /// An argument of the preceding function record.
    Argument {
        /// The value.
        value: u64,
        /// Two bytes that are not meaningful.
        pad: [u8; 2],
    },
}

impl BasicRecord {
    /// Name in every output.
    pub fn name(&self) -> &'static str {
        match self.body {
            BasicBody::Function { kind, .. } => kind.name(),
            BasicBody::Argument { .. } => KIND_NAMES[4 + kind::CALL_ARGUMENT as usize],
        }
    }
}
