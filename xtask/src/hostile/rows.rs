//! What a campaign has to know of verbs and options beyond their help: what they read, what may be passed.

/// A verb's row.
pub(super) struct Row {
    pub(super) verb: &'static str,
    /// What its arguments are, in order; the last is for all that follow.
    pub(super) reads: &'static [Reads],
    /// Formats its traces are mostly of; all where none is named.
    pub(super) formats: &'static [&'static str],
    /// Always passed.
    pub(super) always: &'static [&'static str],
    /// What exit code 1 says.
    pub(super) one: One,
    /// Where results in the form of `--format` go.
    pub(super) results: Results,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Trace,
    /// JSON lines of `apitrace jsonl` or of `dump`: a trace's, as another file.
    Lines,
    /// States of GL as JSON.
    States,
    /// An object file or a map.
    Object,
    /// How names of pictures begin.
    Pictures,
    /// Memory with ring buffers of `casemate_trace.h`.
    Rings,
    /// A file to write.
    Output,
}

/// What exit code 1 says of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum One {
    /// The trace is damaged, and 0 that it is not.
    Damage,
    /// That, or what the verb looked for was found; 0 still says that nothing was lost.
    Verdict,
    /// Something else: no rule of the campaign.
    Other,
}

/// Where the form of `--format` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    Stdout,
    /// In `--output`, which is standard output where it is not given.
    Output,
}

use One::{Damage, Other, Verdict};
use Reads::{Lines, Object, Pictures, Rings, States, Trace};

const GENERIC: &[&str] = &[];
const APITRACE: &[&str] = &["apitrace"];
const ACCESSES: &[&str] = &["cacheray", "cacheray", "lackey"];
const CASEMATE: &[&str] = &["casemate"];
const HEPH: &[&str] = &["heph"];
const XRAY: &[&str] = &["xray"];
const SPANS: &[&str] = &["xray", "heph", "apitrace", "chrome", "ctf", "fuchsia", "perf", "perfetto"];

const fn row(verb: &'static str, formats: &'static [&'static str], reads: &'static [Reads], one: One) -> Row {
    Row { verb, reads, formats, always: &[], one, results: Results::Stdout }
}

const fn to_output(row: Row) -> Row {
    Row { results: Results::Output, ..row }
}

const fn with(row: Row, always: &'static [&'static str]) -> Row {
    Row { always, ..row }
}

