//! The verbs, by what their input is.

/// What kind of file a shape is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Cacheray,
    Lackey,
    Heph,
    Xray,
    Apitrace,
    Casemate,
    Perfetto,
    Chrome,
    Perf,
    Fuchsia,
    Ctf,
    /// What programs are made of: object files, or maps of them.
    Object,
    /// JSON as glretrace dumps the state of GL.
    State,
    /// PNG files one after another; in a folder each is a file of its own.
    Pictures,
}

impl Family {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Cacheray => "cacheray",
            Self::Lackey => "lackey",
            Self::Heph => "heph",
            Self::Xray => "xray",
            Self::Apitrace => "trace",
            Self::Casemate => "casemate",
            Self::Perfetto => "perfetto",
            Self::Chrome => "chrome",
            Self::Perf => "perf",
            Self::Fuchsia => "fuchsia",
            Self::Ctf => "ctf",
            Self::Object => "object",
            Self::State => "json",
            Self::Pictures => "pictures",
        }
    }

    /// The name of its own form, for `convert --to`.
    pub(super) fn form(self) -> &'static str {
        match self {
            Self::Apitrace => "apitrace",
            other => other.extension(),
        }
    }
}

/// Of any trace.
const GENERAL: &[&str] = &[
    "info FILE",
    "highlights FILE",
    "report FILE --force -o OUT",
    "convert FILE --force -o OUT --to html",
    "check FILE",
    "check FILE --format sarif",
    "check --follow - < FILE",
    "dump FILE",
    "dump FILE --format jsonl",
    "repair FILE --force -o OUT",
    "trim FILE --force -o OUT --records 0..",
    "convert FILE --force -o OUT",
    "convert FILE --force -o OUT --to FORM",
    "convert FILE --force -o OUT --to jsonl",
    "convert LINES --force -o OUT --to FORM",
    "convert FILE --force -o OUT --to arrow --table events",
    "convert FILE --force -o OUT --to parquet --table events",
    "index FILE --force -o OUT",
    "diff FILE FILE",
    "diff FILE OTHER",
];

/// Of traces of memory accesses.
const ACCESSES: &[&str] = &[
    "convert FILE --force -o OUT --to din",
    "convert FILE --force -o OUT --to lackey",
    "convert FILE --force -o OUT --to xdin",
    "memory sim FILE --config zen3",
    "memory sim FILE --config zen3 --types --per-set",
    "memory sim FILE --config zen3 --classes --per-thread",
    "memory sim FILE --config zen3 --cores 4",
    "memory advise FILE",
    "memory compare FILE FILE --config zen3",
    "memory heatmap FILE",
    "memory heatmap FILE --by line",
    "memory annotate FILE --config zen3",
    "memory lifetime FILE",
    "memory mrc FILE",
    "memory mrc FILE --by type",
    "memory mrc FILE --by thread",
    "memory mrc FILE --private",
    "memory mrc FILE --sample 0.1",
    "memory mrc FILE --working-set",
    "memory numa FILE",
    "memory numa FILE --nodes 64",
    "memory report FILE --config zen3 --force -o OUT",
    "memory sharing FILE",
    "memory sharing FILE --cores 4",
    "memory types FILE",
];

/// Of traces with spans.
const SPANS: &[&str] = &[
    "convert FILE --force -o OUT --to callgrind",
    "convert FILE --force -o OUT --to chrome",
    "convert FILE --force -o OUT --to csv",
    "convert FILE --force -o OUT --to firefox",
    "convert FILE --force -o OUT --to folded",
    "convert FILE --force -o OUT --to otlp",
    "convert FILE --force -o OUT --to perf-script",
    "convert FILE --force -o OUT --to perfetto",
    "convert FILE --force -o OUT --to pprof",
    "convert FILE --force -o OUT --to speedscope",
    "convert FILE --force -o OUT --to svg",
    "flame FILE --format folded",
    "flame FILE --force -o OUT --reverse",
    "merge FILE OTHER --force -o OUT --to chrome",
    "stats FILE",
    "stats --merge FILE FILE",
    "stats FILE --by thread --longest 10 --gaps --migrations --events",
    "stats FILE --outliers 3 --self",
    "stats FILE --against FILE",
    "stats FILE --against OTHER",
    "timeline FILE",
];

const HEPH: &[&str] = &[
    "heph spans FILE",
    "heph spans FILE --streaming",
    "heph stats FILE",
    "heph tasks FILE",
    "heph loss FILE",
    "heph convert FILE --compat --force -o OUT",
    "heph collect --no-follow --follow FILE --summary none -o OUT",
    "heph replay FILE --to - --speed max",
];

const XRAY: &[&str] = &[
    "convert FILE --force -o OUT --to basic",
    "convert FILE --force -o OUT --to fdr",
    "convert FILE --force -o OUT --to yaml",
    "xray account FILE",
    "xray stack FILE",
    "xray stack FILE --all-stacks",
    "xray stack FILE --all-stacks --per-thread-stacks",
    "xray stack FILE --all-stacks --format csv",
    "xray stack FILE --stack-format flame --aggregation-type count",
    "xray graph FILE",
    "xray graph-diff FILE FILE",
    "xray graph-diff FILE OTHER",
    "xray convert FILE --force -o OUT --output-format yaml",
    "xray convert FILE --force -o OUT --output-format trace_event",
    "xray convert FILE --force -o OUT --output-format raw",
    "xray fdr-dump FILE",
];

