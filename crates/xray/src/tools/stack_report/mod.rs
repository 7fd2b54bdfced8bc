//! Prints stacks: the peer's tables, folded lines for flame graphs, CSV and JSON.

mod streamed;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use anytrace_analysis::stack_runs::StackSums;
use anytrace_core::Error;
use anytrace_core::span::Symbols;
use anytrace_export::cells::Cells;

use super::naming::Names;
use super::printing::json_string;
use super::stack_profile::StackProfile;
use super::stack_stream::Stream;
use super::stack_tops::Tops;
use super::stack_tree::{Roots, Tree};

/// Rows of a top list.
pub(crate) const TOP: usize = 10;

/// Columns of a function's name in tables.
const NAME_COLUMNS: usize = 60;

/// How threads are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackGrouping {
    /// Stacks of different threads are different, and all are in one list.
    #[default]
    Separate,
    /// One list per thread.
    PerThread,
    /// Equal stacks of different threads are summed.
    Aggregate,
}

/// The unit of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackUnit {
    /// Ticks, as the trace has them.
    #[default]
    Ticks,
    /// Seconds, by the trace's frequency.
    Seconds,
}

/// The weight of a line of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Time not spent in inner calls. Programs that draw flame graphs add inner calls themselves.
    #[default]
    Time,
    /// Calls.
    Count,
}

/// How stacks are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct StackView {
    /// Threads.
    pub grouping: StackGrouping,
    /// Unit of sums.
    pub unit: StackUnit,
    /// Rows of each top list; 0 is ten, `usize::MAX` is all.
    pub top: usize,
    /// Processors to use; 0 is one.
    pub threads: usize,
    /// Copies the peer's flame lines (including the time of inner calls, and a stray semicolon) and its counts of
    /// callers in stacks summed over threads.
    pub is_compat: bool,
}

/// Receives a stack: its process and thread, the names of its frames, outermost first, and its counts.
type Visit<'v> = &'v mut dyn FnMut(Option<(u32, u32)>, &[&str], &StackSums) -> io::Result<()>;

/// Stacks in memory, or too many for that.
#[derive(Debug)]
enum Stacks<'p> {
    Tree(Tree),
    Stream(Stream<'p>),
    /// Only the stacks of the one table.
    Tops(&'p Tops),
}

/// Stacks ready to be printed.
pub struct StackReport<'p> {
    stacks: Stacks<'p>,
    names: HashMap<u32, String>,
    /// For stacks that are read while they are printed.
    sources: (&'p Names, Option<&'p dyn Symbols>),
    view: StackView,
    cycle_frequency: u64,
    /// Whether a thread number occurs in several processes.
    is_ambiguous: bool,
    /// Stacks that were printed without their middle frames.
    shortened: Cell<u64>,
}

/// Most frames of a stack in lists of all stacks. Lists of a recursion 16,000 deep would otherwise be a thousand times
/// as long as the trace; flame graphs and people gain nothing from such depths.
const FRAMES_MAX: usize = 512;

/// Takes the place of the frames in the middle of a deeper stack.
const LEFT_OUT: &str = "(frames left out)";

impl<'p> StackReport<'p> {
    /// Arranges a profile.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when seconds are requested and the trace does not state its frequency.
    pub fn new(profile: &'p StackProfile, view: StackView, symbols: Option<&'p dyn Symbols>) -> Result<Self, Error> {
        let cycle_frequency = profile.cycle_frequency;
        if view.unit == StackUnit::Seconds && cycle_frequency == 0 && !profile.threads.is_empty() {
            return Err(Error::usage("the trace does not give the ticks per second: no seconds"));
        }
        let is_aggregate = view.grouping == StackGrouping::Aggregate;
        let mut names = HashMap::new();
        let stacks = if let Some(tops) = &profile.tops {
            Stacks::Tops(tops)
        } else if let Some(runs) = &profile.runs {
            Stacks::Stream(Stream::new(profile, runs, is_aggregate))
        } else {
            let mut tree = Tree::of(profile, view.is_compat);
            if is_aggregate {
                tree.aggregate(view.is_compat);
            }
            for node in &tree.nodes {
                names.entry(node.function).or_insert_with(|| profile.names.of(node.function, symbols));
            }
            Stacks::Tree(tree)
        };
        let numbers: HashSet<u32> = profile.threads.iter().map(|(_, thread)| *thread).collect();
        let is_ambiguous = numbers.len() < profile.threads.len();
        Ok(Self {
            stacks,
            names,
            sources: (&profile.names, symbols),
            view,
            cycle_frequency,
            is_ambiguous,
            shortened: Cell::new(0),
        })
    }

