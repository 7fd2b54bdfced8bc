//! A picture of what was drawn.

use md5::{Digest, Md5};

/// Pixels, from the top row down, without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 1: depth or stencil; 3: red, green, blue; 4: and alpha.
    pub(crate) channels: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Image {
    /// MD5 of the pixels without alpha, as hexadecimal.
    pub(crate) fn sum_without_alpha(&self) -> String {
        if self.channels == 4 { self.without_alpha().sum() } else { self.sum() }
    }

    /// MD5 of the pixels in hexadecimal, in capitals as apitrace's players print it.
    pub(crate) fn sum(&self) -> String {
        Md5::digest(&self.pixels).iter().fold(String::with_capacity(32), |mut text, byte| {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789ABCDEF".get(digit as usize).copied().unwrap_or(b'?')));
            }
            text
        })
    }

    /// The same without alpha.
    pub(crate) fn without_alpha(&self) -> Self {
        if self.channels != 4 {
            return self.clone();
        }
        let mut pixels = vec![0; self.pixels.len() / 4 * 3];
        drop_alpha(&self.pixels, &mut pixels);
        Self { channels: 3, pixels, ..*self }
    }

    /// The same with the longer side of so many pixels at most: each pixel is the mean of those that it covers.
    pub(crate) fn smaller(&self, side: u32) -> Self {
        let longer = self.width.max(self.height);
        if longer <= side.max(1) {
            return self.clone();
        }
        let scaled = |length: u32| {
            u32::try_from(u64::from(length) * u64::from(side.max(1)) / u64::from(longer)).unwrap_or(length).max(1)
        };
        let (width, height) = (scaled(self.width), scaled(self.height));
        let mut pixels = Vec::with_capacity(width as usize * height as usize * self.channels);
        // The first and the last column, or row, behind it, that a pixel covers.
        let covered = |at: u32, of: u32, from: u32| {
            let edge = |at: u32| (u64::from(at) * u64::from(from) / u64::from(of)) as usize;
            (edge(at), edge(at + 1).max(edge(at) + 1))
        };
        let row_bytes = self.width as usize * self.channels;
        for y in 0..height {
            let (top, bottom) = covered(y, height, self.height);
            for x in 0..width {
                let (left, right) = covered(x, width, self.width);
                let mut sums = [0_u64; 4];
                for row in top..bottom {
                    let from = row * row_bytes + left * self.channels;
                    let part = self.pixels.get(from..from + (right - left) * self.channels).unwrap_or_default();
                    for pixel in part.chunks_exact(self.channels) {
                        sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += u64::from(*value));
                    }
                }
                let count = ((bottom - top) * (right - left)) as u64;
                pixels.extend(sums.iter().take(self.channels).map(|sum| ((sum + count / 2) / count) as u8));
            }
        }
        Self { width, height, channels: self.channels, pixels }
    }

    /// Turns rows from the bottom up, of one channel or of four, into a picture.
    pub(crate) fn of_rows((width, height): (u32, u32), rows: &[u8], of: usize, has_alpha: bool) -> Self {
        let channels = if of == 4 && !has_alpha { 3 } else { of };
        let mut pixels = vec![0; width as usize * height as usize * channels];
        let from = rows.chunks_exact((width as usize * of).max(1)).rev();
        for (from, to) in from.zip(pixels.chunks_exact_mut((width as usize * channels).max(1))) {
            if channels == of {
                to.copy_from_slice(from);
            } else {
                drop_alpha(from, to);
            }
        }
        Self { width, height, channels, pixels }
    }
}

/// Copies pixels without their alpha.
fn drop_alpha(from: &[u8], to: &mut [u8]) {
    for ([red, green, blue, _], to) in from.as_chunks::<4>().0.iter().zip(to.as_chunks_mut::<3>().0) {
        *to = [*red, *green, *blue];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_pictures_have_the_means() {
        let image = Image { width: 4, height: 2, channels: 1, pixels: vec![0, 2, 10, 20, 4, 6, 30, 40] };
        let small = image.smaller(2);
        assert_eq!((small.width, small.height, small.pixels), (2, 1, vec![3, 25]));
        assert_eq!(image.smaller(4), image);
        assert_eq!(image.smaller(3).pixels.len(), 3);
    }

    #[test]
    fn the_top_row_is_first() {
        let rows = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18];
        assert_eq!(Image::of_rows((2, 2), &rows, 4, false).pixels, [11, 12, 13, 15, 16, 17, 1, 2, 3, 5, 6, 7]);
        assert_eq!(Image::of_rows((2, 2), &rows, 4, true).pixels.get(..4), Some(&[11, 12, 13, 14][..]));
        assert_eq!(Image::of_rows((2, 2), &[1, 2, 3, 4], 1, false).pixels, [3, 4, 1, 2]);
    }
}
