//! Regions with elements as in type data: a region that a trace records as one element of all bytes becomes an array.
//!
//! An adapter in front of any engine that attributes accesses to offsets in elements.

use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;
use anytrace_core::layout::{Layout, Layouts};

/// Names of types and their layouts, by number.
#[derive(Debug, Default)]
pub struct TypeTable {
    types: Vec<NamedType>,
    by_size: Map<(TypeNumber, u64), Option<Arc<Layout>>>,
}

/// A type of the trace.
#[derive(Debug, Clone)]
pub struct NamedType {
    /// The name in the trace; `None` represents all types beyond the limit.
    pub name: Option<String>,
    /// The layout in the type data, for the first region that they describe.
    pub layout: Option<Arc<Layout>>,
}

impl TypeTable {
    /// Takes the next type.
    pub fn push(&mut self, name: Option<&[u8]>) {
        let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
        self.types.push(NamedType { name, layout: None });
    }

    /// The types, by number.
    pub fn types(&self) -> &[NamedType] {
        &self.types
    }

    /// The name of a type.
    pub fn name(&self, number: TypeNumber) -> &str {
        let named = self.types.get(number as usize).and_then(|one| one.name.as_deref());
        named.unwrap_or("(other types)")
    }

    /// The layout of a type, if known.
    pub fn layout(&self, number: TypeNumber) -> Option<&Arc<Layout>> {
        self.types.get(number as usize)?.layout.as_ref()
    }

    /// True for a type with known fields.
    pub(crate) fn has_fields(&self, number: TypeNumber) -> bool {
        self.layout(number).is_some_and(|layout| !layout.fields.is_empty())
    }

    /// Removes the layouts of types that differ from the type data.
    pub fn forget_layouts(&mut self, is_changed: impl Fn(&str) -> bool) {
        for one in &mut self.types {
            if one.name.as_deref().is_some_and(&is_changed) {
                one.layout = None;
            }
        }
    }

    /// The region with elements as its type has them.
    pub fn with_elements(&mut self, region: &RegionAdded, layouts: &mut dyn Layouts) -> RegionAdded {
        let Some(found) = self.resolve(region, layouts) else { return *region };
        let bytes = found.element_bytes(region.element_bytes);
        let each = region.element_bytes.checked_div(bytes).unwrap_or(1);
        RegionAdded { element_bytes: bytes, elements: region.elements.saturating_mul(each), ..*region }
    }

    fn resolve(&mut self, region: &RegionAdded, layouts: &mut dyn Layouts) -> Option<Arc<Layout>> {
        /// Sizes remembered: programs allocate arrays of any length.
        const SIZES_MAX: usize = 1 << 16;
        let key = (region.type_number, region.element_bytes);
        if let Some(known) = self.by_size.get(&key) {
            return known.clone();
        }
        let named = self.types.get_mut(region.type_number as usize)?;
        let found = named.name.as_deref().and_then(|name| layouts.layout(name, region.element_bytes));
        // A type may have regions of several sizes; the first layout found names the fields.
        if named.layout.is_none() {
            named.layout.clone_from(&found);
        }
        // Beyond the limit a size is resolved again each time: slower, but the same answer.
        if self.by_size.len() < SIZES_MAX {
            self.by_size.insert(key, found.clone());
        }
        found
    }
}

/// The adaptor.
pub struct Elements<'a> {
    layouts: &'a mut dyn Layouts,
    inner: &'a mut dyn AccessSink,
    table: TypeTable,
}

impl<'a> Elements<'a> {
    /// Passes everything on to `inner`.
    pub fn new(layouts: &'a mut dyn Layouts, inner: &'a mut dyn AccessSink) -> Self {
        Self { layouts, inner, table: TypeTable::default() }
    }

    /// The types that were announced.
    pub fn into_table(self) -> TypeTable {
        self.table
    }
}

impl AccessSink for Elements<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.inner.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.table.push(name);
        self.inner.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let had_fields = self.table.has_fields(region.type_number);
        let region = self.table.with_elements(region, self.layouts);
        if !had_fields && self.table.has_fields(region.type_number) {
            self.inner.fields_known(region.type_number)?;
        }
        self.inner.region_added(&region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.inner.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        self.inner.accesses(batch)
    }
}
