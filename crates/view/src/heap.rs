//! The memory that the server keeps: the C library gives each thread a heap of its own, and what threads have once used
//! for an answer stays in each. Measured in a walk of three minutes through 1 GB: 217 MB at most, with one heap 180 MB.

/// Lets all threads share one heap. Answers are made one after the other, so that they do not wait for each other.
pub(crate) fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a setting of the C library's allocator")]
    // SAFETY: changes a number that the library reads when a thread first allocates; it may be called at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
