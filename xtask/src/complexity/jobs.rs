//! The verbs, by what their input is.

/// What kind of trace a shape is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Cacheray,
    Lackey,
    Heph,
    Xray,
    Apitrace,
    Casemate,
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
        }
    }
}

/// Of any trace.
const GENERAL: &[&str] = &[
    "info FILE",
    "check FILE",
    "check FILE --format sarif",
    "dump FILE",
    "dump FILE --format jsonl",
    "repair FILE --force -o OUT",
    "trim FILE --force -o OUT --records 0..",
    "convert FILE --force -o OUT",
    "convert FILE --force -o OUT --to jsonl",
    "diff FILE FILE",
];

/// Of traces of memory accesses.
const ACCESSES: &[&str] = &[
    "convert FILE --force -o OUT --to lackey",
    "cacheray sim FILE --config zen3",
    "cacheray sim FILE --config zen3 --types --per-set",
    "cacheray sim FILE --config zen3 --classes --per-thread",
    "cacheray sim FILE --config zen3 --cores 4",
    "cacheray advise FILE",
    "cacheray compare FILE FILE --config zen3",
    "cacheray heatmap FILE",
    "cacheray heatmap FILE --by line",
    "cacheray lifetime FILE",
    "cacheray mrc FILE",
    "cacheray mrc FILE --by type",
    "cacheray mrc FILE --by thread",
    "cacheray mrc FILE --private",
    "cacheray mrc FILE --sample 0.1",
    "cacheray mrc FILE --working-set",
    "cacheray sharing FILE",
    "cacheray sharing FILE --cores 4",
    "cacheray types FILE",
];

/// Of traces with spans.
const SPANS: &[&str] = &[
    "convert FILE --force -o OUT --to chrome",
    "convert FILE --force -o OUT --to csv",
    "convert FILE --force -o OUT --to firefox",
    "convert FILE --force -o OUT --to folded",
    "convert FILE --force -o OUT --to otlp",
    "convert FILE --force -o OUT --to perfetto",
    "convert FILE --force -o OUT --to speedscope",
    "convert FILE --force -o OUT --to svg",
    "flame FILE --format folded",
    "flame FILE --force -o OUT --reverse",
    "stats FILE",
    "stats FILE --by thread --longest 10 --gaps --migrations --events",
    "stats FILE --compare FILE",
    "timeline FILE",
];

const HEPH: &[&str] =
    &["heph spans FILE", "heph stats FILE", "heph loss FILE", "heph convert FILE --compat --force -o OUT"];

const XRAY: &[&str] = &[
    "xray account FILE",
    "xray stack FILE",
    "xray stack FILE --all-stacks",
    "xray stack FILE --all-stacks --per-thread-stacks",
    "xray stack FILE --all-stacks --format csv",
    "xray stack FILE --all-stacks --format folded",
    "xray graph FILE",
    "xray graph-diff FILE FILE",
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
    "apitrace repack FILE OUT --force",
    "apitrace sed FILE --force -o OUT -e s/a/b/",
    "apitrace gltrim FILE --force -o OUT --frames 0",
    "apitrace index FILE --force -o OUT",
];

const CASEMATE: &[&str] = &[
    "casemate check FILE",
    "casemate check FILE --all",
    "casemate check FILE --compat",
    "casemate explain FILE",
    "casemate timeline FILE",
    "casemate state FILE",
    "casemate minimise FILE --force -o OUT",
    "casemate rewrite FILE --force -o OUT",
    "casemate diff FILE FILE",
];

/// The verbs for a kind of trace; `FILE` is the trace, `OUT` what is written.
pub(super) fn jobs(family: Family) -> impl Iterator<Item = &'static str> {
    let lists: &[&[&str]] = match family {
        Family::Cacheray | Family::Lackey => &[GENERAL, ACCESSES],
        Family::Heph => &[GENERAL, SPANS, HEPH],
        Family::Xray => &[GENERAL, SPANS, XRAY],
        Family::Apitrace => &[GENERAL, SPANS, APITRACE],
        Family::Casemate => &[GENERAL, CASEMATE],
    };
    lists.iter().flat_map(|list| list.iter().copied())
}
