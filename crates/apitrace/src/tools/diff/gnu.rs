//! Finds the lines of two texts that differ. Among several shortest differences it makes the choice of GNU diff.
//!
//! Uses Myers' algorithm in linear space. Lines that the other text lacks, and most very frequent lines near those, are
//! set aside first. GNU diff's heuristics for texts that differ in hundreds of lines are omitted.

use std::collections::HashMap;

/// Which lines of each text the other does not have.
pub(crate) fn changed(a: &[u64], b: &[u64]) -> [Vec<bool>; 2] {
    let prefix = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (a.get(prefix..).unwrap_or_default(), b.get(prefix..).unwrap_or_default());
    let suffix = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let middle_a = rest_a.get(..rest_a.len() - suffix).unwrap_or_default();
    let middle_b = rest_b.get(..rest_b.len() - suffix).unwrap_or_default();
    let mut flags = [vec![false; a.len()], vec![false; b.len()]];
    let kept = [kept(middle_a, middle_b), kept(middle_b, middle_a)];
    for ((flags, kept), middle) in flags.iter_mut().zip(&kept).zip([middle_a, middle_b]) {
        // Lines set aside count as changed. Comparing the rest adds more.
        flags.get_mut(prefix..prefix + middle.len()).into_iter().for_each(|part| part.fill(true));
        for at in kept {
            set(flags, prefix + at, false);
        }
    }
    let of = |middle: &[u64], kept: &[usize]| kept.iter().filter_map(|at| middle.get(*at).copied()).collect::<Vec<_>>();
    let [kept_a, kept_b] = &kept;
    let (x, y) = (of(middle_a, kept_a), of(middle_b, kept_b));
    let [flags_a, flags_b] = &mut flags;
    LineComparison::new(&x, &y).compare(&mut |is_first, at| {
        let (flags, kept) = if is_first { (&mut *flags_a, kept_a) } else { (&mut *flags_b, kept_b) };
        if let Some(place) = kept.get(at) {
            set(flags, prefix + place, true);
        }
    });
    flags
}

fn set(flags: &mut [bool], at: usize, value: bool) {
    if let Some(flag) = flags.get_mut(at) {
        *flag = value;
    }
}

/// Whether a line is set aside before the texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    No,
    /// The other text does not have it.
    Yes,
    /// The other text has it very often.
    Perhaps,
}

/// The lines that are compared.
fn kept(lines: &[u64], other: &[u64]) -> Vec<usize> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for line in other {
        *counts.entry(*line).or_default() += 1;
    }
    let (mut many, mut rest) = (5, lines.len() / 64 / 4);
    while rest > 0 {
        many *= 2;
        rest /= 4;
    }
    let mut aside: Vec<Aside> = lines
        .iter()
        .map(|line| match counts.get(line).copied().unwrap_or(0) {
            0 => Aside::Yes,
            count if count > many => Aside::Perhaps,
            _ => Aside::No,
        })
        .collect();
    settle(&mut aside);
    aside.iter().enumerate().filter(|(_, what)| **what == Aside::No).map(|(at, _)| at).collect()
}

/// Very frequent lines are set aside only among lines that are certainly set aside.
fn settle(aside: &mut [Aside]) {
    let mut at = 0;
    while let Some(what) = aside.get(at).copied() {
        if what != Aside::Yes {
            if let Some(place) = aside.get_mut(at) {
                *place = Aside::No;
            }
            at += 1;
            continue;
        }
        let rest = aside.get_mut(at..).unwrap_or_default();
        let mut length = rest.iter().take_while(|what| **what != Aside::No).count();
        let run = rest.get_mut(..length).unwrap_or_default();
        for what in run.iter_mut().rev().take_while(|what| **what == Aside::Perhaps) {
            *what = Aside::No;
            length -= 1;
        }
        settle_run(rest.get_mut(..length).unwrap_or_default());
        at += length.max(1);
    }
}

/// A run of lines to set aside, of which the first and last are certain.
fn settle_run(run: &mut [Aside]) {
    let perhaps = run.iter().filter(|what| **what == Aside::Perhaps).count();
    if perhaps * 4 > run.len() {
        return run.iter_mut().filter(|what| **what == Aside::Perhaps).for_each(|what| *what = Aside::No);
    }
    // About the square root of a quarter of the length: this many in a row are kept.
    let (mut least, mut rest) = (1, run.len() / 4 / 4);
    while rest > 0 {
        least *= 2;
        rest /= 4;
    }
    for part in run.chunk_by_mut(|x, y| x == y) {
        if part.first() == Some(&Aside::Perhaps) && part.len() > least {
            part.fill(Aside::No);
        }
    }
    ends(&mut run.iter_mut());
    ends(&mut run.iter_mut().rev());
}

/// Near the ends of a run, lines are set aside only after three certain ones in a row, or after eight lines.
fn ends(run: &mut dyn Iterator<Item = &mut Aside>) {
    let mut in_a_row = 0;
    for (at, what) in run.enumerate() {
        match *what {
            Aside::Yes if at >= 8 => return,
            Aside::Yes => in_a_row += 1,
            Aside::Perhaps | Aside::No => {
                in_a_row = 0;
                *what = Aside::No;
            }
        }
        if in_a_row == 3 {
            return;
        }
    }
}

/// A part of both texts: start and end in the first, start and end in the second.
type Part = (isize, isize, isize, isize);

struct LineComparison<'a> {
    x: &'a [u64],
    y: &'a [u64],
    /// By diagonal: the position reached in the first text, from the start and from the end.
    forward: Vec<isize>,
    backward: Vec<isize>,
}

