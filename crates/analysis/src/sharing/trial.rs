//! Proposals tried: each is simulated on the trace as it would be with it.

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::layout::Layouts;

use super::proposals::Proposal;
use super::{Sharing, SharingOptions};
use crate::elements::Elements;
use crate::fan::Fan;
use crate::remap::{Remap, TypePlan};

/// Where memory without a type that gets lines of its own is moved: neither a program nor [`Remap`] uses such
/// addresses.
const PLACES_START: u64 = 1 << 61;

/// A proposal that was tried; all numbers are misses of all cores, of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The proposal.
    pub proposal: Proposal,
    /// With the present layout.
    pub before: u64,
    /// With the types moved as those of the proposal are, but not changed.
    pub moved: u64,
    /// With the proposal.
    pub after: u64,
}

impl Tried {
    /// Misses that disappear, for the better of `before` and `moved`; none where there are as many or more.
    pub fn gain(&self) -> u64 {
        self.before.min(self.moved).saturating_sub(self.after)
    }

    /// True when it gains enough to be worth a change: half a percent of all misses, and some.
    pub fn is_advice(&self) -> bool {
        const PER_MILLE_MIN: u128 = 5;
        const MISSES_MIN: u64 = 8;
        let best = u128::from(self.before.min(self.moved));
        self.gain() >= MISSES_MIN && u128::from(self.gain()) * 1000 >= best * PER_MILLE_MIN
    }
}

/// Simulates a trace once more, for all proposals at once.
///
/// # Errors
/// Those of `emit`.
pub fn try_all<E: From<Error>>(
    options: &SharingOptions,
    proposals: Vec<Proposal>,
    layouts: &mut dyn Layouts,
    emit: impl FnOnce(&mut dyn AccessSink) -> Result<(), E>,
) -> Result<Vec<Tried>, E> {
    let engine = || Sharing::counting(options.clone());
    let mut before = engine();
    let mut moved: Vec<Sharing<'_>> = proposals.iter().map(|_| engine()).collect();
    let mut after: Vec<Sharing<'_>> = proposals.iter().map(|_| engine()).collect();
    let mut apart: Vec<Apart<'_>> = after
        .iter_mut()
        .zip(&proposals)
        .map(|(engine, one)| Apart::new(&one.places, options.line_bytes, engine))
        .collect();
    let plans = proposals.iter().map(|one| one.types.clone());
    let mut all: Vec<Way<'_>> = vec![Way::Plain(&mut before)];
    let of_moved = moved.iter_mut().zip(&proposals).filter(|(_, one)| !one.types.is_empty());
    all.extend(of_moved.map(|(engine, one)| Way::remapped(one.moved(), engine)));
    all.extend(apart.iter_mut().zip(plans).map(|(inner, plans)| Way::remapped(plans, inner)));
    let mut fan = Fan::new(all.iter_mut().map(Way::sink).collect());
    emit(&mut Elements::new(layouts, &mut fan))?;
    drop(all);
    drop(apart);
    let misses = |engine: Sharing<'_>| engine.misses();
    let before = misses(before);
    let found = moved.into_iter().zip(after).zip(proposals);
    let tried = found.map(|((moved, after), proposal)| {
        // Where no type moves, nothing was simulated.
        let moved = if proposal.types.is_empty() { before } else { misses(moved) };
        Tried { before, moved, after: misses(after), proposal }
    });
    Ok(tried.collect())
}

/// An engine, and the adapter in front of it.
enum Way<'a> {
    Plain(&'a mut dyn AccessSink),
    Remapped(Box<Remap<'a>>),
}

impl<'a> Way<'a> {
    fn remapped(plans: Vec<TypePlan>, inner: &'a mut dyn AccessSink) -> Self {
        if plans.is_empty() { Self::Plain(inner) } else { Self::Remapped(Box::new(Remap::new(plans, inner))) }
    }

    fn sink(&mut self) -> &mut dyn AccessSink {
        match self {
            Self::Plain(inner) => *inner,
            Self::Remapped(remap) => &mut **remap,
        }
    }
}

/// Puts places on lines of their own: an access to several becomes one for each piece.
struct Apart<'a> {
    /// First address, bytes, and the new address.
    places: Vec<(u64, u64, u64)>,
    inner: &'a mut dyn AccessSink,
    out: Vec<Access>,
}

impl<'a> Apart<'a> {
    fn new(places: &[(u64, u64)], line_bytes: u64, inner: &'a mut dyn AccessSink) -> Self {
        let mut next = PLACES_START;
        let places = places.iter().map(|(address, bytes)| {
            let to = next;
            // The same place in a set of a cache would be no better: one line apart is.
            next = (next + bytes).next_multiple_of(line_bytes);
            (*address, *bytes, to)
        });
        Self { places: places.collect(), inner, out: Vec::new() }
    }

    fn push(&mut self, access: &Access) {
        let (mut address, mut left) = (access.address, u64::from(access.bytes));
        loop {
            let next = self.places.partition_point(|(start, ..)| *start <= address);
            let own = next
                .checked_sub(1)
                .and_then(|at| self.places.get(at))
                .filter(|(start, bytes, _)| address - start < *bytes);
            let (to, room) = match own {
                Some((start, bytes, to)) => (to + (address - start), start + bytes - address),
                None => (address, self.places.get(next).map_or(u64::MAX, |(start, ..)| start - address)),
            };
            let bytes = left.min(room);
            let short = u16::try_from(bytes).unwrap_or(u16::MAX);
            self.out.push(Access { address: to, bytes: short, ..*access });
            left -= bytes;
            if left == 0 {
                return;
            }
            address = address.wrapping_add(bytes);
        }
    }
}

impl AccessSink for Apart<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.inner.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.inner.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.inner.region_added(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.inner.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if self.places.is_empty() {
            return self.inner.accesses(batch);
        }
        self.out.clear();
        batch.iter().for_each(|access| self.push(access));
        self.inner.accesses(&self.out)
    }
}
