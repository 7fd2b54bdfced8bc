//! The messages in which plans name traces, and what they are made of. Protocol buffers: a message of a newer version can
//! still be asked for its version.

use std::path::PathBuf;
use std::sync::Arc;

use anytrace_core::index::{self, Mark};
use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::table::Filter;
use datafusion::error::{DataFusionError, Result};
use prost::Message;

use crate::input::{Identity, Range};

/// The leaf of a plan: parts of traces that are read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScanMessage {
    /// DataFusion's `FileScanExecConf`: groups, columns, limit.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) config: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) table: String,
    #[prost(message, optional, tag = "3")]
    pub(super) filter: Option<FilterMessage>,
    #[prost(message, repeated, tag = "4")]
    pub(super) files: Vec<FileMessage>,
    /// One for each file of each group, in their order.
    #[prost(message, repeated, tag = "5")]
    pub(super) parts: Vec<PartMessage>,
}

/// A table of some traces, in a logical plan.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TableMessage {
    #[prost(string, tag = "1")]
    pub(super) table: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) files: Vec<FileMessage>,
    #[prost(bool, tag = "3")]
    pub(super) has_file_column: bool,
    #[prost(uint64, optional, tag = "4")]
    pub(super) part_bytes: Option<u64>,
    /// The columns and types that the other process knows, as text.
    #[prost(string, tag = "5")]
    pub(super) schema: String,
}

