//! `convert` against the peer's output, against a slow obvious version, and on damaged traces.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use anytrace_core::span::{Mangling, SymbolSource, Symbols};
use anytrace_core::testing::{mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Diagnostic, Error, Format, Input, InputOptions, OpenOptions};
use anytrace_xray::record::FunctionKind;
use anytrace_xray::tools::convert::{ConvertForm, ConvertOptions, Converted, convert};
use anytrace_xray::{Moment, MomentKind, Moments, Ordered, Xray};
use common::made::Made;
use common::sample;
use serde_json::Value;

const FORMS: [(ConvertForm, &str); 3] =
    [(ConvertForm::Raw, "raw"), (ConvertForm::Yaml, "yaml"), (ConvertForm::TraceEvent, "trace_event.json")];

fn options(form: ConvertForm, compat: bool) -> ConvertOptions {
    ConvertOptions { form, sort: true, compat }
}

fn converted(
    bytes: &[u8],
    options: &ConvertOptions,
    threads: usize,
    symbols: Option<&dyn Symbols>,
) -> (Vec<u8>, Converted) {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let open = OpenOptions { threads, ..OpenOptions::default() };
    let input = Input::from_bytes("x", bytes.to_vec());
    let converted = convert(input, &open, options, symbols, &mut out, &mut sink).unwrap();
    (out, converted)
}

fn text(bytes: &[u8], form: ConvertForm) -> String {
    String::from_utf8(converted(bytes, &options(form, false), 1, None).0).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_str(&text(bytes, ConvertForm::TraceEvent)).unwrap()
}

fn assert_same(name: &str, found: &[u8], expected: &[u8]) {
    if found == expected {
        return;
    }
    let (found, expected) = (String::from_utf8_lossy(found), String::from_utf8_lossy(expected));
    for (n, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", n + 1);
    }
    panic!("{name}: {} bytes, and the peer's are {}", found.len(), expected.len());
}

#[test]
fn trace_events_of_an_input_without_a_header_are_a_document_without_events() {
    for bytes in [&b""[..], b"\x05\0", b"\x03\0\x63\x6e\0\0\0\0aaaaaaaabbbbbbbbbbbbbbbb"] {
        assert_eq!(json(bytes)["traceEvents"], Value::Array(Vec::new()), "{bytes:?}");
        assert!(text(bytes, ConvertForm::Yaml).is_empty(), "{bytes:?}");
    }
}

#[test]
fn compat_is_the_peers_output_of_samples() {
    let path = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/peer").join(name);
    let mut compared = 0;
    for name in ["args", "ring", "customs", "v5", "v5-event-payloads", "basic-v3"] {
        for (form, ending) in FORMS {
            if let Ok(expected) = std::fs::read(path(&format!("{name}.{ending}"))) {
                let bytes = sample(&format!("{name}.xray"));
                assert_same(name, &converted(&bytes, &options(form, true), 1, None).0, &expected);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 15);
    let source = SymbolSource { object: None, path: path("args-14.map.yaml") };
    let symbols = Xray.symbols(&[source], Mangling::Demangled).unwrap();
    for (form, ending) in &FORMS[1..] {
        let (found, _) = converted(&sample("args.xray"), &options(*form, true), 1, Some(&*symbols));
        assert_same(ending, &found, &sample(&format!("peer/args.sym.{ending}")));
    }
}

/// Where the peer is wrong, or shows meaningless bytes: flags of a big-endian Basic header; the processor of old custom
/// events; a false introducer taken for extents.
const PEER_IS_WRONG: [&str; 6] =
    ["be-basic-v3.yaml", "be-basic-v3.raw", "v1.yaml", "v2.yaml", "v3.yaml", "v5-gap-fake-extent"];

#[test]
fn compat_is_the_peers_output_for_all_of_the_corpus() {
    let Some(corpus) = shared_corpus("xray") else { return };
    let mut compared = 0;
    for folder in ["real", "synth"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let trace = entry.unwrap().path();
            if trace.extension().is_none_or(|e| e != "xray") {
                continue;
            }
            let bytes = std::fs::read(&trace).unwrap();
            for (form, ending) in FORMS {
                let path = trace.with_extension(ending);
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let is_wrong = PEER_IS_WRONG.iter().any(|wrong| name.starts_with(wrong));
                let Some(expected) = read(&path).filter(|_| !is_wrong) else { continue };
                assert_same(&name, &converted(&bytes, &options(form, true), 2, None).0, &expected);
                compared += 1;
            }
        }
    }
    assert!(compared > 110, "{compared}");
}

/// A file, decompressed if it is gzip.
fn read(path: &Path) -> Option<Vec<u8>> {
    let zipped = path.with_extension(format!("{}.gz", path.extension()?.to_string_lossy()));
    let input = Input::open(if path.exists() { path } else { &zipped }, InputOptions::default()).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut input.into_read(), &mut bytes).unwrap();
    Some(bytes)
}

