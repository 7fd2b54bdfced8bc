//! Which field of which type an access touches: the words the result is told in.

use std::collections::HashMap;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessFlags, RegionAdded, RegionRemoved, TypeNumber};
use anytrace_core::layout::Layouts;

use crate::elements::TypeTable;
use crate::live_regions::LiveRegions;

/// Most fields told apart; further ones share one.
const FIELDS_MAX: usize = 1 << 20;

/// Number of a field.
pub(super) type FieldId = u32;

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

/// What an access touches, before it has a number: most of memory is never shared, and numbers are for what is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    field: Field,
    instance: u64,
    is_atomic: bool,
    is_straddling: bool,
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
    layouts: Option<&'a mut dyn Layouts>,
    /// What the layouts say of the types met.
    table: TypeTable,
}

impl<'a> Fields<'a> {
    pub(super) fn new(layouts: Option<&'a mut dyn Layouts>) -> Self {
        Self { layouts, ..Self::default() }
    }

    pub(super) fn add_type(&mut self, name: Option<&[u8]>) {
        self.table.push(name);
        self.types.push(name.map(Into::into));
    }

    pub(super) fn add(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let region = match &mut self.layouts {
            Some(layouts) => self.table.with_elements(region, &mut **layouts),
            None => *region,
        };
        self.live.add(&region).map(|_| ())
    }

    pub(super) fn remove(&mut self, region: &RegionRemoved) {
        self.live.remove(region);
    }

    /// What an access touches now.
    pub(super) fn look(&mut self, access: &Access, is_straddling: bool) -> Seen {
        let is_atomic = access.flags.has(AccessFlags::ATOMIC);
        let (offset, bytes) = (access.address, access.bytes);
        let Some(region) = self.live.find(access.thread, access.address) else {
            let field = Field { type_number: None, offset, bytes, element_bytes: 0 };
            return Seen { field, instance: 0, is_atomic, is_straddling };
        };
        let offset = region.offset_in_element(access.address);
        let (type_number, element_bytes) = (Some(region.type_number), region.element_bytes);
        let instance = access.address.wrapping_sub(offset);
        Seen { field: Field { type_number, offset, bytes, element_bytes }, instance, is_atomic, is_straddling }
    }

    /// What was seen, as something that others compare with.
    pub(super) fn touch(&mut self, seen: &Seen, core: u32) -> Touch {
        let Seen { field, instance, is_atomic, is_straddling } = *seen;
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
        let unknown =
            FieldName { type_name: None, offset: 0, bytes: 0, element_bytes: 0, name: None, field_type: None };
        let Some(field) = self.list.get(id as usize).copied().filter(|_| (id as usize) < FIELDS_MAX) else {
            return unknown;
        };
        let Field { offset, bytes, element_bytes, .. } = field;
        let Some(number) = field.type_number else { return FieldName { offset, bytes, ..unknown } };
        let raw = self.types.get(number as usize).and_then(Option::as_deref);
        let type_name = raw.map_or_else(|| "(other types)".to_owned(), |raw| String::from_utf8_lossy(raw).into_owned());
        // Elements have the size that the layout said, so that it is found again where types share a name.
        let layout =
            self.layouts.as_mut().filter(|_| raw.is_some()).and_then(|all| all.layout(&type_name, element_bytes));
        let name = layout.as_ref().map(|layout| layout.describe(offset, u64::from(bytes)));
        let field_type = layout.as_ref().and_then(|layout| match layout.hits(offset, u64::from(bytes)).as_slice() {
            [only] => layout.fields.get(only.field).map(|field| field.type_name.clone()),
            _ => None,
        });
        FieldName {
            type_name: Some(type_name),
            offset,
            bytes,
            element_bytes,
            name: name.filter(|name| !name.is_empty()),
            field_type,
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
    /// The field's name, where type data say it: `a`, `pos.x`, `pad[3]`; several where the access touches several.
    pub name: Option<String>,
    /// The field's type, where type data say it and the access touches one field.
    pub field_type: Option<String>,
}

impl std::fmt::Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { type_name, offset, bytes, name, .. } = self;
        match (type_name, name) {
            (None, _) if *bytes == 0 => f.write_str("(others)"),
            (None, _) => write!(f, "{offset:#x}+{bytes}"),
            // What is no field, as padding.
            (Some(type_name), Some(name)) if name.starts_with('(') => {
                write!(f, "{type_name} {name} {offset}+{bytes}")
            }
            (Some(type_name), Some(name)) => write!(f, "{type_name}.{name} {offset}+{bytes}"),
            (Some(type_name), None) => write!(f, "{type_name} {offset}+{bytes}"),
        }
    }
}
