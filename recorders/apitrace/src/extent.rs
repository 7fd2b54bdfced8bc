//! How many things are behind a pointer, from the other arguments and, for images, the driver's state.

use crate::arguments::Arguments;
use crate::ask;
use crate::context::{self, Context};
use crate::table::{Kind, Length, Parameter};

/// What is known of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It is an offset into a buffer, or nothing is written of what is behind it.
    Opaque,
    /// So many of the parameter's kind; of bytes, for `void`.
    Count(usize),
    /// So many bytes, whatever the parameter's kind.
    Bytes(usize),
    /// Text that ends with a zero.
    Terminated,
}

const GL_PIXEL_UNPACK_BUFFER_BINDING: u32 = 0x88ef;

/// Whether vertices that the program declares now are in a buffer.
pub(crate) fn has_vertex_buffer() -> bool {
    const GL_ARRAY_BUFFER_BINDING: u32 = 0x8894;
    context::current().is_some_and(Context::has_buffers) && ask::integer(GL_ARRAY_BUFFER_BINDING) != 0
}

/// Whether the numbers of a draw or of a dispatch come from a buffer, where the driver can be asked.
pub(crate) fn has_indirect_buffer() -> bool {
    const GL_DRAW_INDIRECT_BUFFER_BINDING: u32 = 0x8f43;
    // Only a compatibility profile lets them be in memory.
    context::current().is_none_or(|context| !context.may_have_indirect_memory())
        || ask::integer(GL_DRAW_INDIRECT_BUFFER_BINDING) != 0
}

/// Whether indices come from a buffer.
pub(crate) fn has_index_buffer() -> bool {
    const GL_ELEMENT_ARRAY_BUFFER_BINDING: u32 = 0x8895;
    context::current().is_some_and(Context::has_buffers) && ask::integer(GL_ELEMENT_ARRAY_BUFFER_BINDING) != 0
}

/// The extent of what a parameter that is a pointer points to.
pub(crate) fn extent(arguments: &Arguments, parameter: &Parameter) -> Extent {
    let context = context::current();
    match parameter.length {
        Length::Unknown if parameter.kind == Kind::Character && parameter.is_const => Extent::Terminated,
        Length::Unknown | Length::Returned(_) | Length::Attributes(..) => Extent::Opaque,
        Length::One if parameter.kind == Kind::Character && parameter.is_const => Extent::Terminated,
        // Handles are passed as they are, through whatever pointer.
        Length::One if matches!(parameter.kind, Kind::Handle | Kind::Void) && parameter.is_const => Extent::Opaque,
        Length::One => Extent::Count(1),
        Length::Constant(count) => Extent::Count(count as usize),
        Length::Times(at, times) => {
            if parameter.kind == Kind::Void && is_in_buffer(arguments, context) {
                return Extent::Opaque;
            }
            times_of(arguments, at, times, parameter)
        }
        Length::Parameter(at) => Extent::Count(of_parameter(arguments.uint(at.into()))),
        Length::Cleared(at) => Extent::Count(if arguments.uint(at.into()) == 0x1800 { 4 } else { 1 }),
        Length::Typed { count, kind } => {
            let is_indices = parameter.name == "indices";
            if is_indices && has_index_buffer() {
                return Extent::Opaque;
            }
            let count = usize::try_from(arguments.int(count.into())).unwrap_or(0);
            type_bytes(arguments.uint(kind.into())).map_or(Extent::Opaque, |bytes| Extent::Bytes(count * bytes))
        }
        Length::Bitmap(sides) => {
            if is_unpacked_from_buffer(context) {
                return Extent::Opaque;
            }
            let side = |at: u8| arguments.int(at.into());
            let (width, height) = sides.map_or((32, 32), |(width, height)| (side(width), side(height)));
            let bytes = Unpacking::of(context).bitmap(width, height).unwrap_or(0);
            // A stipple is an array of numbers in apitrace's traces.
            if sides.is_none() { Extent::Count(bytes) } else { Extent::Bytes(bytes) }
        }
        Length::Image { format, kind, sides } => {
            // What the driver writes is not recorded, as apitrace does not.
            if !parameter.is_const || is_unpacked_from_buffer(context) && !arguments.function.name.contains("Clear") {
                return Extent::Opaque;
            }
            let side = |at: Option<u8>| at.map_or(1, |at| arguments.int(at.into()));
            let pixel = pixel_bytes(arguments.uint(format.into()), arguments.uint(kind.into()));
            let mut how = Unpacking::of(context);
            if sides[2].is_none() {
                // These are of images with depth only.
                (how.image_height, how.skipped.2) = (0, 0);
            }
            pixel.and_then(|pixel| how.image(pixel, sides.map(side))).map_or(Extent::Opaque, Extent::Bytes)
        }
        Length::Map { target, sides } => {
            let numbers = map_numbers(arguments.uint(target.into()));
            let points = sides.iter().map(|(stride, order)| {
                let (stride, order) = (arguments.int((*stride).into()), arguments.int((*order).into()));
                (usize::try_from(stride).unwrap_or(0), usize::try_from(order).unwrap_or(0))
            });
            // The last point of each direction, and the numbers of one.
            let last: usize = points.map(|(stride, order)| stride * order.saturating_sub(1)).sum();
            Extent::Count(last + numbers)
        }
    }
}

