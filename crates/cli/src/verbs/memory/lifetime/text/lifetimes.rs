//! How long regions lived: by type, and in powers of two.

use anytrace_analysis::lifetimes::{Lifetimes, TypeLife};
use anytrace_core::access::TypeNumber;

use super::{SPARKS, number};
use crate::table::{Align, Table};
use crate::units::counted;
use crate::verbs::memory::caches::bytes;
use crate::verbs::memory::type_label::type_label;

/// Most types in the table.
const TYPES_MAX: usize = 200;

pub(super) fn table(found: &Lifetimes) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        right("regions"),
        right("bytes"),
        right("shortest"),
        right("median"),
        right("90%"),
        right("longest"),
        right("leaked"),
        right("untouched"),
        right("peak live"),
        ("type", Align::Left),
        ("live over time", Align::Left),
    ]);
    let mut order: Vec<(TypeNumber, &TypeLife)> = (0..).zip(&found.types).filter(|(_, one)| one.regions > 0).collect();
    order.sort_by_key(|(at, one)| (std::cmp::Reverse(one.live_bytes_peak), *at));
    let left_out = order.len().saturating_sub(TYPES_MAX);
    for (at, one) in order.into_iter().take(TYPES_MAX) {
        let lifetime = |numerator| one.lifetimes.fraction(numerator, 100).map_or_else(|| "·".to_owned(), number);
        let some = |count| if count == 0 { "·".to_owned() } else { number(count) };
        table.row(vec![
            number(one.regions),
            bytes(one.bytes),
            lifetime(0),
            lifetime(50),
            lifetime(90),
            lifetime(100),
            some(one.leaked),
            some(one.untouched),
            bytes(one.live_bytes_peak),
            type_label(found.table.name(at)),
            one.live.sparkline(SPARKS),
        ]);
    }
    let mut out = format!("Lifetimes, in records\n{}", table.render());
    if left_out > 0 {
        let left_out = counted(left_out as u64, "more type");
        out.push_str(&format!("  … {left_out} with fewer bytes: --format json lists all\n"));
    }
    out
}

/// How many regions lived how long, in powers of two.
pub(super) fn histogram(found: &Lifetimes) -> String {
    let mut classes = [0_u64; 65];
    for (lifetime, count) in found.types.iter().flat_map(|one| one.lifetimes.counts()) {
        let class = (u64::BITS - lifetime.leading_zeros()) as usize;
        if let Some(place) = classes.get_mut(class) {
            *place += count;
        }
    }
    let most = classes.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    const WIDTH: u64 = 40;
    let mut table = Table::new(&[("records", Align::Right), ("regions", Align::Right), ("", Align::Left)]);
    for (class, count) in classes.iter().enumerate().filter(|(_, count)| **count > 0) {
        let from = if class == 0 { 0 } else { 1_u64 << (class - 1) };
        let bar = (u128::from(*count) * u128::from(WIDTH)).div_ceil(u128::from(most));
        let bar = "█".repeat(usize::try_from(bar).unwrap_or(0));
        table.row(vec![format!("from {}", number(from)), number(*count), bar]);
    }
    format!("\n{}", table.render())
}
