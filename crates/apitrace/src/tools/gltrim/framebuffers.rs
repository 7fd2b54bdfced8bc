//! Framebuffers: what is attached, what is drawn to, what clears and copies overwrite.

use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::{Label, Node, key};
use crate::tools::gltrim::objects::{Attached, Id};
use crate::tools::gltrim::rules::Rule;
use crate::tools::gltrim::textures;

const DRAW: i64 = 0x8ca9;
const READ: i64 = 0x8ca8;
const COLOR_0: u32 = 0x8ce0;
const DEPTH_POINT: u32 = 0x8d00;
const STENCIL_POINT: u32 = 0x8d20;
const BOTH_POINT: u32 = 0x821a;
pub(super) const DRAW_KEY: u64 = 16 << 32;
pub(super) const READ_KEY: u64 = 17 << 32;

/// State that clears and copies between framebuffers depend on. The viewport gives windows their size.
const CLEAR_STATE: &[&str] = &[
    "ClampColor",
    "ClearAccum",
    "ClearColor",
    "ClearDepth",
    "ClearIndex",
    "ClearStencil",
    "ColorMask",
    "ColorMaskIndexed",
    "ColorMaski",
    "DepthMask",
    "Enable",
    "EnableIndexed",
    "Enablei",
    "IndexMask",
    "Scissor",
    "ScissorArray",
    "ScissorIndexed",
    "StencilMask",
    "StencilMaskSeparate",
    "Viewport",
];

/// State that reading pixels depends on.
const READ_STATE: &[&str] = &["ClampColor", "Enable", "PixelMap", "PixelTransfer", "PixelZoom", "Viewport"];

/// The key of the size node below a window.
const SIZE_KEY: u64 = 6;

/// Planes of a window's framebuffer.
const PLANES: [&str; 4] = ["colors", "depths", "stencil", "accumulation buffer"];

/// Which parts of a framebuffer a call refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planes {
    pub(super) color: bool,
    pub(super) depth: bool,
    pub(super) stencil: bool,
    pub(super) accumulation: bool,
    /// One of the buffers drawn to; `None`: all of them.
    pub(super) only: Option<u32>,
}

impl Planes {
    pub(super) const ALL: Self = Self { color: true, depth: true, stencil: true, accumulation: false, only: None };

    pub(super) fn of_mask(mask: i64) -> Self {
        let has = |bit: i64| mask & bit != 0;
        Self { color: has(0x4000), depth: has(0x100), stencil: has(0x400), accumulation: has(0x200), only: None }
    }
}

impl Model {
    pub(super) fn bind_framebuffer(&mut self, target: i64, id: Option<Id>) {
        for (side, key) in [(DRAW, DRAW_KEY), (READ, READ_KEY)] {
            if target == side || !matches!(target, DRAW | READ) {
                let state = self.state();
                let place = if side == DRAW { &mut state.draw } else { &mut state.read };
                *place = id;
                self.kill_state(0, key, Label::Binding("framebuffer"));
            }
        }
        self.read_birth(id);
        self.touch();
    }

    /// The framebuffer that a call refers to.
    fn framebuffer(&mut self, values: &Values<'_>, is_named: bool) -> Option<Id> {
        if is_named {
            let id = self.find(Kind::Framebuffer, values.name(0));
            self.read_birth(id);
            return id;
        }
        let is_read = values.integer(0) == Some(READ);
        self.read_state(if is_read { READ_KEY } else { DRAW_KEY }, Label::Binding("framebuffer"));
        let state = self.state();
        if is_read { state.read } else { state.draw }
    }

    /// Attaches an image.
    pub(super) fn attach(&mut self, rule: Rule, values: &Values<'_>) {
        let Rule::Attach { object, is_texture, has_target, is_layer, is_named } = rule else { return };
        let Some(framebuffer) = self.framebuffer(values, is_named) else { return };
        let point = values.integer(1).unwrap_or(0) as u32;
        let kind = if is_texture { Kind::Texture } else { Kind::Renderbuffer };
        let id = self.find(kind, values.name(object));
        let made = self.made(framebuffer);
        let node = self.nodes.child(made, key(&[1, u64::from(point)]), Label::Attachment);
        self.kills(node);
        self.touch();
        if let Some(object) = self.object_mut(framebuffer) {
            object.attached.retain(|known| known.point != point);
        }
        let Some(id) = id else { return };
        self.read_birth(Some(id));
        let storage = self.storage(id);
        self.reads(storage);
        let content = self.content(id);
        let (image, is_entire) = if is_texture {
            let level = values.integer(object + 1).unwrap_or(0).clamp(0, 64) as u32;
            let face = if has_target {
                textures::target(values.integer(2).unwrap_or(0) as u32).map_or(0, |(_, face)| face)
            } else {
                0
            };
            let image = self.image(content, level, face);
            if is_layer {
                let layer = values.integer(object + 2).unwrap_or(0) as u64;
                (self.nodes.child(image, key(&[2, layer]), Label::Area), true)
            } else {
                (image, true)
            }
        } else {
            (content, true)
        };
        if let Some(object) = self.object_mut(framebuffer) {
            object.attached.push(Attached { point, object: id, image, is_entire });
        }
    }

