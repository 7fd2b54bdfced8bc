//! What a reader must know to begin at a mark, as bytes that nobody needs to trust.
//!
//! ```text
//! shared = 0, content | 1, length of the content (8 bytes), the content as a zstd frame
//! content = limits (record bytes, depth, distinct keys), header (length, bytes), longest event, most bytes of open calls,
//!           definitions, enters of open calls
//! state  = the point, the frame of the last call (0, or 1 + number, first call)
//! ```
//!
//! Definitions, enters and points are as in [`super::point_bytes`].

use std::borrow::Cow;

use anytrace_core::index::{Mark, Part};
use anytrace_core::{Compression, Error, Input, Limits, OpenOptions};

use crate::wire::container::{Container, parse_header};
use crate::wire::point::{OpenEnter, Rows, SeekPoint, WAITING_MAX};
use crate::wire::point_bytes::Parser;
#[cfg(feature = "lanes")]
use crate::wire::point_bytes::Writer;
use crate::wire::reader::Reader;
use crate::wire::record::Header;
use crate::wire::scan::Scan;
use crate::wire::seek::Start;

/// What all parts of a trace need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) header: Header,
    /// Bytes of the longest event, and of all calls open at a time, as counted by readers that keep blobs.
    pub(crate) longest_event: u64,
    pub(crate) most_open: u64,
    pub(crate) definitions: [Rows; 5],
    pub(crate) enters: Vec<OpenEnter>,
}

/// The limits decide what a reader gives up, and what it reports.
fn numbers_of(limits: &Limits) -> [u64; 3] {
    [limits.record_bytes_max, u64::from(limits.depth_max), limits.distinct_max as u64]
}

impl Shared {
    #[cfg(feature = "lanes")]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        numbers_of(&self.limits).into_iter().for_each(|number| out.number(number));
        out.bytes(&self.header.raw);
        out.number(self.longest_event);
        out.number(self.most_open);
        out.definitions(&self.definitions);
        out.enters(&self.enters);
        pack(&out.0)
    }

    /// `None` for other bytes. The inner error is that the limits are not these.
    pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Option<Result<Self, Error>> {
        let content = unpack(bytes)?;
        let mut from = Parser { scan: Scan::new(&content) };
        for (name, wanted) in ["record bytes", "depth", "distinct keys"].into_iter().zip(numbers_of(limits)) {
            let found = from.number()?;
            if found != wanted {
                let text = format!("the index was made with a limit of {found} {name}, not {wanted}");
                return Some(Err(Error::usage(text)));
            }
        }
        let raw = from.scan.string().ok()?;
        let header = parse_header(raw, &limits.with_record_bytes_max(raw.len() as u64)).ok()?;
        let (longest_event, most_open) = (from.number()?, from.number()?);
        let definitions = from.definitions(header.version)?;
        let enters = from.enters()?;
        let is_all = header.raw == raw && from.scan.rest().is_empty();
        is_all.then_some(Ok(Self { limits: *limits, header, longest_event, most_open, definitions, enters }))
    }
}

/// The compression of definitions: they are names, and most of what an index of a short trace contains.
#[cfg(feature = "lanes")]
const LEVEL: i32 = 9;

/// The largest content, and how many times longer than its frame it may be: an index may be damaged or made by someone
/// else.
const CONTENT_BYTES_MAX: usize = 1 << 28;
const RATIO_MAX: usize = 256;

fn is_plausible(content_bytes: usize, frame_bytes: usize) -> bool {
    content_bytes <= CONTENT_BYTES_MAX && content_bytes / RATIO_MAX <= frame_bytes
}

#[cfg(feature = "lanes")]
fn pack(content: &[u8]) -> Vec<u8> {
    match zstd::bulk::compress(content, LEVEL) {
        Ok(frame) if frame.len() < content.len() && is_plausible(content.len(), frame.len()) => {
            [&[1], &(content.len() as u64).to_le_bytes()[..], &frame].concat()
        }
        _ => [&[0], content].concat(),
    }
}

fn unpack(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    match bytes.split_first()? {
        (0, content) => Some(Cow::Borrowed(content)),
        (1, rest) => {
            let (length, frame) = rest.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let is_allowed = is_plausible(length, frame.len());
            let content = is_allowed.then(|| zstd::bulk::decompress(frame, length).ok()).flatten()?;
            (content.len() == length).then_some(Cow::Owned(content))
        }
        _ => None,
    }
}

/// The bytes of [`Mark::state`].
#[cfg(feature = "lanes")]
pub(crate) fn encode(point: &SeekPoint) -> Box<[u8]> {
    let mut out = Writer(Vec::new());
    out.point(point, &SeekPoint::default());
    match point.last_frame {
        None => out.number(0),
        Some((frame, first_call)) => {
            out.number(frame.saturating_add(1));
            out.number(first_call);
        }
    }
    out.0.into()
}

/// The point of a mark; `None` for other bytes.
pub(crate) fn decode(mark: &Mark, definitions: &[Rows; 5]) -> Option<SeekPoint> {
    let mut from = Parser { scan: Scan::new(&mark.state) };
    let mut waiting_left = WAITING_MAX;
    let mut point = from.point(None, definitions, &mut waiting_left)?;
    point.last_frame = match from.number()? {
        0 => None,
        frame => Some((frame - 1, from.number().filter(|first| *first <= point.call)?)),
    };
    let is_here = point.raw == mark.offset && point.seq == mark.seq && point.place.raw <= point.raw;
    (is_here && from.scan.rest().is_empty()).then_some(point)
}

