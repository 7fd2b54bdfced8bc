//! One run of a program in every form, version, byte order and order of buffers: all must tell the same story, which is
//! known from how the run was made.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Diagnostic, Error, Input, OpenOptions, TargetOptions};
use anytrace_export::cells::Cells;
use anytrace_xray::tools::account::{AccountForm, AccountOptions, account};
use anytrace_xray::tools::graph::{Pairing, graph};
use anytrace_xray::tools::stack::{StackOptions, stack};
use anytrace_xray::tools::{GraphReport, StackReport, StackView};
use anytrace_xray::{Mismatch, Moment, MomentKind, Moments, Ordered};
use common::run::{Parts, Run};
use common::slow::What;
use common::{convert, no_errors, target};

/// Copies of all moments.
#[derive(Default)]
struct Seen(Vec<What>);

impl Moments for Seen {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.0.push(What {
            thread: moment.thread,
            process: moment.process,
            tsc: moment.tsc,
            cpu: moment.cpu,
            kind: moment.kind.name().to_owned(),
            id: moment.function,
            arguments: moment.arguments.to_vec(),
            event_type: if let MomentKind::Typed(number) = moment.kind { u32::from(number) } else { 0 },
            data: moment.data.to_vec(),
        });
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        panic!("{diagnostic:?}");
    }
}

fn ordered(input: Input) -> (Ordered, Collect) {
    let mut sink = Collect::default();
    (Ordered::open(input, &OpenOptions::default(), &mut sink).unwrap(), sink)
}

/// By thread: what each thread did, in order.
fn threads(all: Vec<What>) -> BTreeMap<(u32, u32), Vec<What>> {
    let mut found: BTreeMap<_, Vec<What>> = BTreeMap::new();
    for what in all {
        found.entry((what.process, what.thread)).or_default().push(what);
    }
    found
}

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x", bytes.to_vec())
}

fn assert_reads(bytes: &[u8], expected: &[What], what: &str) {
    no_errors(bytes, what);
    let mut by_thread = Seen::default();
    let (trace, mut sink) = ordered(input(bytes));
    assert_eq!(trace.first_tsc(), expected.iter().map(|what| what.tsc).min(), "{what}");
    trace.by_thread(&mut by_thread, &mut sink).unwrap();
    assert!(sink.0.is_empty(), "{what}: {:?}", sink.0);
    assert_eq!(threads(by_thread.0), threads(expected.to_vec()), "{what}");

    let (mut by_time, mut dripped) = (Seen::default(), Seen::default());
    let (trace, mut sink) = ordered(input(bytes));
    trace.by_time(&mut by_time, &mut sink).unwrap();
    assert!(by_time.0.is_sorted_by_key(|what| what.tsc), "{what}");
    assert_eq!(threads(by_time.0.clone()), threads(expected.to_vec()), "{what}");
    let (trace, mut sink) = ordered(dripping("x", bytes, 7));
    trace.by_time(&mut dripped, &mut sink).unwrap();
    assert_eq!(dripped.0, by_time.0, "{what}");
}

#[test]
fn fdr_of_every_version_and_order_of_buffers_is_the_run() {
    for seed in 0..60 {
        for version in 1..=5 {
            let run = Run::make(seed * 8 + u64::from(version), Parts::of_fdr(version), version >= 3);
            let mut expected = run.all();
            if version == 2 {
                expected.iter_mut().for_each(|what| what.process = what.thread);
            }
            for (big, order) in [(false, 1), (true, 2)] {
                let bytes = run.fdr(version, big, order);
                assert_reads(&bytes, &expected, &format!("seed {seed}, version {version}, big {big}"));
            }
        }
    }
}

#[test]
fn basic_of_every_version_is_the_run() {
    for seed in 0..60 {
        for version in 1..=3 {
            let run = Run::make(seed * 4 + u64::from(version), Parts::of_basic(version), false);
            for (big, order) in [(false, 3), (true, 4)] {
                let bytes = run.basic(version, big, order);
                assert_reads(&bytes, &run.all(), &format!("seed {seed}, version {version}, big {big}"));
            }
        }
    }
}

