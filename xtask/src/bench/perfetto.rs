//! A large perfetto trace for the benchmark. Same bytes for the same size, always.

use std::io::{self, Write};

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let head = b"perfetto 1\n";
    out.write_all(head)?;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let (mut written, mut number) = (head.len() as u64, 0_u64);
    let mut buffer = Vec::with_capacity(1 << 16);
    while written < bytes {
        buffer.clear();
        while buffer.len() < (1 << 16) - 64 && written + (buffer.len() as u64) < bytes {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            number += 1;
            writeln!(buffer, "{number} event {:x}", state >> 40)?;
        }
        out.write_all(&buffer)?;
        written += buffer.len() as u64;
    }
    Ok(())
}
