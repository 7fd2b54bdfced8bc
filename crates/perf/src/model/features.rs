//! Tables behind the records of a file, or in records of their own in a stream: names of events, build ids of programs
//! (`tools/perf/util/header.c` of Linux).

use anytrace_core::Endian;

use crate::wire::bytes::{Bytes, until_zero};
use crate::wire::header::Section;

/// Numbers of the features that are read.
pub(crate) const BUILD_ID: u32 = 2;
pub(crate) const EVENT_DESC: u32 = 12;
pub(crate) const COMPRESSED: u32 = 27;

/// Most entries of a table.
const ENTRIES_MAX: u32 = 1 << 16;

/// Names for numbers of features, for people.
const NAMES: [&str; 33] = [
    "",
    "tracing_data",
    "build_id",
    "hostname",
    "osrelease",
    "version",
    "arch",
    "nrcpus",
    "cpudesc",
    "cpuid",
    "total_mem",
    "cmdline",
    "event_desc",
    "cpu_topology",
    "numa_topology",
    "branch_stack",
    "pmu_mappings",
    "group_desc",
    "auxtrace",
    "stat",
    "cache",
    "sample_time",
    "mem_topology",
    "clockid",
    "dir_format",
    "bpf_prog_info",
    "bpf_btf",
    "compressed",
    "cpu_pmu_caps",
    "clock_data",
    "hybrid_topology",
    "pmu_caps",
    "e_machine",
];

/// The word for a feature.
pub(crate) fn name(number: u32) -> String {
    match NAMES.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("feature {number}"),
    }
}

/// Where the features of a file are: the entry of each is at its place among the bits that are set.
pub(crate) fn sections(table: &[u8], endian: Endian) -> Vec<Section> {
    let mut bytes = Bytes::new(table, endian);
    let mut all = Vec::new();
    while let (Some(offset), Some(length)) = (bytes.u64(), bytes.u64()) {
        all.push(Section { offset, bytes: length });
    }
    all
}

/// A text with its length in front.
fn text<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let length = bytes.u32()?;
    bytes.take(length.into()).map(until_zero)
}

/// The names of events with the numbers of their records, as far as the table can be read.
pub(crate) fn event_names(table: &[u8], endian: Endian) -> Vec<(String, Vec<u64>)> {
    let mut bytes = Bytes::new(table, endian);
    let mut all = Vec::new();
    let (Some(count), Some(attr_bytes)) = (bytes.u32(), bytes.u32()) else { return all };
    for _ in 0..count.min(ENTRIES_MAX) {
        let mut entry = || {
            bytes.take(attr_bytes.into())?;
            let ids = bytes.u32()?;
            let name = String::from_utf8_lossy(text(&mut bytes)?).into_owned();
            Some((name, bytes.words(ids.into())?.iter().collect()))
        };
        match entry() {
            Some(entry) => all.push(entry),
            None => break,
        }
    }
    all
}

/// Build ids with the paths of their files, as far as the table can be read.
pub(crate) fn build_ids(table: &[u8], endian: Endian) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Bytes::new(table, endian);
    let mut all = Vec::new();
    for _ in 0..ENTRIES_MAX {
        let mut entry = || {
            // Header of a record, process, 20 bytes of the build id, their number where that is said.
            let head = bytes.take(8)?;
            let length = endian.u16(*head.get(6..)?.first_chunk::<2>()?);
            let misc = endian.u16(*head.get(4..)?.first_chunk::<2>()?);
            let body = bytes.take(u64::from(length).checked_sub(8)?)?;
            let own = body.get(4..24)?;
            let has_length = misc & 1 << 15 != 0;
            let count = if has_length { usize::from(*body.get(24)?).min(20) } else { 20 };
            Some((own.get(..count)?.to_vec(), until_zero(body.get(28..)?).to_vec()))
        };
        match entry() {
            Some(entry) => all.push(entry),
            None => break,
        }
    }
    all
}

/// What the header says about compressed records: `HEADER_COMPRESSED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packing {
    /// 1 is zstd.
    pub(crate) kind: u32,
    pub(crate) level: u32,
    /// The ratio, rounded by perf.
    pub(crate) ratio: u32,
}

/// How records were compressed: version, kind, level, ratio, length of the kernel's buffers.
pub(crate) fn packing(table: &[u8], endian: Endian) -> Option<Packing> {
    let mut bytes = Bytes::new(table, endian);
    let _version = bytes.u32()?;
    Some(Packing { kind: bytes.u32()?, level: bytes.u32()?, ratio: bytes.u32()? })
}
