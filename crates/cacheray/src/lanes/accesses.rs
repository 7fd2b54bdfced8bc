//! The trace as lane 2: accesses and regions, for the engines of `anytrace-analysis`.

use std::collections::HashMap;

use anytrace_core::access::gather::Candidate;
use anytrace_core::access::{
    Access, AccessFlags, AccessKind, AccessSink, BATCH_ACCESSES, RegionAdded, RegionRemoved, Sieve, ThreadNumber,
    TypeNumber, USUAL_LINE_SHIFT,
};
use anytrace_core::{Error, Limits, Place, Room, Sink, Summary};

use crate::rules;
use crate::wire::parse::{NOT_ACCESS, access, with_layout};
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Body, Layout, Record, Tag};

/// Emits a trace to `out`; damage goes to `sink`.
pub(crate) fn emit(
    reader: Reader,
    limits: Limits,
    out: &mut dyn AccessSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut emitter = Emitter {
        layout: *reader.layout(),
        batch: vec![of_record(0, 0, 0, 0, 0); BATCH_ACCESSES].into_boxed_slice(),
        filled: 0,
        threads: HashMap::new(),
        types: HashMap::new(),
        room: Room::default(),
        distinct_max: limits.distinct_max,
        others: Others::default(),
        latest: None,
        out,
    };
    let passed = reader.walk(&mut emitter, sink)?;
    emitter.flush()?;
    if let Some(at) = emitter.others.first {
        let report = rules::STATE_LIMIT.at(at.offset).record(at.seq).field("name");
        sink.report(report.found("a type for which there is no room").help("it and those after it have no name"))?;
    }
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// The numbers that all keys beyond the limit share, once they are announced.
#[derive(Default)]
struct Others {
    thread: Option<ThreadNumber>,
    type_name: Option<TypeNumber>,
    /// Where a type is added that is the first of them.
    first: Option<Place>,
}

struct Emitter<'a> {
    layout: Layout,
    out: &'a mut dyn AccessSink,
    /// The batch: as many accesses of it as are filled.
    batch: Box<[Access]>,
    filled: usize,
    threads: HashMap<u64, ThreadNumber>,
    types: HashMap<Box<[u8]>, TypeNumber>,
    /// For their names.
    room: Room,
    distinct_max: usize,
    others: Others,
    /// Thread of the latest record and its number: most records are of the thread of the record before.
    latest: Option<(u64, ThreadNumber)>,
}

impl Visit for Emitter<'_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        match self.out.sieve(at.seq) {
            None => with_layout!(self.layout, take_run, self, window, at),
            Some(sieve) => with_layout!(self.layout, sift_run, self, window, at, sieve),
        }
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let thread = self.thread(record.thread)?;
        self.flush()?;
        let (seq, address) = (at.seq, record.address);
        let Body::Add { elemsize, elemcount, name } = record.body else {
            return self.out.region_removed(&RegionRemoved { seq, address, thread });
        };
        let type_number = self.type_number(name, at)?;
        let (element_bytes, elements) = (u64::from(elemsize), u64::from(elemcount));
        self.out.region_added(&RegionAdded { seq, address, element_bytes, elements, type_number, thread })
    }
}

