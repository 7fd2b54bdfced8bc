//! `glArrayElement` with arrays in the program's memory. The driver cannot be asked for arrays between `glBegin` and
//! `glEnd`, so that they are looked at before; each element is then recorded as the values that its arrays have.

use std::cell::{Cell, RefCell};

use crate::arrays::{self, Declared, components};
use crate::context;
use crate::stream::Stream;
use crate::{extent, table};

thread_local! {
    /// The arrays of the context at the last `glBegin`.
    static ARRAYS: RefCell<Vec<Declared>> = const { RefCell::new(Vec::new()) };
    /// How often arrays had changed then, and of which context.
    static SEEN: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// Looks at the context's arrays, if they may have changed.
pub(crate) fn prepare() {
    let Some(context) = context::current() else { return };
    let now = (std::ptr::from_ref(context) as usize, context.array_changes());
    if SEEN.replace(now) != now {
        let declared = arrays::declared_by_user(context);
        // A thread that is ending has no place for them any more.
        let _ = ARRAYS.try_with(|arrays| arrays.replace(declared));
    }
}

/// Whether an element has values that are in the program's memory.
pub(crate) fn are_users() -> bool {
    ARRAYS.try_with(|arrays| !arrays.borrow().is_empty()).unwrap_or(false)
}

/// Records an element as its values; `Err`: why some are missing.
///
/// # Safety
/// The program calls `glArrayElement` with this index.
pub(crate) unsafe fn write(stream: &mut Stream, thread: u32, index: i32) -> Result<(), &'static str> {
    let Ok(index) = usize::try_from(index) else { return Ok(()) };
    let written = ARRAYS.try_with(|arrays| {
        let arrays = arrays.borrow();
        let mut is_whole = true;
        // The vertex comes last: it is what takes the others.
        for array in
            arrays.iter().filter(|array| !array.is_vertex()).chain(arrays.iter().filter(|array| array.is_vertex()))
        {
            // SAFETY: the caller's promise: the driver reads the same.
            is_whole &= unsafe { one(stream, thread, array, index) }.is_some();
        }
        if is_whole { Ok(()) } else { Err("elements of arrays of integers, or of numbers in one word") }
    });
    written.unwrap_or(Err("elements of a thread that is ending"))
}

/// Records an element of one array; `None`: there is no function for its values.
unsafe fn one(stream: &mut Stream, thread: u32, array: &Declared, index: usize) -> Option<()> {
    let shape = array.shape()?;
    // SAFETY: the driver reads the element, too.
    let values = unsafe { values(array, index, shape.size, shape.kind, shape.is_normalized) }?;
    let name = match shape.stem {
        "glNormal" | "glSecondaryColor" | "glVertex" | "glColor" | "glTexCoord" | "glMultiTexCoord"
        | "glVertexAttrib" => {
            format!("{}{}dv", shape.stem, values.len())
        }
        "glEdgeFlag" => {
            let function = table::number(b"glEdgeFlag")?;
            crate::values::fake(stream, function, thread, &[u32::from(values[0] != 0.0)], None);
            return Some(());
        }
        // `glIndexdv`, `glFogCoorddv`.
        stem => format!("{stem}dv"),
    };
    let function = table::number(name.as_bytes())?;
    let call = stream.enter(function, thread, true);
    let mut at = 0;
    if let Some(first) = shape.first {
        stream.argument(0);
        // The unit is an enumerant, the attribute a number.
        crate::values::number(stream, table::FUNCTIONS[function].parameters[0].kind, first.into());
        at = 1;
    }
    stream.argument(at);
    stream.array(values.len());
    for value in values {
        stream.double(value.to_bits());
    }
    stream.end();
    stream.leave(call);
    stream.end();
    Some(())
}

/// The numbers of an element.
unsafe fn values(array: &Declared, index: usize, size: u32, kind: u32, is_normalized: bool) -> Option<Vec<f64>> {
    let count = components(size);
    let bytes = if kind == 0 { 1 } else { extent::type_bytes(kind)? };
    let stride = if array.stride == 0 { array.element } else { array.stride };
    let start = array.address().wrapping_add(index * stride);
    let mut found = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the caller's promise.
        found.push(unsafe { number(start.wrapping_add(at * bytes), kind, is_normalized) }?);
    }
    if size == 0x80e1 {
        // `GL_BGRA`.
        found.swap(0, 2);
    }
    Some(found)
}

/// One number in memory; integers that are normalized by OpenGL 4.6, section 2.3.5.
unsafe fn number(address: *const u8, kind: u32, is_normalized: bool) -> Option<f64> {
    // SAFETY: the caller's promise: a value of the type is there.
    let (value, most) = unsafe {
        match kind {
            0 => (f64::from(address.read()), 1.0),
            0x1400 => (f64::from(address.cast::<i8>().read()), f64::from(i8::MAX)),
            0x1401 => (f64::from(address.read()), f64::from(u8::MAX)),
            0x1402 => (f64::from(address.cast::<i16>().read_unaligned()), f64::from(i16::MAX)),
            0x1403 => (f64::from(address.cast::<u16>().read_unaligned()), f64::from(u16::MAX)),
            0x1404 => (f64::from(address.cast::<i32>().read_unaligned()), f64::from(i32::MAX)),
            0x1405 => (f64::from(address.cast::<u32>().read_unaligned()), f64::from(u32::MAX)),
            0x1406 => return Some(address.cast::<f32>().read_unaligned().into()),
            0x140a => return Some(address.cast::<f64>().read_unaligned()),
            _ => return None,
        }
    };
    Some(if is_normalized { (value / most).max(-1.0) } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_converted_as_the_driver_does() {
        let of = |bytes: &[u8], kind: u32, is_normalized: bool| {
            // SAFETY: each has as many bytes as its type.
            unsafe { number(bytes.as_ptr(), kind, is_normalized) }
        };
        assert_eq!(of(&[255], 0x1401, true), Some(1.0));
        assert_eq!(of(&[128], 0x1400, true), Some(-1.0));
        assert_eq!(of(&[254, 255], 0x1402, false), Some(-2.0));
        assert_eq!(of(&0.25_f32.to_le_bytes(), 0x1406, true), Some(0.25));
        assert_eq!(of(&[0; 8], 0x140c, false), None);
    }
}
