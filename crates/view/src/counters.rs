//! Values that change over time, as lines.

use anytrace_core::hash::Map;

/// Points of a line; where there are more, neighbors are merged.
const POINTS_MAX: usize = 1 << 16;

/// Lines that are shown.
const SERIES_MAX: usize = 256;

/// The values between the time of a point and that of the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) time: u64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The value at the end.
    pub(crate) last: f64,
}

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its name.
    pub(crate) name: String,
    /// Its track, if it belongs to one.
    pub(crate) track: Option<u32>,
    points: Vec<Point>,
    /// How many values make a point, and how many the last has.
    each: usize,
    in_last: usize,
}

impl Series {
    /// A line without points.
    pub(crate) fn new(name: String, track: Option<u32>) -> Self {
        Self { name, track, points: Vec::new(), each: 1, in_last: 0 }
    }

    /// True where there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Adds a value; times do not go back.
    pub(crate) fn push(&mut self, time: u64, value: f64) {
        if let Some(last) = self.points.last_mut().filter(|last| self.in_last < self.each || last.time >= time) {
            (last.low, last.high, last.last) = (last.low.min(value), last.high.max(value), value);
            self.in_last += 1;
            return;
        }
        if self.points.len() >= POINTS_MAX {
            self.merge();
        }
        self.points.push(Point { time, low: value, high: value, last: value });
        self.in_last = 1;
    }

    /// Makes one point of two.
    fn merge(&mut self) {
        let joined = |pair: &[Point]| match pair {
            [one, next] => {
                Point { time: one.time, low: one.low.min(next.low), high: one.high.max(next.high), last: next.last }
            }
            [one, ..] => *one,
            [] => Point { time: 0, low: 0.0, high: 0.0, last: 0.0 },
        };
        self.points = self.points.chunks(2).map(joined).collect();
        self.each *= 2;
        self.in_last = self.each;
    }

    /// The points of a window, no closer than a pixel: the first has the value with which the window begins.
    pub(crate) fn within(&self, start: u64, end: u64, pixel: u64) -> Vec<Point> {
        let first = self.points.partition_point(|point| point.time <= start).saturating_sub(1);
        let mut found: Vec<Point> = Vec::new();
        for point in self.points.iter().skip(first).take_while(|point| point.time <= end) {
            match found.last_mut() {
                Some(last) if point.time.saturating_sub(last.time) < pixel => {
                    (last.low, last.high, last.last) = (last.low.min(point.low), last.high.max(point.high), point.last);
                }
                _ => found.push(*point),
            }
        }
        found
    }
}

/// The lines of a trace.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    series: Vec<Series>,
    numbers: Map<(u32, u32), usize>,
}

impl Counters {
    /// Adds a value of the counter with this name on a track.
    pub(crate) fn add(&mut self, (track, name): (u32, u32), text: impl FnOnce() -> String, time: u64, value: f64) {
        let known = self.numbers.get(&(track, name)).copied();
        let number = match known {
            Some(number) => number,
            None if self.series.len() < SERIES_MAX => {
                self.series.push(Series::new(text(), Some(track)));
                self.numbers.insert((track, name), self.series.len() - 1);
                self.series.len() - 1
            }
            None => return,
        };
        if let Some(series) = self.series.get_mut(number) {
            series.push(time, value);
        }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, series: Series) {
        self.series.push(series);
    }

    /// All lines.
    pub(crate) fn all(&self) -> &[Series] {
        &self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(points: &[Point]) -> Vec<(u64, f64, f64)> {
        points.iter().map(|point| (point.time, point.low, point.high)).collect()
    }

    #[test]
    fn a_window_begins_with_the_value_before_it_and_merges_what_is_closer_than_a_pixel() {
        let mut series = Series::new("x".into(), None);
        for (time, value) in [(0, 1.0), (10, 5.0), (11, 2.0), (30, 7.0)] {
            series.push(time, value);
        }
        assert_eq!(values(&series.within(5, 20, 1)), [(0, 1.0, 1.0), (10, 5.0, 5.0), (11, 2.0, 2.0)]);
        assert_eq!(values(&series.within(10, 40, 5)), [(10, 2.0, 5.0), (30, 7.0, 7.0)]);
        assert!(series.within(0, 40, 1).len() == 4 && Series::new("y".into(), None).within(0, 9, 1).is_empty());
    }

    #[test]
    fn a_line_of_any_length_has_bounded_points_and_no_value_is_lost() {
        let mut series = Series::new("x".into(), None);
        let count = 5 * POINTS_MAX as u64;
        (0..count).for_each(|time| series.push(time, if time == 4321 { 9.0 } else { (time % 3) as f64 }));
        assert!(series.points.len() <= POINTS_MAX, "{}", series.points.len());
        let all = series.within(0, count, count);
        assert_eq!((all[0].low, all[0].high, all[0].last), (0.0, 9.0, ((count - 1) % 3) as f64));
        let near = series.within(4320, 4321, 1);
        assert!(near.iter().any(|point| point.high == 9.0), "{near:?}");
    }
}