    pub(super) fn draw_buffers(&mut self, values: &Values<'_>, is_named: bool) {
        let first = usize::from(is_named);
        let id = self.side_of(values, is_named, true);
        // `glDrawBuffers(n, bufs)` or `glDrawBuffer(buf)`.
        let drawn: Vec<u32> = if values.argument(first + 1).is_some() {
            values.integers(first + 1).map(|point| point as u32).collect()
        } else {
            vec![values.integer(first).unwrap_or(0) as u32]
        };
        let made = self.made(id);
        if let Some(object) = self.object_mut(id) {
            object.drawn = drawn;
        }
        let node = self.nodes.child(made, 3, Label::Parameter);
        self.kills(node);
        self.touch();
    }

    pub(super) fn read_buffer(&mut self, values: &Values<'_>, is_named: bool) {
        let id = self.side_of(values, is_named, false);
        let made = self.made(id);
        let node = self.nodes.child(made, 4, Label::Parameter);
        self.kills(node);
    }

    fn side_of(&mut self, values: &Values<'_>, is_named: bool, is_draw: bool) -> Id {
        if is_named {
            let id = self.find(Kind::Framebuffer, values.name(0));
            self.read_birth(id);
            return id.unwrap_or(self.state().window);
        }
        self.read_state(if is_draw { DRAW_KEY } else { READ_KEY }, Label::Binding("framebuffer"));
        let state = self.state();
        if is_draw { state.draw.unwrap_or(state.window) } else { state.read.unwrap_or(state.read_window) }
    }

    pub(super) fn framebuffer_parameter(&mut self, values: &Values<'_>, is_named: bool) {
        let Some(id) = self.framebuffer(values, is_named) else { return };
        let made = self.made(id);
        let name = values.integer(1).unwrap_or(0) as u64;
        let node = self.nodes.child(made, key(&[5, name]), Label::Parameter);
        self.kills(node);
    }

    /// What drawing to a framebuffer changes: images, and whether clearing overwrites all of each.
    pub(super) fn planes(&mut self, id: Id, planes: Planes) -> Vec<(Node, bool)> {
        let Some(object) = self.object(id) else { return Vec::new() };
        if object.name == 0 {
            let content = object.content;
            let drawn = object.drawn.first().copied();
            // Drawing to the front buffer leaves the back buffer unchanged.
            let is_usual = drawn.is_none_or(|buffer| matches!(buffer, 0x405 | 0x402 | 0x409 | 0x408));
            let wanted = [planes.color, planes.depth, planes.stencil, planes.accumulation];
            let mut found = Vec::new();
            for (at, name) in PLANES.into_iter().enumerate() {
                if wanted.get(at) == Some(&true) {
                    found.push((self.nodes.child(content, at as u64, Label::Plane(name)), at != 0 || is_usual));
                }
            }
            return found;
        }
        let drawn: Vec<u32> = match planes.only {
            Some(at) => object.drawn.get(at as usize).copied().or((at == 0).then_some(COLOR_0)).into_iter().collect(),
            None if object.drawn.is_empty() => vec![COLOR_0],
            None => object.drawn.clone(),
        };
        let mut found = Vec::new();
        for attached in &object.attached {
            let has_stencil = self.object(attached.object).is_some_and(|object| object.has_stencil);
            let both = planes.depth && planes.stencil;
            match attached.point {
                DEPTH_POINT if planes.depth => {
                    found.push((attached.image, attached.is_entire && (both || !has_stencil)))
                }
                STENCIL_POINT if planes.stencil => found.push((attached.image, attached.is_entire && both)),
                BOTH_POINT if planes.depth || planes.stencil => {
                    found.push((attached.image, attached.is_entire && both))
                }
                DEPTH_POINT | STENCIL_POINT | BOTH_POINT => {}
                point if planes.color && drawn.contains(&point) => found.push((attached.image, attached.is_entire)),
                _ => {}
            }
        }
        found
    }

