//! Proposals from the results of a survey.

use anytrace_core::access::TypeNumber;

use super::survey::Surveyed;
use super::units::{Unit, units};
use crate::remap::{Move, PARTS_MAX, POINTER_BYTES, Part, TypePlan};

/// What a proposal changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Rarely used fields go into a record of their own.
    Split,
    /// Fields in another order.
    Reorder,
    /// Fields in an order that needs less padding.
    Shrink,
    /// Elements begin on a line boundary, or extend over as few lines as possible.
    Align,
    /// An array for each field.
    Arrays,
    /// Fields that different threads write are put on different lines.
    Separate,
}

impl Kind {
    /// A word for results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Reorder => "reorder",
            Self::Shrink => "shrink",
            Self::Align => "align",
            Self::Arrays => "arrays",
            Self::Separate => "separate",
        }
    }

    /// The change, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Split => "split off cold fields",
            Self::Reorder => "put fields that are used together next to each other",
            Self::Shrink => "reorder fields to need less padding",
            Self::Align => "align elements to lines",
            Self::Arrays => "make an array of each field (structure of arrays)",
            Self::Separate => "put data that different threads write on separate lines",
        }
    }
}

/// A proposal that was not tried yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The type.
    pub type_number: TypeNumber,
    /// What it changes.
    pub kind: Kind,
    /// Why, in sentences.
    pub reason: String,
    /// The new layout.
    pub plan: TypePlan,
    /// The new place of each unit, in the order of the new layout.
    pub placed: Vec<(Unit, Move)>,
}

/// A type being thought about.
struct Subject<'a> {
    number: TypeNumber,
    name: &'a str,
    bytes: u64,
    units: Vec<Unit>,
    /// How often two units are used close to each other.
    affinity: Vec<Vec<u64>>,
    most_elements: u64,
    line: u64,
    surveyed: &'a Surveyed,
}

/// Proposals for the `types_max` types with most misses.
pub fn candidates(surveyed: &Surveyed, types_max: usize) -> Vec<Candidate> {
    let mut numbers: Vec<TypeNumber> = (0..).zip(&surveyed.profile.types).map(|(number, _)| number).collect();
    let misses = |number: &TypeNumber| surveyed.profile.types.get(*number as usize).map_or(0, |one| one.counts.misses);
    let is_shared = |number: &TypeNumber| surveyed.sharing.contains_key(number);
    numbers.retain(|number| misses(number) > 0 || is_shared(number));
    numbers.sort_by_key(|number| (std::cmp::Reverse(misses(number)), *number));
    let mut all = Vec::new();
    for number in numbers.into_iter().take(types_max) {
        let Some(subject) = Subject::new(surveyed, number) else { continue };
        let mut own: Vec<Candidate> = Vec::new();
        let made = if subject.elements() < 2 {
            // A record that is there once gains by no order, only by lines that threads do not share.
            [Vec::new(), vec![subject.separated()]]
        } else {
            let others =
                [subject.reordered(), subject.shrunk(), subject.aligned(), subject.arrays(), subject.separated()];
            [subject.splits(), others.to_vec()]
        };
        for candidate in made.into_iter().flatten().flatten() {
            let is_known = own
                .iter()
                .any(|other| other.plan.parts == candidate.plan.parts && other.plan.moves == candidate.plan.moves);
            if !is_known {
                own.push(candidate);
            }
        }
        all.extend(own);
    }
    all
}

/// The same layout, moved as a proposal moves it: the effect of moving alone.
pub fn unchanged(name: &str, bytes: u64) -> TypePlan {
    TypePlan {
        name: name.to_owned(),
        old_bytes: bytes,
        parts: vec![Part { bytes, align: 16 }],
        moves: vec![Move { from: 0, bytes, part: 0, to: 0 }],
        pointer: None,
        always_moves: true,
    }
}

impl<'a> Subject<'a> {
    fn new(surveyed: &'a Surveyed, number: TypeNumber) -> Option<Self> {
        let one = surveyed.profile.types.get(number as usize)?;
        let (bytes, _) = *one.element_bytes.first()?;
        let units = units(surveyed, number, bytes);
        if units.is_empty() {
            return None;
        }
        let of = |offset: u64| units.iter().position(|unit| (unit.from..unit.from + unit.bytes).contains(&offset));
        let mut affinity = vec![vec![0_u64; units.len()]; units.len()];
        for ((a, b), count) in surveyed.pairs.get(number as usize).into_iter().flatten() {
            if let (Some(a), Some(b)) = (of(*a), of(*b)) {
                for (from, to) in [(a, b), (b, a)] {
                    if let Some(cell) = affinity.get_mut(from).and_then(|row| row.get_mut(to)) {
                        *cell += count;
                    }
                }
            }
        }
        let most_elements = surveyed.most_elements.get(number as usize).copied().unwrap_or(0);
        let (name, line) = (surveyed.table().name(number), surveyed.line_bytes);
        Some(Self { number, name, bytes, units, affinity, most_elements, line, surveyed })
    }

