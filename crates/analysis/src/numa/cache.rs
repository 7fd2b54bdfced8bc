//! The private cache of a thread.

/// Its lines by set, those touched last first. Traces may have very many threads with few accesses, so that only those
/// with more get room for all sets.
#[derive(Debug)]
pub(super) struct PrivateCache {
    sets: u64,
    ways: usize,
    lines: Lines,
}

#[derive(Debug)]
enum Lines {
    /// Sets by number, in no order; up to [`FEW`].
    Few(Vec<(u64, Vec<u64>)>),
    /// `ways` lines for each set.
    All(Vec<u64>),
}

const FEW: usize = 8;

/// No line: addresses have more bits than lines' numbers.
const NONE: u64 = u64::MAX;

impl PrivateCache {
    /// Of this many lines, at least one.
    pub(super) fn new(lines: u64, ways: u64) -> Self {
        let ways = ways.clamp(1, lines.max(1));
        Self { sets: (lines / ways).max(1), ways: ways as usize, lines: Lines::Few(Vec::new()) }
    }

    /// Touches a line; true where it was not there.
    pub(super) fn touch(&mut self, line: u64) -> bool {
        let number = line % self.sets;
        if let Lines::Few(few) = &mut self.lines {
            if let Some((_, set)) = few.iter_mut().find(|(known, _)| *known == number) {
                if set.len() < self.ways && !set.contains(&line) {
                    set.insert(0, line);
                    return true;
                }
                return touch(set, line);
            }
            if few.len() < FEW {
                few.push((number, vec![line]));
                return true;
            }
            self.lines = Lines::All(all(few, self.sets as usize, self.ways));
        }
        let first = number as usize * self.ways;
        match &mut self.lines {
            Lines::All(all) => all.get_mut(first..first + self.ways).is_none_or(|set| touch(set, line)),
            Lines::Few(_) => true,
        }
    }
}

/// Room for all sets, with what the few have.
fn all(few: &[(u64, Vec<u64>)], sets: usize, ways: usize) -> Vec<u64> {
    let mut all = vec![NONE; sets * ways];
    for (number, set) in few {
        let places = all.iter_mut().skip(*number as usize * ways);
        places.zip(set).for_each(|(place, line)| *place = *line);
    }
    all
}

/// Puts a line first, in place of the last one where it is not there; true then.
fn touch(set: &mut [u64], line: u64) -> bool {
    let found = set.iter().position(|way| *way == line);
    let last = found.unwrap_or(set.len() - 1);
    set.copy_within(..last, 1);
    if let Some(way) = set.first_mut() {
        *way = line;
    }
    found.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_was_touched_longest_ago_makes_room() {
        let mut cache = PrivateCache::new(4, 2);
        let missed: Vec<bool> = [0, 2, 0, 4, 0, 2, 1, 1].into_iter().map(|line| cache.touch(line)).collect();
        assert_eq!(missed, [true, true, false, true, false, true, true, false]);
        assert!(PrivateCache::new(0, 8).touch(7));
    }

    #[test]
    fn few_sets_and_all_sets_have_the_same_lines() {
        let mut state = 1_u64;
        let mut cache = PrivateCache::new(64, 4);
        let mut sets = vec![Vec::new(); 16];
        for n in 0..5000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A few sets for long, then all.
            let line = (state >> 40) % 100 * 16 + (state >> 33) % if n < 1000 { 7 } else { 16 };
            let set: &mut Vec<u64> = &mut sets[(line % 16) as usize];
            let found = set.iter().position(|known| *known == line);
            found.map(|at| set.remove(at));
            set.insert(0, line);
            set.truncate(4);
            assert_eq!(cache.touch(line), found.is_none(), "{n}");
        }
    }
}