    /// The framebuffer that is drawn to.
    pub(super) fn drawn(&mut self) -> Id {
        let state = self.state();
        state.draw.unwrap_or(state.window)
    }

    /// Adds what using a framebuffer reads: its definition and its attachments.
    pub(super) fn use_framebuffer(&self, id: Id, effects: &mut Vec<Effect>) {
        let Some(object) = self.object(id) else { return };
        effects.push(Effect::Read(object.made));
        for attached in &object.attached {
            effects.push(Effect::Read(self.made(attached.object)));
        }
    }

    pub(super) fn clear(&mut self, values: &Values<'_>) {
        let planes = Planes::of_mask(values.integer(0).unwrap_or(0));
        let id = self.drawn();
        self.clear_planes(id, planes);
    }

    fn clear_planes(&mut self, id: Id, planes: Planes) {
        self.read_rows(CLEAR_STATE);
        self.read_state(DRAW_KEY, Label::Binding("framebuffer"));
        let mut effects = self.take_scratch();
        self.use_framebuffer(id, &mut effects);
        self.record.effects.append(&mut effects);
        self.give_scratch(effects);
        self.read_shown(id);
        let masks = self.state().masks;
        if masks.has_discard || self.state().conditional.is_some() {
            return self.draw_planes(id, planes);
        }
        let is_masked = planes.color && !masks.is_color_complete
            || planes.depth && !masks.is_depth_complete
            || planes.stencil && !masks.is_stencil_complete;
        let is_open = !masks.has_scissor;
        for (node, is_entire) in self.planes(id, planes) {
            // Masks are not distinguished; a clear with any mask counts as partial.
            if is_entire && is_open && !is_masked { self.kills(node) } else { self.writes(node) }
        }
    }

    /// Replayers give a window its size when it is first shown, so what was drawn before may be lost.
    fn read_shown(&mut self, id: Id) {
        if self.object(id).is_some_and(|object| object.name == 0) {
            let shown = self.shown(id);
            self.reads(shown);
        }
    }

    fn draw_planes(&mut self, id: Id, planes: Planes) {
        for (node, _) in self.planes(id, planes) {
            self.writes(node);
        }
    }

    pub(super) fn clear_buffer(&mut self, values: &Values<'_>, is_named: bool) {
        let first = usize::from(is_named);
        let id = self.side_of(values, is_named, true);
        let only = values.integer(first + 1).map(|at| at.max(0) as u32);
        let none = Planes { color: false, depth: false, stencil: false, accumulation: false, only: None };
        let planes = match values.integer(first).unwrap_or(0) {
            0x1800 => Planes { color: true, only, ..none },
            0x1801 => Planes { depth: true, ..none },
            0x1802 => Planes { stencil: true, ..none },
            _ => Planes { depth: true, stencil: true, ..none },
        };
        self.clear_planes(id, planes);
    }

    pub(super) fn blit(&mut self, values: &Values<'_>, is_named: bool) {
        let (from, to, mask) = if is_named {
            let (from, to) =
                (self.find(Kind::Framebuffer, values.name(0)), self.find(Kind::Framebuffer, values.name(1)));
            let state = self.state();
            (from.unwrap_or(state.read_window), to.unwrap_or(state.window), 10)
        } else {
            let state = self.state();
            (state.read.unwrap_or(state.read_window), state.draw.unwrap_or(state.window), 8)
        };
        self.read_rows(CLEAR_STATE);
        self.read_state(DRAW_KEY, Label::Binding("framebuffer"));
        self.read_state(READ_KEY, Label::Binding("framebuffer"));
        let mut effects = self.take_scratch();
        self.use_framebuffer(from, &mut effects);
        self.use_framebuffer(to, &mut effects);
        self.record.effects.append(&mut effects);
        self.give_scratch(effects);
        let planes = Planes::of_mask(values.integer(mask).unwrap_or(0x4500));
        // The destination rectangle precedes the mask.
        let edge = |low: usize, high: usize| values.integer(low).max(values.integer(high)).unwrap_or(0);
        self.grow_window(to, edge(mask - 4, mask - 2), edge(mask - 3, mask - 1));
        self.read_shown(to);
        self.draw_planes(to, planes);
        self.read_content(from);
    }

    /// Marks the pixels of a framebuffer as read.
    fn read_content(&mut self, id: Id) {
        let Some(object) = self.object(id) else { return };
        let images: Vec<Node> = if object.name == 0 {
            vec![object.content]
        } else {
            object.attached.iter().map(|attached| attached.image).collect()
        };
        for image in images {
            self.reads(image);
        }
    }

