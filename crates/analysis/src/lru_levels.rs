//! A small model of caches for what-if questions: levels of least-recently-used sets, write-back, allocating on writes,
//! neither inclusive nor exclusive. It says which level serves an access and nothing more.
//!
//! The full simulation is another engine; this one is cheap to have many of, one a question.

use std::fmt;

/// Most lines of a level: 1 GiB of 64-byte lines.
const LINES_MAX: u64 = 1 << 24;

/// Most lines of a set: they are looked through one by one.
const WAYS_MAX: u64 = 1 << 14;

/// Most levels.
const LEVELS_MAX: usize = 8;

/// Shape of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShape {
    /// Bytes it holds.
    pub size_bytes: u64,
    /// Bytes of a line: a power of two.
    pub line_bytes: u64,
    /// Lines of a set; 0 is fully associative.
    pub ways: u64,
}

impl fmt::Display for LevelShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size_bytes;
        match size {
            size if size >= 1 << 20 && size.is_multiple_of(1 << 20) => write!(f, "{} MiB", size >> 20)?,
            size if size.is_multiple_of(1 << 10) => write!(f, "{} KiB", size >> 10)?,
            size => write!(f, "{size} bytes")?,
        }
        match self.ways {
            0 => write!(f, " fully associative"),
            ways => write!(f, " {ways}-way"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Way {
    line: u64,
    is_dirty: bool,
}

#[derive(Debug, Clone)]
struct Level {
    shift: u32,
    sets: u64,
    ways: usize,
    /// Sets one after the other, each with its most recently used line first.
    lines: Vec<Vec<Way>>,
}

/// The levels.
#[derive(Debug, Clone)]
pub struct LruLevels {
    levels: Vec<Level>,
}

impl LruLevels {
    /// Caches of these shapes, the nearest first. `Err` says which shape cannot be and why.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn new(shapes: &[LevelShape]) -> Result<Self, String> {
        if shapes.is_empty() || shapes.len() > LEVELS_MAX {
            return Err(format!("expected 1 to {LEVELS_MAX} levels, found {}", shapes.len()));
        }
        let mut levels = Vec::new();
        for (number, shape) in (1..).zip(shapes) {
            let wrong = |what: &str| format!("level {number}: {what}");
            if !shape.line_bytes.is_power_of_two() || shape.line_bytes > 1 << 30 {
                return Err(wrong(&format!("line: expected a power of two, found {}", shape.line_bytes)));
            }
            let lines = shape.size_bytes / shape.line_bytes;
            if lines == 0 || lines > LINES_MAX {
                return Err(wrong(&format!("size: expected 1 to {LINES_MAX} lines, found {lines}")));
            }
            let ways = if shape.ways == 0 { lines } else { shape.ways };
            let sets = lines / ways;
            if sets == 0 {
                return Err(wrong(&format!("ways: expected at most {lines}, found {ways}")));
            }
            if ways > WAYS_MAX {
                return Err(wrong(&format!("ways: expected at most {WAYS_MAX}, found {ways}")));
            }
            let lines = vec![Vec::new(); usize::try_from(sets).map_err(|_| wrong("size: too large"))?];
            let ways = usize::try_from(ways).map_err(|_| wrong("ways: too many"))?;
            levels.push(Level { shift: shape.line_bytes.trailing_zeros(), sets, ways, lines });
        }
        Ok(Self { levels })
    }

    /// Number of levels.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The level that serves an access, from 0; [`Self::levels`] is memory. That of its farthest line; 0 for an access of
    /// no bytes.
    pub fn access(&mut self, address: u64, bytes: u16, is_write: bool) -> usize {
        if bytes == 0 {
            return 0;
        }
        let shift = self.levels.first().map_or(6, |level| level.shift);
        let first = address >> shift;
        // Lines of an access that wraps go on from 0.
        let last = address.wrapping_add(u64::from(bytes) - 1) >> shift;
        let mask = u64::MAX >> shift;
        let mut worst = self.touch(0, first << shift, is_write);
        let mut line = first;
        while line != last {
            line = line.wrapping_add(1) & mask;
            worst = worst.max(self.touch(0, line << shift, is_write));
        }
        worst
    }

    /// Asks a level for the line of an address.
    fn touch(&mut self, number: usize, address: u64, is_write: bool) -> usize {
        let Some(level) = self.levels.get_mut(number) else { return number };
        let line = address >> level.shift;
        let Some(set) = level.set(line) else { return number };
        if let Some(at) = set.iter().position(|way| way.line == line)
            && let Some(found) = set.get_mut(..=at)
        {
            // The touched line becomes the first, the others move on.
            found.rotate_right(1);
            if let Some(way) = found.first_mut() {
                way.is_dirty |= is_write;
            }
            return number;
        }
        let served = self.touch(number + 1, address, false);
        self.install(number, line, is_write);
        served
    }

    fn install(&mut self, number: usize, line: u64, is_dirty: bool) {
        let Some(level) = self.levels.get_mut(number) else { return };
        let (shift, ways) = (level.shift, level.ways);
        let Some(set) = level.set(line) else { return };
        let victim = if set.len() >= ways { set.pop() } else { None };
        set.insert(0, Way { line, is_dirty });
        if let Some(victim) = victim.filter(|victim| victim.is_dirty) {
            self.write_back(number + 1, victim.line << shift);
        }
    }

    fn write_back(&mut self, number: usize, address: u64) {
        let Some(level) = self.levels.get_mut(number) else { return };
        let line = address >> level.shift;
        let Some(set) = level.set(line) else { return };
        if let Some(at) = set.iter().position(|way| way.line == line)
            && let Some(found) = set.get_mut(..=at)
        {
            found.rotate_right(1);
            if let Some(way) = found.first_mut() {
                way.is_dirty = true;
            }
            return;
        }
        self.install(number, line, true);
    }
}

impl Level {
    fn set(&mut self, line: u64) -> Option<&mut Vec<Way>> {
        let set = if self.sets.is_power_of_two() { line & (self.sets - 1) } else { line % self.sets };
        self.lines.get_mut(usize::try_from(set).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size_bytes: u64, ways: u64) -> LevelShape {
        LevelShape { size_bytes, line_bytes: 64, ways }
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = LruLevels::new(&[shape(128, 0), shape(256, 0)]).unwrap();
        let mut at = |line: u64| cache.access(line * 64, 8, false);
        assert_eq!([0, 1, 0, 2, 1, 0].map(&mut at), [2, 2, 0, 2, 1, 1]);
        assert_eq!([3, 4, 5, 6, 0].map(&mut at), [2, 2, 2, 2, 2]);
    }

    #[test]
    fn an_access_over_two_lines_is_served_by_the_farther() {
        let mut cache = LruLevels::new(&[shape(4096, 4)]).unwrap();
        assert_eq!(cache.access(0, 8, true), 1);
        assert_eq!(cache.access(60, 8, false), 1);
        assert_eq!(cache.access(60, 8, false), 0);
        assert_eq!(cache.access(u64::MAX, 2, false), 1);
        assert_eq!((cache.access(0, 1, false), cache.access(u64::MAX, 0, false)), (0, 0));
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        let wrong = |size, line_bytes, ways| LruLevels::new(&[LevelShape { size_bytes: size, line_bytes, ways }]).err();
        assert!(wrong(64, 48, 1).unwrap().contains("power of two"));
        assert!(wrong(32, 64, 1).unwrap().contains("size"));
        assert!(wrong(u64::MAX, 64, 1).unwrap().contains("size"));
        assert!(wrong(128, 64, 3).unwrap().contains("ways"));
        assert!(LruLevels::new(&[]).is_err());
    }
}
