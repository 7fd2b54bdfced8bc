//! What `apitrace info` reports about a trace, with corrected values.

use std::io::Write;

use anytrace_core::{Error, Sink, text};

use crate::wire::container::Container;
use crate::wire::reader::Reader;
use crate::wire::record::{Event, EventKind, Header, Pairing, SignatureRef, Token};
use crate::wire::scan::{Scan, push_uint};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, Visitor};

/// Most bytes for the list of frames; one frame takes about six.
const FRAME_BYTES_MAX: usize = 48 << 20;

/// Options of [`info`].
#[derive(Debug, Clone, Copy, Default)]
pub struct InfoOptions {
    /// List each frame.
    pub has_frames: bool,
    /// Reproduce the errors of apitrace 11.1: in gzip containers only bytes of strings, blobs and floats are counted,
    /// and a trace without frames has one without anything.
    pub is_compatible: bool,
}

/// Properties of a trace.
#[derive(Debug, Clone, Default)]
pub struct TraceInfo {
    /// The semantic version, which the format's tools call the version of the container.
    pub container_version: u64,
    /// The container, as the format's tools name it.
    pub container_type: &'static str,
    /// The interface that was traced, by the functions that were called.
    pub api: Api,
    /// Frames that were ended.
    pub frames: u64,
    /// Bytes of the raw stream.
    pub raw_bytes: u64,
    /// Size of the trace's file, including any gzip or zstd layer.
    pub container_bytes: u64,
    /// Each frame, if requested.
    pub frame_list: Option<FrameList>,
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameInfo {
    /// Number of the call that was left first.
    pub first: u64,
    /// Number of the call that ended the frame.
    pub last: u64,
    /// Calls left in it.
    pub calls: u64,
    /// Bytes of the raw stream; the first frame includes the header.
    pub bytes: u64,
}

/// A compact list of frames.
#[derive(Debug, Clone, Default)]
pub struct FrameList {
    /// Four numbers for each frame; its first call is stored as the difference from the last call of the frame before.
    bytes: Vec<u8>,
    last: u64,
}

impl FrameList {
    fn push(&mut self, frame: FrameInfo) -> Result<(), Error> {
        push_uint(&mut self.bytes, frame.first.wrapping_sub(self.last).rotate_left(1));
        push_uint(&mut self.bytes, frame.last.wrapping_sub(frame.first).rotate_left(1));
        push_uint(&mut self.bytes, frame.calls);
        push_uint(&mut self.bytes, frame.bytes);
        self.last = frame.last;
        if self.bytes.len() > FRAME_BYTES_MAX {
            return Err(Error::limit(format!("the frames need more than {FRAME_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// The frames in the order they ended.
    pub fn iter(&self) -> impl Iterator<Item = FrameInfo> {
        let mut scan = Scan::new(&self.bytes);
        let mut before = 0_u64;
        std::iter::from_fn(move || {
            let first = before.wrapping_add(scan.uint().ok()?.rotate_right(1));
            let last = first.wrapping_add(scan.uint().ok()?.rotate_right(1));
            before = last;
            Some(FrameInfo { first, last, calls: scan.uint().ok()?, bytes: scan.uint().ok()? })
        })
    }
}

/// A graphics interface, determined as by the format's tools: by the first call entered whose name identifies one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Api {
    /// No name identifies one.
    #[default]
    Unknown,
    /// Desktop OpenGL.
    Gl,
    /// The APIs used with EGL.
    Egl,
    /// All Microsoft interfaces.
    DirectX,
}

impl Api {
    /// The interface that a function's name identifies. The rules were tested with apitrace 11.1.
    pub fn of(function: &[u8]) -> Self {
        let is_word =
            |stem: &[u8]| function.strip_prefix(stem).and_then(<[u8]>::first).is_some_and(u8::is_ascii_uppercase);
        let begins = |stems: [&[u8]; 3]| stems.iter().any(|stem| function.starts_with(stem));
        if function.starts_with(b"glX") || function.starts_with(b"CGL") || is_word(b"wgl") {
            Self::Gl
        } else if is_word(b"egl") {
            Self::Egl
        } else if begins([b"Direct", b"D3D", b"Create"]) {
            Self::DirectX
        } else {
            Self::Unknown
        }
    }

    /// Its name in the format's tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown API",
            Self::Gl => "OpenGL + GLX/WGL/CGL",
            Self::Egl => "OpenGL/GLES1/GLES2/VG + EGL",
            Self::DirectX => "DirectX",
        }
    }
}

/// Reads a trace and returns its properties. The length of the file is that of the trace without any gzip or zstd
/// layer; the caller corrects it.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn info(reader: &mut Reader, options: InfoOptions, sink: &mut dyn Sink) -> Result<TraceInfo, Error> {
    let is_gzip = options.is_compatible && reader.container() == Container::Gzip;
    let mut counter = Counter {
        has_frames: options.has_frames,
        partly: is_gzip.then_some(0),
        ends_frame: Vec::new(),
        api: Api::Unknown,
        frame: None,
        frames: 0,
        list: FrameList::default(),
        frame_start: 0,
        event_end: 0,
    };
    let totals = reader.read(&mut counter, sink)?;
    let mut rest: Vec<_> = reader.calls.waiting().filter(|(_, call)| !call.is_damaged).collect();
    rest.sort_unstable_by_key(|(number, _)| *number);
    for (number, call) in rest {
        counter.left(number, Some(call.function), totals.raw_bytes)?;
    }
    let container_type = match reader.container() {
        Container::Snappy => "Snappy",
        Container::Gzip => "ZLib",
        Container::Brotli => "Brotli",
        Container::Zstd | Container::ZstdSeekable => "Zstandard",
        // The format's own tool takes anything without a magic for Brotli.
        Container::Raw if options.is_compatible => "Brotli",
        Container::Raw => "None",
    };
    Ok(TraceInfo {
        container_version: reader.header().semantic_version,
        container_type,
        api: counter.api,
        frames: counter.frames,
        raw_bytes: counter.partly.unwrap_or(totals.raw_bytes),
        container_bytes: totals.trace_bytes,
        frame_list: options.has_frames.then_some(counter.list),
    })
}

impl TraceInfo {
    /// Writes the JSON of `apitrace info`: the same keys in the same order.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&self, file: &str, is_compatible: bool, out: &mut dyn Write) -> Result<(), Error> {
        let mut name = Vec::new();
        if is_compatible {
            name = [b"\"", file.as_bytes(), b"\""].concat();
        } else {
            text::push_json_str(&mut name, file);
        }
        out.write_all(b"{\n  \"FileName\": ")?;
        out.write_all(&name)?;
        write!(
            out,
            ",\n  \"ContainerVersion\": {},\n  \"ContainerType\": \"{}\",\n  \"API\": \"{}\",\n  \"FramesCount\": {},\n  \
             \"ActualDataSize\": {},\n  \"ContainerSize\": {}",
            self.container_version,
            self.container_type,
            self.api.name(),
            self.frames,
            self.raw_bytes,
            self.container_bytes
        )?;
        if let Some(list) = &self.frame_list {
            let mut is_first = true;
            for FrameInfo { first, last, calls, bytes } in list.iter() {
                out.write_all(if is_first { b",\n  \"Frames\": [{\n" } else { b", {\n" })?;
                is_first = false;
                write!(
                    out,
                    "    \"FirstCallId\": {first},\n    \"LastCallId\": {last},\n    \"TotalCalls\": {calls},\n    \
                     \"SizeInBytes\": {bytes}\n  }}"
                )?;
            }
            match (is_first, is_compatible) {
                (true, true) => out.write_all(b",\n  \"Frames\": [{\n  }]")?,
                (true, false) => out.write_all(b",\n  \"Frames\": []")?,
                _ => out.write_all(b"]")?,
            }
        }
        out.write_all(b"\n}\n")?;
        Ok(())
    }
}

/// Counts calls as they are left.
struct Counter {
    has_frames: bool,
    /// Bytes as the format's own gzip reader counts them, if requested: only those that it reads several at a time.
    partly: Option<u64>,
    /// Which functions end a frame, by slot.
    ends_frame: Vec<bool>,
    api: Api,
    /// First call and number of calls of the current frame.
    frame: Option<(u64, u64)>,
    frames: u64,
    list: FrameList,
    frame_start: u64,
    /// Where the last token ends.
    event_end: u64,
}

impl Counter {
    #[inline]
    fn left(&mut self, number: u64, slot: Option<u32>, end: u64) -> Result<(), Error> {
        let ends_frame = slot.and_then(|slot| self.ends_frame.get(slot as usize)).copied().unwrap_or_default();
        let (first, calls) = self.frame.unwrap_or((number, 0));
        self.frame = Some((first, calls + 1));
        if ends_frame { self.end_frame(first, number, calls + 1, end) } else { Ok(()) }
    }

