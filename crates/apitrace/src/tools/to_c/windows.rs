//! Drawables and their required sizes, and the contexts of a trace as made by EGL.

use std::collections::HashMap;

use crate::tools::gl::contexts::System;
use crate::tools::gl::values::{Values, integer};

/// Most drawables tracked; further ones count as the first. Real programs have a handful.
const DRAWABLES_MAX: usize = 256;

/// Largest width and height of a surface.
const SIDE_MAX: u32 = 8192;

/// Most framebuffer bindings and threads followed.
const FOLLOWED_MAX: usize = 1 << 14;

/// What calls reveal about windows. The first drawable represents all unknown ones.
pub(super) struct Windows {
    by_handle: HashMap<u64, usize>,
    sizes: Vec<(u32, u32)>,
    /// Drawables of threads.
    current: HashMap<u64, usize>,
    /// Contexts that draw into a framebuffer object.
    elsewhere: HashMap<u32, bool>,
}

impl Windows {
    pub(super) fn new() -> Self {
        let sizes = vec![(0, 0)];
        Self { by_handle: HashMap::new(), sizes, current: HashMap::new(), elsewhere: HashMap::new() }
    }

    /// Sizes of all drawables; those with an unknown size are small.
    pub(super) fn sizes(&self) -> Vec<(u32, u32)> {
        let side = |side: u32| if side == 0 { 64 } else { side.min(SIDE_MAX) };
        self.sizes.iter().map(|(width, height)| (side(*width), side(*height))).collect()
    }

    /// The drawable of a thread.
    pub(super) fn of_thread(&self, thread: u64) -> usize {
        self.current.get(&thread).copied().unwrap_or(0)
    }

    /// Makes a drawable current on a thread.
    pub(super) fn make_current(&mut self, function: &[u8], values: &Values<'_>, thread: u64) {
        let argument = match function {
            b"wglMakeCurrent" | b"wglMakeContextCurrentARB" | b"wglMakeContextCurrentEXT" => 0,
            _ if function.starts_with(b"glX") || function.starts_with(b"egl") => 1,
            _ => return,
        };
        let handle = values.name(argument).unwrap_or(0);
        let drawable = match self.by_handle.get(&handle) {
            Some(drawable) => *drawable,
            None if handle == 0 || self.sizes.len() >= DRAWABLES_MAX => 0,
            None => {
                self.sizes.push((0, 0));
                self.by_handle.insert(handle, self.sizes.len() - 1);
                self.sizes.len() - 1
            }
        };
        if self.current.len() < FOLLOWED_MAX || self.current.contains_key(&thread) {
            self.current.insert(thread, drawable);
        }
    }

    /// Learns sizes from a call of a context.
    pub(super) fn take(&mut self, stem: &str, values: &Values<'_>, context: u32, thread: u64) {
        let number = |index: usize| values.float(index).unwrap_or(0.0);
        let corner = match stem {
            "glBindFramebuffer" => {
                // 0x8CA8 is the read framebuffer.
                let is_elsewhere = values.integer(1).unwrap_or(0) != 0;
                let is_known = self.elsewhere.len() < FOLLOWED_MAX || self.elsewhere.contains_key(&context);
                if values.integer(0) != Some(0x8ca8) && is_known {
                    self.elsewhere.insert(context, is_elsewhere);
                }
                return;
            }
            "glViewport" => (number(0) + number(2), number(1) + number(3)),
            "glViewportIndexedf" => (number(1) + number(3), number(2) + number(4)),
            "glBlitFramebuffer" => (number(4).max(number(6)), number(5).max(number(7))),
            _ => return,
        };
        if self.elsewhere.get(&context) == Some(&true) {
            return;
        }
        let drawable = self.of_thread(thread);
        if let Some((width, height)) = self.sizes.get_mut(drawable) {
            // Too large and negative values saturate.
            *width = (*width).max(corner.0 as u32);
            *height = (*height).max(corner.1 as u32);
        }
    }
}

/// The requested properties of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Asked {
    pub(super) is_es: bool,
    pub(super) version: (u32, u32),
    pub(super) profile: u32,
}

/// What the call that makes a context requests. `binds_gl`: EGL makes contexts of OpenGL instead of OpenGL ES.
pub(super) fn asked(system: Option<System>, function: &[u8], values: &Values<'_>, binds_gl: bool) -> Asked {
    let list = match function {
        b"glXCreateContextAttribsARB" => Some(4),
        b"eglCreateContext" => Some(3),
        b"wglCreateContextAttribsARB"
        | b"glXCreateAssociatedContextAttribsAMD"
        | b"wglCreateAssociatedContextAttribsAMD" => Some(2),
        _ => None,
    };
    let mut asked = Asked { is_es: system == Some(System::Egl) && !binds_gl, ..Asked::default() };
    let numbers = list.map(|index| values.array(index).map(|mut wire| integer(wire.value(), values.dictionary())));
    let mut numbers = numbers.into_iter().flatten();
    while let (Some(Some(key)), Some(Some(value))) = (numbers.next(), numbers.next()) {
        let value = u32::try_from(value).unwrap_or(0);
        match key {
            0 | 0x3038 => break,
            0x2091 | 0x3098 => asked.version.0 = value.min(9),
            0x2092 | 0x30fb => asked.version.1 = value.min(9),
            0x9126 | 0x30fd => asked.profile = value,
            _ => {}
        }
    }
    // The profile bit of OpenGL ES, which exists in GLX and WGL.
    if asked.profile & 4 != 0 && system != Some(System::Egl) {
        asked.is_es = true;
    }
    let is_versioned = asked.version.0 > 0;
    if asked.is_es {
        // A context of OpenGL ES without a requested version has version 1.
        asked.profile = 0;
        asked.version.0 = asked.version.0.max(1);
    } else if is_versioned && asked.version >= (3, 2) && asked.profile & 3 == 0 {
        asked.profile = 1;
    } else {
        asked.profile &= 3;
    }
    asked
}
