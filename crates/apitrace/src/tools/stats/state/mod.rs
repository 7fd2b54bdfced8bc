//! Finds calls that set values that are already set.
//!
//! The state is tracked for each context from the calls of the trace; the current context is tracked by thread. Nothing
//! is assumed: a state is known only once a call has set it, and no longer after a call whose effect is not followed.
//! So every call reported as redundant is redundant, but not every redundant call is reported.
//!
//! Objects can be shared between contexts: when one context sets state of an object, what others have set of it becomes
//! unknown.

mod arguments;
mod contexts;
mod device;
mod rules;
mod setters;
mod store;
mod table;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::Dictionary;
use crate::tools::gl::commands::effects::{Act, Depends, FAMILIES, Family, ObjectKind};
pub(super) use arguments::Arguments;
use contexts::Contexts;
pub(super) use rules::Role;
use store::{BYTES_MAX, ENTRY_BYTES, Entry, Key, List, OWN, Objects};

/// Most names in a list of names that become free.
const NAMES_MAX: u64 = 1 << 16;

/// The effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It sets no state that is followed.
    Nothing,
    /// It is recorded in a list and not executed.
    Recorded,
    /// It sets a new value, or one that was not known to be set.
    New,
    /// It sets the value that is already set.
    Same,
    /// What it sets is unknown: no context is known, or the value cannot be compared.
    Unknown,
}

impl Verdict {
    /// Combines several states that one call sets: the same only if all are.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Same, Self::Same) => Self::Same,
            _ => Self::New,
        }
    }
}

/// State of objects, whichever context sets it.
const OF_OBJECTS: [Family; 4] =
    [Family::TextureParameter, Family::SamplerParameter, Family::Uniform, Family::BlockBinding];

/// Tracks the state. Between calls, an entry is valid if its stamp is not below `floor`, nor below the stamps of its
/// family, context and object.
#[derive(Debug)]
pub(super) struct StateTracker {
    contexts: Contexts,
    objects: Objects,
    /// Counts the values set. Each known value is stamped with this count.
    now: u64,
    /// Values stamped before this are unknown.
    floor: u64,
    /// The same by family, for all contexts.
    families: [u64; FAMILIES],
    bytes: usize,
    /// The value being set.
    value: Vec<u64>,
    elements: Vec<u64>,
    /// How often everything was forgotten to save memory.
    pub(super) forgotten: u64,
}

/// Where a value is set.
#[derive(Debug, Clone, Copy)]
struct Place {
    family: Family,
    key: Key,
    /// The object whose state it is.
    object: Option<(ObjectKind, u64)>,
    /// The object that is its value.
    named: Option<(ObjectKind, u64)>,
}

impl Place {
    #[inline]
    fn of(family: Family, key: Key) -> Self {
        Self { family, key, object: None, named: None }
    }
}

impl StateTracker {
    /// `assumes_contexts`: a thread without a known current context is assumed to have its own.
    pub(super) fn new(assumes_contexts: bool) -> Self {
        Self {
            contexts: Contexts::new(assumes_contexts),
            objects: Objects::default(),
            now: 1,
            floor: 0,
            families: [0; FAMILIES],
            bytes: 0,
            value: Vec::new(),
            elements: Vec::new(),
            forgotten: 0,
        }
    }

    /// Takes a call whose function affects state. Calls arrive in the order of their leaves.
    pub(super) fn call(&mut self, role: Role, call: &Call<'_>, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        let Some(act) = role.act else { return Verdict::Nothing };
        self.now += 1;
        match act {
            Act::MakeCurrent { at, is_zero_success } => {
                self.make_current(call, of, dictionary, at, is_zero_success);
                return Verdict::Nothing;
            }
            Act::DestroyContext(at) => {
                if let Some(handle) = of.number(at, dictionary) {
                    self.contexts.destroy((false, handle));
                }
                return Verdict::Nothing;
            }
            Act::Device(..) | Act::DeviceUnsettle | Act::DeviceRelease | Act::BeginStateBlock | Act::EndStateBlock => {
                return self.device(act, of, dictionary);
            }
            _ => {}
        }
        let Some(at) = self.contexts.current(call.thread, self.now) else {
            self.without_context(act, of, dictionary);
            return if role.sets_state { Verdict::Unknown } else { Verdict::Nothing };
        };
        let verdict = self.in_context(act, at, of, dictionary);
        // Calls that the tracer inserted, or that were never left, are not the program's to avoid.
        let counts = !of.is_fake && !call.is_incomplete;
        if verdict == Verdict::Same && !counts { Verdict::New } else { verdict }
    }