/// Every verb that reads something.
pub(super) const ROWS: &[Row] = &[
    row("info", GENERIC, &[Trace], Damage),
    row("highlights", GENERIC, &[Trace], Damage),
    to_output(row("report", GENERIC, &[Trace], Damage)),
    row("dump", GENERIC, &[Trace], Damage),
    row("check", GENERIC, &[Trace], Verdict),
    row("repair", GENERIC, &[Trace], Other),
    row("convert", GENERIC, &[Trace], Verdict),
    to_output(row("merge", SPANS, &[Trace, Trace], Damage)),
    row("trim", GENERIC, &[Trace], Verdict),
    row("diff", GENERIC, &[Trace, Trace], Verdict),
    row("stats", SPANS, &[Trace], Damage),
    to_output(row("flame", SPANS, &[Trace], Damage)),
    row("timeline", SPANS, &[Trace], Damage),
    row("index", GENERIC, &[Trace], Damage),
    row("apitrace diff", APITRACE, &[Trace, Trace], Verdict),
    row("apitrace diff-images", GENERIC, &[Pictures, Pictures], Other),
    row("apitrace diff-state", GENERIC, &[States, States], Other),
    row("apitrace dump", APITRACE, &[Trace], Damage),
    row("apitrace from-jsonl", APITRACE, &[Lines], Other),
    row("apitrace gltrim", APITRACE, &[Trace], Damage),
    row("apitrace index", APITRACE, &[Trace], Damage),
    row("apitrace info", APITRACE, &[Trace], Damage),
    row("apitrace jsonl", APITRACE, &[Trace], Damage),
    row("apitrace leaks", APITRACE, &[Trace], Verdict),
    row("apitrace pickle", APITRACE, &[Trace], Damage),
    // A driver that crashes is a verdict: it need not be the trace's fault.
    with(row("apitrace replay", APITRACE, &[Trace], Verdict), &["--watchdog=10"]),
    with(row("apitrace dump-images", APITRACE, &[Trace], Verdict), &["--watchdog=10"]),
    with(row("apitrace frames", APITRACE, &[Trace], Verdict), &["--watchdog=10"]),
    // Events are not looked at: only a container's damage is its concern.
    row("apitrace repack", APITRACE, &[Trace, Reads::Output], Other),
    row("apitrace sed", APITRACE, &[Trace], Damage),
    row("apitrace state", APITRACE, &[Trace], Damage),
    row("apitrace stats", APITRACE, &[Trace], Damage),
    row("apitrace to-c", APITRACE, &[Trace], Damage),
    row("apitrace trim", APITRACE, &[Trace], Damage),
    row("memory advise", ACCESSES, &[Trace], Damage),
    row("memory annotate", ACCESSES, &[Trace], Damage),
    row("memory compare", ACCESSES, &[Trace, Trace], Verdict),
    to_output(row("memory heatmap", ACCESSES, &[Trace], Damage)),
    row("memory lifetime", ACCESSES, &[Trace], Verdict),
    row("memory mrc", ACCESSES, &[Trace], Damage),
    row("memory numa", ACCESSES, &[Trace], Damage),
    to_output(row("memory report", ACCESSES, &[Trace], Damage)),
    row("memory sharing", ACCESSES, &[Trace], Damage),
    row("memory sim", ACCESSES, &[Trace], Damage),
    row("memory types", ACCESSES, &[Trace], Damage),
    row("casemate check", CASEMATE, &[Trace], Verdict),
    row("casemate collect", CASEMATE, &[Rings], Other),
    row("casemate diff", CASEMATE, &[Trace, Trace], Verdict),
    row("casemate explain", CASEMATE, &[Trace], Verdict),
    row("casemate minimise", CASEMATE, &[Trace], Verdict),
    row("casemate rewrite", CASEMATE, &[Trace], Damage),
    row("casemate state", CASEMATE, &[Trace], Verdict),
    row("casemate stats", CASEMATE, &[Trace], Damage),
    row("casemate timeline", CASEMATE, &[Trace], Verdict),
    row("casemate walk", CASEMATE, &[Trace], Verdict),
    row("heph convert", HEPH, &[Trace], Damage),
    row("heph loss", HEPH, &[Trace], Verdict),
    row("heph spans", HEPH, &[Trace], Damage),
    row("heph stats", HEPH, &[Trace], Damage),
    row("heph tasks", HEPH, &[Trace], Damage),
    with(row("heph collect", HEPH, &[], Other), &["--no-follow", "--follow", "@trace", "--summary", "none"]),
    with(row("heph replay", HEPH, &[Trace], Verdict), &["--speed", "max"]),
    to_output(row("xray account", XRAY, &[Trace], Damage)),
    to_output(row("xray convert", XRAY, &[Trace], Damage)),
    to_output(row("xray extract", XRAY, &[Object], Other)),
    row("xray fdr-dump", XRAY, &[Trace], Damage),
    to_output(row("xray graph", XRAY, &[Trace], Damage)),
    to_output(row("xray graph-diff", XRAY, &[Trace, Trace], Verdict)),
    row("xray stack", XRAY, &[Trace], Damage),
];

/// Verbs that read nothing another could have made.
pub(super) const NOT_RUN: &[&str] = &[
    "formats",
    "demo",
    "rules",
    "completions",
    "man",
    "casemate rules",
    // Its engine is another program; `convert --to parquet` reads the same tables.
    "query",
    // It runs until it is interrupted; its own tests damage traces.
    "view",
    // They read what a killed program left; the tests of its recorder, `survive.rs`, damage that.
    "heph open",
    "heph recover",
    // They run what they are given.
    "cacheray cc",
    "cacheray record",
    "apitrace trace",
    "record",
];