impl Emitter<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        if let Some(batch) = self.batch.get(..self.filled).filter(|batch| !batch.is_empty()) {
            self.out.accesses(batch)?;
            self.filled = 0;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.filled >= self.batch.len()
    }

    /// Gathers the accesses that records start with, if the sink wants that, as long as they are of the latest thread
    /// and of one line each; returns their number, or `None` where they must be emitted.
    #[inline(always)]
    fn gather<const STRIDE: usize, const BIG: bool>(
        &mut self,
        records: &[[u8; STRIDE]],
    ) -> Result<Option<usize>, Error> {
        let Some((latest, number)) = self.latest else { return Ok(None) };
        // Asked twice: between the two, accesses that wait must be emitted, which the borrow of the gatherer would
        // forbid.
        if self.out.gatherer(number).is_none() {
            return Ok(None);
        }
        self.flush()?;
        let Some(gatherer) = self.out.gatherer(number) else { return Ok(None) };
        let taken = gatherer.gather(records, |record| {
            let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
            // Zero only for an access of the latest thread: one test for both conditions.
            let foreign = u64::from(tag & NOT_ACCESS) | (thread ^ latest);
            Candidate { address, bytes: u16::from(size), is_write: tag & 1 != 0, foreign }
        });
        if taken > 0 {
            self.out.gathered(number)?;
        }
        Ok(Some(taken))
    }

    /// Copies the accesses that records start with to the batch, as long as they are of the latest thread; returns
    /// their number.
    #[inline(always)]
    fn extend_batch<const STRIDE: usize, const BIG: bool>(&mut self, records: &[[u8; STRIDE]], seq: u64) -> usize {
        let Some((latest, number)) = self.latest else { return 0 };
        let room = self.batch.get_mut(self.filled..).unwrap_or_default();
        let mut taken = 0;
        for ((place, record), seq) in room.iter_mut().zip(records).zip(seq..) {
            let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
            // Not `||`: one branch instead of two.
            if (tag & NOT_ACCESS != 0) | (thread != latest) {
                break;
            }
            *place = of_record(tag, address, size, number, seq);
            taken += 1;
        }
        self.filled += taken;
        taken
    }

    #[inline(always)]
    fn push(&mut self, tag: u8, address: u64, size: u8, thread: u64, seq: u64) -> Result<(), Error> {
        let thread = self.thread(thread)?;
        if let Some(place) = self.batch.get_mut(self.filled) {
            *place = of_record(tag, address, size, thread, seq);
            self.filled += 1;
        }
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    /// Reports how many accesses of the latest thread were sieved out.
    fn report_sieved_out(&mut self, accesses: usize) -> Result<(), Error> {
        match self.latest {
            Some((_, thread)) if accesses > 0 => self.out.sieved_out(accesses as u64, thread),
            _ => Ok(()),
        }
    }

    /// The number of a thread; announced when it is new.
    #[inline]
    fn thread(&mut self, id: u64) -> Result<ThreadNumber, Error> {
        match self.latest {
            Some((latest, number)) if latest == id => Ok(number),
            _ => self.other_thread(id),
        }
    }

    #[cold]
    fn other_thread(&mut self, id: u64) -> Result<ThreadNumber, Error> {
        let known = self.threads.get(&id).copied();
        let number = match known.or(self.others.thread) {
            Some(number) => number,
            None => {
                let number = ThreadNumber::try_from(self.threads.len()).expect("the limit fits 32 bits");
                let has_room = self.threads.len() < self.distinct_max;
                self.flush()?;
                self.out.thread(number, has_room.then_some(id))?;
                if has_room {
                    self.threads.insert(id, number);
                } else {
                    self.others.thread = Some(number);
                }
                number
            }
        };
        self.latest = Some((id, number));
        Ok(number)
    }

    /// The number of a type; announced when it is new.
    fn type_number(&mut self, name: &[u8], at: Place) -> Result<TypeNumber, Error> {
        if let Some(number) = self.types.get(name).copied().or(self.others.type_name) {
            return Ok(number);
        }
        let number = TypeNumber::try_from(self.types.len()).expect("the limit fits 32 bits");
        // Beyond the limit all new names share one number, which is announced once.
        let has_room = self.types.len() < self.distinct_max && self.room.takes(name.len());
        self.out.type_name(number, has_room.then_some(name))?;
        if has_room {
            self.types.insert(name.into(), number);
        } else {
            (self.others.type_name, self.others.first) = (Some(number), Some(at));
        }
        Ok(number)
    }
}

/// How many records [`sift_run`] tests at once.
const SIFTED_AT_ONCE: usize = 16;

/// Which records of a block must be emitted, one bit each. No branch per record: at the usual rates there are few.
#[inline(always)]
fn selected_of<const STRIDE: usize, const BIG: bool>(block: &[[u8; STRIDE]], latest: u64, sieve: Sieve) -> u32 {
    block.iter().enumerate().fold(0, |selected, (place, record)| {
        let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
        let is_sieved_out = (tag & NOT_ACCESS == 0) & (thread == latest) & !sieve.passes(address, u16::from(size));
        selected | u32::from(!is_sieved_out) << place
    })
}

