//! Vertex arrays in the program's own memory. OpenGL reads them at a draw, so that is when they are recorded, as calls of
//! `gl*Pointer` with their bytes (OpenGL 4.6, compatibility profile, section 10.3).

use std::sync::atomic::Ordering::Relaxed;

use crate::arguments::Arguments;
use crate::ask;
use crate::context::{self, Context};
use crate::extent::{has_vertex_buffer, type_bytes};
use crate::lock::Shared;
use crate::reach::{Reach, reach};
use crate::table::{self, FUNCTIONS};
use crate::values;

/// Whether a call of `gl*Pointer` declares an array in the program's memory. It is then recorded at draws only, when the
/// memory has what is drawn.
pub(crate) fn is_users(arguments: &Arguments) -> bool {
    let Some(context) = context::current() else { return false };
    let last = arguments.function.parameters.len().saturating_sub(1);
    if arguments.raw(last) == 0 || has_vertex_buffer() {
        return false;
    }
    context.has_user_arrays.store(true, Relaxed);
    true
}

/// The arrays that `glInterleavedArrays` enables and disables, and whether they are enabled.
pub(crate) fn enabled() -> impl Iterator<Item = (u32, bool)> {
    // Vertices, normals, colours, indices, coordinates, edges.
    [0x8074, 0x8075, 0x8076, 0x8077, 0x8078, 0x8079].into_iter().map(|array| (array, ask::is_enabled(array)))
}

/// What has to be recorded before a draw.
#[derive(Debug)]
pub(crate) struct Array {
    function: usize,
    /// The arguments before the pointer.
    numbers: Vec<u32>,
    /// Selects the unit of texture coordinates first.
    unit: Option<u32>,
    address: *const u8,
    bytes: usize,
}

/// The arrays in the program's memory that a draw reads; `Err`: why they cannot be recorded.
///
/// # Safety
/// The program draws with these arguments.
pub(crate) unsafe fn read(arguments: &Arguments) -> Result<Vec<Array>, &'static str> {
    let Some(context) = context::current().filter(|context| context.has_user_arrays.load(Relaxed)) else {
        return Ok(Vec::new());
    };
    let arrays = declared_by_user(context);
    if arrays.is_empty() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let reach = unsafe { reach(arguments) }?;
    Ok(arrays.into_iter().filter_map(|array| array.measured(reach)).collect())
}

/// The arrays in the program's memory that are enabled.
pub(crate) fn declared_by_user(context: &Context) -> Vec<Declared> {
    let mut arrays = Vec::new();
    if !context.has_user_arrays.load(Relaxed) {
        return arrays;
    }
    if context.has_fixed_arrays() {
        fixed(context, &mut arrays);
    }
    if context.has_attributes() {
        attributes(context, &mut arrays);
    }
    arrays
}

/// An array as the driver has it.
#[derive(Debug)]
pub(crate) struct Declared {
    array: Array,
    /// Bytes of a vertex.
    pub(crate) element: usize,
    pub(crate) stride: usize,
    divisor: u64,
}

impl Declared {
    pub(crate) fn address(&self) -> *const u8 {
        self.array.address
    }

    /// Whether its values make a vertex of those of the others.
    pub(crate) fn is_vertex(&self) -> bool {
        match FUNCTIONS[self.array.function].name {
            "glVertexPointer" => true,
            "glVertexAttribPointer" => self.array.numbers.first() == Some(&0),
            _ => false,
        }
    }

    /// What its elements are; `None`: of integers that stay integers.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let name = FUNCTIONS[self.array.function].name;
        let number = |at: usize| self.array.numbers.get(at).copied().unwrap_or(0);
        let stem = name.strip_suffix("Pointer")?;
        let of = |first, size, kind, is_normalized| Shape { stem, first, size, kind, is_normalized };
        Some(match stem {
            "glVertex" => of(None, number(0), number(1), false),
            "glTexCoord" => match self.array.unit {
                Some(unit) => Shape { stem: "glMultiTexCoord", ..of(Some(unit), number(0), number(1), false) },
                None => of(None, number(0), number(1), false),
            },
            "glColor" | "glSecondaryColor" => of(None, number(0), number(1), true),
            "glNormal" => of(None, 3, number(0), true),
            "glIndex" | "glFogCoord" => of(None, 1, number(0), false),
            "glEdgeFlag" => of(None, 1, 0, false),
            "glVertexAttrib" => of(Some(number(0)), number(1), number(2), number(3) != 0),
            _ => return None,
        })
    }

    fn measured(mut self, reach: Reach) -> Option<Array> {
        let count = match self.divisor {
            0 => reach.vertices,
            divisor => reach.first_instance + reach.instances.div_ceil(divisor),
        };
        let last = usize::try_from(count).ok()?.checked_sub(1)?;
        let stride = if self.stride == 0 { self.element } else { self.stride };
        self.array.bytes = last.checked_mul(stride)?.checked_add(self.element)?;
        Some(self.array)
    }
}

