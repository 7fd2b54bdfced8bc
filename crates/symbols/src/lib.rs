//! Object files and debug data: turns addresses into names. Knows no trace format.
//!
//! Three levels: [`Binary`] owns a file's bytes, [`Program`] those of its separate debug files, too; [`ObjectFile`] finds
//! sections, relocates them and lists symbols;
//! [`DebugData`] and [`Lines`] turn addresses into places in source code, [`layouts`] describes the layout of types in
//! memory. [`demangle`] is for names from a linker.
//!
//! Every file is untrusted: damage is an error or `None`, never a panic, and work and memory stay within a small
//! multiple of the file's length.
//!
//! ```
//! use anytrace_core::span::Mangling;
//! use anytrace_symbols::{Binary, demangle};
//!
//! let text = Binary::from_bytes("notes.txt", b"no object".to_vec());
//! assert!(!text.is_object());
//! assert_eq!(demangle("_Z3addii", Mangling::Demangled), "add(int, int)");
//! ```

#![forbid(unsafe_code)]

mod binary;
mod debug_data;
mod demangle;
mod layout;
pub mod layouts;
mod libraries;
mod maps;
mod object_file;
mod places;
mod program;
mod relocate;
pub mod sites;
mod sources;
mod split;
mod symbol_table;
#[cfg(feature = "testing")]
pub mod testing;

pub use binary::Binary;
pub use debug_data::{DebugData, Frame, Lines};
pub use demangle::demangle;
pub use libraries::{libraries, started};
pub use maps::{Line as MapsLine, MappedObject, Maps};
pub use object_file::{ObjectFile, Section};
pub use places::{CodeFiles, build_id};
pub use program::{Objects, Program};
pub use sources::{Sources, runs};
pub use symbol_table::{Symbol, SymbolTable};
