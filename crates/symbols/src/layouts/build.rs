//! Builds one type, from its entry and those it refers to.

use anytrace_core::layout::{Bits, Dimension, Field, Layout, NESTING_MAX, RecordKind, Role};
use gimli::{Attribute, AttributeValue, DebuggingInformationEntry, DwTag, Reader as _, RunTimeEndian, constants as d};

use super::index::{Index, Place, attribute, has_flag};
use super::sections::Bytes;
use super::spelling::type_name;

/// Most steps from a name to the type it refers to.
const CHAIN_MAX: u32 = 64;

/// Most entries read for one layout: in a crafted file everything may be part of everything.
const ENTRIES_MAX: u32 = 1 << 18;

/// A size that is not known yet.
const UNKNOWN: u64 = u64::MAX;

type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;
type Attributes<'a> = [Attribute<Bytes<'a>>];

/// The layout of a type; `None` where the entry is not a type or only a declaration.
pub(super) fn layout(index: &Index<'_>, place: Place, name: &str) -> Option<Layout> {
    let mut builder = Builder { index, layout: Layout::new(name, RecordKind::Scalar, 0), entries_left: ENTRIES_MAX };
    let form = builder.form(Some(place))?;
    let bytes = form.total_bytes();
    if bytes == UNKNOWN {
        return None;
    }
    builder.layout.bytes = bytes;
    match form.record {
        Some((record, kind)) if form.dimensions.is_empty() => {
            builder.layout.kind = kind;
            let around = Around { parent: None, depth: 0, offset: 0, dimensions: Vec::new() };
            builder.members(record, &around);
        }
        _ => {
            if !form.dimensions.is_empty() {
                let around = Around { parent: None, depth: 0, offset: 0, dimensions: Vec::new() };
                builder.field(&around, Member::plain(String::new(), type_name(index, form.element)), &form);
            }
        }
    }
    builder.settle();
    Some(builder.layout)
}

/// The layout of an element of a variable, which is an array or a single one.
pub(super) fn variable(index: &Index<'_>, place: Place) -> Option<Layout> {
    let mut builder = Builder { index, layout: Layout::new("", RecordKind::Scalar, 0), entries_left: ENTRIES_MAX };
    let element = builder.form(Some(declared(index, place)?))?.element;
    layout(index, element?, &type_name(index, element))
}

/// The type that a variable is declared with.
pub(super) fn declared(index: &Index<'_>, place: Place) -> Option<Place> {
    let entry = index.unit(place.unit)?.entry(place.offset).ok()?;
    // A definition outside its class or namespace says only which declaration it is of.
    let declaration = || {
        let declaration = attribute(&entry.attrs, d::DW_AT_specification)?;
        index.unit(place.unit)?.entry(index.place(place, declaration)?.offset).ok()
    };
    let own = attribute(&entry.attrs, d::DW_AT_type);
    let value = own.or_else(|| attribute(&declaration()?.attrs, d::DW_AT_type))?;
    index.place(place, value)
}

struct Builder<'i, 'a> {
    index: &'i Index<'a>,
    layout: Layout,
    entries_left: u32,
}

/// A type after names and qualifiers are resolved.
struct Form {
    /// Of one element.
    bytes: u64,
    dimensions: Vec<Dimension>,
    /// Where its members are, for records.
    record: Option<(Place, RecordKind)>,
    /// The first entry below arrays: it names an element.
    element: Option<Place>,
}

impl Form {
    fn total_bytes(&self) -> u64 {
        match self.dimensions.first() {
            _ if self.bytes == UNKNOWN => UNKNOWN,
            Some(outer) => outer.stride_bytes.saturating_mul(outer.count),
            None => self.bytes,
        }
    }
}

/// What contains a member.
#[derive(Clone)]
struct Around {
    parent: Option<usize>,
    depth: u16,
    offset: u64,
    dimensions: Vec<Dimension>,
}

/// A member as declared.
struct Member {
    name: String,
    type_name: String,
    offset: u64,
    bits: Option<(u64, u64)>,
    role: Role,
}