    /// The peer's tables: the ten stacks whose leaves took longest, and the ten with most leaf calls.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let tree = match &self.stacks {
            Stacks::Tree(tree) => tree,
            Stacks::Stream(stream) => return self.stream_tables(stream, out),
            Stacks::Tops(tops) => return self.print_tops(tops, out),
        };
        let groups = &tree.groups;
        if self.view.grouping != StackGrouping::PerThread {
            let roots = groups.iter().flat_map(|(_, roots)| roots).copied().collect::<Vec<_>>();
            return self.table(tree, &roots, out);
        }
        for (thread, roots) in groups {
            writeln!(out, "{}:", self.thread_title(*thread, "Thread ", ", process "))?;
            self.table(tree, roots, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn table(&self, tree: &Tree, roots: &[u32], out: &mut dyn Write) -> io::Result<()> {
        let mut unique = 0_u64;
        let (mut by_sum, mut by_count) = (self.top_list(), self.top_list());
        for (id, node) in tree.walk(roots).filter(|(_, node)| node.sums.leaf_count > 0) {
            unique += 1;
            by_sum.offer(id, node.sums.leaf_sum);
            by_count.offer(id, node.sums.leaf_count);
        }
        let stacks = |list: TopList| {
            let frames = |id| {
                let mut frames: Vec<_> = tree.ancestors(id).map(|node| (node.function, node.sums)).collect();
                frames.reverse();
                frames
            };
            list.rows.iter().map(|&(id, value)| (value, frames(id))).collect::<Vec<_>>()
        };
        self.print_table(unique, &stacks(by_sum), &stacks(by_count), &|function| self.name(function).to_owned(), out)
    }

    /// Prints one table: the stacks of both top lists, each with its value and its frames, outermost first.
    fn print_table(
        &self,
        unique: u64,
        by_sum: &[(u64, Vec<(u32, StackSums)>)],
        by_count: &[(u64, Vec<(u32, StackSums)>)],
        name: &dyn Fn(u32) -> String,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        write!(out, "\nUnique Stacks: {unique}\n")?;
        let top = if self.rows_max() == usize::MAX { unique } else { self.rows_max() as u64 };
        for (title, word, list) in [("sum", "Sum", by_sum), ("count", "Count", by_count)] {
            write!(out, "Top {top} Stacks by leaf {title}:\n\n")?;
            for (value, frames) in list {
                let shown = if word == "Sum" { self.amount(*value) } else { value.to_string() };
                writeln!(out, "{word}: {shown}")?;
                self.stack(frames, name, out)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn rows_max(&self) -> usize {
        if self.view.top == 0 { TOP } else { self.view.top }
    }

    fn top_list(&self) -> TopList {
        TopList { rows: Vec::new(), rows_max: self.rows_max() }
    }

    fn stack(&self, frames: &[(u32, StackSums)], name: &dyn Fn(u32) -> String, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{:<5} {:<NAME_COLUMNS$} {:>12} {:>16}", "lvl", "function", "count", "sum")?;
        let leaf = frames.len().saturating_sub(1);
        for (level, (function, sums)) in frames.iter().enumerate() {
            let name = short(&name(*function), NAME_COLUMNS);
            let StackSums { leaf_count, leaf_sum, count, sum, .. } = *sums;
            // The leaf's row counts the calls that were leaves, its callers' rows those that were not.
            let (count, sum) =
                if level == leaf { (leaf_count, leaf_sum) } else { (count - leaf_count, sum.saturating_sub(leaf_sum)) };
            let sum = self.amount(sum);
            writeln!(out, "{:<5} {name:<NAME_COLUMNS$} {count:>12} {sum:>16}", format!("#{level}"))?;
        }
        writeln!(out)
    }

    /// Folded lines, one per stack: `thread_T;outer;inner VALUE`.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn flame(&self, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
        let is_compat = self.view.is_compat;
        let mut line = String::new();
        self.walk(false, &mut |thread, names, sums| {
            let value = match weight {
                Weight::Count => sums.count,
                Weight::Time if is_compat => sums.sum,
                Weight::Time => sums.self_sum,
            };
            if value == 0 && !is_compat {
                return Ok(());
            }
            line.clear();
            if thread.is_some() {
                self.push_thread_frames(thread, &mut line);
            }
            push_frames(&self.shown(names), is_compat, &mut line);
            if !is_compat {
                line.pop();
            }
            let value = if weight == Weight::Count { value.to_string() } else { self.amount(value) };
            writeln!(out, "{line} {value}")
        })
    }

    /// Visits every stack with its names, outermost first: in the order of the trees, or threads by number.
    fn walk(&self, is_by_number: bool, visit: Visit<'_>) -> io::Result<()> {
        let tree = match &self.stacks {
            Stacks::Tree(tree) => tree,
            Stacks::Stream(stream) => return self.stream_walk(stream, is_by_number, visit),
            // They were not requested when stacks were counted.
            Stacks::Tops(_) => return Ok(()),
        };
        let mut groups: Vec<&Roots> = tree.groups.iter().collect();
        if is_by_number {
            groups.sort_by_key(|(thread, _)| *thread);
        }
        let (mut ids, mut names): (Vec<u32>, Vec<&str>) = (Vec::new(), Vec::new());
        for (thread, roots) in groups {
            for (id, node) in tree.walk(roots) {
                // Callers come first: the ids above the caller belong to another of its callees.
                while ids.last().is_some_and(|outer| Some(*outer) != node.parent) {
                    ids.pop();
                }
                ids.push(id);
                names.truncate(ids.len() - 1);
                names.push(self.name(node.function));
                visit(*thread, &names, &node.sums)?;
            }
        }
        Ok(())
    }

    /// The frames to print: for a deep stack, only the outermost and the innermost.
    fn shown<'n>(&self, names: &'n [&'n str]) -> Cow<'n, [&'n str]> {
        if names.len() <= FRAMES_MAX || self.view.is_compat {
            return Cow::Borrowed(names);
        }
        self.shortened.set(self.shortened.get() + 1);
        let (outer, inner) = names.split_at(FRAMES_MAX / 2);
        let inner = inner.split_at(inner.len() - FRAMES_MAX / 2).1;
        Cow::Owned([outer, &[LEFT_OUT], inner].concat())
    }

    /// Stacks printed so far without their middle frames, because they have more than 512.
    pub fn shortened(&self) -> u64 {
        self.shortened.get()
    }

    fn push_thread_frames(&self, thread: Option<(u32, u32)>, line: &mut String) {
        let Some((process, thread)) = thread else { return };
        if self.is_ambiguous && !self.view.is_compat {
            line.push_str(&format!("process_{process};"));
        }
        line.push_str(&format!("thread_{thread};"));
    }

    /// One line per stack; columns `process,thread,depth,function,leaf_count,leaf_sum,count,sum,self,stack`.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn csv(&self, cells: Cells, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "process,thread,depth,function,leaf_count,leaf_sum,count,sum,self,stack")?;
        self.rows(&mut |thread, names, sums| {
            let (process, number) = thread.map_or_else(Default::default, |(p, t)| (p.to_string(), t.to_string()));
            let StackSums { leaf_count, count, .. } = *sums;
            let [leaf, sum, own] = [sums.leaf_sum, sums.sum, sums.self_sum].map(|ticks| self.amount(ticks));
            let function = cells.text(names.last().copied().unwrap_or_default());
            let (depth, stack) = (names.len(), cells.text(&self.shown(names).join(";")));
            writeln!(out, "{process},{number},{depth},{function},{leaf_count},{leaf},{count},{sum},{own},{stack}")
        })
    }

    /// One object with `version` 1; sums in ticks or seconds as requested.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let unit = if self.view.unit == StackUnit::Seconds { "seconds" } else { "ticks" };
        let hz = self.cycle_frequency;
        let mut unique = 0_u64;
        self.walk(true, &mut |_, _, sums| {
            unique += u64::from(sums.leaf_count > 0);
            Ok(())
        })?;
        write!(out, "{{\"version\":1,\"unit\":\"{unit}\",\"cycle_frequency\":{hz},\"unique_stacks\":{unique}")?;
        write!(out, ",\"stacks\":[")?;
        let mut separator = "\n";
        self.rows(&mut |thread, names, sums| {
            write!(out, "{separator}{{")?;
            separator = ",\n";
            if let Some((process, thread)) = thread {
                write!(out, "\"process\":{process},\"thread\":{thread},")?;
            }
            let shown = self.shown(names);
            if let Cow::Owned(_) = shown {
                write!(out, "\"depth\":{},", names.len())?;
            }
            let names: Vec<String> = shown.iter().map(|name| json_string(name)).collect();
            let StackSums { leaf_count, count, .. } = *sums;
            let [leaf, sum, own] = [sums.leaf_sum, sums.sum, sums.self_sum].map(|ticks| self.amount(ticks));
            write!(out, "\"stack\":[{}],\"leaf_count\":{leaf_count},\"leaf_sum\":{leaf}", names.join(","))?;
            write!(out, ",\"count\":{count},\"sum\":{sum},\"self\":{own}}}")
        })?;
        writeln!(out, "\n]}}")
    }

    /// Every stack that was left at least once; threads by number.
    fn rows(&self, row: Visit<'_>) -> io::Result<()> {
        self.walk(true, &mut |thread, names, sums| if sums.count > 0 { row(thread, names, sums) } else { Ok(()) })
    }

    fn name(&self, function: u32) -> &str {
        self.names.get(&function).map_or("", String::as_str)
    }

    fn thread_title(&self, thread: Option<(u32, u32)>, word: &str, process_word: &str) -> String {
        let Some((process, thread)) = thread else { return String::new() };
        if self.is_ambiguous && !self.view.is_compat {
            format!("{word}{thread}{process_word}{process}")
        } else {
            format!("{word}{thread}")
        }
    }

    fn amount(&self, ticks: u64) -> String {
        match self.view.unit {
            StackUnit::Ticks => ticks.to_string(),
            StackUnit::Seconds => format!("{:.9}", ticks as f64 / self.cycle_frequency.max(1) as f64),
        }
    }
}

/// Each name with a semicolon after it; semicolons in names are replaced where outputs must remain parseable.
fn push_frames(names: &[&str], is_compat: bool, line: &mut String) {
    for name in names {
        if is_compat {
            line.push_str(name);
        } else {
            line.extend(name.chars().map(|c| match c {
                ';' => ':',
                c if c.is_control() => ' ',
                c => c,
            }));
        }
        line.push(';');
    }
}

/// The first characters of a name that is too long, and three dots.
fn short(name: &str, columns: usize) -> String {
    if name.len() <= columns {
        return name.to_owned();
    }
    let end = name.floor_char_boundary(columns - 3);
    format!("{}...", &name[..end])
}

/// The largest values; of equal ones the last offered comes first, as in the peer's output.
struct TopList {
    rows: Vec<(u32, u64)>,
    rows_max: usize,
}

impl TopList {
    fn offer(&mut self, id: u32, value: u64) {
        let at = self.rows.partition_point(|&(_, other)| other > value);
        if at < self.rows_max {
            self.rows.insert(at, (id, value));
            self.rows.truncate(self.rows_max);
        }
    }
}