/// Options of which a verb does nothing without one, as a rule: one is passed in most runs.
pub(super) const MOSTLY: &[(&str, &[&str])] = &[
    ("trim", &["--records", "--thread", "--name"]),
    ("apitrace gltrim", &["--frames"]),
    ("apitrace sed", &["-e", "--property"]),
    ("apitrace trim", &["--calls", "--frames"]),
    ("memory compare", &["--config"]),
    ("memory sim", &["--config"]),
    ("casemate timeline", &["--all-unclean", "--location"]),
];

/// Options with which the input comes through a pipe: a file is followed until an interrupt.
pub(super) const FOLLOWING: &[(&str, &str)] = &[("check", "--follow"), ("casemate check", "--follow")];

/// Options that are skipped: they wait for others, or for a person.
pub(super) const NOT_PASSED: &[(&str, &str)] = &[
    ("heph collect", "--listen"),
    ("heph collect", "--follow"),
    ("heph collect", "--no-follow"),
    ("heph collect", "--summary"),
    ("heph collect", "--insecure"),
    // They wait for a program that writes; crates/cli/tests/casemate_collect.rs has some.
    ("casemate collect", "--follow"),
    ("casemate collect", "--pid"),
    // Only where a trace is followed, and its state is stored; crates/cli/tests/casemate_follow.rs damages that.
    ("casemate check", "--checkpoint"),
    ("casemate check", "--checkpoint-every"),
    // It opens a browser.
    ("heph collect", "--view"),
    ("heph replay", "--loop"),
    ("heph tasks", "--every"),
    ("apitrace replay", "--loop"),
    // It needs an X server.
    ("apitrace replay", "--window"),
    // It takes two values, and runs `apitrace replay` for each.
    ("apitrace replay", "--bisect"),
    // It lists devices, and reads no trace.
    ("apitrace replay", "--list-devices"),
    // They print what is known before, and read no trace.
    ("apitrace replay", "--list-metrics"),
    ("apitrace replay", "--gen-passes"),
    ("heph replay", "--speed"),
    // It prints presets, and reads no trace.
    ("memory sim", "--list-presets"),
    ("memory compare", "--list-presets"),
    // In place of the second trace.
    ("memory compare", "--against"),
];

/// Options with which a verb need not read all of a trace, or is to ignore what is wrong.
pub(super) const PARTIAL: &[&str] = &[
    "--records",
    "--time",
    "--frames",
    "--calls",
    "--at",
    "--quick",
    "--buffers",
    "--index",
    "--ref-calls",
    "--src-calls",
    "--setupframes",
    "--thread",
    "--name",
    "--duration",
    "--depth",
    "--patience",
    "--show",
    "--layouts",
    "--compat",
    "--datagrams",
    "--skip-damage",
    "--allow-loss",
    "--input-format",
    "--record-limit",
    "--radix",
];

/// Options by which exit code 1 says more than that a trace is damaged.
pub(super) const JUDGING: &[&str] = &[
    "--fail-above",
    "--fail",
    "--against",
    "--diff",
    "--program",
    "--remap",
    "--config",
    "--show",
    "--program-1",
    "--program-2",
];

