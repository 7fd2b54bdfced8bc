//! Damage of every kind: single bits, lengths, cuts, repeats, pieces of other files, broken wrappers.

use std::io::Write;

use serde_json::Value as Json;

use super::random::Random;
use super::samples::Samples;

/// No input gets longer than this, whatever is repeated in it.
const BYTES_MAX: usize = 96 * 1024;

/// Numbers that parsers trip over, as the lengths they would be.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// A sample as a run reads it: most are changed a few times, some not at all.
pub(super) fn mutated(bytes: &[u8], samples: &Samples, random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if !random.one_in(5) {
        // Within a container damage would end at its first broken chunk.
        let raw = if random.one_in(2) { None } else { chunks_removed(&bytes) };
        let is_inside = raw.is_some();
        bytes = raw.unwrap_or(bytes);
        // Few changes as a rule: a trace that is all damage exercises little.
        for _ in 0..*random.pick(&[1, 1, 1, 2, 3, 6]) {
            change(&mut bytes, samples, random);
        }
        if is_inside {
            bytes = in_chunks(&bytes);
        }
    }
    if random.one_in(8) {
        bytes = wrapped(&bytes, random);
        if random.one_in(2) {
            change(&mut bytes, samples, random);
        }
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

/// A JSON document with other values in it: still JSON, so that what reads it gets past its syntax.
pub(super) fn mutated_json(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_slice::<Json>(bytes) else { return bytes.to_vec() };
    for _ in 0..*random.pick(&[0, 1, 1, 2, 4]) {
        change_json(&mut json, random);
    }
    json.to_string().into_bytes()
}

/// Goes down by chance and changes what is there.
fn change_json(json: &mut Json, random: &mut Random) {
    let is_here = random.one_in(6);
    match json {
        Json::Array(items) if !items.is_empty() && !is_here => {
            let at = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change_json(&mut items[at], random),
            }
        }
        Json::Object(object) if !object.is_empty() && !is_here => {
            let names: Vec<String> = object.keys().cloned().collect();
            let (name, other) = (random.pick(&names), random.pick(&names));
            match random.below(8) {
                0 => drop(object.remove(name)),
                1 => drop(object.insert(other.clone(), object[name].clone())),
                _ => change_json(&mut object[name], random),
            }
        }
        value => {
            *value = match random.below(8) {
                0 => Json::Null,
                1 => Json::from(*random.pick(&NUMBERS)),
                2 => Json::from(-1),
                3 => Json::from(0.5),
                4 => Json::from("\u{202e}\u{1b}[31m<&\">"),
                5 => Json::Array(vec![value.clone(), value.clone()]),
                6 => Json::from(true),
                _ => Json::from(random.below(100)),
            }
        }
    }
}

fn change(bytes: &mut Vec<u8>, samples: &Samples, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(64)).min(bytes.len());
    match random.below(13) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 if at < bytes.len() => bytes[at] = random.next() as u8,
        3 | 4 => number(bytes, at, random),
        5 => bytes[at..end].fill(*random.pick(&[0, 0, 0xff, 0x80, 0x20])),
        6 => bytes.truncate(at),
        7 => drop(bytes.drain(..at)),
        8 => drop(bytes.drain(at..end)),
        9 => repeat(bytes, at, random),
        10 => splice(bytes, at, samples, random),
        11 => {
            // Two pieces change places: records out of order.
            let other = random.below(bytes.len() + 1);
            let piece: Vec<u8> = bytes.drain(at..end).collect();
            let other = other.min(bytes.len());
            bytes.splice(other..other, piece);
        }
        _ => {
            let zeros = vec![0; 1 << random.below(13)];
            bytes.splice(at..at, zeros);
        }
    }
}

