//! Engines over plain structs; they know no format.
//!
//! ```
//! use anytrace_analysis::diff::{Change, Line, align};
//!
//! let lines = |texts: &[&str]| texts.iter().map(|t| Line::new(t.as_bytes())).collect::<Vec<_>>();
//! let (a, b) = (lines(&["x", "y", "z"]), lines(&["x", "z"]));
//! let mut changes = Vec::new();
//! let totals = align(a.into_iter(), b.into_iter(), &mut |change| changes.push(change));
//! assert_eq!((totals.same, totals.removed, totals.added), (2, 1, 0));
//! assert!(matches!(&changes[0], Change::Removed { at: 1, .. }));
//! ```
//!
//! Engines over spans run in a [`pass::Pass`]: [`accounting`], [`histogram`], [`longest`], [`gaps`], [`migrations`],
//! [`events`], [`flame`], [`overview`]. Engines over memory accesses: [`cache`], with the help of [`live_regions`].

pub mod accounting;
pub mod advise;
pub mod annotate;
pub mod arguments;
pub mod cache;
pub mod compare;
pub mod diff;
pub mod directory;
pub mod elements;
pub mod events;
pub mod fan;
pub mod filter;
pub mod flame;
pub mod gaps;
pub mod grain;
pub mod heat;
pub mod histogram;
pub mod interleave;
pub mod json;
pub mod lifetimes;
pub mod live_regions;
pub mod longest;
pub mod matching;
pub mod merge;
pub mod mesi;
pub mod migrations;
pub mod nest;
pub mod numa;
pub mod overview;
pub mod pass;
#[cfg(test)]
mod played;
pub mod quantiles;
pub mod remap;
pub mod reuse;
pub mod runs;
pub mod select;
pub mod sharing;
pub mod site_name;
pub mod stack_runs;
pub mod stacks;
pub mod threshold;
pub mod top;
pub mod type_profile;
pub mod weave;
