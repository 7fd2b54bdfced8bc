//! The log: lines on standard error.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use log::{LevelFilter, Log, Metadata, Record};

struct Lines(LevelFilter);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // What other libraries say beside warnings is about themselves.
        let is_ours = ["anytrace", "ballista"].iter().any(|name| metadata.target().starts_with(name));
        metadata.level() <= if is_ours { self.0 } else { self.0.min(LevelFilter::Warn) }
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = anytrace_core::text::printable(&record.args().to_string());
        let level = record.level().as_str().to_lowercase();
        let _ = writeln!(
            std::io::stderr(),
            "{}.{:03} {level} {}: {text}",
            since.as_secs(),
            since.subsec_millis(),
            record.target()
        );
    }

    fn flush(&self) {}
}

/// Begins to log; seconds are those since 1970.
pub(crate) fn start(level: &str) {
    let level = level.parse().unwrap_or(LevelFilter::Info);
    // Cannot fail: this is the only logger of the process.
    if log::set_boxed_logger(Box::new(Lines(level))).is_ok() {
        log::set_max_level(level);
    }
}
