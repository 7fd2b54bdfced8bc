//! The types of a file: found by name, built when they are asked for.

use std::collections::HashMap;
use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::layout::{Layout, RecordKind, bare_name, canonical_name};
use anytrace_core::span::Mangling;

use super::build;
use super::find::choose;
use super::index::Index;
use super::sections::TypeSections;
use crate::demangle;

/// The types of a file.
pub(super) struct Types<'a> {
    index: Index<'a>,
    /// What was asked for.
    found: HashMap<(Box<str>, u64), Option<Arc<Layout>>>,
}

/// The variable that a region's name means: the recorder appends `(global)`, or `(global in libx.so)`.
fn variable_name(trace_name: &str) -> Option<&str> {
    let (variable, remark) = trace_name.rsplit_once(" (")?;
    let remark = remark.strip_suffix(')')?;
    (remark == "global" || remark.starts_with("global in ")).then_some(variable)
}

impl<'a> Types<'a> {
    pub(super) fn new(sections: &'a TypeSections<'a>, notes: &mut Vec<String>) -> Result<Self, Error> {
        Ok(Self { index: Index::new(sections, notes)?, found: HashMap::new() })
    }

    /// The type that a trace's name means.
    pub(super) fn find(
        &mut self,
        trace_name: &str,
        recorded_bytes: u64,
        notes: &mut Vec<String>,
    ) -> Option<Arc<Layout>> {
        let key = (Box::from(trace_name), recorded_bytes);
        if let Some(found) = self.found.get(&key) {
            return found.clone();
        }
        if let Some(variable) = variable_name(trace_name) {
            let candidates = self.of_variable(&demangle(variable, Mangling::Demangled));
            let found = choose(candidates, trace_name, recorded_bytes, self.index.name, notes).map(Arc::new);
            self.found.insert(key, found.clone());
            return found;
        }
        let bare = canonical_name(bare_name(trace_name));
        let mut candidates = self.definitions(&bare);
        if candidates.is_empty() {
            candidates = self.index.full_names(&bare).flat_map(|name| self.definitions(name)).collect();
        }
        if candidates.is_empty() && bare.ends_with('*') {
            candidates.extend(self.pointer(&bare));
        }
        let found = choose(candidates, trace_name, recorded_bytes, self.index.name, notes).map(Arc::new);
        self.found.insert(key, found.clone());
        found
    }

    /// The list that types are built from.
    pub(super) fn index(&self) -> &Index<'a> {
        &self.index
    }

    /// True when there are no types.
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.index.names()
    }

    /// Every record that has a name.
    pub(super) fn records(&self) -> Vec<Arc<Layout>> {
        let mut all = Vec::new();
        for name in self.index.record_names() {
            let mut found = self.definitions(name);
            found.retain(|layout| !layout.fields.is_empty());
            all.extend(found.into_iter().map(Arc::new));
        }
        all
    }

    /// The definitions of a name, each distinct one once.
    fn definitions(&self, name: &str) -> Vec<Layout> {
        let mut found: Vec<Layout> = Vec::new();
        for place in self.index.definitions(name) {
            let Some(layout) = build::layout(&self.index, place, name) else { continue };
            if !found.contains(&layout) {
                found.push(layout);
            }
        }
        found
    }

    /// The types of a variable's elements, each distinct one once.
    fn of_variable(&self, variable: &str) -> Vec<Layout> {
        // Debug data have those of functions without the function: `step(int)::calls`.
        let own = variable.rsplit_once(")::").map_or(variable, |(_, own)| own);
        let mut found: Vec<Layout> = Vec::new();
        for place in self.index.variables(&canonical_name(bare_name(own))) {
            let Some(layout) = build::variable(&self.index, *place) else { continue };
            if !found.contains(&layout) {
                found.push(layout);
            }
        }
        found
    }

    fn pointer(&self, name: &str) -> Option<Layout> {
        Some(Layout::new(name, RecordKind::Scalar, self.index.pointer_bytes()?))
    }
}
