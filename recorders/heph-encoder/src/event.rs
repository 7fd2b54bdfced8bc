//! Event packets: something that took time, or a point.

use core::fmt::{self, Display};

use crate::EVENT_MAGIC;
use crate::buffer::{Buffer, Error, patch_size};
use crate::text;

/// Bytes of an event packet before its description: magic, size and [`Header`] (format document, bits 0 to 319).
pub const HEAD_BYTES: usize = 40;

/// Type bytes (format document, "Byte layout").
const UNSIGNED: u8 = 1;
const SIGNED: u8 = 2;
const FLOAT: u8 = 3;
const TEXT: u8 = 4;
const ARRAY: u8 = 0x80;

/// The fixed fields of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Stream: a thread of execution.
    pub stream: u32,
    /// Number of the event in its stream, from 0, modulo 2^32. An event that could not be kept should take its number
    /// all the same: the gap shows the loss to the reader.
    pub counter: u32,
    /// Substream: a task on the thread, or 0.
    pub substream: u64,
    /// Start, in nanoseconds since the trace's epoch.
    pub start_ns: u64,
    /// End, in nanoseconds since the trace's epoch; that of the start for a point.
    pub end_ns: u64,
}

/// The first 40 bytes of an event packet whose body ([`body`]) has this many bytes.
///
/// # Errors
/// [`Error::TooLong`].
#[inline]
pub fn head(header: &Header, body_bytes: usize) -> Result<[u8; HEAD_BYTES], Error> {
    let size = body_bytes.checked_add(HEAD_BYTES).and_then(|size| u32::try_from(size).ok()).ok_or(Error::TooLong)?;
    let mut head = [0; HEAD_BYTES];
    let (words, _) = head.as_chunks_mut::<8>();
    let values = [
        u64::from(EVENT_MAGIC) << 32 | u64::from(size),
        u64::from(header.stream) << 32 | u64::from(header.counter),
        header.substream,
        header.start_ns,
        header.end_ns,
    ];
    for (word, value) in words.iter_mut().zip(values) {
        *word = value.to_be_bytes();
    }
    Ok(head)
}

/// Starts an event packet at the buffer's end; [`Event::finish`] completes it.
#[inline]
pub fn event<'b, B: Buffer>(buffer: &'b mut B, header: &Header, description: &str) -> Event<'b, B> {
    let mut event = Event::start(buffer, Some(header));
    event.push(|buffer| text::push(buffer, description));
    event
}

/// As [`event`], its description formatted into the buffer.
pub fn event_fmt<'b, B: Buffer>(buffer: &'b mut B, header: &Header, description: fmt::Arguments<'_>) -> Event<'b, B> {
    let mut event = Event::start(buffer, Some(header));
    event.push(|buffer| text::push_fmt(buffer, description));
    event
}

/// Starts a description and attributes without the [`head`] that makes a packet of them.
#[inline]
pub fn body<'b, B: Buffer>(buffer: &'b mut B, description: &str) -> Event<'b, B> {
    let mut event = Event::start(buffer, None);
    event.push(|buffer| text::push(buffer, description));
    event
}

/// As [`body`], its description formatted into the buffer.
pub fn body_fmt<'b, B: Buffer>(buffer: &'b mut B, description: fmt::Arguments<'_>) -> Event<'b, B> {
    let mut event = Event::start(buffer, None);
    event.push(|buffer| text::push_fmt(buffer, description));
    event
}

/// An event on its way: attributes in wire order, then [`Event::finish`]. Names may be empty and may repeat.
///
/// Dropped without `finish`, nothing of it stays in the buffer.
#[derive(Debug)]
#[must_use = "the event is written by `finish`"]
pub struct Event<'b, B: Buffer> {
    buffer: &'b mut B,
    start: usize,
    has_head: bool,
    is_finished: bool,
    error: Option<Error>,
}

impl<'b, B: Buffer> Event<'b, B> {
    /// More attributes for a body at the end of the buffer; without `finish` only they are removed again.
    pub fn append(buffer: &'b mut B) -> Self {
        Self::start(buffer, None)
    }

    #[inline]
    fn start(buffer: &'b mut B, header: Option<&Header>) -> Self {
        let start = buffer.as_mut_bytes().len();
        let has_head = header.is_some();
        let mut event = Self { buffer, start, has_head, is_finished: false, error: None };
        if let Some(header) = header {
            event.push(|buffer| buffer.push(&head(header, 0)?));
        }
        event
    }

    /// Adds an unsigned number.
    #[inline]
    pub fn u64(&mut self, name: &str, value: u64) -> &mut Self {
        self.word(name, UNSIGNED, value)
    }

    /// Adds a signed number.
    #[inline]
    pub fn i64(&mut self, name: &str, value: i64) -> &mut Self {
        self.word(name, SIGNED, value.cast_unsigned())
    }

    /// Adds a floating-point number; all its bits are kept, those of a NaN too.
    #[inline]
    pub fn f64(&mut self, name: &str, value: f64) -> &mut Self {
        self.word(name, FLOAT, value.to_bits())
    }

