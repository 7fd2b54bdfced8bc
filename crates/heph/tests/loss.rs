//! Loss by counters: the captures of the corpus, a simulated network, restarts, clones, damage.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use anytrace_core::{Collect, Input, Limits, OpenOptions};
use anytrace_heph::Header;
use anytrace_heph::tools::loss::{
    Accounts, Arrival, LossOptions, LossReport, Sessions, StreamLoss, read_datagrams, read_file,
};
use proptest::prelude::*;
use serde_json::Value;

fn read(bytes: Vec<u8>) -> (LossReport, Collect) {
    let mut sink = Collect::default();
    let input = Input::from_bytes_as_is("capture", bytes);
    let report = read_datagrams(input, &Limits::default(), &LossOptions::default(), &mut sink).unwrap();
    (report, sink)
}

fn event(stream: u32, counter: u32) -> Header {
    Header { stream, counter, ..Header::default() }
}

#[test]
fn the_captures_of_the_corpus_give_the_counts_sent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/net");
    let expected: Value = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut seen = 0;
    for case in expected.as_array().unwrap() {
        let name = Path::new(case["file"].as_str().unwrap()).file_name().unwrap();
        let (report, sink) = read(std::fs::read(folder.join(name)).unwrap());
        let found = report.to_json();
        let datagrams: u64 = report.sources.iter().map(|source| source.datagrams).sum();
        assert_eq!(case["datagrams"], datagrams, "{name:?}");
        if let Some(events) = case.get("events") {
            assert_eq!(*events, found["received"], "{name:?}");
            assert_eq!(case["bad_datagrams"], report.sources.iter().map(|s| s.bad_datagrams).sum::<u64>());
            assert_eq!(sink.errors(), 1, "{name:?}");
            continue;
        }
        seen += 1;
        assert_eq!(sink.errors(), 0, "{name:?}");
        for key in ["senders", "received", "duplicates", "out_of_order", "detectable_lost"] {
            assert_eq!(case[key], found[key], "{key} of {name:?}");
        }
        assert_eq!(found["lost"], less_the_tail(case, &report), "{name:?}");
    }
    assert_eq!(seen, 5);
}

/// The lost counters of an expectation that come before the last counter that arrived.
fn less_the_tail(case: &Value, report: &LossReport) -> Value {
    let mut wanted = serde_json::Map::new();
    for (place, counters) in case["lost"].as_object().unwrap() {
        let (port, stream) = place.split_once('/').unwrap();
        let source = report.sources.iter().find(|source| source.name == port).unwrap();
        let stream = source.streams.iter().find(|s| s.stream.to_string() == stream).unwrap();
        let seen: Vec<Value> = counters
            .as_array()
            .unwrap()
            .iter()
            .filter(|n| n.as_u64().unwrap() < stream.last_counter.into())
            .cloned()
            .collect();
        if !seen.is_empty() {
            wanted.insert(place.clone(), seen.into());
        }
    }
    wanted.into()
}

/// The effect of a network on packets sent in order: it loses, duplicates and delays them by a few places.
#[derive(Debug, Clone)]
struct Network {
    /// First counter of the stream, and how many are sent.
    first: u32,
    count: u32,
    /// For each packet: lost (0), duplicated (1) or unchanged, and by how many places it is late.
    fate: Vec<(u8, u32)>,
}

fn network() -> impl Strategy<Value = Network> {
    let first = prop_oneof![Just(0_u32), (u32::MAX - 150)..=u32::MAX];
    (first, 1..600_usize, 1..40_u8, 1..30_u32).prop_flat_map(|(first, count, one_in, window)| {
        prop::collection::vec((0..one_in, 0..window), count).prop_map(move |fate| {
            let count = u32::try_from(count).unwrap();
            Network { first, count, fate }
        })
    })
}

