//! The functions at an address, inlined ones included, with the variables that are visible there.

use gimli::{Attribute, AttributeValue, DebuggingInformationEntry, DwTag, constants as d};

use super::super::index::{Index, Place, Unit, attribute, has_flag};
use super::super::sections::Bytes;
use super::rows::{Line, file_name};

/// Most entries passed for one address.
const ENTRIES_MAX: usize = 1 << 18;

/// Most steps from an entry to what it is an instance of.
const ORIGINS_MAX: usize = 4;

/// Most variables of one address.
const VARIABLES_MAX: usize = 4096;

/// Deepest nesting of blocks and inlined functions.
const SCOPES_MAX: usize = 256;

type Attributes<'a> = [Attribute<Bytes<'a>>];

/// A range of addresses that a function has.
#[derive(Debug, Clone, Copy)]
struct Code {
    begin: u64,
    end: u64,
    place: Place,
}

/// The functions of a file that have code, by address.
#[derive(Debug, Default)]
pub(super) struct Functions(Vec<Code>);

/// A function at an address.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// The name that is known best: demangled, with enclosing scopes and arguments, or the plain one.
    pub(super) name: String,
    /// What it returns; `None` for nothing, and where that is unknown.
    pub(super) returns: Option<Place>,
    /// The arguments of its template.
    pub(super) arguments: Vec<(String, Place)>,
    /// Parameters and variables, the innermost block first.
    pub(super) variables: Vec<Variable>,
    /// The place of the instruction, or of the call that was inlined.
    pub(super) line: Option<Line>,
}

/// A parameter or a variable.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) declared: Place,
    /// Where it is declared, from 1; 0 where that is unknown.
    pub(super) line: u32,
    pub(super) is_parameter: bool,
}

impl Functions {
    /// Lists them, as far as debug data can be read.
    pub(super) fn new(index: &Index<'_>) -> Self {
        let mut found = Vec::new();
        // Valid functions share no ranges, so all together are shorter than the bytes that encode them.
        let mut ranges_left = index.info_bytes().saturating_add(1 << 16);
        for number in 0..index.unit_count() {
            list(index, number, &mut found, &mut ranges_left);
        }
        found.sort_by_key(|code| (code.begin, code.end));
        Self(found)
    }

    /// The function at an address.
    pub(super) fn at(&self, address: u64) -> Option<Place> {
        let after = self.0.partition_point(|code| code.begin <= address);
        let code = self.0.get(after.checked_sub(1)?)?;
        (address < code.end).then_some(code.place)
    }
}

fn list(index: &Index<'_>, number: u32, found: &mut Vec<Code>, ranges_left: &mut usize) -> Option<()> {
    let unit = index.unit(number)?;
    let mut entries = unit.entries_raw(None).ok()?;
    let mut entry = DebuggingInformationEntry::null();
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
        if abbreviation.tag() != d::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            continue;
        }
        entries.read_attributes(abbreviation.attributes(), &mut entry.attrs).ok()?;
        let place = Place { unit: number, offset };
        for (begin, end) in ranges(index, &unit, &entry.attrs, ranges_left) {
            if begin > 0 && begin < end {
                found.push(Code { begin, end, place });
            }
        }
    }
    Some(())
}

/// The addresses of an entry.
fn ranges<'a>(index: &Index<'a>, unit: &Unit<'a>, attributes: &Attributes<'a>, left: &mut usize) -> Vec<(u64, u64)> {
    let address = |value| index.dwarf.attr_address(unit, value).ok().flatten();
    if let (Some(low), Some(high)) =
        (attribute(attributes, d::DW_AT_low_pc).and_then(address), attribute(attributes, d::DW_AT_high_pc))
    {
        let end = high.udata_value().and_then(|bytes| low.checked_add(bytes)).or_else(|| address(high));
        return end.map(|end| (low, end)).into_iter().collect();
    }
    let Some(value) = attribute(attributes, d::DW_AT_ranges) else { return Vec::new() };
    let Ok(Some(mut list)) = index.dwarf.attr_ranges(unit, value) else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(Some(range)) = list.next() {
        let Some(rest) = left.checked_sub(1) else { break };
        *left = rest;
        found.push((range.begin, range.end));
    }
    found
}

