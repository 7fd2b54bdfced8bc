//! Tracks which calls created objects, and which objects remain.

use std::collections::{BTreeSet, HashMap};

use crate::lanes::calls::Call;
use crate::tools::gl::contexts::{Change, ContextVerb, Contexts, System};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb};
use crate::tools::gl::objects::{Objects, Removed};
use crate::tools::gl::values::Values;

/// Most objects followed at a time: about 30 MiB of them.
const OBJECTS_MAX: usize = 450_000;

/// Most frames kept of a stack, and most bytes of all stacks.
const FRAMES_MAX: usize = 256;
const STACK_BYTES_MAX: usize = 8 << 20;

/// Most shaders attached at a time.
const ATTACHED_MAX: usize = 1 << 16;

/// What is known about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) call: u64,
    pub(super) thread: u64,
    pub(super) function: u32,
    pub(super) context: u32,
    pub(super) stack: u32,
    /// Index among the objects that the call made.
    order: u32,
    /// Programs a shader is attached to.
    holders: u32,
    pub(super) kind: Kind,
    pub(super) was_bound: bool,
    /// It was deleted, and disappears when the last program that it is attached to does.
    is_deleted: bool,
}

/// An object that outlived its context.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) name: u64,
    pub(super) count: u64,
    pub(super) entry: Entry,
    pub(super) until: Option<u64>,
    pub(super) keeps: Vec<(u64, u64)>,
}

/// The objects that exist.
pub(super) struct Book {
    contexts: Contexts,
    objects: Objects<Entry>,
    /// Shaders of programs, by group and program.
    attached: HashMap<(u32, u64), BTreeSet<u64>>,
    /// Calls that deleted shaders while attached, by group and shader.
    deleted: HashMap<(u32, u64), u64>,
    attached_count: usize,
    stacks: Vec<Box<[u64]>>,
    stack_numbers: HashMap<Box<[u64]>, u32>,
    stack_bytes: usize,
    /// The object of each kind that was bound last and exists: context and name.
    last_bound: [(u32, u64); Kind::ALL.len()],
}

impl Book {
    pub(super) fn new(has_threads: bool) -> Self {
        Self {
            contexts: Contexts::new(has_threads),
            objects: Objects::new(OBJECTS_MAX),
            attached: HashMap::new(),
            deleted: HashMap::new(),
            attached_count: 0,
            stacks: vec![Box::default()],
            stack_numbers: HashMap::new(),
            stack_bytes: 0,
            last_bound: [(0, 0); Kind::ALL.len()],
        }
    }

    pub(super) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    pub(super) fn is_full(&self) -> bool {
        self.objects.is_full() || self.contexts.is_full() || self.attached_count >= ATTACHED_MAX
    }

    /// Ids of a stack's frames.
    pub(super) fn stack(&self, number: u32) -> &[u64] {
        self.stacks.get(number as usize).map_or(&[], |frames| frames)
    }

    /// The number of a call's stack; 0 if there is none, or no room.
    fn stack_of(&mut self, values: &Values<'_>) -> u32 {
        let frames: Box<[u64]> = values.backtrace().take(FRAMES_MAX).collect();
        if frames.is_empty() {
            return 0;
        }
        if let Some(number) = self.stack_numbers.get(&frames) {
            return *number;
        }
        let Ok(number) = u32::try_from(self.stacks.len()) else { return 0 };
        // Stored twice, plus the overhead of the map.
        let bytes = frames.len() * 16 + 96;
        if self.stack_bytes + bytes > STACK_BYTES_MAX {
            return 0;
        }
        self.stack_bytes += bytes;
        self.stacks.push(frames.clone());
        self.stack_numbers.insert(frames, number);
        number
    }