impl Network {
    /// Counters in order of arrival; the first arrives before the others are sent, so that its position is certain.
    fn arrivals(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for (n, &(fate, late)) in (0..self.count).zip(&self.fate) {
            let at = if n == 0 { 0 } else { n + 1 + late };
            let counter = self.first.wrapping_add(n);
            if n == 0 || fate != 0 {
                all.push((at, n, counter));
            }
            if fate == 1 {
                all.push((at + late / 2, n, counter));
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(_, _, counter)| counter).collect()
    }
}

/// The slow obvious version: positions from the first counter on, in 64 bits.
fn by_hand(arrivals: &[u32], first: u32) -> (u64, u64, Vec<u32>) {
    let places: Vec<u64> = arrivals.iter().map(|counter| u64::from(counter.wrapping_sub(first))).collect();
    let mut seen = BTreeMap::new();
    let (mut duplicates, mut out_of_order, mut highest) = (0, 0, 0);
    for &place in &places {
        out_of_order += u64::from(place < highest);
        highest = highest.max(place);
        let times = seen.entry(place).or_insert(0);
        duplicates += u64::from(*times > 0);
        *times += 1;
    }
    let lost = (0..highest).filter(|place| !seen.contains_key(place));
    (duplicates, out_of_order, lost.map(|place| first.wrapping_add(u32::try_from(place).unwrap())).collect())
}

fn counters(stream: &StreamLoss) -> Vec<u32> {
    stream.lost_ranges.iter().flat_map(|&(first, n)| (0..n).map(move |k| first.wrapping_add(k as u32))).collect()
}

fn stream_of(accounts: &Accounts) -> StreamLoss {
    accounts.streams().first().unwrap().clone()
}

fn counts(accounts: &mut Accounts, arrivals: &[u32]) -> StreamLoss {
    for counter in arrivals {
        accounts.event(&event(5, *counter), &counter.to_be_bytes(), 0);
    }
    stream_of(accounts)
}

proptest! {
    #[test]
    fn a_network_s_deeds_are_counted_to_the_event(network in network()) {
        let arrivals = network.arrivals();
        let found = counts(&mut Accounts::new(LossOptions::default()), &arrivals);
        let (duplicates, out_of_order, lost) = by_hand(&arrivals, network.first);
        prop_assert_eq!(counters(&found), lost.clone());
        prop_assert_eq!((found.duplicates, found.out_of_order), (duplicates, out_of_order));
        prop_assert_eq!((found.lost, found.restarts), (lost.len() as u64, 0));
        prop_assert_eq!(found.received, arrivals.len() as u64);
        prop_assert_eq!(found.received, found.unique() + found.duplicates);
        prop_assert_eq!(found.sent_at_least(), found.unique() + found.lost);
    }

    #[test]
    fn no_row_of_counters_breaks_the_identities_or_takes_memory(
        arrivals in prop::collection::vec((prop_oneof![0..50_u32, any::<u32>(), 4000..4200_u32], 0..3_u8), 0..400),
    ) {
        let options = LossOptions { ranges_max: 20, window_bytes_max: 2000, ..LossOptions::default() };
        let mut accounts = Accounts::new(options);
        for (n, (counter, bytes)) in (0..).zip(&arrivals) {
            accounts.event(&event(1, *counter), &[*bytes], n);
        }
        for found in accounts.streams() {
            prop_assert_eq!(found.received, arrivals.len() as u64);
            let listed: u64 = found.lost_ranges.iter().map(|range| range.1).sum();
            prop_assert_eq!(found.lost, listed + found.lost_unlisted);
            // A gap before the last event is in the list while it is not certain, without taking room.
            prop_assert!(found.lost_ranges.len() <= 21 && found.open <= found.lost);
            prop_assert!(found.duplicates <= found.received);
        }
    }

    #[test]
    fn no_bytes_of_a_capture_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..12_900_usize) {
        read(bytes);
        let complete = include_bytes!("../corpus/net/clean.dgrams");
        let (report, sink) = read(complete[..cut.min(complete.len())].to_vec());
        prop_assert!(report.received() <= 200 && sink.errors() <= 1);
    }
}

#[test]
fn a_restart_is_no_loss_and_its_stragglers_are_taken_to_the_old_writer() {
    let mut accounts = Accounts::new(LossOptions::default());
    for counter in 0..300_u32 {
        accounts.event(&event(5, counter), b"old", 0);
    }
    assert_eq!(accounts.event(&event(5, 0), b"new 0", 0), Arrival::Restart);
    assert_eq!(accounts.event(&event(5, 300), b"old", 0), Arrival::Next);
    assert_eq!(accounts.event(&event(5, 1), b"new", 0), Arrival::Next);
    for counter in 2..1000_u32 {
        accounts.event(&event(5, counter), b"new", 0);
    }
    let found = stream_of(&accounts);
    assert_eq!((found.restarts, found.lost, found.duplicates, found.received), (1, 0, 0, 1301));
}