/// Options that exclude each other: of two such groups only one is passed, as a rule.
pub(super) const APART: &[(&str, &[&str], &[&str])] = &[
    (
        "casemate check",
        &["--format"],
        &["--trace", "--no-trace", "--condensed", "--print", "--diff", "--all-cells", "--watch", "--quiet", "--color"],
    ),
    ("casemate check", &["--bbm"], &["--compat", "--rules"]),
    ("casemate explain", &["--bbm"], &["--compat", "--rules"]),
    ("casemate minimise", &["--bbm"], &["--compat", "--rules"]),
    ("casemate state", &["--bbm"], &["--compat", "--rules"]),
    ("casemate stats", &["--bbm"], &["--compat", "--rules"]),
    ("casemate timeline", &["--bbm"], &["--compat", "--rules"]),
    ("casemate walk", &["--bbm"], &["--compat", "--rules"]),
    ("casemate walk", &["--diff"], &["--at"]),
    ("apitrace leaks", &["--format"], &["--compat"]),
    ("apitrace stats", &["--plot"], &["--format"]),
    ("memory numa", &["--map"], &["--nodes"]),
    (
        "memory sim",
        &["--I1", "--D1", "--LL"],
        &[
            "--config",
            "--cores",
            "--fetches",
            "--types",
            "--per-set",
            "--per-thread",
            "--classes",
            "--remap",
            "--interleave",
        ],
    ),
    ("memory mrc", &["--plot"], &["--format"]),
    ("memory mrc", &["--private"], &["--working-set", "--window"]),
    ("memory mrc", &["--sample"], &["--sample-lines"]),
    ("apitrace diff", &["--tool"], &["--format", "--context"]),
    ("apitrace gltrim", &["--explain"], &["--top-calls-per-frame"]),
    ("convert", &["--to"], &["--endian", "--version"]),
    ("convert", &["--table"], &["--all-tables"]),
];

/// Values of `--to` by which `convert` writes tables, which `--table` chooses.
pub(super) const TABLES: &[&str] = &["arrow", "parquet"];

/// Values of `--to`, and the formats that can become that.
pub(super) const BECOME: &[(&[&str], &[&str])] = &[
    (&["din", "xdin", "lackey"], ACCESSES),
    (&["chrome", "perfetto", "speedscope", "firefox", "folded", "pprof", "svg", "csv", "otlp"], SPANS),
    (&["callgrind", "perf-script"], SPANS),
    (
        TABLES,
        &["apitrace", "cacheray", "casemate", "chrome", "ctf", "fuchsia", "heph", "lackey", "perf", "perfetto", "xray"],
    ),
    (&["apitrace"], APITRACE),
    (&["cacheray"], ACCESSES),
    (&["casemate"], CASEMATE),
    (&["heph"], HEPH),
    (&["xray"], XRAY),
    (&["perf"], &["perf"]),
    (&["fuchsia"], &["fuchsia"]),
    (&["ctf"], &["ctf"]),
];

/// Options that say something of a few formats only.
pub(super) const OF_FORMATS: &[(&str, &[&str])] = &[
    ("--radix", CASEMATE),
    ("--endian", &["cacheray", "xray"]),
    ("--pointer-width", &["cacheray"]),
    ("--recover", HEPH),
    ("--buffers", XRAY),
    ("--frames", APITRACE),
    ("--container", APITRACE),
    ("--level", APITRACE),
    ("--event", &["perf"]),
    ("--time", &["chrome", "ctf", "fuchsia", "heph", "perf", "perfetto", "xray"]),
    ("--type", &["cacheray"]),
    ("--program", &["cacheray", "perf", "xray"]),
    ("--remap", &["cacheray"]),
    ("--type-of", &["cacheray"]),
];

/// Options in place of which no input is named.
pub(super) const ALONE: &[(&str, &str)] = &[("memory types", "--layouts"), ("heph loss", "--datagrams")];

