//! Rules beyond grammar: ids, ranges of values, alignment, claimed verdicts, mixed spelling.
//!
//! It does not check whether the traced program broke the break-before-make rule.

use std::collections::BTreeMap;

use anytrace_core::{Error, Rule, Severity};

use crate::rules;
use crate::verbs::preamble::is_preamble;
use crate::wire::field::Field;
use crate::wire::output::claim_text;
use crate::wire::parse::value_offset;
use crate::wire::record::{Barrier, Dialect, Operand, Record, Transition};
use crate::wire::style::Radix;
use crate::wire::walk::{Here, Item};
use anytrace_casemate_model::Name;

/// Checks one trace, piece by piece.
#[derive(Debug)]
pub(crate) struct Checker {
    radix: Radix,
    ids: Ids,
    claims: Claims,
    dialect: Option<Dialect>,
    is_mixed: bool,
    runs_max: usize,
}

impl Checker {
    /// Starts; `runs_max` bounds the memory for ids that are not consecutive.
    pub(crate) fn new(radix: Radix, runs_max: usize) -> Self {
        let ids = Ids::default();
        Self { radix, ids, claims: Claims::default(), dialect: None, is_mixed: false, runs_max }
    }

    /// Processes the next piece and reports what is wrong with it.
    #[inline]
    pub(crate) fn take(&mut self, item: &Item<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        match item {
            Item::Record(record) => self.record(record, place),
            Item::Claim(line) => self.claim(line, place),
            Item::Output(_) => {
                self.claims.is_explained = true;
                Ok(())
            }
            Item::Lost(_) => {
                self.claims.may_be_founded = true;
                Ok(())
            }
            Item::Space(_) => Ok(()),
        }
    }

    #[inline]
    fn record(&mut self, record: &Record<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        self.id(record, place)?;
        self.values(record, place)?;
        if self.claims.take_open() {
            let complaint = place.complaint(&rules::RECORD_AFTER_CLAIM, 0).record(place.seq);
            place.report(complaint.expected("the end of the trace").found(record.kind().name()))?;
        }
        self.claims.record(&record.transition);
        let dialect = record.spelling.dialect();
        if self.dialect != Some(dialect) {
            self.dialect(dialect, place)?;
        }
        Ok(())
    }

    #[inline]
    fn id(&mut self, record: &Record<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        if is_preamble(&record.source) {
            return Ok(());
        }
        let (rule, expected) = match self.ids.add(record.id, self.runs_max) {
            Order::Next => return Ok(()),
            Order::Seen => (&rules::DUPLICATE_ID, "an id that was not used before".to_owned()),
            Order::Smaller(highest) => (&rules::DECREASING_ID, format!("more than {highest}")),
        };
        let at = value_offset(record.text, self.radix, Field::Id);
        let complaint = place.complaint(rule, at).record(place.seq).field("id");
        place.report(complaint.expected(expected).found(record.id.to_string()))
    }

    #[inline]
    fn values(&mut self, record: &Record<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        match breach(&record.transition) {
            None => Ok(()),
            Some(_) => self.breaches(record, place),
        }
    }

    #[cold]
    fn breaches(&self, record: &Record<'_>, place: &mut Here<'_>) -> Result<(), Error> {
        for breach in Breach::all(&record.transition) {
            let at = value_offset(record.text, self.radix, breach.field);
            let complaint = place.complaint(breach.rule, at).record(place.seq).field(breach.field.name());
            let complaint = complaint.severity(breach.severity).expected(breach.expected);
            place.report(match breach.found {
                FoundValue::Number(value) => complaint.found(format!("{value:#x}")),
                FoundValue::Word(word) => complaint.found(format!("'{word}'")),
                FoundValue::Name(name) => complaint.found(format!("'{name}'")),
            })?;
        }
        Ok(())
    }

    #[cold]
    fn dialect(&mut self, dialect: Dialect, place: &mut Here<'_>) -> Result<(), Error> {
        let Some(first) = self.dialect else {
            self.dialect = Some(dialect);
            return Ok(());
        };
        if self.is_mixed {
            return Ok(());
        }
        self.is_mixed = true;
        let complaint = place.complaint(&rules::MIXED_SPELLING, 0).record(place.seq);
        place
            .report(complaint.expected(format!("'{}', as before", first.name())).found(format!("'{}'", dialect.name())))
    }

    #[cold]
    fn claim(&mut self, line: &[u8], place: &mut Here<'_>) -> Result<(), Error> {
        let shown = anytrace_core::text::escaped(claim_text(line));
        let complaint = place.complaint(&rules::CLAIMED_VIOLATION, 0).record(place.seq);
        place.report(complaint.found(format!("'{shown}'")))?;
        if self.claims.add() {
            return Ok(());
        }
        let complaint = place.complaint(&rules::UNFOUNDED_CLAIM, 0).record(place.seq);
        place.report(complaint.found(format!("'{shown}'")))
    }
}