    /// Marks the read framebuffer as read.
    pub(super) fn read_framebuffer(&mut self) {
        let state = self.state();
        let id = state.read.unwrap_or(state.read_window);
        self.read_rows(READ_STATE);
        self.read_state(READ_KEY, Label::Binding("framebuffer"));
        let mut effects = self.take_scratch();
        self.use_framebuffer(id, &mut effects);
        self.record.effects.append(&mut effects);
        self.give_scratch(effects);
        self.read_content(id);
    }

    /// Pixels are written to the program's memory, or to a buffer.
    pub(super) fn read_pixels(&mut self, at: At) {
        let to = self.bound_buffer(super::buffers::PIXEL_PACK);
        if to.is_none() && !at.is_forced {
            self.record.effects.clear();
            return;
        }
        if let Some(to) = to {
            let (content, storage) = (self.content(to), self.storage(to));
            self.writes(content);
            self.reads(storage);
        }
        self.read_framebuffer();
        let mut effects = self.take_scratch();
        self.use_textures(&mut effects);
        self.record.effects.append(&mut effects);
        self.give_scratch(effects);
        let pixels = self.state().pixels;
        self.reads(pixels);
    }

    /// The node for the showing of a window.
    pub(super) fn shown(&mut self, window: Id) -> Node {
        if let Some((shown, _)) = self.shown.get(&window) {
            return *shown;
        }
        let shown = self.nodes.root(Label::Shown);
        self.shown.insert(window, (shown, false));
        shown
    }

    /// Replayers open windows as small as possible and enlarge them to the largest viewport set while they are drawn
    /// to, whether by the program or inserted by the tracer. What was drawn before is lost then. So everything that
    /// draws to a window depends on each call that made it larger, whatever was set after it.
    fn grow_window(&mut self, window: Id, width: i64, height: i64) {
        let is_window = self.object(window).is_some_and(|object| object.name == 0);
        if !is_window || width <= 0 || height <= 0 {
            return;
        }
        let size = self.window_sizes.entry(window).or_insert((0, 0));
        if width <= size.0 && height <= size.1 {
            return;
        }
        *size = (size.0.max(width), size.1.max(height));
        let made = self.made(window);
        let node = self.nodes.child(made, SIZE_KEY, Label::WindowSize);
        self.writes(node);
        self.read_state(DRAW_KEY, Label::Binding("framebuffer"));
    }

    /// Viewports are set, with four numbers each.
    pub(super) fn grow_to_viewports(&mut self, edges: &[f64]) {
        for viewport in edges.chunks_exact(4) {
            if let [x, y, width, height] = *viewport {
                let window = self.drawn();
                self.grow_window(window, (x + width) as i64, (y + height) as i64);
            }
        }
    }

    /// A frame ends: its picture is read.
    pub(super) fn swap(&mut self, values: &Values<'_>, at: At, name: &[u8]) {
        let handle = match name {
            _ if name.starts_with(b"glX") || name.starts_with(b"egl") => values.name(1),
            _ if name.starts_with(b"wgl") => values.name(0),
            _ => None,
        };
        let current = self.state().window;
        // If the context was made current before the trace begins, this is its window.
        let window = handle.map_or(current, |handle| *self.windows.entry(handle).or_insert(current));
        let is_first = !self.shown.get(&window).is_some_and(|shown| shown.1);
        let shown = self.shown(window);
        self.shown.insert(window, (shown, true));
        let colors = Planes { depth: false, stencil: false, ..Planes::ALL };
        if !at.is_target {
            // Drivers may discard depths and stencil here: if those are needed later, so is this call.
            for (node, _) in self.planes(window, Planes { color: false, ..Planes::ALL }) {
                self.writes(node);
            }
            if at.is_early
                && let Some((colors, _)) = self.planes(window, colors).first().copied()
            {
                self.effect(Effect::Show(shown, colors, is_first));
            }
            return;
        }
        self.reads(shown);
        self.read_rows(&["Viewport", "Scissor"]);
        self.read_state(DRAW_KEY, Label::Binding("framebuffer"));
        self.read_state(READ_KEY, Label::Binding("framebuffer"));
        // Replayers take the picture from the draw framebuffer.
        let draw = self.state().draw;
        for id in [Some(window), draw].into_iter().flatten() {
            let mut effects = self.take_scratch();
            self.use_framebuffer(id, &mut effects);
            self.record.effects.append(&mut effects);
            self.give_scratch(effects);
            for (node, _) in self.planes(id, colors) {
                self.reads(node);
            }
        }
    }
}
