//! Follows a trace: what each provider has defined so far.

use anytrace_core::hash::Map;
use anytrace_core::span::TimeUnit;
use anytrace_core::{Diagnostic, Error, Passed, Place, Rule, Sink, Step};

use super::names::{NameNumber, Names, UNNAMED};
use crate::rules;
use crate::wire::arguments::{Arguments, Text, Value};
use crate::wire::content::{Content, Switched, ThreadRef, read};
use crate::wire::parse::Fault;
use crate::wire::reader::Reader;
use crate::wire::record::Record;

/// A process and a thread, by the kernel's numbers.
pub(crate) type Thread = (u64, u64);

/// Kinds of kernel objects.
pub(crate) const PROCESS: u64 = 1;
pub(crate) const THREAD: u64 = 2;

/// What a provider has defined.
#[derive(Debug, Default)]
struct Provider {
    per_second: Option<u64>,
    strings: Map<u16, NameNumber>,
    threads: Map<u8, Thread>,
}

/// What is known of a trace.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) names: Names,
    providers: Map<u32, Provider>,
    current: u32,
    /// Names of providers in the order of their records.
    pub(crate) provider_names: Vec<(u32, String)>,
    pub(crate) processes: Map<u64, NameNumber>,
    /// Name and process of threads.
    pub(crate) threads: Map<u64, (NameNumber, u64)>,
    distinct_max: usize,
    /// True when something was not stored.
    pub(crate) is_full: bool,
    /// What could not be found since this was taken: a string, a thread, the length of a tick.
    pub(crate) missing: Missing,
}

/// What a record refers to and its provider has not defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missing {
    pub(crate) string: Option<u16>,
    pub(crate) thread: Option<u8>,
    pub(crate) rate: bool,
}

/// What most records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) time_ns: Option<u64>,
    pub(crate) thread: Option<Thread>,
    pub(crate) cpu: Option<u64>,
    pub(crate) name: Option<NameNumber>,
    pub(crate) category: Option<NameNumber>,
    /// The length of a complete duration.
    pub(crate) duration_ns: Option<u64>,
}

impl Session {
    pub(crate) fn new(distinct_max: usize) -> Self {
        Self { distinct_max: distinct_max.max(1), ..Self::default() }
    }

