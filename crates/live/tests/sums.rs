//! Whatever many sources send and however it is cut into files: reports, sources, the index and the files agree with what
//! was sent.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;

use anytrace_heph::tools::loss::StreamLoss;
use anytrace_live::{CollectOptions, EndOfFile, Report, SourceReport};
use common::{Random, epoch, index, metadata, options, start, timed};

/// What a source sends: its packets, and what their counters say.
#[derive(Debug, Default, Clone)]
struct Sent {
    /// Metadata packets, which begin each file.
    head: Vec<u8>,
    packets: Vec<Vec<u8>>,
    /// All bytes, with packets that come twice: only the first is kept.
    bytes: Vec<u8>,
    lengths: Vec<u64>,
    descriptions: BTreeMap<String, u64>,
    received: u64,
    duplicates: u64,
    /// Counters that arrived, of each stream.
    counters: BTreeMap<u32, BTreeSet<u32>>,
}

impl Sent {
    /// Streams whose counters have gaps and repetitions, from 0 on.
    fn random(random: &mut Random, number: u64, events: u64) -> Self {
        let mut sent = Self { head: [epoch(number), metadata("host", b"here")].concat(), ..Self::default() };
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        for at in 0..events {
            let stream = random.below(4) as u32;
            let counter = next.entry(stream).or_default();
            // The first counter of a stream arrives, so that nothing is lost before it.
            *counter += if *counter > 0 && random.below(8) == 0 { 1 + random.below(3) as u32 } else { 0 };
            let description = ["poll", "read", "", "ä"][random.below(4) as usize];
            let bits = 1 + random.below(40);
            let length = random.below(1 << bits);
            let packet = timed(stream, *counter, at * 10, at * 10 + length, description);
            let copies = if random.below(20) == 0 { 2 } else { 1 };
            sent.lengths.push(length);
            *sent.descriptions.entry(description.to_owned()).or_default() += 1;
            sent.bytes.extend(packet.repeat(copies));
            sent.packets.push(packet);
            sent.received += copies as u64;
            sent.duplicates += copies as u64 - 1;
            sent.counters.entry(stream).or_default().insert(*counter);
            *counter += 1;
        }
        sent
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.bytes].concat()
    }

    fn kept_bytes(&self) -> u64 {
        (self.head.len() + self.packets.concat().len()) as u64
    }

    /// Counters below the highest that arrived and did not arrive themselves.
    fn lost(&self) -> u64 {
        self.counters.values().map(|all| u64::from(all.last().unwrap() + 1) - all.len() as u64).sum()
    }

    fn assert_totals(&self, totals: &StreamLoss, what: &str) {
        let found = (totals.received, totals.duplicates, totals.lost, totals.restarts, totals.malformed);
        assert_eq!(found, (self.received, self.duplicates, self.lost(), 0, 0), "{what}");
        assert_eq!(totals.sent_at_least(), self.received - self.duplicates + self.lost(), "{what}");
    }

    fn assert_source(&self, source: &SourceReport, what: &str) {
        assert_eq!((source.events, source.metadata), (self.packets.len() as u64, 2), "{what}");
        assert_eq!(source.bytes, self.kept_bytes(), "{what}");
        assert_eq!((source.damaged_places, source.skipped_bytes, source.uncounted), (0, 0, 0), "{what}");
        assert_eq!(source.stream_count, self.counters.len(), "{what}");
        self.assert_totals(&source.totals, what);
        for stream in &source.streams {
            let arrived = &self.counters[&stream.stream];
            let listed: Vec<u32> =
                stream.lost_ranges.iter().flat_map(|(first, count)| *first..first + *count as u32).collect();
            let due: Vec<u32> = (0..*arrived.last().unwrap()).filter(|counter| !arrived.contains(counter)).collect();
            assert_eq!(listed, due, "{what}, stream {}", stream.stream);
        }
    }
}

