//! What of an event decides its place in the stream: its time. Those of one time stay in the order in which they came.

use anytrace_core::runs::{Keyed, Stored};

/// The time of an event, and how many bytes it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) time: u64,
    length: u32,
}

impl At {
    pub(super) fn new(time: u64) -> Self {
        Self { time, length: 0 }
    }
}

impl Keyed for At {
    type Key = u64;

    fn key(&self) -> u64 {
        self.time
    }

    fn with_payload(self, length: u32) -> Self {
        Self { length, ..self }
    }
}

impl Stored for At {
    const BEFORE: Self = Self { time: 0, length: 0 };

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (length, _) = rest.split_first_chunk()?;
        Some((Self { time: u64::from_le_bytes(*time), length: u32::from_le_bytes(*length) }, 12))
    }

    fn payload(&self) -> usize {
        self.length as usize
    }
}
