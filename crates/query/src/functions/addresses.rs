//! `symbol(address)` and `line(address)`: what a program has at an address, by its symbols and debug data.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};
use anytrace_symbols::{Binary, ObjectFile, demangle};
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Signature, Volatility};

use super::Function;
use crate::input::TraceFile;

/// Looks an address up.
type Lookup = Box<dyn Fn(u64) -> Option<String> + Send>;

pub(super) fn symbol(files: &[Arc<TraceFile>]) -> Function {
    of_addresses("symbol", files, symbols_of)
}

pub(super) fn line(files: &[Arc<TraceFile>]) -> Function {
    of_addresses("line", files, lines_of)
}

fn of_addresses(
    name: &'static str,
    files: &[Arc<TraceFile>],
    make: fn(&'static Binary) -> Result<Lookup, Error>,
) -> Function {
    let sources: Vec<SymbolSource> = files.first().map_or(Vec::new(), |file| file.sources().to_vec());
    // Read when the first row asks for it, once for a session.
    let lookups: OnceLock<Result<Mutex<Vec<Lookup>>, String>> = OnceLock::new();
    Function {
        name,
        files: files.to_vec(),
        signature: Signature::exact(vec![DataType::UInt64], Volatility::Immutable),
        returns: DataType::Utf8,
        call: Arc::new(move |arguments| {
            let made = lookups.get_or_init(|| read(name, &sources, make).map(Mutex::new));
            let made = made.as_ref().map_err(|error| DataFusionError::Execution(error.clone()))?;
            let made = made.lock().unwrap_or_else(PoisonError::into_inner);
            let addresses = arguments[0].as_primitive::<UInt64Type>();
            let find = |address: u64| made.iter().find_map(|lookup| lookup(address));
            let rows: StringArray = addresses.iter().map(|address| find(address?)).collect();
            Ok(Arc::new(rows))
        }),
    }
}

fn read(
    name: &str,
    sources: &[SymbolSource],
    make: fn(&'static Binary) -> Result<Lookup, Error>,
) -> Result<Vec<Lookup>, String> {
    if sources.is_empty() {
        return Err(format!("{name}: name the program with -m"));
    }
    let open = |source: &SymbolSource| {
        // A session ends with its process: what it looks things up in may stay until then.
        let binary = Box::leak(Box::new(Binary::open(&source.path, InputOptions::default())?));
        make(binary)
    };
    sources.iter().map(open).collect::<Result<_, Error>>().map_err(|error| error.to_string())
}

fn symbols_of(binary: &'static Binary) -> Result<Lookup, Error> {
    let table = ObjectFile::parse(binary, None)?.symbols();
    Ok(Box::new(move |address| {
        let name = shown(table.find(address)?.name);
        Some(demangle(&name, Mangling::Demangled).to_string())
    }))
}

fn lines_of(binary: &'static Binary) -> Result<Lookup, Error> {
    let data = Box::leak(Box::new(ObjectFile::parse(binary, None)?.debug_data()?));
    let lines = data.lines()?;
    Ok(Box::new(move |address| {
        let location = lines.location(address)?;
        Some(format!("{}:{}", location.file, location.line))
    }))
}
