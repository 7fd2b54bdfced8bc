//! Functions that compilers call, one per event: the names are those of ThreadSanitizer's library. And the functions of
//! the C library that read or write the program's memory, or let its other threads go on.

mod accesses;
mod annotations;
mod atomics;
mod atomics128;
mod files;
pub(crate) mod library;
pub(crate) mod memory;
mod printing;
pub(crate) mod releases;
mod scanning;
mod text;
mod values;
