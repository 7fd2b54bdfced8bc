//! The current program: sources of its shaders, values of its uniforms.

use serde_json::{Map, Value};

use super::ask::{Ask, number};
use super::table::SHADERS;

/// Most characters of a uniform's name.
const NAME_MAX: usize = 1024;

/// What a uniform's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Component {
    Float,
    Integer,
    Unsigned,
}

/// What a type consists of: columns, and components of each.
fn shape(kind: u32) -> (Component, usize, usize) {
    use Component::{Float, Integer, Unsigned};
    match kind {
        0x1406 => (Float, 1, 1),
        0x8b50..=0x8b52 => (Float, 1, (kind - 0x8b4e) as usize),
        0x8b53..=0x8b55 => (Integer, 1, (kind - 0x8b51) as usize),
        0x8b57..=0x8b59 => (Integer, 1, (kind - 0x8b55) as usize),
        0x8b5a..=0x8b5c => (Float, (kind - 0x8b58) as usize, (kind - 0x8b58) as usize),
        0x8b65 => (Float, 2, 3),
        0x8b66 => (Float, 2, 4),
        0x8b67 => (Float, 3, 2),
        0x8b68 => (Float, 3, 4),
        0x8b69 => (Float, 4, 2),
        0x8b6a => (Float, 4, 3),
        0x1405 => (Unsigned, 1, 1),
        0x8dc6..=0x8dc8 => (Unsigned, 1, (kind - 0x8dc4) as usize),
        // Numbers of textures and images among them.
        _ => (Integer, 1, 1),
    }
}