    /// Takes a record: what it defines is known from now on.
    #[inline]
    pub(crate) fn enter<'a>(&mut self, record: &Record<'a>) -> Result<Content<'a>, Fault> {
        let content = read(record)?;
        if !matches!(content, Content::Event(_)) {
            self.define(&content);
        }
        Ok(content)
    }

    fn define(&mut self, content: &Content<'_>) {
        match *content {
            Content::ProviderInfo { id, name } => {
                if self.provider_names.len() < self.distinct_max {
                    self.provider_names.push((id, String::from_utf8_lossy(name).into_owned()));
                }
                self.current = id;
            }
            Content::ProviderSection { id } => self.current = id,
            Content::Initialization { per_second } => {
                if let Some(provider) = self.provider() {
                    provider.per_second = Some(per_second);
                }
            }
            Content::String { number, text } => {
                let name = self.names.number(text);
                if let Some(provider) = self.provider().filter(|_| number != 0) {
                    provider.strings.insert(number, name);
                }
            }
            Content::Thread { number, process, thread } => {
                if let Some(provider) = self.provider().filter(|_| number != 0) {
                    provider.threads.insert(number, (process, thread));
                }
            }
            Content::KernelObject { kind, koid, name, arguments } => self.object(kind, koid, name, arguments),
            _ => {}
        }
    }

    fn object(&mut self, kind: u64, koid: u64, name: Text<'_>, arguments: Arguments<'_>) {
        let name = self.text(name);
        if self.processes.len() + self.threads.len() >= self.distinct_max {
            self.is_full = true;
        } else if kind == PROCESS {
            self.processes.insert(koid, name);
        } else if kind == THREAD {
            let mut process = 0;
            for argument in arguments {
                let key = self.text(argument.name);
                if self.names.get(key) == b"process"
                    && let Value::Koid(koid) | Value::U64(koid) = argument.value
                {
                    process = koid;
                }
            }
            self.threads.insert(koid, (name, process));
        }
    }

    /// The provider whose records come now.
    fn provider(&mut self) -> Option<&mut Provider> {
        if self.providers.len() >= self.distinct_max && !self.providers.contains_key(&self.current) {
            self.is_full = true;
            return None;
        }
        Some(self.providers.entry(self.current).or_default())
    }

    /// The number of a text.
    #[inline]
    pub(crate) fn text(&mut self, text: Text<'_>) -> NameNumber {
        match text {
            Text::Inline(text) => self.names.number(text),
            Text::Number(0) => UNNAMED,
            Text::Number(number) => {
                let known = self.providers.get(&self.current).and_then(|provider| provider.strings.get(&number));
                if known.is_none() {
                    self.missing.string = Some(number);
                }
                known.copied().unwrap_or(UNNAMED)
            }
        }
    }

    /// A thread; one that is not defined is that number of process 0.
    #[inline]
    pub(crate) fn thread(&mut self, thread: ThreadRef) -> Thread {
        match thread {
            ThreadRef::Inline(process, thread) => (process, thread),
            ThreadRef::Number(number) => {
                let known = self.providers.get(&self.current).and_then(|provider| provider.threads.get(&number));
                if known.is_none() {
                    self.missing.thread = Some(number);
                }
                known.copied().unwrap_or((0, number.into()))
            }
        }
    }

    /// A thread of a context switch.
    pub(crate) fn switched(&mut self, thread: Switched) -> Thread {
        match thread {
            Switched::Thread(thread) => self.thread(thread),
            Switched::Koid(koid) => (self.threads.get(&koid).map_or(0, |(_, process)| *process), koid),
        }
    }

    /// Nanoseconds of a provider's ticks.
    #[inline]
    pub(crate) fn time_ns(&mut self, ticks: u64) -> u64 {
        let per_second = self.providers.get(&self.current).and_then(|provider| provider.per_second);
        match per_second.filter(|rate| *rate > 0) {
            Some(1_000_000_000) => ticks,
            Some(rate) => TimeUnit::Ticks { per_second: Some(rate) }.to_ns(ticks).unwrap_or(u64::MAX),
            None => {
                self.missing.rate = true;
                ticks
            }
        }
    }

    /// What a record has of what most records have.
    pub(crate) fn facts(&mut self, content: &Content<'_>) -> Facts {
        let mut facts = Facts::default();
        let (ticks, thread) = match *content {
            Content::Event(event) => {
                facts.name = Some(self.text(event.name));
                facts.category = Some(self.text(event.category));
                if event.kind == 4 {
                    let (begin, end) = (self.time_ns(event.ticks), self.time_ns(event.number));
                    facts.duration_ns = Some(end.saturating_sub(begin));
                }
                (event.ticks, Some(event.thread))
            }
            Content::Log { ticks, thread, .. } => (ticks, Some(thread)),
            Content::Switch { ticks, cpu, incoming, .. } => {
                facts.cpu = Some(cpu);
                facts.thread = Some(self.switched(incoming));
                (ticks, None)
            }
            Content::Wakeup { ticks, cpu, thread, .. } => {
                facts.cpu = Some(cpu);
                facts.thread = Some(self.switched(Switched::Koid(thread)));
                (ticks, None)
            }
            Content::LargeBlob { category, name, at, .. } => {
                (facts.name, facts.category) = (Some(self.text(name)), Some(self.text(category)));
                let Some((ticks, thread)) = at else { return facts };
                (ticks, Some(thread))
            }
            Content::Blob { name, .. } | Content::UserspaceObject { name, .. } | Content::KernelObject { name, .. } => {
                facts.name = Some(self.text(name));
                return facts;
            }
            _ => return facts,
        };
        facts.time_ns = Some(self.time_ns(ticks));
        if let Some(thread) = thread {
            facts.thread = Some(self.thread(thread));
        }
        facts
    }
}

/// True for what selections by thread, time and name select among; the rest is what they need.
pub(crate) fn is_event(content: &Content<'_>) -> bool {
    matches!(
        content,
        Content::Event(_)
            | Content::Log { .. }
            | Content::Switch { .. }
            | Content::Wakeup { .. }
            | Content::LargeBlob { .. }
    )
}

/// A diagnostic about a byte of a record.
pub(crate) fn about(rule: &'static Rule, place: Place, at: usize) -> Diagnostic {
    rule.at(place.offset.saturating_add(at as u64)).record(place.seq)
}

/// What is to be said of a record that cannot be read.
pub(crate) fn unreadable(place: Place, fault: &Fault) -> Diagnostic {
    about(&rules::BAD_FIELD, place, fault.at).field(fault.field).expected(fault.expected)
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Reads a trace and passes its records to `visit` with their contents; damage goes to the sink.
pub(crate) fn walk(
    reader: &mut Reader,
    session: &mut Session,
    sink: &mut dyn Sink,
    mut visit: impl FnMut(&mut Session, Place, &Record<'_>, Result<Content<'_>, Fault>, &mut dyn Sink) -> Result<Go, Error>,
) -> Result<Passed, Error> {
    while let Some(step) = reader.next()? {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) => {
                let content = session.enter(&record);
                if visit(session, place, &record, content, sink)? == Go::Stop {
                    break;
                }
            }
        }
    }
    Ok(reader.passed())
}
