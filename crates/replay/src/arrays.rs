//! Vertex arrays in the program's memory: how many vertices one has, and how many a draw reads. A draw that reads behind
//! the end of one must not reach the driver.
//!
//! Sizes and strides are those of OpenGL 4.6 (compatibility profile), section 10.3. What is not looked at: indices in
//! buffers, draws whose numbers are in memory (`glDrawArraysIndirect`), `glArrayElement`.

use anytrace_apitrace::tools::program::{Argument, Array, GlCall, Scalar, Unfit};

use crate::bounds::{INDEXED, index_bytes, number};
use crate::gl::Gl;

/// Why a draw is refused.
pub(crate) const BEHIND: Unfit = Unfit::Value("it draws more vertices than its arrays have");

/// Why a draw of several pieces is refused.
const FEWER: Unfit = Unfit::Value("its arrays are shorter than declared");

/// Where a function has what an array consists of.
struct Layout {
    stem: &'static str,
    arguments: usize,
    size: Size,
    /// The argument with the type; `None`: bytes.
    kind: Option<usize>,
    stride: usize,
}

/// How many numbers a vertex has.
enum Size {
    Of(u64),
    At(usize),
}

const fn layout(stem: &'static str, arguments: usize, size: Size, kind: Option<usize>, stride: usize) -> Layout {
    Layout { stem, arguments, size, kind, stride }
}

const LAYOUTS: [Layout; 13] = [
    layout("glVertexPointer", 4, Size::At(0), Some(1), 2),
    layout("glTexCoordPointer", 4, Size::At(0), Some(1), 2),
    layout("glColorPointer", 4, Size::At(0), Some(1), 2),
    layout("glSecondaryColorPointer", 4, Size::At(0), Some(1), 2),
    layout("glNormalPointer", 3, Size::Of(3), Some(0), 1),
    layout("glFogCoordPointer", 3, Size::Of(1), Some(0), 1),
    layout("glIndexPointer", 3, Size::Of(1), Some(0), 1),
    layout("glPointSizePointer", 3, Size::Of(1), Some(0), 1),
    layout("glEdgeFlagPointer", 2, Size::Of(1), None, 0),
    layout("glVertexAttribPointer", 6, Size::At(1), Some(2), 4),
    layout("glVertexAttribIPointer", 5, Size::At(1), Some(2), 3),
    layout("glVertexAttribLPointer", 5, Size::At(1), Some(2), 3),
    layout("glMultiTexCoordPointer", 5, Size::At(1), Some(2), 3),
];

/// Bytes of a vertex in the formats of `glInterleavedArrays`, from `GL_V2F` on.
const INTERLEAVED: [u64; 14] = [8, 12, 12, 16, 24, 24, 40, 20, 32, 24, 32, 36, 48, 60];

/// Vertices in so many bytes, to which a call points; `None` where its layout is unknown.
pub(crate) fn vertices(call: &GlCall<'_>, bytes: usize) -> Option<u64> {
    let (vertex, stride) = if call.stem == "glInterleavedArrays" {
        let at = usize::try_from(number(call, 0)).ok()?.checked_sub(0x2a20)?;
        (*INTERLEAVED.get(at)?, number(call, 1))
    } else {
        let layout = LAYOUTS.iter().find(|layout| layout.stem == call.stem)?;
        if call.arguments.len() != layout.arguments {
            return None;
        }
        let size = match layout.size {
            Size::Of(size) => size,
            Size::At(at) => number(call, at),
        };
        (vertex_bytes(size, layout.kind.map(|at| number(call, at)))?, number(call, layout.stride))
    };
    let stride = if stride == 0 { vertex } else { stride };
    Some((bytes as u64).checked_sub(vertex).map_or(0, |rest| rest / stride + 1))
}

/// Bytes of a vertex of `size` numbers; `None` where the driver refuses them.
fn vertex_bytes(size: u64, kind: Option<u64>) -> Option<u64> {
    let size = match size {
        1..=4 => size,
        // GL_BGRA.
        0x80e1 => 4,
        _ => return None,
    };
    let Some(kind) = kind else { return Some(size) };
    Some(match kind {
        0x1400 | 0x1401 => size,
        0x1402 | 0x1403 | 0x140b | 0x8d61 => size * 2,
        0x1404..=0x1406 | 0x140c => size * 4,
        0x140a => size * 8,
        // Packed numbers.
        0x8368 | 0x8d9f | 0x8c3b => 4,
        _ => return None,
    })
}