/// A function of the session's files.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FunctionMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) files: Vec<FileMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileMessage {
    #[prost(string, tag = "1")]
    name: String,
    /// Bytes: names of files need not be UTF-8.
    #[prost(bytes = "vec", tag = "2")]
    path: Vec<u8>,
    #[prost(string, optional, tag = "3")]
    format: Option<String>,
    #[prost(uint64, tag = "4")]
    bytes: u64,
    #[prost(fixed64, tag = "5")]
    head: u64,
    #[prost(message, repeated, tag = "6")]
    sources: Vec<SourceMessage>,
    #[prost(bool, tag = "7")]
    is_mangled: bool,
    /// What the format stored for all parts.
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) shared: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct SourceMessage {
    #[prost(uint32, optional, tag = "1")]
    object: Option<u32>,
    #[prost(bytes = "vec", tag = "2")]
    path: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartMessage {
    /// Number of the file in the message.
    #[prost(uint32, tag = "1")]
    pub(super) file: u32,
    #[prost(message, optional, tag = "2")]
    from: Option<MarkMessage>,
    #[prost(uint64, optional, tag = "3")]
    until: Option<u64>,
    #[prost(bool, tag = "4")]
    has_shared: bool,
    /// Number of the share, and how many there are.
    #[prost(uint64, optional, tag = "5")]
    share: Option<u64>,
    #[prost(uint64, tag = "6")]
    shares: u64,
    /// What is open where each of its chunks begins, where spans are read.
    #[prost(bytes = "vec", repeated, tag = "7")]
    spans: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct MarkMessage {
    #[prost(uint64, tag = "1")]
    offset: u64,
    #[prost(uint64, tag = "2")]
    seq: u64,
    #[prost(bytes = "vec", tag = "3")]
    state: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FilterMessage {
    #[prost(message, optional, tag = "1")]
    time: Option<RangeMessage>,
    #[prost(message, optional, tag = "2")]
    seq: Option<RangeMessage>,
    #[prost(message, optional, tag = "3")]
    threads: Option<NumbersMessage>,
    #[prost(message, optional, tag = "4")]
    kinds: Option<TextsMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeMessage {
    #[prost(sint64, tag = "1")]
    first: i64,
    #[prost(sint64, tag = "2")]
    last: i64,
}

#[derive(Clone, PartialEq, Message)]
struct NumbersMessage {
    #[prost(sint64, repeated, tag = "1")]
    numbers: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct TextsMessage {
    #[prost(string, repeated, tag = "1")]
    texts: Vec<String>,
}

impl From<&Filter> for FilterMessage {
    fn from(filter: &Filter) -> Self {
        let range = |range: &std::ops::RangeInclusive<i64>| RangeMessage { first: *range.start(), last: *range.end() };
        Self {
            time: filter.time.as_ref().map(range),
            seq: filter.seq.as_ref().map(range),
            threads: filter.threads.clone().map(|numbers| NumbersMessage { numbers }),
            kinds: filter.kinds.clone().map(|texts| TextsMessage { texts }),
        }
    }
}

impl From<FilterMessage> for Filter {
    fn from(message: FilterMessage) -> Self {
        let range = |range: RangeMessage| range.first..=range.last;
        Self {
            time: message.time.map(range),
            seq: message.seq.map(range),
            threads: message.threads.map(|message| message.numbers),
            kinds: message.kinds.map(|message| message.texts),
        }
    }
}

impl From<Identity<'_>> for FileMessage {
    fn from(file: Identity<'_>) -> Self {
        let source = |source: &SymbolSource| SourceMessage {
            object: source.object,
            path: source.path.as_os_str().as_encoded_bytes().to_vec(),
        };
        Self {
            sources: file.sources.iter().map(source).collect(),
            path: file.path.as_os_str().as_encoded_bytes().to_vec(),
            format: file.format.map(str::to_owned),
            is_mangled: file.mangling == Mangling::AsIs,
            name: file.name,
            bytes: file.bytes,
            head: file.head,
            shared: None,
        }
    }
}

impl FileMessage {
    /// The file, without what the format stored for all parts.
    pub(super) fn identity(&self) -> Result<Identity<'_>> {
        let source = |source: &SourceMessage| Ok(SymbolSource { object: source.object, path: path(&source.path)? });
        Ok(Identity {
            name: self.name.clone(),
            path: path(&self.path)?,
            format: self.format.as_deref(),
            bytes: self.bytes,
            head: self.head,
            sources: self.sources.iter().map(source).collect::<Result<_>>()?,
            mangling: if self.is_mangled { Mangling::AsIs } else { Mangling::Demangled },
        })
    }
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Result<PathBuf> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(damaged(error)),
    }
}

impl PartMessage {
    /// A range of the file with this number.
    pub(super) fn new(file: u32, range: &Range) -> Self {
        match range {
            Range::Part(part) => Self {
                file,
                from: part.from.as_ref().map(|mark| MarkMessage {
                    offset: mark.offset,
                    seq: mark.seq,
                    state: mark.state.to_vec(),
                }),
                until: part.until,
                has_shared: part.shared.is_some(),
                share: None,
                shares: 0,
                spans: part.spans.iter().map(|state| state.to_vec()).collect(),
            },
            Range::Share { number, of } => {
                Self { file, share: Some(*number as u64), shares: *of as u64, ..Self::default() }
            }
        }
    }

    /// The range; `shared` is what the format stored for all parts of the file.
    pub(super) fn range(&self, shared: Option<&Arc<[u8]>>) -> Result<Range> {
        let number = |number: u64| usize::try_from(number).map_err(damaged);
        if let Some(share) = self.share {
            if share >= self.shares {
                return Err(damaged(format!("share {share} of {}", self.shares)));
            }
            return Ok(Range::Share { number: number(share)?, of: number(self.shares)? });
        }
        let mark = |mark: &MarkMessage| Mark {
            offset: mark.offset,
            seq: mark.seq,
            state: mark.state.clone().into_boxed_slice(),
        };
        let shared = if self.has_shared { shared.cloned() } else { None };
        let spans = self.spans.iter().map(|state| Arc::from(state.as_slice())).collect();
        Ok(Range::Part(index::Part { from: self.from.as_ref().map(mark), until: self.until, shared, spans }))
    }
}

/// A message that no program of this version made.
pub(super) fn damaged(why: impl std::fmt::Display) -> DataFusionError {
    DataFusionError::Execution(format!("a damaged plan: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_with_all_that_readers_need() {
        let shared: Arc<[u8]> = Arc::from(&b"shared"[..]);
        let part = index::Part {
            from: Some(Mark { offset: 7, seq: 3, state: Box::from(&b"state"[..]) }),
            until: Some(u64::MAX),
            shared: Some(Arc::clone(&shared)),
            spans: vec![Arc::from(&b"open"[..]), Arc::from(&b""[..])],
        };
        let parts = [part, index::Part::default()].map(Range::Part);
        for range in parts.into_iter().chain([Range::Share { number: 0, of: 2 }]) {
            let bytes = PartMessage::new(1, &range).encode_to_vec();
            let decoded = PartMessage::decode(bytes.as_slice()).unwrap();
            assert_eq!((decoded.file, decoded.range(Some(&shared)).unwrap()), (1, range));
        }
        let excess = PartMessage::new(0, &Range::Share { number: 2, of: 2 });
        assert!(excess.range(None).is_err());
    }
}