/// Claimed verdicts: whether anything before one may have broken a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    /// A record that can break a rule of the model was read, or lost bytes may have contained one.
    pub(crate) may_be_founded: bool,
    /// The reference's error block was read: the failing record may appear only there.
    pub(crate) is_explained: bool,
    is_open: bool,
}

impl Claims {
    #[inline]
    pub(crate) fn record(&mut self, transition: &Transition) {
        self.may_be_founded |= can_break_a_rule(transition);
    }

    /// Processes a claim; true when it may be justified.
    pub(crate) fn add(&mut self) -> bool {
        self.is_open = true;
        self.may_be_founded || self.is_explained
    }

    /// True once after each claim.
    #[inline]
    pub(crate) fn take_open(&mut self) -> bool {
        std::mem::take(&mut self.is_open)
    }
}

/// True when the model has a rule that such a step may break. There is none for initializing fresh memory, reading, and
/// ISB.
#[inline]
fn can_break_a_rule(transition: &Transition) -> bool {
    !matches!(transition, Transition::MemInit { .. } | Transition::MemRead { .. } | Transition::Barrier(Barrier::Isb))
}

/// True when `check` reports an error for the record, so that `repair` leaves it out.
pub(crate) fn is_erroneous(transition: &Transition) -> bool {
    Breach::all(transition).iter().any(|breach| breach.severity == Severity::Error)
}

struct Breach {
    rule: &'static Rule,
    severity: Severity,
    field: Field,
    expected: &'static str,
    found: FoundValue,
}

enum FoundValue {
    Number(u64),
    Word(&'static str),
    Name(Name),
}

/// `Some` when [`Breach::all`] finds anything; cheap.
#[inline]
fn breach(transition: &Transition) -> Option<()> {
    let is_clean = match *transition {
        Transition::MemWrite { address, .. }
        | Transition::MemRead { address, .. }
        | Transition::MemAtomic { address, .. } => address & 7 == 0,
        Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
            (address | size) & 7 == 0 && address.checked_add(size).is_some()
        }
        Transition::MemSet { address, size, value } => {
            (address | size) & 7 == 0 && value <= 0xff && address.checked_add(size).is_some()
        }
        Transition::Barrier(Barrier::Dsb(domain)) => domain.is_documented(),
        Transition::Tlbi { operand: Operand::AddressLevel { address, level }, .. } => level <= 0xf && address < 1 << 44,
        Transition::OtherTlbi { .. } | Transition::OtherSysreg { .. } => false,
        _ => true,
    };
    (!is_clean).then_some(())
}

impl Breach {
    fn all(transition: &Transition) -> Vec<Self> {
        let mut found = Vec::new();
        match *transition {
            Transition::MemWrite { address, .. }
            | Transition::MemRead { address, .. }
            | Transition::MemAtomic { address, .. } => {
                found.extend(Self::alignment(address, None, Severity::Warning));
            }
            Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
                found.extend(Self::alignment(address, Some(size), Severity::Warning));
            }
            Transition::MemSet { address, size, value } => {
                found.extend(Self::alignment(address, Some(size), Severity::Error));
                if value > 0xff {
                    found.push(Self::range(Field::Value, "at most 0xff", value));
                }
            }
            Transition::Barrier(Barrier::Dsb(domain)) if !domain.is_documented() => found.push(Self {
                rule: &rules::UNKNOWN_BARRIER_KIND,
                severity: Severity::Warning,
                field: Field::Kind,
                expected: "ish, ishst, nsh, sy",
                found: FoundValue::Word(domain.name()),
            }),
            Transition::OtherTlbi { name, operand } => {
                found.push(Self::unknown(&rules::UNKNOWN_TLBI, Field::Op, "a known TLBI operation", name));
                found.extend(Self::operand(operand));
            }
            Transition::OtherSysreg { name, .. } => {
                found.push(Self::unknown(&rules::UNKNOWN_SYSREG, Field::Sysreg, "a known system register", name));
            }
            Transition::Tlbi { operand, .. } => found.extend(Self::operand(operand)),
            _ => {}
        }
        found
    }

    fn operand(operand: Operand) -> Vec<Self> {
        let mut found = Vec::new();
        if let Operand::AddressLevel { address, level } = operand {
            if address >= 1 << 44 {
                found.push(Self::range(Field::Addr, "a page number of at most 44 bits", address));
            }
            if level > 0xf {
                found.push(Self::range(Field::Level, "at most 0xf", level));
            }
        }
        found
    }

    fn unknown(rule: &'static Rule, field: Field, expected: &'static str, name: Name) -> Self {
        Self { rule, severity: Severity::Warning, field, expected, found: FoundValue::Name(name) }
    }

    fn alignment(address: u64, size: Option<u64>, severity: Severity) -> Vec<Self> {
        let mut found = Vec::new();
        let expected = "a multiple of 8";
        if address & 7 != 0 {
            let number = FoundValue::Number(address);
            found.push(Self {
                rule: &rules::UNALIGNED_ADDRESS,
                severity,
                field: Field::Address,
                expected,
                found: number,
            });
        }
        let size = size.unwrap_or(0);
        if size & 7 != 0 {
            let number = FoundValue::Number(size);
            found.push(Self { rule: &rules::UNALIGNED_SIZE, severity, field: Field::Size, expected, found: number });
        }
        if address.checked_add(size).is_none() {
            found.push(Self {
                rule: &rules::RANGE_PAST_END,
                severity: Severity::Warning,
                field: Field::Size,
                expected: "an end below 2^64",
                found: FoundValue::Number(size),
            });
        }
        found
    }

    fn range(field: Field, expected: &'static str, value: u64) -> Self {
        let rule = &rules::VALUE_OUT_OF_RANGE;
        Self { rule, severity: Severity::Warning, field, expected, found: FoundValue::Number(value) }
    }
}

