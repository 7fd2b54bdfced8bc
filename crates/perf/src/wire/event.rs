//! A record of `perf.data`: `struct perf_event_header` of Linux, `include/uapi/linux/perf_event.h`, and its body. Kinds
//! from 64 on are written by the program `perf` itself (`tools/lib/perf/include/perf/event.h`).

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

use super::bytes::{Bytes, until_zero};
use super::fault::{Fault, Need};

/// Bytes of the header of a record: kind, flags, length.
pub(crate) const HEAD_BYTES: usize = 8;

/// Kinds of records.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    /// First kind that the kernel does not write.
    pub(crate) const USER: u32 = 64;
    /// A kind from here on is damage.
    pub(crate) const END: u32 = 128;
}

const KERNEL_KINDS: [&str; 23] = [
    "unknown",
    "mmap",
    "lost",
    "comm",
    "exit",
    "throttle",
    "unthrottle",
    "fork",
    "read",
    "sample",
    "mmap2",
    "aux",
    "itrace_start",
    "lost_samples",
    "switch",
    "switch_cpu_wide",
    "namespaces",
    "ksymbol",
    "bpf_event",
    "cgroup",
    "text_poke",
    "aux_output_hw_id",
    "callchain_deferred",
];

const USER_KINDS: [&str; 20] = [
    "header_attr",
    "header_event_type",
    "header_tracing_data",
    "header_build_id",
    "finished_round",
    "id_index",
    "auxtrace_info",
    "auxtrace",
    "auxtrace_error",
    "thread_map",
    "cpu_map",
    "stat_config",
    "stat",
    "stat_round",
    "event_update",
    "time_conv",
    "header_feature",
    "compressed",
    "finished_init",
    "compressed2",
];

/// The word for a kind of record.
pub(crate) fn kind_name(kind: u32) -> &'static str {
    let (table, at): (&[&str], _) =
        if kind < kind::USER { (&KERNEL_KINDS, kind) } else { (&USER_KINDS, kind - kind::USER) };
    table.get(at as usize).copied().unwrap_or("unknown")
}

/// A record of `perf.data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its kind: `PERF_RECORD_…`.
    pub kind: u32,
    /// Its flags; the lowest three bits are the mode of the processor.
    pub misc: u16,
    /// All its bytes, and those of other programs' data that follow records of some kinds.
    pub bytes: &'a [u8],
    /// Length of the record itself.
    pub(crate) own_bytes: usize,
    pub(crate) endian: Endian,
    /// Where it begins in what a compressed record contains.
    pub(crate) inside: Option<u64>,
}

impl<'a> Event<'a> {
    /// The word for its kind.
    pub fn kind_name(&self) -> &'static str {
        kind_name(self.kind)
    }

    /// Where the record begins in the decompressed data of a compressed one, whose offset is that of its place; `None`
    /// for a record that stands in the file itself. [`crate::Writer::write`] leaves such a record out: the compressed one,
    /// which precedes it, has it.
    pub fn inside(&self) -> Option<u64> {
        self.inside
    }

    /// True for a record that contains others.
    pub(crate) fn is_compressed(&self) -> bool {
        matches!(self.kind, kind::COMPRESSED | kind::COMPRESSED2)
    }

    /// True for a sample.
    pub fn is_sample(&self) -> bool {
        self.kind == kind::SAMPLE
    }

    /// What follows its header.
    pub(crate) fn body(&self) -> Bytes<'a> {
        Bytes::new(self.bytes.get(HEAD_BYTES..self.own_bytes).unwrap_or_default(), self.endian)
    }
}

/// Reads the record with which a window begins.
#[inline]
pub(crate) fn read(window: &[u8], endian: Endian) -> Result<(Event<'_>, usize), Need> {
    let head = frame(window, endian)?;
    let end = usize::try_from(head.bytes).ok();
    let Some(bytes) = end.and_then(|end| window.get(..end)) else { return Err(Need::More(head.bytes)) };
    Ok((
        Event { kind: head.kind, misc: head.misc, bytes, own_bytes: head.own_bytes, endian, inside: None },
        bytes.len(),
    ))
}

/// The header of a record, with its length and that of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: u32,
    misc: u16,
    own_bytes: usize,
    /// The record, and what follows it.
    pub(crate) bytes: u64,
}

