//! Prints stacks: the peer's tables, folded lines for flame graphs, CSV and JSON.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use anytrace_analysis::stacks::{ROOT, StackId};
use anytrace_core::Error;
use anytrace_core::span::Symbols;

use super::printing::{csv_field, json_string};
use super::stack::{StackProfile, StackSums};
use super::stack_tree::Roots;

/// Rows of a top list.
pub(crate) const TOP: usize = 10;

/// Columns of a function's name in tables.
const NAME_COLUMNS: usize = 60;

/// How threads are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackGrouping {
    /// Stacks of different threads are different, and all stand in one list.
    #[default]
    Separate,
    /// One list a thread.
    PerThread,
    /// Equal stacks of different threads are added up.
    Aggregate,
}

/// What sums are told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackUnit {
    /// Ticks, as the trace has them.
    #[default]
    Ticks,
    /// Seconds, by the trace's frequency.
    Seconds,
}

/// What a line of a flame graph weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Time not spent in calls inside. What draws flame graphs adds inner calls itself.
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
    /// Rows of each top list; 0 is ten.
    pub top: usize,
    /// Copies the peer's flame lines (time of inner calls included, a stray semicolon) and its callers' counts in
    /// stacks added up over threads.
    pub is_compat: bool,
}

/// Stacks ready to be printed.
#[derive(Debug)]
pub struct StackReport {
    profile: StackProfile,
    groups: Vec<Roots>,
    names: HashMap<u32, String>,
    view: StackView,
    /// Whether a thread's number occurs in several processes.
    is_ambiguous: bool,
}

impl StackReport {
    /// Arranges a profile.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when seconds are asked for and the trace does not know its frequency.
    pub fn new(mut profile: StackProfile, view: StackView, symbols: Option<&dyn Symbols>) -> Result<Self, Error> {
        if view.unit == StackUnit::Seconds && profile.cycle_frequency == 0 && !profile.threads.is_empty() {
            return Err(Error::usage("the trace does not say how many ticks a second has: no seconds"));
        }
        let groups = if view.grouping == StackGrouping::Aggregate {
            profile.aggregate(view.is_compat)
        } else {
            profile.by_thread(view.is_compat)
        };
        let mut names: HashMap<u32, String> = HashMap::new();
        let (mut seen, mut last) = (vec![false; 1 << 16], None);
        for id in 0..u32::try_from(profile.forest.len()).unwrap_or(ROOT) {
            let function = profile.forest.name(id);
            // Most of many stacks are of few functions.
            if last != Some(function) && !std::mem::replace(seen.get_mut(function as usize).unwrap_or(&mut false), true)
            {
                names.entry(function).or_insert_with(|| profile.names.of(function, symbols));
            }
            last = Some(function);
        }
        let numbers: HashSet<u32> = profile.threads.iter().map(|((_, thread), _)| *thread).collect();
        let is_ambiguous = numbers.len() < profile.threads.len();
        Ok(Self { profile, groups, names, view, is_ambiguous })
    }

