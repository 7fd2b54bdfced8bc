//! Writes made-up tables as Parquet and Arrow, and their rows as JSON, into a folder; `cargo xtask consumers` has the
//! real readers compare them.
//!
//! `cargo run -p anytrace-export --example made_tables -- FOLDER`

#![allow(clippy::unwrap_used, reason = "a chore may fail by panicking")]

#[path = "../tests/made/mod.rs"]
mod made;

use std::path::PathBuf;

use anytrace_export::arrow::Limits as ArrowLimits;
use anytrace_export::parquet::Limits as ParquetLimits;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder is given"));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: String, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let few_rows = ArrowLimits { batch_rows: 600, ..ArrowLimits::default() };
    for made in made::all() {
        let name = made.name;
        put(format!("{name}.parquet"), &made::parquet(&made, ParquetLimits::default()));
        put(format!("{name}-small.parquet"), &made::parquet(&made, made::small()));
        put(format!("{name}.arrow"), &made::arrow(&made, ArrowLimits::default()));
        put(format!("{name}-small.arrow"), &made::arrow(&made, few_rows));
        put(format!("{name}.rows.json"), made::rows(&made).to_string().as_bytes());
    }
}
