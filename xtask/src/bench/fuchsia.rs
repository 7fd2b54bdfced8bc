//! A large Fuchsia trace for the benchmark: four threads with nested durations, complete ones with arguments, counters
//! and context switches. Same bytes for the same size, always.

use std::io::{self, Write};

const THREADS: u64 = 4;

fn record(out: &mut Vec<u8>, kind: u64, fields: u64, body: &[u64]) {
    let head = kind | (body.len() as u64 + 1) << 4 | fields;
    out.extend(std::iter::once(head).chain(body.iter().copied()).flat_map(u64::to_le_bytes));
}

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut buffer = 0x0016_5478_4604_0010_u64.to_le_bytes().to_vec();
    record(&mut buffer, 1, 0, &[1_000_000_000]);
    for number in 1..=200 {
        let name = format!("function {number:03}");
        let mut text = name.as_bytes().to_vec();
        text.resize(16, 0);
        let words: Vec<u64> = text.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        record(&mut buffer, 2, number << 16 | (name.len() as u64) << 32, &words);
    }
    for thread in 1..=THREADS {
        record(&mut buffer, 3, thread << 16, &[7, 7 + thread]);
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    let (mut written, mut time) = (0, 1_000_000_u64);
    while written < bytes {
        while buffer.len() < (1 << 16) && written + (buffer.len() as u64) < bytes {
            let thread = 1 + random(THREADS);
            let name = |number: u64| thread << 24 | 1 << 32 | (1 + number) << 48;
            let (outer, inner) = (random(200), random(200));
            record(&mut buffer, 4, 2 << 16 | name(outer), &[time]);
            let begin = time + random(500);
            time = begin + 1 + random(5000);
            // A complete duration with the argument "function 001": a 64-bit number.
            record(&mut buffer, 4, 4 << 16 | 1 << 20 | name(inner), &[begin, 4 | 2 << 4 | 1 << 16, random(1000), time]);
            time += random(500);
            record(&mut buffer, 4, 3 << 16 | name(outer), &[time]);
            if random(8) == 0 {
                record(&mut buffer, 4, 1 << 16 | 1 << 20 | name(5), &[time, 4 | 2 << 4 | 2 << 16, random(4096), 0]);
            }
            record(&mut buffer, 8, 1 << 60 | random(4) << 20 | 3 << 36, &[time, 7 + thread, 8 + random(THREADS)]);
        }
        out.write_all(&buffer)?;
        written += buffer.len() as u64;
        buffer.clear();
    }
    Ok(())
}
