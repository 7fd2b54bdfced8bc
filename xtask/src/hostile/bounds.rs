//! How much memory and time a run may take: so much for any run, and so much for each byte of its inputs.

use std::io::Read;
use std::time::Duration;

use super::case::Case;
use super::child::Ended;

/// No wrapper is unpacked further than this.
const UNPACKED_MAX: u64 = 64 << 20;

/// What a run may take.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// Of any run: the program itself (27 MiB of it without optimization), its buffers, what its threads have of their
    /// own.
    mebibytes: u64,
    /// For each byte of the inputs, unpacked.
    bytes_a_byte: u64,
    /// CPU time of any run. The program is not the optimized one as a rule, and its machine has other loads: the search
    /// behind damage of an apitrace trace, which has a budget, takes 0.13 s with optimization and 1.3 s without.
    milliseconds: u64,
    /// For each KiB of the inputs, unpacked.
    milliseconds_a_kibibyte: u64,
}

const USUAL: Bound = Bound { mebibytes: 80, bytes_a_byte: 64, milliseconds: 2000, milliseconds_a_kibibyte: 5 };

/// Runs that may take more: a verb, options of which one is passed (or none named), the bound, and why.
const MORE: &[(&str, &[&str], Bound, &str)] = &[
    (
        "memory advise",
        &[],
        Bound { mebibytes: 512, ..USUAL },
        "every candidate of up to six types has simulated caches of its own, all in one pass: so much for each, not for each \
         byte; how much depends on the caches of this machine, which are simulated unless --config names others",
    ),
    (
        "memory annotate",
        &["--threads"],
        Bound { mebibytes: 128, ..USUAL },
        "each of up to eight threads has the caches of a processor, or a share of them, whatever the input",
    ),
    (
        "memory report",
        &[],
        Bound { mebibytes: 256, milliseconds: 4000, ..USUAL },
        "the engines of six verbs in one pass, two of which have the caches of a processor, whatever the input",
    ),
    ("apitrace replay", &[], DRIVER, "the driver with its compiler, and drawables of up to 8192 by 8192 pixels"),
    ("apitrace dump-images", &[], DRIVER, "as for replay"),
    ("apitrace frames", &[], DRIVER, "as for replay"),
];

/// Runs that load a driver of OpenGL.
const DRIVER: Bound = Bound { mebibytes: 1280, milliseconds: 15_000, ..USUAL };

/// What is wrong with what a run took: the kind, and how much it was.
pub(super) fn exceeded(case: &Case, ended: &Ended) -> Option<(&'static str, String)> {
    let more = MORE.iter().find(|row| row.0 == case.verb && (row.1.is_empty() || case.has_any(row.1)));
    let bound = more.map_or(USUAL, |row| row.2);
    let memory = |input: u64| (bound.mebibytes << 20) + bound.bytes_a_byte * input;
    let cpu = |input: u64| Duration::from_millis(bound.milliseconds + bound.milliseconds_a_kibibyte * (input >> 10));
    let packed = case.files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    if ended.memory_bytes <= memory(packed) && ended.cpu <= cpu(packed) {
        return None;
    }
    // Unpacking takes longer than most runs: it is done where it decides.
    let input = case.files.iter().map(|(_, bytes)| unpacked(bytes)).sum();
    if ended.memory_bytes > memory(input) {
        let (is, most) = (ended.memory_bytes >> 20, memory(input) >> 20);
        Some(("memory", format!("{is} MiB for an input of {input} bytes, at most {most}")))
    } else if ended.cpu > cpu(input) {
        let (is, most) = (ended.cpu.as_millis(), cpu(input).as_millis());
        Some(("slow", format!("{is} ms of CPU for an input of {input} bytes, at most {most}")))
    } else {
        None
    }
}

/// The length of what is in a wrapper, as far as it can be read; or of the bytes as they are.
fn unpacked(bytes: &[u8]) -> u64 {
    let inner = match bytes {
        [0x1f, 0x8b, ..] => length(flate2::read::MultiGzDecoder::new(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::stream::read::Decoder::new(bytes).map_or(0, length),
        [b'a', b't', rest @ ..] => of_chunks(rest),
        _ => 0,
    };
    inner.max(bytes.len() as u64)
}

fn length(mut reader: impl Read) -> u64 {
    let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
    while total < UNPACKED_MAX {
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => total += read as u64,
        }
    }
    total
}

/// The chunks of Snappy of an apitrace trace.
fn of_chunks(mut rest: &[u8]) -> u64 {
    let mut total = 0;
    while let Some((length, behind)) = rest.split_first_chunk::<4>()
        && let Some((chunk, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)
    {
        let length = snap::raw::decompress_len(chunk).unwrap_or(0) as u64;
        // Snappy makes at most 64 bytes of three.
        total += length.min(chunk.len() as u64 * 22);
        rest = behind;
    }
    total
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn wrappers_count_as_what_is_in_them() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&[7; 100_000]).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(unpacked(&gzip), 100_000);
        assert_eq!(unpacked(&zstd::encode_all(&[7; 100_000][..], 1).unwrap()), 100_000);
        assert_eq!(unpacked(b"plain"), 5);
        // Read up to where it is cut.
        assert!((10..=100_000).contains(&unpacked(&gzip[..gzip.len() - 9])));
        let chunk = snap::raw::Encoder::new().compress_vec(&[7; 1000]).unwrap();
        let chunk = [b"at", &(chunk.len() as u32).to_le_bytes()[..], &chunk].concat();
        assert_eq!(unpacked(&chunk), 1000);
    }
}
