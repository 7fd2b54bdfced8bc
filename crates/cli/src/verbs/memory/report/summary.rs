//! What the page says first: the most important figures, each linked to the part that explains it.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};

use super::super::caches::described;
use super::Contents;
use super::caches::results;
use super::table::bytes;
use crate::units::{counted, percent};

/// The figures.
pub(super) fn body(contents: &Contents) -> String {
    let number = |value: u64| grouped(u128::from(value));
    let profile = &contents.profile;
    let mut out = format!(
        "<p>{} · {} records · caches: {} ({})</p>\n<dl>\n",
        xml(contents.format),
        number(profile.records),
        xml(&contents.config.name),
        xml(&described(&contents.config))
    );
    let sum = |of: fn(&anytrace_analysis::type_profile::Counts) -> u64| {
        profile.types.iter().map(|one| of(&one.counts)).sum::<u64>() + of(&profile.untyped)
    };
    card(&mut out, "Reads", "types", &number(sum(|counts| counts.reads)), "");
    card(&mut out, "Writes", "types", &number(sum(|counts| counts.writes)), "");
    for level in results(contents) {
        let (misses, all) = (level.counts.misses(), level.counts.misses() + level.counts.hits());
        let share = percent(misses as f64, all as f64);
        card(&mut out, &format!("{} misses", level.name), "caches", &number(misses), &share);
    }
    let lines = contents.reuse.curve.cold;
    card(&mut out, "Memory touched", "caches", &bytes(lines.saturating_mul(contents.reuse.line_bytes)), "");
    let found = &contents.lifetimes;
    if found.types.iter().any(|one| one.regions > 0) {
        card(&mut out, "Most live memory", "footprint", &bytes(found.live_bytes_peak), "");
        let leaked = found.types.iter().map(|one| (one.leaked, one.leaked_bytes));
        let (regions, lost) = leaked.fold((0, 0_u64), |(a, b), (c, d)| (a + c, b.saturating_add(d)));
        let remark = if regions == 0 { String::new() } else { counted(regions, "region") };
        card(&mut out, "Leaked", "leaks", &bytes(lost), &remark);
        let misuse = found.after_remove_count + found.unwritten_count;
        if misuse > 0 {
            card(&mut out, "Uses of freed or unwritten memory", "lifetimes", &number(misuse), "");
        }
    }
    let threads = contents.sharing.threads.len() as u64;
    card(&mut out, "Threads", "sharing", &number(threads), "");
    if threads > 1 {
        card(&mut out, "Misses by false sharing", "sharing", &number(contents.sharing.false_misses()), "");
    }
    out.push_str("</dl>\n");
    out
}

fn card(out: &mut String, name: &str, part: &str, figure: &str, remark: &str) {
    let remark = if remark.is_empty() { String::new() } else { format!(" <small>{}</small>", xml(remark)) };
    let _ = writeln!(out, "<div><dt>{}</dt><dd><a href=\"#{part}\">{}</a>{remark}</dd></div>", xml(name), xml(figure));
}
