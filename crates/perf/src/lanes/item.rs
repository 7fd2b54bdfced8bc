//! What of a record of `perf.data` is needed for spans, as bytes that can be sorted in a file.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;
use anytrace_core::runs::{Keyed, Stored};

use crate::model::session::{Entered, What};
use crate::wire::bytes::{Bytes, Words};
use crate::wire::event::Mapping;

/// The order of a record, and how many bytes its contents have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) time_ns: u64,
    pub(super) seq: u64,
    pub(super) bytes: u32,
}

impl Keyed for Item {
    type Key = (u64, u64);

    fn key(&self) -> Self::Key {
        (self.time_ns, self.seq)
    }

    fn with_payload(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }
}

impl Stored for Item {
    const BEFORE: Self = Self { time_ns: 0, seq: 0, bytes: 0 };

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time_ns.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let eight = |at| array_at::<8>(bytes, at).map(u64::from_le_bytes);
        let length = array_at::<4>(bytes, 16).map(u32::from_le_bytes)?;
        Some((Self { time_ns: eight(0)?, seq: eight(8)?, bytes: length }, 20))
    }

    fn payload(&self) -> usize {
        self.bytes as usize
    }
}

/// The contents of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act<'a> {
    Sample { process: u32, thread: u32, cpu: Option<u32>, weight: u64, is_kernel: bool, chain: Words<'a> },
    Map(Mapping<'a>),
    Comm { process: u32, thread: u32, is_exec: bool, name: &'a [u8] },
    Fork { process: u32, parent: u32 },
    Exit { process: u32, thread: u32 },
}

/// Lowest three bits of the flags of a sample: where its instruction is.
const MODE_KERNEL: u16 = 1;

/// Appends what is needed of a record; false if that is nothing.
pub(super) fn encode(out: &mut Vec<u8>, misc: u16, entered: &Entered<'_>) -> bool {
    let id = |id: Option<u64>| u32::try_from(id.unwrap_or(0)).unwrap_or(0);
    let (process, thread) = (id(entered.process), id(entered.thread));
    let mut four = |tag: u32, values: &[u32]| {
        out.extend_from_slice(&tag.to_le_bytes());
        values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    };
    match &entered.what {
        What::Sample(sample) => {
            let is_kernel = u32::from(misc & 7 == MODE_KERNEL);
            four(0, &[process, thread, sample.cpu.unwrap_or(u32::MAX), is_kernel]);
            out.extend_from_slice(&entered.weight.to_le_bytes());
            // A stack of nothing but marks has only the instruction.
            if sample.chain.iter().any(|address| address < MARKS) {
                sample.chain.iter().for_each(|address| out.extend_from_slice(&address.to_le_bytes()));
            } else {
                out.extend_from_slice(&sample.ip.unwrap_or(MARKS).to_le_bytes());
            }
        }
        What::Mapping(mapping) => {
            let length = u32::try_from(mapping.build_id.len()).unwrap_or(0);
            four(1, &[mapping.process, length]);
            for word in [mapping.start, mapping.bytes, mapping.offset] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.extend_from_slice(mapping.build_id);
            out.extend_from_slice(mapping.path);
        }
        What::Comm { name, is_exec } => {
            four(2, &[process, thread, u32::from(*is_exec)]);
            out.extend_from_slice(name);
        }
        What::Fork { parent } => four(3, &[process, *parent]),
        What::Exit => four(4, &[process, thread]),
        _ => return false,
    }
    true
}

/// Addresses from here on are marks: what follows is of the kernel, of the program, of a guest
/// (`PERF_CONTEXT_MAX` of Linux, `include/uapi/linux/perf_event.h`).
pub(super) const MARKS: u64 = 4095_u64.wrapping_neg();

/// Reads what [`encode`] wrote.
pub(super) fn decode(bytes: &[u8]) -> Option<Act<'_>> {
    let mut bytes = Bytes::new(bytes, Endian::Little);
    Some(match bytes.u32()? {
        0 => {
            let (process, thread, cpu, is_kernel) = (bytes.u32()?, bytes.u32()?, bytes.u32()?, bytes.u32()? == 1);
            let (weight, cpu) = (bytes.u64()?, (cpu != u32::MAX).then_some(cpu));
            let chain = Words { bytes: bytes.rest, endian: Endian::Little };
            Act::Sample { process, thread, cpu, weight, is_kernel, chain }
        }
        1 => {
            let (process, length) = (bytes.u32()?, bytes.u32()?);
            let (start, size, offset) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
            let build_id = bytes.take(length.into())?;
            Act::Map(Mapping { process, start, bytes: size, offset, build_id, path: bytes.rest })
        }
        2 => {
            let (process, thread, is_exec) = (bytes.u32()?, bytes.u32()?, bytes.u32()? == 1);
            Act::Comm { process, thread, is_exec, name: bytes.rest }
        }
        3 => Act::Fork { process: bytes.u32()?, parent: bytes.u32()? },
        _ => Act::Exit { process: bytes.u32()?, thread: bytes.u32()? },
    })
}

#[cfg(test)]
mod tests {
    use anytrace_core::runs::Sorter;

    use super::*;

    #[test]
    fn what_fits_into_memory_does_not_change_the_order() {
        for chunk_bytes in [1, 200, 1 << 20] {
            let mut sorter = Sorter::with_chunks(chunk_bytes);
            for seq in 0..100_u64 {
                let item = Item { time_ns: seq * 37 % 20, seq, bytes: 0 };
                sorter.push(item, &vec![7; usize::try_from(seq % 5).unwrap()]).unwrap();
            }
            let mut found = Vec::new();
            sorter
                .each(&mut |item, bytes| {
                    assert_eq!(bytes.len() as u64, item.seq % 5);
                    found.push(item.key());
                    Ok(())
                })
                .unwrap();
            assert!(found.len() == 100 && found.is_sorted(), "{chunk_bytes}: {found:?}");
        }
    }
}