    /// Groups of units become parts, each in the order given.
    fn candidate(
        &self,
        kind: Kind,
        reason: String,
        groups: &[Vec<usize>],
        pointer: bool,
        align: u64,
    ) -> Option<Candidate> {
        let (mut parts, mut moves, mut placed) = (Vec::new(), Vec::new(), Vec::new());
        let mut pointer_at = None;
        for (number, group) in groups.iter().enumerate() {
            let (mut end, mut widest) = (0_u64, 1_u64);
            for unit in group.iter().filter_map(|at| self.units.get(*at)) {
                let to = end.checked_next_multiple_of(unit.align)?;
                let one = Move { from: unit.from, bytes: unit.bytes, part: number, to };
                moves.push(one);
                placed.push((unit.clone(), one));
                end = to.checked_add(unit.bytes)?;
                widest = widest.max(unit.align);
            }
            if number == 0 && pointer {
                let at = end.checked_next_multiple_of(u64::from(POINTER_BYTES))?;
                pointer_at = Some(at);
                end = at.checked_add(u64::from(POINTER_BYTES))?;
                widest = widest.max(u64::from(POINTER_BYTES));
            }
            let widest = if number == 0 { widest.max(align) } else { widest };
            parts.push(Part { bytes: end.checked_next_multiple_of(widest)?.max(1), align: widest.max(16) });
        }
        let plan = TypePlan {
            name: self.name.to_owned(),
            old_bytes: self.bytes,
            parts,
            moves,
            pointer: pointer_at,
            always_moves: false,
        };
        let plan = plan.checked().ok()?;
        Some(Candidate { type_number: self.number, kind, reason, plan, placed })
    }

    fn names(&self, units: &[usize]) -> String {
        const NAMES_MAX: usize = 6;
        let mut all: Vec<String> = Vec::new();
        let mut end_before = None;
        for unit in units.iter().filter_map(|at| self.units.get(*at)) {
            let end = unit.from + unit.bytes;
            match all.last_mut() {
                // Bytes without names that follow each other are one range.
                Some(last) if unit.declared.is_empty() && end_before == Some(unit.from) => {
                    let start = last.split("..").next().unwrap_or_default().to_owned();
                    *last = format!("{start}..{end}");
                }
                _ => all.push(unit.name.clone()),
            }
            end_before = unit.declared.is_empty().then_some(end);
        }
        let more = all.len().saturating_sub(NAMES_MAX);
        let first = all.get(..NAMES_MAX.min(all.len())).unwrap_or_default().join(", ");
        if more > 0 { format!("{first} and {more} more") } else { first }
    }

    fn heat(&self, at: usize) -> u64 {
        self.units.get(at).map_or(0, |unit| unit.accesses)
    }

    fn is_pinned(&self, at: usize) -> bool {
        self.units.get(at).is_some_and(|unit| unit.is_pinned)
    }

    fn bytes_of(&self, units: &[usize]) -> u64 {
        units.iter().filter_map(|at| self.units.get(*at)).map(|unit| unit.bytes).sum()
    }

    /// Cold fields are split off, for several bounds of what is cold.
    fn splits(&self) -> Vec<Option<Candidate>> {
        let hottest = (0..self.units.len()).map(|at| self.heat(at)).max().unwrap_or(0);
        let accesses: u64 = (0..self.units.len()).map(|at| self.heat(at)).sum();
        let mut made = Vec::new();
        for percent in [0_u128, 2, 10, 30] {
            let is_rare = |at: usize| u128::from(self.heat(at)) * 100 <= u128::from(hottest) * percent;
            let is_cold = |at: &usize| !self.is_pinned(*at) && is_rare(*at);
            let (cold, hot): (Vec<usize>, Vec<usize>) = (0..self.units.len()).partition(is_cold);
            // A part reached by its index needs no pointer; elements allocated one by one do.
            let needs_pointer = self.most_elements < 2;
            let cold_bytes = self.bytes_of(&cold);
            let least = if needs_pointer { u64::from(POINTER_BYTES) + 1 } else { 1 };
            if hot.is_empty() || cold_bytes < least {
                continue;
            }
            let cold_accesses: u64 = cold.iter().map(|at| self.heat(*at)).sum();
            let used = match cold_accesses {
                0 => "never used".to_owned(),
                n => format!("{} of all uses of fields", share(n, accesses)),
            };
            let how = if needs_pointer { "behind a pointer" } else { "in a separate array, by the same index" };
            let reason = format!(
                "{}: {cold_bytes} of {} bytes, {used}; split off {how}, they leave lines that hold only the other {} \
                 bytes",
                self.names(&cold),
                self.bytes,
                self.bytes_of(&hot),
            );
            made.push(self.candidate(Kind::Split, reason, &[self.packed(&hot), cold], needs_pointer, 1));
        }
        made
    }

