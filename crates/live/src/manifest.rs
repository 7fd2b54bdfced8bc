//! What of a session is in a file: the index says it, so that a collector that starts again knows what arrived before,
//! even of files that were removed since.

use anytrace_core::hash::Map;
use anytrace_heph::tools::loss::{Part, SessionKey, Sessions};
use anytrace_heph::{Layout, Record, parse};
use serde_json::{Value, json};

/// Most ranges of counters of a file, and most bytes of packets about its session; with more, the file itself is read.
const RANGES_MAX: usize = 4096;
const PACKETS_BYTES: usize = 1 << 16;

/// The part of a session in a file.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// Packets that begin the session and say what it counted.
    packets: Vec<Vec<u8>>,
    packet_bytes: usize,
    /// Counters that arrived, by stream: from and to (exclusive), in order of arrival.
    arrived: Map<u32, Vec<(u64, u64)>>,
    ranges: usize,
    /// True when there was more than has room here.
    pub(crate) is_cut: bool,
}

impl Manifest {
    /// Takes a packet about the session.
    pub(crate) fn packet(&mut self, packet: &[u8]) {
        if self.packets.iter().any(|known| known == packet) {
            return;
        }
        self.packet_bytes += packet.len();
        if self.packet_bytes > PACKETS_BYTES {
            self.is_cut = true;
        } else {
            self.packets.push(packet.to_vec());
        }
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn event(&mut self, stream: u32, at: u64) {
        self.range(stream, at, at + 1);
    }

    /// Takes what arrived before the session was known.
    pub(crate) fn adopt(&mut self, stream: u32, part: &Part) {
        for &(first, count) in &part.ranges {
            self.range(stream, first, first.saturating_add(count));
        }
    }

    #[inline]
    fn range(&mut self, stream: u32, from: u64, to: u64) {
        if let Some(last) = self.arrived.get_mut(&stream).and_then(|ranges| ranges.last_mut())
            && last.1 == from
        {
            last.1 = to;
        } else if self.ranges >= RANGES_MAX {
            self.is_cut = true;
        } else {
            self.ranges += 1;
            self.arrived.entry(stream).or_default().push((from, to));
        }
    }

    /// For the index; `None` for a file without a session.
    pub(crate) fn to_json(&self) -> Option<Value> {
        if self.packets.is_empty() && !self.is_cut {
            return None;
        }
        if self.is_cut {
            return Some(json!({ "read_file": true }));
        }
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut streams: Vec<_> = self.arrived.iter().collect();
        streams.sort_by_key(|(stream, _)| **stream);
        let row = |(stream, ranges): (&u32, &Vec<(u64, u64)>)| {
            let ranges = ranges.iter().map(|(from, to)| json!([from, to - from]));
            json!({ "stream": stream, "arrived": ranges.collect::<Vec<_>>() })
        };
        Some(json!({
            "packets": self.packets.iter().map(hex).collect::<Vec<_>>(),
            "streams": streams.into_iter().map(row).collect::<Vec<_>>(),
        }))
    }

    /// The session of a line of the index.
    pub(crate) fn session_of(value: &Value) -> Option<u128> {
        let id = |packet: Vec<u8>| match parse(&packet, &Layout::default()) {
            Ok((Record::Metadata(metadata), _)) => metadata.session().map(|session| session.id),
            _ => None,
        };
        value["packets"].as_array()?.iter().find_map(|hex| id(from_hex(hex.as_str()?)?))
    }

    /// Has the sessions know what was in a file, from its line of the index; false where the file must be read.
    pub(crate) fn restore(value: &Value, sessions: &mut Sessions) -> bool {
        if value.get("read_file").is_some() {
            return false;
        }
        let mut key: Option<SessionKey> = None;
        for packet in value["packets"].as_array().into_iter().flatten().filter_map(|hex| from_hex(hex.as_str()?)) {
            let Ok((Record::Metadata(metadata), _)) = parse(&packet, &Layout::default()) else { continue };
            if let Some(session) = metadata.session() {
                key = sessions.begin(&session).or(key);
            } else if let Some(account) = metadata.account() {
                sessions.account(&account);
            }
        }
        let Some(key) = key else { return true };
        for row in value["streams"].as_array().into_iter().flatten() {
            let Some(stream) = row["stream"].as_u64().and_then(|stream| u32::try_from(stream).ok()) else { continue };
            let range = |range: &Value| Some((range[0].as_u64()?, range[1].as_u64()?));
            let ranges: Vec<(u64, u64)> = row["arrived"].as_array().into_iter().flatten().filter_map(range).collect();
            let received = ranges.iter().map(|range| range.1).sum();
            sessions.adopt(key, stream, &Part { ranges, received, ..Part::default() });
        }
        true
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