/// The sums of a report are those of its sources.
fn assert_adds_up(report: &Report, sent: &[Sent]) {
    let of = |count: fn(&SourceReport) -> u64| report.sources.iter().map(count).sum::<u64>();
    assert_eq!(report.other_sources, 0);
    assert_eq!(
        (report.events, report.metadata, report.bytes, report.files),
        (of(|s| s.events), of(|s| s.metadata), of(|s| s.bytes), of(|s| u64::from(s.files)))
    );
    assert_eq!(report.totals.received, of(|s| s.totals.received));
    assert_eq!(report.totals.lost, of(|s| s.totals.lost));
    assert_eq!(report.totals.duplicates, of(|s| s.totals.duplicates));
    assert_eq!(report.events, sent.iter().map(|one| one.packets.len() as u64).sum::<u64>());
    let lengths: Vec<u64> = sent.iter().flat_map(|one| one.lengths.iter().copied()).collect();
    assert_lengths(report, lengths);
    let mut descriptions: BTreeMap<&str, u64> = BTreeMap::new();
    sent.iter().flat_map(|one| &one.descriptions).for_each(|(text, count)| {
        *descriptions.entry(text).or_default() += count;
    });
    let found: BTreeMap<&str, u64> =
        report.descriptions.iter().map(|row| (row.description.as_str(), row.count)).collect();
    assert_eq!((found, report.other_descriptions), (descriptions, 0));
}

/// Percentiles of the sorted lengths, to a sixteenth.
fn assert_lengths(report: &Report, mut lengths: Vec<u64>) {
    lengths.sort_unstable();
    let at = |per_mille: usize| lengths[(lengths.len() * per_mille).div_ceil(1000).max(1) - 1];
    let found = &report.lengths;
    let pairs = [(found.p50_ns, 500), (found.p90_ns, 900), (found.p99_ns, 990), (found.p999_ns, 999)];
    for (percentile, per_mille) in pairs {
        let exact = at(per_mille);
        assert!((exact..=exact + exact / 16).contains(&percentile), "{per_mille}: {percentile} of {exact}");
    }
    assert_eq!(found.max_ns, *lengths.last().unwrap());
}

/// The files of each source, joined without what begins each; and the index says what is in them.
fn assert_files(folder: &Path, sources: &BTreeMap<u64, Sent>) {
    let mut joined: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut events: BTreeMap<u64, u64> = BTreeMap::new();
    for line in index(folder) {
        let source = line["source"].as_u64().unwrap();
        let bytes = std::fs::read(folder.join("out").join(line["file"].as_str().unwrap())).unwrap();
        assert_eq!(line["bytes"].as_u64(), Some(bytes.len() as u64), "{line}");
        let head = &sources[&source].head;
        assert!(bytes.starts_with(head), "{line}");
        joined.entry(source).or_default().extend_from_slice(&bytes[head.len()..]);
        *events.entry(source).or_default() += line["events"].as_u64().unwrap();
    }
    assert_eq!(joined.len(), sources.len());
    for (number, sent) in sources {
        assert!(joined[number] == sent.packets.concat(), "source {number}: other bytes than were sent");
        assert_eq!(events[number], sent.packets.len() as u64, "source {number}");
    }
}

fn rotated(random: &mut Random, how: &mut CollectOptions) {
    match random.below(3) {
        0 => how.store.rotate_bytes = Some(200 + random.below(3000)),
        1 => how.store.rotate_events = Some(1 + random.below(60)),
        _ => {}
    }
}

#[test]
fn connections_that_come_and_go_are_sources_whose_files_are_what_they_sent() {
    let mut random = Random(1);
    for round in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let mut how = options(folder.path(), &["tcp://127.0.0.1:0"]);
        rotated(&mut random, &mut how);
        let running = start(how);
        let (mut all, mut received) = (Vec::new(), 0);
        let mut peers = BTreeMap::new();
        // Some at a time; when they have sent everything they leave, and others come.
        for _ in 0..4 {
            let mut open: Vec<(TcpStream, Vec<u8>)> = Vec::new();
            for _ in 0..1 + random.below(4) {
                let events = 1 + random.below(120);
                let sent = Sent::random(&mut random, all.len() as u64 + 1, events);
                received += sent.received;
                let socket = TcpStream::connect(running.address(0)).unwrap();
                peers.insert(socket.local_addr().unwrap().to_string(), all.len());
                open.push((socket, sent.bytes()));
                all.push(sent);
            }
            while open.iter().any(|(_, rest)| !rest.is_empty()) {
                for (socket, rest) in &mut open {
                    let piece = (1 + random.below(700) as usize).min(rest.len());
                    socket.write_all(&rest[..piece]).unwrap();
                    rest.drain(..piece);
                }
            }
            drop(open);
            running.wait_for_received(received);
        }
        let report = running.stop();
        assert_adds_up(&report, &all);
        let mut by_number = BTreeMap::new();
        for source in &report.sources {
            let sent = &all[peers[&source.name.peer]];
            sent.assert_source(source, &format!("round {round}, {}", source.name.peer));
            by_number.insert(u64::from(source.name.number), sent.clone());
        }
        assert_files(folder.path(), &by_number);
    }
}