/// What an array's elements are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The function that sets one, without the number of its values and their type.
    pub(crate) stem: &'static str,
    /// The unit or the attribute's number.
    pub(crate) first: Option<u32>,
    pub(crate) size: u32,
    /// 0: truth, of one byte.
    pub(crate) kind: u32,
    /// Integers are mapped to the range 0 to 1, or -1 to 1.
    pub(crate) is_normalized: bool,
}

/// An array with a name: capability, function, and the names of size, type, stride, buffer and pointer.
struct Fixed {
    enable: u32,
    function: &'static str,
    /// The name of its size, or how many numbers there are.
    size: Result<u32, usize>,
    /// 0: truth, of one byte.
    kind: u32,
    stride: u32,
    buffer: u32,
    pointer: u32,
}

const FIXED: [Fixed; 7] = [
    Fixed {
        enable: 0x8074,
        function: "glVertexPointer",
        size: Ok(0x807a),
        kind: 0x807b,
        stride: 0x807c,
        buffer: 0x8896,
        pointer: 0x808e,
    },
    Fixed {
        enable: 0x8075,
        function: "glNormalPointer",
        size: Err(3),
        kind: 0x807e,
        stride: 0x807f,
        buffer: 0x8897,
        pointer: 0x808f,
    },
    Fixed {
        enable: 0x8076,
        function: "glColorPointer",
        size: Ok(0x8081),
        kind: 0x8082,
        stride: 0x8083,
        buffer: 0x8898,
        pointer: 0x8090,
    },
    Fixed {
        enable: 0x8077,
        function: "glIndexPointer",
        size: Err(1),
        kind: 0x8085,
        stride: 0x8086,
        buffer: 0x8899,
        pointer: 0x8091,
    },
    Fixed {
        enable: 0x8079,
        function: "glEdgeFlagPointer",
        size: Err(1),
        kind: 0,
        stride: 0x808c,
        buffer: 0x889b,
        pointer: 0x8093,
    },
    Fixed {
        enable: 0x8457,
        function: "glFogCoordPointer",
        size: Err(1),
        kind: 0x8454,
        stride: 0x8455,
        buffer: 0x889d,
        pointer: 0x8456,
    },
    Fixed {
        enable: 0x845e,
        function: "glSecondaryColorPointer",
        size: Ok(0x845a),
        kind: 0x845b,
        stride: 0x845c,
        buffer: 0x889c,
        pointer: 0x845d,
    },
];

const TEXTURE: Fixed = Fixed {
    enable: 0x8078,
    function: "glTexCoordPointer",
    size: Ok(0x8088),
    kind: 0x8089,
    stride: 0x808a,
    buffer: 0x889a,
    pointer: 0x8092,
};

/// Arrays with names.
fn fixed(context: &Context, arrays: &mut Vec<Declared>) {
    const GL_CLIENT_ACTIVE_TEXTURE: u32 = 0x84e1;
    const GL_MAX_TEXTURE_COORDS: u32 = 0x8871;
    const GL_MAX_TEXTURE_UNITS: u32 = 0x84e2;
    const GL_TEXTURE0: u32 = 0x84c0;
    // OpenGL ES has the first three, fog and secondary colours came with 1.4.
    let known = if context.is_es {
        3
    } else if context.version >= 14 {
        FIXED.len()
    } else {
        5
    };
    for kind in FIXED.iter().take(known).filter(|kind| !context.is_es || kind.function != "glIndexPointer") {
        arrays.extend(declared(context, kind, None));
    }
    let Some(select) = ask::CLIENT_ACTIVE_TEXTURE.get().filter(|_| context.is_es || context.version >= 13) else {
        arrays.extend(declared(context, &TEXTURE, None));
        return;
    };
    let active = ask::integer(GL_CLIENT_ACTIVE_TEXTURE) as u32;
    let is_old = context.is_es || context.version < 20;
    let units = ask::integer(if is_old { GL_MAX_TEXTURE_UNITS } else { GL_MAX_TEXTURE_COORDS }).clamp(1, 32) as u32;
    for unit in 0..units {
        // SAFETY: the driver has the unit; the program's own is restored below.
        unsafe { select(GL_TEXTURE0 + unit) };
        arrays.extend(declared(context, &TEXTURE, Some(GL_TEXTURE0 + unit)));
    }
    // SAFETY: as above.
    unsafe { select(active) };
}

fn declared(context: &Context, kind: &Fixed, unit: Option<u32>) -> Option<Declared> {
    if !ask::is_enabled(kind.enable) || context.has_buffers() && ask::integer(kind.buffer) != 0 {
        return None;
    }
    let mut address = std::ptr::null();
    // SAFETY: the driver writes one pointer.
    unsafe { ask::GET_POINTER.get()?(kind.pointer, &mut address) };
    if address.is_null() {
        return None;
    }
    let stride = ask::integer(kind.stride) as u32;
    let mut numbers = Vec::new();
    let size = match kind.size {
        Ok(name) => {
            let size = ask::integer(name) as u32;
            numbers.push(size);
            components(size)
        }
        Err(count) => count,
    };
    let element = if kind.kind == 0 {
        size
    } else {
        let format = ask::integer(kind.kind) as u32;
        numbers.push(format);
        vertex_bytes(size, format)?
    };
    numbers.push(stride);
    let function = table::number(kind.function.as_bytes())?;
    let array = Array { function, numbers, unit, address, bytes: 0 };
    Some(Declared { array, element, stride: stride as usize, divisor: 0 })
}

