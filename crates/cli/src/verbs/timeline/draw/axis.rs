//! The axis: labels of times, and a ruler below them.

use anytrace_analysis::directory::Directory;
use anytrace_analysis::overview::Picture;
use unicode_width::UnicodeWidthStr;

use crate::units::{Times, grouped};

/// Least columns between the labels of the axis.
const TICK_COLUMNS: usize = 11;

/// Labels of times, and a ruler below them.
pub(super) fn axis(picture: &Picture, width: usize, directory: &Directory, is_ascii: bool) -> [String; 2] {
    let source = directory.source();
    let times = Times(source.unit);
    let length = picture.to - picture.from;
    // Times count from the trace's start; what begins before it counts from the picture's.
    let zero = source.origin.min(picture.from);
    let columns_per_unit = width as f64 / (length.max(1)) as f64;
    let step_units = step(source.unit, TICK_COLUMNS as f64 / columns_per_unit);
    let mut ruler: Vec<&str> = vec![if is_ascii { "-" } else { "─" }; width];
    let mut labels = String::new();
    let offset = u128::from(picture.from - zero);
    let mut tick = offset.div_ceil(step_units.units) * step_units.units;
    while tick <= offset + u128::from(length) {
        let column = ((tick - offset) as f64 * columns_per_unit) as usize;
        if column >= width {
            break;
        }
        ruler[column] = if is_ascii { "+" } else { "┬" };
        let text = tick_label(tick, &step_units, times);
        // A label never runs into the one before it, nor out of the picture.
        if labels.width() <= column && column + text.width() <= width {
            labels.push_str(&" ".repeat(column - labels.width()));
            labels.push_str(&text);
            labels.push(' ');
        }
        tick += step_units.units;
    }
    [labels, ruler.concat()]
}

/// Distance of two marks of the axis.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// In the source's unit.
    units: u128,
    /// In nanoseconds, where the unit is of known length.
    ns: Option<u128>,
}

/// 1, 2 or 5 times a power of ten, at least `least` units long.
fn step(unit: anytrace_core::span::TimeUnit, least: f64) -> Step {
    let units_of = |n: u64| anytrace_analysis::filter::units_of_ns(n, unit).ok();
    let has_unit = units_of(1).is_some();
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    for n in powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit))) {
        let units = units_of(n).unwrap_or(n);
        if units as f64 >= least {
            return Step { units: u128::from(units.max(1)), ns: has_unit.then_some(u128::from(n)) };
        }
    }
    Step { units: u128::from(u64::MAX), ns: None }
}

/// A round time in the unit of its step: `0`, `1.5 ms`.
fn tick_label(tick: u128, step: &Step, times: Times) -> String {
    if tick == 0 {
        return "0".to_owned();
    }
    let Some(step_ns) = step.ns else { return times.length(tick) };
    // Marks are multiples of the step, whatever the rounding of ticks.
    let ns = tick / step.units * step_ns;
    let (unit, size) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let (integer, rest) = (ns / size, ns % size);
    let digits = size.to_string().len() - 1;
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{} {unit}", grouped(integer)),
        fraction => format!("{}.{fraction} {unit}", grouped(integer)),
    }
}
