//! The function records of a trace, by a reader of its own: LLVM's `xray-fdr` log of version 5 and `xray-basic` log of
//! version 3, little-endian, undamaged. Shares no code with the project's.

use std::collections::BTreeMap;

/// A function is entered or left.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) is_entry: bool,
    pub(super) function: u32,
    pub(super) tsc: u64,
}

/// By process and thread, in the order of time.
pub(super) type Threads = BTreeMap<(u32, u32), Vec<Record>>;

pub(super) fn threads(bytes: &[u8]) -> Result<Threads, String> {
    match (number(bytes, 0, 2)?, number(bytes, 2, 2)?) {
        (5, 1) => flight(bytes),
        (3, 0) => basic(bytes),
        other => Err(format!("version and type {other:?}")),
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> Result<u64, String> {
    let bytes = bytes.get(at..at + length).ok_or_else(|| format!("no {length} bytes at {at:#x}"))?;
    Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Buffers: each says how long it is, then its thread, its time, its process.
fn flight(bytes: &[u8]) -> Result<Threads, String> {
    let mut buffers: Vec<((u32, u32), Vec<Record>)> = Vec::new();
    let mut at = 32;
    while at < bytes.len() {
        if number(bytes, at, 1)? != 7 << 1 | 1 {
            return Err(format!("no extents at {at:#x}"));
        }
        let end = at + 16 + usize::try_from(number(bytes, at + 1, 8)?).map_err(|error| error.to_string())?;
        at += 16;
        let (mut thread, mut process, mut tsc, mut records) = (0, 0, 0_u64, Vec::new());
        while at < end {
            let first = number(bytes, at, 1)?;
            if first & 1 == 0 {
                let word = number(bytes, at, 4)?;
                tsc += number(bytes, at + 4, 4)?;
                let is_entry = matches!(word >> 1 & 7, 0 | 3);
                records.push(Record { is_entry, function: small(word >> 4), tsc });
                at += 8;
                continue;
            }
            match first >> 1 {
                0 => thread = small(number(bytes, at + 1, 4)?),
                2 => tsc = number(bytes, at + 3, 8)?,
                3 => tsc = number(bytes, at + 1, 8)?,
                4 | 6 => {}
                9 => process = small(number(bytes, at + 1, 4)?),
                kind => return Err(format!("metadata {kind} at {at:#x}")),
            }
            at += 16;
        }
        buffers.push(((process, thread), records));
    }
    // A thread's buffers are written in any order.
    buffers.sort_by_key(|(key, records)| (*key, records.first().map(|record| record.tsc)));
    let mut threads = Threads::new();
    for (key, records) in buffers.into_iter().filter(|(_, records)| !records.is_empty()) {
        threads.entry(key).or_default().extend(records);
    }
    Ok(threads)
}

/// Records of 32 bytes, those of a thread in the order of time.
fn basic(bytes: &[u8]) -> Result<Threads, String> {
    let mut threads = Threads::new();
    for at in (32..bytes.len()).step_by(32) {
        if number(bytes, at, 2)? != 0 {
            continue;
        }
        let is_entry = matches!(number(bytes, at + 3, 1)?, 0 | 3);
        let (function, tsc) = (small(number(bytes, at + 4, 4)?), number(bytes, at + 8, 8)?);
        let key = (small(number(bytes, at + 20, 4)?), small(number(bytes, at + 16, 4)?));
        threads.entry(key).or_default().push(Record { is_entry, function, tsc });
    }
    Ok(threads)
}
