//! Contexts: which is current on which thread, and which share objects.
//!
//! GLX, EGL, WGL and CGL. Calls whose context the trace does not show (before the first context, in traces cut out of
//! others) are assigned to a separate context, [`UNKNOWN`].

use std::collections::HashMap;

use crate::tools::gl::values::{Values, integer};

/// The context of calls without a known context; its group is 0.
pub const UNKNOWN: u32 = 0;

/// Most contexts tracked; the calls of further ones are assigned to [`UNKNOWN`].
const CONTEXTS_MAX: usize = 1 << 14;

/// Threads below this are found by index.
const DENSE_THREADS: u64 = 1024;

/// The system a context belongs to; handles of different systems are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum System {
    /// X11.
    Glx,
    /// EGL.
    Egl,
    /// Windows.
    Wgl,
    /// macOS.
    Cgl,
}

/// What a function does to contexts. Numbers are argument indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContextVerb {
    /// Makes a context and returns it, or stores it through an argument.
    Create {
        /// The context it shares with.
        share: Option<usize>,
        /// The list of attributes.
        attributes: Option<usize>,
        /// The argument through which the handle is stored.
        into: Option<usize>,
    },
    /// Destroys the context of this argument.
    Destroy(usize),
    /// Makes the context of this argument current on the thread.
    MakeCurrent(usize),
    /// `wglShareLists`: the second joins the first.
    Share,
    /// `eglReleaseThread`: the thread has none.
    ReleaseThread,
    /// `eglTerminate`: all contexts of the display are destroyed.
    Terminate,
}

/// What a function does to contexts; `None` for all others.
pub fn context_action(name: &[u8]) -> Option<(System, ContextVerb)> {
    let create = |share, attributes| ContextVerb::Create { share, attributes, into: None };
    let (glx, egl, wgl, cgl) = (System::Glx, System::Egl, System::Wgl, System::Cgl);
    Some(match name {
        b"glXCreateContext" => (glx, create(Some(2), None)),
        b"glXCreateNewContext" | b"glXCreateContextWithConfigSGIX" => (glx, create(Some(3), None)),
        b"glXCreateContextAttribsARB" => (glx, create(Some(2), Some(4))),
        b"glXCreateAssociatedContextAMD" => (glx, create(Some(1), None)),
        b"glXCreateAssociatedContextAttribsAMD" => (glx, create(Some(1), Some(2))),
        b"glXImportContextEXT" => (glx, create(None, None)),
        b"glXDestroyContext" | b"glXFreeContextEXT" => (glx, ContextVerb::Destroy(1)),
        b"glXDeleteAssociatedContextAMD" => (glx, ContextVerb::Destroy(0)),
        b"glXMakeCurrent" => (glx, ContextVerb::MakeCurrent(2)),
        b"glXMakeContextCurrent" | b"glXMakeCurrentReadSGI" => (glx, ContextVerb::MakeCurrent(3)),
        b"glXMakeAssociatedContextCurrentAMD" => (glx, ContextVerb::MakeCurrent(0)),
        b"eglCreateContext" => (egl, create(Some(2), Some(3))),
        b"eglDestroyContext" => (egl, ContextVerb::Destroy(1)),
        b"eglMakeCurrent" => (egl, ContextVerb::MakeCurrent(3)),
        b"eglReleaseThread" => (egl, ContextVerb::ReleaseThread),
        b"eglTerminate" => (egl, ContextVerb::Terminate),
        b"wglCreateContext" | b"wglCreateLayerContext" => (wgl, create(None, None)),
        b"wglCreateContextAttribsARB" => (wgl, create(Some(1), Some(2))),
        b"wglCreateAssociatedContextAMD" => (wgl, create(None, None)),
        b"wglCreateAssociatedContextAttribsAMD" => (wgl, create(Some(1), Some(2))),
        b"wglDeleteContext" | b"wglDeleteAssociatedContextAMD" => (wgl, ContextVerb::Destroy(0)),
        b"wglMakeCurrent" => (wgl, ContextVerb::MakeCurrent(1)),
        b"wglMakeContextCurrentARB" | b"wglMakeContextCurrentEXT" => (wgl, ContextVerb::MakeCurrent(2)),
        b"wglMakeAssociatedContextCurrentAMD" => (wgl, ContextVerb::MakeCurrent(0)),
        b"wglShareLists" => (wgl, ContextVerb::Share),
        b"CGLCreateContext" => (cgl, ContextVerb::Create { share: Some(1), attributes: None, into: Some(2) }),
        b"CGLDestroyContext" | b"CGLReleaseContext" => (cgl, ContextVerb::Destroy(0)),
        b"CGLSetCurrentContext" => (cgl, ContextVerb::MakeCurrent(0)),
        _ => return None,
    })
}