/// As [`selected_of`], for a complete block, with a shift that the compiler knows: an unknown one takes longer than the
/// hash. Nearly always all records are accesses of one thread to one line each: the differences are combined and tested
/// once.
#[inline(always)]
fn selected_of_block<const STRIDE: usize, const BIG: bool, const SHIFT: u32>(
    block: &[[u8; STRIDE]; SIFTED_AT_ONCE],
    latest: u64,
    sieve: Sieve,
) -> u32 {
    let offsets = (1_u64 << SHIFT) - 1;
    let (mut selected, mut tags, mut others, mut lasts) = (0_u32, 0, 0, 0);
    // The last record first: each moves the bits before it up.
    for record in block.iter().rev() {
        let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
        tags |= tag;
        others |= thread ^ latest;
        // One less than no bytes is far beyond any line.
        lasts |= (address & offsets) + u64::from(u32::from(size).wrapping_sub(1));
        selected = (selected << 1) | u32::from(Sieve::hash(address >> SHIFT) < sieve.below);
    }
    let others = u64::from(tags & NOT_ACCESS) | others | (lasts & !offsets);
    if others == 0 { selected } else { selected_of::<STRIDE, BIG>(block, latest, sieve) }
}

/// Takes the accesses a window starts with and leaves out those that the sieve does not pass; returns their bytes.
fn sift_run<const STRIDE: usize, const BIG: bool>(
    emitter: &mut Emitter<'_>,
    window: &[u8],
    at: Place,
    sieve: Sieve,
) -> Result<usize, Error> {
    let (records, _) = window.as_chunks::<STRIDE>();
    let mut sieved_out = 0;
    for (block, first) in records.chunks(SIFTED_AT_ONCE).zip((0..).step_by(SIFTED_AT_ONCE)) {
        let mut selected = match (emitter.latest, <&[_; SIFTED_AT_ONCE]>::try_from(block)) {
            (None, _) => (1_u32 << block.len()) - 1,
            (Some((latest, _)), Ok(block)) if sieve.line_shift == USUAL_LINE_SHIFT => {
                selected_of_block::<STRIDE, BIG, USUAL_LINE_SHIFT>(block, latest, sieve)
            }
            (Some((latest, _)), Ok(block)) => selected_of::<STRIDE, BIG>(block, latest, sieve),
            (Some((latest, _)), Err(_)) => selected_of::<STRIDE, BIG>(block, latest, sieve),
        };
        let mut next = 0;
        while selected != 0 {
            let place = selected.trailing_zeros() as usize;
            selected &= selected - 1;
            sieved_out += place - next;
            next = place + 1;
            let Some(record) = block.get(place) else { break };
            let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
            if tag & NOT_ACCESS != 0 {
                emitter.report_sieved_out(sieved_out)?;
                return Ok((first + place) * STRIDE);
            }
            // What was left out so far belongs to the thread before.
            if emitter.latest.is_none_or(|(latest, _)| latest != thread) {
                emitter.report_sieved_out(std::mem::take(&mut sieved_out))?;
            }
            emitter.push(tag, address, size, thread, at.seq + (first + place) as u64)?;
        }
        // After the last record that was emitted, the rest of the block was left out, too.
        sieved_out += block.len() - next;
    }
    emitter.report_sieved_out(sieved_out)?;
    Ok(records.len() * STRIDE)
}

/// Takes the accesses a window starts with; returns their bytes.
fn take_run<const STRIDE: usize, const BIG: bool>(
    emitter: &mut Emitter<'_>,
    window: &[u8],
    at: Place,
) -> Result<usize, Error> {
    let (records, _) = window.as_chunks::<STRIDE>();
    let mut taken = 0;
    while taken < records.len() {
        let rest = records.get(taken..).unwrap_or_default();
        match emitter.gather::<STRIDE, BIG>(rest)? {
            Some(gathered) => taken += gathered,
            None => {
                // Up to a full batch, another thread or something else: a short loop.
                taken += emitter.extend_batch::<STRIDE, BIG>(rest, at.seq + taken as u64);
                if emitter.is_full() {
                    emitter.flush()?;
                    continue;
                }
            }
        }
        let Some(record) = records.get(taken) else { break };
        let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
        if tag & NOT_ACCESS != 0 {
            break;
        }
        emitter.push(tag, address, size, thread, at.seq + taken as u64)?;
        taken += 1;
    }
    Ok(taken * STRIDE)
}