    /// Follows a call that makes, deletes, binds or attaches objects.
    pub(super) fn take(&mut self, action: &Action, call: &Call<'_>, values: &Values<'_>) {
        let context = self.contexts.current(call.thread);
        if !matches!(action.verb, Verb::Bind { .. })
            && let Some(last) = self.last_bound.get_mut(action.kind.index())
        {
            *last = (0, 0);
        }
        match action.verb {
            Verb::MakeMany { count, names } => {
                let count = values.integer(count).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                let entry = self.entry(action, call, values, context);
                for (order, name) in values.integers(names).take(count).enumerate() {
                    let order = u32::try_from(order).unwrap_or(u32::MAX);
                    self.make(action, name as u64, Entry { order, ..entry }, context);
                }
            }
            Verb::Make => {
                let entry = self.entry(action, call, values, context);
                self.make(action, values.returned_name().unwrap_or(0), entry, context);
            }
            Verb::MakeInto(argument) => {
                let entry = self.entry(action, call, values, context);
                self.make(action, values.integers(argument).next().unwrap_or(0) as u64, entry, context);
            }
            Verb::MakeRange { count } => {
                let count = values.integer(count).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
                let first = values.returned_name().unwrap_or(0);
                if first != 0 {
                    let entry = self.entry(action, call, values, context);
                    self.objects.insert_row(
                        (action.kind, action.scope),
                        (first, count),
                        entry,
                        context,
                        &self.contexts,
                    );
                }
            }
            Verb::DeleteMany { count, names } => {
                let count = values.integer(count).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                for name in values.integers(names).take(count) {
                    self.objects.remove(action.kind, name as u64, context, &self.contexts);
                }
            }
            Verb::Delete(argument) => self.delete(action, values.name(argument).unwrap_or(0), call.number, context),
            Verb::DeleteRange { first, count } => {
                let first = values.name(first).unwrap_or(0);
                let count = values.integer(count).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
                self.objects.remove_row(action.kind, (first, count), context, &self.contexts);
            }
            Verb::Bind { name, .. } => self.bind(action, values.name(name).unwrap_or(0), call, values, context),
            Verb::Attach { holder, attached } => {
                self.attach(values.name(holder).unwrap_or(0), values.name(attached).unwrap_or(0), context);
            }
            Verb::Detach { holder, attached } => {
                self.detach(values.name(holder).unwrap_or(0), values.name(attached).unwrap_or(0), context);
            }
        }
    }

    fn entry(&mut self, action: &Action, call: &Call<'_>, values: &Values<'_>, context: u32) -> Entry {
        Entry {
            call: call.number,
            thread: call.thread,
            function: call.function,
            context,
            stack: self.stack_of(values),
            order: 0,
            holders: 0,
            kind: action.kind,
            was_bound: false,
            is_deleted: false,
        }
    }

    fn make(&mut self, action: &Action, name: u64, entry: Entry, context: u32) {
        if name != 0 {
            self.objects.insert((action.kind, action.scope), name, entry, context, &self.contexts);
        }
    }

    /// Names that were not generated make objects when they are bound, except in the core profile.
    fn bind(&mut self, action: &Action, name: u64, call: &Call<'_>, values: &Values<'_>, context: u32) {
        if name == 0 || !action.makes_when_bound() || self.contexts.get(context).is_core {
            return;
        }
        // Programs bind the same objects repeatedly.
        let Some(last) = self.last_bound.get_mut(action.kind.index()) else { return };
        if std::mem::replace(last, (context, name)) == (context, name)
            || self.objects.has(action.kind, name, context, &self.contexts)
        {
            return;
        }
        let entry = Entry { was_bound: true, ..self.entry(action, call, values, context) };
        if action.kind == Kind::List {
            self.objects.insert_row((action.kind, action.scope), (name, 1), entry, context, &self.contexts);
        } else {
            self.make(action, name, entry, context);
        }
    }

    /// Deletes one object. Shaders remain while attached, and disappear with the program.
    fn delete(&mut self, action: &Action, name: u64, number: u64, context: u32) {
        let group = self.contexts.get(context).group;
        let Some(entry) = self.objects.get_mut(action.kind, name, context, &self.contexts) else { return };
        if entry.kind == Kind::Shader && entry.holders > 0 {
            if !std::mem::replace(&mut entry.is_deleted, true) {
                self.deleted.insert((group, name), number);
            }
            return;
        }
        let kind = entry.kind;
        self.objects.remove(kind, name, context, &self.contexts);
        if kind == Kind::Program {
            for shader in self.attached.remove(&(group, name)).unwrap_or_default() {
                self.attached_count = self.attached_count.saturating_sub(1);
                self.release(shader, context);
            }
        }
    }

    fn attach(&mut self, program: u64, shader: u64, context: u32) {
        let key = (self.contexts.get(context).group, program);
        let is_program = |entry: &Entry| entry.kind == Kind::Program;
        if self.attached_count >= ATTACHED_MAX
            || !self.objects.get(Kind::Program, program, context, &self.contexts).is_some_and(is_program)
        {
            return;
        }
        let Some(entry) = self.objects.get_mut(Kind::Shader, shader, context, &self.contexts) else { return };
        let shaders = self.attached.entry(key).or_default();
        if entry.kind == Kind::Shader && shaders.insert(shader) {
            entry.holders += 1;
            self.attached_count += 1;
        }
    }

