//! The state of each line: a table with open addressing, 16 bytes per line and some to spare.

use anytrace_core::hash::Key;

/// The slot of a place in the table that is not used.
const EMPTY: u32 = u32::MAX;

/// The slot of a line that is being touched.
pub(super) const NO_SLOT: u32 = u32::MAX - 1;

/// Fewest places.
const PLACES_MIN: usize = 1 << 6;

/// Most places that a table keeps when its lines are cleared.
const PLACES_KEPT: usize = 1 << 12;

/// A line and its last touch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Address divided by the line's size.
    number: u64,
    /// Slot of the last touch.
    pub(super) slot: u32,
    /// Epoch of the last touch.
    pub(super) epoch: u32,
}

const FREE: Line = Line { number: 0, slot: EMPTY, epoch: 0 };

/// All lines.
#[derive(Debug)]
pub(super) struct LineTable {
    places: Vec<Line>,
    used: usize,
    key: Key,
}

impl LineTable {
    pub(super) fn new() -> Self {
        Self { places: vec![FREE; PLACES_MIN], used: 0, key: Key::new() }
    }

    /// Removes all lines; keeps the table if it is small.
    pub(super) fn clear(&mut self) {
        if self.places.len() > PLACES_KEPT {
            self.places = vec![FREE; PLACES_MIN];
        } else {
            self.places.fill(FREE);
        }
        self.used = 0;
    }

    /// Lines in the table.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    #[inline]
    fn home(&self, number: u64) -> usize {
        // The number of places is a power of two.
        self.key.hash(number) as usize & (self.places.len() - 1)
    }

    /// Reads the place where a line is looked for first.
    #[inline]
    pub(super) fn look_at(&self, number: u64) -> u32 {
        self.places.get(self.home(number)).map_or(0, |line| line.slot)
    }

    /// The line's place; a new line gets one, without a slot.
    #[inline]
    pub(super) fn enter(&mut self, number: u64) -> (&mut Line, bool) {
        if (self.used + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let mut at = self.home(number);
        loop {
            match self.places.get(at) {
                Some(line) if line.slot == EMPTY => break,
                Some(line) if line.number == number => {
                    let line = self.places.get_mut(at).expect("the place was read just now");
                    return (line, false);
                }
                _ => at = (at + 1) & mask,
            }
        }
        self.used += 1;
        let line = self.places.get_mut(at).expect("the mask keeps places inside the table");
        *line = Line { number, slot: NO_SLOT, epoch: 0 };
        (line, true)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let places = self.places.len() * 2;
        let old = std::mem::replace(&mut self.places, vec![FREE; places]);
        for line in old.into_iter().filter(|line| line.slot != EMPTY) {
            let mut at = self.home(line.number);
            while self.places.get(at).is_some_and(|place| place.slot != EMPTY) {
                at = (at + 1) & (places - 1);
            }
            if let Some(place) = self.places.get_mut(at) {
                *place = line;
            }
        }
    }

    /// Removes a line; returns its state.
    pub(super) fn remove(&mut self, number: u64) -> Option<Line> {
        let mask = self.places.len() - 1;
        let mut at = self.home(number);
        let found = loop {
            match self.places.get(at)? {
                line if line.slot == EMPTY => return None,
                line if line.number == number => break *line,
                _ => at = (at + 1) & mask,
            }
        };
        self.used -= 1;
        // Lines after the gap move into it, unless that would put them before their home.
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let line = *self.places.get(next)?;
            if line.slot == EMPTY {
                break;
            }
            let home = self.home(line.number);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(at) & mask {
                *self.places.get_mut(at)? = line;
                at = next;
            }
        }
        *self.places.get_mut(at)? = FREE;
        Some(found)
    }

    /// Every line.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        self.places.iter_mut().filter(|line| line.slot != EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_table_agrees_with_a_map_while_lines_come_and_go() {
        let (mut lines, mut map) = (LineTable::new(), HashMap::new());
        let mut state = 3_u64;
        for step in 0..60_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Numbers near each other and far apart.
            let number = if state & 1 << 40 == 0 { state >> 52 } else { (state >> 52) << 50 };
            if (state >> 33).is_multiple_of(3) {
                assert_eq!(lines.remove(number).map(|line| line.epoch), map.remove(&number));
            } else {
                let (line, is_new) = lines.enter(number);
                assert_eq!((line.epoch, is_new), (map.get(&number).copied().unwrap_or(0), !map.contains_key(&number)));
                line.epoch = step;
                map.insert(number, step);
            }
            assert_eq!(lines.len(), map.len());
        }
        assert_eq!(lines.iter_mut().count(), map.len());
    }
}
