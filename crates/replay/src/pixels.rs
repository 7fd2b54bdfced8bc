//! Reads what was drawn.

use md5::{Digest, Md5};

use crate::gl::Gl;

/// Pixels, from the top row down, without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 3: red, green, blue; 4: and alpha.
    pub(crate) channels: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Image {
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
        let pixels = if self.channels == 4 {
            self.pixels.as_chunks::<4>().0.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect()
        } else {
            self.pixels.clone()
        };
        Self { channels: 3, pixels, ..*self }
    }
}

/// What is known about the context whose pixels are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) is_es: bool,
    pub(crate) major: u32,
    /// What the color buffer of its drawable is called; 0: it has no name.
    pub(crate) window_buffer: u32,
    /// Pixels of its drawable.
    pub(crate) size: (u32, u32),
    /// The drawable, even while a framebuffer object is drawn to.
    pub(crate) is_window: bool,
    /// Keep alpha.
    pub(crate) has_alpha: bool,
}

/// How pixels are packed: alignment, row length, rows and pixels skipped, bytes swapped, lowest bit first, image height,
/// images skipped. OpenGL ES 2 has the first, OpenGL ES 3 the first four.
const PACKING: [(u32, i32); 8] =
    [(0x0d05, 1), (0x0d02, 0), (0x0d03, 0), (0x0d04, 0), (0x0d00, 0), (0x0d01, 0), (0x806c, 0), (0x806b, 0)];

/// Why there is no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoImage {
    /// Nothing that has a size is attached where is drawn to.
    NoSize,
    /// The driver refuses to read it, with this error: it has several samples, or integers.
    Refused(u32),
}

/// The color buffer that is drawn to. All state is left as it was; errors before and in between are lost.
pub(crate) fn read(gl: &Gl, source: &Source) -> Result<Image, NoImage> {
    let is_es2 = source.is_es && source.major < 3;
    gl.clear_errors();
    // GL_FRAMEBUFFER for OpenGL ES 2, else GL_READ_FRAMEBUFFER and GL_DRAW_FRAMEBUFFER.
    let (read, draw) = if is_es2 { (0x8d40, 0x8d40) } else { (0x8ca8, 0x8ca9) };
    let read_before = gl.state(if is_es2 { 0x8ca6 } else { 0x8caa }) as u32;
    let draw_before = gl.state(0x8ca6) as u32;
    let is_window = source.is_window || draw_before == 0;
    // GL_DRAW_BUFFER0; GL_COLOR_ATTACHMENT0 where nothing else is said.
    let drawn = if is_es2 || is_window { 0 } else { gl.state(0x8825) as u32 };
    let attachment = if drawn == 0 { 0x8ce0 } else { drawn };
    let size = if is_window { Some(source.size) } else { attachment_size(gl, draw, attachment) };
    let Some(size) = size else {
        gl.clear_errors();
        return Err(NoImage::NoSize);
    };
    let wanted = if is_window { 0 } else { draw_before };
    if read_before != wanted {
        gl.bind_framebuffer(read, wanted);
    }
    let buffer_before = if is_es2 { 0 } else { gl.state(0x0c02) as u32 };
    let buffer = if is_window { source.window_buffer } else { attachment };
    let changes_buffer = !is_es2 && buffer != 0 && buffer != buffer_before;
    if changes_buffer {
        gl.read_buffer(buffer);
    }
    // GL_PIXEL_PACK_BUFFER_BINDING.
    let pack = if is_es2 { 0 } else { gl.state(0x88ed) as u32 };
    if pack != 0 {
        gl.bind_buffer(0x88eb, 0);
    }
    let known = if is_es2 {
        1
    } else if source.is_es {
        4
    } else {
        PACKING.len()
    };
    let packing = PACKING.iter().take(known).map(|(name, plain)| (*name, *plain, gl.state(*name)));
    let packing: Vec<_> = packing.filter(|(_, plain, before)| plain != before).collect();
    packing.iter().for_each(|(name, plain, _)| gl.pixel_store(*name, *plain));
    // GL_RGBA: OpenGL ES has no other format that it can always read.
    gl.clear_errors();
    let rows = gl.read_pixels(size, 0x1908, 4);
    let refused = gl.error();
    packing.iter().for_each(|(name, _, before)| gl.pixel_store(*name, *before));
    if pack != 0 {
        gl.bind_buffer(0x88eb, pack);
    }
    if changes_buffer {
        gl.read_buffer(buffer_before);
    }
    if read_before != wanted {
        gl.bind_framebuffer(read, read_before);
    }
    gl.clear_errors();
    if refused == 0 { Ok(image(size, &rows, source.has_alpha)) } else { Err(NoImage::Refused(refused)) }
}

/// Pixels of an attachment of the framebuffer for drawing; `None` if nothing is attached.
fn attachment_size(gl: &Gl, target: u32, attachment: u32) -> Option<(u32, u32)> {
    // Its type, its name and its level.
    let kind = gl.attachment(target, attachment, 0x8cd0);
    let name = gl.attachment(target, attachment, 0x8cd1) as u32;
    let size = match kind {
        0x8d41 => gl.renderbuffer_size(name),
        0x1702 => gl.texture_size(name, gl.attachment(target, attachment, 0x8cd2)),
        _ => return None,
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Turns rows from the bottom up, of four channels, into an image.
fn image((width, height): (u32, u32), rows: &[u8], has_alpha: bool) -> Image {
    let channels = if has_alpha { 4 } else { 3 };
    let mut pixels = Vec::with_capacity(width as usize * height as usize * channels);
    for row in rows.chunks_exact(width as usize * 4).rev() {
        if has_alpha {
            pixels.extend_from_slice(row);
        } else {
            row.as_chunks::<4>().0.iter().for_each(|[red, green, blue, _]| pixels.extend([red, green, blue]));
        }
    }
    Image { width, height, channels, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_row_is_first() {
        let rows = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18];
        assert_eq!(image((2, 2), &rows, false).pixels, [11, 12, 13, 15, 16, 17, 1, 2, 3, 5, 6, 7]);
        assert_eq!(image((2, 2), &rows, true).pixels.get(..4), Some(&[11, 12, 13, 14][..]));
    }
}
