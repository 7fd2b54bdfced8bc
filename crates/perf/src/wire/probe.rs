//! Is this a recording of perf? `perf.data` has a magic number; text is recognized by lines that are samples.

use anytrace_core::{Confidence, Head};

use super::header::{FILE_BYTES, MAGIC_OLD, PIPE_BYTES, endian};
use super::text::{Content, read};
use anytrace_core::bytes::array_at;

/// Lines that are read.
const LINES_MAX: usize = 400;

/// The answer for the first bytes of a file.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    if let Some(endian) = endian(head.bytes) {
        let size = array_at(head.bytes, 8).map(|bytes| endian.u64(bytes));
        return match size {
            Some(PIPE_BYTES | FILE_BYTES) => Confidence::Certain,
            _ => Confidence::Likely,
        };
    }
    if head.bytes.starts_with(MAGIC_OLD) {
        return Confidence::Likely;
    }
    // The last line may be cut.
    let end = if head.is_complete() { Some(head.bytes.len()) } else { memchr::memrchr(b'\n', head.bytes) };
    text(head.bytes.get(..end.unwrap_or(0)).unwrap_or_default())
}

/// Samples have a time: without one, a line looks like too many others.
fn text(bytes: &[u8]) -> Confidence {
    let (mut samples, mut others) = (0, 0);
    for line in bytes.split(|byte| *byte == b'\n').take(LINES_MAX) {
        match read(line).map(|line| line.content) {
            Some(Content::Head(head)) if head.time_ns.is_some() && !head.comm.is_empty() => samples += 1,
            Some(Content::Frame(_) | Content::Blank | Content::Comment) => {}
            Some(Content::Detail) if samples > 0 => {}
            _ => others += 1,
        }
        if samples == 0 && others > 0 {
            return Confidence::No;
        }
    }
    match samples {
        0 => Confidence::No,
        _ if others == 0 => Confidence::Certain,
        _ if others <= samples => Confidence::Likely,
        _ => Confidence::No,
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    #[test]
    fn samples_and_the_magic_number_decide() {
        let of = |bytes: &[u8]| probe(&Input::from_bytes("x", bytes.to_vec()).head());
        assert_eq!(of(b"PERFILE2\x10\0\0\0\0\0\0\0"), Confidence::Certain);
        assert_eq!(of(b"2ELIFREP\0\0\0\0\0\0\0\x68"), Confidence::Certain);
        assert_eq!(of(b"PERFILE2\x11\0\0\0\0\0\0\0"), Confidence::Likely);
        assert_eq!(of(b"PERFFILE"), Confidence::Likely);
        let sample = b"t 32446 28736.556672:    1003009 cpu-clock: \n\t            117b leaf+0x42 (/tmp/pf/t)\n\n";
        assert_eq!(of(sample), Confidence::Certain);
        assert_eq!(of(&[&b"# header\n"[..], sample].concat()), Confidence::Certain);
        assert_eq!(of(&[sample, &b"damage\n"[..]].concat()), Confidence::Likely);
        for text in [&b""[..], b"a b c\n", b"\t12 f (x)\n", b"# only this\n", b"t 5 cycles: \n", b"[2026] 1.5: x\n"] {
            assert_eq!(of(text), Confidence::No, "{text:?}");
        }
    }
}
