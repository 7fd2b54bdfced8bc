//! Contents of the buffers that the current program's attributes come from, vertex by vertex, as apitrace's dumps have
//! them. Arrays in the program's own memory are not looked at: the trace has them.

use serde_json::{Map, Value};

use super::ask::{Ask, number};

/// Most characters of an attribute's name.
const NAME_MAX: usize = 1024;

/// An attribute whose array is in a buffer, as the driver has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Array {
    buffer: u32,
    /// Numbers of a vertex.
    size: usize,
    kind: u32,
    /// Bytes from one vertex to the next.
    stride: usize,
    offset: usize,
}

impl Ask<'_> {
    /// The vertices in buffers: a list of values by attribute; empty without such attributes.
    pub(super) fn vertices(&self, program: u32) -> Map<String, Value> {
        // GL_ACTIVE_ATTRIBUTES.
        let count = self.of_program("glGetProgramiv", program, 0x8b89).unwrap_or(0);
        let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
        for index in 0..u64::try_from(count).unwrap_or(0) {
            let Some(name) = self.attribute_name(program, index) else { continue };
            let Some(array) = self.array(program, &name) else { continue };
            let Some(bytes) = self.all_bytes(array.buffer) else { continue };
            columns.push((name, array.values(&bytes)));
        }
        let vertices = columns.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
        let mut found = Map::new();
        if vertices > 0 {
            let vertex = |at: usize| {
                columns
                    .iter()
                    .map(|(name, values)| (name.clone(), values.get(at).cloned().unwrap_or_default()))
                    .collect()
            };
            let list: Vec<Value> = (0..vertices).map(|at| Value::Object(vertex(at))).collect();
            found.insert("vertices".to_owned(), Value::Array(list));
        }
        found
    }

    fn attribute_name(&self, program: u32, index: u64) -> Option<String> {
        let mut name = [0_u8; NAME_MAX + 1];
        let (mut length, mut size, mut kind) = ([0_i32; 2], [0_i32; 2], [0_u32; 2]);
        let to = [length.as_mut_ptr() as u64, size.as_mut_ptr() as u64, kind.as_mut_ptr() as u64];
        let name_to = name.as_mut_ptr() as u64;
        self.call("glGetActiveAttrib", &[u64::from(program), index, NAME_MAX as u64, to[0], to[1], to[2], name_to])?;
        let length = usize::try_from(length[0]).ok().filter(|length| *length > 0)?;
        Some(String::from_utf8_lossy(name.get(..length)?).into_owned())
    }

    /// Where an attribute's values are; `None`: in no buffer, or it is not enabled.
    fn array(&self, program: u32, name: &str) -> Option<Array> {
        let text = std::ffi::CString::new(name).ok()?;
        let location = self.call("glGetAttribLocation", &[u64::from(program), text.as_ptr() as u64])? as u32;
        // -1: the driver has no place for it.
        let location = u64::try_from(location as i32).ok()?;
        let ask = |name: u64| self.integers("glGetVertexAttribiv", &[location, name], 1)?.first().copied();
        // GL_VERTEX_ATTRIB_ARRAY_ENABLED, _BUFFER_BINDING, _SIZE, _TYPE, _STRIDE.
        if ask(0x8622)? == 0 {
            return None;
        }
        let buffer = u32::try_from(ask(0x889f)?).ok().filter(|buffer| *buffer != 0)?;
        let size = usize::try_from(ask(0x8623)?).ok()?;
        let kind = ask(0x8625)? as u32;
        let mut pointer = [0_u64; 2];
        // GL_VERTEX_ATTRIB_ARRAY_POINTER.
        self.call("glGetVertexAttribPointerv", &[location, 0x8645, pointer.as_mut_ptr() as u64])?;
        let packed = usize::try_from(ask(0x8624)?).ok()?;
        let stride = if packed == 0 { size * bytes_of(kind)? } else { packed };
        Some(Array { buffer, size, kind, stride, offset: usize::try_from(pointer[0]).ok()? })
    }
}

/// Bytes of a number; `None` for several in one word.
fn bytes_of(kind: u32) -> Option<usize> {
    Some(match kind {
        0x1400 | 0x1401 => 1,
        0x1402 | 0x1403 => 2,
        0x1404..=0x1406 => 4,
        0x140a => 8,
        _ => return None,
    })
}

impl Array {
    /// The values of all vertices that are complete.
    fn values(&self, bytes: &[u8]) -> Vec<Value> {
        let Some(width) = bytes_of(self.kind).filter(|_| self.stride > 0) else { return Vec::new() };
        let vertex = |start: usize| {
            let numbers = bytes.get(start..start.checked_add(self.size * width)?)?.chunks_exact(width);
            let mut values: Vec<Value> = numbers.map(|bytes| self.value(bytes)).collect();
            Some(if values.len() == 1 { values.swap_remove(0) } else { Value::Array(values) })
        };
        (self.offset..bytes.len()).step_by(self.stride).map_while(vertex).collect()
    }

    /// One number as it is in the buffer, normalized or not.
    fn value(&self, bytes: &[u8]) -> Value {
        match (self.kind, bytes) {
            (0x1400, [byte]) => Value::from(*byte as i8),
            (0x1401, [byte]) => Value::from(*byte),
            (0x1402, &[a, b]) => Value::from(i16::from_ne_bytes([a, b])),
            (0x1403, &[a, b]) => Value::from(u16::from_ne_bytes([a, b])),
            (0x1404, &[a, b, c, d]) => Value::from(i32::from_ne_bytes([a, b, c, d])),
            (0x1405, &[a, b, c, d]) => Value::from(u32::from_ne_bytes([a, b, c, d])),
            (0x1406, &[a, b, c, d]) => number(f32::from_ne_bytes([a, b, c, d])),
            (_, bytes) => {
                let double = bytes.try_into().map(f64::from_ne_bytes).unwrap_or_default();
                serde_json::Number::from_f64(double).map_or(Value::Null, Value::Number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn vertices_are_as_many_as_are_complete() {
        let bytes: Vec<u8> = (0..7_u32).flat_map(|at| (at as f32).to_ne_bytes()).collect();
        let array = Array { buffer: 1, size: 2, kind: 0x1406, stride: 12, offset: 4 };
        assert_eq!(array.values(&bytes), [json!([1, 2]), json!([4, 5])]);
        let tints = Array { size: 1, kind: 0x1401, stride: 2, offset: 0, ..array };
        assert_eq!(tints.values(&[255, 9, 0, 9, 51]), [json!(255), json!(0), json!(51)]);
        let behind = Array { offset: 100, ..array };
        assert!(behind.values(&bytes).is_empty());
    }
}
