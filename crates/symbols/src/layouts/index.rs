//! The names of all types of a file, and where each is defined.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::layout::canonical_name;
use anytrace_core::span::Mangling;
use gimli::{
    Abbreviations, AttributeValue, DebugTypeSignature, DwAt, DwTag, UnitHeader, UnitOffset, UnitType, constants as d,
};

use super::find::short_names;
use super::sections::{Bytes, Dwarf, TypeSections};
use crate::demangle;
use crate::object_file::failed;

pub(super) type Unit<'a> = gimli::Unit<Bytes<'a>>;

/// Longest name of a type; longer ones are not listed.
const NAME_MAX: usize = 1 << 14;

/// Most definitions of one name and size that are compared.
const SAME_MAX: usize = 8;

/// Most definitions of one name of different sizes.
const DEFINITIONS_MAX: usize = 64;

/// Units kept in memory.
const UNITS_MAX: usize = 256;

/// The place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Number of the unit.
    pub(super) unit: u32,
    /// In the unit.
    pub(super) offset: UnitOffset<usize>,
}

/// How well an entry matches a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Record,
    Plain,
    Alias,
}

#[derive(Debug, Clone, Copy)]
struct Definition {
    rank: Rank,
    bytes: u64,
    place: Place,
}

/// The list.
pub(super) struct Index<'a> {
    pub(super) name: &'a str,
    pub(super) dwarf: Dwarf<'a>,
    pub(super) endian: gimli::RunTimeEndian,
    sections: &'a TypeSections<'a>,
    headers: Vec<UnitHeader<Bytes<'a>>>,
    /// Where tables of abbreviations begin, ascending: each is read only up to the next, so that a table shared by
    /// units is read once.
    tables: Vec<usize>,
    abbreviations: RefCell<HashMap<usize, Arc<Abbreviations>>>,
    units: RefCell<HashMap<u32, Rc<Unit<'a>>>>,
    by_name: HashMap<Box<str>, Vec<Definition>>,
    /// Names without template arguments, as compilers have them in their own tables, and without enclosing scopes.
    by_short_name: HashMap<Box<str>, Vec<Box<str>>>,
    /// Variables that have a place in memory, by name with enclosing scopes, except functions.
    variables: HashMap<Box<str>, Vec<Place>>,
    /// Entries that only declare a type or a variable, with its name.
    declarations: HashMap<Place, Box<str>>,
    signatures: HashMap<u64, Place>,
    name_bytes_left: usize,
    work_left: usize,
}

impl<'a> Index<'a> {
    pub(super) fn new(sections: &'a TypeSections<'a>, notes: &mut Vec<String>) -> Result<Self, Error> {
        let mut index = Self {
            name: sections.name,
            dwarf: sections.dwarf(),
            endian: sections.endian,
            sections,
            headers: Vec::new(),
            tables: Vec::new(),
            abbreviations: RefCell::default(),
            units: RefCell::default(),
            by_name: HashMap::new(),
            by_short_name: HashMap::new(),
            variables: HashMap::new(),
            declarations: HashMap::new(),
            signatures: HashMap::new(),
            name_bytes_left: sections.info_bytes.saturating_mul(4).saturating_add(1 << 20),
            work_left: sections.info_bytes.saturating_mul(64).saturating_add(64 << 20),
        };
        index.list_units()?;
        let damaged = (0..index.headers.len()).filter(|&number| index.list_types(number).is_err()).count();
        if damaged > 0 {
            notes.push(format!("{}: debug data of {damaged} units are damaged: some types may be missing", index.name));
        }
        if index.name_bytes_left == 0 {
            notes.push(format!("{}: type names exceed the limit in total: some are missing", index.name));
        }
        Ok(index)
    }

    fn list_units(&mut self) -> Result<(), Error> {
        let failed = |what: gimli::Error| failed(self.name, "debug data", what);
        let mut infos = self.dwarf.units();
        while let Some(header) = infos.next().map_err(failed)? {
            self.headers.push(header);
        }
        let mut types = self.dwarf.type_units();
        while let Some(header) = types.next().map_err(failed)? {
            self.headers.push(header);
        }
        self.tables = self.headers.iter().map(|header| header.debug_abbrev_offset().0).collect();
        self.tables.sort_unstable();
        self.tables.dedup();
        for (number, header) in (0_u32..).zip(&self.headers) {
            if let UnitType::Type { type_signature, type_offset }
            | UnitType::SplitType { type_signature, type_offset } = header.type_()
            {
                self.signatures.insert(type_signature.0, Place { unit: number, offset: type_offset });
            }
        }
        Ok(())
    }

