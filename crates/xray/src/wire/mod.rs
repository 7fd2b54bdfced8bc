//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod any;
pub(crate) mod basic;
pub(crate) mod fdr;
pub(crate) mod marks;
pub(crate) mod moment;
pub(crate) mod moments;
pub(crate) mod open;
pub(crate) mod parse;
pub(crate) mod put;
pub(crate) mod reader;
pub mod record;
pub(crate) mod recover;
pub(crate) mod salvage;
pub(crate) mod start;
pub(crate) mod writer;
pub(crate) mod yaml;
pub(crate) mod yaml_scan;
pub(crate) mod yaml_write;