impl Ask<'_> {
    pub(super) fn of_program(&self, function: &str, object: u32, name: u64) -> Option<i32> {
        self.integers(function, &[u64::from(object), name], 1)?.first().copied()
    }

    /// Sources of the shaders of a program, by their kinds.
    pub(super) fn shaders(&self, program: u32) -> Map<String, Value> {
        let mut found = Map::new();
        let mut shaders = [0_u32; 64];
        let mut count = [0_i32; 2];
        let to = (count.as_mut_ptr() as u64, shaders.as_mut_ptr() as u64);
        self.call("glGetAttachedShaders", &[u64::from(program), shaders.len() as u64, to.0, to.1]);
        let count = usize::try_from(count.first().copied().unwrap_or(0)).unwrap_or(0);
        for shader in shaders.iter().take(count) {
            // GL_SHADER_TYPE, GL_SHADER_SOURCE_LENGTH.
            let kind = self.of_program("glGetShaderiv", *shader, 0x8b4f).unwrap_or(0) as u32;
            let length = self.of_program("glGetShaderiv", *shader, 0x8b88).unwrap_or(0);
            let name = SHADERS.iter().find(|(known, _)| *known == kind).map_or("GL_SHADER", |(_, name)| name);
            let length = usize::try_from(length).unwrap_or(0);
            if let Some(source) = self.text("glGetShaderSource", *shader, length) {
                let before = found.get(name).and_then(Value::as_str).unwrap_or("");
                // Several of one kind are one text when linked.
                found.insert(name.to_owned(), Value::from(format!("{before}{source}")));
            }
        }
        found
    }

    /// Values of the uniforms of a program: its own, and those in buffers that are bound to its blocks.
    pub(super) fn uniforms(&self, program: u32) -> Map<String, Value> {
        let mut found = Map::new();
        // GL_ACTIVE_UNIFORMS.
        let count = self.of_program("glGetProgramiv", program, 0x8b86).unwrap_or(0);
        for index in 0..u64::try_from(count).unwrap_or(0) {
            let Some((name, kind, size)) = self.uniform(program, index) else { continue };
            let stem = name.strip_suffix("[0]").unwrap_or(&name);
            let values = match self.of_block(program, index, kind, size) {
                Some(values) => values,
                None => (0..size)
                    .map_while(|at| {
                        let element = if at == 0 { name.clone() } else { format!("{stem}[{at}]") };
                        self.uniform_value(program, &element, kind)
                    })
                    .collect(),
            };
            let value = match values.len() {
                0 => continue,
                1 if stem == name => values.into_iter().next(),
                _ => Some(Value::Array(values)),
            };
            found.insert(stem.to_owned(), value.unwrap_or_default());
        }
        found
    }

    /// Name, type and number of elements of a uniform.
    fn uniform(&self, program: u32, index: u64) -> Option<(String, u32, usize)> {
        let mut name = [0_u8; NAME_MAX + 1];
        let (mut length, mut size, mut kind) = ([0_i32; 2], [0_i32; 2], [0_u32; 2]);
        let to = [length.as_mut_ptr() as u64, size.as_mut_ptr() as u64, kind.as_mut_ptr() as u64];
        let name_to = name.as_mut_ptr() as u64;
        let about = [u64::from(program), index, NAME_MAX as u64, to[0], to[1], to[2], name_to];
        self.call("glGetActiveUniform", &about)?;
        let length = usize::try_from(length[0]).ok().filter(|length| *length > 0)?;
        let name = String::from_utf8_lossy(name.get(..length)?).into_owned();
        Some((name, kind[0], usize::try_from(size[0]).ok()?.clamp(1, 4096)))
    }

    fn uniform_value(&self, program: u32, name: &str, kind: u32) -> Option<Value> {
        let text = std::ffi::CString::new(name).ok()?;
        let location = self.call("glGetUniformLocation", &[u64::from(program), text.as_ptr() as u64])? as u32 as i32;
        if location < 0 {
            return None;
        }
        let (component, columns, rows) = shape(kind);
        let about = [u64::from(program), location as u64];
        let all = columns * rows;
        let values: Vec<Value> = match component {
            Component::Float => self.floats("glGetUniformfv", &about, all)?.into_iter().map(number).collect(),
            Component::Integer => self.integers("glGetUniformiv", &about, all)?.into_iter().map(Value::from).collect(),
            Component::Unsigned => {
                let found = self.integers("glGetUniformuiv", &about, all)?;
                found.into_iter().map(|value| Value::from(value as u32)).collect()
            }
        };
        shaped(values, columns, rows)
    }

    /// Values of the elements of a uniform in a block; `None` if it is in none.
    fn of_block(&self, program: u32, index: u64, kind: u32, size: usize) -> Option<Vec<Value>> {
        let number = u32::try_from(index).ok()?;
        let indices = [number; 2];
        let of = |name: u64| {
            let about = [u64::from(program), 1, indices.as_ptr() as u64, name];
            self.integers("glGetActiveUniformsiv", &about, 1)?.first().copied()
        };
        // GL_UNIFORM_BLOCK_INDEX, _OFFSET, _ARRAY_STRIDE, _MATRIX_STRIDE, _IS_ROW_MAJOR.
        let block = u64::try_from(of(0x8a3a)?).ok()?;
        let bytes_of = |name| usize::try_from(of(name)?).ok();
        let layout = Layout {
            offset: bytes_of(0x8a3b)?,
            array_stride: bytes_of(0x8a3c)?,
            matrix_stride: bytes_of(0x8a3d)?,
            is_row_major: of(0x8a3e)? != 0,
        };
        // GL_UNIFORM_BLOCK_BINDING, GL_UNIFORM_BUFFER_BINDING, GL_UNIFORM_BUFFER_START.
        let binding = self.integers("glGetActiveUniformBlockiv", &[u64::from(program), block, 0x8a3f], 1)?;
        let binding = u64::try_from(binding.first().copied()?).ok()?;
        let buffer = *self.integers("glGetIntegeri_v", &[0x8a28, binding], 1)?.first()? as u32;
        let start = usize::try_from(*self.longs("glGetInteger64i_v", &[0x8a29, binding], 1)?.first()?).ok()?;
        let bytes =
            if buffer == 0 { None } else { self.bytes(buffer, start + layout.offset, layout.length(kind, size)) };
        // Without a buffer it has no value, and none by its location either.
        Some(bytes.map(|bytes| layout.values(&bytes, kind, size)).unwrap_or_default())
    }

    /// Bytes of a buffer; `None` where it has fewer.
    fn bytes(&self, buffer: u32, start: usize, length: usize) -> Option<Vec<u8>> {
        self.part(buffer, |size| {
            (length > 0 && start.checked_add(length).is_some_and(|end| end <= size)).then_some((start, length))
        })
    }

    /// All bytes of a buffer.
    pub(super) fn all_bytes(&self, buffer: u32) -> Option<Vec<u8>> {
        self.part(buffer, |size| (size > 0).then_some((0, size)))
    }

    /// A part of a buffer, chosen by its size: first byte and length.
    fn part(&self, buffer: u32, choose: impl Fn(usize) -> Option<(usize, usize)>) -> Option<Vec<u8>> {
        // GL_COPY_READ_BUFFER, which nothing that draws uses.
        let before = self.gl.state(0x8f36) as u32;
        self.gl.bind_buffer(0x8f36, buffer);
        let part = choose(usize::try_from(self.gl.buffer_size(0x8f36, false)).unwrap_or(0));
        let bytes =
            part.map(|(start, length)| (start, length, vec![0_u8; length])).and_then(|(start, length, mut bytes)| {
                self.gl.clear_errors();
                self.call("glGetBufferSubData", &[0x8f36, start as u64, length as u64, bytes.as_mut_ptr() as u64])?;
                (self.gl.error() == 0).then_some(bytes)
            });
        self.gl.bind_buffer(0x8f36, before);
        self.gl.clear_errors();
        bytes
    }
}