fn times_of(arguments: &Arguments, at: u8, times: u32, parameter: &Parameter) -> Extent {
    let source = &arguments.function.parameters[usize::from(at)];
    if source.pointers > 0 {
        return Extent::Opaque;
    }
    let raw = arguments.raw(at.into());
    let count = if source.kind.bytes() == 8 { raw as i64 } else { i64::from(raw as u32 as i32) };
    let is_text = parameter.kind == Kind::Character && parameter.pointers == 1 && parameter.is_const;
    match usize::try_from(count) {
        Ok(count) => Extent::Count(count.saturating_mul(times as usize)),
        Err(_) if is_text => Extent::Terminated,
        Err(_) => Extent::Count(0),
    }
}

/// Whether a function reads compressed pixels from a buffer.
fn is_in_buffer(arguments: &Arguments, context: Option<&Context>) -> bool {
    arguments.function.name.starts_with("glCompressed") && is_unpacked_from_buffer(context)
}

fn is_unpacked_from_buffer(context: Option<&Context>) -> bool {
    context.is_some_and(Context::has_pixel_buffers) && ask::integer(GL_PIXEL_UNPACK_BUFFER_BINDING) != 0
}

/// Numbers of a control point; `GL_MAP1_COLOR_4` and the names after it, then those of two directions.
fn map_numbers(target: u32) -> usize {
    match target {
        0x0d91 | 0x0db1 | 0x0d93 | 0x0db3 => 1,
        0x0d94 | 0x0db4 => 2,
        0x0d92 | 0x0db2 | 0x0d95 | 0x0db5 | 0x0d97 | 0x0db7 => 3,
        0x0d90 | 0x0db0 | 0x0d96 | 0x0db6 | 0x0d98 | 0x0db8 => 4,
        _ => 0,
    }
}

/// Numbers that a parameter of the state has.
fn of_parameter(name: u32) -> usize {
    match name {
        // Materials, lights, fog, environments, planes, borders, swizzles, crops, levels, scales.
        0x1200..=0x1203 | 0x1600 | 0x1602 | 0x0b66 | 0x0b53 | 0x2201 | 0x2501 | 0x2502 | 0x1004 | 0x8e46 | 0x8b9d | 0x8e74
        | 0x8154..=0x8156 | 0x80d6 | 0x80d7
        // Boxes, colours and coordinates that are asked for.
        | 0x0ba2 | 0x0c10 | 0x0c22 | 0x0c23 | 0x8005 | 0x0b80 | 0x0b00 | 0x0b03 | 0x0b04 | 0x0b06 | 0x0b07 | 0x8626
        | 0x0dd2 => 4,
        0x1204 | 0x1603 | 0x8129 | 0x0b02 | 0x8267 => 3,
        0x0b70 | 0x8e73 | 0x0d3a | 0x0b12 | 0x0b22 | 0x846d | 0x846e | 0x0b40 | 0x0dd1 | 0x0dd3 | 0x825d => 2,
        0x0ba6..=0x0ba8 | 0x80b1 | 0x84e3..=0x84e6 => 16,
        _ => 1,
    }
}

/// Bytes of a type of indices, lists or vertices.
pub(crate) fn type_bytes(kind: u32) -> Option<usize> {
    Some(match kind {
        0x1400 | 0x1401 => 1,
        0x1402 | 0x1403 | 0x1407 | 0x140b | 0x8d61 => 2,
        // `GL_3_BYTES`.
        0x1408 => 3,
        0x1404..=0x1406 | 0x1409 | 0x140c => 4,
        0x140a => 8,
        _ => return None,
    })
}

