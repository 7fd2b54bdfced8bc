//! Objects by name: those of each share group and those of each context.

use std::collections::{BTreeMap, HashMap};

use crate::tools::gl::contexts::{Contexts, UNKNOWN};
use crate::tools::gl::kind::{Kind, Scope};

/// Names of a group or a context.
#[derive(Debug)]
struct Names<T> {
    /// By name space and name.
    single: HashMap<(Kind, u64), T>,
    /// Consecutive objects, by the first name: how many, and their value.
    rows: BTreeMap<(Kind, u64), (u64, T)>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { single: HashMap::new(), rows: BTreeMap::new() }
    }
}

/// A removed object, or several consecutive ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed<T> {
    /// Name space: shaders are [`Kind::Program`] here.
    pub namespace: Kind,
    /// The name, or the first.
    pub name: u64,
    /// How many consecutive names.
    pub count: u64,
    /// The caller's value for it.
    pub object: T,
}

/// The objects of a trace that exist, each with a value of the caller.
#[derive(Debug)]
pub struct Objects<T> {
    groups: Vec<Names<T>>,
    contexts: Vec<Names<T>>,
    count: usize,
    count_max: usize,
    is_full: bool,
}

impl<T> Objects<T> {
    /// Tracks at most this many objects at a time; further ones are ignored.
    pub fn new(count_max: usize) -> Self {
        Self { groups: Vec::new(), contexts: Vec::new(), count: 0, count_max, is_full: false }
    }

    /// True when there were more objects than are tracked.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// How many exist; consecutive objects count once.
    pub fn count(&self) -> usize {
        self.count
    }

    fn names(&self, scope: Scope, context: u32, contexts: &Contexts) -> Option<&Names<T>> {
        match scope {
            Scope::Context => self.contexts.get(context as usize),
            Scope::Group => self.groups.get(contexts.get(context).group as usize),
        }
    }

    fn names_mut(&mut self, scope: Scope, context: u32, contexts: &Contexts) -> Option<&mut Names<T>> {
        let (all, at) = match scope {
            Scope::Context => (&mut self.contexts, context),
            Scope::Group => (&mut self.groups, contexts.get(context).group),
        };
        let at = at as usize;
        if all.len() <= at {
            all.resize_with(at + 1, Names::default);
        }
        all.get_mut(at)
    }

    /// Which of the two tables contains a name: framebuffers may be in either.
    fn scope_of(&self, kind: Kind, name: u64, context: u32, contexts: &Contexts) -> Option<Scope> {
        let key = (kind.namespace(), name);
        let has = |scope| self.names(scope, context, contexts).is_some_and(|names| names.has(key));
        let own = kind.scope();
        let other = if own == Scope::Context { Scope::Group } else { Scope::Context };
        [own, other].into_iter().find(|scope| has(*scope))
    }

    /// True when a context knows the name.
    pub fn has(&self, kind: Kind, name: u64, context: u32, contexts: &Contexts) -> bool {
        self.scope_of(kind, name, context, contexts).is_some()
    }

    /// The object that a name denotes in a context. Consecutive objects have one common value.
    pub fn get(&self, kind: Kind, name: u64, context: u32, contexts: &Contexts) -> Option<&T> {
        let scope = self.scope_of(kind, name, context, contexts)?;
        let names = self.names(scope, context, contexts)?;
        names.single.get(&(kind.namespace(), name)).or_else(|| names.row((kind.namespace(), name)).map(|row| row.2))
    }

    /// As [`Objects::get`], mutable; not for consecutive objects.
    pub fn get_mut(&mut self, kind: Kind, name: u64, context: u32, contexts: &Contexts) -> Option<&mut T> {
        let scope = self.scope_of(kind, name, context, contexts)?;
        self.names_mut(scope, context, contexts)?.single.get_mut(&(kind.namespace(), name))
    }

    /// Adds a new object. Returns the existing one with the same name, if any.
    pub fn insert(
        &mut self,
        (kind, scope): (Kind, Scope),
        name: u64,
        object: T,
        context: u32,
        contexts: &Contexts,
    ) -> Option<T> {
        let key = (kind.namespace(), name);
        if self.count >= self.count_max {
            self.is_full = true;
            return None;
        }
        let before = self.names_mut(scope, context, contexts)?.single.insert(key, object);
        self.count += usize::from(before.is_none());
        before
    }