/// Where a uniform is in the buffer of its block, in bytes.
#[derive(Debug, Clone, Copy)]
struct Layout {
    offset: usize,
    array_stride: usize,
    matrix_stride: usize,
    is_row_major: bool,
}

impl Layout {
    /// Bytes from the first element's begin to the last one's end.
    fn length(&self, kind: u32, size: usize) -> usize {
        let (_, columns, rows) = shape(kind);
        let element = match (columns, self.is_row_major) {
            (1, _) => rows * 4,
            (_, false) => (columns - 1) * self.matrix_stride + rows * 4,
            (_, true) => (rows - 1) * self.matrix_stride + columns * 4,
        };
        size.saturating_sub(1) * self.array_stride + element
    }

    fn values(&self, bytes: &[u8], kind: u32, size: usize) -> Vec<Value> {
        let (component, columns, rows) = shape(kind);
        let word =
            |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes);
        let one = |at: usize| match component {
            Component::Float => number(f32::from_bits(word(at))),
            Component::Integer => Value::from(word(at) as i32),
            Component::Unsigned => Value::from(word(at)),
        };
        let element = |at: usize| {
            let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
            let place = |(column, row)| match (columns, self.is_row_major) {
                (1, _) => at + row * 4,
                (_, false) => at + column * self.matrix_stride + row * 4,
                (_, true) => at + row * self.matrix_stride + column * 4,
            };
            shaped(places.map(|of| one(place(of))).collect(), columns, rows)
        };
        (0..size).filter_map(|number| element(number * self.array_stride)).collect()
    }
}

/// Values as a number, a vector, or the columns of a matrix.
fn shaped(values: Vec<Value>, columns: usize, rows: usize) -> Option<Value> {
    Some(match (columns, rows) {
        (1, 1) => values.into_iter().next()?,
        (1, _) => Value::Array(values),
        _ => values.chunks(rows).map(|column| Value::Array(column.to_vec())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_strides_and_orders() {
        let bytes: Vec<u8> = (0..16_u32).flat_map(|at| (at as f32).to_ne_bytes()).collect();
        // A matrix of two columns of three rows, in columns of 16 bytes, and in rows.
        let layout = Layout { offset: 0, array_stride: 0, matrix_stride: 16, is_row_major: false };
        assert_eq!((layout.length(0x8b65, 1), layout.length(0x8b51, 1)), (28, 12));
        assert_eq!(layout.values(&bytes, 0x8b65, 1), [serde_json::json!([[0, 1, 2], [4, 5, 6]])]);
        let layout = Layout { is_row_major: true, ..layout };
        assert_eq!(layout.values(&bytes, 0x8b65, 1), [serde_json::json!([[0, 4, 8], [1, 5, 9]])]);
        let layout = Layout { array_stride: 32, ..layout };
        assert_eq!(layout.values(&bytes, 0x8b50, 2), [serde_json::json!([0, 1]), serde_json::json!([8, 9])]);
    }

    #[test]
    fn types_have_their_shapes() {
        assert_eq!(shape(0x8b52), (Component::Float, 1, 4));
        assert_eq!(shape(0x8b53), (Component::Integer, 1, 2));
        assert_eq!(shape(0x8b57), (Component::Integer, 1, 2));
        assert_eq!(shape(0x8b5c), (Component::Float, 4, 4));
        assert_eq!(shape(0x8b5e), (Component::Integer, 1, 1));
        assert_eq!(shape(0x8dc8), (Component::Unsigned, 1, 4));
    }
}
