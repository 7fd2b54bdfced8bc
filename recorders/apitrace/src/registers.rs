//! What a stub keeps of a call.

/// Registers with arguments, and where the others are.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) integers: [u64; 6],
    pub(crate) floats: [u64; 8],
    pub(crate) stack: *const u64,
}
