//! Prints two graphs side by side: DOT as the peer does, CSV and JSON.

use std::io::{self, Write};

use anytrace_core::hash::Map;
use anytrace_export::cells::Cells;

use super::graph::CallStats;
use super::graph_diff::{Breach, GraphDiff, ROOT_NAME, Sides};
use super::graph_report::{GraphView, Stat, cut, escaped};
use super::palette::diverging;
use super::printing::{exponential, json_string};

/// Color of what only the first trace has.
const GONE: &str = "#FF0000";

/// Color of what only the second trace has.
const NEW: &str = "#00FF00";

/// Width of an edge that grew from zero: Graphviz does not accept an infinite width.
const WIDTH_MAX: f64 = 10.0;

impl GraphDiff {
    /// DOT, for Graphviz: relative changes as labels, colors and widths. Functions are numbered in order of their
    /// names, which are cut to `label_chars`.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn dot(&self, view: &GraphView, label_chars: usize, out: &mut dyn Write) -> io::Result<()> {
        let is_record = view.vertex_label != Stat::None;
        writeln!(out, "digraph xrayDiff {{")?;
        if is_record {
            writeln!(out, "node [shape=record]")?;
        }
        let has_root = self.calls().any(|(caller, ..)| caller.is_none());
        let mut names: Vec<Option<&str>> = self.functions().map(|(name, _)| Some(name)).collect();
        if has_root {
            names.push(None);
        }
        names.sort_by_key(|name| name.unwrap_or(ROOT_NAME));
        let numbers: Map<Option<&str>, usize> = names.iter().copied().zip(0..).collect();
        let number = |name: Option<&str>| numbers.get(&name).copied().unwrap_or_default();
        for (caller, callee, sides) in self.calls() {
            let (from, to) = (number(caller), number(Some(callee)));
            let caller = escaped(caller.unwrap_or(ROOT_NAME), false);
            let (tooltip, color) =
                (format!("{caller} -> {}", escaped(callee, false)), self.color(sides, view.edge_color));
            let width = self.shown_change(sides, view.edge_color).unwrap_or_default().max(1.0);
            let width = if width.is_finite() { width } else { WIDTH_MAX };
            write!(out, "F{from} -> F{to} [tooltip=\"{tooltip}\" label=\"{}\"", self.label(sides, view.edge_label))?;
            writeln!(out, " color=\"{color}\" labelfontcolor=\"{color}\" penwidth={width:.2}]")?;
        }
        let mut functions = self.functions();
        for (name, id) in names.into_iter().zip(0..) {
            // Names are those of the functions, in their order, and that of the root.
            let Some((name, sides)) = name.and_then(|_| functions.next()) else {
                writeln!(out, "F{id} [label=\"{ROOT_NAME}\"]")?;
                continue;
            };
            let (name, color) = (escaped(&cut(name, label_chars), is_record), self.color(sides, view.vertex_color));
            match self.label(sides, view.vertex_label).as_str() {
                "" => writeln!(out, "F{id} [label=\"{name}\" color=\"{color}\"]")?,
                label => writeln!(out, "F{id} [label=\"{{{name}|{label}}}\" color=\"{color}\"]")?,
            }
        }
        writeln!(out, "}}")
    }

    fn shown_change(&self, sides: &Sides, stat: Stat) -> Option<f64> {
        if stat == Stat::None { None } else { self.change(sides, stat) }
    }

    fn label(&self, sides: &Sides, stat: Stat) -> String {
        self.shown_change(sides, stat).map_or_else(String::new, percent)
    }

    fn color(&self, sides: &Sides, stat: Stat) -> String {
        match sides {
            [None, _] => NEW.to_owned(),
            [_, None] => GONE.to_owned(),
            _ => self.shown_change(sides, stat).map_or_else(|| "black".to_owned(), diverging),
        }
    }

    /// One line per function and per call; columns `kind,caller,callee,state` and, for each statistic, `STAT_a,STAT_b,
    /// STAT_change`. Times are in seconds, changes are relative; cells without a value are empty.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn csv(&self, cells: Cells, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "kind,caller,callee,state")?;
        for (_, name) in Stat::ALL {
            write!(out, ",{name}_a,{name}_b,{name}_change")?;
        }
        writeln!(out)?;
        for (name, sides) in self.functions() {
            write!(out, "function,,{},{}", cells.text(name), state(sides))?;
            self.csv_stats(sides, out)?;
        }
        for (caller, callee, sides) in self.calls() {
            let caller = cells.text(caller.unwrap_or_default());
            write!(out, "call,{caller},{},{}", cells.text(callee), state(sides))?;
            self.csv_stats(sides, out)?;
        }
        Ok(())
    }

    fn csv_stats(&self, sides: &Sides, out: &mut dyn Write) -> io::Result<()> {
        for (stat, _) in Stat::ALL {
            for (side, hz) in sides.iter().zip(self.cycle_frequencies) {
                match side {
                    Some(stats) if stat == Stat::Count => write!(out, ",{}", stats.count)?,
                    Some(stats) => write!(out, ",{}", exponential(stat.of(stats, hz)))?,
                    None => write!(out, ",")?,
                }
            }
            let change = self.change(sides, stat).filter(|change| change.is_finite());
            write!(out, ",{}", change.map_or_else(String::new, |change| format!("{change:.6}")))?;
        }
        writeln!(out)
    }

    /// One object with `version` 1. Of each function and call: statistics of both traces (`a`, `b`; null where
    /// missing), relative changes (null where a side is missing or was 0) and `failures`, the exceeded thresholds.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn json(&self, breaches: &[Breach], out: &mut dyn Write) -> io::Result<()> {
        let [a, b] = self.cycle_frequencies;
        write!(out, "{{\"version\":1,\"cycle_frequency_a\":{a},\"cycle_frequency_b\":{b},\"functions\":[")?;
        let mut separator = "\n";
        for (name, sides) in self.functions() {
            write!(out, "{separator}{{\"name\":{},{}}}", json_string(name), self.json_sides(sides))?;
            separator = ",\n";
        }
        write!(out, "\n],\"calls\":[")?;
        separator = "\n";
        for (caller, callee, sides) in self.calls() {
            let caller = caller.map_or_else(|| "null".to_owned(), json_string);
            write!(out, "{separator}{{\"caller\":{caller},\"callee\":{},", json_string(callee))?;
            write!(out, "{}}}", self.json_sides(sides))?;
            separator = ",\n";
        }
        write!(out, "\n],\"failures\":[")?;
        separator = "\n";
        for Breach { what, threshold, change } in breaches {
            let (what, stat, change) = (json_string(what), stat_name(threshold.statistic), json_change(Some(*change)));
            let max = json_change(Some(threshold.percent / 100.0));
            write!(out, "{separator}{{\"what\":{what},\"stat\":\"{stat}\",\"change\":{change},\"allowed\":{max}}}")?;
            separator = ",\n";
        }
        writeln!(out, "\n]}}")
    }

    fn json_sides(&self, sides: &Sides) -> String {
        let [a, b] = [0, 1].map(|n| match (&sides[n], self.cycle_frequencies[n]) {
            (Some(stats), hz) => json_stats(stats, hz),
            (None, _) => "null".to_owned(),
        });
        let changes = Stat::ALL.map(|(stat, name)| format!("\"{name}\":{}", json_change(self.change(sides, stat))));
        format!("\"state\":\"{}\",\"a\":{a},\"b\":{b},\"change\":{{{}}}", state(sides), changes.join(","))
    }
}