#[test]
fn files_that_are_followed_are_cut_without_loss() {
    let mut random = Random(2);
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let mut how = options(folder.path(), &[]);
        how.end_of_file = EndOfFile::Ends;
        rotated(&mut random, &mut how);
        let mut sent = BTreeMap::new();
        for number in 1..=1 + random.below(4) {
            let events = 1 + random.below(200);
            let one = Sent::random(&mut random, number, events);
            let path = folder.path().join(format!("{number}.heph"));
            std::fs::write(&path, one.bytes()).unwrap();
            sent.insert(path.display().to_string(), one);
            how.follow.push(path);
        }
        let report = start(how).join().unwrap();
        assert_adds_up(&report, &sent.values().cloned().collect::<Vec<_>>());
        let mut by_number = BTreeMap::new();
        for source in &report.sources {
            let one = &sent[&source.name.peer];
            one.assert_source(source, &format!("round {round}, {}", source.name.peer));
            by_number.insert(u64::from(source.name.number), one.clone());
        }
        assert_files(folder.path(), &by_number);
    }
}

#[test]
fn only_the_last_files_stay_and_the_index_knows_them_all() {
    let mut random = Random(3);
    for keep in [1, 2, 5] {
        let folder = tempfile::tempdir().unwrap();
        let mut how = options(folder.path(), &[]);
        how.end_of_file = EndOfFile::Ends;
        how.store.rotate_events = Some(7);
        how.store.keep = Some(keep);
        let sent = Sent::random(&mut random, 1, 100);
        let path = folder.path().join("in.heph");
        std::fs::write(&path, sent.bytes()).unwrap();
        how.follow = vec![path];
        let report = start(how).join().unwrap();
        let expected = sent.packets.len().div_ceil(7);
        assert_eq!((report.files, report.events), (expected as u64, sent.packets.len() as u64));
        let lines = index(folder.path());
        assert_eq!(lines.len(), expected);
        let stays: Vec<bool> =
            lines.iter().map(|line| folder.path().join("out").join(line["file"].as_str().unwrap()).exists()).collect();
        let due: Vec<bool> = (0..expected).map(|at| at + keep >= expected).collect();
        assert_eq!(stays, due);
        // The line of a file names the one that was removed for it.
        for (at, line) in lines.iter().enumerate() {
            let before = at.checked_sub(keep).map(|before| &lines[before]["file"]);
            assert_eq!(line.get("removed").filter(|removed| removed.is_string()), before, "{line}");
        }
        let kept = common::contents(folder.path());
        let last: Vec<u8> = kept.iter().flat_map(|bytes| bytes[sent.head.len()..].to_vec()).collect();
        assert!(sent.packets.concat().ends_with(&last));
    }
}

/// Datagrams that arrive while the queue is full are dropped; none of them is forgotten.
#[test]
fn every_datagram_is_kept_or_counted_as_dropped() {
    let mut dropped = 0;
    for memory_bytes in [64 << 10, 256 << 10, 64 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let mut how = options(folder.path(), &["udp://127.0.0.1:0"]);
        how.caps.packet_bytes = 4096;
        how.caps.memory_bytes = memory_bytes;
        let running = start(how);
        let sockets: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let long = "x".repeat(1500);
        let (mut sent, mut bytes) = ([0_u64; 5], 0);
        for counter in 0..400 {
            for (socket, sent) in sockets.iter().zip(&mut sent) {
                let packet = timed(1, counter, 5, 6, &long);
                socket.send_to(&packet, running.address(0)).unwrap();
                *sent += 1;
                bytes += packet.len() as u64;
            }
        }
        let all: u64 = sent.iter().sum();
        running.wait_for(|summary| {
            let total = &summary.total;
            total.events + total.dropped.events + total.over_rate.events + total.kernel_dropped() == all
        });
        let report = running.stop();
        assert_eq!(report.dropped.datagrams, report.dropped.events);
        assert_eq!(report.bytes + report.dropped.bytes + report.kernel_dropped() * (bytes / all), bytes);
        for source in &report.sources {
            let at = sockets.iter().position(|one| one.local_addr().unwrap().to_string() == source.name.peer).unwrap();
            assert!(source.events + source.dropped.events <= sent[at]);
            // What the counters of the kept ones say is missing was dropped, or is missing at the end.
            assert!(source.totals.lost + source.events <= sent[at]);
        }
        dropped += report.dropped.events;
        let kept: u64 = index(folder.path()).iter().map(|line| line["events"].as_u64().unwrap()).sum();
        assert_eq!(kept, report.events);
    }
    assert!(dropped > 0, "the smallest queue was never full");
}
