//! One idea has one spelling: the table of ideas, and how an option is recognized that has one of them.

use std::any::TypeId;

use anytrace_core::TimeBound;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction};

use super::{command, verbs};
use crate::arguments::{RANGE, TOP, format_names};

/// What several verbs have an option for.
struct Idea {
    /// The only long name.
    long: &'static str,
    /// The only short name.
    short: Option<char>,
    /// True for an option that has the idea, whatever it is called.
    is: fn(&Seen<'_>) -> bool,
    /// Other words for it, recognized without looking at anything else.
    others: &'static [&'static str],
    /// Verbs and options that are something else, or copy a peer's spelling.
    besides: &'static [(&'static str, &'static str)],
    /// The name of its value and a help by which it must be recognized under a name that nobody has thought of.
    example: (&'static str, &'static str),
}

/// What a user sees of an option, in lower case, and what reads its value.
struct Seen<'a> {
    argument: &'a Arg,
    help: String,
    value: String,
}

impl<'a> Seen<'a> {
    fn new(argument: &'a Arg) -> Self {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
        let takes_value = argument.get_action().takes_values();
        let names = argument.get_value_names().filter(|_| takes_value).unwrap_or_default();
        let value = names.first().map(ToString::to_string).unwrap_or_default();
        Self { argument, help, value }
    }

    fn says(&self, any: &[&str]) -> bool {
        any.iter().any(|words| self.help.contains(words))
    }

    fn is_valued(&self, any: &[&str]) -> bool {
        any.contains(&self.value.as_str())
    }

    fn reads<T: 'static>(&self) -> bool {
        self.argument.get_value_parser().type_id() == TypeId::of::<T>()
    }

    /// True where all of these values can be chosen.
    fn offers(&self, all: &[&str]) -> bool {
        let values = self.argument.get_possible_values();
        all.iter().all(|name| values.iter().any(|value| value.get_name() == *name))
    }

    fn is_flag(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::SetTrue)
    }

    /// True for a range of times; of those that are lengths, too.
    fn is_times(&self) -> bool {
        self.reads::<(TimeBound, TimeBound)>()
            || self.is_valued(&["A..B"]) && self.says(&["nanoseconds", "with ns, us", "times a..b"])
    }
}

const fn idea(
    long: &'static str,
    short: Option<char>,
    is: fn(&Seen<'_>) -> bool,
    others: &'static [&'static str],
    besides: &'static [(&'static str, &'static str)],
    example: (&'static str, &'static str),
) -> Idea {
    Idea { long, short, is, others, besides, example }
}

