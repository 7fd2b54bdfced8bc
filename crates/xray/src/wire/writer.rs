//! The writer of all three forms.

use std::io::Write;

use anytrace_core::Error;

use crate::wire::any::{Layout, LayoutForm, Record, entry_of};
use crate::wire::fdr::{BUFFER_SIZE_MAX, BUFFER_SIZE_MIN};
use crate::wire::parse::{parse_basic, parse_function, parse_record};
use crate::wire::put::{put_basic, put_function, put_header, put_metadata};
use crate::wire::record::{BasicRecord, Body, FDR_ID_MAX, FdrRecord, Function, HEADER_BYTES, Header, Metadata};
use crate::wire::yaml::YamlEntry;
use crate::wire::yaml_write::{put_entry, put_yaml_end, put_yaml_header};

/// The buffer is written when it reaches this size.
const FLUSH_BYTES: usize = 1 << 16;

/// Longest filler that is written after the end of a version 1 buffer: a header must not make a writer fill a disk.
const FILLER_BYTES_MAX: u64 = 1 << 26;

/// Writes a trace: the header of the layout's form, records, and the end that YAML has.
///
/// Every field is written as it is, reserved bytes included. In particular the caller keeps buffer extents and deltas
/// right where it leaves records out. After the end of a version 1 buffer, zeros follow up to the header's buffer size.
///
/// ```
/// use anytrace_xray::record::{BasicBody, BasicRecord, FunctionKind, Header};
/// use anytrace_xray::{Layout, LayoutForm, Record, Writer};
///
/// let header = Header { version: 3, type_code: 0, cycle_frequency: 1_000_000_000, ..Header::default() };
/// let layout = Layout { form: LayoutForm::Basic(header), ..Layout::default() };
/// let mut writer = Writer::with_layout(Vec::new(), &layout);
/// let body = BasicBody::Function { kind: FunctionKind::Enter, cpu: 0, tsc: 40 };
/// writer.write(&Record::Basic(BasicRecord { body, id: 1, thread: 7, process: 7, padding: [0; 8] }))?;
/// assert_eq!(writer.finish()?.len(), 64);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    layout: Layout,
    buffer: Vec<u8>,
    /// Bytes written before those of `buffer`.
    base: u64,
    records: u64,
    /// Where the version 1 buffer began.
    buffer_start: u64,
}

