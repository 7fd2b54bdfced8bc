//! How far into its arrays a draw reads: to the highest index, to the last instance.

use crate::arguments::Arguments;
use crate::ask;
use crate::context;
use crate::extent::{has_index_buffer, type_bytes};

/// What a draw reads: of arrays of vertices and of those of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// One more than the last vertex.
    pub(crate) vertices: u64,
    pub(crate) instances: u64,
    pub(crate) first_instance: u64,
}

/// What a draw reads of its arrays; `Err`: why nobody knows.
///
/// # Safety
/// The program draws with these arguments.
pub(crate) unsafe fn reach(arguments: &Arguments) -> Result<Reach, &'static str> {
    let name = arguments.function.name;
    if name.contains("Indirect") {
        return Err("vertices in the program's memory, of a draw whose numbers are in memory");
    }
    let number = |names: &[&str], otherwise: i64| arguments.named(names).unwrap_or(otherwise);
    let instances = u64::try_from(number(&["instancecount", "primcount", "instanceCount"], 1)).unwrap_or(0);
    let first_instance = u64::from(number(&["baseinstance"], 0) as u32);
    let mut vertices = 0_u64;
    // SAFETY: the program passed what the function reads.
    let pieces = unsafe { pieces(arguments) };
    for piece in pieces {
        let end = match piece {
            Piece::Plain { first, count } if count > 0 => first + count,
            // SAFETY: as above.
            Piece::Indexed { indices, count, base } if count > 0 => {
                let kind = number(&["type"], 0) as u32;
                // SAFETY: as above.
                let highest = unsafe { highest(indices, count as usize, kind) }?;
                highest.map_or(0, |highest| i64::from(highest) + base + 1)
            }
            _ => 0,
        };
        vertices = vertices.max(u64::try_from(end).unwrap_or(0));
    }
    Ok(Reach { vertices, instances: if name.contains("Multi") { 1 } else { instances }, first_instance })
}

enum Piece {
    Plain { first: i64, count: i64 },
    Indexed { indices: u64, count: i64, base: i64 },
}

/// The pieces of a draw: one, or those of `glMultiDraw*`.
unsafe fn pieces(arguments: &Arguments) -> Vec<Piece> {
    let is_indexed = arguments.place(&["indices"]).is_some();
    let raw = |names: &[&str]| arguments.place(names).map_or(0, |at| arguments.raw(at));
    if !arguments.function.name.contains("MultiDraw") {
        let number = |names: &[&str]| arguments.named(names).unwrap_or(0);
        let count = number(&["count"]);
        return vec![match is_indexed {
            true => Piece::Indexed { indices: raw(&["indices"]), count, base: number(&["basevertex"]) },
            false => Piece::Plain { first: number(&["first"]), count },
        }];
    }
    let draws = usize::try_from(arguments.named(&["drawcount", "primcount"]).unwrap_or(0)).unwrap_or(0);
    let item = |list: u64, at: usize| {
        let list = list as *const i32;
        // SAFETY: the program passed a list of so many numbers.
        if list.is_null() { 0 } else { i64::from(unsafe { list.add(at).read_unaligned() }) }
    };
    (0..draws)
        .map(|at| {
            let count = item(raw(&["count"]), at);
            if !is_indexed {
                return Piece::Plain { first: item(raw(&["first"]), at), count };
            }
            let list = raw(&["indices"]) as *const u64;
            // SAFETY: as above, of pointers.
            let indices = if list.is_null() { 0 } else { unsafe { list.add(at).read_unaligned() } };
            Piece::Indexed { indices, count, base: item(raw(&["basevertex"]), at) }
        })
        .collect()
}

/// The highest of the indices, without that which begins a new strip.
unsafe fn highest(indices: u64, count: usize, kind: u32) -> Result<Option<u32>, &'static str> {
    let bytes =
        type_bytes(kind).filter(|_| matches!(kind, 0x1401 | 0x1403 | 0x1405)).ok_or("indices of an unknown type")?;
    let restart = restart_index(bytes);
    let owned;
    let bytes_of = if has_index_buffer() {
        owned = index_buffer(indices, count * bytes).ok_or("indices in a buffer that the driver does not show")?;
        owned.as_slice()
    } else if indices == 0 {
        return Ok(None);
    } else {
        // SAFETY: the program passed so many indices.
        unsafe { std::slice::from_raw_parts(indices as *const u8, count * bytes) }
    };
    let numbers = bytes_of
        .chunks_exact(bytes)
        .map(|index| index.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)));
    Ok(numbers.filter(|number| Some(*number) != restart).max())
}

/// The index that begins a new strip, as far as it is enabled.
fn restart_index(bytes: usize) -> Option<u32> {
    const GL_PRIMITIVE_RESTART_FIXED_INDEX: u32 = 0x8d69;
    const GL_PRIMITIVE_RESTART: u32 = 0x8f9d;
    const GL_PRIMITIVE_RESTART_INDEX: u32 = 0x8f9e;
    let context = context::current()?;
    if context.version >= if context.is_es { 30 } else { 43 } && ask::is_enabled(GL_PRIMITIVE_RESTART_FIXED_INDEX) {
        return Some(u32::MAX >> (32 - 8 * bytes));
    }
    let has_own = !context.is_es && context.version >= 31 && ask::is_enabled(GL_PRIMITIVE_RESTART);
    has_own.then(|| ask::integer(GL_PRIMITIVE_RESTART_INDEX) as u32)
}

/// A part of the buffer with indices, as the driver has it.
fn index_buffer(offset: u64, bytes: usize) -> Option<Vec<u8>> {
    const GL_ELEMENT_ARRAY_BUFFER: u32 = 0x8893;
    const GL_BUFFER_SIZE: u32 = 0x8764;
    const GL_MAP_READ_BIT: u32 = 1;
    let context = context::current()?;
    let mut size = [0; 4];
    // SAFETY: the driver writes one number.
    unsafe { ask::GET_BUFFER_PARAMETER.get()?(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_SIZE, size.as_mut_ptr()) };
    let size = u64::try_from(size[0]).ok()?;
    if offset.checked_add(bytes as u64)? > size {
        return None;
    }
    let mut found = vec![0; bytes];
    if !context.is_es {
        // SAFETY: the part is in the buffer, and as long as the vector.
        unsafe {
            ask::GET_BUFFER_DATA.get()?(GL_ELEMENT_ARRAY_BUFFER, offset as isize, bytes as isize, found.as_mut_ptr())
        };
        return Some(found);
    }
    if context.version < 30 {
        return None;
    }
    // SAFETY: the part is in the buffer; what is mapped is read before it is unmapped.
    unsafe {
        let map = ask::MAP_BUFFER_RANGE.get()?;
        let address = map(GL_ELEMENT_ARRAY_BUFFER, offset as isize, bytes as isize, GL_MAP_READ_BIT);
        if address.is_null() {
            return None;
        }
        found.copy_from_slice(std::slice::from_raw_parts(address, bytes));
        ask::UNMAP_BUFFER.get()?(GL_ELEMENT_ARRAY_BUFFER);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_index_is_found_in_the_programs_memory() {
        let indices: [u16; 4] = [3, 900, 7, 2];
        // SAFETY: there are four.
        assert_eq!(unsafe { highest(indices.as_ptr() as u64, 4, 0x1403) }, Ok(Some(900)));
        // SAFETY: nothing is read.
        assert!(unsafe { highest(indices.as_ptr() as u64, 4, 0x1406) }.is_err());
    }
}
