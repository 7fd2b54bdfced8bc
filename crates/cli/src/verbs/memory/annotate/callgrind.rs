//! `annotate` in Callgrind's format, version 1: costs of lines in functions of files. It has no word for types.

use std::collections::HashMap;
use std::fmt::Write;

use anytrace_analysis::cache::results::Tally;

use super::Results;
use super::levels::misses;

/// Names that are said in full once.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    /// `(1) name` the first time, then `(1)`.
    fn short(&mut self, name: &str) -> String {
        let next = self.0.len() + 1;
        match self.0.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.0.insert(name.to_owned(), next);
                // A name ends with its line.
                format!("({next}) {}", name.replace(['\n', '\r'], " "))
            }
        }
    }
}

/// The whole file.
pub(super) fn lines(results: &Results) -> String {
    let levels = results.config.levels.iter().map(|level| format!("{}m", level.name.replace(' ', "_")));
    let events: Vec<String> = ["Dr".to_owned(), "Dw".to_owned()].into_iter().chain(levels).collect();
    let mut out = format!(
        "version: 1\ncreator: anytrace {}\ncmd: {}\npositions: instr line\nevents: {}\n",
        env!("CARGO_PKG_VERSION"),
        results.name.replace(['\n', '\r'], " "),
        events.join(" ")
    );
    let costs = |tally: &Tally| {
        let misses = misses(&results.config, tally).map(|(_, misses)| misses);
        let all: Vec<String> = [tally.reads, tally.writes].into_iter().chain(misses).map(|n| n.to_string()).collect();
        all.join(" ")
    };
    let _ = writeln!(out, "summary: {}\n", costs(&results.found.total));
    let (mut objects, mut files, mut functions) = (Names::default(), Names::default(), Names::default());
    for row in &results.found.rows {
        let object = row.file.as_ref().map_or_else(|| "???".to_owned(), |file| file.display().to_string());
        let (file, line) = row.location.as_ref().map_or(("???", 0), |location| (location.file.as_str(), location.line));
        let function = row.function.as_deref().unwrap_or("???");
        let _ = writeln!(
            out,
            "ob={}\nfl={}\nfn={}\n{:#x} {line} {}",
            objects.short(&object),
            files.short(file),
            functions.short(function),
            row.address.unwrap_or(0),
            costs(&row.total)
        );
    }
    if results.found.unknown.accesses() > 0 {
        let unknown = ["ob", "fl", "fn"].into_iter().zip([&mut objects, &mut files, &mut functions]);
        for (key, names) in unknown {
            let _ = writeln!(out, "{key}={}", names.short("???"));
        }
        let _ = writeln!(out, "0x0 0 {}", costs(&results.found.unknown));
    }
    out
}
