//! One file a verb: options to one library call, and a printer.

pub(crate) mod apitrace;
pub(crate) mod cacheray;
pub(crate) mod casemate;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod flame;
pub(crate) mod formats;
pub(crate) mod heph;
pub(crate) mod highlights;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod query;
mod recording;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod stats;
pub(crate) mod timeline;
pub(crate) mod trim;
pub(crate) mod view;
pub(crate) mod xray;
