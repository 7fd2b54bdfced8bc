//! Drawables and their sizes, and the contexts of a trace as EGL makes them.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Limits, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::tools::gl::contexts::{ContextVerb, Contexts, System, context_action};
use crate::tools::gl::lifecycle::stem;
use crate::tools::gl::values::{Values, integer};
use crate::wire::reader::Reader;
use crate::wire::record::{Header, VERSION_THREADS};

/// Most drawables tracked; further ones count as the first. Real programs have a handful.
const DRAWABLES_MAX: usize = 256;

/// Largest width and height of a surface.
const SIDE_MAX: u32 = 8192;

/// Most framebuffer bindings and threads followed.
const FOLLOWED_MAX: usize = 1 << 14;

/// The size of a drawable that shows nothing of it.
const SMALL: (u32, u32) = (64, 64);

/// How large a drawable is, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawableSize {
    /// What the tracer or the program said of it, if they did: viewports set where a context becomes current, attributes
    /// of a pbuffer.
    stated: Option<(u32, u32)>,
    /// The largest corner of viewports and copies.
    extent: (u32, u32),
}

impl DrawableSize {
    /// Its size: as stated, unless a viewport exceeds that in both directions; then the window was enlarged.
    pub fn size(&self) -> (u32, u32) {
        let (width, height) = match self.stated {
            Some(stated) if self.extent.0 < stated.0 || self.extent.1 < stated.1 => stated,
            _ => self.extent,
        };
        Self::within((if width == 0 { SMALL.0 } else { width }, if height == 0 { SMALL.1 } else { height }))
    }

    /// Large enough for [`DrawableSize::size`] and for all viewports.
    pub fn room(&self) -> (u32, u32) {
        let (size, extent) = (self.size(), Self::within(self.extent));
        (size.0.max(extent.0), size.1.max(extent.1))
    }

    fn within((width, height): (u32, u32)) -> (u32, u32) {
        (width.min(SIDE_MAX), height.min(SIDE_MAX))
    }
}

/// What calls reveal about windows. The first drawable represents all unknown ones.
pub(super) struct Windows {
    by_handle: Map<u64, usize>,
    sizes: Vec<DrawableSize>,
    /// Drawables of threads.
    current: Map<u64, usize>,
    /// Contexts that draw into a framebuffer object.
    elsewhere: Map<u32, bool>,
}

impl Windows {
    pub(super) fn new() -> Self {
        let sizes = vec![DrawableSize::default()];
        Self { by_handle: Map::default(), sizes, current: Map::default(), elsewhere: Map::default() }
    }

    /// Sizes of all drawables.
    pub(super) fn sizes(&self) -> Vec<DrawableSize> {
        self.sizes.clone()
    }

    /// The largest corner of a drawable's viewports so far.
    pub(super) fn extent(&self, drawable: usize) -> (u32, u32) {
        self.sizes.get(drawable).map_or((0, 0), |size| DrawableSize::within(size.extent))
    }

    /// The drawable of a thread.
    pub(super) fn of_thread(&self, thread: u64) -> usize {
        if self.current.is_empty() { 0 } else { self.current.get(&thread).copied().unwrap_or(0) }
    }

    /// The drawable with a handle; 0 if there are too many.
    fn drawable(&mut self, handle: u64) -> usize {
        match self.by_handle.get(&handle) {
            Some(drawable) => *drawable,
            None if handle == 0 || self.sizes.len() >= DRAWABLES_MAX => 0,
            None => {
                self.sizes.push(DrawableSize::default());
                self.by_handle.insert(handle, self.sizes.len() - 1);
                self.sizes.len() - 1
            }
        }
    }

    /// Makes a drawable current on a thread.
    pub(super) fn make_current(&mut self, function: &[u8], values: &Values<'_>, thread: u64) {
        let argument = match function {
            b"wglMakeCurrent" | b"wglMakeContextCurrentARB" | b"wglMakeContextCurrentEXT" => 0,
            _ if function.starts_with(b"glX") || function.starts_with(b"egl") => 1,
            _ => return,
        };
        let drawable = self.drawable(values.name(argument).unwrap_or(0));
        if self.current.len() < FOLLOWED_MAX || self.current.contains_key(&thread) {
            self.current.insert(thread, drawable);
        }
    }

    /// Learns sizes from a call of a context.
    pub(super) fn take(&mut self, stem: &str, function: &[u8], values: &Values<'_>, context: u32, thread: u64) {
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
            "glScissor" if values.is_fake() => (number(0) + number(2), number(1) + number(3)),
            "glViewportIndexedf" => (number(1) + number(3), number(2) + number(4)),
            "glViewportArrayv" => corner_of(&values.floats(2, 0)),
            "glViewportIndexedfv" => corner_of(&values.floats(1, 0)),
            "glBlitFramebuffer" => (number(4).max(number(6)), number(5).max(number(7))),
            "" => return self.created(function, values),
            _ => return,
        };
        if self.elsewhere.get(&context) == Some(&true) {
            return;
        }
        // Too large and negative values saturate.
        let corner = (corner.0 as u32, corner.1 as u32);
        let drawable = self.of_thread(thread);
        if let Some(size) = self.sizes.get_mut(drawable) {
            if values.is_fake() && corner.0 > 0 && corner.1 > 0 {
                let (width, height) = size.stated.unwrap_or_default();
                size.stated = Some((width.max(corner.0), height.max(corner.1)));
            }
            size.extent = (size.extent.0.max(corner.0), size.extent.1.max(corner.1));
        }
    }

    /// Learns the size of a pbuffer.
    fn created(&mut self, function: &[u8], values: &Values<'_>) {
        let (width, height, list) = match function {
            b"eglCreatePbufferSurface" => (0x3057, 0x3056, 2),
            b"glXCreatePbuffer" => (0x8041, 0x8040, 2),
            _ => return,
        };
        let handle = values.returned_name().unwrap_or(0);
        if handle == 0 {
            return;
        }
        let mut stated = (0, 0);
        let mut numbers = values.array(list).map(|mut wire| integer(wire.value(), values.dictionary()));
        while let (Some(Some(key)), Some(Some(value))) = (numbers.next(), numbers.next()) {
            let value = u32::try_from(value).unwrap_or(0);
            match key {
                key if key == width => stated.0 = value,
                key if key == height => stated.1 = value,
                _ => {}
            }
        }
        let drawable = self.drawable(handle);
        if let Some(size) = self.sizes.get_mut(drawable).filter(|_| drawable > 0 && stated.0 > 0 && stated.1 > 0) {
            size.stated = Some(stated);
        }
    }
}

