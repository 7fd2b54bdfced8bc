//! OpenGL's objects and contexts, as far as calls tell of them.
//!
//! [`kind`] has the kinds of objects, [`lifecycle`] the functions that make, delete and bind them, [`references`]
//! says which arguments of a function name objects, [`contexts`] follows which thread has which context and which
//! contexts share their objects, [`objects`] keeps books of what there is. [`values`] reads the arguments of an assembled call by index,
//! `attribute_groups` says what `glPushAttrib` saves.

pub(crate) mod attribute_groups;
pub mod contexts;
pub mod kind;
pub mod lifecycle;
pub mod objects;
pub mod references;
pub mod values;
