//! Memory of the program to which the driver keeps pointers: vertex arrays, and room for feedback and selection.

use std::collections::HashMap;
use std::rc::Rc;

/// Words of zeros behind each array, for drivers that read a little more than they use.
const PADDING: usize = 8;

/// Most sets of arrays that are saved at once: as many as any driver.
const SAVED_MAX: usize = 64;

/// The vertex array object, the function, and the attribute or unit that it sets.
type Slot = (u32, &'static str, u32);

/// An array, and how many vertices it has, where that is known.
type Kept = (Rc<[u64]>, Option<u64>);

/// The arrays of a context.
#[derive(Debug, Default)]
pub(crate) struct Client {
    arrays: HashMap<Slot, Kept>,
    /// By `glPushClientAttrib`, where it saves arrays.
    saved: Vec<Option<HashMap<Slot, Kept>>>,
    vertex_array: u32,
    unit: u32,
}

impl Client {
    /// True for functions whose pointer the driver keeps.
    pub(crate) fn keeps(stem: &str) -> bool {
        stem.ends_with("Pointer") || matches!(stem, "glInterleavedArrays" | "glFeedbackBuffer" | "glSelectBuffer")
    }

    fn slot(&self, stem: &'static str, first: u32) -> Slot {
        let which = match stem {
            "glTexCoordPointer" => self.unit,
            _ if stem.contains("Attrib") || stem.starts_with("glMultiTex") => first,
            _ => 0,
        };
        (self.vertex_array, stem, which)
    }

    /// Keeps a copy of the bytes until the pointer is replaced; `first`: the first argument; `vertices`: how many they are.
    /// Returns its address.
    pub(crate) fn keep(&mut self, stem: &'static str, first: u32, bytes: &[u8], vertices: Option<u64>) -> u64 {
        self.replaces_others(stem);
        let slot = self.slot(stem, first);
        let words = bytes.len().div_ceil(8) + PADDING;
        let array: Rc<[u64]> = words_of(bytes).chain(std::iter::repeat(0)).take(words).collect();
        let address = array.as_ptr() as u64;
        self.arrays.insert(slot, (array, vertices));
        address
    }

    /// The pointer cannot be repeated: a draw that reads the array must not reach the driver.
    pub(crate) fn lose(&mut self, stem: &'static str, first: u32) {
        self.keep(stem, first, &[], Some(0));
    }

    /// The pointer is replaced by something else.
    pub(crate) fn drop(&mut self, stem: &'static str, first: u32) {
        self.replaces_others(stem);
        let slot = self.slot(stem, first);
        self.arrays.remove(&slot);
    }

    /// `glInterleavedArrays` sets several arrays at once: what was set before is read no more, by one way or the other. The
    /// memory stays, for what is set in neither way.
    fn replaces_others(&mut self, stem: &str) {
        let is_all = stem == "glInterleavedArrays";
        if stem.starts_with("glVertexAttrib")
            || !(is_all || self.arrays.keys().any(|key| key.1 == "glInterleavedArrays"))
        {
            return;
        }
        for ((vertex_array, other, _), (_, vertices)) in &mut self.arrays {
            let is_other = if is_all { !other.starts_with("glVertexAttrib") } else { *other == "glInterleavedArrays" };
            if *vertex_array == self.vertex_array && is_other {
                *vertices = None;
            }
        }
    }

    /// The arrays that have fewer vertices: the functions that set them, their attributes or units, their vertices.
    pub(crate) fn shorter(&self, vertices: u64) -> impl Iterator<Item = (&'static str, u32, u64)> {
        self.arrays.iter().filter_map(move |((vertex_array, stem, which), (_, has))| {
            let has = has.filter(|has| *has < vertices && *vertex_array == self.vertex_array)?;
            Some((*stem, *which, has))
        })
    }

    /// Whether [`Self::follow`] has to know of a function's calls.
    pub(crate) fn follows(stem: &str) -> bool {
        ["glBindVertexArray", "glClientActiveTexture", "glPushClientAttrib", "glPopClientAttrib"].contains(&stem)
    }

    /// Follows what selects arrays. `first`: the first argument, as the trace has it.
    pub(crate) fn follow(&mut self, stem: &str, first: u32) {
        match stem {
            "glBindVertexArray" => self.vertex_array = first,
            "glClientActiveTexture" => self.unit = first,
            "glPushClientAttrib" if self.saved.len() < SAVED_MAX => {
                // 2: GL_CLIENT_VERTEX_ARRAY_BIT.
                self.saved.push((first & 2 != 0).then(|| self.arrays.clone()));
            }
            "glPopClientAttrib" => {
                if let Some(Some(arrays)) = self.saved.pop() {
                    self.arrays = arrays;
                }
            }
            _ => {}
        }
    }
}

/// Bytes as words in memory, the last one filled with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let last = (!rest.is_empty()).then(|| u64::from_ne_bytes(last));
    words.iter().map(|word| u64::from_ne_bytes(*word)).chain(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_stays_until_its_own_pointer_changes() {
        let mut client = Client::default();
        client.keep("glVertexAttribPointer", 0, b"abcdefghi", Some(3));
        client.keep("glVertexAttribPointer", 1, b"x", None);
        client.follow("glClientActiveTexture", 0x84c1);
        client.keep("glTexCoordPointer", 2, b"y", Some(4));
        assert_eq!(client.arrays.len(), 3);
        client.follow("glPushClientAttrib", 2);
        client.drop("glVertexAttribPointer", 1);
        assert_eq!(client.arrays.len(), 2);
        client.follow("glPopClientAttrib", 0);
        assert_eq!(client.arrays.len(), 3);
        // The arrays of another object are others.
        client.follow("glBindVertexArray", 5);
        client.drop("glVertexAttribPointer", 1);
        assert_eq!(client.arrays.len(), 3);
        assert!(client.arrays.values().all(|(array, _)| array.len() > PADDING));
    }

    #[test]
    fn arrays_that_are_too_short_are_found() {
        let mut client = Client::default();
        client.keep("glVertexAttribPointer", 2, b"x", Some(3));
        client.follow("glClientActiveTexture", 0x84c1);
        client.keep("glTexCoordPointer", 2, b"y", Some(5));
        assert_eq!(client.shorter(3).count(), 0);
        assert_eq!(client.shorter(4).collect::<Vec<_>>(), [("glVertexAttribPointer", 2, 3)]);
        assert_eq!(client.shorter(6).count(), 2);
        // What is set in another way is read no more.
        client.keep("glInterleavedArrays", 0x2a20, b"z", Some(1));
        assert_eq!(client.shorter(6).map(|(stem, ..)| stem).filter(|stem| stem.contains("Attrib")).count(), 1);
        assert_eq!(client.shorter(6).count(), 2);
        client.keep("glVertexPointer", 2, b"z", Some(6));
        assert_eq!(client.shorter(6).count(), 1);
        client.follow("glBindVertexArray", 5);
        assert_eq!(client.shorter(6).count(), 0);
    }

    #[test]
    fn words_are_the_bytes_in_memory() {
        let words: Vec<u8> = words_of(b"abcdefghij").flat_map(u64::to_ne_bytes).collect();
        assert_eq!(words, b"abcdefghij\0\0\0\0\0\0");
    }
}