    /// A call in an unknown context: any state of objects that it may set becomes unknown in all contexts.
    fn without_context(&mut self, act: Act, of: &Arguments<'_>, dictionary: &Dictionary) {
        match act {
            Act::Delete(_) | Act::Renew(_) => self.free(act, None, of, dictionary),
            Act::Uniform { .. } | Act::TextureParameter | Act::UnsettleAll | Act::EndList => self.unsettle_objects(),
            Act::Set(setter) if matches!(setter.depends, Depends::Object(_)) => self.unsettle_objects(),
            _ => {}
        }
    }

    /// True when calls of a thread are recorded in a list.
    #[inline]
    pub(super) fn is_recording(&self, thread: u64) -> bool {
        self.contexts.is_recording(thread)
    }

    fn in_context(&mut self, act: Act, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        let list = self.contexts.get(at).map_or(List::None, |context| context.list);
        match act {
            Act::EndList => {
                self.unsettle_all(at);
                if let Some(context) = self.contexts.get_mut(at) {
                    context.list = List::None;
                }
                return Verdict::Nothing;
            }
            Act::Delete(_) | Act::Renew(_) => {
                self.free(act, Some(at), of, dictionary);
                return Verdict::Nothing;
            }
            _ if list == List::Compiled => return Verdict::Recorded,
            Act::NewList => {
                // A list inside another is an error and starts nothing.
                let is_compiled = of.number(1, dictionary) == Some(setters::gl::COMPILE);
                if let Some(context) = self.contexts.get_mut(at).filter(|context| context.list == List::None) {
                    context.list = if is_compiled { List::Compiled } else { List::CarriedOut };
                }
                return Verdict::Nothing;
            }
            Act::Unsettle(families) => {
                for family in families {
                    self.unsettle(at, *family);
                }
                return Verdict::Nothing;
            }
            Act::UnsettleAll => {
                self.unsettle_all(at);
                return Verdict::Nothing;
            }
            _ => {}
        }
        self.value.clear();
        self.set(act, at, of, dictionary).unwrap_or_else(|| {
            self.unsettle_kind(act, at);
            Verdict::Unknown
        })
    }

    /// A required argument is missing or has an odd type, so what the call sets is unknown.
    #[cold]
    fn unsettle_kind(&mut self, act: Act, at: usize) {
        match act {
            Act::Set(setter) => {
                self.unsettle(at, setter.family);
                if matches!(setter.depends, Depends::Object(_)) {
                    self.unsettle_everywhere(setter.family);
                }
            }
            Act::TextureParameter => self.unsettle_everywhere(Family::TextureParameter),
            Act::Uniform { .. } => self.unsettle_everywhere(Family::Uniform),
            _ => self.unsettle_all(at),
        }
    }

    fn unsettle(&mut self, at: usize, family: Family) {
        let now = self.now;
        if let Some(stamp) = self.contexts.get_mut(at).and_then(|context| context.families.get_mut(family as usize)) {
            *stamp = now;
        }
    }

    fn unsettle_everywhere(&mut self, family: Family) {
        if let Some(stamp) = self.families.get_mut(family as usize) {
            *stamp = self.now;
        }
    }

    fn unsettle_objects(&mut self) {
        for family in OF_OBJECTS {
            self.unsettle_everywhere(family);
        }
    }

    /// Lists and restored attributes affect objects too, which other contexts may share.
    fn unsettle_all(&mut self, at: usize) {
        let now = self.now;
        if let Some(context) = self.contexts.get_mut(at) {
            context.unsettle(now);
        }
        self.unsettle_objects();
    }

