//! The functions that the replayer calls itself: it reads pixels and state, and leaves no error and no state behind.
#![allow(unsafe_code, reason = "functions of the driver are called by address")]

use std::ffi::c_void;

use anytrace_apitrace::tools::gl::kind::Kind;
use anytrace_core::Error;

use crate::egl::Screen;
use crate::invoke::{Arguments, Function, call};

/// Functions of OpenGL by what they are called for.
pub(crate) struct Gl {
    get_integers: Function,
    get_error: Function,
    flush: Function,
    finish: Function,
    bind_framebuffer: Option<Function>,
    read_buffer: Option<Function>,
    bind_buffer: Option<Function>,
    pixel_store: Function,
    read_pixels: Function,
    buffer_parameter: Option<Function>,
    named_buffer_parameter: Option<Function>,
    attachment_parameter: Option<Function>,
    texture_level: Option<Function>,
    bound_texture_level: Option<Function>,
    bind_texture: Option<Function>,
    renderbuffer_parameter: Option<Function>,
    bind_renderbuffer: Option<Function>,
    fence_sync: Option<Function>,
    client_wait_sync: Option<Function>,
    delete_sync: Option<Function>,
    framebuffer_renderbuffer: Option<Function>,
    renderbuffer_storage: Option<Function>,
    blit_framebuffer: Option<Function>,
    enable: Function,
    disable: Function,
    is_enabled: Function,
    client_unit: Option<Function>,
    attribute: Option<Function>,
    queries: QueryFunctions,
    get_string: Function,
    messages: Option<Function>,
    generate: [(Kind, Option<Function>); 4],
    delete: [(Kind, Option<Function>); 2],
}

/// Functions for queries: of OpenGL, else of the extension for OpenGL ES.
struct QueryFunctions {
    generate: Option<Function>,
    begin: Option<Function>,
    end: Option<Function>,
    counter: Option<Function>,
    about: Option<Function>,
    result: Option<Function>,
    integers: Option<Function>,
}

impl QueryFunctions {
    fn load(screen: &Screen) -> Self {
        let either = |name: &str| screen.function(name).or_else(|| screen.function(&format!("{name}EXT")));
        Self {
            generate: either("glGenQueries"),
            begin: either("glBeginQuery"),
            end: either("glEndQuery"),
            counter: either("glQueryCounter"),
            about: either("glGetQueryiv"),
            result: either("glGetQueryObjectui64v"),
            integers: either("glGetInteger64v"),
        }
    }
}

impl Gl {
    pub(crate) fn load(screen: &Screen) -> Result<Self, Error> {
        let of = |name: &str| {
            let absent = || Error::unsupported(format!("the driver of OpenGL has no {name}"));
            screen.function(name).ok_or_else(absent)
        };
        Ok(Self {
            get_integers: of("glGetIntegerv")?,
            get_error: of("glGetError")?,
            flush: of("glFlush")?,
            finish: of("glFinish")?,
            pixel_store: of("glPixelStorei")?,
            read_pixels: of("glReadPixels")?,
            bind_framebuffer: screen.function("glBindFramebuffer"),
            read_buffer: screen.function("glReadBuffer"),
            bind_buffer: screen.function("glBindBuffer"),
            buffer_parameter: screen.function("glGetBufferParameteriv"),
            named_buffer_parameter: screen.function("glGetNamedBufferParameteriv"),
            attachment_parameter: screen.function("glGetFramebufferAttachmentParameteriv"),
            texture_level: screen.function("glGetTextureLevelParameteriv"),
            bound_texture_level: screen.function("glGetTexLevelParameteriv"),
            bind_texture: screen.function("glBindTexture"),
            renderbuffer_parameter: screen.function("glGetRenderbufferParameteriv"),
            bind_renderbuffer: screen.function("glBindRenderbuffer"),
            fence_sync: screen.function("glFenceSync"),
            client_wait_sync: screen.function("glClientWaitSync"),
            delete_sync: screen.function("glDeleteSync"),
            framebuffer_renderbuffer: screen.function("glFramebufferRenderbuffer"),
            renderbuffer_storage: screen.function("glRenderbufferStorage"),
            blit_framebuffer: screen.function("glBlitFramebuffer"),
            queries: QueryFunctions::load(screen),
            get_string: of("glGetString")?,
            messages: screen.function("glGetDebugMessageLog").or_else(|| screen.function("glGetDebugMessageLogKHR")),
            enable: of("glEnable")?,
            disable: of("glDisable")?,
            is_enabled: of("glIsEnabled")?,
            client_unit: screen.function("glClientActiveTexture"),
            attribute: screen.function("glGetVertexAttribiv"),
            delete: [
                (Kind::Framebuffer, screen.function("glDeleteFramebuffers")),
                (Kind::Renderbuffer, screen.function("glDeleteRenderbuffers")),
            ],
            generate: [
                (Kind::Texture, screen.function("glGenTextures")),
                (Kind::Buffer, screen.function("glGenBuffers")),
                (Kind::Framebuffer, screen.function("glGenFramebuffers")),
                (Kind::Renderbuffer, screen.function("glGenRenderbuffers")),
            ],
        })
    }