    /// All names, separately for contexts and groups, in arbitrary order.
    pub fn all<'a>(&'a self) -> impl Iterator<Item = (Scope, u32, Kind, u64, u64, &'a T)> {
        let of = |scope, names: &'a [Names<T>]| {
            names.iter().enumerate().flat_map(move |(at, names)| {
                let at = u32::try_from(at).unwrap_or(UNKNOWN);
                let single =
                    names.single.iter().map(move |((kind, name), object)| (scope, at, *kind, *name, 1, object));
                let rows = names
                    .rows
                    .iter()
                    .map(move |((kind, name), (count, object))| (scope, at, *kind, *name, *count, object));
                single.chain(rows)
            })
        };
        of(Scope::Group, &self.groups).chain(of(Scope::Context, &self.contexts))
    }

    /// Removes an object that a context deletes.
    pub fn remove(&mut self, kind: Kind, name: u64, context: u32, contexts: &Contexts) -> Option<T> {
        let scope = self.scope_of(kind, name, context, contexts)?;
        let removed = self.names_mut(scope, context, contexts)?.single.remove(&(kind.namespace(), name));
        self.count -= usize::from(removed.is_some());
        removed
    }

    /// Removes all objects of a context that ended.
    pub fn end_context(&mut self, context: u32) -> Vec<Removed<T>> {
        let names = self.contexts.get_mut(context as usize).map(std::mem::take);
        self.remove_all(names)
    }

    /// Removes all objects of a group that ended.
    pub fn end_group(&mut self, group: u32) -> Vec<Removed<T>> {
        let names = self.groups.get_mut(group as usize).map(std::mem::take);
        self.remove_all(names)
    }

    fn remove_all(&mut self, names: Option<Names<T>>) -> Vec<Removed<T>> {
        let Some(names) = names else { return Vec::new() };
        self.count = self.count.saturating_sub(names.single.len() + names.rows.len());
        let single = names.single.into_iter().map(|((namespace, name), object)| (namespace, name, 1, object));
        let rows = names.rows.into_iter().map(|((namespace, name), (count, object))| (namespace, name, count, object));
        let all = single.chain(rows);
        all.map(|(namespace, name, count, object)| Removed { namespace, name, count, object }).collect()
    }

    /// Moves all objects of a group to another one.
    pub fn join(&mut self, from: u32, to: u32) {
        let Some(moved) = self.groups.get_mut(from as usize).map(std::mem::take) else { return };
        let at = to as usize;
        if self.groups.len() <= at {
            self.groups.resize_with(at + 1, Names::default);
        }
        let Some(names) = self.groups.get_mut(at) else { return };
        let before = names.single.len() + names.rows.len() + moved.single.len() + moved.rows.len();
        names.single.extend(moved.single);
        names.rows.extend(moved.rows);
        self.count = self.count.saturating_sub(before - names.single.len() - names.rows.len());
    }
}

impl<T: Clone> Objects<T> {
    /// Adds consecutive objects. Returns the objects that lost one or more names to them.
    pub fn insert_row(
        &mut self,
        (kind, scope): (Kind, Scope),
        (first, count): (u64, u64),
        object: T,
        context: u32,
        contexts: &Contexts,
    ) -> Vec<T> {
        if count == 0 {
            return Vec::new();
        }
        let removed = self.remove_row(kind, (first, count), context, contexts);
        if self.count >= self.count_max {
            self.is_full = true;
            return removed;
        }
        if let Some(names) = self.names_mut(scope, context, contexts)
            && names.rows.insert((kind.namespace(), first), (count, object)).is_none()
        {
            self.count += 1;
        }
        removed
    }

    /// Removes consecutive objects, from whatever rows they belong to. Returns the objects that lost one or more names.
    pub fn remove_row(&mut self, kind: Kind, (first, count): (u64, u64), context: u32, contexts: &Contexts) -> Vec<T> {
        let kind = kind.namespace();
        let end = first.saturating_add(count);
        let mut removed = Vec::new();
        let Some(names) = self.names_mut(kind.scope(), context, contexts) else { return removed };
        let before = names.rows.len();
        // The row that begins before the first name, and those that begin after it.
        let reaching = names.row((kind, first)).map(|(start, ..)| start).filter(|start| *start < first);
        let inside = names.rows.range((kind, first)..(kind, end)).map(|((_, start), _)| *start);
        let starts: Vec<u64> = reaching.into_iter().chain(inside).collect();
        for start in starts {
            let Some((length, object)) = names.rows.remove(&(kind, start)) else { continue };
            let row_end = start.saturating_add(length);
            if start < first {
                names.rows.insert((kind, start), (first - start, object.clone()));
            }
            if row_end > end {
                names.rows.insert((kind, end), (row_end - end, object.clone()));
            }
            removed.push(object);
        }
        let after = names.rows.len();
        self.count = (self.count + after).saturating_sub(before);
        removed
    }
}