/// A context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its system; `None` for [`UNKNOWN`].
    pub system: Option<System>,
    /// Its handle; handles are reused after a context's end.
    pub handle: u64,
    /// The contexts of a group share their objects.
    pub group: u32,
    /// The call that made it; `None` if that is not in the trace.
    pub created: Option<u64>,
    /// The call that destroyed it. It continues to exist while it is current on a thread.
    pub destroyed: Option<u64>,
    /// It no longer exists: it was destroyed and is not current anywhere.
    pub has_ended: bool,
    /// It is of the core profile: only generated names may be bound.
    pub is_core: bool,
    /// The number of threads on which it is current.
    users: u32,
}

/// The context about which nothing is known.
const NOBODY: Context = Context {
    system: None,
    handle: 0,
    group: 0,
    created: None,
    destroyed: None,
    has_ended: false,
    is_core: false,
    users: 0,
};

/// What a call changed about contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A context is made.
    Created(u32),
    /// This context is now current on the thread of the call.
    Current(Option<u32>),
    /// The first group is now part of the second.
    Joined {
        /// The group that no longer exists.
        from: u32,
        /// The group that remains.
        to: u32,
    },
    /// A context ended, and with it its group if it was the last.
    Ended {
        /// The context.
        context: u32,
        /// The group that ended with it.
        group: Option<u32>,
    },
}

/// The contexts of a trace.
#[derive(Debug)]
pub struct Contexts {
    /// Without thread numbers, it is unknown whether the next call comes from the thread that released its context.
    has_threads: bool,
    contexts: Vec<Context>,
    by_handle: HashMap<(System, u64), u32>,
    /// Contexts of EGL's displays, until those are terminated.
    by_display: HashMap<u64, Vec<u32>>,
    /// The number of contexts that still exist, by group.
    live: Vec<u32>,
    dense: Vec<Option<u32>>,
    sparse: HashMap<u64, Option<u32>>,
    last: u32,
    is_full: bool,
}

impl Contexts {
    /// The contexts of a trace. `has_threads`: from version 4 on.
    pub fn new(has_threads: bool) -> Self {
        Self {
            has_threads,
            contexts: vec![NOBODY],
            by_handle: HashMap::new(),
            by_display: HashMap::new(),
            live: vec![1],
            dense: Vec::new(),
            sparse: HashMap::new(),
            last: UNKNOWN,
            is_full: false,
        }
    }

    /// A context; [`UNKNOWN`] if there is none with this number.
    pub fn get(&self, context: u32) -> &Context {
        self.contexts.get(context as usize).unwrap_or(&NOBODY)
    }

    /// All contexts, by number.
    pub fn all(&self) -> &[Context] {
        &self.contexts
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.live.len()
    }

    /// True when there were more contexts than are tracked.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The current context of a thread; [`UNKNOWN`] if none is known.
    #[inline]
    pub fn current(&self, thread: u64) -> u32 {
        let known = match self.dense.get(usize::try_from(thread).unwrap_or(usize::MAX)) {
            Some(context) => *context,
            None => self.sparse.get(&thread).copied().flatten(),
        };
        known.unwrap_or(if self.has_threads { UNKNOWN } else { self.last })
    }