impl Reader {
    /// Opens a part of a trace.
    ///
    /// # Errors
    /// I/O; usage, where the part is not one of this trace, or was found with other limits.
    pub(crate) fn in_part(input: Input, own: Container, part: &Part, options: &OpenOptions) -> Result<Self, Error> {
        let shared = part.shared.as_ref().map(|shared| Shared::decode(shared, &options.limits));
        let shared = match shared {
            Some(Some(Err(error))) => return Err(error),
            Some(Some(Ok(shared))) => Some(shared),
            _ => None,
        };
        let mut reader = match &part.from {
            None => Self::at_start(input, own, options)?,
            Some(mark) => {
                let begun = match shared {
                    Some(shared) => Self::at_mark(input, own, mark, shared, options)?,
                    None => None,
                };
                let at = mark.offset;
                begun.ok_or_else(|| Error::usage(format!("reading cannot begin at byte {at:#x} of the raw stream")))?
            }
        };
        reader.until = part.until.unwrap_or(u64::MAX);
        Ok(reader)
    }

    fn at_mark(
        input: Input,
        own: Container,
        mark: &Mark,
        shared: Shared,
        options: &OpenOptions,
    ) -> Result<Option<Self>, Error> {
        let Some(point) = decode(mark, &shared.definitions) else { return Ok(None) };
        let input = match input.layers() {
            [] => input,
            // The frame is decoded on its own.
            [layer] if layer.compression == Compression::Zstd => match input.still_compressed() {
                Some(file) => file?.from_offset(point.place.file)?,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Shared { header, definitions, enters, .. } = shared;
        let start = Start {
            point: &point,
            header,
            own,
            is_seekable: false,
            definitions: &definitions,
            enters: &enters,
            reports: None,
        };
        Self::begin_at(input, options, start)
    }
}

#[cfg(all(test, feature = "lanes"))]
mod tests {
    use super::*;
    use crate::wire::point::Waiting;
    use crate::wire::stream::DecodeStart;

    fn shared() -> Shared {
        let header = parse_header(b"\x06\x06\x01a\x01b\x00", &Limits::default()).expect("a header");
        let mut definitions: [Rows; 5] = Default::default();
        definitions[0].push(3, b"\x01f\x01\x01x");
        let enters = vec![OpenEnter { call: 4, offset: 30, bytes: b"\x00\x00\x03\x00".as_slice().into() }];
        Shared { limits: Limits::default(), header, longest_event: 90, most_open: 120, definitions, enters }
    }

    fn point() -> SeekPoint {
        let waiting = vec![Waiting { number: 4, thread: 1, frame: 0, seq: 8, function: 0 }];
        let (place, rows) = (DecodeStart { file: 2, raw: 0 }, [1, 0, 0, 0, 0]);
        let (raw, seq, call, frame, thread_max) = (77, 9, 5, 0, 1);
        let last_frame = Some((0, 2));
        SeekPoint { raw, place, seq, call, frame, thread_max, rows, waiting, recent: 1, last_frame }
    }

    #[test]
    fn states_are_read_as_they_were_written_and_others_are_refused() {
        let (shared, point) = (shared(), point());
        let bytes = shared.encode();
        assert_eq!(Shared::decode(&bytes, &Limits::default()).unwrap().unwrap(), shared);
        let mark = |offset, seq, state: &[u8]| Mark { offset, seq, state: state.into() };
        let state = encode(&point);
        assert_eq!(decode(&mark(77, 9, &state), &shared.definitions), Some(point));
        assert_eq!(decode(&mark(78, 9, &state), &shared.definitions), None);
        assert_eq!(decode(&mark(77, 8, &state), &shared.definitions), None);
        assert_eq!(decode(&mark(77, 9, &state), &Default::default()), None, "a function that is not defined");
        for cut in 0..state.len() {
            assert_eq!(decode(&mark(77, 9, &state[..cut]), &shared.definitions), None, "{cut}");
        }
        for cut in 0..bytes.len() {
            assert!(Shared::decode(&bytes[..cut], &Limits::default()).is_none(), "{cut}");
        }
        assert!(Shared::decode(&[&bytes[..], &[0]].concat(), &Limits::default()).is_none());
    }

    #[test]
    fn definitions_are_compressed_and_a_frame_that_lies_about_its_length_is_refused() {
        let content = b"GL_TEXTURE_2D, GL_TEXTURE_3D, ".repeat(200);
        let packed = pack(&content);
        assert!(packed.len() < content.len() / 10, "{}", packed.len());
        assert_eq!(unpack(&packed).as_deref(), Some(&content[..]));
        for length in [0, content.len() as u64 - 1, content.len() as u64 + 1, 1 << 27, u64::MAX] {
            let mut packed = packed.clone();
            packed[1..9].copy_from_slice(&length.to_le_bytes());
            assert!(unpack(&packed).is_none(), "{length}");
        }
        assert_eq!(unpack(&pack(b"xy")).as_deref(), Some(&b"xy"[..]));
        assert!(unpack(&[2, 0]).is_none() && unpack(&[]).is_none());
    }

    #[test]
    fn other_limits_are_named() {
        let limits = Limits::default().with_distinct_max(7);
        let error = Shared::decode(&shared().encode(), &limits).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the index was made with a limit of 65536 distinct keys, not 7");
    }
}