#[test]
fn two_writers_of_one_stream_are_counted_apart() {
    let mut accounts = Accounts::new(LossOptions::default());
    for counter in 0..50_u32 {
        accounts.event(&event(0, counter), b"original", 0);
    }
    for n in 0..500_u32 {
        accounts.event(&event(0, n), format!("clone {n}").as_bytes(), 0);
        if n % 100 != 7 {
            accounts.event(&event(0, 50 + n), format!("original {n}").as_bytes(), 0);
        }
    }
    let found = stream_of(&accounts);
    assert_eq!((found.restarts, found.duplicates), (1, 0));
    assert_eq!(counters(&found), [57, 157, 257, 357, 457]);
}

#[test]
fn a_jump_of_a_million_is_a_writer_that_started_again() {
    let lost = |arrivals: &[u32]| {
        let found = counts(&mut Accounts::new(LossOptions::default()), arrivals);
        (found.lost, found.restarts)
    };
    assert_eq!(lost(&[0, 1, (1 << 20) + 1]), ((1 << 20) - 1, 0));
    assert_eq!(lost(&[0, 1, (1 << 20) + 2]), (0, 1));
}

#[test]
fn a_forged_counter_is_doubtful_whatever_its_time_and_place() {
    for forged in [50_000, 1_047_075] {
        for (place, ns) in [(1, 200), (1, 1 << 40), (10, 200), (10, 1 << 40), (19, 200), (19, 1 << 40), (20, 200)] {
            let mut accounts = Accounts::new(LossOptions::default());
            let timed = |counter: u32, end_ns| Header { counter, end_ns, ..event(1, 0) };
            for counter in 0..20 {
                if counter == place {
                    accounts.event(&timed(forged, ns), b"forged", 0);
                }
                accounts.event(&timed(counter, u64::from(counter) * 10 + 100), b"real", 0);
            }
            if place == 20 {
                accounts.event(&timed(forged, 300), b"forged", 0);
            }
            let found = stream_of(&accounts);
            // The last event but one with a possible time: one event after it does not show that it is forged.
            let is_open = place == 19 && ns > 1 << 30;
            let missing = u64::from(forged - place);
            let expected = if is_open { (missing - 1, 0, 0) } else { (0, missing, 1) };
            assert_eq!((found.lost, found.doubtful, found.doubtful_events), expected, "{forged} at {place}, {ns}");
            assert_eq!((found.restarts, found.received), (0, 21), "{forged} at {place}, {ns}");
        }
    }
}

#[test]
fn sessions_join_files_in_any_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/sessions");
    let loss = |names: &[&str]| {
        let mut sessions = Sessions::new(LossOptions::default());
        let mut report = LossReport::default();
        for name in names {
            let input = Input::from_bytes(name, std::fs::read(folder.join(name)).unwrap());
            let source = read_file(name, input, &OpenOptions::default(), &mut sessions, &mut Collect::default());
            report.sources.push(source.unwrap());
        }
        report.sessions = sessions.report();
        report
    };
    for names in [["first.heph", "second.heph", "last.heph"], ["last.heph", "first.heph", "second.heph"]] {
        let report = loss(&names);
        let all = &report.sessions[0].all;
        assert_eq!((report.sessions.len(), all.recorded, all.received, all.lost), (1, 40, 40, 0), "{names:?}");
        assert!(report.is_closed());
        assert_eq!(report.to_json()["tail_is_unknown"], false);
    }
    // The same file twice: everything came twice.
    let twice = loss(&["first.heph", "first.heph", "second.heph", "last.heph"]);
    assert_eq!((twice.sessions[0].all.duplicates, twice.lost()), (20, 0));
    // Without the first part nothing is known of it, and nothing of it is lost.
    let later = loss(&["second.heph", "last.heph"]);
    assert_eq!((later.sessions[0].all.before, later.lost(), later.received()), (20, 0, 20));
    let gap = loss(&["first.heph", "last.heph"]);
    assert_eq!((gap.lost(), gap.sessions[0].parts, gap.sessions[0].last_part), (16, 2, 2));
    let open = loss(&["first.heph"]);
    assert!(!open.is_closed() && open.sessions[0].tail_at_most() > Some(600_000));
    assert_eq!((open.lost(), open.sessions[0].all.recorded), (0, 20));
}

