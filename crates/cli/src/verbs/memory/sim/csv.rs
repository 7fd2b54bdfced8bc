//! `sim` for spreadsheets: one line per counter, so that configurations of any number of levels share their columns.

use anytrace_analysis::cache::results::{ConfigResults, LevelResults, Tally};
use anytrace_export::cells::Cells;

use super::{ReportArguments, Simulated};

const HEADING: &str = "file,config,scope,name,part,counter,value\n";

/// The lines of one trace.
pub(super) fn lines(simulated: &Simulated, report: &ReportArguments, cells: Cells, with_heading: bool) -> String {
    let mut out = if with_heading { HEADING.to_owned() } else { String::new() };
    for found in &simulated.results.configs {
        let before = format!("{},{}", cells.printable(&simulated.name), cells.printable(&found.config.name));
        one(&mut Rows { out: &mut out, before, cells }, found, report);
    }
    out
}

struct Rows<'a> {
    out: &'a mut String,
    before: String,
    cells: Cells,
}

impl Rows<'_> {
    fn put(&mut self, scope: &str, name: &str, part: &str, counter: &str, value: u64) {
        let cells = [scope, name, part, counter].map(|text| self.cells.printable(text));
        self.out.push_str(&format!("{},{},{value}\n", self.before, cells.join(",")));
    }

    fn tally(&mut self, scope: &str, name: &str, part: &str, tally: &Tally) {
        self.put(scope, name, part, "reads", tally.reads);
        self.put(scope, name, part, "writes", tally.writes);
        self.put(scope, name, part, "l1_misses", tally.first_level_misses());
        self.put(scope, name, part, "memory", tally.memory());
    }

    fn level(&mut self, scope: &str, level: &LevelResults, report: &ReportArguments) {
        for (counter, value) in level.counts.named() {
            self.put(scope, &level.name, "", counter, value);
        }
        if let Some(classes) = level.classes {
            self.put(scope, &level.name, "", "compulsory", classes.compulsory);
            self.put(scope, &level.name, "", "capacity", classes.capacity);
            self.put(scope, &level.name, "", "conflict", classes.conflict);
        }
        if let Some(prefetch) = level.prefetch {
            self.put(scope, &level.name, "", "prefetches_issued", prefetch.issued);
            self.put(scope, &level.name, "", "prefetches_useful", prefetch.useful);
            self.put(scope, &level.name, "", "prefetches_useless", prefetch.useless);
            self.put(scope, &level.name, "", "prefetches_unused_at_end", prefetch.unused_at_end);
        }
        if report.per_set {
            for (set, misses) in level.set_misses.iter().enumerate() {
                self.put("set", &level.name, &set.to_string(), "misses", *misses);
            }
        }
    }
}

fn one(rows: &mut Rows<'_>, found: &ConfigResults, report: &ReportArguments) {
    rows.put("config", "", "", "line_accesses", found.line_accesses);
    rows.put("config", "", "", "zero_size_records", found.zero_size_records);
    for (name, records) in found.servers().into_iter().zip(&found.served_by) {
        rows.put("served_by", name, "", "records", *records);
    }
    found.levels.iter().for_each(|level| rows.level("level", level, report));
    found.tlb.iter().for_each(|level| rows.level("tlb", level, report));
    rows.put("config", "", "", "memory_reads", found.memory_reads);
    rows.put("config", "", "", "memory_writes", found.memory_writes);
    for (counter, value) in found.coherence.iter().flat_map(|counts| counts.named()) {
        rows.put("mesi", "", "", counter, value);
    }
    if report.per_thread {
        for thread in &found.threads {
            let id = thread.id.map_or_else(|| "others".to_owned(), |id| id.to_string());
            rows.tally("thread", &id, &thread.core.to_string(), &thread.total);
        }
    }
    let Some(types) = &found.types else { return };
    for of in &types.types {
        let name = of.name.as_ref().map_or_else(|| "others".into(), |name| String::from_utf8_lossy(name));
        rows.tally("type", &name, "", &of.total);
        for ((offset, bytes), tally) in &of.fields {
            rows.tally("field", &name, &format!("{offset}+{bytes}"), tally);
        }
    }
    rows.tally("untyped", "", "", &types.untyped);
    rows.put("untyped", "", "", "accesses_to_removed_regions", types.to_removed_regions);
}
