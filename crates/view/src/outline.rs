//! The pyramid of a trace in its index: what is drawn before the trace is read.
//!
//! ```text
//! outline  = version, unit, origin, first and last time, slices, instants, number of names, name*, tracks, track*
//! unit     = 0 nanoseconds | 1 ticks, how many a second (0: unknown) | 2 numbers of records
//! name     = text
//! track    = process, thread, lane, 0 | 1 name, 0 | 1 process name, slices, last time, depths, (slices, instants)*
//! ```
//!
//! Numbers have seven bits a byte; [`crate::pyramid`] has the bytes of a row. The index has the checksum.

use std::sync::atomic::AtomicBool;

use anytrace_core::span::{SpanSource, TimeUnit, Track};
use anytrace_core::{Error, Format, Input, OpenOptions, Sink};

use crate::gather::gather;
use crate::names::Names;
use crate::pyramid::{Bytes, Outline, Row};
use crate::shelf::Shelf;
use crate::store::{Depth, Lane, Store};

/// Version of the bytes.
const VERSION: u64 = 1;

/// Reads a trace and returns the pyramid that its index can have ([`anytrace_core::index::with_pyramid`]).
///
/// # Errors
/// As [`anytrace_core::Trace::spans`], or [`anytrace_core::tables::read`] for formats without spans.
pub fn pyramid_of(
    format: &'static dyn Format,
    input: Input,
    open: &OpenOptions,
    sink: &mut dyn Sink,
) -> Result<Vec<u8>, Error> {
    let (shelf, names, stop) = (Shelf::default(), Names::default(), AtomicBool::new(false));
    gather(format, input, open, Default::default(), (&shelf, &names, &stop), sink)?;
    let store = shelf.read();
    Ok(encode(&store, &names))
}

fn encode(store: &Store, names: &Names) -> Vec<u8> {
    let mut out = Bytes::default();
    out.number(VERSION);
    match store.unit() {
        TimeUnit::Nanoseconds => out.number(0),
        TimeUnit::Ticks { per_second } => {
            out.number(1);
            out.number(per_second.unwrap_or(0));
        }
        TimeUnit::Order => out.number(2),
    }
    out.number(store.source.map_or(0, |source| source.origin));
    let (first, last) = store.range.unwrap_or((0, 0));
    [first, last, store.slices, store.instants].into_iter().for_each(|number| out.number(number));
    let texts = names.texts_from(0);
    out.number(texts.len() as u64);
    texts.iter().for_each(|text| out.text(text));
    out.number(store.tracks.len() as u64);
    store.tracks.iter().for_each(|lane| encode_track(lane, &mut out));
    out.0
}

fn encode_track(lane: &Lane, out: &mut Bytes) {
    let track = &lane.track;
    [track.process, track.thread, u64::from(track.lane)].into_iter().for_each(|number| out.number(number));
    for name in [&track.name, &track.process_name] {
        out.number(u64::from(name.is_some()));
        name.iter().for_each(|name| out.text(name));
    }
    [lane.slices, lane.last, lane.depths.len() as u64].into_iter().for_each(|number| out.number(number));
    for depth in &lane.depths {
        depth.slices.outline(out);
        depth.instants.outline(out);
    }
}

/// The rows of an outline; `None` where the bytes are none.
pub(crate) fn decode(bytes: &[u8], format: &'static str, names: &Names) -> Option<Store> {
    let mut from = Outline(bytes);
    if from.number()? != VERSION {
        return None;
    }
    let unit = match from.number()? {
        0 => TimeUnit::Nanoseconds,
        1 => TimeUnit::Ticks { per_second: Some(from.number()?).filter(|hz| *hz > 0) },
        2 => TimeUnit::Order,
        _ => return None,
    };
    let origin = from.number()?;
    let range = (from.number()?, from.number()?);
    let (slices, instants) = (from.number()?, from.number()?);
    let texts = (0..from.count()?).map(|_| from.text()).collect::<Option<Vec<_>>>()?;
    let numbers: Vec<u32> = texts.iter().map(|text| names.number(text.as_bytes(), None)).collect();
    let source = Some(SpanSource { format, unit, origin, epoch_ns: None, uptime: None });
    let range = (slices + instants > 0 && range.0 <= range.1).then_some(range);
    let mut store = Store { source, slices, instants, range, ..Store::default() };
    for _ in 0..from.count()? {
        store.tracks.push(decode_track(&mut from, &numbers)?);
    }
    from.0.is_empty().then_some(store)
}

fn decode_track(from: &mut Outline<'_>, names: &[u32]) -> Option<Lane> {
    let (process, thread, lane) = (from.number()?, from.number()?, u32::try_from(from.number()?).ok()?);
    let mut name = || match from.number()? {
        0 => Some(None),
        _ => from.text().map(Some),
    };
    let (name, process_name) = (name()?, name()?);
    let (slices, last) = (from.number()?, from.number()?);
    let mut depths = Vec::new();
    for _ in 0..from.count()? {
        depths.push(Depth { slices: Row::of_outline(from, names)?, instants: Row::of_outline(from, names)? });
    }
    let track = Track { process, thread, lane, name, process_name, is_task: false };
    Some(Lane { track, depths, open: Vec::new(), last, slices })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(names: &Names) -> Store {
        let unit = TimeUnit::Ticks { per_second: Some(3) };
        let source = Some(SpanSource { format: "x", unit, origin: 5, epoch_ns: None, uptime: None });
        let mut store = Store { source, ..Store::default() };
        for thread in 0..3 {
            store.add_track(&Track { thread, name: (thread == 1).then(|| "one".to_owned()), ..Track::default() });
        }
        let name = names.number("näme".as_bytes(), None);
        for time in 0..500 {
            store.begin(1, time * 10, name).unwrap();
            store.instant(1, time * 10 + 1, name).unwrap();
            store.end(1, time * 10 + 5, 0).unwrap();
        }
        store
    }

    #[test]
    fn an_outline_has_tracks_names_and_counts() {
        let names = Names::default();
        let bytes = encode(&store(&names), &names);
        let others = Names::default();
        others.number(b"other", None);
        let back = decode(&bytes, "x", &others).unwrap();
        assert_eq!((back.slices, back.instants, back.range), (500, 500, Some((0, 4995))));
        assert_eq!(back.unit(), TimeUnit::Ticks { per_second: Some(3) });
        assert_eq!((back.tracks.len(), back.tracks[1].track.name.as_deref()), (3, Some("one")));
        assert_eq!((back.tracks[1].depths[0].slices.len(), back.tracks[1].depths[1].instants.len()), (500, 500));
        assert_eq!(&*others.text(1), "näme");
    }

    #[test]
    fn damaged_outlines_are_none_and_do_no_harm() {
        let names = Names::default();
        let bytes = encode(&store(&names), &names);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], "x", &Names::default()).is_none(), "{length}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            drop(decode(&changed, "x", &Names::default()));
        }
    }
}