impl Member {
    fn plain(name: String, type_name: String) -> Self {
        Self { name, type_name, offset: 0, bits: None, role: Role::Member }
    }
}

impl<'a> Builder<'_, 'a> {
    fn entry(&mut self, place: Place) -> Option<Entry<'a>> {
        self.entries_left = self.entries_left.checked_sub(1)?;
        let unit = self.index.unit(place.unit)?;
        unit.entry(place.offset).ok()
    }

    /// Follows names, qualifiers and arrays to the type in memory.
    fn form(&mut self, place: Option<Place>) -> Option<Form> {
        let mut counts = Vec::new();
        let (mut at, mut element) = (place?, place);
        for _ in 0..CHAIN_MAX {
            let entry = self.entry(at)?;
            if let Some(definition) = self.definition(at, &entry) {
                at = definition;
                continue;
            }
            let size = attribute(&entry.attrs, d::DW_AT_byte_size).and_then(|value| value.udata_value());
            let tag = entry.tag();
            let (bytes, record) = match tag {
                d::DW_TAG_typedef
                | d::DW_TAG_const_type
                | d::DW_TAG_volatile_type
                | d::DW_TAG_restrict_type
                | d::DW_TAG_atomic_type
                | d::DW_TAG_immutable_type => {
                    at = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| self.index.place(at, value))?;
                    continue;
                }
                d::DW_TAG_array_type => {
                    counts.extend(self.counts(at));
                    at = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| self.index.place(at, value))?;
                    element = Some(at);
                    continue;
                }
                d::DW_TAG_structure_type | d::DW_TAG_class_type | d::DW_TAG_union_type | d::DW_TAG_interface_type => {
                    let is_declared = has_flag(&entry.attrs, d::DW_AT_declaration);
                    (if is_declared { UNKNOWN } else { size.unwrap_or(0) }, Some((at, kind_of(tag))))
                }
                d::DW_TAG_enumeration_type if size.is_none() => {
                    // C++ enums may give their size by the underlying type.
                    at = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| self.index.place(at, value))?;
                    continue;
                }
                _ => (size.unwrap_or_else(|| self.usual_bytes(tag, at)), None),
            };
            return Some(Form { bytes, dimensions: dimensions(bytes, &counts), record, element });
        }
        None
    }

    /// The size of a type without a size in debug data.
    fn usual_bytes(&mut self, tag: DwTag, at: Place) -> u64 {
        let pointer = self.index.unit(at.unit).map_or(8, |unit| u64::from(unit.encoding().address_size));
        match tag {
            d::DW_TAG_pointer_type
            | d::DW_TAG_reference_type
            | d::DW_TAG_rvalue_reference_type
            | d::DW_TAG_unspecified_type => pointer,
            d::DW_TAG_ptr_to_member_type => {
                let target = self.entry(at).and_then(|entry| attribute(&entry.attrs, d::DW_AT_type));
                let target = target.and_then(|value| self.index.place(at, value)).and_then(|place| self.entry(place));
                let is_function = target.is_some_and(|entry| entry.tag() == d::DW_TAG_subroutine_type);
                // As the Itanium C++ ABI has them (section 2.3).
                if is_function { pointer * 2 } else { pointer }
            }
            _ => UNKNOWN,
        }
    }

    /// Where a type that is only declared here is defined.
    fn definition(&self, at: Place, entry: &Entry<'a>) -> Option<Place> {
        if let Some(AttributeValue::DebugTypesRef(signature)) = attribute(&entry.attrs, d::DW_AT_signature) {
            return self.index.signed(signature).filter(|place| *place != at);
        }
        let is_declared = has_flag(&entry.attrs, d::DW_AT_declaration);
        is_declared.then(|| self.index.definition_of(at)).flatten()
    }

    /// How many of each dimension, the outermost first; 0 where the end is open.
    fn counts(&mut self, array: Place) -> Vec<u64> {
        let mut counts = Vec::new();
        self.children(array, |_, child| {
            if child.entry.tag() == d::DW_TAG_subrange_type || child.entry.tag() == d::DW_TAG_generic_subrange {
                let number = |name| attribute(&child.entry.attrs, name).and_then(|value| value.udata_value());
                let upper = || attribute(&child.entry.attrs, d::DW_AT_upper_bound).and_then(signed);
                let lower = attribute(&child.entry.attrs, d::DW_AT_lower_bound).and_then(signed).unwrap_or(0);
                let count = number(d::DW_AT_count).or_else(|| {
                    let count = upper()?.checked_sub(lower)?.checked_add(1)?;
                    u64::try_from(count).ok()
                });
                // Longer arrays are impossible: such a bound is not known before the program runs.
                counts.push(count.filter(|count| *count < 1 << 48).unwrap_or(0));
            }
            true
        });
        if counts.is_empty() { vec![0] } else { counts }
    }

    /// Passes each direct child to `visit`, with the variant that contains it.
    fn children(&mut self, place: Place, mut visit: impl FnMut(&mut Self, Child<'_, 'a>) -> bool) -> Option<()> {
        let unit = self.index.unit(place.unit)?;
        let mut entries = unit.entries_raw(Some(place.offset)).ok()?;
        let mut entry = DebuggingInformationEntry::null();
        let mut is_first = true;
        let (mut in_part, mut in_variant) = (false, false);
        while !entries.is_empty() {
            self.entries_left = self.entries_left.checked_sub(1)?;
            let depth = entries.next_depth();
            if depth <= 0 && !is_first {
                break;
            }
            if !entries.read_entry(&mut entry).ok()? {
                continue;
            }
            if std::mem::replace(&mut is_first, false) {
                if !entry.has_children() {
                    break;
                }
                continue;
            }
            match depth {
                1 => in_part = entry.tag() == d::DW_TAG_variant_part,
                2 => in_variant = entry.tag() == d::DW_TAG_variant,
                _ => {}
            }
            let role = match depth {
                1 => Role::Member,
                2 if in_part => Role::Tag,
                3 if in_part && in_variant => Role::Variant,
                _ => continue,
            };
            let child_place = Place { offset: entry.offset(), ..place };
            if !visit(self, Child { entry: &entry, place: child_place, role }) {
                break;
            }
        }
        Some(())
    }

    /// Adds the members of a record.
    fn members(&mut self, record: Place, around: &Around) {
        let is_complete = self.children(record, |builder, child| {
            match child.entry.tag() {
                d::DW_TAG_member => builder.member(&child, around),
                d::DW_TAG_inheritance => builder.base(&child, around),
                d::DW_TAG_variant_part if around.parent.is_none() => builder.layout.kind = RecordKind::Variants,
                _ => {}
            }
            !builder.layout.is_cut
        });
        if is_complete.is_none() {
            self.layout.is_cut = true;
        }
    }

    fn member(&mut self, child: &Child<'_, 'a>, around: &Around) {
        let attributes = &child.entry.attrs;
        // Static members are not in objects.
        if has_flag(attributes, d::DW_AT_external) || has_flag(attributes, d::DW_AT_declaration) {
            return;
        }
        let type_place = attribute(attributes, d::DW_AT_type).and_then(|value| self.index.place(child.place, value));
        let Some(mut form) = self.form(type_place) else { return };
        if child.role == Role::Variant && form.record.is_some_and(|(record, _)| self.is_without_data(record, 0)) {
            // Only the tag states that it is present: its bytes belong to others.
            form.bytes = 0;
        }
        let name = self.name(child).unwrap_or_default();
        let is_artificial = has_flag(attributes, d::DW_AT_artificial);
        let role = match child.role {
            Role::Member if name.starts_with("_vptr") => Role::Vptr,
            role => role,
        };
        let name = match role {
            Role::Tag if name.is_empty() || is_artificial => "<tag>".to_owned(),
            _ => shown_name(&name),
        };
        let Some((offset, bits)) = self.position(child, &form) else { return };
        let type_name = type_name(self.index, form.element);
        self.field(around, Member { name, type_name, offset, bits, role }, &form);
    }

    fn name(&self, child: &Child<'_, 'a>) -> Option<String> {
        let value = attribute(&child.entry.attrs, d::DW_AT_name)?;
        let unit = self.index.unit(child.place.unit)?;
        Some(self.index.dwarf.attr_string(&unit, value).ok()?.to_string_lossy().into_owned())
    }

    fn base(&mut self, child: &Child<'_, 'a>, around: &Around) {
        let attributes = &child.entry.attrs;
        let type_place = attribute(attributes, d::DW_AT_type).and_then(|value| self.index.place(child.place, value));
        let name = type_name(self.index, type_place);
        let virtuality = attribute(attributes, d::DW_AT_virtuality);
        let is_virtual = matches!(virtuality, Some(AttributeValue::Virtuality(d::DW_VIRTUALITY_virtual)));
        let Some(mut form) = self.form(type_place) else { return };
        let offset = byte_offset(attributes);
        match offset {
            Some(offset) if !is_virtual => {
                // A class without data takes no room as a base.
                if form.record.is_some_and(|(record, _)| self.is_without_data(record, 0)) {
                    form.bytes = 0;
                }
                self.field(
                    around,
                    Member { name: name.clone(), type_name: name, offset, bits: None, role: Role::Base },
                    &form,
                );
            }
            _ => {
                if !self.layout.virtual_bases.contains(&name) && self.layout.virtual_bases.len() < 64 {
                    self.layout.virtual_bases.push(name);
                }
            }
        }
    }

    /// True for a class without members, as far as its bases have none either.
    fn is_without_data(&mut self, record: Place, depth: u16) -> bool {
        let mut has_data = depth > NESTING_MAX;
        self.children(record, |builder, child| {
            let attributes = &child.entry.attrs;
            let is_static = has_flag(attributes, d::DW_AT_external) || has_flag(attributes, d::DW_AT_declaration);
            has_data |= match child.entry.tag() {
                d::DW_TAG_member => !is_static,
                d::DW_TAG_inheritance => {
                    let base = attribute(attributes, d::DW_AT_type);
                    let base = base.and_then(|value| builder.index.place(child.place, value));
                    let record = builder.form(base).and_then(|form| form.record);
                    record.is_none_or(|(record, _)| !builder.is_without_data(record, depth + 1))
                }
                _ => false,
            };
            !has_data
        });
        !has_data
    }

    /// Offset of a member in its record, and for bit fields the first bit from there and how many.
    fn position(&self, child: &Child<'_, 'a>, form: &Form) -> Option<(u64, Option<(u64, u64)>)> {
        let attributes: &Attributes<'a> = &child.entry.attrs;
        let number = |name| attribute(attributes, name).and_then(|value| value.udata_value());
        let offset = byte_offset(attributes);
        let bit_count = number(d::DW_AT_bit_size);
        if let Some(first) = number(d::DW_AT_data_bit_offset) {
            let bits = bit_count.map(|count| (first % 8, count));
            return Some((first / 8, bits));
        }
        let offset = offset.unwrap_or(0);
        let (Some(count), Some(from_top)) = (bit_count, attribute(attributes, d::DW_AT_bit_offset).and_then(signed))
        else {
            return Some((offset, bit_count.map(|count| (0, count))));
        };
        // The old form counts from the most significant bit of a storage unit.
        let unit_bytes = number(d::DW_AT_byte_size).unwrap_or(form.bytes);
        let first = if self.is_big_endian() {
            i128::from(offset) * 8 + from_top
        } else {
            i128::from(offset) * 8 + i128::from(unit_bytes) * 8 - from_top - i128::from(count)
        };
        let first = u64::try_from(first).ok()?;
        Some((first / 8, Some((first % 8, count))))
    }

    fn is_big_endian(&self) -> bool {
        self.index.endian == RunTimeEndian::Big
    }

    /// Adds a field and its members.
    fn field(&mut self, around: &Around, member: Member, form: &Form) {
        let offset = around.offset.saturating_add(member.offset);
        let mut dimensions = around.dimensions.clone();
        dimensions.extend(&form.dimensions);
        let bits =
            member.bits.map(|(first, count)| Bits { first: offset.saturating_mul(8).saturating_add(first), count });
        let bytes = member.bits.map_or(form.bytes, |(first, count)| first.saturating_add(count).div_ceil(8));
        let field = Field {
            name: member.name,
            parent: around.parent,
            depth: around.depth,
            offset_bytes: offset,
            bytes,
            bits,
            type_name: member.type_name,
            dimensions: dimensions.clone(),
            own_dimensions: form.dimensions.len(),
            role: member.role,
            is_leaf: true,
        };
        let Some(number) = self.layout.push(field) else { return };
        if let Some((record, _)) = form.record.filter(|_| bits.is_none() && bytes != 0) {
            let inside = Around { parent: Some(number), depth: around.depth.saturating_add(1), offset, dimensions };
            self.members(record, &inside);
        }
    }

    /// Gives members of unknown size the room up to the next.
    fn settle(&mut self) {
        let unknown: Vec<usize> =
            self.layout.leaves().filter(|(_, field)| field.bytes == UNKNOWN).map(|(n, _)| n).collect();
        for number in unknown {
            let Some(start) = self.layout.fields.get(number).map(|field| field.offset_bytes) else { continue };
            let offsets = self.layout.fields.iter().map(|field| field.offset_bytes).filter(|offset| *offset > start);
            let end = offsets.min().unwrap_or(self.layout.bytes);
            if let Some(field) = self.layout.fields.get_mut(number) {
                field.bytes = end.saturating_sub(start);
                field.dimensions.clear();
                field.own_dimensions = 0;
            }
        }
    }
}

