//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod calls;
pub(crate) mod collect;
pub(crate) mod compress;
pub(crate) mod container;
pub(crate) mod container_writer;
pub(crate) mod convert;
pub(crate) mod encode;
pub(crate) mod event;
pub(crate) mod evidence;
pub(crate) mod layout;
pub(crate) mod marks;
pub(crate) mod names;
pub(crate) mod parse;
#[cfg(feature = "tools")]
pub(crate) mod pieces;
pub(crate) mod plain;
#[cfg_attr(not(feature = "tools"), allow(dead_code, reason = "only the format-specific commands show points"))]
pub(crate) mod point;
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only tables have marks to write"))]
pub(crate) mod point_bytes;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod resync;
pub(crate) mod scan;
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only tables and commands find points"))]
pub(crate) mod seek;
pub(crate) mod signatures;
pub(crate) mod skip;
pub(crate) mod snappy;
pub(crate) mod stream;
pub(crate) mod unfinished;
pub(crate) mod values;
pub(crate) mod visitor;
pub(crate) mod walker;
pub(crate) mod writer;
