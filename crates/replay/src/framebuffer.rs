//! Reads what was drawn: color buffers, depth and stencil, of windows and of framebuffer objects.

use anytrace_apitrace::tools::gl::kind::Kind;

use crate::gl::Gl;
use crate::pixels::Image;

/// What of a framebuffer a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Part {
    /// The color buffer that is drawn to first, where only that is wanted.
    #[default]
    Drawn,
    /// A color buffer, by its number among those that are drawn to at the same time.
    Color(u32),
    /// Depth: black is near.
    Depth,
    /// Stencil.
    Stencil,
}

impl Part {
    /// How apitrace's players call it in names of files; nothing for [`Part::Drawn`].
    pub fn name(self) -> Option<String> {
        match self {
            Self::Drawn => None,
            Self::Color(number) => Some(format!("mrt{number}")),
            Self::Depth => Some("z".to_owned()),
            Self::Stencil => Some("s".to_owned()),
        }
    }

    /// The part of a name; `None` for names of nothing.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "z" => Some(Self::Depth),
            "s" => Some(Self::Stencil),
            _ => name.strip_prefix("mrt")?.parse().ok().map(Self::Color),
        }
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

/// `GL_COLOR_ATTACHMENT0`, `GL_DEPTH_ATTACHMENT`, `GL_STENCIL_ATTACHMENT`.
const COLOR: u32 = 0x8ce0;
const DEPTH: u32 = 0x8d00;
const STENCIL: u32 = 0x8d20;

/// Why there is no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoImage {
    /// Nothing that has a size is attached where is drawn to.
    NoSize,
    /// The driver refuses to read it, with this error: it has integers, or samples that cannot be resolved.
    Refused(u32),
}

/// A framebuffer that is being read. All state is left as it was; errors before and in between are lost.
pub(crate) struct Reading<'g> {
    gl: &'g Gl,
    source: Source,
    is_es2: bool,
    is_window: bool,
    draw_before: u32,
    read_before: u32,
    pack_before: u32,
    packing: Vec<(u32, i32, i32)>,
}

impl<'g> Reading<'g> {
    /// Begins to read where is drawn to.
    pub(crate) fn begin(gl: &'g Gl, source: Source) -> Self {
        let is_es2 = source.is_es && source.major < 3;
        gl.clear_errors();
        let read_before = gl.state(if is_es2 { 0x8ca6 } else { 0x8caa }) as u32;
        let draw_before = gl.state(0x8ca6) as u32;
        let is_window = source.is_window || draw_before == 0;
        // GL_PIXEL_PACK_BUFFER_BINDING.
        let pack_before = if is_es2 { 0 } else { gl.state(0x88ed) as u32 };
        let known = match (is_es2, source.is_es) {
            (true, _) => 1,
            (_, true) => 4,
            _ => PACKING.len(),
        };
        let packing = PACKING.iter().take(known).map(|(name, plain)| (*name, *plain, gl.state(*name)));
        let packing = packing.filter(|(_, plain, before)| plain != before).collect();
        let this = Self { gl, source, is_es2, is_window, draw_before, read_before, pack_before, packing };
        this.bind(this.read_target(), this.wanted(), read_before);
        if pack_before != 0 {
            gl.bind_buffer(0x88eb, 0);
        }
        this.packing.iter().for_each(|(name, plain, _)| gl.pixel_store(*name, *plain));
        gl.clear_errors();
        this
    }

    /// Leaves all state as it was.
    pub(crate) fn end(self) {
        self.packing.iter().for_each(|(name, _, before)| self.gl.pixel_store(*name, *before));
        if self.pack_before != 0 {
            self.gl.bind_buffer(0x88eb, self.pack_before);
        }
        self.bind(self.read_target(), self.read_before, self.wanted());
        self.gl.clear_errors();
    }

    /// `GL_FRAMEBUFFER` for OpenGL ES 2, else `GL_READ_FRAMEBUFFER`.
    fn read_target(&self) -> u32 {
        if self.is_es2 { 0x8d40 } else { 0x8ca8 }
    }

    /// `GL_FRAMEBUFFER` for OpenGL ES 2, else `GL_DRAW_FRAMEBUFFER`.
    fn draw_target(&self) -> u32 {
        if self.is_es2 { 0x8d40 } else { 0x8ca9 }
    }

    /// The framebuffer that is read.
    fn wanted(&self) -> u32 {
        if self.is_window { 0 } else { self.draw_before }
    }

    fn bind(&self, target: u32, name: u32, before: u32) {
        if name != before {
            self.gl.bind_framebuffer(target, name);
        }
    }