/// Bytes of a pixel; `None`: the driver refuses it. (OpenGL 4.6, tables 8.2, 8.3 and 8.5.)
fn pixel_bytes(format: u32, kind: u32) -> Option<usize> {
    let packed = match kind {
        // 8-bit packed, 16-bit, 32-bit, and depth with stencil of 64 bits.
        0x8032 | 0x8362 => Some(1),
        0x8033 | 0x8034 | 0x8363..=0x8366 => Some(2),
        0x8035 | 0x8036 | 0x8367 | 0x8368 | 0x84fa | 0x8c3b | 0x8c3e => Some(4),
        0x8dad => Some(8),
        _ => None,
    };
    if packed.is_some() {
        return packed;
    }
    let numbers = match format {
        // Colour and stencil indices, depth, single channels, luminance, intensity, integers of one channel.
        0x1900..=0x1906 | 0x1909 | 0x8d94..=0x8d97 | 0x8d9c | 0x8049 => 1,
        // Luminance with alpha, two channels, depth with stencil.
        0x190a | 0x8227 | 0x8228 | 0x8d9d | 0x84f9 => 2,
        0x1907 | 0x80e0 | 0x8d98 | 0x8d9a => 3,
        0x1908 | 0x80e1 | 0x8d99 | 0x8d9b | 0x8000 => 4,
        _ => return None,
    };
    Some(numbers * type_bytes(kind)?)
}

/// How images lie in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Unpacking {
    alignment: usize,
    row_length: usize,
    image_height: usize,
    skipped: (usize, usize, usize),
}

impl Unpacking {
    /// What the driver has; only what a context of its version has at all.
    fn of(context: Option<&Context>) -> Self {
        let ask = |name: u32| usize::try_from(ask::integer(name)).unwrap_or(0);
        let Some(context) = context else { return Self { alignment: 4, ..Self::default() } };
        let mut found = Self { alignment: ask(0x0cf5), ..Self::default() };
        if !context.is_es || context.version >= 30 || context.has_unpack_subimage {
            found.row_length = ask(0x0cf2);
            found.skipped = (ask(0x0cf4), ask(0x0cf3), 0);
        }
        if if context.is_es { context.version >= 30 } else { context.version >= 12 } {
            found.image_height = ask(0x806e);
            found.skipped.2 = ask(0x806d);
        }
        found
    }

    /// Bytes that the driver reads of an image; `None`: more than memory has.
    fn image(self, pixel: usize, [width, height, depth]: [i32; 3]) -> Option<usize> {
        let size = |side: i32| usize::try_from(side).unwrap_or(0);
        let (width, height, depth) = (size(width), size(height), size(depth));
        if width == 0 || height == 0 || depth == 0 {
            return Some(0);
        }
        let row = pixel.checked_mul(if self.row_length > 0 { self.row_length } else { width })?;
        self.read(row, (self.skipped.0 + width).checked_mul(pixel)?, height, depth)
    }

    /// Bytes that the driver reads of bits.
    fn bitmap(self, width: i32, height: i32) -> Option<usize> {
        let (width, height) = (usize::try_from(width).unwrap_or(0), usize::try_from(height).unwrap_or(0));
        if width == 0 || height == 0 {
            return Some(0);
        }
        let row = if self.row_length > 0 { self.row_length } else { width }.div_ceil(8);
        self.read(row, (self.skipped.0 + width).div_ceil(8), height, 1)
    }

    /// `row`: bytes from one row to the next, before alignment; `last`: bytes of the last row.
    fn read(self, row: usize, last: usize, height: usize, depth: usize) -> Option<usize> {
        let row = row.checked_next_multiple_of(self.alignment.max(1))?;
        let rows = if self.image_height > 0 { self.image_height } else { height };
        let before = (self.skipped.2 + depth - 1).checked_mul(rows)?.checked_add(self.skipped.1 + height - 1)?;
        before.checked_mul(row)?.checked_add(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_measured_as_the_driver_reads_them() {
        let packed = Unpacking { alignment: 1, ..Unpacking::default() };
        let aligned = Unpacking { alignment: 4, ..packed };
        // RGB of bytes, 3 by 2: rows of 9 bytes, padded to 12 but for the last.
        assert_eq!(aligned.image(3, [3, 2, 1]), Some(21));
        assert_eq!(packed.image(3, [3, 2, 1]), Some(18));
        assert_eq!(Unpacking { row_length: 5, ..packed }.image(3, [3, 2, 1]), Some(24));
        assert_eq!(Unpacking { skipped: (1, 1, 7), ..packed }.image(3, [3, 2, 1]), Some((7 * 2 + 2) * 9 + 12));
        assert_eq!(packed.image(4, [-1, 2, 1]), Some(0));
        assert_eq!(packed.image(16, [i32::MAX, i32::MAX, i32::MAX]), None);
        assert_eq!(aligned.bitmap(32, 32), Some(128));
        assert_eq!(aligned.bitmap(9, 2), Some(6));
        assert_eq!(packed.bitmap(9, 2), Some(4));
        assert_eq!(pixel_bytes(0x1907, 0x1401), Some(3));
        assert_eq!(pixel_bytes(0x1908, 0x8033), Some(2));
        assert_eq!(pixel_bytes(0x84f9, 0x84fa), Some(4));
        assert_eq!(pixel_bytes(0x1908, 7), None);
    }
}
