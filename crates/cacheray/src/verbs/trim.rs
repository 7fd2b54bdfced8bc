//! `trim`: a part that is a valid trace by itself.

use anytrace_core::{Error, Limits, Outcome, Place, Selection, Sink};

use crate::options::OPTIONS;
use crate::verbs::losses::Losses;
use crate::verbs::output::Output;
use crate::verbs::regions::{Region, Regions, regions_max};
use crate::wire::parse::parse_record;
use crate::wire::reader::{Reader, Visit, after, run_of};
use crate::wire::record::{Body, Layout, Record};

/// Most bytes of add records kept for the beginning of the part.
const CARRIED_BYTES_MAX: usize = 16 << 20;

/// Writes the records that a selection includes, after the regions that are live where it starts.
pub(crate) fn trim(
    reader: Reader,
    selection: &Selection,
    limits: Limits,
    output: Output<'_>,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    selection.only(crate::NAME, &["records", "thread", "name"], OPTIONS)?;
    let mut losses = Losses::new(sink);
    let mut trim = Trim {
        output,
        layout: *reader.layout(),
        selection,
        regions: Regions::new(regions_max(limits)),
        carried_bytes: 0,
        has_started: false,
        is_done: selection.records.as_ref().is_some_and(|range| range.is_empty()),
        carried: 0,
        missed: 0,
    };
    let passed = reader.walk(&mut trim, &mut losses)?;
    let mut notes = losses.notes();
    if trim.carried > 0 {
        notes.push(format!(
            "repeated {} RTTA adds at the start, for regions that are live where the part starts",
            trim.carried
        ));
    }
    if trim.missed > 0 {
        notes.push(format!("{} regions were not tracked: too many live at once", trim.missed));
    }
    Ok(Outcome {
        records_read: passed.records,
        records_written: trim.output.finish()?,
        bytes_lost: passed.bytes_lost,
        notes,
    })
}

struct Trim<'o, 's> {
    output: Output<'o>,
    layout: Layout,
    selection: &'s Selection,
    regions: Regions<Carried>,
    carried_bytes: usize,
    /// True once the first record of the range was reached.
    has_started: bool,
    is_done: bool,
    carried: u64,
    missed: u64,
}

/// The carried part of a live region.
struct Carried {
    /// Its add record, as long as the part has not started.
    raw: Vec<u8>,
    /// True when its type is selected.
    is_wanted: bool,
}

impl Trim<'_, '_> {
    /// Takes the number of the next record; true when it is in the part.
    fn begin(&mut self, seq: u64) -> Result<bool, Error> {
        let Some(range) = &self.selection.records else {
            self.has_started = true;
            return Ok(true);
        };
        self.is_done |= seq >= range.end;
        if self.is_done || seq < range.start {
            return Ok(false);
        }
        if !self.has_started {
            self.has_started = true;
            self.carry()?;
        }
        Ok(true)
    }

    /// Writes the adds of the live regions, in their order.
    fn carry(&mut self) -> Result<(), Error> {
        let mut live: Vec<_> = self.regions.iter().filter(|region| region.data.is_wanted).collect();
        live.sort_by_key(|region| region.seq);
        for region in live {
            if let Ok((record, _)) = parse_record(&region.data.raw, self.layout) {
                self.output.record(&record, Place { seq: region.seq, offset: 0 })?;
                self.carried += 1;
            }
        }
        Ok(())
    }

    fn wants_name(&self, name: &[u8]) -> bool {
        self.selection.name.as_ref().is_none_or(|matches| matches(name))
    }

    fn wants(&self, record: &Record<'_>) -> bool {
        self.selection.has_thread(record.thread)
            && (self.selection.name.is_none()
                || self.regions.find(record.address).is_some_and(|region| region.data.is_wanted))
    }

    fn accesses(&mut self, run: &[u8], at: Place) -> Result<(), Error> {
        let stride = self.layout.access_bytes();
        let count = (run.len() / stride) as u64;
        let (from, to) = match &self.selection.records {
            None => (0, count),
            Some(range) => {
                self.is_done |= at.seq >= range.end;
                (range.start.saturating_sub(at.seq).min(count), range.end.saturating_sub(at.seq).min(count))
            }
        };
        // Both are at most the number of records of the run.
        let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
        let Some(part) = run.get(from * stride..to * stride).filter(|part| !part.is_empty()) else { return Ok(()) };
        let at = after(at, from, stride);
        self.begin(at.seq)?;
        if self.selection.threads.is_empty() && self.selection.name.is_none() {
            return self.output.accesses(part, at);
        }
        for (n, bytes) in part.chunks_exact(stride).enumerate() {
            if parse_record(bytes, self.layout).is_ok_and(|(record, _)| self.wants(&record)) {
                self.output.accesses(bytes, after(at, n, stride))?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, record: &Record<'_>, raw: &[u8], seq: u64) -> bool {
        let Body::Add { elemsize, elemcount, name } = record.body else {
            let removed = self.regions.remove(record.address);
            if let Some(region) = &removed {
                self.carried_bytes -= region.data.raw.len();
            }
            return self.selection.name.is_none() || removed.is_some_and(|region| region.data.is_wanted);
        };
        let is_wanted = self.wants_name(name);
        let raw = if self.has_started || !is_wanted { Vec::new() } else { raw.to_vec() };
        let bytes = u64::from(elemsize) * u64::from(elemcount);
        let carried_bytes = self.carried_bytes + raw.len();
        let has_room = carried_bytes <= CARRIED_BYTES_MAX;
        let region = Region { start: record.address, bytes, seq, data: Carried { raw, is_wanted } };
        if has_room && self.regions.add(region) {
            self.carried_bytes = carried_bytes;
        } else {
            self.missed += 1;
        }
        is_wanted
    }
}

impl Visit for Trim<'_, '_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        self.accesses(run, at)?;
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let is_inside = self.begin(at.seq)?;
        if self.is_done {
            return Ok(());
        }
        let is_wanted = self.follow(record, raw, at.seq);
        if is_inside && is_wanted { self.output.record(record, at) } else { Ok(()) }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