impl<W: Write> Writer<W> {
    /// Writes FDR version 5, little-endian.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// Writes a given form, with the layout's header.
    pub fn with_layout(out: W, layout: &Layout) -> Self {
        let mut buffer = Vec::new();
        match &layout.form {
            LayoutForm::Fdr(header) | LayoutForm::Basic(header) => {
                put_header(&mut buffer, header, layout.orders.endian);
            }
            LayoutForm::Yaml(header) => put_yaml_header(&mut buffer, header),
        }
        Self { out, layout: *layout, buffer, base: 0, records: 0, buffer_start: HEADER_BYTES as u64 }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`], naming record and field, when the layout has no such record or it would
    /// not read back; nothing of it is written then. I/O errors.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if let (LayoutForm::Fdr(header @ Header { version: 1, .. }), Record::Metadata(metadata)) =
            (self.layout.form, record)
            && matches!(metadata.body, Body::NewBuffer { .. })
            && self.base + self.buffer.len() as u64 > self.buffer_start
        {
            // The buffer before it lost its end-of-buffer record.
            self.fill(header.buffer_size)?;
        }
        let start = self.buffer.len();
        let refused = match (self.layout.form, record) {
            (LayoutForm::Fdr(_), Record::Function(function)) => self.function(function),
            (LayoutForm::Fdr(header), Record::Metadata(metadata)) => self.metadata(metadata, header.version),
            (LayoutForm::Basic(_), Record::Basic(record)) => self.basic(record),
            (LayoutForm::Yaml(_), Record::Entry(entry)) => self.entry(entry),
            _ => Some("kind"),
        };
        if let Some(field) = refused {
            self.buffer.truncate(start);
            let name = record.name();
            return Err(Error::unsupported(format!(
                "record {}: {field}: this {name} record does not fit the layout of the trace",
                self.records
            )));
        }
        self.records += 1;
        if let (LayoutForm::Fdr(header), Record::Metadata(Metadata { body: Body::EndOfBuffer, .. })) =
            (self.layout.form, record)
        {
            self.fill(header.buffer_size)?;
        }
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the end and what is buffered; returns the output.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish(mut self) -> Result<W, Error> {
        if let LayoutForm::Yaml(_) = self.layout.form {
            put_yaml_end(&mut self.buffer, self.records);
        }
        self.flush()?;
        self.out.flush().map_err(|error| Error::io("cannot write the trace", error))?;
        Ok(self.out)
    }

    fn function(&mut self, function: &Function) -> Option<&'static str> {
        let start = self.buffer.len();
        put_function(&mut self.buffer, function, self.layout.orders);
        let written = self.buffer.get(start..).and_then(<[u8]>::first_chunk)?;
        // In the third layout, an id can also set the bit that distinguishes metadata.
        let is_metadata = self.layout.orders.metadata_kind(written[0]).is_some();
        let reads_back = !is_metadata && parse_function(written, self.layout.orders) == Ok(*function);
        (function.id > FDR_ID_MAX || !reads_back).then_some("id")
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, version: u16) -> Option<&'static str> {
        let start = self.buffer.len();
        put_metadata(&mut self.buffer, metadata, self.layout.orders);
        let written = self.buffer.get(start..).unwrap_or_default();
        let max = self.layout.record_bytes_max;
        let reads_back = match parse_record(written, self.layout.orders, version, max) {
            Ok((FdrRecord::Metadata(again), used)) => used == written.len() && again.body == metadata.body,
            _ => false,
        };
        match metadata.body {
            Body::EndOfBuffer if version > 1 => Some("kind"),
            _ if reads_back => None,
            Body::CustomEvent { data, .. } | Body::TypedEvent { data, .. }
                if data.is_empty() || data.len() as u64 > max =>
            {
                Some("data")
            }
            Body::CustomEvent { .. } => Some("time"),
            _ => Some("kind"),
        }
    }

    fn basic(&mut self, record: &BasicRecord) -> Option<&'static str> {
        let start = self.buffer.len();
        put_basic(&mut self.buffer, record, self.layout.orders.endian);
        let written = self.buffer.get(start..).unwrap_or_default();
        (parse_basic(written, self.layout.orders.endian) != Ok(*record)).then_some("body")
    }

    fn entry(&mut self, entry: &YamlEntry) -> Option<&'static str> {
        let start = self.buffer.len();
        put_entry(&mut self.buffer, entry);
        let written = self.buffer.get(start..).unwrap_or_default();
        if written.len() as u64 >= self.layout.record_bytes_max {
            return Some("data");
        }
        (entry_of(written).as_ref() != Ok(entry)).then_some("kind")
    }

    /// Zeros up to the end of a version 1 buffer, if its size is plausible.
    fn fill(&mut self, size: u64) -> Result<(), Error> {
        let position = self.base + self.buffer.len() as u64;
        let used = position - self.buffer_start;
        let is_known = (BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&size);
        let mut left = if is_known { size.saturating_sub(used) } else { 0 };
        if left > FILLER_BYTES_MAX {
            left = 0;
        }
        self.buffer_start = position + left;
        while left > 0 {
            let length = left.min(FLUSH_BYTES as u64);
            self.buffer.resize(self.buffer.len() + usize::try_from(length).unwrap_or(0), 0);
            left -= length;
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.base += self.buffer.len() as u64;
        self.buffer.clear();
        written.map_err(|error| Error::io("cannot write the trace", error))
    }
}
