//! An image in memory, read from and written as PNG.

use std::io::{BufRead, Seek, Write};

use png::{ColorType, Transformations};

use crate::tools::diff_images::THUMBNAIL;

/// Most pixels of an image; more are refused.
pub const PIXELS_MAX: u64 = 1 << 26;

/// An image: red, green, blue and opacity of each pixel, 8 bits each, from the top left on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    rgba: Vec<u8>,
}

impl Picture {
    /// `None` unless the number of bytes matches the number of pixels.
    pub fn new(width: u32, height: u32, rgba: Vec<u8>) -> Option<Self> {
        let pixels = u64::from(width) * u64::from(height);
        (pixels <= PIXELS_MAX && rgba.len() as u64 == pixels * 4).then_some(Self { width, height, rgba })
    }

    /// Reads a PNG. Channels of 16 bits are cut to 8.
    ///
    /// # Errors
    /// The reason it cannot be read.
    pub fn read(input: impl BufRead + Seek) -> Result<Self, String> {
        let mut decoder = png::Decoder::new(input);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let (width, height) = reader.info().size();
        if u64::from(width) * u64::from(height) > PIXELS_MAX {
            return Err(format!("{width} x {height} pixels exceed the limit of {PIXELS_MAX}"));
        }
        let bytes = reader.output_buffer_size().ok_or("too large")?;
        let mut raw = vec![0; bytes];
        let info = reader.next_frame(&mut raw).map_err(|error| error.to_string())?;
        raw.truncate(info.buffer_size());
        let rgba = match info.color_type {
            ColorType::Rgba => raw,
            ColorType::Rgb => widen::<3>(&raw, |[red, green, blue]| [red, green, blue, 255]),
            ColorType::GrayscaleAlpha => widen::<2>(&raw, |[gray, alpha]| [gray, gray, gray, alpha]),
            ColorType::Grayscale => widen::<1>(&raw, |[gray]| [gray, gray, gray, 255]),
            // Palettes are expanded above.
            ColorType::Indexed => return Err("the palette has no colors".to_owned()),
        };
        Self::new(width, height, rgba).ok_or_else(|| "pixels are missing".to_owned())
    }

    /// Writes a PNG, without an alpha channel if all of it is opaque.
    ///
    /// # Errors
    /// What the writer returns.
    pub fn write(&self, out: impl Write) -> Result<(), String> {
        let is_opaque = self.pixels().all(|[.., alpha]| alpha == 255);
        let mut encoder = png::Encoder::new(out, self.width, self.height);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(if is_opaque { ColorType::Rgb } else { ColorType::Rgba });
        let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
        let written = if is_opaque {
            let rgb: Vec<u8> = self.pixels().flat_map(|[red, green, blue, _]| [red, green, blue]).collect();
            writer.write_image_data(&rgb)
        } else {
            writer.write_image_data(&self.rgba)
        };
        written.and_then(|()| writer.finish()).map_err(|error| error.to_string())
    }

    /// Columns and rows.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.rgba
    }

    /// All pixels.
    pub fn pixels(&self) -> impl Iterator<Item = [u8; 4]> {
        self.rgba.as_chunks::<4>().0.iter().copied()
    }

    /// A smaller image of at most [`THUMBNAIL`] columns and rows; each pixel is the mean of those it represents. `None`
    /// if the image is small enough.
    pub fn thumbnail(&self) -> Option<Self> {
        let most = self.width.max(self.height);
        if most <= THUMBNAIL {
            return None;
        }
        let scaled = |length: u32| {
            let length = u64::from(length) * u64::from(THUMBNAIL) / u64::from(most);
            u32::try_from(length.max(1)).unwrap_or(1)
        };
        let (width, height) = (scaled(self.width), scaled(self.height));
        let mut rgba = Vec::with_capacity(width as usize * height as usize * 4);
        for row in 0..height {
            for column in 0..width {
                rgba.extend(self.mean(span(column, width, self.width), span(row, height, self.height)));
            }
        }
        Self::new(width, height, rgba)
    }

    fn mean(&self, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> [u8; 4] {
        let (mut sums, mut count) = ([0_u64; 4], 0);
        for row in rows {
            let start = row * self.width as usize * 4;
            let line = self.rgba.get(start + columns.start * 4..start + columns.end * 4).unwrap_or_default();
            for pixel in line.as_chunks::<4>().0 {
                count += 1;
                sums.iter_mut().zip(pixel).for_each(|(sum, level)| *sum += u64::from(*level));
            }
        }
        sums.map(|sum| u8::try_from((sum + count / 2) / count.max(1)).unwrap_or(255))
    }
}

/// The range of source pixels that one pixel of the smaller image represents.
fn span(at: u32, shorter: u32, length: u32) -> std::ops::Range<usize> {
    let edge = |at: u32| (u64::from(at) * u64::from(length) / u64::from(shorter.max(1))) as usize;
    edge(at)..edge(at + 1).max(edge(at) + 1)
}

fn widen<const N: usize>(raw: &[u8], pixel: impl Fn([u8; N]) -> [u8; 4]) -> Vec<u8> {
    raw.as_chunks::<N>().0.iter().flat_map(|channels| pixel(*channels)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Picture, String> {
        Picture::read(Cursor::new(bytes))
    }

    fn gradient(width: u32, height: u32, alpha: u8) -> Picture {
        let rgba = (0..width * height).flat_map(|n| [n as u8, (n >> 3) as u8, (n >> 6) as u8, alpha]).collect();
        Picture::new(width, height, rgba).unwrap()
    }

    #[test]
    fn written_images_are_read_back() {
        for alpha in [255, 7] {
            let picture = gradient(17, 5, alpha);
            let mut bytes = Vec::new();
            picture.write(&mut bytes).unwrap();
            assert_eq!(read(&bytes).unwrap(), picture);
            for at in 0..bytes.len() {
                let _ = read(&bytes[..at]);
                bytes[at] ^= 0x10;
                let _ = read(&bytes);
                bytes[at] ^= 0x10;
            }
        }
    }

    #[test]
    fn thumbnails_are_small_and_keep_their_shape() {
        assert_eq!(gradient(320, 20, 255).thumbnail(), None);
        assert_eq!(gradient(640, 20, 255).thumbnail().unwrap().size(), (320, 10));
        assert_eq!(gradient(1, 1000, 255).thumbnail().unwrap().size(), (1, 320));
        let flat = Picture::new(700, 3, [9, 8, 7, 6].repeat(2100)).unwrap().thumbnail().unwrap();
        assert!(flat.pixels().all(|pixel| pixel == [9, 8, 7, 6]));
    }

    #[test]
    fn a_huge_size_is_refused_before_memory_is_taken() {
        let mut bytes = Vec::new();
        gradient(1, 1, 255).write(&mut bytes).unwrap();
        bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert!(read(&bytes).is_err());
    }
}