/// The functions at an address in a function's code, the innermost inlined one first. Empty where debug data are damaged.
pub(super) fn scopes(index: &Index<'_>, function: Place, address: u64, line: Option<Line>) -> Vec<Scope> {
    let mut walk = Walk { index, address, scopes: Vec::new(), open: Vec::new(), ranges_left: ENTRIES_MAX };
    if walk.through(function).is_none() {
        return Vec::new();
    }
    let mut scopes = walk.scopes;
    // The innermost has the instruction, each other one the call of the one inside it.
    let mut inner = line;
    scopes.reverse();
    for scope in &mut scopes {
        std::mem::swap(&mut scope.line, &mut inner);
    }
    scopes
}

struct Walk<'i, 'a> {
    index: &'i Index<'a>,
    address: u64,
    /// The outermost first; `line` is where each was called.
    scopes: Vec<Scope>,
    /// Depth of each block and function that has the address, with the number of its function.
    open: Vec<(isize, usize)>,
    ranges_left: usize,
}

impl<'a> Walk<'_, 'a> {
    fn through(&mut self, function: Place) -> Option<()> {
        let unit = self.index.unit(function.unit)?;
        let mut entries = unit.entries_raw(Some(function.offset)).ok()?;
        let mut entry = DebuggingInformationEntry::null();
        let mut skipped: Option<isize> = None;
        for count in 0..ENTRIES_MAX {
            if entries.is_empty() {
                break;
            }
            let depth = entries.next_depth();
            if count > 0 && depth <= 0 {
                break;
            }
            if !entries.read_entry(&mut entry).ok()? {
                continue;
            }
            if skipped.is_some_and(|skipped| depth > skipped) {
                continue;
            }
            skipped = None;
            while self.open.pop_if(|(open, _)| *open >= depth).is_some() {}
            let place = Place { unit: function.unit, offset: entry.offset() };
            if !self.enter(&unit, &entry, place, depth) {
                skipped = Some(depth);
            }
        }
        Some(())
    }

    /// False for what does not have the address.
    fn enter(
        &mut self,
        unit: &Unit<'a>,
        entry: &DebuggingInformationEntry<Bytes<'a>>,
        place: Place,
        depth: isize,
    ) -> bool {
        let tag = entry.tag();
        let attributes = &entry.attrs;
        match tag {
            d::DW_TAG_subprogram if depth == 0 => self.open(unit, attributes, place, depth),
            d::DW_TAG_inlined_subroutine if self.has_address(unit, attributes) => {
                self.open(unit, attributes, place, depth)
            }
            d::DW_TAG_lexical_block if self.has_address(unit, attributes) => {
                let Some((_, function)) = self.open.last().copied() else { return false };
                self.open.push((depth, function));
                self.open.len() <= SCOPES_MAX
            }
            d::DW_TAG_variable | d::DW_TAG_formal_parameter => {
                self.variable(attributes, place, tag);
                false
            }
            _ => false,
        }
    }

    /// Blocks without addresses are taken to have all of what is around them.
    fn has_address(&mut self, unit: &Unit<'a>, attributes: &Attributes<'a>) -> bool {
        let has_any = [d::DW_AT_low_pc, d::DW_AT_ranges].iter().any(|name| attribute(attributes, *name).is_some());
        let ranges = ranges(self.index, unit, attributes, &mut self.ranges_left);
        !has_any || ranges.iter().any(|(begin, end)| (*begin..*end).contains(&self.address))
    }

    fn open(&mut self, unit: &Unit<'a>, attributes: &Attributes<'a>, place: Place, depth: isize) -> bool {
        if self.scopes.len() >= SCOPES_MAX || self.open.len() >= SCOPES_MAX {
            return false;
        }
        let number = |name| attribute(attributes, name).and_then(|value| value.udata_value());
        let called = || {
            let file = file_index(attribute(attributes, d::DW_AT_call_file)?)?;
            let line = u32::try_from(number(d::DW_AT_call_line)?).ok()?;
            Some((file_name(self.index, unit, file)?, line))
        };
        let line = called();
        let mut scope = described(self.index, place, attributes);
        scope.line = line;
        self.open.push((depth, self.scopes.len()));
        self.scopes.push(scope);
        true
    }

    fn variable(&mut self, attributes: &Attributes<'a>, place: Place, tag: DwTag) -> Option<()> {
        let (_, function) = *self.open.last()?;
        let origin = Origins::of(self.index, place, attributes);
        let name = origin.text(self.index, d::DW_AT_name)?;
        let declared = origin.place(self.index, d::DW_AT_type)?;
        let line = origin.number(d::DW_AT_decl_line).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let variables = &mut self.scopes.get_mut(function)?.variables;
        if variables.len() < VARIABLES_MAX {
            // Inner blocks come later, and hide what is outside.
            variables.insert(0, Variable { name, declared, line, is_parameter: tag == d::DW_TAG_formal_parameter });
        }
        Some(())
    }
}