/// What a draw reads of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draw {
    /// One more than the last vertex; `u64::MAX` for those before the first.
    pub(crate) vertices: u64,
    /// Instances, and the first of them.
    pub(crate) instances: u64,
    pub(crate) first_instance: u64,
    has_indices: bool,
}

impl Draw {
    /// Vertices that an array must have at most: those of all vertices, those of all instances.
    pub(crate) fn most(&self) -> u64 {
        self.vertices.max(self.first_instance.saturating_add(self.instances))
    }

    /// Vertices that an array must have. `divisor`: so many instances have the same one; 0: vertices have their own.
    pub(crate) fn needs(&self, divisor: u64) -> u64 {
        match divisor {
            0 => self.vertices,
            _ => self.first_instance.saturating_add(self.instances.div_ceil(divisor)),
        }
    }
}

/// Draws by first vertex and number of vertices: where these are, and where instances are.
const PLAIN: [(&str, usize, Option<usize>, Option<usize>); 3] = [
    ("glDrawArrays", 1, None, None),
    ("glDrawArraysInstanced", 1, Some(3), None),
    ("glDrawArraysInstancedBaseInstance", 1, Some(3), Some(4)),
];

/// Whether a function draws vertices of arrays.
pub(crate) fn draws(stem: &str) -> bool {
    PLAIN.iter().any(|(known, ..)| *known == stem)
        || INDEXED.iter().any(|how| how.stem == stem)
        || stem.starts_with("glMultiDraw")
}

/// Whether a draw by indices has none, and so needs a buffer with them.
pub(crate) fn has_no_indices(call: &GlCall<'_>) -> bool {
    let how = INDEXED.iter().find(|how| how.stem == call.stem);
    how.is_some_and(|how| {
        matches!(call.arguments.get(how.count + 2), Some(Argument::Null)) && number(call, how.count) > 0
    })
}

/// What a draw reads; `None` for other calls, and where only the driver knows. `restart`: the index that is none.
///
/// # Errors
/// Lists of pieces are shorter than the call says.
pub(crate) fn draw(call: &GlCall<'_>, restart: Option<u32>) -> Result<Option<Draw>, Unfit> {
    let optional = |at: Option<usize>, otherwise: u64| at.map_or(otherwise, |at| number(call, at));
    if let Some((_, first, instances, first_instance)) = PLAIN.iter().find(|(stem, ..)| *stem == call.stem) {
        let (first, count) = (number(call, *first), number(call, first + 1));
        let vertices = if count == 0 { 0 } else { first.saturating_add(count) };
        return Ok(Some(Draw {
            vertices,
            instances: optional(*instances, 1),
            first_instance: optional(*first_instance, 0),
            has_indices: false,
        }));
    }
    let Some(how) = INDEXED.iter().find(|how| how.stem == call.stem) else { return pieces(call, restart) };
    let indices = match call.arguments.get(how.count + 2) {
        Some(Argument::Bytes(bytes) | Argument::Text(bytes)) => *bytes,
        _ => return Ok(None),
    };
    let base = how.base.map_or(0, |at| signed(call.arguments.get(at)));
    let vertices = behind(indices, number(call, how.count), number(call, how.count + 1), base, restart);
    Ok(vertices.map(|vertices| Draw {
        vertices,
        instances: optional(how.instances, 1),
        first_instance: optional(how.first_instance, 0),
        has_indices: true,
    }))
}

/// Draws of several pieces, whose numbers are in arrays.
fn pieces(call: &GlCall<'_>, restart: Option<u32>) -> Result<Option<Draw>, Unfit> {
    let array = |at: usize| match call.arguments.get(at) {
        Some(Argument::Array(array)) => Some(*array),
        _ => None,
    };
    let (starts, counts, total, bases) = match call.stem {
        "glMultiDrawArrays" => (array(1), array(2), number(call, 3), None),
        "glMultiDrawElements" => (array(3), array(1), number(call, 4), None),
        "glMultiDrawElementsBaseVertex" => (array(3), array(1), number(call, 4), array(5)),
        _ => return Ok(None),
    };
    let (Some(starts), Some(counts)) = (starts, counts) else { return Ok(None) };
    let has = |array: &Array<'_>| array.elements.count() as u64 >= total;
    if !has(&starts) || !has(&counts) || !bases.as_ref().is_none_or(has) {
        return Err(FEWER);
    }
    let has_indices = call.stem != "glMultiDrawArrays";
    let mut bases = bases.as_ref().map(|bases| bases.arguments(call.dictionary));
    let mut vertices = 0_u64;
    let parts = starts.arguments(call.dictionary).zip(counts.arguments(call.dictionary));
    for (start, count) in parts.take(usize::try_from(total).unwrap_or(usize::MAX)) {
        let (start, count) = (start?, u64::try_from(signed(Some(&count?))).unwrap_or(0));
        let base = match &mut bases {
            Some(bases) => bases.next().transpose()?.map_or(0, |base| signed(Some(&base))),
            None => 0,
        };
        let end = match (&start, has_indices) {
            (Argument::Bytes(bytes) | Argument::Text(bytes), true) => {
                let kind = number(call, 2);
                let needed = index_bytes(kind).map_or(0, |bytes| count.saturating_mul(bytes));
                if needed > bytes.len() as u64 {
                    return Err(FEWER);
                }
                behind(bytes, count, kind, base, restart)
            }
            (_, true) => None,
            (_, false) if count == 0 => Some(0),
            (start, false) => Some(u64::try_from(signed(Some(start))).unwrap_or(0).saturating_add(count)),
        };
        let Some(end) = end else { return Ok(None) };
        vertices = vertices.max(end);
    }
    Ok(Some(Draw { vertices, instances: 1, first_instance: 0, has_indices }))
}

