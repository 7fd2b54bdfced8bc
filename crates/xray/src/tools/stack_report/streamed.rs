//! Prints stacks that are read from runs.

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use anytrace_analysis::stack_runs::StackSums;

use super::{StackGrouping, StackReport, Visit};
use crate::tools::stack_stream::{Group, Stream};
use crate::tools::stack_tops::{Top, Tops};

impl StackReport<'_> {
    /// The tables, as [`StackReport::tables`] prints them.
    pub(super) fn stream_tables(&self, stream: &Stream<'_>, out: &mut dyn Write) -> io::Result<()> {
        let all: Vec<usize> = (0..stream.groups.len()).collect();
        if self.view.grouping != StackGrouping::PerThread {
            return self.stream_table(stream, &all, out);
        }
        for (number, group) in stream.groups.iter().enumerate() {
            writeln!(out, "{}:", self.thread_title(group.thread, "Thread ", ", process "))?;
            self.stream_table(stream, &[number], out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn stream_table(&self, stream: &Stream<'_>, groups: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let tops = stream.tops(groups, self.rows_max(), self.view.threads)?;
        self.print_tops(&tops, out)
    }

    /// Prints one table.
    pub(super) fn print_tops(&self, tops: &Tops, out: &mut dyn Write) -> io::Result<()> {
        let stacks = |tops: &[Top]| {
            let frames = |top: &Top| top.frames.iter().map(|frame| (frame.function, frame.sums)).collect();
            tops.iter().map(|top| (top.value, frames(top))).collect::<Vec<_>>()
        };
        let (names, symbols) = self.sources;
        let name = |function| names.of(function, symbols);
        self.print_table(tops.unique, &stacks(&tops.by_sum), &stacks(&tops.by_count), &name, out)
    }

    /// Visits every stack as [`StackReport::walk`] does, callees by number.
    pub(super) fn stream_walk(&self, stream: &Stream<'_>, is_by_number: bool, visit: Visit<'_>) -> io::Result<()> {
        let mut groups: Vec<&Group> = stream.groups.iter().collect();
        if is_by_number {
            groups.sort_by_key(|group| group.thread);
        }
        let (names, symbols) = self.sources;
        let mut known: HashMap<u32, Rc<str>> = HashMap::new();
        // The frames of the previous stack, so that only those that differ are looked up.
        let mut latest: Vec<(u32, Rc<str>)> = Vec::new();
        for group in groups {
            stream.for_each(group, &mut |frames| {
                let same =
                    frames.iter().zip(&latest).take_while(|(frame, (known, _))| frame.function == *known).count();
                latest.truncate(same);
                for frame in frames.iter().skip(same) {
                    let name = known.entry(frame.function).or_insert_with(|| names.of(frame.function, symbols).into());
                    latest.push((frame.function, Rc::clone(name)));
                }
                let path: Vec<&str> = latest.iter().map(|(_, name)| &**name).collect();
                let sums = frames.last().map_or_else(StackSums::default, |frame| frame.sums);
                visit(group.thread, &path, &sums)
            })?;
        }
        Ok(())
    }
}
