//! The native half of the Python package `anytrace`: traces as streams of Arrow, and the verbs' results as JSON.
//!
//! What a user sees (classes, documentation, conversions for pandas and Polars) is Python, in `python/anytrace`; it calls
//! what is here. Reading happens in threads that never touch Python: the interpreter is released while they work.

mod convert;
mod failure;
mod gather;
mod keep;
mod opening;
mod output;
mod producer;
mod records;
mod simulate;
mod source;
mod stats;
mod stream;
mod work;
mod writers;

use pyo3::prelude::*;

/// The module that `anytrace` is made of.
#[pymodule]
fn _anytrace(module: &Bound<'_, PyModule>) -> PyResult<()> {
    work::remember_main_thread();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<source::Source>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<records::Record>()?;
    module.add_class::<writers::HephFile>()?;
    module.add_class::<writers::CacherayFile>()?;
    Ok(())
}