const SAMPLES: [&str; 12] = [
    "args.xray",
    "basic-exc.xray",
    "be-v5.xray",
    "customs-tinybuf.xray",
    "empty.xray",
    "longrun.xray",
    "ring.xray",
    "tail.xray",
    "typed-tinybuf.xray",
    "v1.xray",
    "v5.yaml",
    "v5-freq-zero.xray",
];

/// An owned moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    kind: MomentKind,
    function: u32,
    arguments: Vec<u64>,
    cpu: u16,
    thread: u32,
    process: u32,
    tsc: u64,
    data: Vec<u8>,
}

#[derive(Default)]
struct All(Vec<Owned>);

impl Moments for All {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let Moment { kind, function, cpu, thread, process, tsc, .. } = *moment;
        let (arguments, data) = (moment.arguments.to_vec(), moment.data.to_vec());
        self.0.push(Owned { kind, function, arguments, cpu, thread, process, tsc, data });
        Ok(())
    }

    fn report(&mut self, problem: Diagnostic) -> Result<(), Error> {
        Err(Error::malformed(problem))
    }
}

fn moments(bytes: &[u8]) -> Vec<Owned> {
    let (mut all, mut sink) = (All::default(), Collect::default());
    let input = Input::from_bytes("x", bytes.to_vec());
    let ordered = Ordered::open(input, &OpenOptions::default(), &mut sink).unwrap();
    ordered.by_time(&mut all, &mut sink).unwrap();
    all.0
}

#[test]
fn yaml_has_every_moment_in_order_of_time() {
    for name in SAMPLES {
        let bytes = sample(name);
        assert_eq!(moments(text(&bytes, ConvertForm::Yaml).as_bytes()), moments(&bytes), "{name}");
    }
}

#[test]
fn raw_reads_back_as_a_basic_trace_with_arguments() {
    for name in SAMPLES {
        let bytes = sample(name);
        let (raw, outcome) = converted(&bytes, &options(ConvertForm::Raw, false), 1, None);
        let is_function = |moment: &Owned| matches!(moment.kind, MomentKind::Function(_));
        let (functions, events): (Vec<_>, Vec<_>) = moments(&bytes).into_iter().partition(is_function);
        let version_2 = name.starts_with("v2");
        let same = |mut moment: Owned| {
            moment.process = if version_2 { 0 } else { moment.process };
            moment
        };
        assert_eq!(moments(&raw), functions.into_iter().map(same).collect::<Vec<_>>(), "{name}");
        let note = format!("{} events were left out", events.len());
        assert_eq!(outcome.notes.iter().any(|found| found.starts_with(&note)), !events.is_empty(), "{name}");
        let info = anytrace_core::testing::examine(&Xray, &raw).info.0;
        assert_eq!(info.format_version.as_deref(), Some("3"));
    }
}

/// One entry of `traceEvents`, made the slow way.
#[derive(Debug, PartialEq)]
struct Event {
    name: String,
    phase: &'static str,
    thread: u32,
    process: u32,
    stack: Option<u64>,
    mark: Option<&'static str>,
}

