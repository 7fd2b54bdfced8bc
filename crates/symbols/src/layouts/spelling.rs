//! How the types of members are written.

use gimli::{AttributeValue, constants as d};

use super::index::{Index, Place, attribute};

/// Most entries passed for one name.
const STEPS_MAX: u32 = 16;

/// A type's name as it would be declared: `Node*`, `unsigned int`, `const char*`.
pub(super) fn type_name(index: &Index<'_>, place: Option<Place>) -> String {
    let mut suffix = String::new();
    let mut place = place;
    for _ in 0..STEPS_MAX {
        let Some(at) = place else { return format!("void{suffix}") };
        let Some(unit) = index.unit(at.unit) else { break };
        let Ok(entry) = unit.entry(at.offset) else { break };
        // In a unit of its own: this entry only states which.
        if let Some(AttributeValue::DebugTypesRef(signature)) = attribute(&entry.attrs, d::DW_AT_signature)
            && let Some(own) = index.signed(signature).filter(|own| *own != at)
        {
            place = Some(own);
            continue;
        }
        let name = attribute(&entry.attrs, d::DW_AT_name)
            .and_then(|value| index.dwarf.attr_string(&unit, value).ok())
            .map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return format!("{name}{suffix}");
        }
        let mark = match entry.tag() {
            d::DW_TAG_pointer_type => "*",
            d::DW_TAG_reference_type => "&",
            d::DW_TAG_rvalue_reference_type => "&&",
            d::DW_TAG_array_type => "[]",
            d::DW_TAG_const_type | d::DW_TAG_volatile_type | d::DW_TAG_restrict_type | d::DW_TAG_atomic_type => "",
            d::DW_TAG_subroutine_type => return format!("function{suffix}"),
            d::DW_TAG_ptr_to_member_type => return format!("pointer to member{suffix}"),
            d::DW_TAG_union_type => return format!("union{suffix}"),
            d::DW_TAG_class_type => return format!("class{suffix}"),
            d::DW_TAG_structure_type => return format!("struct{suffix}"),
            d::DW_TAG_enumeration_type => return format!("enum{suffix}"),
            _ => break,
        };
        suffix.insert_str(0, mark);
        place = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| index.place(at, value));
    }
    format!("?{suffix}")
}
