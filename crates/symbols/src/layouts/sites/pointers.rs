//! From types to others: what pointers point to, and the types of members.

use gimli::{AttributeValue, DwTag, constants as d};

use super::super::index::{Index, Place, attribute, has_flag};
use super::scopes::{children, template_arguments};

/// Most names and qualifiers passed.
const STEPS_MAX: usize = 32;

/// What a type is, beyond its names and qualifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A struct, class or union.
    Record(Place),
    /// `void`, or nothing.
    Void,
    /// A number, a pointer, an array, …
    Other,
}

/// The entry behind typedefs, qualifiers and references.
pub(super) fn stripped(index: &Index<'_>, place: Place) -> Option<Place> {
    let mut at = place;
    for _ in 0..STEPS_MAX {
        let unit = index.unit(at.unit)?;
        let entry = unit.entry(at.offset).ok()?;
        if let Some(AttributeValue::DebugTypesRef(signature)) = attribute(&entry.attrs, d::DW_AT_signature) {
            at = index.signed(signature).filter(|own| *own != at)?;
            continue;
        }
        if has_flag(&entry.attrs, d::DW_AT_declaration) {
            return index.definition_of(at).or(Some(at));
        }
        let passes = matches!(
            entry.tag(),
            d::DW_TAG_typedef
                | d::DW_TAG_const_type
                | d::DW_TAG_volatile_type
                | d::DW_TAG_restrict_type
                | d::DW_TAG_atomic_type
                | d::DW_TAG_reference_type
                | d::DW_TAG_rvalue_reference_type
        );
        if !passes {
            return Some(at);
        }
        at = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| index.place(at, value))?;
    }
    None
}

fn tag(index: &Index<'_>, place: Place) -> Option<DwTag> {
    Some(index.unit(place.unit)?.entry(place.offset).ok()?.tag())
}

fn is_record_tag(tag: DwTag) -> bool {
    matches!(tag, d::DW_TAG_structure_type | d::DW_TAG_class_type | d::DW_TAG_union_type)
}

/// What a type is.
pub(super) fn shape(index: &Index<'_>, place: Place) -> Shape {
    let Some(at) = stripped(index, place) else { return Shape::Void };
    match tag(index, at) {
        Some(tag) if is_record_tag(tag) => Shape::Record(at),
        Some(_) => Shape::Other,
        None => Shape::Void,
    }
}

/// The type of a member, by its name; those of anonymous members and bases included.
pub(super) fn member(index: &Index<'_>, record: Place, wanted: &str, depth: usize) -> Option<Place> {
    let members = children(index, record, d::DW_TAG_member);
    if let Some((_, found)) = members.iter().find(|(name, _)| name == wanted) {
        return Some(*found);
    }
    let inner = members.iter().filter(|(name, _)| name.is_empty()).map(|(_, place)| *place);
    let bases = children(index, record, d::DW_TAG_inheritance);
    let bases = bases.iter().map(|(_, place)| *place);
    let deeper = depth.checked_sub(1)?;
    inner.chain(bases).find_map(|place| member(index, stripped(index, place)?, wanted, deeper))
}

/// What a pointer, an array or a container points to, as declared: `None` for anything else.
pub(super) fn target(index: &Index<'_>, place: Place) -> Option<Pointed> {
    let at = stripped(index, place)?;
    let unit = index.unit(at.unit)?;
    let entry = unit.entry(at.offset).ok()?;
    match entry.tag() {
        d::DW_TAG_pointer_type | d::DW_TAG_array_type => {
            let to = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| index.place(at, value));
            Some(to.map_or(Pointed::Nothing, Pointed::To))
        }
        tag if is_record_tag(tag) => {
            let name = attribute(&entry.attrs, d::DW_AT_name)?;
            let name = index.dwarf.attr_string(&unit, name).ok()?.to_string_lossy().into_owned();
            let is_owner =
                ["unique_ptr<", "scoped_ptr<", "vector<", "valarray<"].iter().any(|one| name.starts_with(one));
            let (_, first) = template_arguments(index, at).into_iter().next().filter(|_| is_owner)?;
            // `unique_ptr<T[]>` owns elements.
            let element = stripped(index, first).filter(|at| tag_is_array(index, *at)).and_then(|at| target(index, at));
            Some(element.unwrap_or(Pointed::To(first)))
        }
        _ => None,
    }
}

fn tag_is_array(index: &Index<'_>, place: Place) -> bool {
    tag(index, place) == Some(d::DW_TAG_array_type)
}

/// What a pointer points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointed {
    /// `void`.
    Nothing,
    /// The type at this place.
    To(Place),
}
