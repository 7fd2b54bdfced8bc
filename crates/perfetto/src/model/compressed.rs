//! Packets that are compressed together in one packet.

use std::io::Read;

/// Decompresses `compressed_packets` (zlib) to at most `bytes_max` bytes. With what could be read comes why it ended,
/// if that is not the end of the stream.
pub(crate) fn inflate(bytes: &[u8], bytes_max: u64) -> (Vec<u8>, Option<String>) {
    let mut out = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(bytes).take(bytes_max.saturating_add(1));
    match decoder.read_to_end(&mut out) {
        Err(error) => (out, Some(error.to_string())),
        Ok(_) if out.len() as u64 > bytes_max => (Vec::new(), Some(format!("more than {bytes_max} bytes"))),
        Ok(_) => (out, None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_stream_is_decompressed_up_to_the_limit() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&[7; 1000]).unwrap_or_else(|error| panic!("{error}"));
        let packed = encoder.finish().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(inflate(&packed, 1000), (vec![7; 1000], None));
        assert!(inflate(&packed, 999).1.is_some_and(|why| why.contains("more than 999")));
        assert!(inflate(&packed[..packed.len() - 6], 1000).1.is_some());
        assert!(inflate(b"no zlib", 1000).1.is_some());
    }
}