/// Of an option that is recognized as several, the first counts.
const IDEAS: &[Idea] = &[
    idea(
        "at",
        None,
        |one| one.is_valued(&["RECORD"]) || one.says(&["after this record", "after this call"]),
        &["call", "after", "until", "record"],
        // apitrace's.
        &[("apitrace replay", "dump-state"), ("apitrace replay", "D")],
        ("N", "Print the state after this call"),
    ),
    idea(
        "duration",
        None,
        |one| one.is_times() && one.says(&["length", "duration", "long"]),
        &["length", "lengths", "latency"],
        // Of memory, in bytes.
        &[("casemate collect", "length")],
        ("A..B", "Lengths of spans, with ns, us, ms, s"),
    ),
    idea(
        "time",
        None,
        |one| one.is_times(),
        &["times", "time-range", "from-time", "to-time", "since", "between"],
        &[],
        ("A..B", "Times A..B: nanoseconds since the start"),
    ),
    idea(
        "depth",
        None,
        |one| one.is_valued(&["A..B"]) && one.says(&["depth", "around them"]),
        &["depths", "nesting", "level-range"],
        &[],
        ("A..B", "Only spans at these nesting depths"),
    ),
    idea(
        "records",
        None,
        |one| one.is_valued(&["A..B"]) && one.says(&["record"]),
        &["record-range", "record-numbers"],
        &[],
        ("A..B", "Record numbers from 0"),
    ),
    idea(
        "calls",
        None,
        |one| one.is_valued(&["CALLSET"]),
        &["call-set", "callset"],
        &[
            ("apitrace diff", "ref-calls"),
            ("apitrace diff", "src-calls"),
            ("apitrace replay", "snapshot"),
            ("apitrace replay", "S"),
            ("apitrace replay", "ignore-calls"),
        ],
        ("CALLSET", "Only these"),
    ),
    idea(
        "frames",
        None,
        |one| one.is_valued(&["FRAMESET"]) || one.is_valued(&["SET"]) && one.says(&["frame"]),
        &["frame", "frame-set", "frame-range"],
        &[("apitrace gltrim", "setupframes")],
        ("SET", "Frames by number from 0"),
    ),
    idea(
        "buffers",
        None,
        |one| one.is_valued(&["SET"]) && one.says(&["buffer"]),
        &["buffer", "buffer-set", "blocks"],
        &[],
        ("SET", "Buffers by number from 0"),
    ),
    idea(
        "threads",
        None,
        |one| one.is_valued(&["N"]) && one.says(&["threads to use"]),
        &["jobs", "workers", "parallel", "processors"],
        // Those of pictures, beside those of reading.
        &[("apitrace replay", "jobs")],
        ("N", "Threads to use, 1 to 64"),
    ),
    idea(
        "thread",
        None,
        |one| one.is_valued(&["ID", "THREAD", "TID"]),
        &["tid", "thread-id"],
        &[],
        ("ID", "A thread; may be repeated"),
    ),
    idea(
        "limit",
        None,
        |one| one.is_valued(&["N"]) && one.says(&["diagnostic"]),
        &["max-diagnostics", "max-errors", "diagnostics"],
        &[],
        ("N", "Show at most N diagnostics per file"),
    ),
    idea(
        "top",
        Some('n'),
        |one| {
            let few = ["at most n", "only so many", "most rows", "how many rows", "rows of each", "0 shows all"];
            one.is_valued(&["N"]) && one.says(&few)
        },
        &["rows", "lines", "count", "most", "max-rows", "head", "first"],
        // llvm-xray's short form; -n is accepted as well.
        &[("xray account", "p"), ("xray stack", "p"), ("heph stats", "longest"), ("stats", "longest")],
        ("N", "Show at most N rows; 0 shows all"),
    ),
    idea(
        "color",
        None,
        |one| one.offers(&["always", "never"]) && one.says(&["color"]),
        &["colour", "colors", "coloured", "no-color"],
        &[],
        ("WHEN", "When to use colors"),
    ),
    idea(
        "input-format",
        None,
        |one| one.argument.get_possible_values().len() == format_names().len() && one.offers(&format_names()),
        &["from-format", "input-type", "from"],
        // Where the window for Perfetto begins.
        &[("view", "from")],
        ("NAME", ""),
    ),
    idea(
        "format",
        None,
        |one| one.offers(&["json"]),
        &["form", "output-as", "output-format", "stack-format", "json"],
        &[
            // llvm-xray's.
            ("xray account", "f"),
            ("xray convert", "output-format"),
            ("xray stack", "stack-format"),
            ("apitrace gltrim", "explain"),
            // While it runs; --format is of the report at the end.
            ("heph collect", "summary"),
        ],
        ("FORM", ""),
    ),
    idea(
        "output",
        Some('o'),
        |one| one.is_valued(&["OUT"]) || one.says(&["file to write", "write to this file"]),
        &["out", "outfile", "output-file", "dest", "write-to"],
        &[],
        ("FILE", "Write to this file instead of standard output"),
    ),
    idea(
        "force",
        None,
        |one| one.is_flag() && one.help.starts_with("replace"),
        &["overwrite", "clobber", "yes", "replace"],
        &[],
        ("", "Replace an existing file"),
    ),
    idea(
        "against",
        None,
        |one| one.is_valued(&["BASE", "OTHER"]) || one.says(&["with another trace", "compare with this trace"]),
        &["compare", "baseline", "other", "compare-to", "base"],
        &[],
        ("FILE", "Compare with another trace"),
    ),
    idea(
        "program",
        Some('m'),
        |one| {
            one.is_valued(&["PROGRAM", "PROG", "[OBJECT=]PATH"])
                || one.is_valued(&["PATH", "FILE"]) && one.says(&["function names", "debug data", "dwarf"])
        },
        &["binary", "instr-map", "types-json", "executable", "exe", "symbols", "debug-file"],
        // One for each of two traces, as llvm-xray has them.
        &[("xray graph-diff", "program-1"), ("xray graph-diff", "program-2")],
        ("PATH", "Read function names from this file"),
    ),
    idea(
        "name",
        None,
        |one| one.is_valued(&["REGEX"]),
        &["function", "description", "regex", "pattern", "match"],
        // apitrace's.
        &[("apitrace dump", "grep")],
        ("REGEX", "Only what matches"),
    ),
    idea(
        "config",
        None,
        |one| one.is_valued(&["FILE|PRESET", "PRESET"]),
        &["cache", "caches", "preset"],
        &[],
        ("FILE|PRESET", "Caches to simulate"),
    ),
    idea(
        "seed",
        None,
        |one| one.is_valued(&["N", "SEED"]) && one.says(&["seed", "random"]),
        &["random-seed", "rng-seed", "random"],
        &[],
        ("N", "Seed of what is drawn by chance"),
    ),
];