/// The access a record is.
#[inline(always)]
fn of_record(tag: u8, address: u64, size: u8, thread: ThreadNumber, seq: u64) -> Access {
    let kind = if tag & 1 == 0 { AccessKind::Read } else { AccessKind::Write };
    // The two bits are in the same order as those of the flags.
    let flags = AccessFlags((tag & Tag::FLAGS) >> 6);
    Access { address, seq, thread, bytes: u16::from(size), kind, flags }
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::Gatherer;
    use anytrace_core::{Collect, Input, OpenOptions};

    use super::*;
    use crate::wire::record::Kind;
    use crate::wire::writer::Writer;

    /// Writes down what it receives.
    #[derive(Default)]
    struct Transcript {
        lines: Vec<String>,
        /// The gatherer, as long as there is one thread.
        gatherer: Option<Gatherer>,
    }

    impl Transcript {
        fn push(&mut self, line: String) {
            self.lines.push(line);
        }
    }

    impl AccessSink for Transcript {
        fn gatherer(&mut self, thread: ThreadNumber) -> Option<&mut Gatherer> {
            self.gatherer.as_mut().filter(|_| thread == 0)
        }

        fn gathered(&mut self, thread: ThreadNumber) -> Result<(), Error> {
            let found = self.gatherer.as_ref().map(|gatherer| gatherer.gathered(0)).expect("it was asked for");
            let line = format!("{} + {} gathered by {thread}: {:?}", found.reads, found.writes, found.ops);
            self.push(line);
            Ok(())
        }

        fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
            self.push(format!("thread {number} = {id:?}"));
            Ok(())
        }

        fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
            self.push(format!("type {number} = {:?}", name.map(String::from_utf8_lossy)));
            Ok(())
        }

        fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
            let RegionAdded { seq, address, element_bytes, elements, type_number, thread } = region;
            self.push(format!("{seq} add {address} {element_bytes}x{elements} type {type_number} by {thread}"));
            Ok(())
        }

        fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
            self.push(format!("{} remove {} by {}", region.seq, region.address, region.thread));
            Ok(())
        }

        fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
            assert!(!batch.is_empty() && batch.len() <= BATCH_ACCESSES);
            self.lines.extend(batch.iter().map(|a| {
                format!("{} {} {}+{} {} by {}", a.seq, a.kind.name(), a.address, a.bytes, a.flags.0, a.thread)
            }));
            Ok(())
        }
    }

    fn transcript_of(records: &[Record<'_>], limits: Limits) -> Vec<String> {
        transcript_into(Transcript::default(), records, limits)
    }

    fn transcript_into(mut out: Transcript, records: &[Record<'_>], limits: Limits) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        records.iter().for_each(|record| writer.write(record).expect("it fits"));
        writer.finish().expect("memory takes it");
        let reader = Reader::new(Input::from_bytes("a.trace", bytes), &OpenOptions::default()).expect("it opens");
        let mut sink = Collect::default();
        emit(reader, limits, &mut out, &mut sink).expect("it is read");
        out.lines.extend(sink.0.iter().map(|report| format!("{} at record {:?}", report.code(), report.record)));
        out.lines
    }

    fn touch(kind: Kind, address: u64, thread: u64) -> Record<'static> {
        Record { tag: Tag::new(kind, false, kind == Kind::Write), address, thread, body: Body::Access { size: 8 } }
    }

    fn add(address: u64, thread: u64, name: &[u8]) -> Record<'_> {
        let body = Body::Add { elemsize: 16, elemcount: 2, name };
        Record { tag: Tag::new(Kind::RttaAdd, false, false), address, thread, body }
    }

    #[test]
    fn accesses_and_regions_are_emitted_in_the_order_of_records() {
        let remove = Record { tag: Tag(3), address: 4096, thread: 7, body: Body::Remove };
        let records = [
            touch(Kind::Read, 4104, 7),
            add(4096, 7, b"struct.A"),
            touch(Kind::Write, 4104, 9),
            add(8192, 7, b"struct.A"),
            remove,
        ];
        assert_eq!(
            transcript_of(&records, Limits::default()),
            [
                "thread 0 = Some(7)",
                "0 read 4104+8 0 by 0",
                "type 0 = Some(\"struct.A\")",
                "1 add 4096 16x2 type 0 by 0",
                "thread 1 = Some(9)",
                "2 write 4104+8 2 by 1",
                "3 add 8192 16x2 type 0 by 0",
                "4 remove 4096 by 0",
            ]
        );
    }

    #[test]
    fn ordinary_accesses_are_gathered_and_the_order_of_records_stays() {
        let odd = Record { tag: Tag(0), address: 63, thread: 7, body: Body::Access { size: 2 } };
        let remove = Record { tag: Tag(3), address: 4096, thread: 7, body: Body::Remove };
        let records = [
            touch(Kind::Read, 64, 7),
            touch(Kind::Write, 128, 7),
            touch(Kind::Read, 136, 7),
            odd,
            touch(Kind::Read, 192, 7),
            add(4096, 7, b"A"),
            remove,
            touch(Kind::Write, 256, 7),
            touch(Kind::Write, 64, 9),
            touch(Kind::Read, 320, 7),
        ];
        let out = Transcript { gatherer: Some(Gatherer::new(6, 8, 1)), ..Transcript::default() };
        assert_eq!(
            transcript_into(out, &records, Limits::default()),
            [
                "thread 0 = Some(7)",
                // The first access of a thread is emitted, because nothing is known of the thread before.
                "0 read 64+8 0 by 0",
                "1 + 1 gathered by 0: [131]",
                "3 read 63+2 0 by 0",
                "1 + 0 gathered by 0: [192]",
                "type 0 = Some(\"A\")",
                "5 add 4096 16x2 type 0 by 0",
                "6 remove 4096 by 0",
                "0 + 1 gathered by 0: [259]",
                "thread 1 = Some(9)",
                "8 write 64+8 2 by 1",
                // And again after another thread.
                "9 read 320+8 0 by 0",
            ]
        );
    }

    #[test]
    fn names_of_types_are_bounded_in_bytes() {
        let names: Vec<_> = (0..8000).map(|n| format!("{n:08}{}", "x".repeat(4000))).collect();
        let records: Vec<_> = (0..).zip(&names).map(|(n, name)| add(4096 * (n + 1), 0, name.as_bytes())).collect();
        let transcript = transcript_of(&records, Limits::default());
        let long = transcript.iter().filter(|line| line.len() > 1000).count();
        assert!((5000..6300).contains(&long), "{long}");
        let others: Vec<_> = transcript.iter().filter(|line| line.contains("None")).collect();
        assert_eq!(others, [&format!("type {long} = None")]);
        let regions = transcript.iter().filter(|line| line.contains(&format!("type {long} by 0"))).count();
        assert_eq!(regions, 8000 - long, "all regions are there");
        assert_eq!(transcript.last(), Some(&format!("cacheray/state-limit at record Some({long})")));
    }

    #[test]
    fn threads_and_types_beyond_the_limit_share_a_number() {
        let limits = Limits::default().with_distinct_max(2);
        let mut records: Vec<_> = (0..4).map(|thread| touch(Kind::Read, 4104, thread)).collect();
        records.extend([add(4096, 0, b"A"), add(4096, 0, b"B"), add(4096, 0, b"C"), add(4096, 0, b"D")]);
        let transcript = transcript_of(&records, limits);
        let others: Vec<_> = transcript.iter().filter(|line| line.contains("None")).collect();
        assert_eq!(others, ["thread 2 = None", "type 2 = None"]);
        assert!(
            transcript.contains(&"3 read 4104+8 0 by 2".to_owned())
                && transcript.iter().any(|l| l.contains("type 2 by 0"))
        );
    }
}