/// Values by verb and option, where the name in the help does not say enough.
const OF_OPTION: &[(&str, &str, &[&str])] = &[
    ("", "--version", &["0", "1", "2", "3", "4", "5", "6", "7", "99"]),
    ("", "--input-format", super::samples::FORMATS),
    ("", "--record-limit", &["1", "64", "4k", "1G"]),
    ("", "--threads", &["1", "2", "3", "8"]),
    ("", "--level", &["0", "1", "9", "11", "22"]),
    ("", "--fail-above", &["total=0%", "sum=0%", "misses=0%", "p99=1%", "0.1%", "count=10%"]),
    ("", "--config", &["zen3", "@config", "@config"]),
    ("", "--only", &["L1", "zen3"]),
    ("", "--I1", &["32768,8,64", "1024,2,32", "64,1,64", "64k,0,128", "1000,3,64", "8,8"]),
    ("", "--D1", &["32768,8,64", "1024,2,32", "64,1,64", "64k,0,128", "1000,3,64", "8,8"]),
    ("", "--LL", &["1M,16,64", "4k,2,32", "64,1,64", "16G,1,8"]),
    ("", "--cores", &["1", "2", "0=0,1=0"]),
    ("", "--nodes", &["1", "2", "64", "65"]),
    ("memory numa", "--map", &["0=1", "0-3=0,4-9=63", "9-0=1", "18446744073709551615=0"]),
    ("", "--page", &["64", "4k", "2M", "1G", "3"]),
    ("", "--at", &["0", "1", "5", "9", "id:3", "99999"]),
    ("casemate walk", "--diff", &["0..5", "id:3..9", "9..3", "7..7", "5..99999"]),
    ("", "--patience", &["1"]),
    ("", "--watchdog", &["5"]),
    ("", "--interleave", &["auto", "1", "4"]),
    ("", "--base-remap", &["@remap"]),
    ("", "--remap", &["@remap"]),
    ("", "--records", &["0..", "0..1", "1..=3", "5", "..10", "3..100", "9..3"]),
    ("merge", "--to", &["chrome", "perfetto", "folded", "csv", "pprof"]),
    ("casemate collect", "--offset", &["0", "0x0", "0", "64", "0x40", "4k", "0xffffffffffffffff"]),
    ("", "--offset", &["in0=+3ms", "in0=-1s", "in1=7", "x=1"]),
    ("", "--time", &["0..", "0ns..1s", "1000..2000", "..1ms", "1us..", "x"]),
    ("", "--root", &["@address", "@address", "@address", "0x1000"]),
    ("", "--location", &["@address", "@address", "0x1000"]),
    ("", "--address", &["@address", "0x0", "0xffffffffffff"]),
    ("", "--watch", &["@address", "0x1000"]),
    ("", "--type", &["Node", "struct.Node", "int"]),
    ("", "--datagrams", &["@datagrams"]),
    ("", "--index", &["auto", "none", "in0"]),
    ("", "--fsync", &["never", "batch", "1s"]),
    ("", "--every", &["1", "64", "4k"]),
    ("", "--depth", &["0..3", "1..", "2", "512"]),
    ("apitrace diff", "--width", &["1", "80", "1000"]),
    ("apitrace stats", "--frames", &["0", "*", "1-2"]),
    ("heph replay", "--to", &["-"]),
    ("convert", "--table", &["events", "spans", "stacks", "accesses", "regions", "types", "calls", "attributes", "x"]),
    ("heph collect", "--duration", &["1s"]),
    ("heph collect", "--metrics", &["127.0.0.1:0", "127.0.0.1"]),
    ("heph collect", "--forward", &["otlp://127.0.0.1:1", "otlps://[::1]:1", "otlp://x", "http://x:1"]),
    ("heph collect", "--allow", &["127.0.0.0/8", "::1", "10.0.0.1", "/"]),
    ("apitrace replay", "--min-frame-duration", &["0", "10"]),
    ("apitrace replay", "--per-frame-delay", &["0", "10"]),
    ("apitrace replay", "--samples", &["0", "1", "4", "4294967295"]),
    ("apitrace replay", "--dump-format", &["json", "ubjson"]),
    ("apitrace replay", "--pcalls", &["CPU Duration", "opengl: [1, 2]", "x: y"]),
    ("apitrace replay", "--pframes", &["opengl: CPU Start, GPU Start", "[9, 9]"]),
    ("apitrace replay", "--pdrawcalls", &["Pixels Drawn", ""]),
];