/// Ids so far, as runs of consecutive numbers.
#[derive(Debug, Default)]
struct Ids {
    /// The growing run: first and last id.
    last: Option<(u64, u64)>,
    highest: Option<u64>,
    /// Other runs, by first id.
    runs: BTreeMap<u64, u64>,
}

enum Order {
    Next,
    Seen,
    /// Smaller than the highest so far.
    Smaller(u64),
}

impl Ids {
    #[inline]
    fn add(&mut self, id: u64, runs_max: usize) -> Order {
        if let (Some((_, last)), Some(highest)) = (&mut self.last, &mut self.highest) {
            // In an orderly trace the growing run is also the highest.
            if *last == *highest && highest.checked_add(1) == Some(id) {
                *last = id;
                *highest = id;
                return Order::Next;
            }
        }
        self.add_elsewhere(id, runs_max)
    }

    #[cold]
    fn add_elsewhere(&mut self, id: u64, runs_max: usize) -> Order {
        let in_last = self.last.is_some_and(|(first, last)| (first..=last).contains(&id));
        if in_last || self.runs.range(..=id).next_back().is_some_and(|(_, last)| id <= *last) {
            return Order::Seen;
        }
        let order = match self.highest {
            Some(highest) if id < highest => Order::Smaller(highest),
            _ => Order::Next,
        };
        self.highest = self.highest.max(Some(id));
        match self.last {
            Some((first, last)) if last.checked_add(1) == Some(id) => self.last = Some((first, id)),
            before => {
                if let Some((first, last)) = before
                    && self.runs.len() < runs_max
                {
                    self.runs.insert(first, last);
                }
                self.last = Some((id, id));
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(ids: &[u64]) -> String {
        let mut seen = Ids::default();
        let name = |order| match order {
            Order::Next => 'n',
            Order::Seen => 's',
            Order::Smaller(_) => 'd',
        };
        ids.iter().map(|id| name(seen.add(*id, 100))).collect()
    }

    #[test]
    fn ids_are_classified_as_next_seen_or_smaller() {
        assert_eq!(orders(&[0, 1, 2, 5, 6, 3, 4, 5, 2, 9, u64::MAX, u64::MAX]), "nnnnnddssnns");
        assert_eq!(orders(&[9, 3, 4, 3, 10]), "nddsn");
    }

    #[test]
    fn ids_agree_with_a_plain_set_on_many_orders() {
        let mut state = 7_u64;
        for _ in 0..200 {
            let mut seen = Ids::default();
            let mut plain = std::collections::BTreeSet::new();
            for _ in 0..60 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let id = state >> 59;
                let was_seen = matches!(seen.add(id, 1000), Order::Seen);
                assert_eq!(was_seen, !plain.insert(id), "{id} {plain:?}");
            }
        }
    }

    #[test]
    fn the_cheap_question_agrees_with_the_full_one() {
        for address in [0, 1, 8, u64::MAX - 7, 1 << 44] {
            for size in [0, 1, 8, 16] {
                for transition in [
                    Transition::MemSet { address, size, value: size << 4 },
                    Transition::MemInit { address, size },
                    Transition::MemWrite { order: crate::MemoryOrder::Plain, address, value: 0 },
                    Transition::Tlbi {
                        op: crate::TlbiOp::Vae2is,
                        operand: Operand::AddressLevel { address, level: size },
                    },
                ] {
                    assert_eq!(breach(&transition).is_some(), !Breach::all(&transition).is_empty(), "{transition:?}");
                }
            }
        }
    }
}