    /// An order in which units that are used together are close: the hottest first, then always the one used most with
    /// the units of its line.
    fn packed(&self, which: &[usize]) -> Vec<usize> {
        let (mut order, mut left): (Vec<usize>, Vec<usize>) = which.iter().partition(|at| self.is_pinned(**at));
        let mut line = order.clone();
        let mut filled = self.bytes_of(&order) % self.line;
        while !left.is_empty() {
            let close = |at: usize| -> u64 {
                let row = self.affinity.get(at);
                line.iter().filter_map(|other| row.and_then(|row| row.get(*other))).sum()
            };
            // Of equals the one with the greater alignment, for less padding, then the first declared.
            let rank = |at: &usize| {
                let align = self.units.get(*at).map_or(1, |unit| unit.align);
                (close(*at), self.heat(*at), align, std::cmp::Reverse(*at))
            };
            let Some((place, &best)) = left.iter().enumerate().max_by_key(|(_, at)| rank(at)) else { break };
            left.remove(place);
            order.push(best);
            line.push(best);
            filled += self.units.get(best).map_or(0, |unit| unit.bytes);
            if filled >= self.line {
                line.clear();
                filled = 0;
            }
        }
        self.filled(order)
    }

    /// The same order, but bytes that alignment would leave unused are filled with the next units that fit there.
    fn filled(&self, order: Vec<usize>) -> Vec<usize> {
        let mut left = std::collections::VecDeque::from(order);
        let (mut order, mut end) = (Vec::with_capacity(left.len()), 0_u64);
        let starts = |at: usize, end: u64| self.units.get(at).map_or(end, |unit| end.next_multiple_of(unit.align));
        while let Some(&next) = left.front() {
            let start = starts(next, end);
            let fits = |at: usize| starts(at, end) + self.bytes_of(&[at]) <= start;
            // The compiler fills nothing in between what it places first.
            let filler = (start > end && !self.is_pinned(next))
                .then(|| (1..left.len()).filter(|place| left.get(*place).is_some_and(|at| fits(*at))))
                .and_then(|places| places.min_by_key(|place| left.get(*place).map(|at| starts(*at, end))));
            let Some(at) = left.remove(filler.unwrap_or(0)) else { break };
            end = starts(at, end) + self.bytes_of(&[at]);
            order.push(at);
        }
        order
    }

    fn reordered(&self) -> Option<Candidate> {
        let order = self.packed(&(0..self.units.len()).collect::<Vec<_>>());
        let is_same = order.iter().copied().eq(0..self.units.len());
        if is_same || (self.bytes <= self.line && self.surveyed_straddles() == 0) {
            return None;
        }
        let first: Vec<usize> = order.iter().copied().take(4).collect();
        let reason = format!("{} are used most and with each other; they come first", self.names(&first));
        let made = self.candidate(Kind::Reorder, reason, &[order], false, 1)?;
        // Elements of more bytes are spread over more lines: not what the advice promises.
        made.plan.parts.iter().all(|part| part.bytes <= self.bytes).then_some(made)
    }

    fn elements(&self) -> u64 {
        self.surveyed.profile.types.get(self.number as usize).map_or(0, |one| one.elements)
    }

    fn surveyed_straddles(&self) -> u64 {
        self.surveyed.profile.types.get(self.number as usize).map_or(0, |one| one.straddling_elements)
    }

