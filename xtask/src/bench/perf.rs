//! A large recording of perf for the benchmark: a stream with one event, a program, and samples of four threads with
//! stacks of 4 to 35 addresses. Same bytes for the same size, always.

use std::io::{self, Write};

/// Fields of the samples: address, thread, time, call chain, processor, period.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 8;

fn record(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[u8]) {
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&misc.to_le_bytes());
    out.extend_from_slice(&u16::try_from(body.len() + 8).unwrap_or(8).to_le_bytes());
    out.extend_from_slice(body);
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Writes about `bytes` bytes of a recording.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut buffer = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    // Type software, 128 bytes, cpu-clock.
    let mut attr = words(&[128 << 32 | 1, 0, 1_000_000, SAMPLE_TYPE, 0, 0]);
    attr.resize(128, 0);
    attr.extend(words(&[1]));
    record(&mut buffer, 64, 0, &attr);
    let mapping = [&words(&[7 << 32 | 7, 0x40_0000, 0x10_0000, 0])[..], b"/usr/bin/app\0\0\0\0"].concat();
    record(&mut buffer, 1, 2, &mapping);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    let (mut written, mut time) = (0, 1_000_000_000_u64);
    while written < bytes {
        while buffer.len() < (1 << 16) && written + (buffer.len() as u64) < bytes {
            time += 200_000 + random(100_000);
            let (thread, depth) = (random(4), 4 + random(32));
            let mut body = vec![0x40_0000 + random(4000) * 16, (7 + thread) << 32 | 7, time, thread, 1_000_000];
            body.extend([depth + 1, 512_u64.wrapping_neg()]);
            body.extend((0..depth).map(|level| 0x40_0000 + (level * 100 + random(2 + depth - level)) * 16));
            record(&mut buffer, 9, 2, &words(&body));
        }
        out.write_all(&buffer)?;
        written += buffer.len() as u64;
        buffer.clear();
    }
    Ok(())
}
