//! The field of a type that each access is to; determined once for all configurations.

use anytrace_core::Error;
use anytrace_core::access::{Access, RegionAdded, RegionRemoved, TypeNumber};

use super::fields::{Fields, Key, UNTYPED};
use super::results::{Field, Tally, TypeResults, Types};
use crate::grain::Grain;
use crate::live_regions::{LiveRegions, Located};

/// Bits of an address inside a page, which takes the place of a region where there is none.
const PAGE_BITS: u32 = 12;

/// The live regions and the fields found.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    regions: LiveRegions,
    fields: Fields,
    names: Vec<Option<Vec<u8>>>,
    /// Bytes of an element of each type, the largest seen.
    element_bytes: Vec<u64>,
    grains: Vec<Grain>,
    to_removed: u64,
    /// Memory that look-ups use again.
    numbers: Vec<u32>,
}

impl Attribution {
    pub(super) fn type_name(&mut self, name: Option<&[u8]>) {
        self.names.push(name.map(<[u8]>::to_vec));
        self.element_bytes.push(0);
        self.grains.push(Grain::of(name));
    }

    pub(super) fn fields_known(&mut self, number: TypeNumber) {
        if let Some(grain) = self.grains.get_mut(number as usize) {
            *grain = Grain::FIELDS;
        }
    }

    pub(super) fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if let Some(bytes) = self.element_bytes.get_mut(region.type_number as usize) {
            *bytes = region.element_bytes.max(*bytes);
        }
        self.regions.add(region).map(drop)
    }

    pub(super) fn region_removed(&mut self, region: &RegionRemoved) {
        self.regions.remove(region);
    }

    /// Appends the number of each access's field and, if wanted, its place: a region or a page.
    pub(super) fn attribute(&mut self, batch: &[Access], fields: &mut Vec<u32>, mut places: Option<&mut Vec<u64>>) {
        let Self { regions, fields: known, grains, to_removed, numbers, .. } = self;
        regions.locate_all(batch, numbers, |access, located| {
            let (number, place) = match located {
                Located::Region(region) if access.bytes > 0 => {
                    let offset = region.offset_in_element(access.address);
                    let grain = grains.get(region.type_number as usize).copied().unwrap_or(Grain::FIELDS);
                    let (offset, bytes) = grain.place(offset, access.bytes, region.element_bytes);
                    let key = Key { offset, type_number: region.type_number, bytes };
                    (known.counted(key, access.is_write()), region.id << 1 | 1)
                }
                located => {
                    if access.bytes > 0 {
                        *to_removed += u64::from(located == Located::Removed);
                        known.count_untyped(access.is_write());
                    }
                    (UNTYPED, access.address >> PAGE_BITS << 1)
                }
            };
            fields.push(number);
            if let Some(places) = &mut places {
                places.push(place);
            }
        });
    }

    /// The results, with the accesses to each field that a configuration did not serve in its first level.
    pub(super) fn types(&self, beyond: &dyn Fn(u32) -> Vec<u64>) -> Types {
        let tally = |number, [reads, writes]: [u64; 2]| Tally { reads, writes, served_beyond_first: beyond(number) };
        let blank = |(name, bytes): (&Option<Vec<u8>>, &u64)| TypeResults {
            name: name.clone(),
            element_bytes: *bytes,
            ..TypeResults::default()
        };
        let mut types: Vec<_> = self.names.iter().zip(&self.element_bytes).map(blank).collect();
        for (number, key, counts) in self.fields.iter() {
            let Some(of) = types.get_mut(key.type_number as usize) else { continue };
            let tally = tally(number, counts);
            of.total.add(&tally);
            let field: Field = (key.offset, key.bytes);
            of.fields.insert(field, tally);
        }
        types.retain(|of| of.total.accesses() > 0);
        Types { types, untyped: tally(UNTYPED, self.fields.untyped()), to_removed_regions: self.to_removed }
    }
}
