//! What is in a record, by its type: the sections of the format's document from "Metadata record" to "Large record".

use super::arguments::{Arguments, Text, text};
use super::parse::Fault;
use super::record::{MAGIC, Record, kind};
use super::words::{Words, bits, half};

/// A thread: a number of the provider's table, or process and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadRef {
    Number(u8),
    Inline(u64, u64),
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its type: a place in [`super::record::EVENTS`], or a number that is not known.
    pub(crate) kind: u64,
    pub(crate) ticks: u64,
    pub(crate) thread: ThreadRef,
    pub(crate) category: Text<'a>,
    pub(crate) name: Text<'a>,
    pub(crate) arguments: Arguments<'a>,
    /// The end of a complete duration; the number of a counter, an asynchronous operation or a flow.
    pub(crate) number: u64,
}

/// The contents of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Magic,
    ProviderInfo {
        id: u32,
        name: &'a [u8],
    },
    ProviderSection {
        id: u32,
    },
    ProviderEvent {
        id: u32,
        event: u64,
    },
    Initialization {
        per_second: u64,
    },
    String {
        number: u16,
        text: &'a [u8],
    },
    Thread {
        number: u8,
        process: u64,
        thread: u64,
    },
    Event(Event<'a>),
    Blob {
        name: Text<'a>,
        kind: u64,
        bytes: &'a [u8],
    },
    LargeBlob {
        category: Text<'a>,
        name: Text<'a>,
        at: Option<(u64, ThreadRef)>,
        arguments: Arguments<'a>,
        bytes: u64,
    },
    UserspaceObject {
        pointer: u64,
        thread: ThreadRef,
        name: Text<'a>,
        arguments: Arguments<'a>,
    },
    KernelObject {
        kind: u64,
        koid: u64,
        name: Text<'a>,
        arguments: Arguments<'a>,
    },
    /// Threads are numbers of their own, those of the legacy record references.
    Switch {
        ticks: u64,
        cpu: u64,
        state: u64,
        outgoing: Switched,
        incoming: Switched,
        arguments: Arguments<'a>,
    },
    Wakeup {
        ticks: u64,
        cpu: u64,
        thread: u64,
        arguments: Arguments<'a>,
    },
    Log {
        ticks: u64,
        thread: ThreadRef,
        message: &'a [u8],
    },
    Unknown,
}

/// A thread in a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switched {
    Koid(u64),
    Thread(ThreadRef),
}

fn thread_ref(reference: u64, words: &mut Words<'_>) -> Option<ThreadRef> {
    match u8::try_from(reference).ok()? {
        0 => Some(ThreadRef::Inline(words.word()?, words.word()?)),
        number => Some(ThreadRef::Number(number)),
    }
}

/// Reads the contents of a record.
#[inline]
pub(crate) fn read<'a>(record: &Record<'a>) -> Result<Content<'a>, Fault> {
    read_sized(record).map(|(content, _)| content)
}

/// Reads the contents of a record; with them how many bytes of it they take.
#[inline]
pub(crate) fn read_sized<'a>(record: &Record<'a>) -> Result<(Content<'a>, usize), Fault> {
    let mut words = Words { rest: record.bytes.get(8..).unwrap_or_default() };
    let all = words.rest.len();
    let found = match record.kind() {
        kind::EVENT => event(record.head, &mut words).map(Content::Event),
        kind::SCHEDULING => scheduling(record.head, &mut words),
        kind::LARGE => large(record.head, &mut words),
        _ => other(record, &mut words),
    };
    let at = 8 + all - words.rest.len();
    found.map(|content| (content, at)).ok_or(Fault {
        field: record.kind_name(),
        expected: "its fields inside the record",
        at,
    })
}

fn event<'a>(head: u64, words: &mut Words<'a>) -> Option<Event<'a>> {
    let kind = bits(head, 16, 19);
    let ticks = words.word()?;
    let thread = thread_ref(bits(head, 24, 31), words)?;
    let category = text(half(head, 32), words)?;
    let name = text(half(head, 48), words)?;
    let arguments = Arguments::take(bits(head, 20, 23), words)?;
    // Instants and both ends of durations have nothing behind their arguments.
    let number = if matches!(kind, 1 | 4..=10) { words.word()? } else { 0 };
    Some(Event { kind, ticks, thread, category, name, arguments, number })
}