    /// Everything that can be read: OpenGL ES reads neither depth nor stencil.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let has = |attachment| self.gl.attachment(self.draw_target(), attachment, 0x8cd0) != 0;
        let (mut parts, deep) = match (self.is_window, self.is_es2) {
            (true, _) => (vec![Part::Color(0)], (true, true)),
            (false, true) => (vec![Part::Color(0)], (false, false)),
            (false, false) => {
                // GL_MAX_DRAW_BUFFERS, GL_DRAW_BUFFER0.
                let most = self.gl.state(0x8824).clamp(1, 16) as u32;
                let drawn = (0..most).filter(|number| self.gl.state(0x8825 + number) != 0);
                (drawn.map(Part::Color).collect(), (has(DEPTH), has(STENCIL)))
            }
        };
        if !self.source.is_es {
            parts.extend(deep.0.then_some(Part::Depth));
            parts.extend(deep.1.then_some(Part::Stencil));
        }
        self.gl.clear_errors();
        parts
    }

    /// What OpenGL calls a color buffer.
    pub(crate) fn name(&self, part: Part) -> String {
        match self.attachment(part) {
            _ if self.is_window => "GL_BACK".to_owned(),
            attachment => format!("GL_COLOR_ATTACHMENT{}", attachment.saturating_sub(COLOR)),
        }
    }

    /// The attachment of a part.
    fn attachment(&self, part: Part) -> u32 {
        let drawn = |number| if self.is_es2 || self.is_window { 0 } else { self.gl.state(0x8825 + number) as u32 };
        match part {
            Part::Depth => DEPTH,
            Part::Stencil => STENCIL,
            // GL_COLOR_ATTACHMENT0 where nothing else is said.
            Part::Drawn => Some(drawn(0)).filter(|drawn| *drawn != 0).unwrap_or(COLOR),
            Part::Color(number) => Some(drawn(number)).filter(|drawn| *drawn != 0).unwrap_or(COLOR),
        }
    }

    /// Reads a part.
    pub(crate) fn part(&self, part: Part) -> Result<Image, NoImage> {
        let attachment = self.attachment(part);
        let size = if self.is_window { Some(self.source.size) } else { self.size(attachment) };
        let size = size.ok_or(NoImage::NoSize)?;
        let is_color = !matches!(part, Part::Depth | Part::Stencil);
        let buffer = if self.is_window { self.source.window_buffer } else { attachment };
        let buffer_before = if self.is_es2 { 0 } else { self.gl.state(0x0c02) as u32 };
        let changes_buffer = is_color && !self.is_es2 && buffer != 0 && buffer != buffer_before;
        if changes_buffer {
            self.gl.read_buffer(buffer);
        }
        self.gl.clear_errors();
        // GL_SAMPLE_BUFFERS, of what is drawn to.
        let has_samples = !self.is_es2 && !self.is_window && self.gl.state(0x80a8) > 0;
        let read = if has_samples { self.resolved(part, attachment, size) } else { self.pixels(part, size) };
        if changes_buffer {
            self.gl.read_buffer(buffer_before);
        }
        self.gl.clear_errors();
        read
    }

    /// Pixels of the framebuffer for reading.
    fn pixels(&self, part: Part, size: (u32, u32)) -> Result<Image, NoImage> {
        let (rows, channels) = match part {
            Part::Depth => (self.gl.read_depth(size), 1),
            // GL_STENCIL_INDEX; GL_RGBA: OpenGL ES has no other format that it can always read.
            Part::Stencil => (self.gl.read_pixels(size, 0x1901, 1), 1),
            Part::Drawn | Part::Color(_) => (self.gl.read_pixels(size, 0x1908, 4), 4),
        };
        match self.gl.error() {
            0 => Ok(Image::of_rows(size, &rows, channels, self.source.has_alpha)),
            code => Err(NoImage::Refused(code)),
        }
    }

    /// Pixels of several samples, each the mean of its samples.
    fn resolved(&self, part: Part, attachment: u32, size: (u32, u32)) -> Result<Image, NoImage> {
        let refused = NoImage::Refused(0x502);
        // GL_RGBA8 takes what can be read as colors; depth and stencil are copied in their own format only.
        let (format, mask) = match part {
            Part::Depth => (self.gl.attachment_format(self.draw_target(), attachment), 0x100),
            Part::Stencil => (self.gl.attachment_format(self.draw_target(), attachment), 0x400),
            Part::Drawn | Part::Color(_) => (0x8058, 0x4000),
        };
        let made = (self.gl.generate(Kind::Framebuffer), self.gl.generate(Kind::Renderbuffer));
        let (Some(framebuffer), Some(renderbuffer)) = made else { return Err(refused) };
        self.gl.renderbuffer_storage(renderbuffer, format, size);
        self.gl.bind_framebuffer(self.draw_target(), framebuffer);
        let to = if mask == 0x4000 { COLOR } else { attachment };
        self.gl.attach_renderbuffer(self.draw_target(), to, renderbuffer);
        if part == Part::Stencil || part == Part::Depth {
            // Formats with both are complete only with both.
            let other = if part == Part::Depth { STENCIL } else { DEPTH };
            self.gl.attach_renderbuffer(self.draw_target(), other, renderbuffer);
            self.gl.clear_errors();
        }
        self.gl.blit(size, mask);
        let read = match self.gl.error() {
            0 => {
                self.gl.bind_framebuffer(self.read_target(), framebuffer);
                self.pixels(part, size)
            }
            code => Err(NoImage::Refused(code)),
        };
        self.gl.bind_framebuffer(self.read_target(), self.wanted());
        self.gl.bind_framebuffer(self.draw_target(), self.draw_before);
        self.gl.delete(Kind::Framebuffer, framebuffer);
        self.gl.delete(Kind::Renderbuffer, renderbuffer);
        read
    }

    /// Pixels of an attachment of the framebuffer for drawing; `None` if nothing is attached.
    fn size(&self, attachment: u32) -> Option<(u32, u32)> {
        let of = |name| self.gl.attachment(self.draw_target(), attachment, name);
        // Its type, its name and its level.
        let (kind, name) = (of(0x8cd0), of(0x8cd1) as u32);
        let size = match kind {
            0x8d41 => self.gl.renderbuffer_size(name),
            0x1702 => self.gl.texture_size(name, of(0x8cd2)),
            _ => return None,
        };
        (size.0 > 0 && size.1 > 0).then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_as_in_files() {
        for part in [Part::Color(0), Part::Color(11), Part::Depth, Part::Stencil] {
            assert_eq!(part.name().and_then(|name| Part::of_name(&name)), Some(part));
        }
        assert_eq!((Part::Drawn.name(), Part::of_name("mrt"), Part::of_name("")), (None, None, None));
    }
}
