//! OpenGL's objects and contexts, as far as calls reveal them.
//!
//! [`kind`] lists the kinds of objects, [`lifecycle`] the functions that make, delete and bind them, and [`references`]
//! the arguments of functions that name objects. [`contexts`] tracks which context is current on which thread and which
//! contexts share objects, and [`objects`] tracks the objects that exist. [`values`] reads the arguments of an
//! assembled call by index. `commands` is the table of functions that set state; `attribute_groups` lists what
//! `glPushAttrib` saves.

pub(crate) mod attribute_groups;
pub(crate) mod commands;
pub mod contexts;
pub mod kind;
pub mod lifecycle;
pub mod objects;
pub mod references;
pub mod values;