/// Compilers write numbers of files in several forms.
fn file_index(value: AttributeValue<Bytes<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(number) => Some(number),
        other => other.udata_value(),
    }
}

/// An entry, and those that it is an instance of.
struct Origins<'a>(Vec<(Place, Vec<Attribute<Bytes<'a>>>)>);

impl<'a> Origins<'a> {
    fn of(index: &Index<'a>, place: Place, attributes: &Attributes<'a>) -> Self {
        let mut all = vec![(place, attributes.to_vec())];
        for _ in 0..ORIGINS_MAX {
            let next = all.last().and_then(|(place, attributes)| {
                let value = attribute(attributes, d::DW_AT_abstract_origin)
                    .or_else(|| attribute(attributes, d::DW_AT_specification))?;
                index.place(*place, value)
            });
            let Some(next) = next else { break };
            let Some(entry) = index.unit(next.unit).and_then(|unit| unit.entry(next.offset).ok()) else { break };
            all.push((next, entry.attrs));
        }
        Self(all)
    }

    fn value(&self, name: gimli::DwAt) -> Option<(Place, AttributeValue<Bytes<'a>>)> {
        self.0.iter().find_map(|(place, attributes)| Some((*place, attribute(attributes, name)?)))
    }

    fn text(&self, index: &Index<'a>, name: gimli::DwAt) -> Option<String> {
        let (place, value) = self.value(name)?;
        let unit = index.unit(place.unit)?;
        Some(index.dwarf.attr_string(&unit, value).ok()?.to_string_lossy().into_owned())
    }

    fn place(&self, index: &Index<'a>, name: gimli::DwAt) -> Option<Place> {
        let (place, value) = self.value(name)?;
        index.place(place, value)
    }

    fn number(&self, name: gimli::DwAt) -> Option<u64> {
        self.value(name).and_then(|(_, value)| value.udata_value())
    }
}

fn described<'a>(index: &Index<'a>, place: Place, attributes: &Attributes<'a>) -> Scope {
    let origins = Origins::of(index, place, attributes);
    let linkage = origins.text(index, d::DW_AT_linkage_name);
    let linkage = linkage.map(|name| crate::demangle(&name, anytrace_core::span::Mangling::Demangled).into_owned());
    let name = linkage.or_else(|| origins.text(index, d::DW_AT_name)).unwrap_or_default();
    let returns = origins.place(index, d::DW_AT_type);
    let arguments = origins.0.iter().map(|(place, _)| template_arguments(index, *place));
    let arguments = arguments.into_iter().find(|arguments| !arguments.is_empty()).unwrap_or_default();
    Scope { name, returns, arguments, variables: Vec::new(), line: None }
}

/// The types that a template is an instance for, by the names of its parameters.
pub(super) fn template_arguments(index: &Index<'_>, place: Place) -> Vec<(String, Place)> {
    children(index, place, d::DW_TAG_template_type_parameter)
}

/// The direct children of a kind that have a type: their names, and those types.
pub(super) fn children(index: &Index<'_>, parent: Place, tag: DwTag) -> Vec<(String, Place)> {
    let mut found = Vec::new();
    let _ = each_child(index, parent, |place, entry| {
        if entry.tag() == tag
            && let Some(declared) = attribute(&entry.attrs, d::DW_AT_type).and_then(|value| index.place(place, value))
            && !has_flag(&entry.attrs, d::DW_AT_external)
        {
            let name = Origins(vec![(place, entry.attrs.clone())]).text(index, d::DW_AT_name);
            found.push((name.unwrap_or_default(), declared));
        }
    });
    found
}

fn each_child<'a>(
    index: &Index<'a>,
    parent: Place,
    mut visit: impl FnMut(Place, &DebuggingInformationEntry<Bytes<'a>>),
) -> Option<()> {
    let unit = index.unit(parent.unit)?;
    let mut entries = unit.entries_raw(Some(parent.offset)).ok()?;
    let mut entry = DebuggingInformationEntry::null();
    for count in 0..ENTRIES_MAX {
        if entries.is_empty() {
            break;
        }
        let depth = entries.next_depth();
        if count > 0 && depth <= 0 {
            break;
        }
        if !entries.read_entry(&mut entry).ok()? || count == 0 {
            if count == 0 && !entry.has_children() {
                break;
            }
            continue;
        }
        if depth == 1 {
            visit(Place { unit: parent.unit, offset: entry.offset() }, &entry);
        }
    }
    Some(())
}
