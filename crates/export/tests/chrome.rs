//! Chrome's events: what its readers demand beyond their form.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use anytrace_core::span::{EdgeKind, TimeUnit};
use common::{OwnedValue, Played};
use serde_json::Value;

/// Phase, number and time of the ends of arrows.
fn arrows(played: &Played, batch_edges: usize) -> Vec<(String, String, f64)> {
    let trace: Value = serde_json::from_slice(&played.written_in("chrome", batch_edges)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let of = |event: &Value| {
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        (text("ph"), text("id"), event["ts"].as_f64().unwrap())
    };
    events.filter(|event| event["cat"] == "flow").map(of).collect()
}

#[test]
fn a_chain_of_arrows_is_one_flow_with_steps() {
    use EdgeKind::{FlowIn, FlowOut};
    let mut played = Played::new(TimeUnit::Nanoseconds, 0);
    let tracks = [1, 2].map(|thread| played.track(1, thread, 0, None, None));
    // Number 5 goes on at 2000 and 3000; 6 begins where another ends, 7 later than it ended.
    let ends = [
        (0, FlowOut, 1000, 5),
        (1, FlowIn, 2000, 5),
        (1, FlowOut, 2000, 5),
        (0, FlowIn, 3000, 5),
        (0, FlowOut, 3000, 5),
        (1, FlowIn, 4000, 5),
        (1, FlowOut, 4000, 6),
        (1, FlowIn, 5000, 7),
        (1, FlowOut, 6000, 7),
        (0, FlowIn, 7000, 6),
    ];
    for (track, kind, time, number) in ends {
        played.edge(tracks[track], kind, time, b"arrow");
        played.with("number", OwnedValue::U64(number));
    }
    let wanted = [
        ("s", "0x5", 1.0),
        ("t", "0x5", 2.0),
        ("t", "0x5", 3.0),
        ("f", "0x5", 4.0),
        ("s", "0x6", 4.0),
        ("f", "0x7", 5.0),
        ("s", "0x7", 6.0),
        ("f", "0x6", 7.0),
    ];
    let wanted: Vec<_> = wanted.map(|(phase, id, time)| (phase.to_owned(), id.to_owned(), time)).into();
    for batch_edges in [1, 2, 3, 100] {
        assert_eq!(arrows(&played, batch_edges), wanted, "{batch_edges}");
    }
}
