//! The rules for regions: how adds and removes follow each other, and accesses across a region's end.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use anytrace_core::{Diagnostic, Error, Limits, Place, Rule, Sink};

use crate::rules;
use crate::verbs::regions::{LAYERS_MAX, Overlap, Region, Regions, regions_max};
use crate::verbs::types::shown_name;
use crate::wire::record::{Body, Layout, Record, Width};

/// The original checker copies names into 257 bytes and crashes beyond (samples `name-257`, `name-4096`).
const NAME_BYTES_SAFE: usize = 256;

/// RTTA state: live regions, removed regions, element sizes by type; all bounded.
pub(crate) struct RttaRules {
    layout: Layout,
    regions: Regions<()>,
    ends: EndFilter,
    removed: HashSet<u64>,
    /// Element size by hash of the name, for types recorded as arrays.
    sizes: HashMap<u64, u32>,
    distinct_max: usize,
    regions_max: usize,
    /// Once true, there may be a live region that is not followed: then apparent violations may be valid.
    has_unfollowed: bool,
    /// Of these, one that starts at address 0.
    has_unfollowed_null: bool,
    /// A limit on removed regions or types was reached and reported.
    is_removed_full: bool,
    is_sizes_full: bool,
}

impl RttaRules {
    pub(crate) fn new(layout: Layout, limits: Limits) -> Self {
        Self {
            layout,
            regions: Regions::new(regions_max(limits)),
            ends: EndFilter::default(),
            removed: HashSet::new(),
            sizes: HashMap::new(),
            distinct_max: limits.distinct_max,
            regions_max: regions_max(limits),
            has_unfollowed: false,
            has_unfollowed_null: false,
            is_removed_full: false,
            is_sizes_full: false,
        }
    }

    /// True when a region may end inside an aligned access at `address`: exact when false.
    #[inline(always)]
    pub(crate) fn may_end_inside(&self, address: u64, size: u8) -> bool {
        size > self.ends.alignment && self.ends.may_have(address)
    }

    /// Judges an RTTA record.
    pub(crate) fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        match record.body {
            Body::Add { elemsize, elemcount, name } => {
                judge_name(name, at, sink)?;
                if elemcount > 1 {
                    self.judge_elemsize(name, elemsize, at, sink)?;
                }
                // Two 32-bit factors: the product fits.
                self.add(record.address, u64::from(elemsize) * u64::from(elemcount), at, sink)
            }
            _ => self.remove(record.address, at, sink),
        }
    }

    /// Judges an access by the region of its first byte.
    pub(crate) fn access(&self, address: u64, size: u8, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(beyond) = u64::from(size).checked_sub(1) else { return Ok(()) };
        if self.has_unfollowed {
            // One of those may cover the known region.
            return Ok(());
        }
        let Some(last) = self.regions.find(address).and_then(Region::last) else { return Ok(()) };
        if beyond <= last - address {
            return Ok(());
        }
        let expected = format!("at most {} bytes to the region's end", last - address + 1);
        sink.report(
            report(&rules::ACCESS_STRADDLES, at)
                .field("size")
                .expected(expected)
                .found(format!("{size} bytes at {address:#x}")),
        )
    }

    fn add(&mut self, start: u64, bytes: u64, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let space = self.layout.width.address_max();
        if bytes == 0 {
            sink.report(report(&rules::REGION_EMPTY, at).field("elemsize").found("a region of 0 bytes"))?;
        }
        let largest = if self.layout.width == Width::Four { 1 << 32 } else { 1 << 47 };
        if bytes > largest {
            sink.report(report(&rules::REGION_HUGE, at).field("elemsize").found(format!("{bytes} bytes")))?;
        }
        if bytes > 0 && space - start.min(space) < bytes - 1 {
            let found = format!("{bytes} bytes at {start:#x}");
            sink.report(report(&rules::REGION_WRAPS, at).field("address").found(found))?;
        }
        let region = Region { start, bytes, seq: at.seq, data: () };
        if let Some(last) = region.last() {
            if let Some(overlap) = self.regions.overlap(start, last) {
                let rule = match overlap {
                    Overlap::SameStart => &rules::OVERLAP_SAME_START,
                    Overlap::Nested => &rules::OVERLAP_NESTED,
                    Overlap::Partial => &rules::OVERLAP_PARTIAL,
                };
                sink.report(report(rule, at).field("address").found(format!("{bytes} bytes at {start:#x}")))?;
            }
            self.ends.add(last.wrapping_add(1), &self.regions);
        }
        if self.regions.add(region) { Ok(()) } else { self.lose_track(start, at, sink) }
    }

    /// A region is not followed: reported once.
    #[cold]
    fn lose_track(&mut self, start: u64, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        self.has_unfollowed_null |= start == 0;
        if std::mem::replace(&mut self.has_unfollowed, true) {
            return Ok(());
        }
        let found = match self.regions.len() < self.regions_max {
            true => format!("more than {LAYERS_MAX} overlapping regions"),
            false => format!("more than {} live regions", self.regions_max),
        };
        let help = "regions beyond the limit are not tracked; from here on, removes without a known add and accesses past \
                    a region's end are not checked";
        sink.report(report(&rules::STATE_LIMIT, at).found(found).help(help))
    }

    fn remove(&mut self, start: u64, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.regions.remove(start).is_some() {
            if self.regions.len() == 0 {
                self.ends.clear();
            }
            if self.removed.len() < self.regions_max {
                self.removed.insert(start);
            } else if !self.removed.contains(&start) && !std::mem::replace(&mut self.is_removed_full, true) {
                let found = format!("more than {} addresses at which regions were removed", self.regions_max);
                let help = "from here on, removes at unknown addresses are not checked";
                return sink.report(report(&rules::STATE_LIMIT, at).found(found).help(help));
            }
            return Ok(());
        }
        if self.has_unfollowed && (start != 0 || self.has_unfollowed_null) {
            // Its add may be one of those that were not followed.
            return Ok(());
        }
        let rule = match () {
            () if start == 0 => &rules::REMOVE_NULL,
            () if self.regions.find(start).is_some() => &rules::REMOVE_INSIDE,
            () if self.removed.contains(&start) => &rules::REMOVE_TWICE,
            // It may be twice, or without an add.
            () if self.is_removed_full => return Ok(()),
            () => &rules::REMOVE_WITHOUT_ADD,
        };
        sink.report(report(rule, at).field("address").found(format!("{start:#x}")))
    }

    fn judge_elemsize(&mut self, name: &[u8], elemsize: u32, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let has_room = self.sizes.len() < self.distinct_max;
        match self.sizes.get(&hasher.finish()) {
            Some(known) if *known != elemsize => sink.report(
                report(&rules::TYPE_TWO_SIZES, at)
                    .field("elemsize")
                    .expected(format!("{known}, as before for {}", shown_name(name)))
                    .found(elemsize.to_string()),
            ),
            Some(_) => Ok(()),
            None if has_room => {
                self.sizes.insert(hasher.finish(), elemsize);
                Ok(())
            }
            None if std::mem::replace(&mut self.is_sizes_full, true) => Ok(()),
            None => {
                let found = format!("more than {} type names", self.distinct_max);
                let help = "element sizes of further types are not compared";
                sink.report(report(&rules::STATE_LIMIT, at).found(found).help(help))
            }
        }
    }
}

