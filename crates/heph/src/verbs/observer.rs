//! What all packets of a trace show together: epochs, streams, lanes, times, and the rules about them.

use anytrace_core::Place;

use crate::verbs::counters::Counters;
use crate::verbs::finding::{Finding, FindingKind};
use crate::verbs::lanes::Lanes;
use crate::verbs::sessions::SeenSessions;
use crate::wire::fault::Damage;
use crate::wire::record::{Event, Metadata, Record};

/// Most distinct epochs counted.
const EPOCHS_MAX: usize = 16;

/// The state of a trace while it is read. Memory is bounded by the limit of distinct keys.
pub(crate) struct Observer {
    pub(crate) events: u64,
    pub(crate) metadata: u64,
    pub(crate) unknown_options: u64,
    pub(crate) epochs: Vec<u64>,
    pub(crate) times: Option<(u64, u64)>,
    pub(crate) counters: Counters,
    pub(crate) lanes: Lanes,
    pub(crate) first_overlap: Option<Place>,
    /// The lane of the first overlap.
    pub(crate) first_overlap_substream: u64,
    pub(crate) sessions: SeenSessions,
    pub(crate) findings: Vec<Finding>,
}

impl Observer {
    pub(crate) fn new(distinct_max: usize) -> Self {
        Self {
            events: 0,
            metadata: 0,
            unknown_options: 0,
            epochs: Vec::new(),
            times: None,
            counters: Counters::new(distinct_max),
            lanes: Lanes::new(),
            first_overlap: None,
            first_overlap_substream: 0,
            sessions: SeenSessions::default(),
            findings: Vec::new(),
        }
    }

    /// Processes a packet; findings are in [`Self::findings`] until the caller clears it. They may concern an earlier
    /// place.
    #[inline]
    pub(crate) fn packet(&mut self, place: Place, size: usize, packet: &Record<'_>) {
        self.counters.tick(place.seq, place.offset + size as u64, &mut self.findings);
        match packet {
            Record::Event(event) => self.event(place, event),
            Record::Metadata(metadata) => self.option(place, metadata),
        }
    }

    /// Processes a damaged packet: its counter was used, whatever its body contains.
    pub(crate) fn damage(&mut self, damage: &Damage) {
        let Some(header) = damage.header else { return };
        if let Some(stream) = self.counters.stream(header.stream) {
            let place = Place { offset: damage.offset, seq: damage.seq };
            self.counters.count(stream, &header, place, &mut self.findings);
        }
    }

    /// Settles everything that waits for later packets.
    pub(crate) fn finish(&mut self) {
        self.counters.settle_all(&mut self.findings);
    }

    #[inline]
    fn event(&mut self, place: Place, event: &Event<'_>) {
        let header = &event.header;
        if self.events == 0 && self.epochs.is_empty() {
            self.findings.push(Finding { place, what: FindingKind::NoEpochYet });
        }
        self.events += 1;
        let (lane, stream) = match self.lanes.find(header.stream, header.substream) {
            Some((lane, stream)) => (Some(lane), Some(stream)),
            None => self.new_lane(header.stream, header.substream),
        };
        match stream {
            Some(stream) => {
                if let Some(known) = self.counters.streams.get_mut(stream) {
                    known.events += 1;
                }
                self.counters.count(stream, header, place, &mut self.findings);
            }
            None => self.counters.other_events += 1,
        }
        let (start, end) = (header.start_ns, header.end_ns);
        if end < start {
            self.findings.push(Finding { place, what: FindingKind::EndBeforeStart { start, end } });
        } else if let Some(lane) = lane
            && self.lanes.event(lane, start, end)
            && self.first_overlap.is_none()
        {
            self.first_overlap = Some(place);
            self.first_overlap_substream = header.substream;
        }
        let (first, last) = self.times.unwrap_or((u64::MAX, 0));
        self.times = Some((first.min(start.min(end)), last.max(start.max(end))));
    }

    #[cold]
    #[inline(never)]
    fn new_lane(&mut self, stream: u32, substream: u64) -> (Option<usize>, Option<usize>) {
        let Some(index) = self.counters.stream(stream) else { return (None, None) };
        (self.lanes.add(stream, substream, index), Some(index))
    }

    #[cold]
    #[inline(never)]
    fn option(&mut self, place: Place, metadata: &Metadata<'_>) {
        self.metadata += 1;
        let Some(now) = metadata.epoch_ns() else {
            if self.sessions.option(place, metadata, &self.counters, &mut self.findings) {
                return;
            }
            self.unknown_options += 1;
            self.findings.push(Finding { place, what: FindingKind::UnknownOption });
            return;
        };
        match self.epochs.last() {
            None if self.events > 0 => self.findings.push(Finding { place, what: FindingKind::EpochAfterEvents }),
            Some(&before) if before != now => {
                self.findings.push(Finding { place, what: FindingKind::EpochSetAgain { before, now } });
            }
            _ => {}
        }
        if self.epochs.last() == Some(&now) {
            return;
        }
        if self.epochs.len() == EPOCHS_MAX {
            self.epochs.pop();
        }
        self.epochs.push(now);
    }
}
