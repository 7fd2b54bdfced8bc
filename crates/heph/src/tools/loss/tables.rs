//! The tables `streams` and `loss`.

use anytrace_core::hash::Map;
use anytrace_core::table::{RowSink, Rows, Scan, Table};
use anytrace_core::{Diagnostic, Error, Place, Sink, Summary};

use super::file::{Books, Counting};
use super::{LossOptions, Sessions, StreamLoss};
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Event, Record};

/// Reads a trace as the rows of one of the two tables: by stream, and gaps by counter.
pub(crate) fn read(
    mut reader: Reader,
    table: &Table,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut sessions = Sessions::new(LossOptions::default());
    let counting = Counting { books: Books::new("", LossOptions::default()), sessions: &mut sessions, sink };
    let mut seen = Seen { counting, known: Map::default(), others: Times::default() };
    let summary = reader.read(&mut seen)?;
    let mut rows = Rows::new(table, scan, out);
    let streams = seen.counting.books.accounts.streams();
    if table.name == "streams" {
        for stream in &streams {
            push_stream(Some(stream), seen.known.get(&stream.stream), &mut rows)?;
        }
        if seen.others.packets > 0 {
            push_stream(None, Some(&seen.others), &mut rows)?;
        }
    } else {
        streams.iter().try_for_each(|stream| push_gaps(stream, &mut rows))?;
    }
    rows.finish()?;
    Ok(summary)
}

fn push_stream(stream: Option<&StreamLoss>, times: Option<&Times>, rows: &mut Rows<'_>) -> Result<(), Error> {
    rows.int64(stream.map(|stream| i64::from(stream.stream)));
    rows.count(times.map_or(0, |times| times.packets));
    rows.count(times.map(|times| times.first_ns));
    rows.count(times.map(|times| times.last_ns));
    rows.int64(stream.map(|stream| i64::from(stream.first_counter)));
    rows.int64(stream.map(|stream| i64::from(stream.last_counter)));
    rows.count(stream.map_or(0, |stream| stream.lost));
    rows.end()
}

/// A row for each gap, and one for what is missing beyond those that are listed.
fn push_gaps(stream: &StreamLoss, rows: &mut Rows<'_>) -> Result<(), Error> {
    let gaps = stream.lost_ranges.iter().map(|&(first, missing)| {
        // A writer begins with counter 0.
        let is_at_head = first == 0 && stream.lost_at_head > 0;
        ((!is_at_head).then(|| first.wrapping_sub(1)), missing)
    });
    let unlisted = (stream.lost_unlisted > 0).then_some((None, stream.lost_unlisted));
    for (after, missing) in gaps.chain(unlisted) {
        rows.int64(i64::from(stream.stream));
        rows.int64(after.map(i64::from));
        rows.count(missing);
        rows.end()?;
    }
    Ok(())
}

/// Intact events of a stream.
#[derive(Default)]
struct Times {
    packets: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Times {
    fn add(&mut self, event: &Event<'_>) {
        let (start, end) = (event.header.start_ns, event.header.end_ns);
        self.first_ns = if self.packets == 0 { start.min(end) } else { self.first_ns.min(start).min(end) };
        self.last_ns = self.last_ns.max(start).max(end);
        self.packets += 1;
    }
}

struct Seen<'s> {
    counting: Counting<'s>,
    /// The streams that are counted.
    known: Map<u32, Times>,
    others: Times,
}

impl Visitor for Seen<'_> {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.counting.packet(place, bytes, packet)?;
        if let Record::Event(event) = packet {
            let stream = event.header.stream;
            let is_known = self.counting.books.accounts.knows(stream);
            let times = if is_known { self.known.entry(stream).or_default() } else { &mut self.others };
            times.add(event);
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.counting.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.counting.damage(damage)
    }
}
