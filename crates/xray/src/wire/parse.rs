//! Bytes to records: pure, no I/O, no allocation.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

use crate::wire::record::{
    BASIC_BYTES, BasicBody, BasicRecord, BitOrder, Body, CustomTime, FUNCTION_BYTES, FdrRecord, Function, FunctionKind,
    HEADER_BYTES, Header, METADATA_BYTES, Metadata, Orders, TYPE_FDR, kind,
};

/// Why a binary record could not be parsed.
pub(crate) type Need = anytrace_core::Need<BinaryFault>;

/// What is wrong with bytes that are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryFault {
    /// A function record of kind 4 to 7.
    FunctionKind(u8),
    /// A metadata record of kind 10 or above.
    MetadataKind(u8),
    /// An event whose payload is empty or of negative size.
    EventSize(i32),
    /// An event longer than the limit on records.
    EventTooLong(i32),
    /// A Basic record that is neither a function nor an argument.
    BasicType(u16),
}

/// Parses the header. The byte order is the one given, or else the one in which version and type are known or small.
///
/// # Errors
/// [`Need::More`] when there are fewer than 32 bytes.
pub(crate) fn parse_header(window: &[u8], endian: Option<Endian>) -> Result<(Header, Orders), Need> {
    let Some(bytes) = window.first_chunk::<HEADER_BYTES>() else { return Err(Need::More(HEADER_BYTES as u64)) };
    let little = header_in(bytes, Endian::Little);
    let big = header_in(bytes, Endian::Big);
    let endian =
        endian.unwrap_or_else(|| if unlikeliness(&big) < unlikeliness(&little) { Endian::Big } else { Endian::Little });
    let header = if endian == Endian::Little { little } else { big };
    Ok((header, layout_of(&header, endian, window.get(HEADER_BYTES..).unwrap_or_default())))
}

/// Smaller is likelier: known versions first, then small numbers (page, section 1.4).
fn unlikeliness(header: &Header) -> (bool, u32) {
    (!header.is_known(), u32::from(header.version) + u32::from(header.type_code))
}

/// A big-endian FDR trace whose first record begins with LLVM's bit positions is of the third form.
fn layout_of(header: &Header, endian: Endian, body: &[u8]) -> Orders {
    let document = Orders::of(endian);
    let llvm = Orders { endian, bits: BitOrder::Low };
    // Checks the following record too, if there is one: a gap may begin with such a byte.
    let first_two = [(kind::BUFFER_EXTENTS, kind::NEW_BUFFER), (kind::NEW_BUFFER, kind::WALL_TIME)];
    let fits = |layout: Orders| {
        first_two.into_iter().any(|(first, second)| {
            body.first() == Some(&layout.metadata_byte(first))
                && body.get(METADATA_BYTES).is_none_or(|&b| b == layout.metadata_byte(second))
        })
    };
    let is_fdr = header.type_code == TYPE_FDR;
    if is_fdr && endian == Endian::Big && !fits(document) && fits(llvm) { llvm } else { document }
}

fn header_in(bytes: &[u8; HEADER_BYTES], endian: Endian) -> Header {
    let u16_at = |at| endian.u16(array_at(bytes, at).unwrap_or_default());
    let u64_at = |at| endian.u64(array_at(bytes, at).unwrap_or_default());
    Header {
        version: u16_at(0),
        type_code: u16_at(2),
        flags: endian.u32(array_at(bytes, 4).unwrap_or_default()),
        cycle_frequency: u64_at(8),
        buffer_size: u64_at(16),
        reserved: u64_at(24),
    }
}

/// Parses one FDR record. Events longer than `payload_max` are rejected before their bytes are requested.
///
/// # Errors
/// [`Need`].
#[inline]
pub(crate) fn parse_record(
    window: &[u8],
    layout: Orders,
    version: u16,
    payload_max: u64,
) -> Result<(FdrRecord<'_>, usize), Need> {
    let Some(&first) = window.first() else { return Err(Need::More(1)) };
    match layout.metadata_kind(first) {
        None => {
            let Some(bytes) = window.first_chunk::<FUNCTION_BYTES>() else {
                return Err(Need::More(FUNCTION_BYTES as u64));
            };
            parse_function(bytes, layout).map(|function| (FdrRecord::Function(function), FUNCTION_BYTES))
        }
        Some(number) => parse_metadata(window, number, layout, version, payload_max)
            .map(|(metadata, used)| (FdrRecord::Metadata(metadata), used)),
    }
}

/// Parses the eight bytes of a function record.
///
/// # Errors
/// [`Need::Bad`] for kinds 4 to 7.
#[inline]
pub(crate) fn parse_function(bytes: &[u8; FUNCTION_BYTES], layout: Orders) -> Result<Function, Need> {
    let [a, b, c, d, e, f, g, h] = *bytes;
    let (number, id) = layout.function_word([a, b, c, d]);
    match FunctionKind::from_number(number) {
        Some(kind) => Ok(Function { kind, id, delta: layout.endian.u32([e, f, g, h]) }),
        None => Err(Need::Bad(BinaryFault::FunctionKind(number))),
    }
}