/// Events, and the paths of stacks by number.
fn slowly(moments: &[Owned], version: u32) -> (Vec<Event>, Vec<Vec<u32>>) {
    let mut open: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    let (mut events, mut paths): (Vec<Event>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    for moment in moments {
        let stack = open.entry((moment.process, moment.thread)).or_default();
        let mut number = |path: &[u32]| {
            let found = paths.iter().position(|known| known == path);
            (!path.is_empty()).then(|| {
                found.unwrap_or_else(|| {
                    paths.push(path.to_vec());
                    paths.len() - 1
                }) as u64
            })
        };
        let mut event = |name: String, phase, stack, mark| {
            let process = if version < 3 { 1 } else { moment.process };
            events.push(Event { name, phase, thread: moment.thread, process, stack, mark });
        };
        let id = moment.function;
        match moment.kind {
            MomentKind::Function(FunctionKind::Enter | FunctionKind::EnterArgs) => {
                stack.push(id);
                event(id.to_string(), "B", number(stack), None);
            }
            MomentKind::Function(_) if stack.contains(&id) => {
                while let Some(top) = stack.last().copied() {
                    let mark = (top != id).then_some("deduced");
                    event(top.to_string(), "E", number(stack), mark);
                    stack.pop();
                    if top == id {
                        break;
                    }
                }
            }
            MomentKind::Function(_) => event(id.to_string(), "i", None, Some("orphan exit")),
            MomentKind::Custom => event("custom event".to_owned(), "i", number(stack), None),
            MomentKind::Typed(kind) => event(format!("typed event {kind}"), "i", number(stack), None),
        }
    }
    (events, paths)
}

fn assert_as_slowly(bytes: &[u8], version: u32, what: &str) {
    let (events, paths) = slowly(&moments(bytes), version);
    let json = json(bytes);
    let found = json["traceEvents"].as_array().unwrap();
    assert_eq!(found.len(), events.len(), "{what}");
    for (n, (found, expected)) in found.iter().zip(&events).enumerate() {
        let read = |key: &str| found[key].as_u64().map_or(u32::MAX, |n| u32::try_from(n).unwrap());
        assert_eq!(found["name"], expected.name.as_str(), "{what}, {n}");
        assert_eq!(found["ph"], expected.phase, "{what}, {n}");
        assert_eq!((read("tid"), read("pid")), (expected.thread, expected.process), "{what}, {n}");
        assert_eq!(found.get("sf").and_then(Value::as_u64), expected.stack, "{what}, {n}: {found}");
        assert!(found["ts"].is_number(), "{what}, {n}");
        for mark in ["deduced", "orphan exit"] {
            assert_eq!(found["args"][mark] == true, expected.mark == Some(mark), "{what}, {n}");
        }
    }
    let frames = json["stackFrames"].as_object().unwrap();
    assert_eq!(frames.len(), paths.len());
    for (number, path) in paths.iter().enumerate() {
        let frame = &frames[&number.to_string()];
        assert_eq!(frame["name"], path.last().unwrap().to_string().as_str());
        let parent = paths.iter().position(|known| known[..] == path[..path.len() - 1]);
        assert_eq!(frame.get("parent").and_then(Value::as_str), parent.map(|n| n.to_string()).as_deref());
    }
}

#[test]
fn trace_events_are_those_of_a_slow_version() {
    for name in SAMPLES {
        if !name.ends_with("yaml") {
            assert_as_slowly(&sample(name), if name == "v1.xray" { 1 } else { 5 }, name);
        }
    }
}

#[test]
fn random_calls_are_those_of_a_slow_version() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from((state >> 11) % u64::from(below)).unwrap()
    };
    for round in 0..60 {
        let mut made = Made::header(5, 1, 16384);
        for thread in 0..3 {
            let mut body = Made { version: 5, ..Made::default() }.preamble(thread, 100 + u64::from(random(50)));
            for _ in 0..random(120) {
                body = match random(12) {
                    0 => body.typed(b"\"payload\x01\xff"),
                    1 => body.custom(3, b"abc"),
                    2 => body.function(3, 1 + random(4), random(9)).value(u64::MAX),
                    n => body.function(n % 3, 1 + random(4), random(9)),
                };
            }
            made = made.extents(body.bytes.len() as u64).raw(&body.bytes);
        }
        assert_as_slowly(&made.bytes, 5, &format!("round {round}"));
    }
}

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    let mut body = Made { version: 5, ..Made::default() }.preamble(7, 1000);
    for n in 0..30_000_u32 {
        let (kind, id) = (u32::from(n % 7 > 3), 1 + n * 7919 % 300);
        body = body.function(kind, id, n % 50);
    }
    let made = Made::header(5, 1, 16384).extents(body.bytes.len() as u64).raw(&body.bytes);
    for (form, _) in FORMS {
        for compat in [false, true] {
            let options = options(form, compat);
            let one = converted(&made.bytes, &options, 1, None);
            for threads in [2, 5] {
                assert!(converted(&made.bytes, &options, threads, None) == one, "{form:?} {compat} {threads}");
            }
        }
    }
}

#[test]
fn windows_of_a_trace_of_many_threads_are_written_in_order() {
    let mut seed = 9_u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut made = Made::header(5, 1, 1 << 20);
    for thread in 1..6 {
        let mut body = Made { version: 5, ..Made::default() }.preamble(thread, 1000);
        for n in 0..40_000_u32 {
            // Calls go deep and end together; many happen at one time.
            body = match random(4000) {
                0 => body.typed(b"payload"),
                1 => body.custom(3, b"abc"),
                2 => body.function(3, 1 + random(9), 1).value(u64::MAX),
                3 => body.function(1, 1, 1),
                _ => body.function(u32::from(n % 3 == 2), 1 + n * 7919 % 300, random(3)),
            };
        }
        made = made.extents(body.bytes.len() as u64).raw(&body.bytes);
    }
    for (form, _) in FORMS {
        for compat in [false, true] {
            let options = options(form, compat);
            let one = converted(&made.bytes, &options, 1, None);
            for threads in [2, 3, 9] {
                assert!(converted(&made.bytes, &options, threads, None) == one, "{form:?} {compat} {threads}");
            }
        }
    }
}

