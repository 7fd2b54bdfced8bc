//! Types of allocations that a trace names after their place: stated by `--type-of`, or inferred from debug data.

mod sizes;
mod stated;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_analysis::site_name::SiteName;
use anytrace_core::layout::{Layout, Layouts, Origin};
use anytrace_core::span::Location;
use anytrace_core::text::printable;
use anytrace_symbols::layouts::TypeData;
use anytrace_symbols::sites;
use serde_json::{Value, json};

use crate::arguments::InputArguments;
use crate::failure::Failure;

pub(super) use stated::{Stated, read_all};

/// The traces that a verb reads.
#[derive(Clone, Copy)]
pub(super) struct Traces<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) input: &'a InputArguments,
}

/// Layouts of named types, and of allocations.
pub(super) struct SiteLayouts<'d, 's> {
    data: &'d mut TypeData<'s>,
    infers: bool,
    stated: Vec<StatedLayout>,
    /// The sizes of all blocks of each name, in bytes; empty for names that were not seen before.
    sizes: HashMap<String, Vec<u64>>,
    programs: Vec<PathBuf>,
    known: HashMap<String, Option<SiteLayout>>,
}

/// What the user states, with the type found.
struct StatedLayout {
    what: Stated,
    layout: Arc<Layout>,
    is_used: bool,
}

/// The layout of a site's blocks.
#[derive(Clone)]
struct SiteLayout {
    layout: Arc<Layout>,
    /// Elements of each block; `None` for as many as fit.
    elements: Option<u64>,
}

impl<'d, 's> SiteLayouts<'d, 's> {
    /// Looks stated types up, and at the blocks of traces that can be read twice.
    pub(super) fn new(
        data: &'d mut TypeData<'s>,
        stated: Vec<Stated>,
        infers: bool,
        programs: &[PathBuf],
        traces: Traces<'_>,
    ) -> Result<Self, Failure> {
        let infers = infers && data.has_code();
        let is_needed = infers || !stated.is_empty();
        let mut found = Vec::new();
        for what in stated {
            let layout = data.layout(&what.type_name, 0).ok_or_else(|| unknown_type(&what))?;
            let layout = Arc::new(Layout { origin: Origin::Stated, ..Layout::clone(&layout) });
            found.push(StatedLayout { what, layout, is_used: false });
        }
        let (sizes, is_complete) = if is_needed { sizes::of(traces)? } else { (HashMap::new(), false) };
        let programs = programs.to_vec();
        let mut new = Self { data, infers, stated: found, sizes, programs, known: HashMap::new() };
        if is_complete {
            let mut names: Vec<String> = new.sizes.keys().cloned().collect();
            names.sort_unstable();
            for name in names {
                new.stated_of(&name)?;
            }
            new.complain()?;
        }
        Ok(new)
    }

