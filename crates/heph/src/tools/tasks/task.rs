//! One task as its events come in order of their starts.

use anytrace_core::text;

use super::warnings::{Signs, Warning};
use super::{Task, TaskState};
use crate::lanes::event::Sorted;
use crate::lanes::layer::{PARENT, POLL, SPAN};
use crate::wire::dialect::LIFE;
use crate::wire::record::{Attributes, Value};

/// Longest value of a field, and most fields, that are kept.
const VALUE_BYTES: usize = 256;
const FIELDS_MAX: usize = 64;

/// Most streams of a task that are told apart.
const STREAMS_MAX: usize = 4096;

/// Attributes of lives, which are no fields.
const OF_LIVES: [&str; 4] = ["busy_ns", "idle_ns", "polls", "open"];

/// What is known of a task's life.
#[derive(Debug, Clone, Copy)]
struct Life {
    range: (u64, u64),
    /// Time in runs, and how many there were, if it says that.
    busy_ns: Option<u64>,
    polls: u64,
    is_open: bool,
}

/// A task being read.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: u64,
    pub(super) parent: u64,
    /// Number of the description.
    pub(super) name: Option<u32>,
    attributes: Vec<u8>,
    life: Option<Life>,
    polls: u64,
    busy_ns: u64,
    first: u64,
    /// The latest end of a poll.
    until: u64,
    longest: Option<(u64, u64, u32)>,
    long_polls: u64,
    /// In order.
    streams: Vec<u32>,
    wakes: u64,
    self_wakes: u64,
    clones: u64,
    drops: u64,
    woken: Option<u64>,
    scheduled_ns: u64,
}

impl Open {
    pub(super) fn new(id: u64) -> Self {
        Self {
            id,
            parent: 0,
            name: None,
            attributes: Vec::new(),
            life: None,
            polls: 0,
            busy_ns: 0,
            first: u64::MAX,
            until: 0,
            longest: None,
            long_polls: 0,
            streams: Vec::new(),
            wakes: 0,
            self_wakes: 0,
            clones: 0,
            drops: 0,
            woken: None,
            scheduled_ns: 0,
        }
    }

    /// Keeps the attributes of what comes last: fields may have been set late.
    fn keep(&mut self, event: &Sorted<'_>) {
        self.name = Some(event.name);
        self.attributes.clear();
        self.attributes.extend_from_slice(event.attribute_bytes());
    }

    /// Takes a life, which comes before the polls.
    pub(super) fn life(&mut self, event: &Sorted<'_>) {
        let number = |wanted: &str| {
            let found = event.attributes().find(|attribute| attribute.name == wanted);
            found.and_then(|attribute| if let Value::Unsigned(number) = attribute.value { Some(number) } else { None })
        };
        self.keep(event);
        self.life = Some(Life {
            range: (event.start, event.end),
            busy_ns: number("busy_ns"),
            polls: number("polls").unwrap_or(0),
            is_open: number("open").is_some(),
        });
    }

    /// Takes a poll; its length, if it is one and not inside another.
    pub(super) fn poll(&mut self, event: &Sorted<'_>, long_ns: u64) -> Option<u64> {
        // Entered again inside a poll: no poll of its own. By another thread meanwhile: only what is beyond counts.
        if event.end <= self.until && self.polls > 0 {
            return None;
        }
        if self.life.is_none() {
            self.keep(event);
        }
        let length = event.end - event.start;
        if let Some(woken) = self.woken.take() {
            self.scheduled_ns += event.start.saturating_sub(woken);
        }
        self.polls += 1;
        self.busy_ns += event.end - event.start.max(self.until.min(event.end));
        self.first = self.first.min(event.start);
        self.until = self.until.max(event.end);
        if self.longest.is_none_or(|longest| length > longest.0) {
            self.longest = Some((length, event.start, event.stream));
        }
        self.long_polls += u64::from(length >= long_ns);
        if let Err(at) = self.streams.binary_search(&event.stream)
            && self.streams.len() < STREAMS_MAX
        {
            self.streams.insert(at, event.stream);
        }
        Some(length)
    }