/// A number that may be negative; 0 for anything else.
fn signed(argument: Option<&Argument<'_>>) -> i64 {
    match argument {
        Some(Argument::Scalar(Scalar::Integer(number))) => *number,
        _ => 0,
    }
}

/// One more than the last vertex that indices denote; `None` for types that the driver refuses.
fn behind(indices: &[u8], count: u64, kind: u64, base: i64, restart: Option<u32>) -> Option<u64> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let among = |all: &mut dyn Iterator<Item = u32>| {
        let of_vertices = all.take(count).filter(|index| Some(*index) != restart);
        of_vertices.fold(None, |range: Option<(u32, u32)>, index| {
            Some(range.map_or((index, index), |(low, high)| (low.min(index), high.max(index))))
        })
    };
    let range = match kind {
        0x1401 => among(&mut indices.iter().map(|byte| u32::from(*byte))),
        0x1403 => among(&mut indices.as_chunks().0.iter().map(|bytes| u32::from(u16::from_le_bytes(*bytes)))),
        0x1405 => among(&mut indices.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))),
        _ => return None,
    };
    let Some((low, high)) = range else { return Some(0) };
    if i64::from(low) + base < 0 {
        return Some(u64::MAX);
    }
    Some((i64::from(high) + base + 1).unsigned_abs())
}

/// The index that is none in a draw, if the driver is told that there is one.
pub(crate) fn restart_index(gl: &Gl, call: &GlCall<'_>, draw: &Draw) -> Option<u32> {
    if !draw.has_indices {
        return None;
    }
    // GL_PRIMITIVE_RESTART_FIXED_INDEX, GL_PRIMITIVE_RESTART, GL_PRIMITIVE_RESTART_INDEX.
    let restart = if gl.is_enabled(0x8d69) {
        let at = if call.stem.starts_with("glMulti") {
            2
        } else if call.stem.contains("Range") {
            4
        } else {
            2
        };
        index_bytes(number(call, at)).map(|bytes| u32::MAX >> (32 - bytes * 8))
    } else if gl.is_enabled(0x8f9d) {
        Some(gl.state(0x8f9e) as u32)
    } else {
        None
    };
    gl.clear_errors();
    restart
}

