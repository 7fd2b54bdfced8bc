//! Prints call graphs: DOT as the peer does, CSV and JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anytrace_core::span::Symbols;
use anytrace_core::text;
use anytrace_export::cells::Cells;

use super::graph::{CallEdge, CallGraph, CallStats, ROOT};
use super::palette::sequential;
use super::printing::{exponential, json_string};

/// Characters of a function's name in a label.
const LABEL_CHARS: usize = 40;

/// A statistic to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stat {
    /// Nothing.
    #[default]
    None,
    /// Calls.
    Count,
    /// Shortest call.
    Min,
    /// Median.
    Med,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// Longest call.
    Max,
    /// Sum over all calls.
    Sum,
}

impl Stat {
    /// All except `None`, with their names in outputs and options.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Count, "count"),
        (Self::Min, "min"),
        (Self::Med, "med"),
        (Self::P90, "90p"),
        (Self::P99, "99p"),
        (Self::Max, "max"),
        (Self::Sum, "sum"),
    ];

    /// The value: calls, or seconds; ticks where the frequency is unknown (0).
    pub fn of(self, stats: &CallStats, cycle_frequency: u64) -> f64 {
        let ticks = match self {
            Self::None => return 0.0,
            Self::Count => return stats.count as f64,
            Self::Min => stats.min as f64,
            Self::Med => stats.median as f64,
            Self::P90 => stats.p90 as f64,
            Self::P99 => stats.p99 as f64,
            Self::Max => stats.max as f64,
            Self::Sum => stats.sum as f64,
        };
        if cycle_frequency == 0 { ticks } else { ticks / cycle_frequency as f64 }
    }

    fn shown(self, stats: &CallStats, cycle_frequency: u64) -> String {
        match self {
            Self::None => String::new(),
            Self::Count => stats.count.to_string(),
            _ => exponential(self.of(stats, cycle_frequency)),
        }
    }
}

/// Which statistics a drawing shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct GraphView {
    /// Text on edges.
    pub edge_label: Stat,
    /// Text on vertices, under the name.
    pub vertex_label: Stat,
    /// Color of edges.
    pub edge_color: Stat,
    /// Color of vertices.
    pub vertex_color: Stat,
}

/// A graph ready to be printed.
pub struct GraphReport<'g> {
    graph: &'g CallGraph,
    names: BTreeMap<u32, String>,
}

impl<'g> GraphReport<'g> {
    /// Resolves the names of the functions.
    pub fn new(graph: &'g CallGraph, symbols: Option<&dyn Symbols>) -> Self {
        let ends = graph.edges.iter().flat_map(|edge| [edge.caller, edge.callee]);
        let all = ends.chain(graph.vertices.iter().map(|vertex| vertex.function));
        let mut names = BTreeMap::new();
        for function in all {
            names.entry(function).or_insert_with(|| graph.names.of(function, symbols));
        }
        Self { graph, names }
    }