/// Arrays with numbers.
fn attributes(context: &Context, arrays: &mut Vec<Declared>) {
    const GL_MAX_VERTEX_ATTRIBS: u32 = 0x8869;
    let (Some(get), Some(get_pointer)) = (ask::GET_ATTRIBUTE.get(), ask::GET_ATTRIBUTE_POINTER.get()) else { return };
    let has_integers = context.version >= 30;
    let has_divisors = context.version >= if context.is_es { 30 } else { 33 };
    let has_longs = !context.is_es && context.version >= 43;
    for index in 0..ask::integer(GL_MAX_VERTEX_ATTRIBS).clamp(0, 64) as u32 {
        let ask = |name: u32| {
            let mut found = [0; 4];
            // SAFETY: these have one number each.
            unsafe { get(index, name, found.as_mut_ptr()) };
            found[0] as u32
        };
        // Enabled, and in no buffer.
        if ask(0x8622) == 0 || ask(0x889f) != 0 {
            continue;
        }
        let mut address = std::ptr::null();
        // SAFETY: the driver writes one pointer.
        unsafe { get_pointer(index, 0x8645, &mut address) };
        let (size, stride, format) = (ask(0x8623), ask(0x8624), ask(0x8625));
        let Some(element) = vertex_bytes(components(size), format).filter(|_| !address.is_null()) else { continue };
        let (name, numbers) = if has_integers && ask(0x88fd) != 0 {
            ("glVertexAttribIPointer", vec![index, size, format, stride])
        } else if has_longs && ask(0x874e) != 0 {
            ("glVertexAttribLPointer", vec![index, size, format, stride])
        } else {
            ("glVertexAttribPointer", vec![index, size, format, ask(0x886a), stride])
        };
        let Some(function) = table::number(name.as_bytes()) else { continue };
        let divisor = if has_divisors { ask(0x88fe).into() } else { 0 };
        let array = Array { function, numbers, unit: None, address, bytes: 0 };
        arrays.push(Declared { array, element, stride: stride as usize, divisor });
    }
}

pub(crate) fn components(size: u32) -> usize {
    // `GL_BGRA`.
    if size == 0x80e1 { 4 } else { size as usize }
}

/// Bytes of a vertex of so many numbers.
fn vertex_bytes(size: usize, format: u32) -> Option<usize> {
    match format {
        // Numbers in one word.
        0x8368 | 0x8d9f | 0x8c3b => Some(4),
        _ => Some(size * type_bytes(format)?),
    }
}

/// Records arrays, as calls that the program did not make.
pub(crate) fn write(shared: &mut Shared, thread: u32, arrays: &[Array]) {
    let Some(stream) = &mut shared.stream else { return };
    let select = table::number(b"glClientActiveTexture");
    let units = arrays.iter().filter(|array| array.unit.is_some()).count();
    let active = (units > 0).then(|| ask::integer(0x84e1) as u32);
    let choose = |stream: &mut crate::stream::Stream, unit: u32| {
        if let Some(select) = select {
            values::fake(stream, select, thread, &[unit], None);
        }
    };
    let mut selected = active;
    for array in arrays {
        if let Some(unit) = array.unit.filter(|unit| selected != Some(*unit)) {
            choose(stream, unit);
            selected = Some(unit);
        }
        // SAFETY: the driver reads as many bytes for the draw that follows.
        let bytes = unsafe { std::slice::from_raw_parts(array.address, array.bytes) };
        values::fake(stream, array.function, thread, &array.numbers, Some(bytes));
    }
    if let Some(active) = active.filter(|active| selected != Some(*active)) {
        choose(stream, active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_end_with_the_last_vertex_that_is_read() {
        let declared = |stride, divisor| Declared {
            array: Array { function: 0, numbers: Vec::new(), unit: None, address: std::ptr::null(), bytes: 0 },
            element: 12,
            stride,
            divisor,
        };
        let reach = Reach { vertices: 10, instances: 5, first_instance: 2 };
        let bytes = |declared: Declared| declared.measured(reach).map(|array| array.bytes);
        assert_eq!(bytes(declared(0, 0)), Some(120));
        assert_eq!(bytes(declared(32, 0)), Some(9 * 32 + 12));
        assert_eq!(bytes(declared(0, 2)), Some(5 * 12));
        let nothing = Reach { vertices: 0, ..reach };
        assert!(declared(0, 0).measured(nothing).is_none());
    }
}
