//! Emits the samples of a recording as spans for any engine or output.
//!
//! A text is in order of time. Records of `perf.data` are sorted first, with the mappings by which their addresses are
//! understood, in a temporary file where they are many.

use anytrace_core::hash::Map;
use anytrace_core::runs::Sorter;
use anytrace_core::span::{NameId, SpanOptions, Track};
use anytrace_core::text::push_hex;
use anytrace_core::{Error, Sink, SpanSink, Summary};

use super::chosen::Chosen;
use super::emit::{At, Axis, Emitter, FRAMES_MAX};
use super::item::{Act, Item, MARKS, decode, encode};
use super::space::{KERNEL, Space};
use crate::model::session::{Go, Session, What, about, walk};
use crate::rules;
use crate::verbs::check::{Faults, say_limits};
use crate::wire::bytes::Words;
use crate::wire::reader::Reader;
use crate::wire::record::{Form, Record};

/// Most places whose names are stored; others are looked up again.
const PLACES_MAX: usize = 1 << 20;

/// Marks: what follows is of the kernel, or of the program.
const MARK_KERNEL: u64 = 128_u64.wrapping_neg();
const MARK_USER: u64 = 512_u64.wrapping_neg();

/// Emits a recording.
pub(crate) fn emit(
    reader: Reader,
    distinct_max: usize,
    event: Option<usize>,
    options: &SpanOptions,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let chosen = Chosen::new(event);
    match reader.layout().form {
        Form::Text => super::text::emit(reader, distinct_max, chosen, out, sink),
        Form::Data(_) => data(reader, distinct_max, chosen, options, out, sink),
    }
}

fn data(
    mut reader: Reader,
    distinct_max: usize,
    mut chosen: Chosen,
    options: &SpanOptions,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut sorter = Sorter::default();
    let mut session = Session::new(distinct_max);
    let mut faults = Faults::default();
    let (mut room, mut last, mut origin) = (Vec::new(), 0, None::<u64>);
    let passed = walk(&mut reader, &mut session, sink, |_, place, record, entered, sink| {
        let Record::Event(event) = record else { return Ok(Go::On) };
        if let Some(diagnostic) = faults.of(place, record, entered) {
            sink.report(diagnostic)?;
        }
        if let What::Lost(count) = entered.what {
            sink.report(about(&rules::LOST, place, record, 0).found(count.to_string()))?;
        }
        last = entered.time_ns.unwrap_or(last);
        if entered.is_sample() {
            if !chosen.takes(entered.event, place) {
                return Ok(Go::On);
            }
            origin = Some(origin.map_or(last, |origin| origin.min(last)));
        }
        room.clear();
        if encode(&mut room, event.misc, entered) {
            sorter.push(Item { time_ns: last, seq: place.seq, bytes: 0 }, &room)?;
        }
        Ok(Go::On)
    })?;
    let axis = Axis::of(session.event_name(chosen.event), out);
    let emitter = Emitter::new(out, axis, origin.unwrap_or(0), distinct_max)?;
    let event = session.event_name(chosen.event).to_owned();
    let mut replay = Replay {
        emitter,
        space: Space::new(distinct_max),
        session: &session,
        options,
        event,
        places: Map::default(),
        names: Vec::new(),
        text: Vec::new(),
    };
    sorter.each(&mut |item, bytes| replay.act(item, bytes))?;
    let is_full = replay.emitter.is_full() || replay.space.is_full() || session.is_full();
    replay.emitter.finish(passed.records)?;
    say_limits(is_full, sink)?;
    chosen.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// Follows the records in order of time.
struct Replay<'a> {
    emitter: Emitter<'a>,
    space: Space,
    session: &'a Session,
    options: &'a SpanOptions,
    event: String,
    /// Names of places: file and offset.
    places: Map<(u32, u64), NameId>,
    names: Vec<NameId>,
    text: Vec<u8>,
}

impl Replay<'_> {
    fn act(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        match decode(bytes) {
            Some(Act::Map(mapping)) => {
                let known = self.session.build_ids.get(mapping.path).map_or(&[][..], Vec::as_slice);
                let build_id = if mapping.build_id.is_empty() { known } else { mapping.build_id };
                self.space.map(&mapping, build_id);
            }
            Some(Act::Comm { process, thread, is_exec, name }) => self.space.rename(process, thread, name, is_exec),
            Some(Act::Fork { process, parent }) => self.space.fork(process, parent),
            Some(Act::Exit { process, thread }) => self.space.exit(process, thread),
            Some(Act::Sample { process, thread, cpu, weight, is_kernel, chain }) => {
                let at = At { seq: item.seq, time_ns: item.time_ns, cpu, weight };
                return self.sample(at, (process, thread), is_kernel, chain);
            }
            None => {}
        }
        Ok(())
    }

    fn sample(
        &mut self,
        at: At,
        (process, thread): (u32, u32),
        is_kernel: bool,
        chain: Words<'_>,
    ) -> Result<(), Error> {
        let mut is_kernel = is_kernel;
        let mut names = std::mem::take(&mut self.names);
        names.clear();
        for address in chain.iter() {
            match address {
                MARK_KERNEL => is_kernel = true,
                MARK_USER => is_kernel = false,
                MARKS.. => {}
                _ if names.len() < FRAMES_MAX => {
                    names.push(self.place(if is_kernel { KERNEL } else { process }, address)?);
                }
                _ => self.emitter.is_full = true,
            }
        }
        if names.is_empty() {
            names.push(self.emitter.name(self.event.as_bytes())?);
        }
        names.reverse();
        let space = &self.space;
        let track = self.emitter.track((process.into(), thread.into()), || Track {
            process: process.into(),
            thread: thread.into(),
            lane: 0,
            name: space.name(thread),
            process_name: space.name(process),
            is_task: false,
        })?;
        let emitted = self.emitter.sample(at, track, &names);
        self.names = names;
        emitted
    }

    /// The name of an address: of the function where a file with symbols was given, else file and offset.
    fn place(&mut self, process: u32, address: u64) -> Result<NameId, Error> {
        let Some((number, offset)) = self.space.find(process, address) else {
            return self.emitter.name(if process == KERNEL { b"[kernel]" } else { b"[unknown]" });
        };
        if let Some(known) = self.places.get(&(number, offset)) {
            return Ok(*known);
        }
        self.text.clear();
        if let Some(file) = self.space.files.get(number as usize) {
            let symbols = self.options.symbols.as_deref();
            if let Some(name) = symbols.and_then(|symbols| symbols.function(&file.path, &file.build_id, offset)) {
                self.text.extend_from_slice(name.as_bytes());
            } else {
                let base = file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                self.text.extend_from_slice(base.strip_suffix(b"_text").unwrap_or(base));
                self.text.push(b'+');
                push_hex(&mut self.text, offset);
            }
        }
        let text = std::mem::take(&mut self.text);
        let name = self.emitter.name(&text)?;
        self.text = text;
        if self.places.len() < PLACES_MAX {
            self.places.insert((number, offset), name);
        }
        Ok(name)
    }
}
