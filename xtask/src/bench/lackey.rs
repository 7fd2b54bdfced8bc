//! A large lackey trace for the benchmark: three instructions in four records, loops over arrays and a stack.
//!
//! Shares follow a recorded trace of a small C program: 76 % fetches, 16 % reads, 6 % writes, 1 % modifies. Same bytes for the
//! same size, always.

use std::io::{self, Write};

/// Where code, heap and stack lie under Valgrind on amd64.
const CODE: u64 = 0x0401_ab70;
const HEAP: u64 = 0x04a4_e040;
const STACK: u64 = 0x1f_ff00_0690;

/// Sizes of instructions, most of them of three to five bytes.
const FETCHES: [u64; 8] = [2, 3, 3, 4, 4, 5, 7, 8];

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let head = b"==7== Lackey, an example Valgrind tool\n==7== Command: ./made\n==7== \n";
    out.write_all(head)?;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let (mut written, mut code, mut heap) = (head.len() as u64, CODE, HEAP);
    let mut buffer = Vec::with_capacity(1 << 16);
    while written < bytes {
        buffer.clear();
        while buffer.len() < (1 << 16) - 64 && written + (buffer.len() as u64) < bytes {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let draw = state >> 32;
            let stack = STACK - draw % 512 * 8;
            match draw % 100 {
                0..76 => {
                    let size = FETCHES[(draw / 100 % 8) as usize];
                    writeln!(buffer, "I  {code:08x},{size}")?;
                    code = if draw.is_multiple_of(11) { CODE + draw % 200_000 } else { code + size };
                }
                76..92 => {
                    heap = if draw.is_multiple_of(7) { HEAP + draw % 4_000_000 / 8 * 8 } else { heap + 8 };
                    writeln!(buffer, " L {heap:08x},8")?;
                }
                92..98 => writeln!(buffer, " S {stack:08x},8")?,
                _ => writeln!(buffer, " M {stack:08x},4")?,
            }
        }
        out.write_all(&buffer)?;
        written += buffer.len() as u64;
    }
    Ok(())
}