    /// Fails where a stated site is in no trace: nothing would show that it was misspelt.
    pub(super) fn complain(&self) -> Result<(), Failure> {
        let Some(unused) = self.stated.iter().find(|one| !one.is_used) else { return Ok(()) };
        let mut names: Vec<&str> = self.sizes.keys().chain(self.known.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let shown: Vec<String> = names.iter().take(8).map(|name| printable(name)).collect();
        let more = if names.len() > shown.len() { ", …" } else { "" };
        let has = if shown.is_empty() {
            "the trace has no allocations named after their place".to_owned()
        } else {
            format!("the trace has {}{more}", shown.join(", "))
        };
        Err(Failure::usage(format!("--type-of: no allocation at {}: {has}", printable(&unused.what.site))))
    }

    /// What the user states of a site; of several lines the last.
    fn stated_of(&mut self, name: &str) -> Result<Option<SiteLayout>, Failure> {
        let by_line = self.stated.iter().any(|one| one.what.line().is_some());
        let lines = if by_line { lines_of(name, &self.programs)? } else { Vec::new() };
        let mut last = None;
        for one in &mut self.stated {
            if one.what.is_of(name, &lines) {
                one.is_used = true;
                last = Some(SiteLayout { layout: Arc::clone(&one.layout), elements: one.what.elements });
            }
        }
        Ok(last)
    }

    fn inferred(&mut self, name: &str, recorded_bytes: u64) -> Option<SiteLayout> {
        let site = SiteName::of(name.as_bytes()).filter(|_| self.infers)?;
        // The place is in a file of which nothing is known.
        if site.remarks().any(|remark| remark.starts_with(b"in ")) {
            return None;
        }
        let places: Vec<(String, u64)> =
            site.each().into_iter().map(|(name, at)| (String::from_utf8_lossy(name).into_owned(), at)).collect();
        let places: Vec<sites::Site<'_>> = places.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        let only = [recorded_bytes];
        let sizes = self.sizes.get(name).map_or(&only[..], Vec::as_slice);
        let layout = self.data.infer(&places, sizes)?;
        Some(SiteLayout { layout, elements: None })
    }
}

impl Layouts for SiteLayouts<'_, '_> {
    fn layout(&mut self, trace_name: &str, recorded_bytes: u64) -> Option<Arc<Layout>> {
        if SiteName::of(trace_name.as_bytes()).is_none() {
            return self.data.layout(trace_name, recorded_bytes);
        }
        if !self.known.contains_key(trace_name) {
            // Programs were read before: what fails here failed there.
            let stated = self.stated_of(trace_name).unwrap_or_default();
            let found = stated.or_else(|| self.inferred(trace_name, recorded_bytes));
            self.known.insert(trace_name.to_owned(), found);
        }
        let found = self.known.get(trace_name)?.as_ref()?;
        found.of(recorded_bytes)
    }
}

impl SiteLayout {
    /// The layout for a block of so many bytes.
    fn of(&self, recorded_bytes: u64) -> Option<Arc<Layout>> {
        let Some(count) = self.elements else {
            let is_stated = self.layout.origin == Origin::Stated;
            let fits = self.layout.is_open() || recorded_bytes.is_multiple_of(self.layout.bytes.max(1));
            return (is_stated || fits).then(|| Arc::clone(&self.layout));
        };
        // Elements may be longer than their type: padded, or with something behind.
        let bytes =
            recorded_bytes.checked_div(count).filter(|bytes| bytes.checked_mul(count) == Some(recorded_bytes))?;
        (bytes >= self.layout.bytes).then(|| Arc::new(Layout { bytes, ..Layout::clone(&self.layout) }))
    }
}

fn unknown_type(what: &Stated) -> Failure {
    let name = printable(&what.type_name);
    Failure::usage(format!("--type-of: no type {name} in the debug data; types --layouts lists what there is"))
}

/// The lines of a site and its callers, as far as programs have them.
fn lines_of(name: &str, programs: &[PathBuf]) -> Result<Vec<Location>, Failure> {
    let each = SiteName::of(name.as_bytes()).map(SiteName::each).unwrap_or_default();
    let places: Vec<(String, u64)> =
        each.into_iter().map(|(name, at)| (String::from_utf8_lossy(name).into_owned(), at)).collect();
    let wanted: Vec<sites::Site<'_>> = places.iter().map(|(name, at)| (name.as_str(), *at)).collect();
    let paths: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
    let found = sites::locations(&paths, &wanted).map_err(|error| Failure::bare(&error))?;
    Ok(found.into_iter().flatten().collect())
}

/// How the type of a region is known, for programs: `null` where the trace names it.
pub(super) fn origin(layout: Option<&Layout>) -> Value {
    match layout.map(|layout| &layout.origin) {
        Some(Origin::Inferred(inferred)) => json!({
            "how": inferred.how.word(),
            "confidence": inferred.how.confidence(),
            "evidence": inferred.text,
        }),
        Some(Origin::Stated) => json!({"how": "stated", "confidence": "certain", "evidence": "--type-of"}),
        _ => Value::Null,
    }
}