    #[cold]
    fn end_frame(&mut self, first: u64, last: u64, calls: u64, end: u64) -> Result<(), Error> {
        let end = self.partly.unwrap_or(end);
        let bytes = end.saturating_sub(self.frame_start);
        self.frame_start = end;
        self.frames += 1;
        self.frame = None;
        if self.has_frames { self.list.push(FrameInfo { first, last, calls, bytes }) } else { Ok(()) }
    }

    fn learn(&mut self, signature: &SignatureRef<'_>, signatures: &Signatures) {
        let Some(row) = signatures.function(signature.slot) else { return };
        let at = signature.slot as usize;
        if self.ends_frame.len() <= at {
            self.ends_frame.resize(at + 1, false);
        }
        if let Some(place) = self.ends_frame.get_mut(at) {
            *place = row.ends_frame;
        }
        // Functions are defined where they are first entered.
        if self.api == Api::Unknown {
            self.api = Api::of(row.name());
        }
    }
}

/// Bytes of a token that the format's own reader reads several at a time.
fn partly(token: &Token<'_>, version: u64) -> u64 {
    let definition = |signature: &SignatureRef<'_>, kind| {
        signature.definition.map_or(0, |definition| string_bytes(definition, kind, version))
    };
    match token {
        Token::Function(signature) | Token::Struct(signature, _) => definition(signature, DefinitionKind::Names),
        Token::Enum(signature, _) => definition(signature, DefinitionKind::Enum),
        Token::Bitmask(signature, _) => definition(signature, DefinitionKind::Bitmask),
        Token::Frame(signature) => definition(signature, DefinitionKind::Frame),
        Token::Bytes(_, bytes) => bytes.len() as u64,
        Token::BytesPiece(bytes) => bytes.len() as u64,
        Token::Float(_) => 4,
        Token::Double(_) => 8,
        _ => 0,
    }
}

