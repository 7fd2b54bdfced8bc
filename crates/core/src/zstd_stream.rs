//! A zstd stream inside a trace, which arrives in pieces.

use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::Error;

/// The largest window is 128 MiB: that of `zstd --ultra -22`, and of zstd's own default limit.
const WINDOW_LOG_MAX: u32 = 27;

/// Most bytes that the decoder gets at once.
const PIECE_BYTES: usize = 4096;

/// What [`ZstdStream::decompress`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decompressed {
    /// Bytes of the input that were used.
    pub used: usize,
    /// Bytes that were written.
    pub written: usize,
    /// The decoder's text, where the bytes do not continue the stream.
    pub fault: Option<String>,
}

/// Decompresses a zstd stream (RFC 8878) that arrives in pieces, into buffers of the caller. A frame that ends may be
/// followed by another one. A frame whose window is larger than 128 MiB is an error.
pub struct ZstdStream {
    decoder: Decoder<'static>,
}

impl std::fmt::Debug for ZstdStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZstdStream").finish_non_exhaustive()
    }
}

impl ZstdStream {
    /// True if bytes begin with the magic number of a frame with data: there, a stream can be read from its start.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
    }

    /// Prepares for the start of a stream.
    ///
    /// # Errors
    /// [`crate::Kind::Limit`] where there is no memory.
    pub fn new() -> Result<Self, Error> {
        let refused = |error| Error::io("cannot prepare a zstd decoder", error);
        let mut decoder = Decoder::new().map_err(refused)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(refused)?;
        Ok(Self { decoder })
    }

    /// Decompresses from `input` into `output` until one is used up. All output of an input was returned when all input
    /// was used and room was left in `output`. After a fault nothing more can be read.
    pub fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Decompressed {
        let mut done = Decompressed::default();
        loop {
            let from = input.get(done.used..).unwrap_or_default();
            // The decoder returns nothing of a call that fails, so that a call should not have many blocks.
            let from = from.get(..PIECE_BYTES).unwrap_or(from);
            let to = output.get_mut(done.written..).unwrap_or_default();
            let has_room = !to.is_empty();
            let status = match self.decoder.run_on_buffers(from, to) {
                Ok(status) => status,
                Err(error) => return Decompressed { fault: Some(error.to_string()), ..done },
            };
            done.used += status.bytes_read;
            done.written += status.bytes_written;
            if !has_room || (status.bytes_read == 0 && status.bytes_written == 0) {
                return done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]], room: usize) -> Result<Vec<u8>, String> {
        let mut stream = ZstdStream::new().unwrap_or_else(|error| panic!("{error}"));
        let (mut out, mut buffer) = (Vec::new(), vec![0; room]);
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let done = stream.decompress(rest, &mut buffer);
                out.extend_from_slice(&buffer[..done.written]);
                rest = &rest[done.used..];
                if let Some(fault) = done.fault {
                    return Err(fault);
                }
                if rest.is_empty() && done.written < room {
                    break;
                }
            }
        }
        Ok(out)
    }

    #[test]
    fn a_stream_in_pieces_is_what_it_was() {
        let plain: Vec<u8> = (0..50_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let packed = zstd::encode_all(&plain[..], 3).unwrap();
        assert!(ZstdStream::begins(&packed) && !ZstdStream::begins(&packed[1..]));
        for room in [1, 1000, 1 << 20] {
            for piece in [1, 333, packed.len()] {
                let pieces: Vec<&[u8]> = packed.chunks(piece).collect();
                assert!(all(&pieces, room).unwrap() == plain, "{room} {piece}");
            }
        }
        assert_eq!(all(&[&packed, &packed], 1000).unwrap().len(), 2 * plain.len(), "a frame may follow another");
    }

    #[test]
    fn damage_is_an_error_and_so_is_a_huge_window() {
        let packed = zstd::encode_all(&b"some text, some text, some text"[..], 3).unwrap();
        assert!(all(&[&packed[6..]], 100).is_err());
        // Magic number, a window of 256 MiB (RFC 8878, 3.1.1.1.2), and a block of zeros.
        let huge = [0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 0x43, 0, 0, 0];
        assert!(all(&[&huge], 100).unwrap_err().contains("memory"), "{:?}", all(&[&huge], 100));
        let large = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 0x43, 0, 0, 0];
        assert_eq!(all(&[&large], 100).unwrap(), [0; 8]);
    }
}