    /// Adds a truth value: the format has no type for it, so it is the unsigned number 0 or 1.
    #[inline]
    pub fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        self.u64(name, u64::from(value))
    }

    /// Adds a string.
    #[inline]
    pub fn str(&mut self, name: &str, value: &str) -> &mut Self {
        self.attribute(name, TEXT, |buffer| text::push(buffer, value))
    }

    /// Adds what a value prints, as a string, without allocating. For what the format has no type for: numbers of 128
    /// bits, errors, times.
    pub fn display(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.attribute(name, TEXT, |buffer| text::push_fmt(buffer, format_args!("{value}")))
    }

    /// Adds an array of unsigned numbers.
    pub fn u64s(&mut self, name: &str, values: &[u64]) -> &mut Self {
        self.array(name, UNSIGNED, values, |buffer, value| buffer.push(&value.to_be_bytes()))
    }

    /// Adds an array of unsigned numbers, one of each value.
    pub(crate) fn u64s_of<T>(&mut self, name: &str, values: &[T], of: impl Fn(&T) -> u64) -> &mut Self {
        self.array(name, UNSIGNED, values, |buffer, value| buffer.push(&of(value).to_be_bytes()))
    }

    /// Adds an array of signed numbers.
    pub fn i64s(&mut self, name: &str, values: &[i64]) -> &mut Self {
        self.array(name, SIGNED, values, |buffer, value| buffer.push(&value.to_be_bytes()))
    }

    /// Adds an array of floating-point numbers.
    pub fn f64s(&mut self, name: &str, values: &[f64]) -> &mut Self {
        self.array(name, FLOAT, values, |buffer, value| buffer.push(&value.to_bits().to_be_bytes()))
    }

    /// Adds an array of strings.
    pub fn strs<S: AsRef<str>>(&mut self, name: &str, values: &[S]) -> &mut Self {
        self.array(name, TEXT, values, |buffer, value| text::push(buffer, value.as_ref()))
    }

    /// Completes the packet.
    ///
    /// # Errors
    /// [`Error`]: then nothing of the packet is in the buffer.
    #[inline]
    pub fn finish(&mut self) -> Result<(), Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.has_head && !self.is_finished {
            patch_size(self.buffer, self.start)?;
        }
        self.is_finished = true;
        Ok(())
    }

    #[inline]
    fn word(&mut self, name: &str, kind: u8, value: u64) -> &mut Self {
        self.attribute(name, kind, |buffer| buffer.push(&value.to_be_bytes()))
    }

    /// An array; past 65,535 elements it is cut, and an attribute `NAME.length` has the number of all.
    fn array<T>(
        &mut self,
        name: &str,
        kind: u8,
        values: &[T],
        push: impl Fn(&mut B, &T) -> Result<(), Error>,
    ) -> &mut Self {
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX);
        self.attribute(name, kind | ARRAY, |buffer| {
            buffer.push(&count.to_be_bytes())?;
            values.iter().take(usize::from(count)).try_for_each(|value| push(buffer, value))
        });
        if values.len() > usize::from(count) {
            let length = values.len() as u64;
            self.push(|buffer| {
                text::push_fmt(buffer, format_args!("{name}.length"))?;
                buffer.push(&[UNSIGNED])?;
                buffer.push(&length.to_be_bytes())
            });
        }
        self
    }

    #[inline]
    fn attribute(&mut self, name: &str, kind: u8, value: impl FnOnce(&mut B) -> Result<(), Error>) -> &mut Self {
        self.push(|buffer| {
            text::push(buffer, name)?;
            buffer.push(&[kind])?;
            value(buffer)
        });
        self
    }

    #[inline]
    fn push(&mut self, write: impl FnOnce(&mut B) -> Result<(), Error>) {
        // What is added after `finish` makes the packet an unfinished one again.
        self.is_finished = false;
        if self.error.is_none() {
            self.error = write(self.buffer).err();
        }
    }
}

impl<B: Buffer> Drop for Event<'_, B> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_finished {
            self.buffer.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn an_event_dropped_unfinished_leaves_nothing() {
        let mut buffer = b"before".to_vec();
        event(&mut buffer, &Header::default(), "gone").u64("n", 1);
        assert_eq!(buffer, b"before");
        let mut kept = event(&mut buffer, &Header::default(), "kept");
        kept.finish().unwrap();
        kept.u64("late", 1);
        drop(kept);
        assert_eq!(buffer, b"before");
    }

    #[test]
    fn a_body_after_its_head_is_the_event() {
        let header = Header { stream: 1, counter: 2, substream: 3, start_ns: 4, end_ns: 5 };
        let (mut once, mut parts) = (Vec::new(), Vec::new());
        event(&mut once, &header, "name").str("a", "b").finish().unwrap();
        body(&mut parts, "name").finish().unwrap();
        Event::append(&mut parts).str("a", "b").finish().unwrap();
        assert_eq!(once, [&head(&header, parts.len()).unwrap()[..], &parts].concat());
    }

    #[test]
    fn a_size_past_32_bits_is_refused() {
        let most = u32::MAX as usize - HEAD_BYTES;
        assert!(head(&Header::default(), most).is_ok());
        assert_eq!(head(&Header::default(), most + 1), Err(Error::TooLong));
        assert_eq!(head(&Header::default(), usize::MAX), Err(Error::TooLong));
    }
}