const APITRACE: &[&str] = &[
    "apitrace dump FILE",
    "apitrace info FILE",
    "apitrace stats FILE",
    "apitrace leaks FILE",
    "apitrace state FILE",
    "apitrace pickle FILE",
    "apitrace jsonl FILE",
    "apitrace diff FILE FILE",
    "apitrace diff FILE OTHER",
    "apitrace from-jsonl CALLS --force -o OUT",
    "apitrace repack FILE OUT --force",
    "apitrace sed FILE --force -o OUT -e s/a/b/",
    "apitrace gltrim FILE --force -o OUT --frames 0",
    "apitrace index FILE --force -o OUT",
    "apitrace replay FILE",
    "apitrace to-c FILE --force -o OUT",
    "apitrace trim FILE --force -o OUT --calls 0-1000000000",
    "apitrace trim FILE --force -o OUT --frames 0-1000000000/3 --thread 0",
];

const CASEMATE: &[&str] = &[
    "casemate check FILE",
    "casemate check FILE --all",
    "casemate check FILE --compat",
    "casemate check --all --follow - < FILE",
    "casemate check FILE --all --threads 4",
    "casemate explain FILE",
    "casemate timeline FILE --all-unclean",
    "casemate timeline FILE --location 0x40003000",
    "casemate state FILE",
    "casemate minimise FILE --force -o OUT --patience 3",
    "casemate rewrite FILE --force -o OUT",
    "casemate stats FILE",
    "casemate stats FILE --top 0 --format json",
    "casemate walk FILE --root 0x40000000",
    "casemate walk FILE --root 0x40000000 --address 0x1000",
    "casemate walk FILE --root 0x40000000 --diff 10..20",
    "casemate diff FILE FILE",
    "casemate diff FILE OTHER",
];

const OBJECT: &[&str] = &["xray extract FILE", "xray extract FILE -s"];

const STATE: &[&str] = &[
    "apitrace diff-state FILE FILE",
    "apitrace diff-state FILE OTHER",
    "apitrace diff-state FILE OTHER --keep-images",
];

const PICTURES: &[&str] =
    &["apitrace diff-images FILE FILE --force -o OUT", "apitrace diff-images FILE OTHER --force -o OUT --show-all"];

/// Verbs that ask for something which these shapes do not have: a root at that address, calls of functions.
const NOT_FOR: &[(&str, &[&str])] = &[
    ("casemate walk", &["cm-writes", "cm-locks", "cm-fills", "cm-pages-apart"]),
    ("convert FILE --force -o OUT --to basic", &["xr-events"]),
];

/// True when a job can be done with a shape.
pub(super) fn is_for(job: &str, shape: &str) -> bool {
    !NOT_FOR.iter().any(|(verb, shapes)| job.starts_with(verb) && shapes.contains(&shape))
}

/// Verbs that no shape is for, and why.
pub(super) const EXEMPT: &[(&str, &str)] = &[
    ("formats", "prints a list of its own"),
    ("demo", "writes traces of its own"),
    ("rules", "prints a list of its own"),
    ("casemate rules", "prints a list of its own"),
    ("completions", "prints what the program's options are"),
    ("man", "prints what the program's options are"),
    ("view", "runs until it is interrupted; `timeline` reads the same spans"),
    ("query", "another program runs it, on the tables that `convert --to arrow` reads"),
    ("heph open", "reads the memory of a recorder, of a fixed size"),
    ("heph recover", "reads the memory of a recorder, of a fixed size"),
    ("casemate collect", "reads the memory of a program, of a fixed size"),
    ("apitrace dump-images", "replays as `apitrace replay` does"),
    ("apitrace frames", "replays as `apitrace replay` does"),
    ("cacheray cc", "runs a compiler and reads nothing"),
    ("record", "runs a program, as `apitrace trace` and `cacheray record` do"),
    ("apitrace trace", "runs a program, whose calls `cargo xtask bench tracer` times"),
    ("cacheray record", "runs a program, whose accesses `cargo xtask bench recorder` times"),
];

/// All kinds.
pub(super) const FAMILIES: [Family; 14] = [
    Family::Cacheray,
    Family::Lackey,
    Family::Heph,
    Family::Xray,
    Family::Apitrace,
    Family::Casemate,
    Family::Perfetto,
    Family::Chrome,
    Family::Perf,
    Family::Fuchsia,
    Family::Ctf,
    Family::Object,
    Family::State,
    Family::Pictures,
];

/// The verbs for a kind of file. `FILE` is the file; `OTHER` one of the same shape, a quarter shorter; `LINES` its JSON
/// lines, `< FILE` is standard input, `CALLS` those of `apitrace jsonl`; `OUT` what is written, `FORM` the name of the file's own form.
pub(super) fn jobs(family: Family) -> impl Iterator<Item = &'static str> {
    let lists: &[&[&str]] = match family {
        Family::Cacheray | Family::Lackey => &[GENERAL, ACCESSES],
        Family::Heph => &[GENERAL, SPANS, HEPH],
        Family::Xray => &[GENERAL, SPANS, XRAY],
        Family::Apitrace => &[GENERAL, SPANS, APITRACE],
        Family::Casemate => &[GENERAL, CASEMATE],
        Family::Perfetto | Family::Chrome | Family::Perf | Family::Fuchsia | Family::Ctf => &[GENERAL, SPANS],
        Family::Object => &[OBJECT],
        Family::State => &[STATE],
        Family::Pictures => &[PICTURES],
    };
    lists.iter().flat_map(|list| list.iter().copied())
}