/// The largest corner of viewports: four numbers each.
fn corner_of(viewports: &[f64]) -> (f64, f64) {
    viewports.as_chunks::<4>().0.iter().fold((0.0, 0.0), |(x, y): (f64, f64), [left, bottom, width, height]| {
        (x.max(left + width), y.max(bottom + height))
    })
}

/// Sizes of the drawables of a trace, by number, as far as its calls show them: what a machine needs before it begins.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn drawable_sizes(reader: &mut Reader, limits: &Limits, sink: &mut dyn Sink) -> Result<Vec<DrawableSize>, Error> {
    let mut learner = Learner {
        dictionary: Dictionary::default(),
        stems: Vec::new(),
        contexts: Contexts::new(false),
        windows: Windows::new(),
    };
    read_calls(reader, CallOptions::default().with_limits(limits), &mut learner, sink)?;
    Ok(learner.windows.sizes())
}

/// Follows contexts and drawables, and nothing else.
struct Learner {
    dictionary: Dictionary,
    /// Of the functions that matter, by slot: their stems.
    stems: Vec<Option<Option<&'static str>>>,
    contexts: Contexts,
    windows: Windows,
}

/// Functions that show sizes; those without a stem are of window systems.
pub(super) const SHOW_SIZES: [&str; 7] = [
    "glBindFramebuffer",
    "glViewport",
    "glScissor",
    "glViewportIndexedf",
    "glViewportIndexedfv",
    "glViewportArrayv",
    "glBlitFramebuffer",
];

impl CallVisitor for Learner {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.contexts = Contexts::new(header.version >= VERSION_THREADS);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let Some(function) = self.dictionary.function(call.function) else { return Ok(()) };
        let name = function.name();
        let at = call.function as usize;
        if self.stems.len() <= at {
            self.stems.resize(at + 1, None);
        }
        let Some(place) = self.stems.get_mut(at) else { return Ok(()) };
        let known = place.get_or_insert_with(|| {
            let text = std::str::from_utf8(name).unwrap_or_default();
            let is_gl = text.starts_with("gl") && !text.starts_with("glX");
            if !is_gl {
                let matters =
                    context_action(name).is_some() || name.ends_with(b"Pbuffer") || name.ends_with(b"Surface");
                return matters.then_some("");
            }
            SHOW_SIZES.into_iter().find(|known| *known == stem(text))
        });
        let Some(stem) = *known else { return Ok(()) };
        let values = Values::new(call, &self.dictionary);
        match context_action(name) {
            Some(action) => {
                if !call.is_incomplete {
                    self.contexts.take(action, &values, call.thread, call.number);
                }
                if let ContextVerb::MakeCurrent(_) = action.1 {
                    self.windows.make_current(name, &values, call.thread);
                }
            }
            None => {
                let context = self.contexts.current(call.thread);
                self.windows.take(stem, name, &values, context, call.thread);
            }
        }
        Ok(())
    }
}

/// The requested properties of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// OpenGL ES instead of OpenGL.
    pub is_es: bool,
    /// Major and minor version; major 0: any.
    pub version: (u32, u32),
    /// Bits of the profile: 1 core, 2 compatibility; 0: as the driver likes.
    pub profile: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_size_holds_unless_viewports_exceed_it_in_both_directions() {
        let size = |stated, extent| DrawableSize { stated, extent }.size();
        assert_eq!(size(None, (0, 0)), SMALL);
        assert_eq!(size(None, (300, 20)), (300, 20));
        // As armagetronad: a window of 1024 by 768, and a viewport of 1023 by 1023.
        assert_eq!(size(Some((1024, 768)), (1023, 1023)), (1024, 768));
        assert_eq!(size(Some((300, 300)), (640, 480)), (640, 480));
        assert_eq!(DrawableSize { stated: Some((1024, 768)), extent: (1023, 1023) }.room(), (1024, 1023));
        assert_eq!(size(Some((u32::MAX, 1)), (0, 0)), (SIDE_MAX, 1));
    }

    #[test]
    fn the_largest_of_several_viewports_counts() {
        assert_eq!(corner_of(&[0.0, 0.0, 10.0, 5.0, 4.0, 4.0, 4.0, 4.0, 1.0]), (10.0, 8.0));
        assert_eq!(corner_of(&[]), (0.0, 0.0));
    }
}
