//! `sim --interleave`: what misses in other orders of the threads.

use anytrace_analysis::cache::config::{Config, Policy};
use anytrace_analysis::cache::results::{ConfigResults, Results};
use anytrace_analysis::interleave::Schedule;
use anytrace_core::text::printable;
use serde_json::{Map, Value, json};

use super::super::schedules::{interleaved_json, range, range_json, schedule_json};
use super::{SimForm, Simulated};
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::units::grouped;

/// Refuses what cannot be simulated in other orders.
pub(super) fn refuse(configs: &[Config], form: SimForm) -> Result<(), Failure> {
    if form == SimForm::Csv {
        return Err(Failure::usage("--interleave works with text and JSON, not CSV"));
    }
    if configs.iter().flat_map(|config| &config.levels).any(|level| level.policy == Policy::Opt) {
        return Err(Failure::usage("policy opt needs the recorded order; it cannot be combined with --interleave"));
    }
    Ok(())
}

/// Counters of a configuration that follow from the order: misses of each level, then what coherence counts.
fn counters(found: &ConfigResults) -> Vec<(String, u64)> {
    let levels = found.levels.iter().map(|level| (format!("{} misses", level.name), level.counts.misses()));
    let coherence = found.coherence.iter().flat_map(|counts| counts.named()).map(|(name, n)| (name.to_owned(), n));
    levels.chain(coherence).collect()
}

/// The counters of a configuration in each order.
fn of_config(others: &[(Schedule, Results)], at: usize) -> Vec<(Schedule, Vec<(String, u64)>)> {
    others.iter().filter_map(|(order, results)| Some((*order, counters(results.configs.get(at)?)))).collect()
}

/// The least and greatest of each counter.
fn ranges(rows: &[(Schedule, Vec<(String, u64)>)]) -> Vec<(String, (u64, u64))> {
    let names = rows.first().map(|(_, row)| row.as_slice()).unwrap_or_default();
    let of = |at: usize| range(rows, |(_, row)| row.get(at).map_or(0, |(_, n)| *n));
    names.iter().enumerate().map(|(at, (name, _))| (name.clone(), of(at))).collect()
}

/// Tables for people; nothing where there is one order.
pub(super) fn page(simulated: &Simulated) -> String {
    let mut out = String::new();
    if simulated.others.is_empty() {
        return out;
    }
    out.push_str("\nSchedules; everything above is for the recorded order:\n");
    for (at, config) in simulated.results.configs.iter().enumerate() {
        let rows = of_config(&simulated.others, at);
        let (least, most) = ranges(&rows).into_iter().map(|(_, (min, max))| (min, max)).unzip::<_, _, Vec<_>, Vec<_>>();
        let mut columns = vec![("counter".to_owned(), Align::Left)];
        columns.extend(rows.iter().map(|(order, _)| (order.to_string(), Align::Right)));
        columns.push(("range".to_owned(), Align::Right));
        let columns: Vec<_> = columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
        let mut table = Table::new(&columns);
        let names = rows.first().map(|(_, row)| row.clone()).unwrap_or_default();
        for (counter, (name, _)) in names.iter().enumerate() {
            let number = |n: Option<u64>| grouped(u128::from(n.unwrap_or(0)));
            let each = rows.iter().map(|(_, row)| number(row.get(counter).map(|(_, n)| *n)));
            let (least, most) = (number(least.get(counter).copied()), number(most.get(counter).copied()));
            let cells = std::iter::once(printable(&name.replace('_', " "))).chain(each);
            table.row(cells.chain([format!("{least}..{most}")]).collect());
        }
        out.push_str(&format!("{}\n{}", printable(&config.config.name), table.render()));
    }
    out
}

/// Adds to an object for programs.
pub(super) fn add(object: &mut Value, simulated: &Simulated) {
    if simulated.others.is_empty() {
        return;
    }
    let configs = || simulated.results.configs.iter().enumerate().map(|(at, config)| (at, config.config.name.clone()));
    let named = |row: &[(String, u64)]| row.iter().map(|(name, n)| (name.clone(), json!(n))).collect::<Map<_, _>>();
    let rows = simulated.others.iter().map(|(order, results)| {
        let mut row = schedule_json(*order);
        let each =
            results.configs.iter().map(|found| (found.config.name.clone(), Value::Object(named(&counters(found)))));
        row["results"] = Value::Object(each.collect());
        row
    });
    object["schedules"] = rows.collect();
    let each = configs().map(|(at, name)| {
        let all = ranges(&of_config(&simulated.others, at)).into_iter().map(|(name, of)| (name, range_json(of)));
        (name, Value::Object(all.collect()))
    });
    object["range"] = Value::Object(each.collect());
    object["interleaved"] = interleaved_json(&simulated.interleaved);
}
