//! Objects and their links.

use crate::tools::gl::kind::Kind;
use crate::tools::gltrim::nodes::Node;

/// An object by number. Names are reused, numbers are not.
pub(super) type Id = u32;

/// An object and its links.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) name: u64,
    /// Its definition.
    pub(super) made: Node,
    /// Its content.
    pub(super) content: Node,
    /// Objects linked to it, by place: shaders of a program, buffers of a vertex array.
    pub(super) links: Vec<(u32, Id)>,
    /// The attachments of a framebuffer.
    pub(super) attached: Vec<Attached>,
    /// The attachments that are drawn to, if known.
    pub(super) drawn: Vec<u32>,
    /// Sizes of a texture's images by level and face; a buffer's size.
    pub(super) sizes: Vec<(u32, [u64; 3])>,
    /// It has a stencil plane.
    pub(super) has_stencil: bool,
    /// The mapping: address, first byte, length, and the span written so far.
    pub(super) map: Option<Mapped>,
}

/// A mapped part of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapped {
    pub(super) call: u64,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) written: Option<(u64, u64)>,
    /// It was mapped in frames that stay.
    pub(super) is_forced: bool,
}

/// An image attached to a framebuffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attached {
    pub(super) point: u32,
    pub(super) object: Id,
    /// The image that drawing writes.
    pub(super) image: Node,
    /// Clearing it overwrites all of the image.
    pub(super) is_entire: bool,
}