    /// A unit, from memory or read again.
    pub(super) fn unit(&self, number: u32) -> Option<Rc<Unit<'a>>> {
        if let Some(unit) = self.units.borrow().get(&number) {
            return Some(Rc::clone(unit));
        }
        let header = *self.headers.get(number as usize)?;
        let abbreviations = self.abbreviations(&header)?;
        let unit = Rc::new(Unit::new_with_abbreviations(&self.dwarf, header, abbreviations).ok()?);
        let mut units = self.units.borrow_mut();
        if units.len() >= UNITS_MAX {
            units.clear();
        }
        units.insert(number, Rc::clone(&unit));
        Some(unit)
    }

    fn abbreviations(&self, header: &UnitHeader<Bytes<'a>>) -> Option<Arc<Abbreviations>> {
        let start = header.debug_abbrev_offset().0;
        if let Some(known) = self.abbreviations.borrow().get(&start) {
            return Some(Arc::clone(known));
        }
        let next = self.tables.partition_point(|table| *table <= start);
        let end = self.tables.get(next).copied().unwrap_or(usize::MAX);
        let table = header.abbreviations(&self.sections.abbreviations(end)).ok()?;
        let table = Arc::new(table);
        self.abbreviations.borrow_mut().insert(start, Arc::clone(&table));
        Some(table)
    }

    fn list_types(&mut self, number: usize) -> Result<(), gimli::Error> {
        let Ok(unit_number) = u32::try_from(number) else { return Ok(()) };
        let Some(unit) = self.unit(unit_number) else { return Err(gimli::Error::MissingUnitDie) };
        // Names of enclosing scopes, each with its depth and the length of the path before it.
        let mut scopes: Vec<(isize, usize)> = Vec::new();
        let mut path = String::new();
        let mut entries = unit.entries_raw(None)?;
        let mut entry = gimli::DebuggingInformationEntry::null();
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while let Some((_, before)) = scopes.pop_if(|(scope, _)| *scope >= depth) {
                path.truncate(before);
            }
            let tag = abbreviation.tag();
            if !is_listed(tag) && !is_scope(tag) {
                entries.skip_attributes(abbreviation.attributes())?;
                if tag == d::DW_TAG_subprogram && abbreviation.has_children() {
                    // Compilers name types that are local to a function by their own name alone.
                    scopes.push((depth, path.len()));
                    local_scope(&mut path);
                }
                continue;
            }
            entries.read_attributes(abbreviation.attributes(), &mut entry.attrs)?;
            let place = Place { unit: unit_number, offset };
            let own = self.own_name(&unit, &entry.attrs, tag, place);
            let before = path.len();
            let start = path.rfind('\u{0}').map_or(0, |at| at + 1);
            match &own {
                Named::Own(own) | Named::Around(own) if path.len() + own.len() < NAME_MAX => {
                    if path.len() > start {
                        path.push_str("::");
                    }
                    path.push_str(own);
                }
                Named::Absolute(full) if path.len() + full.len() < NAME_MAX => {
                    path.push('\u{0}');
                    path.push_str(full);
                }
                _ => {}
            }
            let start = path.rfind('\u{0}').map_or(0, |at| at + 1);
            if path.len() > before && is_listed(tag) && !matches!(own, Named::Around(_)) {
                let full = path.get(start..).unwrap_or_default();
                self.list(full, tag, &entry.attrs, place);
            }
            if abbreviation.has_children() && path.len() > before {
                scopes.push((depth, before));
            } else {
                path.truncate(before);
            }
        }
        Ok(())
    }

    fn own_name(&self, unit: &Unit<'a>, attributes: &[gimli::Attribute<Bytes<'a>>], tag: DwTag, place: Place) -> Named {
        if let Some(AttributeValue::UnitRef(declared)) = attribute(attributes, d::DW_AT_specification) {
            // The declaration is in its namespace, the definition need not be.
            if let Some(name) = self.declarations.get(&Place { offset: declared, ..place }) {
                return Named::Absolute(name.to_string());
            }
            // Before DWARF 5 static members of a class are declared among its fields, which are not listed.
            if let Some(name) = attribute(attributes, d::DW_AT_linkage_name)
                && let Ok(name) = self.dwarf.attr_string(unit, name)
            {
                let name = name.to_string_lossy();
                return Named::Absolute(demangle(&name, Mangling::Demangled).into_owned());
            }
        }
        if let Some(name) = attribute(attributes, d::DW_AT_name) {
            return match self.dwarf.attr_string(unit, name) {
                Ok(name) if !name.is_empty() && name.len() < NAME_MAX => {
                    Named::Own(name.to_string_lossy().into_owned())
                }
                _ => Named::Not,
            };
        }
        if let Some(AttributeValue::DebugTypesRef(signature)) = attribute(attributes, d::DW_AT_signature) {
            return self.signed_name(signature).map_or(Named::Not, Named::Around);
        }
        if tag == d::DW_TAG_namespace { Named::Own("(anonymous namespace)".to_owned()) } else { Named::Not }
    }

    /// The own name of a type unit's type.
    fn signed_name(&self, signature: DebugTypeSignature) -> Option<String> {
        let place = self.signed(signature)?;
        let unit = self.unit(place.unit)?;
        let entry = unit.entry(place.offset).ok()?;
        let name = self.dwarf.attr_string(&unit, attribute(&entry.attrs, d::DW_AT_name)?).ok()?;
        (name.len() < NAME_MAX).then(|| name.to_string_lossy().into_owned())
    }

    fn list(&mut self, full: &str, tag: DwTag, attributes: &[gimli::Attribute<Bytes<'a>>], place: Place) {
        if full.is_empty() || self.name_bytes_left == 0 {
            return;
        }
        self.work_left = self.work_left.saturating_sub(full.len());
        if self.work_left == 0 {
            self.name_bytes_left = 0;
        }
        let name = canonical_name(full);
        if has_flag(attributes, d::DW_AT_declaration) {
            self.take_name_bytes(name.len());
            self.declarations.insert(place, name.into());
            return;
        }
        if tag == d::DW_TAG_variable {
            return self.list_variable(name, attributes, place);
        }
        let bytes = attribute(attributes, d::DW_AT_byte_size).and_then(|value| value.udata_value()).unwrap_or(0);
        let rank = match tag {
            d::DW_TAG_typedef => Rank::Alias,
            d::DW_TAG_base_type | d::DW_TAG_enumeration_type | d::DW_TAG_pointer_type => Rank::Plain,
            _ => Rank::Record,
        };
        let definition = Definition { rank, bytes, place };
        if let Some(known) = self.by_name.get_mut(name.as_str()) {
            let same = known.iter().filter(|other| other.bytes == bytes && other.rank == rank).count();
            if same < SAME_MAX && known.len() < DEFINITIONS_MAX {
                known.push(definition);
            }
            return;
        }
        if !self.take_name_bytes(name.len()) {
            return;
        }
        for short in short_names(&name) {
            let all = self.by_short_name.entry(short.into()).or_default();
            if all.len() < DEFINITIONS_MAX {
                all.push(name.as_str().into());
            }
        }
        self.by_name.insert(name.into(), vec![definition]);
    }

    fn list_variable(&mut self, name: String, attributes: &[gimli::Attribute<Bytes<'a>>], place: Place) {
        if !has_address(attributes) {
            return;
        }
        let is_known = self.variables.contains_key(name.as_str());
        if !is_known && !self.take_name_bytes(name.len()) {
            return;
        }
        let all = self.variables.entry(name.into()).or_default();
        if all.len() < DEFINITIONS_MAX {
            all.push(place);
        }
    }

    /// The variables of a name.
    pub(super) fn variables(&self, name: &str) -> &[Place] {
        self.variables.get(name).map_or(&[], Vec::as_slice)
    }

    fn take_name_bytes(&mut self, bytes: usize) -> bool {
        self.name_bytes_left = self.name_bytes_left.saturating_sub(bytes);
        self.name_bytes_left > 0
    }

    /// True when there are no types.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// Names of records and of what may be another name of one, ascending.
    pub(super) fn record_names(&self) -> Vec<&str> {
        let is_record = |definition: &Definition| definition.rank != Rank::Plain;
        let records = self.by_name.iter().filter(|(_, definitions)| definitions.iter().any(is_record));
        let mut names: Vec<&str> = records.map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names
    }

    /// The definitions of a name; only those of the best rank.
    pub(super) fn definitions(&self, name: &str) -> impl Iterator<Item = Place> {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let best = all.iter().map(|definition| definition.rank).min();
        all.iter().filter(move |definition| Some(definition.rank) == best).map(|definition| definition.place)
    }

    /// The full names that one without template arguments or enclosing scopes may mean.
    pub(super) fn full_names(&self, short: &str) -> impl Iterator<Item = &str> {
        self.by_short_name.get(short).into_iter().flatten().map(|name| &**name)
    }

    /// How many units there are.
    pub(super) fn unit_count(&self) -> u32 {
        u32::try_from(self.headers.len()).unwrap_or(u32::MAX)
    }

    /// Length of the sections that describe types, in bytes.
    pub(super) fn info_bytes(&self) -> usize {
        self.sections.info_bytes
    }

    /// The bytes of a pointer; `None` without units.
    pub(super) fn pointer_bytes(&self) -> Option<u64> {
        self.headers.first().map(|header| u64::from(header.address_size()))
    }

    /// The definition of a declared type.
    pub(super) fn definition_of(&self, declaration: Place) -> Option<Place> {
        let name = self.declarations.get(&declaration)?;
        let definitions = self.by_name.get(name)?;
        definitions.iter().find(|definition| definition.rank == Rank::Record).map(|definition| definition.place)
    }

    /// The type of a type unit.
    pub(super) fn signed(&self, signature: DebugTypeSignature) -> Option<Place> {
        self.signatures.get(&signature.0).copied()
    }

    /// The entry that an attribute in a unit refers to.
    pub(super) fn place(&self, from: Place, value: AttributeValue<Bytes<'a>>) -> Option<Place> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Place { unit: from.unit, offset }),
            AttributeValue::DebugTypesRef(signature) => self.signed(signature),
            AttributeValue::DebugInfoRef(at) => {
                let last = self
                    .headers
                    .partition_point(|header| header.debug_info_offset().is_some_and(|start| start.0 <= at.0));
                let unit = last.checked_sub(1)?;
                let offset = at.to_unit_offset(self.headers.get(unit)?)?;
                Some(Place { unit: u32::try_from(unit).ok()?, offset })
            }
            _ => None,
        }
    }
}

