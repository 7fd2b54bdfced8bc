//! The contents of a trace: one record for each element of the array of events.
//!
//! Layout: "Trace Event Format" (Google), sections "JSON Array Format", "JSON Object Format" and "Event Descriptions".

use std::fmt;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "chrome";

/// How events are put together to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// An array of events; its end may be missing.
    #[default]
    Array,
    /// An object with the array under `traceEvents`.
    Object,
    /// One event after the other, without an array.
    Lines,
}

impl Form {
    /// `array`, `object` or `lines`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Object => "object",
            Self::Lines => "lines",
        }
    }
}

/// What a reader finds out about all of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {
    /// The form of the file.
    pub form: Form,
}

impl Layout {
    /// The layout of a form.
    pub const fn new(form: Form) -> Self {
        Self { form }
    }
}

/// A value of an event as it is written; `None` where the event has none.
pub type Raw<'a> = Option<&'a [u8]>;

/// An event, borrowed from its bytes. Values are raw JSON, quotes and escapes included; of a key that occurs several
/// times, the last value counts.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Record<'a> {
    /// All of its bytes, from `{` to `}`.
    pub text: &'a [u8],
    /// `ph`: the phase, which says what kind of event it is.
    pub phase: Raw<'a>,
    /// `name`.
    pub name: Raw<'a>,
    /// `cat`: categories, separated by commas.
    pub category: Raw<'a>,
    /// `ts`: microseconds.
    pub time: Raw<'a>,
    /// `dur`: microseconds.
    pub duration: Raw<'a>,
    /// `pid`.
    pub process: Raw<'a>,
    /// `tid`.
    pub thread: Raw<'a>,
    /// `args`.
    pub arguments: Raw<'a>,
    /// `id`.
    pub id: Raw<'a>,
    /// `id2`: an object with `local` or `global`.
    pub id2: Raw<'a>,
    /// `scope` of the id.
    pub scope: Raw<'a>,
}

impl<'a> Record<'a> {
    #[inline(always)]
    pub(crate) fn set(&mut self, key: &[u8], value: &'a [u8]) {
        let field = match key {
            b"ph" => &mut self.phase,
            b"ts" => &mut self.time,
            b"dur" => &mut self.duration,
            b"pid" => &mut self.process,
            b"tid" => &mut self.thread,
            b"name" => &mut self.name,
            b"cat" => &mut self.category,
            b"args" => &mut self.arguments,
            b"id" => &mut self.id,
            b"id2" => &mut self.id2,
            b"scope" => &mut self.scope,
            _ => return,
        };
        *field = Some(value);
    }

    /// The character of the phase, where it is one.
    #[inline]
    pub fn phase_byte(&self) -> Option<u8> {
        match self.phase {
            Some(&[b'"', phase, b'"']) => Some(phase),
            _ => None,
        }
    }

    /// What kind of event it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.phase_byte().map_or(Kind::Other, Kind::of)
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({})", anytrace_core::text::escaped(self.text))
    }
}

macro_rules! kinds {
    ($($variant:ident $name:literal $($phase:literal)|* , $help:literal;)*) => {
        /// What kind of event a record is, by its phase.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $(#[doc = $help] $variant,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kind's name in results: `complete`, `async-begin`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The kind of a phase.
            #[inline]
            pub const fn of(phase: u8) -> Self {
                match phase { $($($phase => Self::$variant,)*)* _ => Self::Other }
            }
        }
    };
}

kinds! {
    Begin "begin" b'B', "`B`: a span of a thread begins.";
    End "end" b'E', "`E`: the innermost span of a thread ends.";
    Complete "complete" b'X', "`X`: a span of a thread with its length.";
    Instant "instant" b'i' | b'I', "`i`, `I`: a point.";
    Mark "mark" b'R', "`R`: a point of navigation timing.";
    Counter "counter" b'C', "`C`: numbers at a time.";
    AsyncBegin "async-begin" b'b', "`b`: a span of an id begins.";
    AsyncEnd "async-end" b'e', "`e`: the innermost span of an id ends.";
    AsyncInstant "async-instant" b'n', "`n`: a point of an id.";
    AsyncStart "async-start" b'S', "`S`: as `b`, in the older form, in which an id has no nesting.";
    AsyncStep "async-step" b'T' | b'p', "`T`, `p`: a point of an id, in the older form.";
    AsyncFinish "async-finish" b'F', "`F`: as `e`, in the older form.";
    FlowStart "flow-start" b's', "`s`: an arrow begins.";
    FlowStep "flow-step" b't', "`t`: an arrow ends and the next begins.";
    FlowEnd "flow-end" b'f', "`f`: an arrow ends.";
    Metadata "metadata" b'M', "`M`: names of processes and threads, and the like.";
    Sample "sample" b'P', "`P`: a sample of a profiler.";
    ObjectCreate "object-create" b'N', "`N`: an object begins to exist.";
    ObjectSnapshot "object-snapshot" b'O', "`O`: the state of an object.";
    ObjectDestroy "object-destroy" b'D', "`D`: an object ends.";
    MemoryDump "memory-dump" b'v' | b'V', "`v`, `V`: how memory is used.";
    ClockSync "clock-sync" b'c', "`c`: joins the clocks of several traces.";
    ContextEnter "context-enter" b'(', "`(`: a context is entered.";
    ContextLeave "context-leave" b')', "`)`: a context is left.";
    LinkedId "linked-id" b'=', "`=`: two ids are the same.";
    Other "other" , "Any other phase, or none.";
}

impl Kind {
    /// True where an event has no place in time without `ts`.
    pub const fn has_time(self) -> bool {
        !matches!(self, Self::Metadata | Self::LinkedId | Self::Other)
    }
}