#[cold]
fn report(rule: &'static Rule, at: Place) -> Diagnostic {
    rule.at(at.offset).record(at.seq)
}

fn judge_name(name: &[u8], at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
    if name.is_empty() {
        sink.report(report(&rules::NAME_EMPTY, at).field("type name").found("an empty name"))?;
    }
    let is_text = std::str::from_utf8(name).is_ok_and(|text| !text.chars().any(char::is_control));
    if !is_text {
        sink.report(report(&rules::NAME_ODD, at).field("type name").found(shown_name(name)))?;
    }
    if name.len() > NAME_BYTES_SAFE {
        let expected = format!("at most {NAME_BYTES_SAFE} bytes");
        let found = format!("{} bytes", name.len());
        sink.report(report(&rules::NAME_LONG, at).field("type name").expected(expected).found(found))?;
    }
    Ok(())
}

/// Where regions may end inside an aligned access: a set of 16-byte granules with false positives.
///
/// An aligned access of up to 16 bytes is in one granule, and an end that is a multiple of its size is not inside it.
/// Most regions end well aligned, and then the hot loop never queries the set.
#[derive(Debug)]
struct EndFilter {
    /// All ends are multiples of this; 16 where all are multiples of 16.
    alignment: u8,
    words: Vec<u64>,
    added: usize,
}

/// Words of the set: 128 KiB.
const FILTER_WORDS: usize = 1 << 14;

/// Ends gathered before the set may start over.
const FILTER_ADDS: usize = 1 << 16;

impl Default for EndFilter {
    fn default() -> Self {
        Self { alignment: 16, words: Vec::new(), added: 0 }
    }
}

impl EndFilter {
    /// Takes the address after a region's last byte; starts over when too many ends were gathered.
    fn add<T>(&mut self, end: u64, live: &Regions<T>) {
        if self.added > FILTER_ADDS && self.added > 4 * live.len() {
            self.clear();
            for last in live.iter().filter_map(Region::last) {
                self.set(last.wrapping_add(1));
            }
        }
        self.set(end);
    }

    fn clear(&mut self) {
        if self.added > 0 {
            self.words.clear();
            (self.alignment, self.added) = (16, 0);
        }
    }

    fn set(&mut self, end: u64) {
        if end.is_multiple_of(16) {
            return;
        }
        self.words.resize(FILTER_WORDS, 0);
        let (word, bit) = Self::place(end);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
        self.alignment = self.alignment.min(1 << end.trailing_zeros());
        self.added += 1;
    }

    #[inline(always)]
    fn may_have(&self, address: u64) -> bool {
        let (word, bit) = Self::place(address);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// A granule's bit: the high bits of a product depend on all bits of the granule.
    #[inline(always)]
    fn place(address: u64) -> (usize, u64) {
        let hash = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        ((hash >> 6) as usize % FILTER_WORDS, 1 << (hash & 63))
    }
}