/// Accepts this many bytes and then fails.
struct Narrow(usize);

impl std::io::Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_ends_all_threads() {
    let mut body = Made { version: 5, ..Made::default() }.preamble(7, 1000);
    for n in 0..200_000_u32 {
        body = body.function(n & 1, 1 + (n >> 1) % 9, 5);
    }
    let made = Made::header(5, 1, 1 << 22).extents(body.bytes.len() as u64).raw(&body.bytes);
    for (form, _) in &FORMS[1..] {
        for room in [0, 1000, 5_000_000] {
            let open = OpenOptions { threads: 4, ..OpenOptions::default() };
            let input = Input::from_bytes("x", made.bytes.clone());
            let mut sink = Collect::default();
            let failed = convert(input, &open, &options(*form, false), None, &mut Narrow(room), &mut sink);
            assert!(failed.is_err(), "{form:?} {room}");
        }
    }
}

#[test]
fn events_and_arguments_are_in_the_json() {
    let json = json(&sample("v5.xray"));
    let events = json["traceEvents"].as_array().unwrap();
    let find = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    assert_eq!(find("custom event")["args"]["data"], "custom-1");
    assert_eq!(
        (&find("typed event 4660")["args"]["type"], &find("typed event 4660")["s"]),
        (&4660.into(), &"t".into())
    );
    let args = &find("3")["args"];
    assert_eq!((&args["arg0"], &args["arg1"]), (&3_735_928_560_u64.into(), &u64::MAX.to_string().into()));
    assert_eq!(json["displayTimeUnit"], "ns");
}

#[test]
fn clocks_beyond_the_precision_of_doubles_are_counted_from_the_start() {
    let body = Made { version: 5, ..Made::default() };
    let body = body.preamble(7, 1_800_000_000_000_000_001).function(0, 1, 0).function(1, 1, 1);
    let made = Made::header(5, 1, 16384).extents(body.bytes.len() as u64).raw(&body.bytes);
    let json = json(&made.bytes);
    assert_eq!((&json["traceEvents"][0]["ts"], &json["traceEvents"][1]["ts"]), (&0.0.into(), &0.001.into()));
    assert_eq!(json["otherData"]["origin-tsc"], "1800000000000000001");
}

/// A name that is not valid JSON text.
struct Odd;

impl Symbols for Odd {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&anytrace_core::span::Location>)> {
        (id == 1).then_some(("operator\"\"_x(char const*)\\\u{1}", None))
    }
}

#[test]
fn names_are_escaped_and_unknown_ones_are_numbers() {
    let (out, _) = converted(&sample("args.xray"), &options(ConvertForm::TraceEvent, false), 1, Some(&Odd));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let names: std::collections::BTreeSet<_> =
        json["traceEvents"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert!(names.contains("operator\"\"_x(char const*)\\\u{1}") && names.contains("#4"), "{names:?}");
}

#[test]
fn without_sorting_each_thread_is_in_order() {
    let bytes = sample("v5.xray");
    let unsorted = ConvertOptions { form: ConvertForm::Yaml, sort: false, compat: false };
    let (out, _) = converted(&bytes, &unsorted, 1, None);
    assert_eq!(moments(&out), moments(&bytes));
}

#[test]
fn damage_and_cuts_give_valid_json_and_no_panic() {
    let check = |bytes: &[u8]| {
        for (form, _) in FORMS {
            for compat in [false, true] {
                let (mut out, mut sink) = (Vec::new(), Collect::default());
                let input = Input::from_bytes("x", bytes.to_vec());
                let options = options(form, compat);
                let done = convert(input, &OpenOptions::default(), &options, None, &mut out, &mut sink);
                if done.is_ok() && form == ConvertForm::TraceEvent && !compat && !out.is_empty() {
                    serde_json::from_slice::<Value>(&out).unwrap();
                }
            }
        }
    };
    for name in ["v5.xray", "basic-v3.xray", "v5.yaml", "v1.xray"] {
        mutations(&sample(name), 5, 60, check);
        truncations(&sample(name), 40, |_, cut| check(cut));
    }
}

#[test]
fn losses_of_a_conversion_are_reported() {
    let notes = |name: &str, form| converted(&sample(name), &options(form, false), 1, None).1.notes;
    assert!(notes("ring.xray", ConvertForm::TraceEvent)[0].contains("do not match an open call"));
    assert!(notes("basic-exc.xray", ConvertForm::TraceEvent)[0].contains("ended with an enclosing call"));
    assert_eq!(notes("args.xray", ConvertForm::Yaml), [""; 0]);
}