#[test]
fn sessions_and_accounts_that_cannot_be_true_break_nothing() {
    let most = u64::MAX;
    let long = "x".repeat(60_000);
    let mut bytes = Vec::new();
    for id in 0..5_u128 {
        let part = if id < 3 { 0 } else { most - id as u64 };
        let session = heph_encoder::Session { id, program: &long, part, ..Default::default() };
        heph_encoder::session(&mut bytes, &session).unwrap();
        for recorded in [most, 1 << 40, 0] {
            let streams: Vec<heph_encoder::StreamAccount> = (0..50)
                .map(|stream| heph_encoder::StreamAccount { stream, recorded, dropped: most, lost: most })
                .collect();
            let all = heph_encoder::StreamAccount { stream: 0, recorded: most, dropped: most, lost: most };
            let account = heph_encoder::Account { id, is_closed: true, streams: &streams, all_streams: most, all };
            heph_encoder::account(&mut bytes, &account).unwrap();
            let header = heph_encoder::Header { stream: 1, counter: u32::MAX, ..Default::default() };
            heph_encoder::event(&mut bytes, &header, "x").finish().unwrap();
        }
    }
    let mut sessions = Sessions::new(LossOptions::default());
    let input = Input::from_bytes("hostile", bytes);
    read_file("hostile", input, &OpenOptions::default(), &mut sessions, &mut Collect::default()).unwrap();
    let report = LossReport { sources: Vec::new(), sessions: sessions.report() };
    assert_eq!(report.sessions.len(), 5);
    assert!(report.sessions.iter().all(|session| session.session.program.len() <= 256));
    assert!(report.lost() > 1 << 50 && report.lost_share() <= 1.0);
    assert!(report.to_json()["lost_not_listed"].as_u64().unwrap() > 1 << 50);
}

#[test]
fn losses_before_the_first_arrival_are_counted_separately() {
    let found = counts(&mut Accounts::new(LossOptions::default()), &[5, 3, 6, 9]);
    assert_eq!((found.lost, found.lost_at_head, found.first_counter), (6, 3, 3));
    let joined = counts(&mut Accounts::new(LossOptions::default()), &[2_000_000, 2_000_001]);
    assert_eq!((joined.lost, joined.restarts), (0, 0));
}

#[test]
fn a_gap_is_open_until_it_is_too_old() {
    let options = LossOptions { window_ns: Some(200), ..LossOptions::default() };
    let mut accounts = Accounts::new(options);
    accounts.event(&event(5, 0), b"a", 1000);
    assert_eq!(accounts.event(&event(5, 3), b"d", 1100), Arrival::Ahead(2));
    let at = |accounts: &Accounts, now| accounts.totals_at(Some(now)).open;
    assert_eq!((at(&accounts, 1300), at(&accounts, 1301)), (2, 0));
    assert_eq!(accounts.event(&event(5, 2), b"c", 1200), Arrival::Late);
    assert_eq!((at(&accounts, 1300), accounts.totals_at(Some(1301)).lost), (1, 1));
}

#[test]
fn streams_beyond_the_limit_are_counted_together() {
    let mut accounts = Accounts::new(LossOptions { streams_max: 2, ..LossOptions::default() });
    for stream in 0..5 {
        accounts.event(&event(stream, 0), b"x", 0);
    }
    assert_eq!((accounts.streams().len(), accounts.uncounted()), (2, 3));
    assert_eq!(accounts.totals_at(None).received, 5);
}

#[test]
fn a_damaged_body_in_a_file_keeps_its_counter() {
    let packet = |counter: u32, kind: u8| {
        let mut bytes = [0xC1FC_1FB7_u32, 54, 1, counter].map(u32::to_be_bytes).concat();
        bytes.extend_from_slice(&[0; 24]);
        bytes.extend_from_slice(&[0, 0, 0, 1, b'n', kind]);
        bytes.extend_from_slice(&[0; 8]);
        assert_eq!(bytes.len(), 54);
        bytes
    };
    let bytes = [packet(0, 1), packet(1, 9), packet(2, 1)].concat();
    let mut sink = Collect::default();
    let input = Input::from_bytes("file", bytes);
    let mut sessions = Sessions::new(LossOptions::default());
    let found = read_file("file", input, &OpenOptions::default(), &mut sessions, &mut sink).unwrap();
    assert!(sessions.is_empty());
    let stream = found.streams.first().unwrap();
    assert_eq!((stream.received, stream.malformed, stream.lost, stream.unique()), (3, 1, 0, 2));
    assert_eq!(sink.codes(), ["heph/bad-type"]);
}