#[test]
fn yaml_is_the_run() {
    for seed in 0..80 {
        let run = Run::make(seed, Parts::of_fdr(5), true);
        assert_reads(&run.yaml(5, 1, seed), &run.all(), &format!("seed {seed}"));
    }
}

/// Buffers in the order of a queue: those of a thread that began before one in front of them in the file.
#[test]
fn buffers_out_of_order_are_counted() {
    for seed in 0..80 {
        let run = Run::make(seed, Parts::of_fdr(5), true);
        let bytes = run.fdr(5, false, seed);
        let (mut late, mut latest) = (0, BTreeMap::new());
        for what in common::slow::decode(&bytes).entries.iter().filter({
            let mut buffers = std::collections::BTreeSet::new();
            move |entry| buffers.insert(entry.buffer)
        }) {
            let before = latest.insert(what.what.thread, what.what.tsc);
            late += u64::from(before.is_some_and(|before| before > what.what.tsc));
        }
        assert_eq!(ordered(input(&bytes)).0.reordered_buffers(), late, "seed {seed}");
    }
}

/// What the tools print of a trace.
fn printed(bytes: &[u8], workers: usize) -> [String; 5] {
    let open = OpenOptions { threads: workers, ..OpenOptions::default() };
    let mut sink = Collect::default();
    let text = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let accounts = [Mismatch::Deduce, Mismatch::Skip].map(|mismatch| {
        let options = AccountOptions { mismatch, recursive_only: false };
        let account = account(input(bytes), &open, options, None, &mut sink).unwrap();
        let table = text(&|out| account.write(AccountForm::Csv, Cells::Raw, out));
        format!("{table}{:?}", account.counts)
    });
    let profile = stack(input(bytes), &open, &StackOptions::default(), &mut sink).unwrap();
    let stacks = StackReport::new(&profile, StackView::default(), None).unwrap();
    let calls = graph(input(bytes), &open, Pairing::Right, &mut sink).unwrap();
    let calls = GraphReport::new(&calls, None);
    let [deduced, skipped] = accounts;
    let graphs = [text(&|out| calls.json(out)), text(&|out| calls.csv(Cells::Raw, out))];
    let [json, csv] = graphs;
    [deduced, skipped, text(&|out| stacks.json(out)), json, csv]
}

#[test]
fn tools_print_the_same_of_every_form() {
    let parts = Parts { events: false, long_steps: false, ..Parts::of_basic(3) };
    for seed in 0..40 {
        let run = Run::make(seed, parts, false);
        let expected = printed(&run.fdr(5, false, 0), 1);
        for order in 1..4 {
            assert_eq!(printed(&run.fdr(5, order == 2, order), 2), expected, "seed {seed}, order {order}");
        }
        assert_eq!(printed(&run.fdr(3, false, 9), 3), expected, "seed {seed}, version 3");
        assert_eq!(printed(&run.basic(3, true, 5), 2), expected, "seed {seed}, Basic");
        assert_eq!(printed(&run.yaml(3, 0, 6), 2), expected, "seed {seed}, YAML");
    }
}

#[test]
fn a_conversion_to_any_form_reads_as_the_run() {
    for seed in 0..40 {
        let run = Run::make(seed, Parts::of_fdr(5), true);
        let sources = [run.fdr(5, false, seed), run.fdr(3, true, seed), run.yaml(5, 1, seed)];
        for (n, source) in sources.iter().enumerate() {
            for version in [3, 4, 5] {
                let to = TargetOptions { version: Some(version), ..target(Some("fdr"), None, None) };
                assert_reads(&convert(source, to), &run.all(), &format!("seed {seed}, source {n}, to {version}"));
            }
            let yaml = convert(source, target(Some("yaml"), None, None));
            assert_reads(&yaml, &run.all(), &format!("seed {seed}, source {n}, to YAML"));
        }
        let functions = Run::make(seed, Parts::of_basic(3), false);
        for source in [functions.fdr(5, false, seed), functions.basic(3, true, seed), functions.yaml(3, 0, seed)] {
            let basic = convert(&source, target(Some("basic"), Some(3), None));
            assert_reads(&basic, &functions.all(), &format!("seed {seed}, to Basic"));
        }
    }
}
