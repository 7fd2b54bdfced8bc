//! Changes that could keep threads from taking lines from each other. Only proposals: see [`super::trial`].

use std::collections::BTreeMap;

use super::fields::FieldName;
use super::pairs::Pair;
use crate::advise::unchanged;
use crate::remap::{Move, Part, TypePlan};

/// Pairs thought about, those that cost most first.
const PAIRS_MAX: usize = 1 << 12;

/// Most proposals: each is simulated.
const PROPOSALS_MAX: usize = 6;

/// Most fields or places of a proposal.
const FIELDS_MAX: usize = 64;

/// Most fields that a text names.
const NAMED_MAX: usize = 4;

/// A change that may separate threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// What to do, for people.
    pub text: String,
    /// Misses by false sharing of the pairs it concerns.
    pub false_misses: u64,
    /// The types' new layouts.
    pub types: Vec<TypePlan>,
    /// Addresses and bytes of memory without a type that gets lines of its own, by address; they do not overlap.
    pub places: Vec<(u64, u64)>,
}

impl Proposal {
    /// The same types, moved without a change: the part of a gain that is due to the move alone.
    pub fn moved(&self) -> Vec<TypePlan> {
        self.types.iter().map(|plan| unchanged(&plan.name, plan.old_bytes)).collect()
    }
}

/// A type and the bytes of its elements.
type Element = (String, u64);

/// The common part of the pairs that one change would help.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// Instances or fields of one type.
    OneType(Element),
    /// Instances of two types.
    TwoTypes(Element, Element),
    /// A type and memory without one, on a line.
    TypeAndPlaces(Element, u64),
    /// Memory without a type, on a line.
    Places(u64),
}

/// Pairs that one change would help.
#[derive(Debug, Default)]
struct Group {
    false_misses: u64,
    /// Some pairs are of two instances.
    is_between_instances: bool,
    /// Fields and places, by offset.
    fields: BTreeMap<(u64, u16), FieldName>,
    pairs: Vec<usize>,
}

/// Proposals for pairs that cost false sharing, those with most misses first; each pair gets the number of its
/// proposal. Proposals for less than a hundredth of all coherence misses are omitted.
pub(super) fn proposals(pairs: &mut [Pair], coherence_misses: u64, line_bytes: u64) -> Vec<Proposal> {
    let mut groups: BTreeMap<About, Group> = BTreeMap::new();
    for (number, pair) in pairs.iter().enumerate().take(PAIRS_MAX).filter(|(_, pair)| pair.false_misses > 0) {
        let Some(about) = about(pair) else { continue };
        let group = groups.entry(about).or_default();
        group.false_misses += pair.false_misses;
        group.is_between_instances |= !pair.is_one_instance;
        group.pairs.push(number);
        if pair.is_one_instance || pair.sides.iter().any(|side| side.field.type_name.is_none()) {
            for side in &pair.sides {
                group.fields.insert((side.field.offset, side.field.bytes), side.field.clone());
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.retain(|(_, group)| group.false_misses >= coherence_misses.div_ceil(100));
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.false_misses));
    let mut made = Vec::new();
    for (about, group) in groups {
        if made.len() == PROPOSALS_MAX {
            break;
        }
        let Some(proposal) = propose(&about, &group, line_bytes) else { continue };
        for number in &group.pairs {
            if let Some(pair) = pairs.get_mut(*number) {
                pair.proposal = Some(made.len());
            }
        }
        made.push(proposal);
    }
    made
}

fn about(pair: &Pair) -> Option<About> {
    let [a, b] = &pair.sides;
    let element = |field: &FieldName| Some((field.type_name.clone()?, field.element_bytes));
    match (element(&a.field), element(&b.field)) {
        (Some(a), Some(b)) if a == b => Some(About::OneType(a)),
        (Some(a), Some(b)) => Some(About::TwoTypes(a.clone().min(b.clone()), a.max(b))),
        (Some(one), None) | (None, Some(one)) => Some(About::TypeAndPlaces(one, pair.line)),
        // Bytes are 0 for fields beyond the limit.
        (None, None) => (a.field.bytes > 0 && b.field.bytes > 0).then_some(About::Places(pair.line)),
    }
}

fn propose(about: &About, group: &Group, line_bytes: u64) -> Option<Proposal> {
    let (text, types, places) = match about {
        About::OneType(element) => {
            let units = merged(group.fields.values());
            let (text, plan) = match units.as_slice() {
                [_, _, ..] => separated(element, &units, line_bytes)?,
                _ if group.is_between_instances => aligned(element, line_bytes)?,
                _ => return None,
            };
            (text, vec![plan], Vec::new())
        }
        About::TwoTypes(a, b) if a.0 == b.0 => {
            let plan = aligned(a, line_bytes)?.1;
            (format!("align {} to {line_bytes} bytes: regions of two sizes share a line", a.0), vec![plan], Vec::new())
        }
        About::TwoTypes(a, b) => {
            let plans = vec![aligned(a, line_bytes)?.1, aligned(b, line_bytes)?.1];
            (
                format!("align {} and {} to {line_bytes} bytes: instances of both share a line", a.0, b.0),
                plans,
                Vec::new(),
            )
        }
        About::TypeAndPlaces(element, _) => {
            let places = places(group);
            let what = names(&places);
            (
                format!("align {} and {what} to {line_bytes} bytes each", element.0),
                vec![aligned(element, line_bytes)?.1],
                places,
            )
        }
        About::Places(_) => {
            let places = places(group);
            if places.len() < 2 {
                return None;
            }
            (format!("align {} to {line_bytes} bytes each", names(&places)), Vec::new(), places)
        }
    };
    Some(Proposal { text, false_misses: group.false_misses, types, places })
}

/// Bytes that one change keeps together: overlapping fields form one unit.
struct Unit {
    from: u64,
    end: u64,
    name: String,
}

fn merged<'a>(fields: impl Iterator<Item = &'a FieldName>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for field in fields {
        let end = field.offset.saturating_add(u64::from(field.bytes));
        let is_full = units.len() == FIELDS_MAX;
        match units.last_mut() {
            Some(last) if field.offset < last.end => last.end = last.end.max(end),
            _ if is_full => break,
            _ => units.push(Unit { from: field.offset, end, name: short(field) }),
        }
    }
    units
}