impl<T> Names<T> {
    /// The row that contains a name: its first name, its length and its value.
    fn row(&self, (kind, name): (Kind, u64)) -> Option<(u64, u64, &T)> {
        let ((of, first), (count, object)) = self.rows.range(..=(kind, name)).next_back()?;
        (*of == kind && name - first < *count).then_some((*first, *count, object))
    }

    fn has(&self, key: (Kind, u64)) -> bool {
        self.single.contains_key(&key) || self.row(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(objects: &Objects<char>) -> Vec<(u64, u64, char)> {
        let mut rows: Vec<_> = objects.all().map(|(_, _, _, name, count, object)| (name, count, *object)).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn rows_are_split_where_a_part_is_deleted() {
        let contexts = Contexts::new(true);
        let list = (Kind::List, Scope::Group);
        let mut objects = Objects::new(100);
        objects.insert_row(list, (10, 10), 'a', UNKNOWN, &contexts);
        objects.insert_row(list, (20, 5), 'b', UNKNOWN, &contexts);
        objects.remove_row(Kind::List, (15, 2), UNKNOWN, &contexts);
        assert_eq!((rows(&objects), objects.count()), (vec![(10, 5, 'a'), (17, 3, 'a'), (20, 5, 'b')], 3));
        objects.remove_row(Kind::List, (12, 10), UNKNOWN, &contexts);
        assert_eq!((rows(&objects), objects.count()), (vec![(10, 2, 'a'), (22, 3, 'b')], 2));
        assert!(objects.has(Kind::List, 11, UNKNOWN, &contexts) && !objects.has(Kind::List, 12, UNKNOWN, &contexts));
        objects.remove_row(Kind::List, (0, u64::MAX), UNKNOWN, &contexts);
        assert_eq!((rows(&objects), objects.count()), (vec![], 0));
    }

    #[test]
    fn rows_behave_as_single_names() {
        // An independent slow model: a map of every name.
        let contexts = Contexts::new(true);
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut objects = Objects::new(1000);
            let mut slow = BTreeMap::new();
            for step in 0..30_u8 {
                let (first, count) = (next(40), next(12));
                if next(2) == 0 {
                    objects.insert_row((Kind::List, Scope::Group), (first, count), step, UNKNOWN, &contexts);
                    slow.extend((first..first + count).map(|name| (name, step)));
                } else {
                    objects.remove_row(Kind::List, (first, count), UNKNOWN, &contexts);
                    (first..first + count).for_each(|name| {
                        slow.remove(&name);
                    });
                }
                for name in 0..60 {
                    assert_eq!(objects.get(Kind::List, name, UNKNOWN, &contexts), slow.get(&name));
                }
                assert_eq!(objects.all().count(), objects.count());
            }
        }
    }

    #[test]
    fn shaders_and_programs_have_one_name_space_and_the_number_is_bounded() {
        let contexts = Contexts::new(true);
        let mut objects = Objects::new(2);
        assert_eq!(objects.insert((Kind::Shader, Scope::Group), 1, 's', UNKNOWN, &contexts), None);
        assert_eq!(objects.insert((Kind::Program, Scope::Group), 1, 'p', UNKNOWN, &contexts), Some('s'));
        objects.insert((Kind::Query, Scope::Context), 1, 'q', 7, &contexts);
        objects.insert((Kind::Query, Scope::Context), 2, 'r', 7, &contexts);
        assert!(objects.is_full() && objects.count() == 2);
        assert_eq!(objects.get(Kind::Query, 1, 7, &contexts), Some(&'q'));
        assert_eq!(objects.get(Kind::Query, 1, 6, &contexts), None);
        assert_eq!(objects.end_context(7).len(), 1);
        assert_eq!((objects.remove(Kind::Shader, 1, 3, &contexts), objects.count()), (Some('p'), 0));
    }
}