impl<'a> LineComparison<'a> {
    fn new(x: &'a [u64], y: &'a [u64]) -> Self {
        let diagonals = x.len() + y.len() + 3;
        Self { x, y, forward: vec![0; diagonals], backward: vec![0; diagonals] }
    }

    fn agree(&self, x: isize, y: isize) -> bool {
        let of = |lines: &[u64], at: isize| lines.get(usize::try_from(at).ok()?).copied();
        matches!((of(self.x, x), of(self.y, y)), (Some(x), Some(y)) if x == y)
    }

    /// Reports each line that differs: whether it is in the first text, and its index.
    fn compare(&mut self, report: &mut dyn FnMut(bool, usize)) {
        let all = (0, self.x.len().cast_signed(), 0, self.y.len().cast_signed());
        let mut todo = vec![all];
        while let Some((mut x, mut x_end, mut y, mut y_end)) = todo.pop() {
            while x < x_end && y < y_end && self.agree(x, y) {
                (x, y) = (x + 1, y + 1);
            }
            while x < x_end && y < y_end && self.agree(x_end - 1, y_end - 1) {
                (x_end, y_end) = (x_end - 1, y_end - 1);
            }
            if x == x_end || y == y_end {
                (x..x_end).for_each(|at| report(true, at.cast_unsigned()));
                (y..y_end).for_each(|at| report(false, at.cast_unsigned()));
                continue;
            }
            let (x_middle, y_middle) = self.middle((x, x_end, y, y_end));
            todo.push((x_middle, x_end, y_middle, y_end));
            todo.push((x, x_middle, y, y_middle));
        }
    }

    fn place(&self, diagonal: isize) -> usize {
        (diagonal + self.y.len().cast_signed() + 1).cast_unsigned()
    }

    fn get(&self, vector: &[isize], diagonal: isize) -> isize {
        vector.get(self.place(diagonal)).copied().unwrap_or(0)
    }

    fn put(&mut self, is_forward: bool, diagonal: isize, value: isize) {
        let place = self.place(diagonal);
        let vector = if is_forward { &mut self.forward } else { &mut self.backward };
        if let Some(slot) = vector.get_mut(place) {
            *slot = value;
        }
    }

    /// A point near the middle of a shortest edit path through a part.
    fn middle(&mut self, (x_start, x_end, y_start, y_end): Part) -> (isize, isize) {
        let (least, most) = (x_start - y_end, x_end - y_start);
        let (from, to) = (x_start - y_start, x_end - y_end);
        let is_odd = (from - to) & 1 != 0;
        let (mut ahead, mut back) = ((from, from), (to, to));
        self.put(true, from, x_start);
        self.put(false, to, x_end);
        loop {
            ahead = self.widen(true, ahead, (least, most), -1);
            let mut diagonal = ahead.1;
            while diagonal >= ahead.0 {
                let (low, high) = (self.get(&self.forward, diagonal - 1), self.get(&self.forward, diagonal + 1));
                let mut x = if low < high { high } else { low + 1 };
                let mut y = x - diagonal;
                while x < x_end && y < y_end && self.agree(x, y) {
                    (x, y) = (x + 1, y + 1);
                }
                self.put(true, diagonal, x);
                if is_odd && (back.0..=back.1).contains(&diagonal) && self.get(&self.backward, diagonal) <= x {
                    return (x, y);
                }
                diagonal -= 2;
            }
            back = self.widen(false, back, (least, most), isize::MAX);
            let mut diagonal = back.1;
            while diagonal >= back.0 {
                let (low, high) = (self.get(&self.backward, diagonal - 1), self.get(&self.backward, diagonal + 1));
                let mut x = if low < high { low } else { high - 1 };
                let mut y = x - diagonal;
                while x_start < x && y_start < y && self.agree(x - 1, y - 1) {
                    (x, y) = (x - 1, y - 1);
                }
                self.put(false, diagonal, x);
                if !is_odd && (ahead.0..=ahead.1).contains(&diagonal) && x <= self.get(&self.forward, diagonal) {
                    return (x, y);
                }
                diagonal -= 2;
            }
        }
    }

    /// Extends the range by one diagonal on each side, within bounds.
    fn widen(
        &mut self,
        is_forward: bool,
        (mut low, mut high): (isize, isize),
        (least, most): (isize, isize),
        beyond: isize,
    ) -> (isize, isize) {
        if low > least {
            low -= 1;
            self.put(is_forward, low - 1, beyond);
        } else {
            low += 1;
        }
        if high < most {
            high += 1;
            self.put(is_forward, high + 1, beyond);
        } else {
            high -= 1;
        }
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number of common lines, computed in the slow obvious way.
    fn common(a: &[u64], b: &[u64]) -> usize {
        let mut best = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                best[i + 1][j + 1] = if a[i] == b[j] { best[i][j] + 1 } else { best[i][j + 1].max(best[i + 1][j]) };
            }
        }
        best[a.len()][b.len()]
    }

    fn unchanged(lines: &[u64], flags: &[bool]) -> Vec<u64> {
        lines.iter().zip(flags).filter(|(_, changed)| !**changed).map(|(line, _)| *line).collect()
    }

    proptest! {
        #[test]
        fn unchanged_lines_are_equal_and_as_many_as_possible(
            a in proptest::collection::vec(0_u64..6, 0..30),
            b in proptest::collection::vec(0_u64..6, 0..30),
        ) {
            let [in_a, in_b] = changed(&a, &b);
            let same = unchanged(&a, &in_a);
            prop_assert_eq!(&same, &unchanged(&b, &in_b));
            let mut lines = LineComparison::new(&a, &b);
            let mut differing = 0;
            lines.compare(&mut |_, _| differing += 1);
            prop_assert_eq!(differing, a.len() + b.len() - 2 * common(&a, &b));
        }
    }
}
