//! A large Perfetto trace for the benchmark, as Chromium and Perfetto's service write it: each thread's sequence has a
//! clock that
//! counts differences, a default track, a counter of its time, and interned names. Same bytes for the same size,
//! always.

use std::io::{self, Write};
use std::ops::Range;

use crate::shell::root;

const THREADS: u64 = 8;
const NAMES: u64 = 200;

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) % below
    };
    let mut buffer = Vec::with_capacity(1 << 17);
    for thread in 0..THREADS {
        begin(&mut buffer, thread);
    }
    let mut depths = [0_u64; 8];
    let mut written = 0;
    while written + (buffer.len() as u64) < bytes {
        let thread = random(THREADS);
        // A thread writes its packets in chunks.
        for _ in 0..64 {
            let Some(depth) = usize::try_from(thread).ok().and_then(|at| depths.get_mut(at)) else { continue };
            let begins = *depth == 0 || *depth < 12 && random(2) == 0;
            *depth = if begins { *depth + 1 } else { *depth - 1 };
            event(&mut buffer, thread, begins.then(|| 1 + random(NAMES)), 20 + random(3000), random(8) == 0);
        }
        if buffer.len() > 1 << 16 {
            out.write_all(&buffer)?;
            written += buffer.len() as u64;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

/// Writes about `bytes` bytes of packets that Chromium wrote: the corpus' sample, again and again, each time half a second
/// later. Only times that are no differences are changed, in place.
pub(crate) fn generate_real(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut sample = std::fs::read(root().join("crates/perfetto/corpus/real/chromium.pftrace"))?;
    let times = absolute_times(&sample);
    let mut written = 0;
    for copy in 0.. {
        if written >= bytes {
            break;
        }
        for (place, time) in &times {
            let mut time = time + copy * 500_000_000;
            let last = place.end - 1;
            for at in place.clone() {
                sample[at] = u8::try_from(time & 0x7f).unwrap_or(0) | if at < last { 0x80 } else { 0 };
                time >>= 7;
            }
            assert_eq!(time, 0, "a later time has as many bytes");
        }
        out.write_all(&sample)?;
        written += sample.len() as u64;
    }
    Ok(())
}

/// The places of times that are no differences: in snapshots, of clocks of the machine, and of packets on those.
fn absolute_times(trace: &[u8]) -> Vec<(Range<usize>, u64)> {
    let mut times = Vec::new();
    // Small numbers are differences, whatever clock they are of.
    let is_absolute = |value: u64| value > 1_000_000_000;
    for (_, packet, _) in fields(trace, 0..trace.len()) {
        for (number, place, value) in fields(trace, packet) {
            match number {
                8 if is_absolute(value) => times.push((place, value)),
                6 => {
                    for (_, clock, _) in fields(trace, place).into_iter().filter(|(number, ..)| *number == 1) {
                        let clock = fields(trace, clock);
                        let is_shared = clock.iter().any(|(number, _, id)| *number == 1 && *id < 64);
                        let time = clock.into_iter().find(|(number, ..)| *number == 2).filter(|_| is_shared);
                        times.extend(time.map(|(_, place, value)| (place, value)));
                    }
                }
                _ => {}
            }
        }
    }
    times
}

/// The fields of a message: number, place of the value, and the value if it is a number.
fn fields(trace: &[u8], message: Range<usize>) -> Vec<(u64, Range<usize>, u64)> {
    let mut found = Vec::new();
    let mut at = message.start;
    while at < message.end {
        let (tag, start) = number_at(trace, at);
        let (value, end) = match tag & 7 {
            0 => number_at(trace, start),
            1 => (0, start + 8),
            5 => (0, start + 4),
            _ => {
                let (length, start) = number_at(trace, start);
                let end = start + usize::try_from(length).expect("the sample is small");
                found.push((tag >> 3, start..end, 0));
                at = end;
                continue;
            }
        };
        found.push((tag >> 3, start..end, value));
        at = end;
    }
    found
}

fn number_at(trace: &[u8], at: usize) -> (u64, usize) {
    let mut value = 0;
    for (n, byte) in trace[at..].iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return (value, at + n + 1);
        }
    }
    (value, trace.len())
}

/// The first packets of a thread's sequence.
fn begin(out: &mut Vec<u8>, thread: u64) {
    packet(out, thread, |out| {
        number(out, 13, 1);
        message(out, 6, |out| {
            for (clock, time, is_incremental) in [(64, 1_000_000, 1), (6, 1_000_000, 0)] {
                message(out, 1, |out| {
                    number(out, 1, clock);
                    number(out, 2, time);
                    number(out, 3, is_incremental);
                });
            }
        });
        message(out, 59, |out| {
            message(out, 11, |out| {
                number(out, 11, 100 + thread);
                number(out, 31, 200 + thread);
            });
            number(out, 58, 64);
        });
    });
    packet(out, thread, |out| {
        message(out, 60, |out| {
            number(out, 1, 100 + thread);
            message(out, 4, |out| {
                number(out, 1, 7);
                number(out, 2, 1000 + thread);
                bytes(out, 5, format!("thread {thread}").as_bytes());
            });
        });
    });
    packet(out, thread, |out| {
        message(out, 60, |out| {
            number(out, 1, 200 + thread);
            number(out, 5, 100 + thread);
            bytes(out, 2, b"thread_time");
            message(out, 8, |out| number(out, 5, 1));
        });
    });
    packet(out, thread, |out| {
        message(out, 12, |out| {
            for name in 1..=NAMES {
                message(out, 2, |out| {
                    number(out, 1, name);
                    bytes(out, 2, format!("function_{name}").as_bytes());
                });
            }
            message(out, 3, |out| {
                number(out, 1, 1);
                bytes(out, 2, b"size");
            });
            message(out, 1, |out| {
                number(out, 1, 1);
                bytes(out, 2, b"bench");
            });
        });
    });
}

/// A slice's begin, if it has a name, or its end.
fn event(out: &mut Vec<u8>, thread: u64, name: Option<u64>, step: u64, has_annotation: bool) {
    packet(out, thread, |out| {
        number(out, 8, step);
        message(out, 11, |out| {
            number(out, 9, if name.is_some() { 1 } else { 2 });
            number(out, 12, step / 2);
            let Some(name) = name else { return };
            number(out, 3, 1);
            number(out, 10, name);
            if has_annotation {
                message(out, 4, |out| {
                    number(out, 1, 1);
                    number(out, 4, step);
                });
            }
        });
        number(out, 13, 2);
    });
}

fn packet(out: &mut Vec<u8>, thread: u64, append: impl FnOnce(&mut Vec<u8>)) {
    message(out, 1, |out| {
        append(out);
        // What the service adds to every packet.
        number(out, 3, 1000);
        number(out, 79, 7000);
        number(out, 10, 2 + thread);
    });
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn message(out: &mut Vec<u8>, field: u64, append: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    append(&mut inner);
    bytes(out, field, &inner);
}
