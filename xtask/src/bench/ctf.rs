//! A large trace in the Common Trace Format for the benchmark, as LTTng writes the functions of a program: packets of
//! 64 KiB, short times, addresses. Same bytes for the same size, always.

use std::io::{self, Write};

use crate::tar::header;

const PACKET_BYTES: u64 = 1 << 16;

const META: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
clock { name = monotonic; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := short_time;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := long_time;
stream {
	id = 0;
	packet.context := struct {
		long_time timestamp_begin; long_time timestamp_end; uint64_t content_size; uint64_t packet_size;
		uint64_t events_discarded; uint32_t cpu_id;
	};
	event.header := struct {
		enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
		variant <id> {
			struct { short_time timestamp; } compact;
			struct { uint32_t id; long_time timestamp; } extended;
		} v;
	} align(8);
	event.context := struct { uint32_t _vtid; };
};
event {
	id = 0; stream_id = 0; name = \"lttng_ust_cyg_profile:func_entry\";
	fields := struct { integer { size = 64; base = 16; } _addr; integer { size = 64; base = 16; } _call_site; };
};
event {
	id = 1; stream_id = 0; name = \"lttng_ust_cyg_profile:func_exit\";
	fields := struct { integer { size = 64; base = 16; } _addr; integer { size = 64; base = 16; } _call_site; };
};
";

/// Writes about `bytes` bytes of a trace.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    out.write_all(&header("metadata", META.len() as u64))?;
    let mut text = META.as_bytes().to_vec();
    text.resize(text.len().next_multiple_of(512), 0);
    out.write_all(&text)?;
    let packets = bytes.div_ceil(PACKET_BYTES);
    out.write_all(&header("channel0_0", packets * PACKET_BYTES))?;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    let (mut time, mut open) = (1_000_000_u64, Vec::new());
    for _ in 0..packets {
        let (begin, mut events) = (time, Vec::new());
        // An event has 24 bytes, the head of a packet 52.
        for _ in 0..(PACKET_BYTES - 52) / 24 {
            time += 20 + random(500);
            let enters = open.is_empty() || (open.len() < 20 && random(2) == 0);
            let address = if enters { 0x40_0000 + random(200) * 64 } else { open.pop().unwrap_or(0) };
            if enters {
                open.push(address);
            }
            let head = u32::from(!enters) | ((time & ((1 << 27) - 1)) as u32) << 5;
            events.extend(head.to_le_bytes());
            events.extend(7_u32.to_le_bytes());
            events.extend(address.to_le_bytes());
            events.extend((address + 5).to_le_bytes());
        }
        let mut packet = 0xC1FC_1FC1_u32.to_le_bytes().to_vec();
        packet.extend([0; 4]);
        for value in [begin, time, (52 + events.len() as u64) * 8, PACKET_BYTES * 8, 0] {
            packet.extend(value.to_le_bytes());
        }
        packet.extend([0; 4]);
        packet.extend(events);
        packet.resize(PACKET_BYTES as usize, 0);
        out.write_all(&packet)?;
    }
    out.write_all(&[0; 1024])
}