fn places(group: &Group) -> Vec<(u64, u64)> {
    let untyped = group.fields.values().filter(|field| field.type_name.is_none());
    merged(untyped).into_iter().map(|unit| (unit.from, unit.end - unit.from)).collect()
}

fn names(places: &[(u64, u64)]) -> String {
    let all = places.iter().map(|(address, bytes)| format!("{address:#x}+{bytes}")).collect::<Vec<_>>();
    format!("what lies at {}", list(&all))
}

/// `a, b and c`.
fn list(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] if all.len() <= NAMED_MAX => format!("{} and {last}", most.join(", ")),
        _ => format!("{} and {} more", all.get(..NAMED_MAX).unwrap_or_default().join(", "), all.len() - NAMED_MAX),
    }
}

/// Each of the units on a line of its own: the bytes after a unit move with it.
fn separated((name, bytes): &Element, units: &[Unit], line_bytes: u64) -> Option<(String, TypePlan)> {
    let (mut moves, mut shift, mut from) = (Vec::new(), 0_u64, 0_u64);
    for unit in units.iter().skip(1) {
        moves.push(Move { from, bytes: unit.from.checked_sub(from)?, part: 0, to: from.checked_add(shift)? });
        let to = unit.from.checked_add(shift)?.checked_next_multiple_of(line_bytes)?;
        (shift, from) = (to - unit.from, unit.from);
    }
    moves.push(Move { from, bytes: bytes.checked_sub(from)?, part: 0, to: from.checked_add(shift)? });
    let padded = bytes.checked_add(shift)?.checked_next_multiple_of(line_bytes)?;
    let named = list(&units.iter().map(|unit| unit.name.clone()).collect::<Vec<_>>());
    let how = match units {
        [_, _] => format!("{shift} bytes between them"),
        _ => format!("{bytes} bytes become {padded}"),
    };
    let text = format!("pad {name} so that {named} are on separate lines: {how}, and align it to {line_bytes} bytes");
    Some((text, plan(name, *bytes, padded, line_bytes, moves)?))
}

/// Elements that begin and end with lines.
fn aligned((name, bytes): &Element, line_bytes: u64) -> Option<(String, TypePlan)> {
    let padded = bytes.checked_next_multiple_of(line_bytes)?;
    let text = if padded == *bytes {
        format!("align {name} to {line_bytes} bytes: its instances start inside a line")
    } else {
        format!("pad {name} from {bytes} to {padded} bytes and align it to {line_bytes}")
    };
    let moves = vec![Move { from: 0, bytes: *bytes, part: 0, to: 0 }];
    Some((text, plan(name, *bytes, padded, line_bytes, moves)?))
}

fn plan(name: &str, old_bytes: u64, bytes: u64, align: u64, moves: Vec<Move>) -> Option<TypePlan> {
    let parts = vec![Part { bytes, align }];
    TypePlan { name: name.to_owned(), old_bytes, parts, moves, pointer: None, always_moves: true }.checked().ok()
}

/// A field without its type.
fn short(field: &FieldName) -> String {
    match &field.name {
        Some(name) => name.clone(),
        None => format!("{}+{}", field.offset, field.bytes),
    }
}
