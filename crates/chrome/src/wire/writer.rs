//! Events to a file.

use std::io::Write;

use anytrace_core::Error;

use crate::wire::record::{Form, Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, event by event. [`Self::finish`] writes the end and what is still in memory.
///
/// ```
/// use anytrace_chrome::{Layout, Writer, parse};
///
/// let mut writer = Writer::new(Vec::new());
/// let (event, _) = parse(br#"{"ph":"B","ts":1}"#, &Layout::default()).expect("it is an event");
/// writer.write(&event)?;
/// assert_eq!(writer.finish()?, b"[\n{\"ph\":\"B\",\"ts\":1}\n]\n");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    form: Form,
    buffer: Vec<u8>,
    records: u64,
}

/// What precedes the first event.
pub(crate) fn head(form: Form) -> &'static [u8] {
    match form {
        Form::Array => b"[\n",
        Form::Object => b"{\"traceEvents\":[\n",
        Form::Lines => b"",
    }
}

/// What follows the last event.
pub(crate) fn tail(form: Form) -> &'static [u8] {
    match form {
        Form::Array => b"\n]\n",
        Form::Object => b"\n]}\n",
        Form::Lines => b"\n",
    }
}

/// What is between two events.
pub(crate) fn separator(form: Form) -> &'static [u8] {
    match form {
        Form::Array | Form::Object => b",\n",
        Form::Lines => b"\n",
    }
}

impl<W: Write> Writer<W> {
    /// Starts an array of events.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`], in the form of the layout.
    pub fn with_layout(out: W, layout: &Layout) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(head(layout.form));
        Self { out, form: layout.form, buffer, records: 0 }
    }

    /// Writes an event: its own bytes.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if self.records > 0 {
            self.buffer.extend_from_slice(separator(self.form));
        }
        self.buffer.extend_from_slice(record.text);
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush_buffer() } else { Ok(()) }
    }

    /// Writes the end, flushes the destination and returns it.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> Result<W, Error> {
        self.buffer.extend_from_slice(tail(self.form));
        self.flush_buffer()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}