    /// Takes an event about one of its wakers.
    pub(super) fn waker(&mut self, event: &Sorted<'_>) {
        let (mut op, mut is_own) = ("", false);
        for attribute in event.attributes() {
            match (attribute.name, attribute.value) {
                ("op", Value::Text(text)) => op = text,
                ("waker.self", _) => is_own = true,
                _ => {}
            }
        }
        match op {
            "waker.clone" => self.clones += 1,
            "waker.drop" => self.drops += 1,
            "waker.wake" | "waker.wake_by_ref" => {
                // By value: the waker is gone.
                self.drops += u64::from(op == "waker.wake");
                self.wakes += 1;
                self.self_wakes += u64::from(is_own);
                // During a poll: it is scheduled from the end of that poll.
                let from = event.start.max(if is_own { self.until } else { 0 });
                self.woken.get_or_insert(from);
            }
            _ => {}
        }
    }

    /// The task. Wake-ups are known if the trace has any.
    pub(super) fn finish(self, name: String, has_wakes: bool, has_lives: bool) -> Task {
        let range = self.life.map_or((self.first.min(self.until), self.until), |life| life.range);
        // Polls may not be recorded; then the life says what there was.
        let (polls, busy_ns) = match self.life {
            Some(life) if self.polls == 0 => (life.polls, life.busy_ns.unwrap_or(0)),
            _ => (self.polls, self.busy_ns),
        };
        let has_runs = self.polls > 0 || self.life.is_none_or(|life| life.busy_ns.is_some());
        let is_open = self.life.is_some_and(|life| life.is_open);
        let state = match self.life {
            Some(_) if !is_open => TaskState::Done,
            _ if self.woken.is_some() => TaskState::Scheduled,
            Some(_) => TaskState::Idle,
            None if has_lives => TaskState::Idle,
            None => TaskState::Unknown,
        };
        let is_first = self.longest.is_some_and(|longest| longest.1 == self.first);
        let signs = Signs {
            is_one_poll: polls == 1 || polls == 2 && is_first && state == TaskState::Done,
            longest_ns: self.longest.map_or(0, |longest| longest.0),
            long_polls: self.long_polls,
            wakes: self.wakes,
            self_wakes: self.self_wakes,
            clones: self.clones,
            drops: self.drops,
            waits: state == TaskState::Idle && is_open,
        };
        let (fields, location) = fields(Attributes::unchecked(&self.attributes));
        let own_name = fields.iter().find(|(name, value)| name == "task.name" && !value.is_empty());
        Task {
            id: self.id,
            parent: self.parent,
            name: own_name.map_or(name, |(_, value)| value.clone()),
            fields,
            location,
            state,
            has_runs,
            polls,
            range,
            busy_ns,
            scheduled_ns: has_wakes.then_some(self.scheduled_ns),
            longest: self.longest,
            wakes: has_wakes.then_some((self.wakes, self.self_wakes)),
            streams: self.streams.len() as u64,
            warnings: Warning::of(&signs),
        }
    }
}

/// Fields as text, and the place in the source.
fn fields(attributes: Attributes<'_>) -> (Vec<(String, String)>, Option<String>) {
    let mut all = Vec::new();
    let (mut file, mut line) = (None, None);
    for attribute in attributes {
        let name = attribute.name;
        if [SPAN, PARENT, POLL].contains(&name) || OF_LIVES.contains(&name) {
            continue;
        }
        let value = match attribute.value {
            Value::Text(text) => text.get(..text.floor_char_boundary(VALUE_BYTES)).unwrap_or_default().to_owned(),
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Array(array) => format!("{} values", array.values().count()),
        };
        match name {
            "loc.file" | "file" => file = Some(value),
            "loc.line" | "line" => line = Some(value),
            "loc.col" => {}
            _ if all.len() < FIELDS_MAX => all.push((text::escaped(name.as_bytes()), value)),
            _ => {}
        }
    }
    let location = file.map(|file| match line {
        Some(line) => format!("{file}:{line}"),
        None => file,
    });
    (all, location)
}

/// True for an event that is a life.
pub(super) fn is_life(event: &Sorted<'_>) -> bool {
    event.substream & LIFE != 0
}