    /// DOT, for Graphviz. Names are cut to 40 characters.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn dot(&self, view: &GraphView, out: &mut dyn Write) -> io::Result<()> {
        let GraphView { edge_label, vertex_label, edge_color, vertex_color } = *view;
        let hz = self.graph.cycle_frequency;
        writeln!(out, "digraph xray {{")?;
        if vertex_label != Stat::None {
            writeln!(out, "node [shape=record];")?;
        }
        let edges = &self.graph.edges;
        let max = edges.iter().map(|edge| edge_color.of(&edge.stats, hz)).fold(0.0, f64::max);
        for CallEdge { caller, callee, stats } in edges {
            let (from, to) = (caller.cast_signed(), callee.cast_signed());
            write!(out, "F{from} -> F{to} [label=\"{}\"", edge_label.shown(stats, hz))?;
            color(edge_color, edge_color.of(stats, hz), max, out)?;
            writeln!(out, "];")?;
        }
        let vertices = &self.graph.vertices;
        let max = vertices.iter().map(|vertex| vertex_color.of(&vertex.stats, hz)).fold(0.0, f64::max);
        for vertex in vertices {
            let name = escaped(&cut(self.name(vertex.function), LABEL_CHARS), vertex_label != Stat::None);
            write!(out, "F{} [label=\"", vertex.function.cast_signed())?;
            match vertex_label {
                Stat::None => write!(out, "{name}\"")?,
                stat => write!(out, "{{{name}|{}}}\"", stat.shown(&vertex.stats, hz))?,
            }
            color(vertex_color, vertex_color.of(&vertex.stats, hz), max, out)?;
            writeln!(out, "];")?;
        }
        writeln!(out, "}}")
    }

    /// One line per call; columns `caller_id,caller,callee_id,callee,count,min,med,90p,99p,max,sum`, times in seconds
    /// (in ticks if the frequency is unknown). Outermost calls have no caller.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn csv(&self, cells: Cells, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "caller_id,caller,callee_id,callee,count,min,med,90p,99p,max,sum")?;
        for edge in self.edges_by_id() {
            let (id, name) = match edge.caller {
                ROOT => (String::new(), String::new()),
                id => (id.to_string(), cells.text(self.name(id))),
            };
            write!(out, "{id},{name},{},{}", edge.callee, cells.text(self.name(edge.callee)))?;
            for (stat, _) in Stat::ALL {
                write!(out, ",{}", stat.shown(&edge.stats, self.graph.cycle_frequency))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// One object with `version` 1; times in seconds (in ticks, as `unit` says, if the frequency is unknown).
    ///
    /// # Errors
    /// When `out` fails.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let hz = self.graph.cycle_frequency;
        let unit = if hz == 0 { "ticks" } else { "seconds" };
        write!(out, "{{\"version\":1,\"unit\":\"{unit}\",\"cycle_frequency\":{hz},\"functions\":[")?;
        let mut vertices: Vec<_> = self.graph.vertices.iter().collect();
        vertices.sort_by_key(|vertex| vertex.function);
        for (n, vertex) in vertices.into_iter().enumerate() {
            let (id, name) = (vertex.function, json_string(self.name(vertex.function)));
            write!(out, "{}\n{{\"id\":{id},\"name\":{name},", if n == 0 { "" } else { "," })?;
            self.put_stats(&vertex.stats, out)?;
        }
        write!(out, "\n],\"calls\":[")?;
        for (n, edge) in self.edges_by_id().into_iter().enumerate() {
            write!(out, "{}\n{{", if n == 0 { "" } else { "," })?;
            if edge.caller == ROOT {
                write!(out, "\"caller\":null,\"caller_name\":null,")?;
            } else {
                write!(out, "\"caller\":{},\"caller_name\":{},", edge.caller, json_string(self.name(edge.caller)))?;
            }
            write!(out, "\"callee\":{},\"callee_name\":{},", edge.callee, json_string(self.name(edge.callee)))?;
            self.put_stats(&edge.stats, out)?;
        }
        writeln!(out, "\n]}}")
    }

    fn put_stats(&self, stats: &CallStats, out: &mut dyn Write) -> io::Result<()> {
        let shown = Stat::ALL.map(|(stat, name)| format!("\"{name}\":{}", json_number(stat, stats, self.graph)));
        write!(out, "{}}}", shown.join(","))
    }

    fn edges_by_id(&self) -> Vec<&CallEdge> {
        let mut edges: Vec<_> = self.graph.edges.iter().collect();
        edges.sort_by_key(|edge| (edge.caller, edge.callee));
        edges
    }

    fn name(&self, function: u32) -> &str {
        self.names.get(&function).map_or("", String::as_str)
    }
}

fn json_number(stat: Stat, stats: &CallStats, graph: &CallGraph) -> String {
    if stat == Stat::Count {
        return stats.count.to_string();
    }
    // Never infinite: ticks are at most 128 bits, and a frequency is an integer.
    serde_json::Value::from(stat.of(stats, graph.cycle_frequency)).to_string()
}

fn color(stat: Stat, value: f64, max: f64, out: &mut dyn Write) -> io::Result<()> {
    if stat == Stat::None {
        return Ok(());
    }
    write!(out, " color=\"{}\"", sequential((value / max).sqrt()))
}

/// The first characters, and three dots if there were more.
pub(crate) fn cut(name: &str, chars: usize) -> String {
    match name.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// A name within a label. In record labels, braces and bars delimit fields and are escaped.
pub(crate) fn escaped(name: &str, is_record: bool) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '{' | '}' | '|' if is_record => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => match text::entity(c) {
                Some(entity) => out.push_str(entity),
                None => out.push(c),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_escaped_as_in_recorded_graphs() {
        // real/threads4.sym.graph.dot
        let name = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int), int> > >::_M_run()";
        assert_eq!(escaped(&cut(name, LABEL_CHARS), true), "std::thread::_State_impl&lt;std::thread::_I...");
        assert_eq!(escaped("plain(Obj&, int)", false), "plain(Obj&amp;, int)");
        assert_eq!(escaped("operator|(A{1}, \"\n\")", true), "operator\\|(A\\{1\\}, &quot; &quot;)");
        assert_eq!(cut("äöü", 2), "äö...");
    }

    #[test]
    fn an_unknown_frequency_leaves_ticks() {
        let stats = CallStats { count: 2, sum: 9, ..CallStats::default() };
        assert_eq!((Stat::Sum.of(&stats, 0), Stat::Sum.of(&stats, 3), Stat::Count.of(&stats, 3)), (9.0, 3.0, 2.0));
    }
}