    /// Follows a call. `number` is the call's. Calls that failed and calls never left change nothing.
    pub fn take(
        &mut self,
        (system, verb): (System, ContextVerb),
        values: &Values<'_>,
        thread: u64,
        number: u64,
    ) -> Vec<Change> {
        let returned = values.returned_name();
        let has_failed =
            if system == System::Cgl { returned.is_some_and(|code| code != 0) } else { returned == Some(0) };
        let handle = |index: usize| values.name(index).unwrap_or(0);
        let mut changes = Vec::new();
        if has_failed {
            return changes;
        }
        match verb {
            ContextVerb::Create { share, attributes, into } => {
                let made = match into {
                    None => returned,
                    Some(index) => values.integers(index).next().map(|handle| handle as u64),
                };
                let Some(made) = made.filter(|handle| *handle != 0) else { return changes };
                let shared = share.map_or(0, handle);
                let group = (shared != 0).then(|| self.find(system, shared, &mut changes).map(|at| self.get(at).group));
                let is_core = attributes.is_some_and(|index| is_core(system, values, index));
                let row = (Some(number), is_core, handle(0));
                if let Some(at) = self.add(system, made, group.flatten(), row) {
                    changes.push(Change::Created(at));
                }
            }
            ContextVerb::Destroy(index) => {
                if let Some(at) = self.by_handle.get(&(system, handle(index))).copied() {
                    self.destroy(at, number, &mut changes);
                }
            }
            ContextVerb::MakeCurrent(index) => {
                let context = match handle(index) {
                    0 => None,
                    made => self.find(system, made, &mut changes),
                };
                self.make_current(thread, context, &mut changes);
            }
            ContextVerb::Share => {
                if let (Some(to), Some(from)) =
                    (self.find(system, handle(0), &mut changes), self.find(system, handle(1), &mut changes))
                {
                    self.join(from, to, &mut changes);
                }
            }
            ContextVerb::ReleaseThread => self.make_current(thread, None, &mut changes),
            ContextVerb::Terminate => {
                for at in self.by_display.remove(&handle(0)).unwrap_or_default() {
                    self.destroy(at, number, &mut changes);
                }
            }
        }
        changes
    }

    /// A context by its handle. One whose creation is not in the trace forms its own group.
    fn find(&mut self, system: System, handle: u64, changes: &mut Vec<Change>) -> Option<u32> {
        if handle == 0 {
            return None;
        }
        if let Some(at) = self.by_handle.get(&(system, handle)) {
            return Some(*at);
        }
        let at = self.add(system, handle, None, (None, false, 0))?;
        changes.push(Change::Created(at));
        Some(at)
    }

    fn add(&mut self, system: System, handle: u64, group: Option<u32>, row: (Option<u64>, bool, u64)) -> Option<u32> {
        if self.contexts.len() >= CONTEXTS_MAX {
            self.is_full = true;
            return None;
        }
        let (created, is_core, display) = row;
        let group = group.unwrap_or_else(|| {
            self.live.push(0);
            u32::try_from(self.live.len() - 1).unwrap_or(0)
        });
        if let Some(live) = self.live.get_mut(group as usize) {
            *live += 1;
        }
        let at = u32::try_from(self.contexts.len()).ok()?;
        self.contexts.push(Context { system: Some(system), handle, group, created, is_core, ..NOBODY });
        if system == System::Egl {
            self.by_display.entry(display).or_default().push(at);
        }
        self.by_handle.insert((system, handle), at);
        Some(at)
    }

    fn destroy(&mut self, at: u32, number: u64, changes: &mut Vec<Change>) {
        let Some(context) = self.contexts.get_mut(at as usize).filter(|context| context.destroyed.is_none()) else {
            return;
        };
        context.destroyed = Some(number);
        // With GLX and EGL it continues to exist while current on a thread; with WGL and CGL it does not.
        let ends = context.users == 0 || matches!(context.system, Some(System::Wgl | System::Cgl));
        if let Some(system) = context.system {
            self.by_handle.remove(&(system, context.handle));
        }
        if ends {
            self.end(at, changes);
        }
    }

    fn end(&mut self, at: u32, changes: &mut Vec<Change>) {
        let Some(context) = self.contexts.get_mut(at as usize).filter(|context| !context.has_ended) else { return };
        context.has_ended = true;
        let group = context.group;
        for current in self.dense.iter_mut().chain(self.sparse.values_mut()) {
            if *current == Some(at) {
                *current = None;
            }
        }
        let Some(live) = self.live.get_mut(group as usize) else { return };
        *live = live.saturating_sub(1);
        changes.push(Change::Ended { context: at, group: (*live == 0).then_some(group) });
    }

