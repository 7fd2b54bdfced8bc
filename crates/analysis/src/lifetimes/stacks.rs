//! Lifetimes by the stack that allocates, as far as recorders put it into the names of types.

use std::collections::BTreeMap;

use anytrace_core::access::TypeNumber;

use super::results::{Amount, Lifetimes, TypeLife};
use crate::site_name::SiteName;

/// The regions that one stack allocated, or those of a type that is not named after a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackLife {
    /// The name of the types without remarks: `make+0x1f<load+0x8`, or a type's own name.
    pub name: String,
    /// One of these types, whose name has the stack.
    pub type_number: TypeNumber,
    /// All regions.
    pub all: Amount,
    /// Bytes that lived when the program had most.
    pub bytes_at_peak: u64,
    /// Not removed at the end of the trace.
    pub leaked: Amount,
    /// Removed by their thread before it added another region.
    pub short_lived: Amount,
    /// Never read.
    pub unread: Amount,
    /// Never written.
    pub unwritten: Amount,
}

impl StackLife {
    /// The regions of one type alone.
    pub fn of_type(found: &Lifetimes, type_number: TypeNumber, one: &TypeLife) -> Self {
        Self {
            name: found.table.name(type_number).to_owned(),
            type_number,
            all: Amount { regions: one.regions, bytes: one.bytes },
            bytes_at_peak: one.bytes_at_peak,
            leaked: Amount { regions: one.leaked, bytes: one.leaked_bytes },
            short_lived: one.short_lived,
            unread: one.unread,
            unwritten: one.unwritten,
        }
    }

    fn add(&mut self, other: &Self) {
        self.all.add(other.all);
        self.leaked.add(other.leaked);
        self.short_lived.add(other.short_lived);
        self.unread.add(other.unread);
        self.unwritten.add(other.unwritten);
        self.bytes_at_peak = self.bytes_at_peak.saturating_add(other.bytes_at_peak);
    }

    /// Most leaked bytes first, then most bytes at the peak.
    pub fn sort(all: &mut [Self]) {
        all.sort_by(|a, b| b.weight().cmp(&a.weight()).then_with(|| a.name.cmp(&b.name)));
    }

    fn weight(&self) -> [u64; 4] {
        [self.leaked.bytes, self.leaked.regions, self.bytes_at_peak, self.all.bytes]
    }
}

/// The stack in the name of a type, without remarks; the name of a type that is not named after one.
pub fn stack_name(name: &str) -> &str {
    SiteName::of(name.as_bytes()).and_then(|site| name.get(..site.places.len())).unwrap_or(name)
}

/// Adds up the types of each stack: what `malloc`, `calloc` and `realloc` return to one place has different names.
/// Those with most leaked bytes come first, then those with most bytes at the peak.
pub fn by_stack(found: &Lifetimes) -> Vec<StackLife> {
    let mut stacks: BTreeMap<&str, StackLife> = BTreeMap::new();
    for (number, one) in (0..).zip(&found.types).filter(|(_, one)| one.regions > 0) {
        let key = stack_name(found.table.name(number));
        let own = StackLife { name: key.to_owned(), ..StackLife::of_type(found, number, one) };
        match stacks.get_mut(key) {
            Some(stack) => stack.add(&own),
            None => drop(stacks.insert(key, own)),
        }
    }
    let mut all: Vec<StackLife> = stacks.into_values().collect();
    StackLife::sort(&mut all);
    all
}
