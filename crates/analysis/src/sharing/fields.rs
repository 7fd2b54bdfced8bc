//! The field and type that an access touches: the terms in which results are reported.

use std::collections::HashMap;
use std::num::NonZeroU32;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessFlags, RegionAdded, RegionRemoved, TypeNumber};
use anytrace_core::layout::Layouts;

use crate::elements::TypeTable;
use crate::live_regions::LiveRegions;

/// Most fields counted separately; further ones share one.
const FIELDS_MAX: usize = 1 << 20;

/// Most kinds counted separately; further ones share one.
const KINDS_MAX: usize = 1 << 20;

/// Kinds found without looking them up: a power of two.
const RECENT_KINDS: usize = 1 << 6;

/// Number of a field.
pub(super) type FieldId = u32;

/// A field of a type, or bytes of an unknown type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Field {
    kind: AccessClass,
    /// From the start of the element; the address where there is no type.
    offset: u64,
}

/// The common part of accesses to a type with this many bytes. There are few, whatever memory is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct AccessClass {
    /// `None` for memory without a type.
    type_number: Option<TypeNumber>,
    bytes: u16,
    /// Bytes of an element.
    element_bytes: u64,
}

/// A core and the field it touched. Each line keeps several, so they are small, and fields get no numbers until they
/// have a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    /// Start of the element: two fields are of one instance when this is the same. 0 where there is no type.
    pub(super) instance: u64,
    /// From the start of the element; the address where there is no type.
    offset: u64,
    pub(super) core: u32,
    /// Number of the kind, in the upper bits, and flags; never 0.
    what: NonZeroU32,
}

// Lines are many: see the figures in `lines`.
const _: () = assert!(size_of::<Option<Touch>>() == 24);

impl Touch {
    const ATOMIC: u32 = 1;
    const STRADDLING: u32 = 2;
    /// Makes the number no 0.
    const IS_THERE: u32 = 4;
    const KIND_SHIFT: u32 = 3;

    /// A core only, without a field.
    pub(super) fn of_core(core: u32) -> Self {
        Self { instance: 0, offset: 0, core, what: NonZeroU32::new(Self::IS_THERE).expect("it is not 0") }
    }

    /// In three numbers, of which the last is never 0 in its lower half.
    pub(super) fn packed(self) -> [u64; 3] {
        [self.instance, self.offset, u64::from(self.core) << 32 | u64::from(self.what.get())]
    }

    /// The packed value; `None` for anything else.
    pub(super) fn unpacked([instance, offset, rest]: [u64; 3]) -> Option<Self> {
        // The two halves, as they were packed.
        let what = NonZeroU32::new(rest as u32)?;
        Some(Self { instance, offset, core: (rest >> 32) as u32, what })
    }

    fn kind(&self) -> u32 {
        self.what.get() >> Self::KIND_SHIFT
    }

    pub(super) fn is_atomic(&self) -> bool {
        self.what.get() & Self::ATOMIC != 0
    }

    pub(super) fn is_straddling(&self) -> bool {
        self.what.get() & Self::STRADDLING != 0
    }
}

