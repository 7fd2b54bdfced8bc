//! The format's own commands as library functions: results as structs, renderers to text and JSON.

mod advice;
pub mod check;
pub mod checkpoints;
pub mod compare;
pub mod explain;
pub mod history;
pub mod machine;
pub mod minimise;
pub mod online;
mod page;
mod picture;
pub mod reference;
pub mod render;
pub mod rewrite;
pub mod rings;
pub mod stats;
pub mod timeline;
pub mod walk;
pub mod walk_diff;
pub(crate) mod words;

pub use check::{CheckOptions, Claim, Found, Related, Report, Role, Verdict, check};
pub use checkpoints::{At, Checkpoints, StateAt};
pub use explain::{Explanation, Story, explain};
pub use history::{Event, What, Where};
pub use minimise::{Minimised, Smallest, minimise};
pub use online::{Online, SaveError};
pub use page::{PAGE_STYLE, TimelinePage, explanation_page};
pub use stats::{Stats, stats};
pub use walk_diff::{WalkDiff, walk_diff};
