//! `compare` for people.

use anytrace_analysis::cache::compare::{Pair, Statistic, Subject};
use anytrace_core::text::printable;

use super::super::sim::Simulated;
use super::{Comparison, subject};
use crate::paint;
use crate::table::{Align, Table};
use crate::units::{self, grouped};

pub(super) fn page(sides: &[Simulated; 2], comparisons: &[Comparison], top: usize) -> String {
    let (bold, red) = (paint::BOLD, paint::severity(anytrace_core::Severity::Error));
    let [base, shown] = sides;
    let mut out = format!("{bold}{} against {}{bold:#}\n", printable(&shown.name), printable(&base.name));
    for comparison in comparisons {
        out.push_str(&format!("\n{bold}{}{bold:#}\n", printable(&comparison.config)));
        let mut columns = vec![("", Align::Left)];
        for statistic in Statistic::ALL {
            let word = if statistic == Statistic::Writebacks { "written back" } else { statistic.word() };
            columns.extend([(word, Align::Right), ("was", Align::Right), ("growth", Align::Right)]);
        }
        let mut table = Table::new(&columns);
        let untyped =
            comparison.pairs.iter().filter(|p| matches!(p.subject, Subject::All | Subject::Level(..))).count();
        for pair in comparison.pairs.iter().take(untyped.saturating_add(top)) {
            let mut cells = vec![subject(pair)];
            for statistic in Statistic::ALL {
                match pair.both(statistic) {
                    Some((base, shown)) => {
                        cells.extend([grouped(shown.into()), grouped(base.into()), growth(pair, statistic)]);
                    }
                    None => cells.extend([String::new(), String::new(), String::new()]),
                }
            }
            table.row(cells);
        }
        out.push_str(&table.render());
        let left = comparison.pairs.len().saturating_sub(untyped.saturating_add(top));
        if left > 0 {
            out.push_str(&format!("  … and {left} more types\n"));
        }
        for (at, threshold) in &comparison.exceeded {
            let Some(pair) = comparison.pairs.get(*at) else { continue };
            let (word, most) = (threshold.statistic.word(), threshold.percent);
            let grown = growth(pair, threshold.statistic);
            out.push_str(&format!(
                "{red}above{red:#}: {word} of {} {grown}, at most +{most}% allowed\n",
                subject(pair)
            ));
        }
    }
    out
}

/// Growth for people.
fn growth(pair: &Pair, statistic: Statistic) -> String {
    units::growth(pair.base.is_some(), pair.shown.is_some(), pair.growth_percent(statistic))
}