    /// The stamp from which on values of a family in a context are valid.
    #[inline]
    fn since(&self, at: usize, family: Family) -> u64 {
        let family = family as usize;
        let everywhere = self.families.get(family).copied().unwrap_or(0).max(self.floor);
        let Some(context) = self.contexts.get(at) else { return u64::MAX };
        everywhere.max(context.all).max(context.families.get(family).copied().unwrap_or(0))
    }

    /// Sets the state at a place to the value.
    #[inline]
    fn store(&mut self, at: usize, place: Place) -> Verdict {
        let mut since = self.since(at, place.family).max(self.objects.since(place.named));
        if let Some(object) = place.object {
            if self.objects.make_room() {
                self.floor = self.now;
            }
            since = since.max(self.objects.write(object, at, self.now));
        }
        let (now, value) = (self.now, self.value.as_slice());
        let Some(context) = self.contexts.get_mut(at) else { return Verdict::Unknown };
        if let Some(entry) = context.entries.get_mut(&place.key) {
            let is_known = entry.stamp >= since;
            entry.stamp = now;
            if entry.value() == value {
                return if is_known { Verdict::Same } else { Verdict::New };
            }
            let before = entry.bytes();
            entry.set(value);
            self.bytes = (self.bytes + entry.bytes()).saturating_sub(before);
        } else {
            let entry = Entry::new(now, value);
            self.bytes += ENTRY_BYTES + entry.bytes();
            context.entries.insert(place.key, entry);
        }
        if self.bytes > BYTES_MAX {
            self.forget();
        }
        Verdict::New
    }

    /// The state at a key becomes unknown.
    #[cold]
    fn lose(&mut self, at: usize, key: Key) -> Verdict {
        if let Some(entry) = self.contexts.get_mut(at).and_then(|context| context.entries.get_mut(&key)) {
            entry.stamp = 0;
        }
        Verdict::Unknown
    }

    #[cold]
    fn forget(&mut self) {
        self.contexts.forget();
        (self.bytes, self.floor) = (0, self.now);
        self.forgotten += 1;
    }

    /// The name at a key, if it is known.
    #[inline]
    fn name_at(&self, at: usize, family: Family, key: Key, kind: ObjectKind) -> Option<u64> {
        let entry = self.contexts.get(at)?.entries.get(&key)?;
        let name = *entry.value().first()?;
        let since = self.since(at, family).max(self.objects.since(Some((kind, name))));
        (entry.stamp >= since).then_some(name)
    }

    /// Names that become free, or get a new meaning.
    fn free(&mut self, act: Act, at: Option<usize>, of: &Arguments<'_>, dictionary: &Dictionary) {
        let (kind, names) = match act {
            Act::Renew(kind) => (kind, of.number(0, dictionary).map(|name| vec![name])),
            Act::Delete(kind) => (kind, of.numbers(1, dictionary, NAMES_MAX)),
            _ => return,
        };
        let Some(names) = names else {
            self.floor = self.now;
            return;
        };
        for name in names.into_iter().filter(|name| *name != 0) {
            if self.objects.make_room() {
                self.floor = self.now;
            }
            self.objects.renew((kind, name), self.now);
            if let Some(context) = at.and_then(|at| self.contexts.get_mut(at))
                && kind == ObjectKind::VertexArray
            {
                // A deleted object is no longer bound. An unknown binding may be the deleted one.
                context.vertex_array = match context.vertex_array {
                    bound if bound == name => 0,
                    unknown if unknown >= OWN => OWN | self.now,
                    other => other,
                };
            }
        }
    }

    fn make_current(
        &mut self,
        call: &Call<'_>,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
        at: u8,
        is_zero_success: bool,
    ) {
        let (returned, handle) = (of.returned(dictionary), of.number(at, dictionary));
        let (Some(returned), Some(handle), false) = (returned, handle, call.is_incomplete) else {
            self.contexts.lose_current(call.thread);
            return;
        };
        // A failed call changed nothing.
        if (returned == 0) == is_zero_success {
            self.contexts.make_current(call.thread, handle, self.now);
        }
    }
}