fn other<'a>(record: &Record<'a>, words: &mut Words<'a>) -> Option<Content<'a>> {
    let head = record.head;
    let id = bits(head, 20, 51) as u32;
    Some(match record.kind() {
        kind::METADATA => match bits(head, 16, 19) {
            1 => Content::ProviderInfo { id, name: words.padded(bits(head, 52, 59))? },
            2 => Content::ProviderSection { id },
            3 => Content::ProviderEvent { id, event: bits(head, 52, 55) },
            4 if head == MAGIC => Content::Magic,
            _ => Content::Unknown,
        },
        kind::INITIALIZATION => Content::Initialization { per_second: words.word()? },
        kind::STRING => Content::String { number: half(head, 16) & 0x7fff, text: words.padded(bits(head, 32, 46))? },
        kind::THREAD => {
            let number = bits(head, 16, 23) as u8;
            Content::Thread { number, process: words.word()?, thread: words.word()? }
        }
        kind::BLOB => {
            let name = text(half(head, 16), words)?;
            Content::Blob { name, kind: bits(head, 48, 55), bytes: words.padded(bits(head, 32, 46))? }
        }
        kind::USERSPACE_OBJECT => {
            let pointer = words.word()?;
            let thread = thread_ref(bits(head, 16, 23), words)?;
            let name = text(half(head, 24), words)?;
            Content::UserspaceObject { pointer, thread, name, arguments: Arguments::take(bits(head, 40, 43), words)? }
        }
        kind::KERNEL_OBJECT => {
            let koid = words.word()?;
            let name = text(half(head, 24), words)?;
            let arguments = Arguments::take(bits(head, 40, 43), words)?;
            Content::KernelObject { kind: bits(head, 16, 23), koid, name, arguments }
        }
        kind::LOG => {
            let ticks = words.word()?;
            let thread = thread_ref(bits(head, 32, 39), words)?;
            Content::Log { ticks, thread, message: words.padded(bits(head, 16, 30))? }
        }
        _ => Content::Unknown,
    })
}

fn scheduling<'a>(head: u64, words: &mut Words<'a>) -> Option<Content<'a>> {
    let kind = bits(head, 60, 63);
    if kind > 2 {
        return Some(Content::Unknown);
    }
    let ticks = words.word()?;
    if kind == 0 {
        let (cpu, state) = (bits(head, 16, 23), bits(head, 24, 27));
        let outgoing = Switched::Thread(thread_ref(bits(head, 28, 35), words)?);
        let incoming = Switched::Thread(thread_ref(bits(head, 36, 43), words)?);
        return Some(Content::Switch { ticks, cpu, state, outgoing, incoming, arguments: Arguments::NONE });
    }
    let (count, cpu, thread) = (bits(head, 16, 19), bits(head, 20, 35), words.word()?);
    if kind == 2 {
        return Some(Content::Wakeup { ticks, cpu, thread, arguments: Arguments::take(count, words)? });
    }
    let (outgoing, incoming) = (Switched::Koid(thread), Switched::Koid(words.word()?));
    let arguments = Arguments::take(count, words)?;
    Some(Content::Switch { ticks, cpu, state: bits(head, 36, 39), outgoing, incoming, arguments })
}

fn large<'a>(head: u64, words: &mut Words<'a>) -> Option<Content<'a>> {
    let form = bits(head, 40, 43);
    if bits(head, 36, 39) != 0 || form > 1 {
        return Some(Content::Unknown);
    }
    let facts = words.word()?;
    let (category, name) = (text(half(facts, 0), words)?, text(half(facts, 16), words)?);
    let (mut at, mut arguments) = (None, Arguments::NONE);
    if form == 0 {
        at = Some((words.word()?, thread_ref(bits(facts, 36, 43), words)?));
        arguments = Arguments::take(bits(facts, 32, 35), words)?;
    }
    let bytes = words.word()?;
    words.padded(bytes)?;
    Some(Content::LargeBlob { category, name, at, arguments, bytes })
}