    fn make_current(&mut self, thread: u64, context: Option<u32>, changes: &mut Vec<Change>) {
        let at = usize::try_from(thread).unwrap_or(usize::MAX);
        let place = if thread < DENSE_THREADS {
            if self.dense.len() <= at {
                self.dense.resize(at + 1, None);
            }
            self.dense.get_mut(at)
        } else if self.sparse.len() < CONTEXTS_MAX || self.sparse.contains_key(&thread) {
            Some(self.sparse.entry(thread).or_default())
        } else {
            self.is_full = true;
            None
        };
        let Some(place) = place else { return };
        let before = std::mem::replace(place, context);
        if let Some(now) = context {
            self.last = now;
            if let Some(row) = self.contexts.get_mut(now as usize) {
                row.users += 1;
            }
        }
        changes.push(Change::Current(context));
        if let Some(before) = before
            && let Some(row) = self.contexts.get_mut(before as usize)
        {
            row.users = row.users.saturating_sub(1);
            if row.users == 0 && row.destroyed.is_some() {
                self.end(before, changes);
            }
        }
    }

    /// The first context's group becomes part of the second's.
    fn join(&mut self, from: u32, to: u32, changes: &mut Vec<Change>) {
        let (from, to) = (self.get(from).group, self.get(to).group);
        if from == to {
            return;
        }
        for context in self.contexts.iter_mut().filter(|context| context.group == from) {
            context.group = to;
        }
        let moved = self.live.get_mut(from as usize).map_or(0, std::mem::take);
        if let Some(live) = self.live.get_mut(to as usize) {
            *live += moved;
        }
        changes.push(Change::Joined { from, to });
    }
}

