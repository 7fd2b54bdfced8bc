//! The lowest layer of anytrace: the types that every format, verb and engine shares.
//!
//! It names no format. A format crate implements [`Format`] and [`Trace`]; the command line and other programs use
//! formats through these two entry points. Inside a format crate nothing is virtual: a [`Cursor`] hands out windows of
//! bytes, and pure parsers turn them into borrowed records.
//!
//! ```
//! use anytrace_core::{Cursor, Input};
//!
//! let input = Input::from_bytes("two.bin", vec![1, 2]);
//! let mut cursor = Cursor::new(input);
//! assert_eq!(cursor.fill(2).unwrap(), 2);
//! assert_eq!(cursor.window(), &[1, 2]);
//! cursor.advance(1);
//! assert_eq!((cursor.offset(), cursor.window()), (1, &[2][..]));
//! ```

pub mod access;
pub mod archive;
pub mod bytes;
mod cursor;
mod diagnostic;
mod entry;
mod error;
mod explain;
mod file;
mod folder;
pub mod hash;
pub mod index;
mod input;
mod interner;
pub mod jsonl;
mod layer;
pub mod layout;
mod limits;
mod model;
mod number_set;
mod options;
mod pieces;
mod plan;
mod probe;
mod room;
#[cfg(feature = "runs")]
pub mod runs;
mod sink;
pub mod span;
mod step;
pub mod table;
pub mod tables;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod visit;
mod zstd_stream;

pub use access::{Access, AccessSink};
pub use bytes::Endian;
pub use cursor::{Cursor, Refill};
pub use diagnostic::{Diagnostic, Effect, Rule, Severity};
pub use entry::{Format, ImportOptions, Trace};
pub use error::{Error, Kind};
pub use explain::{Course, Explanation, Grid, Lines, Spot, Subject};
pub use file::{RangeRead, cut_short};
pub use input::{Input, InputOptions};
pub use interner::Interner;
pub use layer::{Compression, Layer, LayerEnd, layer_rules};
pub use limits::Limits;
pub use model::{Info, JSON_VERSION, Outcome, Summary, Tally, TimeRange};
pub use number_set::NumberSet;
pub use options::{FormatOption, OptionUse, OptionValues, Setting, Settings};
pub use pieces::Pieces;
pub use plan::{DumpForm, DumpOptions, NameMatch, OpenOptions, Plan, Selection, TargetOptions, TimeBound};
pub use probe::{Confidence, Head};
pub use room::Room;
pub use sink::{Collect, Sink, Strict};
pub use span::{SpanOptions, SpanSink};
pub use step::{Need, Passed, Place, Step, Steps, Stored};
pub use target::{MemoryTarget, Target};
pub use visit::{AccessEvent, SpanRef, each_access, each_edge, each_span};
pub use zstd_stream::{Decompressed, ZstdStream};