/// All fields found, and the live regions.
pub(super) struct Fields<'a> {
    live: LiveRegions,
    kind_ids: HashMap<AccessClass, u32>,
    kinds: Vec<AccessClass>,
    /// Kinds touched lately, and their numbers.
    recent: [Option<(AccessClass, u32)>; RECENT_KINDS],
    ids: HashMap<Field, FieldId>,
    list: Vec<Field>,
    /// Names of types; `None` for those beyond the limit.
    types: Vec<Option<Box<[u8]>>>,
    layouts: Option<&'a mut dyn Layouts>,
    /// The layouts of the types found.
    table: TypeTable,
    /// True where only counts are asked for: then nothing has a name.
    is_nameless: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(layouts: Option<&'a mut dyn Layouts>) -> Self {
        Self {
            live: LiveRegions::default(),
            kind_ids: HashMap::new(),
            kinds: Vec::new(),
            recent: [None; RECENT_KINDS],
            ids: HashMap::new(),
            list: Vec::new(),
            types: Vec::new(),
            layouts,
            table: TypeTable::default(),
            is_nameless: false,
        }
    }

    /// Without names, which take most of the time.
    pub(super) fn nameless() -> Self {
        Self { is_nameless: true, ..Self::new(None) }
    }

    pub(super) fn add_type(&mut self, name: Option<&[u8]>) {
        self.table.push(name);
        self.types.push(name.map(Into::into));
    }

    pub(super) fn add(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if self.is_nameless {
            return Ok(());
        }
        let region = match &mut self.layouts {
            Some(layouts) => self.table.with_elements(region, &mut **layouts),
            None => *region,
        };
        self.live.add(&region).map(|_| ())
    }

    pub(super) fn remove(&mut self, region: &RegionRemoved) {
        if self.is_nameless {
            return;
        }
        self.live.remove(region);
    }

    /// What an access touches now.
    pub(super) fn touch(&mut self, access: &Access, core: u32, is_straddling: bool) -> Touch {
        if self.is_nameless {
            return Touch::of_core(core);
        }
        let bytes = access.bytes;
        let (kind, instance, offset) = match self.live.find(access.thread, access.address) {
            None => (AccessClass { type_number: None, bytes, element_bytes: 0 }, 0, access.address),
            Some(region) => {
                let offset = region.offset_in_element(access.address);
                let (type_number, element_bytes) = (Some(region.type_number), region.element_bytes);
                (AccessClass { type_number, bytes, element_bytes }, access.address.wrapping_sub(offset), offset)
            }
        };
        let atomic = if access.flags.has(AccessFlags::ATOMIC) { Touch::ATOMIC } else { 0 };
        let straddling = if is_straddling { Touch::STRADDLING } else { 0 };
        let what = self.kind_id(kind) << Touch::KIND_SHIFT | Touch::IS_THERE | straddling | atomic;
        Touch { instance, offset, core, what: NonZeroU32::new(what).expect("one of the bits is always set") }
    }

    fn kind_id(&mut self, kind: AccessClass) -> u32 {
        let home = (kind.type_number.unwrap_or(0) as usize).wrapping_mul(11) ^ usize::from(kind.bytes);
        let recent = self.recent.get_mut(home % RECENT_KINDS);
        if let Some(Some((known, id))) = &recent
            && *known == kind
        {
            return *id;
        }
        let next = u32::try_from(self.kinds.len()).expect("the limit fits 32 bits");
        let id = match self.kind_ids.get(&kind) {
            Some(id) => *id,
            // This number represents all later ones; no entry of the list has it.
            None if self.kinds.len() >= KINDS_MAX => return next,
            None => {
                self.kinds.push(kind);
                self.kind_ids.insert(kind, next);
                next
            }
        };
        if let Some(recent) = recent {
            *recent = Some((kind, id));
        }
        id
    }

    /// The number of the field that was touched.
    pub(super) fn id(&mut self, touch: &Touch) -> FieldId {
        // Represents all fields beyond the limits; no entry of the list has it.
        const OTHERS: FieldId = FIELDS_MAX as FieldId;
        let Some(kind) = self.kinds.get(touch.kind() as usize) else { return OTHERS };
        let field = Field { kind: *kind, offset: touch.offset };
        if let Some(id) = self.ids.get(&field) {
            return *id;
        }
        if self.list.len() >= FIELDS_MAX {
            return OTHERS;
        }
        let id = FieldId::try_from(self.list.len()).expect("the limit fits 32 bits");
        self.list.push(field);
        self.ids.insert(field, id);
        id
    }

    /// The name of a field and its type.
    pub(super) fn side(&mut self, id: FieldId) -> FieldName {
        let unknown =
            FieldName { type_name: None, offset: 0, bytes: 0, element_bytes: 0, name: None, field_type: None };
        let Some(Field { kind, offset }) = self.list.get(id as usize).copied() else { return unknown };
        let AccessClass { type_number, bytes, element_bytes } = kind;
        let Some(number) = type_number else { return FieldName { offset, bytes, ..unknown } };
        let raw = self.types.get(number as usize).and_then(Option::as_deref);
        let type_name = raw.map_or_else(|| "(other types)".to_owned(), |raw| String::from_utf8_lossy(raw).into_owned());
        // Elements have the size in the layout, so that the layout is found again where types share a name.
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

/// A field, as text.
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
    /// The field's name, if type data contain it: `a`, `pos.x`, `pad[3]`; several where the access touches several.
    pub name: Option<String>,
    /// The field's type, if type data contain it and the access touches one field.
    pub field_type: Option<String>,
}

impl std::fmt::Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { type_name, offset, bytes, name, .. } = self;
        match (type_name, name) {
            (None, _) if *bytes == 0 => f.write_str("(others)"),
            (None, _) => write!(f, "{offset:#x}+{bytes}"),
            // Not a field, for example padding.
            (Some(type_name), Some(name)) if name.starts_with('(') => {
                write!(f, "{type_name} {name} {offset}+{bytes}")
            }
            (Some(type_name), Some(name)) => write!(f, "{type_name}.{name} {offset}+{bytes}"),
            (Some(type_name), None) => write!(f, "{type_name} {offset}+{bytes}"),
        }
    }
}
