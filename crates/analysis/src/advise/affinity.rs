//! Which fields of one element are used close to each other (Chilimbi, Davidson, Larus, PLDI 1999).

use anytrace_core::access::TypeNumber;
use anytrace_core::hash::Map;

/// Accesses looked back on.
pub(super) const WINDOW: usize = 32;

/// Accesses that are all looked at; after them one burst of [`BURSTS`].
const ALL: u64 = 1 << 22;
/// log2 of the accesses of a burst.
const BURST_BITS: u32 = 13;
/// Of so many bursts one is looked at, and counts for all of them.
const BURSTS: u64 = 16;

/// Most pairs counted.
const PAIRS_MAX: usize = 1 << 18;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Touch {
    region: u64,
    element: u64,
    offset: u64,
}

/// Counts of pairs of offsets, by type.
#[derive(Debug)]
pub(super) struct Affinity {
    recent: [Touch; WINDOW],
    at: usize,
    /// Accesses so far.
    accesses: u64,
    pairs: Map<(TypeNumber, u64, u64), u64>,
}

impl Default for Affinity {
    fn default() -> Self {
        // No region has this number.
        let none = Touch { region: u64::MAX, ..Touch::default() };
        Self { recent: [none; WINDOW], at: 0, accesses: 0, pairs: Map::default() }
    }
}

impl Affinity {
    /// Takes an access to an element.
    pub(super) fn touch(&mut self, type_number: TypeNumber, region: u64, element: u64, offset: u64) {
        let Self { recent, at, accesses, pairs } = self;
        *accesses += 1;
        let weight = match *accesses {
            0..=ALL => 1,
            n if (n >> BURST_BITS).is_multiple_of(BURSTS) => BURSTS,
            _ => return,
        };
        let mut seen = [u64::MAX; WINDOW];
        let mut count = 0;
        for touch in recent.iter().filter(|touch| touch.region == region && touch.element == element) {
            let is_new = touch.offset != offset && !seen.get(..count).is_some_and(|seen| seen.contains(&touch.offset));
            if !is_new {
                continue;
            }
            if let Some(place) = seen.get_mut(count) {
                *place = touch.offset;
                count += 1;
            }
            let key = (type_number, offset.min(touch.offset), offset.max(touch.offset));
            let has_room = pairs.len() < PAIRS_MAX;
            match pairs.get_mut(&key) {
                Some(known) => *known += weight,
                None if has_room => drop(pairs.insert(key, weight)),
                None => {}
            }
        }
        if let Some(place) = recent.get_mut(*at) {
            *place = Touch { region, element, offset };
        }
        *at = (*at + 1) % WINDOW;
    }

    /// The pairs of offsets of each of so many types with how often they were close, ascending.
    pub(super) fn by_type(&self, types: usize) -> Vec<Vec<((u64, u64), u64)>> {
        let mut all = vec![Vec::new(); types];
        for (&(number, a, b), &count) in &self.pairs {
            if let Some(pairs) = all.get_mut(number as usize) {
                pairs.push(((a, b), count));
            }
        }
        all.iter_mut().for_each(|pairs| pairs.sort_unstable());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_of_one_element_within_the_window_are_close() {
        let mut affinity = Affinity::default();
        affinity.touch(0, 1, 0, 0);
        affinity.touch(0, 1, 0, 8);
        affinity.touch(0, 1, 1, 16);
        affinity.touch(0, 1, 0, 0);
        assert_eq!(affinity.by_type(1), [[((0, 8), 2)]]);
        (0..WINDOW as u64).for_each(|n| affinity.touch(1, 2, n, 0));
        affinity.touch(0, 1, 0, 24);
        assert_eq!(affinity.by_type(1), [[((0, 8), 2)]]);
    }
}
