//! A large trace of Chrome's events for the benchmark: four threads of nested complete events in the order of their ends,
//! with beginnings and ends, counters and arguments among them. Same bytes for the same size, always.

use std::io::{self, Write};

const THREADS: usize = 4;

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let head = b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":7,\"name\":\"process_name\",\"args\":{\"name\":\"app\"}}";
    out.write_all(head)?;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    let mut clocks = [1_000_000_u64; THREADS];
    let mut written = head.len() as u64;
    let mut buffer = Vec::with_capacity(1 << 17);
    while written < bytes {
        buffer.clear();
        while buffer.len() < (1 << 16) && written + (buffer.len() as u64) < bytes {
            let thread = random(THREADS as u64) as usize;
            let start = clocks[thread];
            let mut end = start;
            for depth in 0..3 {
                end += 100 + random(5000);
                let begin = start + 10 - depth;
                write!(
                    buffer,
                    ",\n{{\"ph\":\"X\",\"pid\":7,\"tid\":{},\"ts\":{},\"dur\":{}",
                    thread + 1,
                    us(begin),
                    us(end - begin)
                )?;
                write!(
                    buffer,
                    ",\"cat\":\"app\",\"name\":\"function {}\",\"args\":{{\"n\":{}}}}}",
                    random(200),
                    random(1000)
                )?;
            }
            if random(8) == 0 {
                write!(
                    buffer,
                    ",\n{{\"ph\":\"B\",\"pid\":7,\"tid\":{},\"ts\":{},\"name\":\"phase\"}}",
                    thread + 1,
                    us(end)
                )?;
                end += 50;
                write!(buffer, ",\n{{\"ph\":\"E\",\"pid\":7,\"tid\":{},\"ts\":{}}}", thread + 1, us(end))?;
                write!(
                    buffer,
                    ",\n{{\"ph\":\"C\",\"pid\":7,\"ts\":{},\"name\":\"heap\",\"args\":{{\"used\":{}}}}}",
                    us(end),
                    random(1 << 30)
                )?;
            }
            clocks[thread] = end + 20;
        }
        out.write_all(&buffer)?;
        written += buffer.len() as u64;
    }
    out.write_all(b"\n]}\n")
}

/// Nanoseconds as microseconds.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