/// The idea that an option has.
fn idea_of(argument: &Arg) -> Option<&'static Idea> {
    let (seen, long) = (Seen::new(argument), argument.get_long()?);
    let named = || IDEAS.iter().find(|idea| idea.others.contains(&long));
    IDEAS.iter().find(|idea| idea.long == long).or_else(|| IDEAS.iter().find(|idea| (idea.is)(&seen))).or_else(named)
}

/// What is wrong with the names of an option.
fn wrong(path: &str, argument: &Arg) -> Option<String> {
    let (idea, long) = (idea_of(argument)?, argument.get_long()?);
    let short = argument.get_short();
    let is_besides = |name: &str| idea.besides.contains(&(path, name));
    if long != idea.long && !is_besides(long) {
        return Some(format!("{path} --{long}: elsewhere it is --{}", idea.long));
    }
    let is_other = short != idea.short && !short.is_some_and(|short| is_besides(&short.to_string()));
    if long == idea.long && is_other && !is_peers_short(path, long) {
        return Some(format!("{path} --{long}: -{short:?}, elsewhere -{:?}", idea.short));
    }
    let shown = argument.get_visible_aliases().unwrap_or_default();
    shown.first().map(|alias| format!("{path} --{long}: --{alias} is shown, too"))
}

/// Short forms that apitrace has for these.
fn is_peers_short(path: &str, long: &str) -> bool {
    [("apitrace diff", "calls"), ("apitrace gltrim", "frames")].contains(&(path, long))
}

#[test]
fn one_idea_has_one_spelling_in_all_verbs() {
    let mut wrongs = Vec::new();
    let mut count = 0;
    for (path, verb) in verbs() {
        for argument in verb.get_arguments().filter(|argument| !argument.is_hide_set()) {
            // Containers of apitrace's repack are spelled as two versions of it do.
            if path == "apitrace repack" && argument.get_long() == Some("zlib") {
                continue;
            }
            count += 1;
            wrongs.extend(wrong(&path, argument));
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    assert!(count > 500, "{count} options");
}

#[test]
fn a_new_spelling_of_a_known_idea_is_found() {
    for idea in IDEAS {
        let (value, help) = idea.example;
        let mut argument = Arg::new("new").long("zzz").help(help);
        argument = match idea.long {
            "force" => argument.action(ArgAction::SetTrue),
            "color" => argument.value_parser(["auto", "always", "never"]),
            "format" => argument.value_parser(["text", "json"]),
            "input-format" => argument.value_parser(format_names()),
            _ => argument.value_name(value),
        };
        let found = wrong("stats", &argument);
        assert_eq!(found, Some(format!("stats --zzz: elsewhere it is --{}", idea.long)));
        for other in idea.others {
            assert!(wrong("stats", &Arg::new("new").long(*other)).is_some(), "--{other} for --{}", idea.long);
        }
    }
    assert!(wrong("stats", &Arg::new("new").long("top").value_name("N")).is_some(), "-n is missing");
}

#[test]
fn every_exception_is_of_an_option_that_is_there() {
    let all = verbs();
    for (path, name) in IDEAS.iter().flat_map(|idea| idea.besides) {
        let verb = all.iter().find(|(other, _)| other == path).map(|(_, verb)| verb).unwrap();
        let has = |argument: &Arg| {
            argument.get_long() == Some(name) || argument.get_short().is_some_and(|short| short.to_string() == *name)
        };
        assert!(verb.get_arguments().any(has), "{path} {name}");
    }
}

#[test]
fn all_ranges_and_all_numbers_of_rows_are_explained_alike() {
    for (path, verb) in verbs() {
        let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        for argument in verb.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let (seen, long) = (Seen::new(argument), argument.get_long().unwrap_or_default());
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            if seen.is_valued(&["A..B", "SET"]) {
                assert!(help.contains(RANGE), "{path} --{long}: {help}");
            }
            if long == "top" {
                assert!(help.starts_with(TOP), "{path}: {help}");
            }
            for name in ["CALLSET", "FRAMESET"] {
                let refers = || after.contains("as for") || after.contains("see `anytrace apitrace");
                let is_said = after.contains(&RANGE.replace(' ', "")) || after.replace('\n', " ").contains(RANGE);
                assert!(!seen.is_valued(&[name]) || is_said || refers() || long == "calls", "{path} {name}: {after}");
            }
        }
    }
    assert!(ValueParser::path_buf().type_id() == TypeId::of::<std::path::PathBuf>());
    command().debug_assert();
}
