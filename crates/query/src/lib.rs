//! SQL on program traces by Apache DataFusion: the engine behind `anytrace query`, as a library and as a program.
//!
//! A [`Session`] has the tables of some traces ([`anytrace_core::table`]), read in place: a statement reads the columns and
//! the parts of the files that it needs. It has functions for traces (`bucket`, `hex`, `duration`, `percentile`, `attr`,
//! `stack_path`, `symbol`, `line`) and the views `slice`, `thread` and `process`.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use anytrace_query::{OpenWith, Options, Session, TraceFile};
//!
//! # async fn longest() -> Result<(), Box<dyn std::error::Error>> {
//! let file = Arc::new(TraceFile::open("app.xray".into(), None, &OpenWith::default())?);
//! let session = Session::new(&Options::default(), vec![Arc::clone(&file)]).await?;
//! let (_, batches) = session.rows("SELECT name, duration FROM calls ORDER BY duration DESC LIMIT 5").await?;
//! println!("{} rows", batches.iter().map(|batch| batch.num_rows()).sum::<usize>());
//! let (lines, is_damaged) = file.damage();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod access;
#[cfg(feature = "codec")]
pub mod codec;
pub mod cookbook;
mod engine;
mod failure;
mod functions;
mod grouping;
mod input;
mod output;
pub mod program;
mod provider;
mod pushdown;
mod reports;
mod session;
mod source;

pub use access::{Access, Files, Place};
pub use engine::{Engine, Setup};
pub use failure::{message, table_names};
pub use input::{OpenWith, TraceFile};
pub use output::{Form, How};
#[cfg(feature = "codec")]
pub use reports::receive;
pub use session::{MEMORY_BYTES_MIN, Options, Session};
