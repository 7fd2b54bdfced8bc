//! The counts as text and JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{HotEntry, LockHolds, Maintenance, Stats};
use crate::tools::render::hex;

/// How the unneeded records are proved to be so.
const PROOF: &str = "removing one of these records changes no verdict: the model is in the same state after every \
                     later record";

impl Maintenance {
    fn example(&self) -> String {
        self.example.as_ref().map_or_else(|| "-".to_owned(), |at| at.words())
    }
}

impl Stats {
    /// For people: at most `top` rows of each list.
    pub fn text(&self, top: usize) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(top, &mut out);
        out
    }

    fn write(&self, top: usize, out: &mut String) -> std::fmt::Result {
        writeln!(out, "{}: {} transitions, {} violations", self.file, self.events, self.violations)?;
        writeln!(out, "\nmaintenance: records, of these unneeded, the first unneeded one")?;
        for (name, row) in &self.operations {
            writeln!(out, "  {name:<18} {:>9} {:>9}  {}", row.records, row.unneeded, row.example())?;
        }
        let mut threads: Vec<_> = self.threads.iter().filter(|(_, row)| row.unneeded > 0).collect();
        threads.sort_by_key(|(_, row)| std::cmp::Reverse(row.unneeded));
        writeln!(out, "\nby thread, most unneeded first")?;
        for ((name, thread), row) in threads.into_iter().take(top) {
            let thread = format!("thread {thread}");
            writeln!(out, "  {thread:<11} {name:<18} {:>9} {:>9}  {}", row.records, row.unneeded, row.example())?;
        }
        writeln!(out, "\nlocks, longest hold first: times taken, records of the longest hold")?;
        for lock in self.locks.iter().take(top) {
            write!(out, "  {:<#18x} {:>9}", lock.lock, lock.taken)?;
            if let Some(longest) = lock.longest {
                let (first, last) = (longest.first, longest.last);
                write!(out, " {:>9}  records {first} to {last}, thread {}", longest.events(), longest.thread)?;
            }
            if let Some(first) = lock.open_since {
                write!(out, "  held since record {first} at the end")?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\nentries, most written first: writes, cycles of break-before-make, records")?;
        for entry in self.entries.iter().take(top) {
            let (first, last) = (entry.first, entry.last);
            let place = entry.location;
            writeln!(out, "  {place:<#18x} {:>9} {:>9}  {first} to {last}", entry.writes, entry.cycles)?;
        }
        writeln!(out, "\n{PROOF}")?;
        if self.operations.get("isb").is_some_and(|row| row.unneeded > 0) {
            writeln!(out, "isb: the model has no rule that needs one; a processor may")?;
        }
        if self.doubts > 0 {
            writeln!(out, "{} steps are not modelled: they may need what the model does not", self.doubts)?;
        }
        Ok(())
    }

    /// For programs: at most `top` rows of each list, except operations.
    pub fn json(&self, top: usize) -> Value {
        let row = |row: &Maintenance| {
            let example = row.example.as_ref();
            let example = example.map(|at| {
                json!({"index": at.index, "record_id": at.id, "thread": at.thread, "src": at.source, "record": at.text})
            });
            json!({"records": row.records, "unneeded": row.unneeded, "example": example})
        };
        let operations = self.operations.iter().map(|(name, counts)| {
            let mut value = row(counts);
            value["operation"] = json!(name);
            let own = self.threads.range((name.clone(), 0)..=(name.clone(), u32::MAX));
            let own = own.map(|((_, thread), counts)| {
                let mut value = row(counts);
                value["thread"] = json!(thread);
                value
            });
            value["threads"] = own.collect();
            value
        });
        json!({
            "version": 1,
            "file": self.file,
            "events": self.events,
            "violations": self.violations,
            "not_modelled": self.doubts,
            "maintenance": operations.collect::<Vec<_>>(),
            "unneeded": self.unneeded.iter().take(top).collect::<Vec<_>>(),
            "unneeded_count": self.operations.values().map(|row| row.unneeded).sum::<u64>(),
            "locks": self.locks.iter().take(top).map(lock_json).collect::<Vec<_>>(),
            "lock_count": self.locks.len(),
            "entries": self.entries.iter().take(top).map(entry_json).collect::<Vec<_>>(),
            "entry_count": self.entries.len(),
        })
    }
}

fn lock_json(lock: &LockHolds) -> Value {
    let longest = lock
        .longest
        .map(|hold| json!({"events": hold.events(), "first": hold.first, "last": hold.last, "thread": hold.thread}));
    json!({"location": hex(lock.lock), "taken": lock.taken, "events": lock.events, "longest": longest,
           "open_since": lock.open_since})
}

fn entry_json(entry: &HotEntry) -> Value {
    json!({"location": hex(entry.location), "writes": entry.writes, "cycles": entry.cycles, "first": entry.first,
           "last": entry.last})
}