    /// A function with integers as parameters, in the current context.
    pub(crate) fn plain(function: Function, values: &[u64]) -> u64 {
        let mut arguments = Arguments::default();
        values.iter().for_each(|value| arguments.integer(*value));
        // SAFETY: all functions of this module have integers and pointers as parameters; each method passes those of its
        // function, and pointers to room for what it writes.
        unsafe { call(function, &arguments) }
    }

    /// A value of state; 0 if the driver does not have it.
    pub(crate) fn state(&self, name: u32) -> i32 {
        // Some states have several values: none that is asked for here has more.
        let mut values = [0_i32; 16];
        Self::plain(self.get_integers, &[u64::from(name), values.as_mut_ptr() as u64]);
        values.first().copied().unwrap_or(0)
    }

    /// Whether something is enabled; what the driver does not know is not.
    pub(crate) fn is_enabled(&self, name: u32) -> bool {
        Self::plain(self.is_enabled, &[u64::from(name)]) as u8 != 0
    }

    /// Whether something of a unit for textures is enabled. `unit`: as `GL_TEXTURE0` and so on; 0: the first.
    pub(crate) fn is_unit_enabled(&self, unit: u32, name: u32) -> bool {
        let Some(select) = self.client_unit else { return self.is_enabled(name) };
        // GL_CLIENT_ACTIVE_TEXTURE, GL_TEXTURE0.
        let before = self.state(0x84e1) as u32;
        Self::plain(select, &[u64::from(unit.max(0x84c0))]);
        let is_enabled = self.is_enabled(name);
        Self::plain(select, &[u64::from(before)]);
        is_enabled
    }

    /// What the driver knows of a vertex attribute; 0 if it knows nothing.
    pub(crate) fn attribute(&self, index: u32, name: u32) -> i32 {
        let mut values = [0_i32; 16];
        if let Some(function) = self.attribute {
            Self::plain(function, &[u64::from(index), u64::from(name), values.as_mut_ptr() as u64]);
        }
        values.first().copied().unwrap_or(0)
    }

