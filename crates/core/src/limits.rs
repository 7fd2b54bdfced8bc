//! Limits that bound the memory, loops and recursion that a length read from input can cause.

/// The limits a reader obeys. All have safe defaults and may be raised by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest single record (packet, payload, name, blob kept in memory), in bytes. Default 16 MiB.
    pub record_bytes_max: u64,
    /// Deepest nesting of values or parentheses. Default 64.
    pub depth_max: u32,
    /// Most distinct keys (threads, signatures, names) counted separately; the rest are counted together. Default
    /// 65,536.
    pub distinct_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { record_bytes_max: 16 << 20, depth_max: 64, distinct_max: 65_536 }
    }
}

impl Limits {
    /// Sets [`Self::record_bytes_max`].
    pub fn with_record_bytes_max(mut self, bytes: u64) -> Self {
        self.record_bytes_max = bytes;
        self
    }

    /// Sets [`Self::distinct_max`].
    pub fn with_distinct_max(mut self, keys: usize) -> Self {
        self.distinct_max = keys;
        self
    }
}