/// True when a list of attributes requests the core profile: version 3.2 or later, and the profile's bit. The bit is
/// the default with GLX and WGL, whose numbers are the same. EGL uses the same list for contexts of OpenGL ES, which
/// have no profiles, so there it must be explicit.
fn is_core(system: System, values: &Values<'_>, index: usize) -> bool {
    let (mut version, mut profile) = ((1, 0), i64::from(system != System::Egl));
    let mut list = values.array(index).map(|mut wire| integer(wire.value(), values.dictionary()));
    while let (Some(Some(key)), Some(value)) = (list.next(), list.next()) {
        let Some(value) = value else { continue };
        match key {
            0 => break,
            0x2091 | 0x3098 => version.0 = value,
            0x2092 | 0x30fb => version.1 = value,
            0x9126 | 0x30fd => profile = value,
            _ => {}
        }
    }
    version >= (3, 2) && profile & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::calls::Call;
    use crate::lanes::dictionary::Dictionary;

    /// Calls with pointers as arguments and a number as return value.
    struct Program {
        contexts: Contexts,
        number: u64,
    }

    impl Program {
        fn new() -> Self {
            Self { contexts: Contexts::new(true), number: 0 }
        }

        fn call(&mut self, thread: u64, name: &str, arguments: &[u8], returned: Option<u8>) -> Vec<Change> {
            let mut enter = Vec::new();
            for (index, value) in arguments.iter().enumerate() {
                enter.extend([1, index as u8, 13, *value]);
            }
            enter.push(0);
            let leave = returned.map_or(vec![0], |value| vec![2, 4, value, 0]);
            let dictionary = Dictionary::new(6);
            let number = self.number;
            self.number += 1;
            let (enter, leave) = (enter.as_slice(), leave.as_slice());
            let call = Call { number, thread, function: 0, is_incomplete: false, enter, leave, ..Call::NONE };
            let action = context_action(name.as_bytes()).unwrap();
            self.contexts.take(action, &Values::new(&call, &dictionary), thread, number)
        }
    }

    #[test]
    fn contexts_share_and_the_last_ends_the_group() {
        let mut it = Program::new();
        assert_eq!(it.call(0, "glXCreateNewContext", &[1, 2, 3, 0, 1], Some(10)), [Change::Created(1)]);
        assert_eq!(it.call(0, "glXCreateNewContext", &[1, 2, 3, 10, 1], Some(11)), [Change::Created(2)]);
        assert_eq!(it.call(0, "glXCreateNewContext", &[1, 2, 3, 0, 1], Some(0)), []);
        assert_eq!((it.contexts.get(1).group, it.contexts.get(2).group), (1, 1));
        assert_eq!(it.call(0, "glXMakeCurrent", &[1, 5, 10], Some(1)), [Change::Current(Some(1))]);
        assert_eq!(it.call(7, "glXMakeCurrent", &[1, 5, 11], Some(1)), [Change::Current(Some(2))]);
        assert_eq!(it.call(7, "glXMakeCurrent", &[1, 5, 10], Some(0)), []);
        assert_eq!((it.contexts.current(0), it.contexts.current(7), it.contexts.current(8)), (1, 2, UNKNOWN));
        // The context continues to exist while it is current on thread 7.
        assert_eq!(it.call(0, "glXDestroyContext", &[1, 11], None), []);
        let ended = Change::Ended { context: 2, group: None };
        assert_eq!(it.call(7, "glXMakeCurrent", &[1, 0, 0], Some(1)), [Change::Current(None), ended]);
        assert_eq!(it.call(0, "glXDestroyContext", &[1, 10], None), []);
        let ended = Change::Ended { context: 1, group: Some(1) };
        assert_eq!(it.call(0, "glXMakeCurrent", &[1, 0, 0], Some(1)), [Change::Current(None), ended]);
        // The handle is reused.
        assert_eq!(it.call(0, "glXCreateContext", &[1, 2, 0, 1], Some(10)), [Change::Created(3)]);
        assert_eq!(it.contexts.get(3).group, 2);
    }

    #[test]
    fn windows_ends_a_current_context_and_joins_groups() {
        let mut it = Program::new();
        it.call(0, "wglCreateContext", &[1], Some(20));
        it.call(0, "wglCreateContext", &[1], Some(21));
        assert_eq!(it.call(0, "wglShareLists", &[20, 21], Some(1)), [Change::Joined { from: 2, to: 1 }]);
        it.call(0, "wglMakeCurrent", &[1, 20], Some(1));
        assert_eq!(it.call(0, "wglDeleteContext", &[20], Some(1)), [Change::Ended { context: 1, group: None }]);
        assert_eq!(it.contexts.current(0), UNKNOWN);
        assert_eq!(it.call(0, "wglDeleteContext", &[21], Some(1)), [Change::Ended { context: 2, group: Some(1) }]);
    }

    #[test]
    fn a_display_takes_its_contexts_with_it() {
        let mut it = Program::new();
        it.call(0, "eglCreateContext", &[1, 2, 0], Some(30));
        it.call(0, "eglCreateContext", &[9, 2, 0], Some(31));
        it.call(0, "eglMakeCurrent", &[1, 0, 0, 30], Some(1));
        assert_eq!(it.call(0, "eglTerminate", &[1], Some(1)), []);
        let ended = Change::Ended { context: 1, group: Some(1) };
        assert_eq!(it.call(0, "eglReleaseThread", &[], Some(1)), [Change::Current(None), ended]);
        assert!(!it.contexts.get(2).has_ended);
    }

    #[test]
    fn unknown_handles_and_too_many_contexts_do_no_harm() {
        let mut it = Program::new();
        assert_eq!(it.call(0, "glXDestroyContext", &[1, 99], None), []);
        let changes = it.call(u64::MAX, "glXMakeCurrent", &[1, 5, 99], Some(1));
        assert_eq!(changes, [Change::Created(1), Change::Current(Some(1))]);
        assert_eq!((it.contexts.get(1).created, it.contexts.current(u64::MAX)), (None, 1));
        for _ in 0..CONTEXTS_MAX {
            it.call(0, "wglCreateContext", &[1], Some(20));
        }
        assert!(it.contexts.is_full() && it.contexts.all().len() == CONTEXTS_MAX);
    }

    #[test]
    fn without_threads_the_last_context_goes_on() {
        let mut it = Program { contexts: Contexts::new(false), number: 0 };
        it.call(0, "wglCreateContext", &[1], Some(20));
        it.call(0, "wglMakeCurrent", &[1, 20], Some(1));
        it.call(0, "wglMakeCurrent", &[1, 0], Some(1));
        assert_eq!(it.contexts.current(0), 1);
    }
}