enum DefinitionKind {
    Names,
    Enum,
    Bitmask,
    Frame,
}

/// Bytes of the strings in a definition. It was parsed before, so none is cut.
fn string_bytes(definition: &[u8], kind: DefinitionKind, version: u64) -> u64 {
    let mut scan = Scan::new(definition);
    let mut sum = 0;
    let mut string = |scan: &mut Scan<'_>| scan.string().map(|bytes| sum += bytes.len() as u64);
    let _ended = match kind {
        DefinitionKind::Names => string(&mut scan).and_then(|()| {
            let count = scan.uint()?;
            (0..count).try_for_each(|_| string(&mut scan))
        }),
        DefinitionKind::Enum if version < crate::wire::record::VERSION_ENUM_SETS => string(&mut scan),
        DefinitionKind::Enum => scan
            .uint()
            .and_then(|count| (0..count).try_for_each(|_| string(&mut scan).and_then(|()| scan.signed().map(drop)))),
        DefinitionKind::Bitmask => scan
            .uint()
            .and_then(|count| (0..count).try_for_each(|_| string(&mut scan).and_then(|()| scan.uint().map(drop)))),
        DefinitionKind::Frame => loop {
            match scan.byte() {
                Ok(1..=3) => {
                    if let Err(stop) = string(&mut scan) {
                        break Err(stop);
                    }
                }
                Ok(4 | 5) => {
                    if let Err(stop) = scan.uint() {
                        break Err(stop);
                    }
                }
                Ok(_) => break Ok(()),
                Err(stop) => break Err(stop),
            }
        },
    };
    sum
}

impl Visitor for Counter {
    fn takes_plain(&self) -> bool {
        self.partly.is_none()
    }

    fn keeps_definitions(&self) -> bool {
        false
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        if let Some(partly) = &mut self.partly {
            *partly = header.properties.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        }
        Ok(())
    }

    #[inline]
    fn plain_event(&mut self, event: &Event, bytes: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        if event.kind == EventKind::Leave && event.pairing == Pairing::Paired {
            self.left(event.call, event.function, event.offset + bytes.len() as u64)?;
        }
        Ok(0)
    }

    #[inline]
    fn plain_call(&mut self, enter: &Event, bytes: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        let [entered, left] = bytes;
        self.left(enter.call, enter.function, enter.offset + (entered.len() + left.len()) as u64)?;
        Ok(true)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if let Token::Function(signature) = token {
            self.learn(signature, context.signatures);
        }
        if let Some(sum) = &mut self.partly {
            // Below version 3 an enumeration's definition has another form, and no version before 6 has properties.
            let version = if matches!(token, Token::Enum(_, None)) { 0 } else { crate::wire::record::VERSION_MAX };
            *sum += partly(token, version);
        }
        self.event_end = context.offset + context.bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        if event.kind == EventKind::Leave && event.pairing == Pairing::Paired {
            self.left(event.call, event.function, self.event_end)?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_recognized_by_names_as_in_apitrace() {
        for (name, api) in [
            ("glXf", Api::Gl),
            ("wglF", Api::Gl),
            ("wglf", Api::Unknown),
            ("CGL", Api::Gl),
            ("eglFoo", Api::Egl),
            ("egl_", Api::Unknown),
            ("glBegin", Api::Unknown),
            ("D3D11CreateDevice", Api::DirectX),
            ("DirectSoundCreate", Api::DirectX),
            ("CreateDXGIFactory", Api::DirectX),
            ("IDirect3DDevice9::Present", Api::Unknown),
        ] {
            assert_eq!(Api::of(name.as_bytes()), api, "{name}");
        }
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let frames = [
            FrameInfo { first: 5, last: 2, calls: 3, bytes: 1000 },
            FrameInfo { first: 0, last: u64::MAX, calls: 1, bytes: 0 },
            FrameInfo { first: 7, last: 7, calls: 1, bytes: 1 },
        ];
        let mut list = FrameList::default();
        frames.iter().try_for_each(|frame| list.push(*frame)).unwrap();
        assert!(list.iter().eq(frames));
    }
}
