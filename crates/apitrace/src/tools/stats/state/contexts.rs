//! Which context is current on which thread.

use std::collections::HashMap;

use anytrace_core::hash::Map;

use super::store::{Context, List};

/// Most contexts at a time; further ones are unknown.
const CONTEXTS_MAX: usize = 256;

/// Most threads tracked.
const THREADS_MAX: usize = 1 << 16;

/// What is current on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    /// A context.
    Is(usize),
    /// None, or an unknown one.
    None,
}

/// The contexts.
#[derive(Debug)]
pub(super) struct Contexts {
    slots: Vec<Option<Context>>,
    /// By handle, and whether it is that of a Direct3D device.
    handles: HashMap<(bool, u64), usize>,
    threads: HashMap<u64, Current>,
    last: Option<(u64, Current)>,
    assumes: bool,
}

impl Contexts {
    pub(super) fn new(assumes: bool) -> Self {
        Self { slots: Vec::new(), handles: HashMap::new(), threads: HashMap::new(), last: None, assumes }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Context> {
        self.slots.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Context> {
        self.slots.get_mut(at)?.as_mut()
    }

    /// The context of a thread.
    #[inline]
    pub(super) fn current(&mut self, thread: u64, now: u64) -> Option<usize> {
        let current = match self.last {
            Some((last, current)) if last == thread => current,
            _ => self.find(thread, now),
        };
        match current {
            Current::Is(at) => Some(at),
            Current::None => None,
        }
    }

    /// True when the context of a thread is compiling a list.
    #[inline]
    pub(super) fn is_recording(&self, thread: u64) -> bool {
        let current = match self.last {
            Some((last, current)) if last == thread => Some(current),
            _ => self.threads.get(&thread).copied(),
        };
        match current {
            Some(Current::Is(at)) => self.get(at).is_some_and(|context| context.list == List::Compiled),
            _ => false,
        }
    }

    #[cold]
    fn find(&mut self, thread: u64, now: u64) -> Current {
        let known = self.threads.get(&thread).copied();
        let current = match known {
            Some(current) => current,
            None if self.assumes => {
                let current = self.add(now).map_or(Current::None, Current::Is);
                self.switch(thread, current)
            }
            None => Current::None,
        };
        self.last = Some((thread, current));
        current
    }

    fn add(&mut self, now: u64) -> Option<usize> {
        let context = Context::new(now);
        if let Some(at) = self.slots.iter().position(Option::is_none) {
            *self.slots.get_mut(at)? = Some(context);
            return Some(at);
        }
        if self.slots.len() >= CONTEXTS_MAX {
            return None;
        }
        self.slots.push(Some(context));
        Some(self.slots.len() - 1)
    }

    fn by_handle(&mut self, handle: (bool, u64), now: u64) -> Option<usize> {
        if let Some(&at) = self.handles.get(&handle) {
            return Some(at);
        }
        let at = self.add(now)?;
        self.get_mut(at)?.has_handle = true;
        self.handles.insert(handle, at);
        Some(at)
    }

    /// The context that represents a device.
    pub(super) fn of_device(&mut self, device: u64, now: u64) -> Option<usize> {
        self.by_handle((true, device), now)
    }

    pub(super) fn make_current(&mut self, thread: u64, handle: u64, now: u64) {
        let current = match handle {
            0 => Current::None,
            handle => self.by_handle((false, handle), now).map_or(Current::None, Current::Is),
        };
        self.switch(thread, current);
    }

    /// Records that the current context is unknown.
    pub(super) fn lose_current(&mut self, thread: u64) {
        self.switch(thread, Current::None);
    }

    fn switch(&mut self, thread: u64, current: Current) -> Current {
        self.last = None;
        // Threads beyond the limit are unknown.
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(&thread) {
            if let Current::Is(at) = current {
                self.drop_if_unused(at);
            }
            return Current::None;
        }
        if let Current::Is(at) = current
            && let Some(context) = self.get_mut(at)
        {
            context.users += 1;
        }
        if let Some(Current::Is(at)) = self.threads.insert(thread, current) {
            if let Some(context) = self.get_mut(at) {
                context.users = context.users.saturating_sub(1);
            }
            self.drop_if_unused(at);
        }
        current
    }

    /// A destroyed context continues to exist while it is current on some thread.
    pub(super) fn destroy(&mut self, handle: (bool, u64)) {
        if let Some(at) = self.handles.remove(&handle) {
            if let Some(context) = self.get_mut(at) {
                context.has_handle = false;
            }
            self.drop_if_unused(at);
        }
    }

    fn drop_if_unused(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at)
            && slot.as_ref().is_some_and(|context| context.users == 0 && !context.has_handle)
        {
            *slot = None;
        }
    }

    /// Forgets the state of all contexts.
    pub(super) fn forget(&mut self) {
        for context in self.slots.iter_mut().flatten() {
            context.entries = Map::default();
        }
    }
}
