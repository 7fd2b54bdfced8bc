//! The table of `stats` for spreadsheets. Columns are never removed; new ones come at the end.

use anytrace_analysis::accounting::Statistic;
use anytrace_export::cells::Cells;

use super::Results;
use crate::units::Times;

const HEADING: &str =
    "file,unit,name,process,thread,count,total,self,sum,min,p50,p90,p99,max,threads,recursive,unfinished,deduced\n";

/// The lines of one trace.
pub(super) fn lines(results: &Results, text: Cells, with_heading: bool) -> String {
    let directory = &results.read.done.directory;
    let times = Times(directory.source().unit);
    let mut out = if with_heading { HEADING.to_owned() } else { String::new() };
    let file = text.printable(&results.name);
    for row in &results.rows {
        let name =
            row.name.map(|name| text.printable(&String::from_utf8_lossy(directory.name(name)))).unwrap_or_default();
        let thread = row.thread.and_then(|index| directory.threads().get(index as usize));
        let (process, id) = thread.map_or_else(Default::default, |t| (t.process.to_string(), t.thread.to_string()));
        let mut cells = vec![file.clone(), times.word().to_owned(), name, process, id, row.count.to_string()];
        let time = |statistic| times.number(row.get(statistic)).to_string();
        cells.extend([Statistic::Total, Statistic::SelfTime].map(time));
        cells.push(times.number(row.sum).to_string());
        let lengths = [Statistic::Min, Statistic::P50, Statistic::P90, Statistic::P99, Statistic::Max];
        cells.extend(lengths.map(time));
        cells.push(row.threads.to_string());
        cells.extend([row.recursive, row.unfinished, row.deduced].map(|count| count.to_string()));
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}