    fn shrunk(&self) -> Option<Candidate> {
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|at| {
            let align = self.units.get(*at).map_or(1, |unit| unit.align);
            (!self.is_pinned(*at), if self.is_pinned(*at) { 0 } else { align.wrapping_neg() })
        });
        let made = self.candidate(Kind::Shrink, String::new(), &[order], false, 1)?;
        let bytes = made.plan.parts.first().map(|part| part.bytes).filter(|bytes| *bytes < self.bytes)?;
        let reason =
            format!("{} of {} bytes are padding that another field order avoids", self.bytes - bytes, self.bytes);
        Some(Candidate { reason, ..made })
    }

    /// Elements that extend over more lines than they need.
    fn aligned(&self) -> Option<Candidate> {
        let straddling = self.surveyed_straddles();
        if straddling == 0 {
            return None;
        }
        let align = if self.bytes >= self.line { self.line } else { self.bytes.checked_next_power_of_two()? };
        let elements = self.elements();
        let bytes = self.bytes.checked_next_multiple_of(align)?;
        let padding = match bytes - self.bytes {
            0 => String::new(),
            more => format!("; each needs {more} more bytes of padding"),
        };
        let reason = format!(
            "{straddling} of {elements} elements straddle one more line of {} bytes than necessary{padding}",
            self.line
        );
        self.candidate(Kind::Align, reason, &[(0..self.units.len()).collect()], false, align)
    }

    fn arrays(&self) -> Option<Candidate> {
        const ELEMENTS_MIN: u64 = 8;
        let has_pinned = (0..self.units.len()).any(|at| self.is_pinned(at));
        if self.most_elements < ELEMENTS_MIN || self.units.len() > PARTS_MAX || has_pinned {
            return None;
        }
        // Units that are used together most often should stay together; then arrays do not help.
        let groups: Vec<Vec<usize>> =
            self.packed(&(0..self.units.len()).collect::<Vec<_>>()).into_iter().map(|at| vec![at]).collect();
        let used = (0..self.units.len()).filter(|at| self.heat(*at) > 0).count();
        let reason = format!(
            "regions have up to {} elements, and a pass uses only some fields ({used} of {} are used at all); in \
             separate arrays, lines hold nothing else",
            self.most_elements,
            self.units.len()
        );
        self.candidate(Kind::Arrays, reason, &groups, false, 1)
    }

    /// Fields that several threads write get lines of their own.
    fn separated(&self) -> Option<Candidate> {
        let sharing = self.surveyed.sharing.get(&self.number)?;
        let between: u64 = sharing.between_fields.values().sum();
        if between == 0 && sharing.between_elements == 0 {
            return None;
        }
        let mut apart = vec![false; self.units.len()];
        for (a, b) in sharing.between_fields.keys() {
            let of =
                |offset: u64| self.units.iter().position(|unit| (unit.from..unit.from + unit.bytes).contains(&offset));
            if let (Some(a), Some(b)) = (of(*a), of(*b))
                && a != b
            {
                [a, b].into_iter().for_each(|at| apart.get_mut(at).into_iter().for_each(|one| *one = true));
            }
        }
        let mut reasons = Vec::new();
        if sharing.between_elements > 0 {
            reasons.push(format!(
                "threads contend for lines because of different elements {} times",
                sharing.between_elements
            ));
        }
        let is_apart = |at: &usize| apart.get(*at) == Some(&true) && !self.is_pinned(*at);
        let fields: Vec<usize> = (0..self.units.len()).filter(is_apart).collect();
        if !fields.is_empty() {
            reasons
                .push(format!("because of different fields of one element {between} times ({})", self.names(&fields)));
        }
        self.lined(&fields, reasons.join(", "))
    }

    /// Each of the given fields begins a line; the element fills complete lines.
    fn lined(&self, fields: &[usize], reason: String) -> Option<Candidate> {
        let (mut moves, mut placed, mut end) = (Vec::new(), Vec::new(), 0_u64);
        let others = (0..self.units.len()).filter(|at| !fields.contains(at));
        for (at, begins_line) in others.map(|at| (at, false)).chain(fields.iter().map(|at| (*at, true))) {
            let unit = self.units.get(at)?;
            let align = if begins_line { self.line } else { unit.align };
            let one = Move { from: unit.from, bytes: unit.bytes, part: 0, to: end.checked_next_multiple_of(align)? };
            end = one.to.checked_add(unit.bytes)?;
            moves.push(one);
            placed.push((unit.clone(), one));
        }
        let bytes = end.checked_next_multiple_of(self.line)?;
        let plan = TypePlan {
            name: self.name.to_owned(),
            old_bytes: self.bytes,
            parts: vec![Part { bytes, align: self.line }],
            moves,
            pointer: None,
            always_moves: true,
        };
        let plan = plan.checked().ok()?;
        Some(Candidate { type_number: self.number, kind: Kind::Separate, reason, plan, placed })
    }
}

fn share(part: u64, total: u64) -> String {
    let share = if total == 0 { 0.0 } else { part as f64 * 100.0 / total as f64 };
    format!("{share:.1} %")
}