/// Writes a number over what is there: in either byte order, as a varint, or as decimal digits.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let value = *random.pick(&NUMBERS);
    let value = if random.one_in(3) { value.wrapping_sub(random.below(16) as u64) } else { value };
    let mut written = match random.below(6) {
        0 => (value as u16).to_le_bytes().to_vec(),
        1 => (value as u32).to_le_bytes().to_vec(),
        2 => (value as u32).to_be_bytes().to_vec(),
        3 => value.to_le_bytes().to_vec(),
        4 => varint(value),
        _ => value.to_string().into_bytes(),
    };
    written.truncate(bytes.len() - at);
    bytes[at..at + written.len()].copy_from_slice(&written);
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn repeat(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let most = *random.pick(&[4, 64, 4096]);
    let length = 1 + random.below(most);
    let end = (at + length).min(bytes.len());
    let piece = bytes[at..end].to_vec();
    let times = 1 << random.below(11);
    let room = BYTES_MAX.saturating_sub(bytes.len()) / piece.len().max(1);
    let piece = piece.repeat(times.min(room));
    bytes.splice(at..at, piece);
}

/// Puts a piece of any other sample in: often of another format.
fn splice(bytes: &mut Vec<u8>, at: usize, samples: &Samples, random: &mut Random) {
    let other = &samples.trace(&[], random).bytes;
    let from = random.below(other.len() + 1);
    let to = (from + 1 + random.below(4096)).min(other.len());
    let end = if random.one_in(2) { at } else { (at + (to - from)).min(bytes.len()) };
    bytes.splice(at..end, other[from..to].iter().copied());
}

fn wrapped(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut wrapped = if random.one_in(2) {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        // Writing to memory cannot fail; a run with what is there would be one anyway.
        let _ = writer.write_all(bytes);
        writer.finish().unwrap_or_default()
    } else {
        zstd::encode_all(bytes, 1).unwrap_or_default()
    };
    match random.below(6) {
        0 => wrapped.truncate(random.below(wrapped.len() + 1)),
        1 => wrapped.extend_from_slice(&bytes[..bytes.len().min(100)]),
        2 => wrapped.extend_from_within(..),
        _ => {}
    }
    wrapped
}

/// The raw stream of an apitrace trace in chunks of Snappy, where the bytes are one.
fn chunks_removed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = bytes.strip_prefix(b"at")?;
    let mut raw = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (chunk, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        if snap::raw::decompress_len(chunk).ok()? > BYTES_MAX - raw.len() {
            return None;
        }
        raw.extend(snap::raw::Decoder::new().decompress_vec(chunk).ok()?);
        rest = behind;
    }
    Some(raw)
}

fn in_chunks(raw: &[u8]) -> Vec<u8> {
    let mut bytes = b"at".to_vec();
    for piece in raw.chunks(1 << 14) {
        let chunk = snap::raw::Encoder::new().compress_vec(piece).unwrap_or_default();
        bytes.extend((chunk.len() as u32).to_le_bytes());
        bytes.extend(chunk);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_run_is_mutated_in_the_same_way_and_runs_differ() {
        let samples = Samples::read(false, None).unwrap();
        let make = |run| {
            let mut random = Random::of_run(7, run);
            let sample = samples.trace(&[], &mut random);
            mutated(&sample.bytes, &samples, &mut random)
        };
        let all: Vec<Vec<u8>> = (0..300).map(make).collect();
        assert_eq!(all, (0..300).map(make).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(distinct.len() > 250, "{} distinct inputs of 300", distinct.len());
        assert!(all.iter().all(|bytes| bytes.len() <= BYTES_MAX));
    }

    #[test]
    fn json_with_other_values_is_json() {
        let json = br#"{"desk": {"levels": [{"name": "L1", "size": "48KiB", "ways": 12}], "mesi": true}}"#;
        let all: Vec<Vec<u8>> = (0..200).map(|run| mutated_json(json, &mut Random::of_run(7, run))).collect();
        assert!(all.iter().all(|bytes| serde_json::from_slice::<Json>(bytes).is_ok()));
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(distinct.len() > 50, "{} distinct documents of 200", distinct.len());
    }

    #[test]
    fn a_stream_in_chunks_is_taken_out_and_put_back() {
        let raw: Vec<u8> = (0..40_000_u32).map(|n| ((n * n) >> 7) as u8).collect();
        assert_eq!(chunks_removed(&in_chunks(&raw)).unwrap(), raw);
        assert!(chunks_removed(b"at\x05\0\0\0abc").is_none());
    }
}
