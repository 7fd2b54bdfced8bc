//! Shapes of recordings of perf: texts and `perf.data`.

use super::Row;
use super::jobs::Family::Perf;

pub(super) const SHAPES: &[Row] = &[
    ("ps-samples", Perf, |n| text(n, |_, i| sample(i, 1, "\t1 f (x)\n\t2 main (x)\n")), 10_000),
    ("ps-names", Perf, |n| text(n, |_, i| sample(i, 1, &format!("\t1 f{i} (x)\n"))), 10_000),
    ("ps-threads", Perf, |n| text(n, |_, i| sample(i, i, "\t1 f (x)\n")), 10_000),
    ("ps-back", Perf, |n| text(n, |n, i| sample(n - i, 1, "\t1 f (x)\n")), 10_000),
    ("ps-events", Perf, |n| text(n, |_, i| format!("t 1 {i}.5: e{i}: 1 f (x)\n")), 10_000),
    ("ps-deep", Perf, |n| sample(1, 1, &"\t1 f (x)\n".repeat(n as usize)).into_bytes(), 20_000),
    ("ps-words", Perf, |n| format!("t 1 1.5: e: \n{} 1 1.5: e: \n", "1 ".repeat(n as usize)).into_bytes(), 20_000),
    ("ps-noise", Perf, |n| [sample(1, 1, ""), "noise\n".repeat(n as usize)].concat().into_bytes(), 20_000),
    ("pd-samples", Perf, |n| stream(n, |_, i| data_sample(i, 7, &[1, 2, 3])), 10_000),
    ("pd-threads", Perf, |n| stream(n, |_, i| data_sample(i, i, &[1, 2])), 10_000),
    ("pd-places", Perf, |n| stream(n, |_, i| data_sample(i, 7, &[i * 8])), 10_000),
    ("pd-back", Perf, |n| stream(n, |n, i| data_sample(n - i, 7, &[1])), 10_000),
    ("pd-maps", Perf, |n| stream(n, |_, i| [map(7, i * 16, 8), data_sample(i, 7, &[i * 16])].concat()), 5_000),
    ("pd-covers", Perf, |n| stream(n, |n, i| map(7, n - i, 2 * i + 1)), 5_000),
    ("pd-forks", Perf, |n| stream(n, |_, i| [record(7, &[i + 8, i + 8, 0]), map(i + 8, 64, 8)].concat()), 5_000),
    ("pd-rounds", Perf, |n| stream(n, |_, _| record(68, &[])), 20_000),
    ("pd-packed", Perf, |n| packed(n, |_, i| data_sample(i, 7, &[1, 2, 3])), 10_000),
    ("pd-packed-zeros", Perf, |n| packed(n, |_, _| vec![0; 64]), 10_000),
    ("pd-zeros", Perf, |n| stream(n, |_, _| vec![0; 8]), 20_000),
    ("pd-lengths", Perf, |n| stream(n, |_, _| [9, 0, 0, 0, 0, 0, 0xff, 0xff].to_vec()), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["ps-noise", "pd-packed-zeros", "pd-zeros", "pd-lengths"];

fn text(n: u64, make: impl Fn(u64, u64) -> String) -> Vec<u8> {
    (0..n).map(|i| make(n, i)).collect::<String>().into_bytes()
}

fn sample(time: u64, thread: u64, frames: &str) -> String {
    format!("t 1/{thread} {time}.000000001: 7 cycles: \n{frames}\n")
}

fn record(kind: u32, body: &[u64]) -> Vec<u8> {
    let length = u16::try_from(8 + body.len() * 8).unwrap_or(8);
    let head = [&kind.to_le_bytes()[..], &[2, 0], &length.to_le_bytes()].concat();
    head.into_iter().chain(body.iter().flat_map(|word| word.to_le_bytes())).collect()
}

fn stream(n: u64, make: impl Fn(u64, u64) -> Vec<u8>) -> Vec<u8> {
    let mut out = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    // Hardware cycles; samples have thread, time and call chain.
    let mut attr = vec![128 << 32, 0, 1, 1 << 1 | 1 << 2 | 1 << 5, 0, 0];
    attr.resize(16, 0);
    out.extend(record(64, &attr));
    out.extend(map(7, 0, 64));
    out.extend((0..n).flat_map(|i| make(n, i)));
    out
}

/// One compressed record for each piece, in a stream of blocks that are not compressed (RFC 8878, 3.1.1.2).
fn packed(n: u64, make: impl Fn(u64, u64) -> Vec<u8>) -> Vec<u8> {
    stream(n, |n, i| {
        let plain = make(n, i);
        let header: &[u8] = if i == 0 { &[0x28, 0xb5, 0x2f, 0xfd, 0, 56] } else { &[] };
        let block = u32::try_from(plain.len() << 3).unwrap_or(0).to_le_bytes();
        let body = [header, block.get(..3).unwrap_or_default(), &plain].concat();
        let length = u16::try_from(body.len() + 8).unwrap_or(8);
        [&81_u32.to_le_bytes()[..], &[0, 0], &length.to_le_bytes(), &body].concat()
    })
}

fn data_sample(time: u64, thread: u64, chain: &[u64]) -> Vec<u8> {
    let head = [thread << 32 | 7, 1000 + time, chain.len() as u64 + 1, 512_u64.wrapping_neg()];
    record(9, &[&head, chain].concat())
}

fn map(process: u64, start: u64, bytes: u64) -> Vec<u8> {
    record(1, &[process << 32 | process, start, bytes, start, u64::from_le_bytes(*b"/bin/app"), 0])
}
