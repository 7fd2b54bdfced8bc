//! The table of blobs.

use anytrace_core::table::{Column, ColumnType, Rows, Table};
use anytrace_core::{Error, Sink, Summary};

use super::int32;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::{BytesKind, Event, Token};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, RAW, Visitor};

pub(super) const BLOBS: Table = Table {
    name: "blobs",
    help: "a blob among the arguments and results of calls, in the order of the raw stream",
    columns: &[
        Column::new("call", ColumnType::Int64, "number of the call"),
        Column::nullable("position", ColumnType::Int32, "argument that has it; none in a result"),
        Column::new("offset", ColumnType::Int64, "its first byte in the raw stream"),
        Column::new("bytes", ColumnType::Int64, "its length"),
        Column::new("hash", ColumnType::UInt64, "hash of its content: FNV-1a, 64 bits"),
        Column::nullable("payload", ColumnType::Bytes, "its content, if it has at most 256 MiB"),
    ],
};

// Columns of `BLOBS`.
const HASH: usize = 4;
const PAYLOAD: usize = 5;

/// Longest content in a row.
const PAYLOAD_BYTES_MAX: u64 = 256 << 20;

/// Blobs of an event, and bytes of them, that wait until it is complete. Beyond it they become rows at once.
const PENDING_MAX: usize = 1 << 14;
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Reads the table.
pub(super) fn read(mut reader: Reader, rows: Rows<'_>, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let (has_hash, has_payload) = (rows.wants(HASH), rows.wants(PAYLOAD));
    let mut made =
        BlobRows { rows, has_hash, has_payload, position: None, open: None, pending: Vec::new(), pending_bytes: 0 };
    let totals = reader.read(&mut made, sink)?;
    made.rows.finish()?;
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

struct Blob {
    position: Option<u64>,
    offset: u64,
    bytes: u64,
    hash: u64,
    payload: Option<Vec<u8>>,
}

/// Makes the rows.
struct BlobRows<'a> {
    rows: Rows<'a>,
    has_hash: bool,
    has_payload: bool,
    /// The argument at hand; none for a result.
    position: Option<u64>,
    /// The blob whose pieces are being read.
    open: Option<Blob>,
    /// The blobs of the event at hand, which may turn out to be damaged.
    pending: Vec<Blob>,
    pending_bytes: usize,
}

impl BlobRows<'_> {
    fn begin(&mut self, bytes: u64, context: &Context<'_>, sink: &mut dyn Sink) -> Result<Blob, Error> {
        let offset = context.offset + context.bytes.len() as u64;
        let is_long = bytes > PAYLOAD_BYTES_MAX;
        if is_long && self.has_payload {
            let diagnostic = rules::VALUE_LIMIT.at(offset).within(RAW).record(context.event.seq);
            let found = format!("a blob of {bytes} bytes");
            sink.report(diagnostic.expected(format!("at most {PAYLOAD_BYTES_MAX} bytes")).found(found))?;
        }
        let payload = (self.has_payload && !is_long).then(Vec::new);
        Ok(Blob { position: self.position, offset, bytes, hash: FNV_START, payload })
    }

    fn add(&self, blob: &mut Blob, piece: &[u8]) {
        if self.has_hash {
            blob.hash = hash(blob.hash, piece);
        }
        if let Some(payload) = &mut blob.payload {
            payload.extend_from_slice(piece);
        }
    }

    fn complete(&mut self, blob: Blob, event: &Event) -> Result<(), Error> {
        self.pending_bytes += blob.payload.as_ref().map_or(0, Vec::len);
        self.pending.push(blob);
        if self.pending.len() > PENDING_MAX || self.pending_bytes > PENDING_BYTES_MAX {
            self.push_pending(event)?;
        }
        Ok(())
    }

    fn push_pending(&mut self, event: &Event) -> Result<(), Error> {
        self.pending_bytes = 0;
        for blob in self.pending.drain(..) {
            self.rows.count(event.call);
            self.rows.int32(blob.position.map(int32));
            self.rows.count(blob.offset);
            self.rows.count(blob.bytes);
            self.rows.uint64(blob.hash);
            self.rows.bytes(blob.payload.as_deref());
            self.rows.end()?;
        }
        Ok(())
    }
}

impl Visitor for BlobRows<'_> {
    fn keeps_definitions(&self) -> bool {
        false
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Argument(index) => self.position = Some(*index),
            Token::Return => self.position = None,
            Token::Bytes(BytesKind::Blob, bytes) => {
                let mut blob = self.begin(bytes.len() as u64, context, sink)?;
                blob.offset -= bytes.len() as u64;
                self.add(&mut blob, bytes);
                self.complete(blob, context.event)?;
            }
            Token::BytesStart(BytesKind::Blob, length) => self.open = Some(self.begin(*length, context, sink)?),
            Token::BytesPiece(piece) => {
                if let Some(mut blob) = self.open.take() {
                    self.add(&mut blob, piece);
                    self.open = Some(blob);
                }
            }
            Token::BytesEnd(_) => {
                if let Some(blob) = self.open.take() {
                    self.complete(blob, context.event)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.push_pending(event)?;
        Ok(0)
    }

    fn abandon(&mut self, _: Option<&Event>) -> Result<(), Error> {
        (self.open, self.pending_bytes) = (None, 0);
        self.pending.clear();
        Ok(())
    }
}

/// The hash of nothing.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a hash (FNV-1a, 64 bits): the same on every machine, because it is data.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