/// How a draw reads the array that a function sets: `Some` with its divisor where it is enabled. `which`: its attribute, or
/// its unit.
pub(crate) fn divisor(gl: &Gl, stem: &str, which: u32) -> Option<u64> {
    let is_enabled = match stem {
        "glVertexPointer" | "glInterleavedArrays" => gl.is_enabled(0x8074),
        "glNormalPointer" => gl.is_enabled(0x8075),
        "glColorPointer" => gl.is_enabled(0x8076),
        "glIndexPointer" => gl.is_enabled(0x8077),
        "glTexCoordPointer" | "glMultiTexCoordPointer" => gl.is_unit_enabled(which, 0x8078),
        "glEdgeFlagPointer" => gl.is_enabled(0x8079),
        "glFogCoordPointer" => gl.is_enabled(0x8457),
        "glSecondaryColorPointer" => gl.is_enabled(0x845e),
        "glPointSizePointer" => gl.is_enabled(0x8b9c),
        // GL_VERTEX_ATTRIB_ARRAY_ENABLED, GL_VERTEX_ATTRIB_ARRAY_DIVISOR.
        _ if stem.starts_with("glVertexAttrib") && gl.attribute(which, 0x8622) != 0 => {
            let divisor = u64::from(gl.attribute(which, 0x88fe) as u32);
            gl.clear_errors();
            return Some(divisor);
        }
        _ => false,
    };
    gl.clear_errors();
    is_enabled.then_some(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use anytrace_apitrace::tools::dictionary::Dictionary;
    use anytrace_apitrace::tools::program::Around;

    use super::*;

    /// A call with these numbers, and what follows them.
    fn with<T>(stem: &'static str, numbers: &[i64], more: &[Argument<'_>], then: impl Fn(&GlCall<'_>) -> T) -> T {
        let dictionary = Dictionary::new(6);
        let numbers = numbers.iter().map(|number| Argument::Scalar(Scalar::Integer(*number)));
        let arguments: Vec<Argument<'_>> = numbers.chain(more.iter().copied()).collect();
        let (types, around) = ("v", Around::Nothing);
        then(&GlCall { number: 0, name: stem, stem, types, arguments: &arguments, around, dictionary: &dictionary })
    }

    #[test]
    fn arrays_have_as_many_vertices_as_their_bytes() {
        let bytes = [0; 64];
        for (stem, numbers, length, expected) in [
            ("glVertexPointer", &[2, 0x1406, 0][..], 24, Some(3)),
            ("glVertexPointer", &[2, 0x1406, 0], 23, Some(2)),
            // The last vertex has no padding.
            ("glVertexPointer", &[3, 0x1406, 20], 32, Some(2)),
            ("glColorPointer", &[0x80e1, 0x1401, 0], 16, Some(4)),
            ("glNormalPointer", &[0x1402, 8], 14, Some(2)),
            ("glEdgeFlagPointer", &[0], 5, Some(5)),
            ("glVertexAttribPointer", &[7, 4, 0x1406, 0, 32], 48, Some(2)),
            ("glVertexAttribPointer", &[7, 4, 0x8368, 1, 0], 8, Some(2)),
            ("glVertexAttribIPointer", &[7, 1, 0x1405, 0], 8, Some(2)),
            ("glVertexAttribLPointer", &[7, 4, 0x140a, 0], 31, Some(0)),
            ("glInterleavedArrays", &[0x2a2a, 0], 64, Some(2)),
            ("glInterleavedArrays", &[0x2a2d, 0], 60, Some(1)),
            // The driver refuses it; another function with a parameter more.
            ("glVertexPointer", &[9, 0x1406, 0], 24, None),
            ("glVertexPointer", &[2, 0x1406, 0, 3], 24, None),
            ("glWeightPointer", &[2, 0x1406, 0], 24, None),
        ] {
            let found = with(stem, numbers, &[Argument::Bytes(&bytes)], |call| vertices(call, length));
            assert_eq!(found, expected, "{stem} {numbers:?}");
        }
    }

    #[test]
    fn draws_read_up_to_their_last_vertex() {
        let shorts: Vec<u8> = [5_u16, 9, 0xffff, 7].iter().flat_map(|index| index.to_le_bytes()).collect();
        let blob = Argument::Bytes(&shorts);
        let integer = |number| Argument::Scalar(Scalar::Integer(number));
        let read = |stem, numbers: &[i64], more: &[Argument<'_>], restart| {
            with(stem, numbers, more, |call| draw(call, restart).ok().flatten())
        };
        let of = |stem, numbers: &[i64]| read(stem, numbers, &[], None).unwrap();
        assert_eq!(of("glDrawArrays", &[4, 5, 3]).vertices, 8);
        assert_eq!(of("glDrawArrays", &[4, 5, 0]).vertices, 0);
        let instanced = of("glDrawArraysInstancedBaseInstance", &[4, 0, 3, 10, 2]);
        assert_eq!((instanced.needs(0), instanced.needs(1), instanced.needs(4), instanced.most()), (3, 12, 5, 12));
        let indexed = |count, restart| read("glDrawElements", &[4, count, 0x1403], &[blob], restart).unwrap().vertices;
        assert_eq!((indexed(4, None), indexed(4, Some(0xffff)), indexed(2, None)), (0x1_0000, 10, 10));
        let based =
            |base| read("glDrawElementsBaseVertex", &[4, 2, 0x1403], &[blob, integer(base)], None).unwrap().vertices;
        assert_eq!((based(10), based(-5), based(-6)), (20, 5, u64::MAX));
        assert_eq!(read("glDrawElements", &[4, 2, 0x1403], &[Argument::Address(64)], None), None);
        assert_eq!(read("glClear", &[4], &[], None), None);
    }
}
