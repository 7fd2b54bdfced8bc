//! What `info` says of a trace of this format beyond what it says of all.

use serde_json::{Map, Value, json};

use super::{CELLS, Counts};
use crate::wire::record::Kind;

impl Counts {
    fn bytes(&self, kinds: &[Kind]) -> u64 {
        let of = |kind: &Kind| self.sizes(*kind).map(|(size, count)| size.saturating_mul(count)).sum::<u64>();
        kinds.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Sizes of data accesses and how often each occurs.
    fn data_sizes(&self) -> Value {
        let mut sizes = Map::new();
        for size in 0..CELLS {
            let count = |kind| self.of(kind).get(size).copied().unwrap_or(0);
            let count = count(Kind::Read) + count(Kind::Write) + count(Kind::Modify);
            if count > 0 {
                sizes.insert(size.to_string(), count.into());
            }
        }
        Value::Object(sizes)
    }

    /// Names and values, in the order in which they are shown.
    pub(super) fn details(&self, bytes_lost: u64) -> Vec<(&'static str, Value)> {
        let run = &self.run;
        let mut details = Vec::new();
        let mut say = |key, value: Option<Value>| details.extend(value.map(|value| (key, value)));
        say("command", run.command.as_deref().map(Value::from));
        say("valgrind", run.version.as_deref().map(Value::from));
        say("processes", (!run.processes.is_empty()).then(|| json!(run.processes)));
        say("exit_code", run.exit_code.map(Value::from));
        say("instructions_counted", run.instructions.map(Value::from));
        say("superblocks_counted", run.blocks.map(Value::from));
        for (key, count) in [
            ("bytes_fetched", self.bytes(&[Kind::Fetch])),
            ("bytes_read", self.bytes(&[Kind::Read, Kind::Modify])),
            ("bytes_written", self.bytes(&[Kind::Write, Kind::Modify])),
        ] {
            say(key, Some(count.into()));
        }
        say("access_sizes", Some(self.data_sizes()));
        say("straddling_64_byte_line", Some(self.straddles.into()));
        for (low, high, range) in [
            ("address_min", "address_max", self.data),
            ("address_fetched_min", "address_fetched_max", self.instructions),
        ] {
            let is_there = range.min <= range.max;
            say(low, is_there.then(|| range.min.into()));
            say(high, is_there.then(|| range.max.into()));
        }
        for (key, count) in [
            ("records_spelled_otherwise", self.unusual),
            ("message_lines", self.message_lines),
            ("text_pieces", self.text_pieces),
            ("lost_bytes", bytes_lost),
        ] {
            say(key, (count > 0).then(|| count.into()));
        }
        details
    }
}