    fn detach(&mut self, program: u64, shader: u64, context: u32) {
        let key = (self.contexts.get(context).group, program);
        let Some(shaders) = self.attached.get_mut(&key) else { return };
        if !shaders.remove(&shader) {
            return;
        }
        self.attached_count = self.attached_count.saturating_sub(1);
        self.release(shader, context);
    }

    /// Detaches a shader from a program.
    fn release(&mut self, shader: u64, context: u32) {
        let Some(entry) = self.objects.get_mut(Kind::Shader, shader, context, &self.contexts) else { return };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.holders == 0 && entry.is_deleted {
            self.objects.remove(Kind::Shader, shader, context, &self.contexts);
            self.deleted.remove(&(self.contexts.get(context).group, shader));
        }
    }

    /// Follows a call that makes, destroys or changes contexts. Returns the objects that outlived them.
    pub(super) fn take_context(
        &mut self,
        action: (System, ContextVerb),
        call: &Call<'_>,
        values: &Values<'_>,
    ) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.last_bound = [(0, 0); Kind::ALL.len()];
        for change in self.contexts.take(action, values, call.thread, call.number) {
            match change {
                Change::Created(_) | Change::Current(_) => {}
                Change::Joined { from, to } => self.join(from, to),
                Change::Ended { context, group } => {
                    let until = self.contexts.get(context).destroyed;
                    let own = self.objects.end_context(context);
                    ended.extend(own.into_iter().map(|one| ended_of(one, until)));
                    if let Some(group) = group {
                        ended.extend(self.end_group(group, until));
                    }
                }
            }
        }
        in_order(&mut ended);
        ended
    }

    fn join(&mut self, from: u32, to: u32) {
        self.objects.join(from, to);
        let of = |key: &(u32, u64)| key.0 == from;
        for (key, shaders) in self.attached.extract_if(|key, _| of(key)).collect::<Vec<_>>() {
            self.attached.insert((to, key.1), shaders);
        }
        for (key, call) in self.deleted.extract_if(|key, _| of(key)).collect::<Vec<_>>() {
            self.deleted.insert((to, key.1), call);
        }
    }

    fn end_group(&mut self, group: u32, until: Option<u64>) -> Vec<Ended> {
        let (mut ended, mut gone) = (Vec::new(), Vec::new());
        for one in self.objects.end_group(group) {
            // A deleted shader disappears with its program, and is reported with it.
            if one.object.is_deleted {
                gone.push(one.name);
                continue;
            }
            let mut one = ended_of(one, until);
            if one.entry.kind == Kind::Program {
                let shaders = self.attached.remove(&(group, one.name)).unwrap_or_default();
                self.attached_count = self.attached_count.saturating_sub(shaders.len());
                let deleted = shaders.iter().filter_map(|name| Some((*name, *self.deleted.get(&(group, *name))?)));
                one.keeps = deleted.collect();
            }
            ended.push(one);
        }
        for name in gone {
            self.deleted.remove(&(group, name));
        }
        ended
    }

    /// At the end of the trace: all remaining objects, by call.
    pub(super) fn end_all(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for context in 0..u32::try_from(self.contexts.all().len()).unwrap_or(u32::MAX) {
            let until = self.contexts.get(context).destroyed;
            let own = self.objects.end_context(context);
            ended.extend(own.into_iter().map(|one| ended_of(one, until)));
        }
        for group in 0..u32::try_from(self.contexts.groups()).unwrap_or(u32::MAX) {
            // It was destroyed while current on a thread: the trace just does not show its end.
            let mut of = self.contexts.all().iter().filter(|context| context.group == group).map(|one| one.destroyed);
            let until = of.try_fold(0, |last, one| one.map(|call| last.max(call))).filter(|_| group != 0);
            ended.extend(self.end_group(group, until));
        }
        in_order(&mut ended);
        ended
    }
}

fn ended_of(removed: Removed<Entry>, until: Option<u64>) -> Ended {
    let Removed { name, count, object: entry, .. } = removed;
    Ended { name, count, entry, until, keeps: Vec::new() }
}

fn in_order(ended: &mut [Ended]) {
    ended.sort_unstable_by_key(|one| (one.entry.call, one.entry.order, one.name));
}