/// The name of an entry.
enum Named {
    /// Within its enclosing scopes.
    Own(String),
    /// The same, but it exists only for its contents.
    Around(String),
    /// By itself: it was declared elsewhere.
    Absolute(String),
    Not,
}

/// Names inside start a new path.
fn local_scope(path: &mut String) {
    path.push('\u{0}');
}

fn is_listed(tag: DwTag) -> bool {
    matches!(
        tag,
        d::DW_TAG_structure_type
            | d::DW_TAG_class_type
            | d::DW_TAG_union_type
            | d::DW_TAG_interface_type
            | d::DW_TAG_enumeration_type
            | d::DW_TAG_typedef
            | d::DW_TAG_base_type
            | d::DW_TAG_pointer_type
            | d::DW_TAG_variable
    )
}

/// True for a variable at an address of its own, which those on a stack have not.
fn has_address(attributes: &[gimli::Attribute<Bytes<'_>>]) -> bool {
    let Some(AttributeValue::Exprloc(expression)) = attribute(attributes, d::DW_AT_location) else { return false };
    expression.0.first().is_some_and(|operation| [d::DW_OP_addr.0, d::DW_OP_addrx.0].contains(operation))
}

fn is_scope(tag: DwTag) -> bool {
    matches!(tag, d::DW_TAG_namespace | d::DW_TAG_module)
}

/// The value of an attribute.
pub(super) fn attribute<'a>(
    attributes: &[gimli::Attribute<Bytes<'a>>],
    name: DwAt,
) -> Option<AttributeValue<Bytes<'a>>> {
    attributes.iter().find(|attribute| attribute.name() == name).map(|attribute| attribute.value())
}

/// True for a flag that is set.
pub(super) fn has_flag(attributes: &[gimli::Attribute<Bytes<'_>>], name: DwAt) -> bool {
    matches!(attribute(attributes, name), Some(AttributeValue::Flag(true)))
}