/// An entry below another.
struct Child<'e, 'a> {
    entry: &'e Entry<'a>,
    place: Place,
    role: Role,
}

fn kind_of(tag: DwTag) -> RecordKind {
    match tag {
        d::DW_TAG_union_type => RecordKind::Union,
        d::DW_TAG_class_type => RecordKind::Class,
        _ => RecordKind::Struct,
    }
}

/// Rust numbers the fields of tuples `__0`, programs write `.0`.
fn shown_name(name: &str) -> String {
    let digits =
        name.strip_prefix("__").filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    digits.unwrap_or(name).to_owned()
}

/// The dimensions of an array with this many elements and bytes.
fn dimensions(bytes: u64, counts: &[u64]) -> Vec<Dimension> {
    let mut stride = if bytes == UNKNOWN { 0 } else { bytes };
    let mut dimensions = Vec::with_capacity(counts.len());
    for count in counts.iter().rev() {
        dimensions.push(Dimension { stride_bytes: stride, count: *count });
        stride = stride.saturating_mul(*count);
    }
    dimensions.reverse();
    dimensions
}

/// A number that may be below 0, such as the upper bound of an array without elements.
fn signed(value: AttributeValue<Bytes<'_>>) -> Option<i128> {
    match value {
        AttributeValue::Data1(number) => Some(i128::from(number)),
        AttributeValue::Data2(number) => Some(i128::from(number)),
        AttributeValue::Data4(number) => Some(i128::from(number)),
        AttributeValue::Data8(number) => Some(i128::from(number.cast_signed())),
        AttributeValue::Udata(number) => Some(i128::from(number)),
        AttributeValue::Sdata(number) => Some(i128::from(number)),
        _ => None,
    }
}

/// `DW_AT_data_member_location`; older compilers write it as an expression.
fn byte_offset(attributes: &Attributes<'_>) -> Option<u64> {
    match attribute(attributes, d::DW_AT_data_member_location)? {
        AttributeValue::Exprloc(expression) => {
            let mut bytes = expression.0;
            let operation = bytes.read_u8().ok()?;
            (operation == d::DW_OP_plus_uconst.0).then(|| bytes.read_uleb128().ok()).flatten()
        }
        value => value.udata_value(),
    }
}
