//! Writes every timeline output of two made-up traces into a folder; `cargo xtask consumers` feeds them to the real
//! programs.
//!
//! `cargo run -p anytrace-export --example outputs -- FOLDER`

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a chore may fail by panicking")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::time::Instant;

use anytrace_core::span::TimeUnit;
use anytrace_export::timeline::OUTPUTS;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder is given"));
    std::fs::create_dir_all(&folder).unwrap();
    let ticks = TimeUnit::Ticks { per_second: Some(2_893_317_000) };
    let edges = std::env::args().nth(2).map_or(20_000, |text| text.parse().unwrap());
    for (name, trace) in [("hard", common::hard()), ("random", common::random(7, edges, ticks))] {
        for output in &OUTPUTS {
            let start = Instant::now();
            let bytes = trace.written_in(output.name, 1024);
            let seconds = start.elapsed().as_secs_f64();
            let path = folder.join(format!("{name}-{}.{}", output.name, output.extension));
            eprintln!("{name} {}: {} bytes, {:.0} MB/s", output.name, bytes.len(), bytes.len() as f64 / seconds / 1e6);
            let Some(files) = output.folder else {
                std::fs::write(path, bytes).unwrap();
                continue;
            };
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(files.main), bytes).unwrap();
            std::fs::write(path.join(files.beside), trace.beside(output.name)).unwrap();
        }
    }
}