/// Values by their name in the help.
const OF_NAME: &[(&str, &[&str])] = &[
    ("4|8", &["4", "8"]),
    ("0|1|2", &["0", "1", "2"]),
    ("dec|hex", &["dec", "hex"]),
    ("canonical|positional|pretty", &["canonical", "positional", "pretty"]),
    ("PROGRAM", &["@object", "@layouts", "@layouts"]),
    ("N", &["0", "1", "2", "5", "100", "4294967296", "18446744073709551615"]),
    ("NUM", &["0", "1", "3", "1000000"]),
    ("A..B", &["0..", "0..1", "1..=3", "5", "..10", "0ns..1s", "1000..2000", "9..3"]),
    ("ID", &["0", "1", "7", "18446744073709551615"]),
    ("THREAD", &["0", "1", "9"]),
    ("REGEX", &[".", "a|e", "^gl", "[^\\x00-\\x7f]", "i", ".*", "("]),
    ("NAME-REGEX", &[".", "a|e", "^fib"]),
    ("CALLSET", &["0-10", "*", "frame", "draw,5-9/2", "5", "*/rendertarget", "7-", "0-", "*/draw", "x"]),
    ("FRAMESET", &["0", "0-1", "*", "1"]),
    ("CALL", &["0", "5", "40", "100000"]),
    ("PIXELS", &["16", "240", "0"]),
    ("NANOSECONDS", &["0", "1000"]),
    ("SET", &["0", "1,3,10-20", "2../3", "*", "..2,4+2", "9..3", "0/0"]),
    ("BYTES", &["0", "1", "8", "64", "4k", "1M", "17"]),
    ("BOOL", &["yes", "no"]),
    ("ADDR", &["0x0", "0x1000", "0x55c1dba6f000", "0xffffffffffffffff"]),
    ("NAME=on|off", &["by-id-promoted=on", "by-id-promoted=off", "by-id-promoted=on", "nonsense=on"]),
    ("RECORD", &["0", "id:1"]),
    ("TIME", &["0", "1ms", "100s", "5"]),
    ("MIN", &["0", "1us"]),
    ("RATE", &["0.1", "1", "0.001"]),
    ("RATIO", &["0", "0.05", "1"]),
    ("RECORDS", &["1", "100"]),
    ("PACKETS", &["1", "4096"]),
    ("SECONDS", &["1"]),
    ("LEVEL", &["0", "1", "9"]),
    ("QUALITY", &["0", "5"]),
    ("FIRST", &["0", "18446744073709551615"]),
    ("TEXT", &["a title", "<&\">"]),
    ("FIELD", &["start", "end", "seq", "time"]),
    ("EXPRESSION", &["s/GL_LINEAR/GL_NEAREST/", "s/a/b/", "s/.*/x/", "s,x,y,g", "s,x,@file(in0),"]),
    ("NAME=VALUE", &["note=x", "a=", "=", "k=v=w"]),
    ("NAME=BYTES", &["L1=32k", "x=1"]),
    ("SITE=TYPE[N]", &["main=int", "f+0x1=Node[4]", "a.c:3=struct Node", "x=T[0]", "@object", "="]),
    ("THREAD=CORE,…", &["0=0,1=1", "1=0"]),
    ("STATISTIC=PERCENT", &["total=1%"]),
    ("OTHER", &["@trace"]),
    ("BASE", &["@trace"]),
    ("[OBJECT=]PATH", &["@object"]),
    ("PATH", &["@object"]),
    ("PROG", &["@object"]),
    ("OUT.svg", &["@output"]),
    ("DIR", &["@folder"]),
    ("PREFIX", &["@folder"]),
    ("PAGE.html|DIR", &["@folder"]),
    ("FILE|DIR", &["@layouts", "@trace"]),
    // Outputs; what is read has values of its own above.
    ("FILE", &["@output"]),
    ("OUT", &["@output"]),
    ("NAME", &["GL_LINEAR", "note"]),
];

/// What may be passed to an option that takes a value; `None` where nobody has said.
pub(super) fn values(verb: &str, option: &str, name: &str) -> Option<&'static [&'static str]> {
    let of_verb = OF_OPTION.iter().find(|(v, o, _)| *v == verb && *o == option);
    let of_all = || OF_OPTION.iter().find(|(v, o, _)| v.is_empty() && *o == option);
    let of_option = of_verb.or_else(of_all).map(|(_, _, values)| *values);
    of_option.or_else(|| OF_NAME.iter().find(|(n, _)| *n == name).map(|(_, values)| *values))
}
