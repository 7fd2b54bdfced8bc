//! A pass over traces for the sizes of their blocks alone.

use std::collections::{BTreeSet, HashMap};

use anytrace_analysis::site_name::SiteName;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::{Collect, Error};

use super::super::opening;
use super::Traces;
use crate::failure::Failure;
use crate::open;

/// Most different sizes of one site.
const SIZES_MAX: usize = 1 << 16;

/// The sizes of blocks, for each name of a place; and whether all traces could be read.
pub(super) fn of(traces: Traces<'_>) -> Result<(HashMap<String, Vec<u64>>, bool), Failure> {
    let mut found: HashMap<String, BTreeSet<u64>> = HashMap::new();
    let mut is_complete = !traces.files.is_empty();
    for path in traces.files {
        if open::is_read_once(path) {
            is_complete = false;
            continue;
        }
        let mut sizes = Sizes::default();
        // The verb reports what cannot be read.
        let read = opening::open(path, traces.input).ok().and_then(|opened| {
            let mut silent = Collect::default();
            opened.trace.map(|trace| trace.accesses(&mut sizes, &mut silent))
        });
        is_complete &= matches!(read, Some(Ok(_)));
        for (name, sizes) in sizes.into_named() {
            found.entry(name).or_default().extend(sizes);
        }
    }
    Ok((found.into_iter().map(|(name, sizes)| (name, sizes.into_iter().collect())).collect(), is_complete))
}

/// The types of a trace, and the sizes of their regions.
#[derive(Default)]
struct Sizes(Vec<(Option<String>, BTreeSet<u64>)>);

impl Sizes {
    fn into_named(self) -> impl Iterator<Item = (String, BTreeSet<u64>)> {
        self.0.into_iter().filter_map(|(name, sizes)| Some((name?, sizes)))
    }
}

impl AccessSink for Sizes {
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        let name = name.filter(|name| SiteName::of(name).is_some());
        self.0.push((name.map(|name| String::from_utf8_lossy(name).into_owned()), BTreeSet::new()));
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if let Some((Some(_), sizes)) = self.0.get_mut(region.type_number as usize)
            && sizes.len() < SIZES_MAX
        {
            sizes.insert(region.element_bytes);
        }
        Ok(())
    }

    fn region_removed(&mut self, _region: &RegionRemoved) -> Result<(), Error> {
        Ok(())
    }

    fn accesses(&mut self, _batch: &[Access]) -> Result<(), Error> {
        Ok(())
    }
}