    /// A string of the driver's, such as `GL_RENDERER`.
    pub(crate) fn text(&self, name: u32) -> Option<String> {
        let text = Self::plain(self.get_string, &[u64::from(name)]) as *const std::ffi::c_char;
        // SAFETY: it is a string of the driver's that ends with null and stays as long as the context.
        (!text.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub(crate) fn error(&self) -> u32 {
        Self::plain(self.get_error, &[]) as u32
    }

    /// Errors of what is asked here must not be found by the calls of the trace, nor the other way round.
    pub(crate) fn clear_errors(&self) {
        for _ in 0..16 {
            if self.error() == 0 {
                return;
            }
        }
    }

    /// The driver keeps messages from now on.
    pub(crate) fn begin_messages(&self) {
        // GL_DEBUG_OUTPUT, GL_DEBUG_OUTPUT_SYNCHRONOUS.
        for name in [0x92e0, 0x8242] {
            Self::plain(self.enable, &[name]);
        }
        self.clear_errors();
    }

    /// The driver's next message; those of the program itself and mere notifications are omitted.
    pub(crate) fn debug_message(&self) -> Option<String> {
        let function = self.messages?;
        loop {
            let mut text = vec![0_u8; 4096];
            let [mut source, mut kind, mut id, mut severity, mut length] = [0_u32; 5];
            let about = [&mut source, &mut kind, &mut id, &mut severity, &mut length];
            let [source_at, kind_at, id_at, severity_at, length_at] = about.map(|value| (&raw mut *value) as u64);
            let (room, to) = (text.len() as u64, text.as_mut_ptr() as u64);
            let all = [1, room, source_at, kind_at, id_at, severity_at, length_at, to];
            if Self::plain(function, &all) as u32 == 0 {
                return None;
            }
            // GL_DEBUG_SOURCE_THIRD_PARTY, GL_DEBUG_SOURCE_APPLICATION; GL_DEBUG_SEVERITY_NOTIFICATION.
            if !matches!(source, 0x8249 | 0x824a) && severity != 0x826b {
                let length = (length as usize).saturating_sub(1).min(text.len());
                return Some(String::from_utf8_lossy(text.get(..length)?).trim_end().to_owned());
            }
        }
    }

    pub(crate) fn flush(&self) {
        Self::plain(self.flush, &[]);
    }

    pub(crate) fn finish(&self) {
        Self::plain(self.finish, &[]);
    }

    /// A fence behind all calls so far; 0 if the driver has none.
    pub(crate) fn fence(&self) -> u64 {
        // GL_SYNC_GPU_COMMANDS_COMPLETE.
        self.fence_sync.map_or(0, |function| Self::plain(function, &[0x9117, 0]))
    }

    /// Waits until the driver has reached a fence of this group of contexts, and deletes it.
    pub(crate) fn wait(&self, fence: u64) {
        if let (Some(wait), Some(delete)) = (self.client_wait_sync, self.delete_sync) {
            // GL_SYNC_FLUSH_COMMANDS_BIT, and a second at most.
            Self::plain(wait, &[fence, 1, 1_000_000_000]);
            Self::plain(delete, &[fence]);
        }
    }

    pub(crate) fn bind_framebuffer(&self, target: u32, name: u32) {
        if let Some(function) = self.bind_framebuffer {
            Self::plain(function, &[u64::from(target), u64::from(name)]);
        }
    }

    pub(crate) fn read_buffer(&self, buffer: u32) {
        if let Some(function) = self.read_buffer {
            Self::plain(function, &[u64::from(buffer)]);
        }
    }

    pub(crate) fn bind_buffer(&self, target: u32, name: u32) {
        if let Some(function) = self.bind_buffer {
            Self::plain(function, &[u64::from(target), u64::from(name)]);
        }
    }

    pub(crate) fn pixel_store(&self, name: u32, value: i32) {
        Self::plain(self.pixel_store, &[u64::from(name), value as u64]);
    }

    /// Reads the lower left part of the framebuffer for reading; rows are packed. `format` has `channels` of a byte.
    pub(crate) fn read_pixels(&self, size: (u32, u32), format: u32, channels: usize) -> Vec<u8> {
        // 0x1401: GL_UNSIGNED_BYTE.
        let mut pixels = vec![0_u8; size.0 as usize * size.1 as usize * channels];
        self.read_to(size, format, 0x1401, pixels.as_mut_ptr().cast());
        pixels
    }

    /// Reads depth in the same way; 255 is 1. Drivers round it in ways of their own when they are asked for bytes.
    pub(crate) fn read_depth(&self, size: (u32, u32)) -> Vec<u8> {
        let mut depths = vec![0_f32; size.0 as usize * size.1 as usize];
        // GL_DEPTH_COMPONENT, GL_FLOAT.
        self.read_to(size, 0x1902, 0x1406, depths.as_mut_ptr().cast());
        depths.iter().map(|depth| (depth.clamp(0.0, 1.0) * 255.0).round() as u8).collect()
    }

    fn read_to(&self, (width, height): (u32, u32), format: u32, kind: u64, to: *mut c_void) {
        let about = [0, 0, u64::from(width), u64::from(height), u64::from(format), kind, to as u64];
        Self::plain(self.read_pixels, &about);
    }

    /// Bytes of the buffer at a target, or with a name.
    pub(crate) fn buffer_size(&self, target: u32, is_name: bool) -> u64 {
        let function = if is_name { self.named_buffer_parameter } else { self.buffer_parameter };
        let mut size = [0_i32; 2];
        if let Some(function) = function {
            // 0x8764: GL_BUFFER_SIZE.
            Self::plain(function, &[u64::from(target), 0x8764, size.as_mut_ptr() as u64]);
        }
        size.first().map_or(0, |size| u64::from(*size as u32))
    }

    /// A parameter of an attachment of the framebuffer for drawing; 0 if there is none.
    pub(crate) fn attachment(&self, target: u32, attachment: u32, name: u32) -> i32 {
        let mut values = [0_i32; 4];
        if let Some(function) = self.attachment_parameter {
            let to = values.as_mut_ptr() as u64;
            Self::plain(function, &[u64::from(target), u64::from(attachment), u64::from(name), to]);
        }
        values.first().copied().unwrap_or(0)
    }

    /// Width and height of a level of a texture; zeros if the driver does not say.
    pub(crate) fn texture_size(&self, texture: u32, level: i32) -> (u32, u32) {
        let get = |function: Option<Function>, of: u64, name: u64| {
            let mut values = [0_i32; 4];
            if let Some(function) = function {
                Self::plain(function, &[of, level as u64, name, values.as_mut_ptr() as u64]);
            }
            values.first().map_or(0, |value| *value as u32)
        };
        // GL_TEXTURE_WIDTH, GL_TEXTURE_HEIGHT.
        let both = |function, of| (get(function, of, 0x1000), get(function, of, 0x1001));
        let size = both(self.texture_level, u64::from(texture));
        let Some(bind) = self.bind_texture.filter(|_| size.0 == 0) else { return size };
        // OpenGL ES, and OpenGL before 4.5, say it only of what is bound: GL_TEXTURE_BINDING_2D, GL_TEXTURE_2D.
        self.clear_errors();
        let before = self.state(0x8069) as u32;
        Self::plain(bind, &[0x0de1, u64::from(texture)]);
        if self.error() != 0 {
            return (0, 0);
        }
        let size = both(self.bound_texture_level, 0x0de1);
        Self::plain(bind, &[0x0de1, u64::from(before)]);
        size
    }

    /// Width and height of a renderbuffer.
    pub(crate) fn renderbuffer_size(&self, name: u32) -> (u32, u32) {
        let [width, height] = self.of_renderbuffer(name, [0x8d42, 0x8d43]);
        (width, height)
    }

    /// Parameters of a renderbuffer.
    fn of_renderbuffer<const N: usize>(&self, name: u32, parameters: [u64; N]) -> [u32; N] {
        let (Some(bind), Some(get)) = (self.bind_renderbuffer, self.renderbuffer_parameter) else { return [0; N] };
        // GL_RENDERBUFFER_BINDING, GL_RENDERBUFFER.
        let before = self.state(0x8ca7);
        Self::plain(bind, &[0x8d41, u64::from(name)]);
        let found = parameters.map(|name| {
            let mut values = [0_i32; 4];
            Self::plain(get, &[0x8d41, name, values.as_mut_ptr() as u64]);
            values.first().map_or(0, |value| *value as u32)
        });
        Self::plain(bind, &[0x8d41, u64::from(before as u32)]);
        found
    }

    /// The format in which an attachment of the framebuffer at a target is stored; 0 if the driver does not say.
    pub(crate) fn attachment_format(&self, target: u32, attachment: u32) -> u32 {
        let name = self.attachment(target, attachment, 0x8cd1) as u32;
        if self.attachment(target, attachment, 0x8cd0) == 0x8d41 {
            // GL_RENDERBUFFER_INTERNAL_FORMAT.
            let [format] = self.of_renderbuffer(name, [0x8d44]);
            return format;
        }
        let mut values = [0_i32; 4];
        if let Some(get) = self.texture_level {
            // GL_TEXTURE_INTERNAL_FORMAT.
            Self::plain(get, &[u64::from(name), 0, 0x1003, values.as_mut_ptr() as u64]);
        }
        values.first().map_or(0, |value| *value as u32)
    }

    /// Gives a renderbuffer storage.
    pub(crate) fn renderbuffer_storage(&self, name: u32, format: u32, (width, height): (u32, u32)) {
        let (Some(bind), Some(store)) = (self.bind_renderbuffer, self.renderbuffer_storage) else { return };
        let before = self.state(0x8ca7);
        Self::plain(bind, &[0x8d41, u64::from(name)]);
        Self::plain(store, &[0x8d41, u64::from(format), u64::from(width), u64::from(height)]);
        Self::plain(bind, &[0x8d41, u64::from(before as u32)]);
    }

    /// Attaches a renderbuffer to the framebuffer at a target.
    pub(crate) fn attach_renderbuffer(&self, target: u32, attachment: u32, name: u32) {
        if let Some(function) = self.framebuffer_renderbuffer {
            Self::plain(function, &[u64::from(target), u64::from(attachment), 0x8d41, u64::from(name)]);
        }
    }

    /// Copies the framebuffer for reading to that for drawing, whatever the scissor says; each pixel is the mean of its
    /// samples.
    pub(crate) fn blit(&self, (width, height): (u32, u32), mask: u32) {
        let Some(function) = self.blit_framebuffer else { return };
        // GL_SCISSOR_TEST.
        let is_cut = self.state(0x0c11) != 0;
        if is_cut {
            Self::plain(self.disable, &[0x0c11]);
        }
        let (width, height) = (u64::from(width), u64::from(height));
        // 0x2600: GL_NEAREST.
        Self::plain(function, &[0, 0, width, height, 0, 0, width, height, u64::from(mask), 0x2600]);
        if is_cut {
            Self::plain(self.enable, &[0x0c11]);
        }
    }

    /// Deletes an object that was made here.
    pub(crate) fn delete(&self, kind: Kind, name: u32) {
        let function = self.delete.iter().find(|(known, _)| *known == kind);
        if let Some((_, Some(function))) = function {
            Self::plain(*function, &[1, (&raw const name) as u64]);
        }
    }

    /// A new name of objects that programs may bind without asking for a name.
    pub(crate) fn generate(&self, kind: Kind) -> Option<u32> {
        let (_, function) = self.generate.iter().find(|(known, _)| *known == kind)?;
        let mut names = [0_u32; 2];
        Self::plain((*function)?, &[1, names.as_mut_ptr() as u64]);
        names.first().copied().filter(|name| *name != 0)
    }

    /// A new query object.
    pub(crate) fn new_query(&self) -> Option<u32> {
        let mut names = [0_u32; 2];
        Self::plain(self.queries.generate?, &[1, names.as_mut_ptr() as u64]);
        names.first().copied().filter(|name| *name != 0)
    }

    /// Whether the driver has queries of a target: `GL_QUERY_COUNTER_BITS`.
    pub(crate) fn has_query(&self, target: u32) -> bool {
        self.queries.counter.is_some() && self.about_query(target, 0x8864) > 0
    }

    fn about_query(&self, target: u32, name: u64) -> i32 {
        let mut values = [0_i32; 2];
        if let Some(function) = self.queries.about {
            Self::plain(function, &[u64::from(target), name, values.as_mut_ptr() as u64]);
        }
        values.first().copied().unwrap_or(0)
    }

    /// The query that counts at a target; 0 if none does.
    pub(crate) fn current_query(&self, target: u32) -> i32 {
        self.about_query(target, 0x8865)
    }

    /// Stores the device's time in a query when all calls so far are done.
    pub(crate) fn query_time(&self, query: u32) {
        if let Some(function) = self.queries.counter {
            Self::plain(function, &[u64::from(query), 0x8e28]);
        }
    }

    pub(crate) fn begin_query(&self, target: u32, query: u32) {
        if let Some(function) = self.queries.begin {
            Self::plain(function, &[u64::from(target), u64::from(query)]);
        }
    }

    pub(crate) fn end_query(&self, target: u32) {
        if let Some(function) = self.queries.end {
            Self::plain(function, &[u64::from(target)]);
        }
    }

    /// The result of a query, when the device has it: `GL_QUERY_RESULT`.
    pub(crate) fn query_result(&self, query: u32) -> u64 {
        let mut value = [0_u64; 2];
        if let Some(function) = self.queries.result {
            Self::plain(function, &[u64::from(query), 0x8866, value.as_mut_ptr() as u64]);
        }
        value.first().copied().unwrap_or(0)
    }

    /// The device's time now, in nanoseconds; 0 if the driver does not say.
    pub(crate) fn timestamp(&self) -> u64 {
        let mut values = [0_i64; 16];
        if let Some(function) = self.queries.integers {
            Self::plain(function, &[0x8e28, values.as_mut_ptr() as u64]);
        }
        values.first().map_or(0, |value| u64::try_from(*value).unwrap_or(0))
    }
}
