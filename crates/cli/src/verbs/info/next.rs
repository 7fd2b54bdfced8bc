//! What to run next, by format.

use std::path::Path;

use anytrace_core::Format;

use crate::shell::quoted;

/// A verb with its options, and what it shows.
type Step = (&'static str, &'static str);

/// The first commands for formats with verbs of their own.
const OWN: [(&str, &[Step]); 3] = [
    ("apitrace", &[("apitrace stats --by frame", "work by frame"), ("apitrace leaks", "objects never deleted")]),
    ("casemate", &[("casemate check", "break-before-make"), ("casemate explain", "each violation, step by step")]),
    ("heph", &[("heph stats", "by description and actor"), ("heph loss", "events that are missing")]),
];

/// The commands for formats with spans.
const SPANS: &[Step] = &[("view", "a timeline in the browser"), ("stats", "where time goes, by name")];

/// The commands for formats with memory accesses.
const ACCESSES: &[Step] = &[("memory types", "which types and fields miss"), ("memory mrc", "misses by cache size")];

/// The commands to run next on a trace, each with what it shows. Standard input cannot be read again.
pub(super) fn steps(path: &Path, format: &dyn Format, is_damaged: bool) -> Vec<(String, &'static str)> {
    if path.as_os_str() == "-" {
        return Vec::new();
    }
    let own = OWN.iter().find(|(name, _)| *name == format.name()).map(|(_, steps)| *steps);
    let steps = match own {
        Some(steps) => steps,
        None if format.has_spans() => SPANS,
        None if format.has_accesses() => ACCESSES,
        None => &[("check", "every violation of the format's rules")],
    };
    let file = quoted(path);
    let repair = is_damaged.then(|| (format!("anytrace repair {file} -o OUT"), "what can be recovered"));
    let steps = steps.iter().map(|(verb, what)| (format!("anytrace {verb} {file}"), *what));
    repair.into_iter().chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_next_step() {
        for format in anytrace_formats::all() {
            let complete = steps(Path::new("a.trace"), *format, false);
            assert!(complete.len() >= 2, "{}", format.name());
            let damaged = steps(Path::new("a.trace"), *format, true);
            assert_eq!(damaged[0].0, "anytrace repair a.trace -o OUT");
            assert!(steps(Path::new("-"), *format, false).is_empty());
        }
    }
}
