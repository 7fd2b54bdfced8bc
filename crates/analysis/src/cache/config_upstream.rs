//! The numbers in upstream's files, whichever form has them.

use super::config::{Level, Policy, Wrong};

/// A cache as upstream's files describe it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upstream {
    /// log2 of the bytes.
    pub(super) cache_size: u64,
    /// log2 of a line's bytes.
    pub(super) block_size: u64,
    /// 0 is write-back; we take 1 for write-through (upstream's simulator ignores it).
    pub(super) write_policy: u64,
    /// 0 is fully associative.
    pub(super) set_assoc: u64,
    /// 0 LRU, 1 FIFO, 2 LIFO, 3 FILO, 4 random.
    pub(super) rep_policy: u64,
}

impl Upstream {
    pub(super) fn level(self, name: &str, path: &str) -> Result<Level, Wrong> {
        let power = |key: &str, value: u64| match u32::try_from(value).ok().and_then(|v| 1_u64.checked_shl(v)) {
            Some(bytes) if value < 50 => Ok(bytes),
            _ => Err(Wrong::new(format!("{path}.{key}"), format!("expected a power of two below 50, found {value}"))),
        };
        let (size, line) = (power("cache_size", self.cache_size)?, power("block_size", self.block_size)?);
        let mut level = Level::new(name, size, line, self.set_assoc);
        level.policy = match self.rep_policy {
            0 => Policy::Lru,
            1 => Policy::Fifo,
            4 => Policy::Random,
            other => {
                let what = format!("expected 0 (LRU), 1 (FIFO) or 4 (random), found {other}");
                return Err(Wrong::new(format!("{path}.rep_policy"), what));
            }
        };
        level.is_write_through = match self.write_policy {
            0 => false,
            1 => true,
            other => {
                let what = format!("expected 0 (write-back) or 1 (write-through), found {other}");
                return Err(Wrong::new(format!("{path}.write_policy"), what));
            }
        };
        Ok(level)
    }
}
