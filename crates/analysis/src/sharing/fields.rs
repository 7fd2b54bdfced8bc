//! Which field of which type an access touches: the words the result is told in.

use std::collections::HashMap;

use anytrace_core::Error;
use anytrace_core::access::{Access, RegionAdded, RegionRemoved, TypeNumber};

use crate::live_regions::LiveRegions;

/// Most fields told apart; further ones share one.
const FIELDS_MAX: usize = 1 << 20;

/// Number of a field.
pub(super) type FieldId = u32;

/// What says how types lie in memory, where a program's debug data are at hand.
pub trait FieldNames {
    /// Bytes of an element of a type, where the trace says `recorded`: `malloc` records all elements as one.
    fn element_bytes(&mut self, type_name: &[u8], recorded: u64) -> u64;

    /// What stands at these bytes of an element, whose size was asked for before; `None` where that is not known.
    fn field(&mut self, type_name: &[u8], element_bytes: u64, offset: u64, bytes: u64) -> Option<String>;
}

/// A field of a type, or bytes where no type is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Field {
    /// `None` for memory without a type.
    pub(super) type_number: Option<TypeNumber>,
    /// From the start of the element; the address where there is no type.
    pub(super) offset: u64,
    pub(super) bytes: u16,
    /// Bytes of an element.
    pub(super) element_bytes: u64,
}

/// Who touched what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) core: u32,
    pub(super) field: FieldId,
    /// Where the element begins: two fields are of one instance when this is the same.
    pub(super) instance: u64,
    pub(super) is_atomic: bool,
    pub(super) is_straddling: bool,
}

/// All fields met, and what lives where.
#[derive(Default)]
pub(super) struct Fields<'a> {
    live: LiveRegions,
    ids: HashMap<Field, FieldId>,
    list: Vec<Field>,
    /// Names of types; `None` for those beyond the limit.
    types: Vec<Option<Box<[u8]>>>,
    names: Option<&'a mut dyn FieldNames>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(names: Option<&'a mut dyn FieldNames>) -> Self {
        Self { names, ..Self::default() }
    }

    pub(super) fn add_type(&mut self, name: Option<&[u8]>) {
        self.types.push(name.map(Into::into));
    }

    pub(super) fn add(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.live.add(region).map(|_| ())
    }

    pub(super) fn remove(&mut self, region: &RegionRemoved) {
        self.live.remove(region);
    }

    /// What an access touches now.
    pub(super) fn touch(&mut self, access: &Access, core: u32, is_atomic: bool, is_straddling: bool) -> Touch {
        let found = self.live.find(access.thread, access.address).copied();
        let (field, instance) = match found {
            None => {
                let (offset, bytes) = (access.address, access.bytes);
                (Field { type_number: None, offset, bytes, element_bytes: 0 }, 0)
            }
            Some(region) => {
                let number = region.type_number;
                let name = self.types.get(number as usize).and_then(Option::as_deref);
                let known = self.names.as_mut().zip(name);
                let recorded = region.element_bytes;
                let element_bytes = known.map_or(recorded, |(names, name)| names.element_bytes(name, recorded)).max(1);
                let offset = access.address.wrapping_sub(region.start) % element_bytes;
                let field = Field { type_number: Some(number), offset, bytes: access.bytes, element_bytes };
                (field, access.address.wrapping_sub(offset))
            }
        };
        Touch { core, field: self.id(field), instance, is_atomic, is_straddling }
    }

    fn id(&mut self, field: Field) -> FieldId {
        if let Some(id) = self.ids.get(&field) {
            return *id;
        }
        // The last of them stands for all that come later.
        let id = FieldId::try_from(self.list.len().min(FIELDS_MAX)).expect("the limit fits 32 bits");
        if self.list.len() <= FIELDS_MAX {
            self.list.push(field);
            self.ids.insert(field, id);
        }
        id
    }

    /// What a field is called, and its type.
    pub(super) fn side(&mut self, id: FieldId) -> FieldName {
        let Some(field) = self.list.get(id as usize).copied().filter(|_| (id as usize) < FIELDS_MAX) else {
            return FieldName { type_name: None, offset: 0, bytes: 0, element_bytes: 0, name: None };
        };
        let Some(number) = field.type_number else {
            let Field { offset, bytes, .. } = field;
            return FieldName { type_name: None, offset, bytes, element_bytes: 0, name: None };
        };
        let raw = self.types.get(number as usize).and_then(Option::as_deref);
        let name = self.names.as_mut().zip(raw).and_then(|(names, raw)| {
            names.field(raw, field.element_bytes, field.offset, u64::from(field.bytes)).filter(|name| !name.is_empty())
        });
        let type_name = raw.map_or_else(|| "(other types)".to_owned(), |raw| String::from_utf8_lossy(raw).into_owned());
        FieldName {
            type_name: Some(type_name),
            offset: field.offset,
            bytes: field.bytes,
            element_bytes: field.element_bytes,
            name,
        }
    }
}

/// A field, in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldName {
    /// The type's name as the trace has it; `None` for memory without a type.
    pub type_name: Option<String>,
    /// From the start of the element; the address where there is no type.
    pub offset: u64,
    /// Bytes accessed.
    pub bytes: u16,
    /// Bytes of an element; 0 where there is no type.
    pub element_bytes: u64,
    /// The field's name, where debug data say it.
    pub name: Option<String>,
}

impl std::fmt::Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { type_name, offset, bytes, name, .. } = self;
        match (type_name, name) {
            (None, _) if *bytes == 0 => f.write_str("(others)"),
            (None, _) => write!(f, "{offset:#x}+{bytes}"),
            (Some(type_name), Some(name)) => write!(f, "{type_name} {name}"),
            (Some(type_name), None) => write!(f, "{type_name} {offset}+{bytes}"),
        }
    }
}
