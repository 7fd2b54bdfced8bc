//! What compilers call: the functions of ThreadSanitizer, as gcc 12 and clang 13 to 19 emit them.

mod accesses;
mod annotations;
mod atomics;
mod atomics128;
pub(crate) mod memory;