impl Breach {
    /// One line for people.
    pub fn line(&self) -> String {
        let (stat, allowed) = (stat_name(self.threshold.statistic), percent(self.threshold.percent / 100.0));
        format!("{}: {stat} changed by {}, allowed {allowed}", self.what, percent(self.change))
    }
}

fn state(sides: &Sides) -> &'static str {
    match sides {
        [None, _] => "new",
        [_, None] => "gone",
        _ => "both",
    }
}

fn stat_name(stat: Stat) -> &'static str {
    Stat::ALL.iter().find(|(other, _)| *other == stat).map_or("none", |(_, name)| name)
}

fn json_stats(stats: &CallStats, hz: u64) -> String {
    let all = Stat::ALL.map(|(stat, name)| match stat {
        Stat::Count => format!("\"{name}\":{}", stats.count),
        _ => format!("\"{name}\":{}", serde_json::Value::from(stat.of(stats, hz))),
    });
    format!("{{{}}}", all.join(","))
}

fn json_change(change: Option<f64>) -> String {
    // JSON has no infinite numbers: serde_json writes them as null.
    serde_json::Value::from(change.unwrap_or(f64::NAN)).to_string()
}

fn percent(change: f64) -> String {
    if change.is_infinite() { "INF".to_owned() } else { format!("{:.2}%", change * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_in_percent() {
        assert_eq!([0.389, -1.0, 0.0, f64::INFINITY].map(percent), ["38.90%", "-100.00%", "0.00%", "INF"]);
        assert_eq!(
            (json_change(Some(f64::INFINITY)), json_change(None), json_change(Some(0.5))),
            ("null".into(), "null".into(), "0.5".into())
        );
    }
}