fn parse_metadata(
    window: &[u8],
    number: u8,
    layout: Orders,
    version: u16,
    payload_max: u64,
) -> Result<(Metadata<'_>, usize), Need> {
    if number > kind::PID {
        return Err(Need::Bad(BinaryFault::MetadataKind(number)));
    }
    let Some(bytes) = window.first_chunk::<METADATA_BYTES>() else { return Err(Need::More(METADATA_BYTES as u64)) };
    let endian = layout.endian;
    let u16_at = |at| endian.u16(array_at(bytes, at).unwrap_or_default());
    let u32_at = |at| endian.u32(array_at(bytes, at).unwrap_or_default());
    let i32_at = |at| endian.i32(array_at(bytes, at).unwrap_or_default());
    let u64_at = |at| endian.u64(array_at(bytes, at).unwrap_or_default());
    let (body, used) = match number {
        kind::NEW_BUFFER => (Body::NewBuffer { thread: i32_at(1) }, 5),
        kind::END_OF_BUFFER => (Body::EndOfBuffer, 1),
        kind::NEW_CPU => (Body::NewCpu { cpu: u16_at(1), tsc: u64_at(3) }, 11),
        kind::TSC_WRAP => (Body::TscWrap { tsc: u64_at(1) }, 9),
        kind::WALL_TIME => (Body::WallTime { seconds: u64_at(1), micros: u32_at(9) }, 13),
        kind::CALL_ARGUMENT => (Body::CallArgument { value: u64_at(1) }, 9),
        kind::BUFFER_EXTENTS => (Body::BufferExtents { bytes: u64_at(1) }, 9),
        kind::PID => (Body::Pid { process: i32_at(1) }, 5),
        _ => {
            let data = payload(window, i32_at(1), payload_max)?;
            let (body, used) = match (number, version) {
                (kind::TYPED_EVENT, _) => (Body::TypedEvent { delta: i32_at(5), event_type: u16_at(9), data }, 11),
                (_, 0..=3) => (Body::CustomEvent { time: CustomTime::Absolute { tsc: u64_at(5) }, data }, 13),
                (_, 4) => (Body::CustomEvent { time: CustomTime::OnCpu { tsc: u64_at(5), cpu: u16_at(13) }, data }, 15),
                _ => (Body::CustomEvent { time: CustomTime::Delta { delta: i32_at(5) }, data }, 9),
            };
            let reserved = bytes.get(used..).unwrap_or_default();
            return Ok((Metadata { body, reserved }, METADATA_BYTES + data.len()));
        }
    };
    Ok((Metadata { body, reserved: bytes.get(used..).unwrap_or_default() }, METADATA_BYTES))
}

/// The payload after an event's first 16 bytes.
fn payload(window: &[u8], size: i32, payload_max: u64) -> Result<&[u8], Need> {
    let length = usize::try_from(size).map_err(|_| Need::Bad(BinaryFault::EventSize(size)))?;
    if length == 0 {
        return Err(Need::Bad(BinaryFault::EventSize(size)));
    }
    if length as u64 > payload_max {
        return Err(Need::Bad(BinaryFault::EventTooLong(size)));
    }
    window.get(METADATA_BYTES..METADATA_BYTES + length).ok_or(Need::More((METADATA_BYTES + length) as u64))
}

/// How many bytes at the start of `window` are complete, valid function records.
#[inline]
pub(crate) fn function_run(window: &[u8], layout: Orders) -> usize {
    const BLOCK: usize = 8 * FUNCTION_BYTES;
    let mask = layout.function_zero_mask();
    let word = |bytes: &[u8]| u64::from_le_bytes(array_at(bytes, 0).unwrap_or_default());
    let mut valid = 0;
    for block in window.chunks_exact(BLOCK) {
        let any = block.chunks_exact(FUNCTION_BYTES).fold(0, |any, record| any | word(record));
        if any & mask != 0 {
            break;
        }
        valid += BLOCK;
    }
    let rest = window.get(valid..).unwrap_or_default();
    valid + rest.chunks_exact(FUNCTION_BYTES).take_while(|record| word(record) & mask == 0).count() * FUNCTION_BYTES
}

/// Parses one Basic record.
///
/// # Errors
/// [`Need`].
#[inline]
pub(crate) fn parse_basic(window: &[u8], endian: Endian) -> Result<BasicRecord, Need> {
    let Some(bytes) = window.first_chunk::<BASIC_BYTES>() else { return Err(Need::More(BASIC_BYTES as u64)) };
    let u32_at = |at| endian.u32(array_at(bytes, at).unwrap_or_default());
    let u64_at = |at| endian.u64(array_at(bytes, at).unwrap_or_default());
    let id = endian.i32(array_at(bytes, 4).unwrap_or_default());
    let padding = array_at(bytes, 24).unwrap_or_default();
    match endian.u16([bytes[0], bytes[1]]) {
        0 => {
            let Some(kind) = FunctionKind::from_number(bytes[3]) else {
                return Err(Need::Bad(BinaryFault::FunctionKind(bytes[3])));
            };
            let body = BasicBody::Function { kind, cpu: bytes[2], tsc: u64_at(8) };
            Ok(BasicRecord { body, id, thread: u32_at(16), process: u32_at(20), padding })
        }
        1 => {
            let body = BasicBody::Argument { value: u64_at(16), pad: [bytes[2], bytes[3]] };
            Ok(BasicRecord { body, id, thread: u32_at(8), process: u32_at(12), padding })
        }
        other => Err(Need::Bad(BinaryFault::BasicType(other))),
    }
}