    /// The peer's tables: the ten stacks whose leaves took longest, and the ten with most leaf calls.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let groups = &self.groups;
        if self.view.grouping != StackGrouping::PerThread {
            return self.table(&groups.iter().flat_map(|(_, roots)| roots).copied().collect::<Vec<_>>(), out);
        }
        for (thread, roots) in groups {
            writeln!(out, "{}:", self.thread_title(*thread, "Thread ", ", process "))?;
            self.table(roots, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn table(&self, roots: &[u32], out: &mut dyn Write) -> io::Result<()> {
        let mut unique = 0_u64;
        let (mut by_sum, mut by_count) = (self.top_list(), self.top_list());
        for (id, sums) in self.walk(roots).filter(|(_, sums)| sums.leaf_count > 0) {
            unique += 1;
            by_sum.offer(id, sums.leaf_sum);
            by_count.offer(id, sums.leaf_count);
        }
        write!(out, "\nUnique Stacks: {unique}\n")?;
        let top = by_sum.rows_max;
        for (title, word, list) in [("sum", "Sum", by_sum), ("count", "Count", by_count)] {
            write!(out, "Top {top} Stacks by leaf {title}:\n\n")?;
            for &(id, value) in &list.rows {
                let shown = if word == "Sum" { self.amount(value) } else { value.to_string() };
                writeln!(out, "{word}: {shown}")?;
                self.stack(id, out)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn top_list(&self) -> TopList {
        TopList { rows: Vec::new(), rows_max: if self.view.top == 0 { TOP } else { self.view.top } }
    }

    fn stack(&self, id: u32, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{:<5} {:<NAME_COLUMNS$} {:>12} {:>16}", "lvl", "function", "count", "sum")?;
        let frames = self.frames(id);
        let leaf = frames.len().saturating_sub(1);
        for (level, id) in frames.into_iter().enumerate() {
            let name = short(self.name(id), NAME_COLUMNS);
            let StackSums { leaf_count, leaf_sum, count, sum } = self.profile.sums_of(id);
            // The leaf's row tells of calls that were leaves, its callers' rows of those that were not.
            let (count, sum) =
                if level == leaf { (leaf_count, leaf_sum) } else { (count - leaf_count, sum.saturating_sub(leaf_sum)) };
            let sum = self.amount(sum);
            writeln!(out, "{:<5} {name:<NAME_COLUMNS$} {count:>12} {sum:>16}", format!("#{level}"))?;
        }
        writeln!(out)
    }

    /// Folded lines, one a stack: `thread_T;outer;inner VALUE`.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn flame(&self, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
        let is_compat = self.view.is_compat;
        let mut line = String::new();
        for (thread, roots) in &self.groups {
            for (id, sums) in self.walk(roots) {
                let value = match weight {
                    Weight::Count => sums.count,
                    Weight::Time if is_compat => sums.sum,
                    Weight::Time => self.profile.self_of(id),
                };
                if value == 0 && !is_compat {
                    continue;
                }
                line.clear();
                if thread.is_some() {
                    self.push_thread_frames(*thread, &mut line);
                }
                self.push_frames(id, is_compat, &mut line);
                if !is_compat {
                    line.pop();
                }
                let value = if weight == Weight::Count { value.to_string() } else { self.amount(value) };
                writeln!(out, "{line} {value}")?;
            }
        }
        Ok(())
    }

    fn push_thread_frames(&self, thread: Option<(u32, u32)>, line: &mut String) {
        let Some((process, thread)) = thread else { return };
        if self.is_ambiguous && !self.view.is_compat {
            line.push_str(&format!("process_{process};"));
        }
        line.push_str(&format!("thread_{thread};"));
    }

    /// Each name with a semicolon behind it; none in a name, where outputs must stay readable.
    fn push_frames(&self, id: u32, is_compat: bool, line: &mut String) {
        for name in self.frames(id).into_iter().map(|id| self.name(id)) {
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

    /// One line a stack; columns `process,thread,depth,function,leaf_count,leaf_sum,count,sum,self,stack`.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "process,thread,depth,function,leaf_count,leaf_sum,count,sum,self,stack")?;
        self.rows(|thread, id, sums| {
            let (process, number) = thread.map_or_else(Default::default, |(p, t)| (p.to_string(), t.to_string()));
            let names: Vec<&str> = self.frames(id).into_iter().map(|id| self.name(id)).collect();
            let StackSums { leaf_count, count, .. } = *sums;
            let [leaf, sum, own] = [sums.leaf_sum, sums.sum, self.profile.self_of(id)].map(|ticks| self.amount(ticks));
            let function = csv_field(names.last().copied().unwrap_or_default());
            let (depth, stack) = (names.len(), csv_field(&names.join(";")));
            writeln!(out, "{process},{number},{depth},{function},{leaf_count},{leaf},{count},{sum},{own},{stack}")
        })
    }

    /// One object with `version` 1; sums in ticks or seconds as asked for.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let unit = if self.view.unit == StackUnit::Seconds { "seconds" } else { "ticks" };
        let hz = self.profile.cycle_frequency;
        let unique = self.groups.iter().flat_map(|(_, roots)| self.walk(roots));
        let unique = unique.filter(|(_, sums)| sums.leaf_count > 0).count();
        write!(out, "{{\"version\":1,\"unit\":\"{unit}\",\"cycle_frequency\":{hz},\"unique_stacks\":{unique}")?;
        write!(out, ",\"stacks\":[")?;
        let mut separator = "\n";
        self.rows(|thread, id, sums| {
            write!(out, "{separator}{{")?;
            separator = ",\n";
            if let Some((process, thread)) = thread {
                write!(out, "\"process\":{process},\"thread\":{thread},")?;
            }
            let names: Vec<String> = self.frames(id).into_iter().map(|id| json_string(self.name(id))).collect();
            let StackSums { leaf_count, count, .. } = *sums;
            let [leaf, sum, own] = [sums.leaf_sum, sums.sum, self.profile.self_of(id)].map(|ticks| self.amount(ticks));
            write!(out, "\"stack\":[{}],\"leaf_count\":{leaf_count},\"leaf_sum\":{leaf}", names.join(","))?;
            write!(out, ",\"count\":{count},\"sum\":{sum},\"self\":{own}}}")
        })?;
        writeln!(out, "\n]}}")
    }

    /// Every stack that was left at least once; threads by number.
    fn rows(&self, mut row: impl FnMut(Option<(u32, u32)>, u32, &StackSums) -> io::Result<()>) -> io::Result<()> {
        let mut groups: Vec<&Roots> = self.groups.iter().collect();
        groups.sort_by_key(|(thread, _)| *thread);
        for (thread, roots) in groups {
            for (id, sums) in self.walk(roots).filter(|(_, sums)| sums.count > 0) {
                row(*thread, id, &sums)?;
            }
        }
        Ok(())
    }

    /// Every stack below the roots, callers first.
    fn walk<'r>(&'r self, roots: &'r [StackId]) -> impl Iterator<Item = (StackId, StackSums)> {
        let ids = roots.iter().flat_map(|&root| self.profile.forest.walk(root));
        ids.map(|id| (id, self.profile.sums_of(id)))
    }

    /// A stack and its callers, outermost first; without the node of the thread.
    fn frames(&self, id: StackId) -> Vec<StackId> {
        let forest = &self.profile.forest;
        let mut frames: Vec<StackId> = forest.ancestors(id).take_while(|&id| forest.parent(id) != ROOT).collect();
        frames.reverse();
        frames
    }

    fn name(&self, id: StackId) -> &str {
        self.names.get(&self.profile.forest.name(id)).map_or("", String::as_str)
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
            StackUnit::Seconds => format!("{:.9}", ticks as f64 / self.profile.cycle_frequency.max(1) as f64),
        }
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

/// The largest values; of equal ones the last offered comes first, as the peer has them.
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