/// Reads the header of a record.
#[inline]
pub(crate) fn frame(window: &[u8], endian: Endian) -> Result<Frame, Need> {
    let Some(head) = window.first_chunk::<HEAD_BYTES>() else { return Err(Need::More(HEAD_BYTES as u64)) };
    let [a, b, c, d, e, f, g, h] = *head;
    let (kind, misc, own) = (endian.u32([a, b, c, d]), endian.u16([e, f]), endian.u16([g, h]));
    if kind == 0 || kind >= kind::END {
        return Err(bad("type", "a kind of record from 1 to 127", 0));
    }
    if usize::from(own) < HEAD_BYTES {
        return Err(bad("size", "at least 8", 6));
    }
    let more = match kind {
        kind::AUXTRACE => match array_at::<8>(window, HEAD_BYTES) {
            Some(bytes) if own >= 16 => endian.u64(bytes),
            None if own >= 16 => return Err(Need::More(16)),
            _ => return Err(bad("size", "at least 16", 6)),
        },
        kind::TRACING_DATA => match array_at::<4>(window, HEAD_BYTES) {
            Some(bytes) if own >= 12 => u64::from(endian.u32(bytes)).next_multiple_of(8),
            None if own >= 12 => return Err(Need::More(12)),
            _ => return Err(bad("size", "at least 12", 6)),
        },
        _ => 0,
    };
    Ok(Frame { kind, misc, own_bytes: own.into(), bytes: u64::from(own).saturating_add(more) })
}

#[cold]
fn bad(field: &'static str, expected: &'static str, at: usize) -> Need {
    Need::Bad(Fault { field, expected, at })
}

/// A file that is mapped into a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping<'a> {
    pub(crate) process: u32,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) build_id: &'a [u8],
    pub(crate) path: &'a [u8],
}

/// Bit of the flags of `mmap2`: it has a build id in place of the inode.
const MISC_BUILD_ID: u16 = 1 << 14;

/// Reads `mmap` and `mmap2`; `body` is without the fields that all records may end with.
pub(crate) fn mapping<'a>(event: &Event<'a>, mut body: Bytes<'a>) -> Option<Mapping<'a>> {
    let (process, _thread) = (body.u32()?, body.u32()?);
    let (start, bytes, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let mut build_id = &b""[..];
    if event.kind == kind::MMAP2 {
        let identity = body.take(24)?;
        if event.misc & MISC_BUILD_ID != 0 {
            let length = usize::from(*identity.first()?);
            build_id = identity.get(4..4 + length.min(20))?;
        }
        body.take(8)?;
    }
    Some(Mapping { process, start, bytes, offset, build_id, path: until_zero(body.rest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let bytes = [9, 0, 0, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let (event, used) = read(&bytes, Endian::Little).unwrap();
        assert_eq!((event.kind_name(), event.misc, event.body().rest.len(), used), ("sample", 2, 8, 16));
        assert_eq!(read(&bytes[..15], Endian::Little), Err(Need::More(16)));
        assert_eq!(read(&bytes[..7], Endian::Little), Err(Need::More(8)));
        let big = [0, 0, 0, 68, 0, 0, 0, 8];
        assert_eq!(read(&big, Endian::Big).unwrap().0.kind_name(), "finished_round");
        let field = |bytes: &[u8]| match read(bytes, Endian::Little) {
            Err(Need::Bad(fault)) => fault.field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(&[0, 0, 0, 0, 0, 0, 8, 0]), "type");
        assert_eq!(field(&[128, 0, 0, 0, 0, 0, 8, 0]), "type");
        assert_eq!(field(&[1, 0, 0, 0, 0, 0, 7, 0]), "size");
        assert_eq!(field(&[71, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "size");
    }

    #[test]
    fn data_that_follow_a_record_belong_to_it() {
        let mut bytes = [71, 0, 0, 0, 0, 0, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0].to_vec();
        assert_eq!(read(&bytes, Endian::Little), Err(Need::More(19)));
        assert_eq!(read(&bytes[..9], Endian::Little), Err(Need::More(16)));
        bytes.extend([1, 2, 3]);
        assert_eq!(read(&bytes, Endian::Little).unwrap().1, 19);
        let tracing = [66, 0, 0, 0, 0, 0, 12, 0, 3, 0, 0, 0];
        assert_eq!(read(&tracing, Endian::Little), Err(Need::More(20)));
    }
}
