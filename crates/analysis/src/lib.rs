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

pub mod diff;
pub mod quantiles;
pub mod stack_runs;
pub mod stacks;
