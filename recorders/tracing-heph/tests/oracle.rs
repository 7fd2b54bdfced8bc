//! Random programs against a slow model of the semantics of `tracing`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Folder, codes, read, record};
use proptest::prelude::*;
use tracing::field::Empty;
use tracing::span::EnteredSpan;
use tracing::{Span, info, info_span};
use tracing_heph::HephLayer;

/// Spans a program holds at a time.
const SLOTS: usize = 4;

#[derive(Debug, Clone)]
enum Step {
    /// Parent: contextual, none, or the span of a slot.
    Make {
        slot: usize,
        parent: Parent,
        text: usize,
    },
    Enter(usize),
    /// Leaves the entry so far from the innermost.
    Leave(usize),
    Record {
        slot: usize,
        value: i64,
    },
    Point(Parent),
    Drop(usize),
}

#[derive(Debug, Clone, Copy)]
enum Parent {
    Context,
    None,
    Slot(usize),
}

fn parent() -> impl Strategy<Value = Parent> {
    prop_oneof![3 => Just(Parent::Context), 1 => Just(Parent::None), 1 => (0..SLOTS).prop_map(Parent::Slot)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..SLOTS, parent(), 0_usize..150).prop_map(|(slot, parent, text)| Step::Make { slot, parent, text }),
        4 => (0..SLOTS).prop_map(Step::Enter),
        3 => (0_usize..3).prop_map(Step::Leave),
        1 => (0..SLOTS, any::<i64>()).prop_map(|(slot, value)| Step::Record { slot, value }),
        2 => parent().prop_map(Step::Point),
        1 => (0..SLOTS).prop_map(Step::Drop),
    ]
}

/// A span as the model knows it.
#[derive(Debug, Clone)]
struct Model {
    root: usize,
    text: usize,
    value: Option<i64>,
}

/// What should be in the trace: the span's number or none for a point, the root's number or none, text's length, value.
type Wanted = (Option<usize>, Option<usize>, usize, Option<i64>);

#[derive(Default)]
struct Program {
    slots: [Option<(Span, usize)>; SLOTS],
    spans: Vec<Model>,
    handles: Vec<(EnteredSpan, usize)>,
    /// The thread's stack as `tracing` keeps it: the span, and whether it was in it before.
    stack: Vec<(usize, bool)>,
    wanted: Vec<Wanted>,
}

impl Program {
    fn current(&self) -> Option<usize> {
        self.stack.iter().rev().find(|(_, is_again)| !is_again).map(|(span, _)| *span)
    }

    /// The parent's number and, where it is given explicitly, its handle.
    fn parent(&self, parent: Parent) -> (Option<usize>, Option<Option<tracing::Id>>) {
        match parent {
            Parent::Context => (self.current(), None),
            Parent::None => (None, Some(None)),
            Parent::Slot(slot) => match &self.slots[slot] {
                Some((span, number)) => (Some(*number), Some(span.id())),
                None => (None, Some(None)),
            },
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Make { slot, parent, text } => {
                let number = self.spans.len();
                let (parent, explicit) = self.parent(parent);
                let long = "x".repeat(text);
                let span = match explicit {
                    None => info_span!("span", number, text = long.as_str(), value = Empty),
                    Some(id) => info_span!(parent: id, "span", number, text = long.as_str(), value = Empty),
                };
                let root = parent.map_or(number, |parent| self.spans[parent].root);
                self.spans.push(Model { root, text, value: None });
                self.slots[slot] = Some((span, number));
            }
            Step::Enter(slot) => {
                if let Some((span, number)) = &self.slots[slot] {
                    self.handles.push((span.clone().entered(), *number));
                    self.stack.push((*number, self.stack.iter().any(|(span, _)| span == number)));
                }
            }
            Step::Leave(from_innermost) => {
                if let Some(at) = self.handles.len().checked_sub(1 + from_innermost) {
                    let (handle, number) = self.handles.remove(at);
                    drop(handle);
                    self.left(number);
                }
            }
            Step::Record { slot, value } => {
                if let Some((span, number)) = &self.slots[slot] {
                    span.record("value", value);
                    self.spans[*number].value = Some(value);
                }
            }
            Step::Point(parent) => {
                let (parent, explicit) = self.parent(parent);
                match explicit {
                    None => info!("point"),
                    Some(id) => info!(parent: id, "point"),
                }
                self.wanted.push((None, parent.map(|parent| self.spans[parent].root), 0, None));
            }
            Step::Drop(slot) => self.slots[slot] = None,
        }
    }

    fn left(&mut self, number: usize) {
        let at = self.stack.iter().rposition(|(span, _)| *span == number).unwrap();
        self.stack.remove(at);
        let span = &self.spans[number];
        self.wanted.push((Some(number), Some(span.root), span.text, span.value));
    }

    fn end(&mut self) {
        while let Some((handle, number)) = self.handles.pop() {
            drop(handle);
            self.left(number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_event_is_as_the_model_says(steps in prop::collection::vec(step(), 1..120)) {
        let folder = Folder::new();
        let mut program = Program::default();
        let stats = record(HephLayer::builder().file(folder.path()), || {
            for step in &steps {
                program.run(step);
            }
            program.end();
        });
        prop_assert_eq!(stats.written, program.wanted.len() as u64);
        let bytes = std::fs::read(folder.path()).unwrap();
        // Spans may be left in another order than entered, so they may cross.
        let codes = codes(&bytes);
        prop_assert!(codes.iter().all(|code| code == "heph/partial-overlap"), "{:?}", codes);
        let trace = read(&bytes);
        prop_assert_eq!(trace.events.len(), program.wanted.len());
        let mut substreams: BTreeMap<u64, usize> = BTreeMap::new();
        for ((counter, event), (number, root, text, value)) in (0..).zip(&trace.events).zip(program.wanted) {
            prop_assert_eq!(event.header.counter, counter);
            let as_text = |value: usize| format!("u64 {value}");
            prop_assert_eq!(event.get("number").map(str::to_owned), number.map(as_text));
            prop_assert_eq!(event.get("text").map_or(0, |text| text.len() - 4), text);
            prop_assert_eq!(event.get("value").map(str::to_owned), value.map(|value| format!("i64 {value}")));
            match root {
                None => prop_assert_eq!(event.header.substream, 0),
                Some(root) => {
                    prop_assert_ne!(event.header.substream, 0);
                    prop_assert_eq!(*substreams.entry(event.header.substream).or_insert(root), root);
                }
            }
        }
        let mut roots: Vec<usize> = substreams.into_values().collect();
        let count = roots.len();
        roots.sort_unstable();
        roots.dedup();
        prop_assert_eq!(roots.len(), count, "two substreams for one root");
    }
}
