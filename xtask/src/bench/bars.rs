//! The figures that must be reached.

/// A figure that must be reached.
pub(super) struct Bar {
    pub(super) input: &'static str,
    pub(super) verb: &'static [&'static str],
    pub(super) unit: Unit,
    pub(super) at_least: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// Millions of bytes of the input (apitrace: of the raw stream) a second of CPU time.
    Megabytes,
    /// Millions of records a second of CPU time.
    Records,
}

/// Millions of events a second of CPU time that the collector must take, from a file or a connection.
pub(super) const COLLECT_AT_LEAST: f64 = 1.0;

/// Two levels of caches, as the hand-written peers of the format's page have them.
const TWO_LEVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/two-level.json");

pub(super) const BARS: &[Bar] = &[
    Bar { input: "cacheray", verb: &["info"], unit: Unit::Records, at_least: 250.0 },
    Bar { input: "cacheray", verb: &["check"], unit: Unit::Records, at_least: 0.0 },
    Bar { input: "cacheray", verb: &["dump"], unit: Unit::Records, at_least: 20.0 },
    Bar { input: "cacheray", verb: &["cacheray", "mrc"], unit: Unit::Records, at_least: 15.0 },
    Bar { input: "cacheray", verb: &["cacheray", "mrc", "--sample=0.01"], unit: Unit::Records, at_least: 200.0 },
    Bar { input: "cacheray", verb: &["cacheray", "mrc", "--by=type"], unit: Unit::Records, at_least: 0.0 },
    Bar { input: "cacheray", verb: &["cacheray", "sharing"], unit: Unit::Records, at_least: 0.0 },
    Bar { input: "cacheray-narrow", verb: &["cacheray", "mrc"], unit: Unit::Records, at_least: 15.0 },
    Bar { input: "cacheray-narrow", verb: &["cacheray", "mrc", "--sample=0.01"], unit: Unit::Records, at_least: 200.0 },
    Bar {
        input: "cacheray",
        verb: &["cacheray", "sim", "--config", TWO_LEVEL, "--format", "json"],
        unit: Unit::Records,
        at_least: 60.0,
    },
    Bar {
        input: "cacheray-live",
        verb: &["cacheray", "sim", "--config", TWO_LEVEL, "--types", "--format", "json"],
        unit: Unit::Records,
        at_least: 20.0,
    },
    Bar { input: "xray", verb: &["info"], unit: Unit::Megabytes, at_least: 1000.0 },
    Bar { input: "xray", verb: &["dump"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "xray-155", verb: &["xray", "account"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-155", verb: &["xray", "stack"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-155", verb: &["xray", "graph"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "xray-155", verb: &["xray", "convert", "-f", "trace_event"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "xray-155", verb: &["xray", "convert", "-f", "yaml"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "xray-155", verb: &["xray", "fdr-dump"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "xray-155", verb: &["stats"], unit: Unit::Megabytes, at_least: 0.0 },
    Bar { input: "xray-155", verb: &["flame"], unit: Unit::Megabytes, at_least: 0.0 },
    Bar { input: "xray-527", verb: &["xray", "account"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-527", verb: &["xray", "stack"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-527", verb: &["xray", "graph"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "xray-527", verb: &["xray", "convert", "-f", "trace_event"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "xray-527", verb: &["xray", "convert", "-f", "yaml"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "xray-527", verb: &["xray", "fdr-dump"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "xray-527", verb: &["stats"], unit: Unit::Megabytes, at_least: 0.0 },
    Bar { input: "xray-527", verb: &["flame"], unit: Unit::Megabytes, at_least: 0.0 },
    Bar { input: "xray-buffers", verb: &["xray", "account"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-buffers", verb: &["xray", "stack"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-buffers", verb: &["xray", "graph"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar {
        input: "xray-buffers",
        verb: &["xray", "convert", "-f", "trace_event"],
        unit: Unit::Megabytes,
        at_least: 100.0,
    },
    Bar { input: "xray-buffers", verb: &["xray", "convert", "-f", "yaml"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "heph", verb: &["info"], unit: Unit::Megabytes, at_least: 800.0 },
    Bar { input: "xray-one", verb: &["xray", "account"], unit: Unit::Megabytes, at_least: 600.0 },
    Bar { input: "xray-one", verb: &["xray", "stack"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-one", verb: &["xray", "graph"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-one", verb: &["stats"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-one", verb: &["flame"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-one", verb: &["timeline"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "xray-one", verb: &["convert", "--to=folded", "--output=-"], unit: Unit::Megabytes, at_least: 250.0 },
    Bar { input: "xray-one", verb: &["convert", "--to=chrome", "--output=-"], unit: Unit::Megabytes, at_least: 130.0 },
    Bar { input: "xray-one", verb: &["convert", "--to=csv", "--output=-"], unit: Unit::Megabytes, at_least: 130.0 },
    Bar { input: "heph", verb: &["check"], unit: Unit::Megabytes, at_least: 800.0 },
    Bar { input: "heph", verb: &["dump"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "heph-540", verb: &["heph", "spans", "--summary"], unit: Unit::Megabytes, at_least: 180.0 },
    Bar { input: "heph-540", verb: &["heph", "stats"], unit: Unit::Megabytes, at_least: 180.0 },
    Bar { input: "heph-540", verb: &["stats"], unit: Unit::Megabytes, at_least: 180.0 },
    Bar { input: "heph-540", verb: &["heph", "loss"], unit: Unit::Megabytes, at_least: 400.0 },
    Bar { input: "heph-540", verb: &["convert", "--to=chrome", "--output=-"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "lackey", verb: &["info"], unit: Unit::Megabytes, at_least: 600.0 },
    Bar { input: "lackey", verb: &["check"], unit: Unit::Megabytes, at_least: 600.0 },
    Bar { input: "lackey", verb: &["dump"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "apitrace", verb: &["info"], unit: Unit::Megabytes, at_least: 1200.0 },
    Bar { input: "apitrace", verb: &["apitrace", "dump"], unit: Unit::Megabytes, at_least: 320.0 },
    Bar { input: "apitrace", verb: &["apitrace", "info"], unit: Unit::Megabytes, at_least: 1200.0 },
    Bar { input: "apitrace", verb: &["apitrace", "pickle"], unit: Unit::Megabytes, at_least: 420.0 },
    Bar { input: "apitrace", verb: &["apitrace", "jsonl"], unit: Unit::Megabytes, at_least: 420.0 },
    Bar { input: "apitrace", verb: &["apitrace", "leaks"], unit: Unit::Megabytes, at_least: 600.0 },
    Bar { input: "apitrace", verb: &["apitrace", "stats"], unit: Unit::Megabytes, at_least: 0.0 },
    Bar { input: "casemate", verb: &["info"], unit: Unit::Megabytes, at_least: 230.0 },
    Bar { input: "casemate", verb: &["info"], unit: Unit::Records, at_least: 3.0 },
    Bar { input: "casemate", verb: &["dump"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "casemate", verb: &["casemate", "check"], unit: Unit::Records, at_least: 2.0 },
    Bar { input: "casemate", verb: &["casemate", "check", "--compat"], unit: Unit::Records, at_least: 2.0 },
    Bar { input: "casemate", verb: &["casemate", "check", "--compat"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "casemate-wide", verb: &["casemate", "check"], unit: Unit::Records, at_least: 1.0 },
    Bar { input: "casemate-wider", verb: &["casemate", "check"], unit: Unit::Records, at_least: 1.0 },
    Bar { input: "casemate-sparse", verb: &["casemate", "check"], unit: Unit::Records, at_least: 4.0 },
    Bar { input: "perfetto", verb: &["info"], unit: Unit::Megabytes, at_least: 400.0 },
    Bar { input: "perfetto", verb: &["check"], unit: Unit::Megabytes, at_least: 250.0 },
    Bar { input: "perfetto", verb: &["dump"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "perfetto", verb: &["stats"], unit: Unit::Megabytes, at_least: 120.0 },
    Bar { input: "perfetto", verb: &["convert", "--output=-"], unit: Unit::Megabytes, at_least: 400.0 },
    Bar { input: "perfetto-real", verb: &["info"], unit: Unit::Megabytes, at_least: 600.0 },
    Bar { input: "perfetto-real", verb: &["check"], unit: Unit::Megabytes, at_least: 400.0 },
    Bar { input: "perfetto-real", verb: &["dump"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "perfetto-real", verb: &["stats"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "chrome", verb: &["info"], unit: Unit::Megabytes, at_least: 400.0 },
    Bar { input: "chrome", verb: &["stats"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "chrome", verb: &["check"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "chrome", verb: &["dump"], unit: Unit::Megabytes, at_least: 250.0 },
    Bar { input: "chrome", verb: &["convert", "--output=-"], unit: Unit::Megabytes, at_least: 500.0 },
    Bar { input: "perf", verb: &["info"], unit: Unit::Megabytes, at_least: 500.0 },
    Bar { input: "perf", verb: &["check"], unit: Unit::Megabytes, at_least: 500.0 },
    Bar { input: "perf", verb: &["stats"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "perf", verb: &["dump"], unit: Unit::Megabytes, at_least: 300.0 },
    Bar { input: "ctf", verb: &["info"], unit: Unit::Megabytes, at_least: 100.0 },
    Bar { input: "ctf", verb: &["check"], unit: Unit::Megabytes, at_least: 200.0 },
    Bar { input: "ctf", verb: &["stats"], unit: Unit::Megabytes, at_least: 50.0 },
    Bar { input: "ctf", verb: &["dump"], unit: Unit::Megabytes, at_least: 60.0 },
    Bar { input: "fuchsia", verb: &["info"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "fuchsia", verb: &["check"], unit: Unit::Megabytes, at_least: 150.0 },
    Bar { input: "fuchsia", verb: &["stats"], unit: Unit::Megabytes, at_least: 50.0 },
    Bar { input: "fuchsia", verb: &["dump"], unit: Unit::Megabytes, at_least: 60.0 },
];

/// A job that an index must make short, whatever the trace's size.
pub(super) struct LateBar {
    pub(super) verb: &'static [&'static str],
    /// Wall time with everything, the start of the program too.
    pub(super) wall_ms_max: f64,
}

/// Megabytes of the raw stream a second of CPU time at which an index is made, at least.
pub(super) const INDEX_AT_LEAST: f64 = 1200.0;

/// Frames near the end of the trace of the usual size, looked for without an index.
pub(super) const FIRST_TRIM: &[&str] =
    &["apitrace", "trim", "--frames=5460-5469", "--index=none", "--threads=1", "--force", "-o"];

/// Least for it, in millions of raw bytes a second of CPU time.
pub(super) const FIRST_TRIM_AT_LEAST: f64 = 1200.0;

/// Calls and frames lie late in the trace of the usual size; in smaller ones there is nothing to find, which is quicker still.
pub(super) const LATE_BARS: [LateBar; 3] = [
    LateBar { verb: &["apitrace", "dump", "--calls=9000000"], wall_ms_max: 20.0 },
    LateBar { verb: &["apitrace", "dump", "--calls=16000000"], wall_ms_max: 20.0 },
    LateBar { verb: &["apitrace", "trim", "--frames=5000-5009", "--force", "-o"], wall_ms_max: 50.0 },
];

impl Bar {
    /// Most memory the job may take when its input comes through a pipe, in MiB; `None` where all of it is needed.
    pub(super) fn piped_mib_max(&self) -> Option<i64> {
        match self.verb {
            // The page-table checker keeps the traced machine's tables.
            ["casemate", ..] => Some(150),
            // Sharing keeps some 150 bytes of every line.
            ["cacheray", "sharing"] => Some(256),
            // Curves keep up to 50 bytes of every line.
            ["cacheray", "mrc", "--by=type"] => Some(150),
            ["cacheray", "mrc", ..] => Some(96),
            // Live regions, and a shadow of up to 64 MiB that makes looking them up quick.
            ["cacheray", ..] => Some(150),
            // Text sorted by time over threads whose buffers follow one another: the trace is kept.
            ["xray", "convert", ..] | ["xray", "graph"] => None,
            // Up to 64 MiB of a stream are kept until it is known that its buffers are in order.
            ["timeline" | "convert", ..] if self.input == "xray-one" => Some(190),
            _ if self.input == "heph-540" => Some(64),
            ["xray", ..] | ["stats" | "flame"] => Some(190),
            _ => Some(64),
        }
    }

    /// How many times faster two threads must be than one, by the clock on the wall.
    pub(super) fn speedup_min(&self) -> Option<f64> {
        match self.verb {
            ["xray", "fdr-dump"] => None,
            // One thread of a trace without an index. For XRay's own verbs, one worker follows which calls are open until
            // it is worth counting from there; text is formatted in batches; else what reads the trace and what works on
            // its spans run beside each other.
            ["xray", ..] if self.input == "xray-one" => Some(1.5),
            ["convert", "--to=chrome" | "--to=csv", ..] if self.input == "xray-one" => Some(1.6),
            _ if self.input == "xray-one" => Some(1.3),
            ["xray", ..] => Some(1.6),
            ["apitrace", "dump"] => Some(1.5),
            // Sets are shared out; with types the reader has most of the work.
            ["cacheray", "sim", words @ ..] if !words.contains(&"--types") => Some(1.5),
            ["info"] if matches!(self.input, "apitrace" | "cacheray") => Some(0.0),
            _ => None,
        }
    }

    /// The format's own tool on the same work, where it has it.
    pub(super) fn peer(&self) -> Option<Vec<&'static str>> {
        match (self.input, self.verb) {
            ("xray", ["dump"]) => Some(vec!["llvm-xray", "fdr-dump"]),
            (_, ["xray", words @ ..]) => Some(std::iter::once("llvm-xray").chain(words.iter().copied()).collect()),
            (_, ["apitrace", "jsonl" | "stats"]) => None,
            (_, ["apitrace", words @ ..]) => Some(std::iter::once("apitrace").chain(words.iter().copied()).collect()),
            ("apitrace", ["info"]) => Some(vec!["apitrace", "info"]),
            _ => None,
        }
    }
}
