//! What tests and fuzz targets do to any bytes: demangle them, open them as an object file, read their debug data.
//!
//! Only behind the feature `testing`. Panics are this module's way to fail a test.

use std::path::Path;

use anytrace_core::InputOptions;
use anytrace_core::layout::Layouts;
use anytrace_core::span::Mangling;

use crate::{Binary, Lines, ObjectFile, demangle, layouts};

/// Takes every line as a name, unchanged and with the prefixes of the manglings.
///
/// # Panics
/// When a name that must stay unchanged does not.
pub fn fuzz_demangle(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        for beginning in ["", "_Z", "__Z", "_ZN", "_R", "?"] {
            let name = format!("{beginning}{line}");
            assert_eq!(demangle(&name, Mangling::AsIs), name);
            let shown = demangle(&name, Mangling::Demangled);
            assert!(!shown.is_empty() || name.is_empty(), "nothing is left of {name:?}");
        }
    }
}

/// Any bytes as an object file: its parts, sections and symbols.
///
/// # Panics
/// When the results contradict each other.
pub fn fuzz_object(bytes: &[u8]) {
    let binary = Binary::from_bytes("any", bytes.to_vec());
    let architectures = ObjectFile::architectures(&binary).unwrap_or_default();
    for architecture in architectures.iter().copied().map(Some).chain([None]).take(5) {
        let Ok(object) = ObjectFile::parse(&binary, architecture) else { continue };
        for name in [".text", ".debug_info", ".debug_str", ".debug_types", "xray_instr_map", "xray_fn_idx", ""] {
            let _ = object.section(name);
            let _ = object.sections(name);
        }
        let table = object.symbols();
        for symbol in table.symbols() {
            let found = table.find(symbol.address);
            assert!(found.is_some_and(|found| found.address <= symbol.address), "{symbol:?}: {found:?}");
        }
        let _ = (object.is_64(), object.is_little_endian(), object.name(), table.find(u64::MAX));
    }
}

/// Takes any bytes as a file with debug data: reads lines and inlined functions at all symbols, and all layouts of
/// types, which must come back from JSON unchanged. `scratch` is a file that may be overwritten.
///
/// # Panics
/// When layouts do not come back unchanged.
pub fn fuzz_debug_data(bytes: &[u8], scratch: &Path) {
    let binary = Binary::from_bytes("any", bytes.to_vec());
    if let Ok(object) = ObjectFile::parse(&binary, None) {
        let addresses = object.symbols().symbols().iter().take(64).map(|symbol| symbol.address).collect::<Vec<_>>();
        if let Ok(data) = object.debug_data()
            && let Ok(lines) = data.lines()
        {
            addresses.iter().for_each(|address| examine_lines(&lines, *address));
            [0, 1, 0x40, u64::MAX].iter().for_each(|address| examine_lines(&lines, *address));
        }
    }
    let functions = function_names(&binary);
    // Types are read from files, whose companions are searched beside them.
    if std::fs::write(scratch, bytes).is_err() {
        return;
    }
    let _ = layouts::with_type_data(&[scratch], InputOptions::default(), |types| {
        let names = types.names();
        for name in names.iter().take(256) {
            let _ = types.layout(name, 8);
        }
        for (name, size_bytes) in &functions {
            for offset in [1, 5, size_bytes / 2, *size_bytes] {
                let _ = types.infer(&[(name, offset), ("main", 1)], &[64, 128]);
            }
        }
        let all = types.records();
        let mut json = Vec::new();
        layouts::write_layouts(&all, &mut json).unwrap_or_else(|error| panic!("{error}"));
        let back = layouts::read_layouts(&Binary::from_bytes("layouts.json", json));
        let back = back.unwrap_or_else(|error| panic!("what was written cannot be read: {error}")).1;
        assert_eq!(back.len(), all.len(), "layouts get lost on the way through JSON");
        let _ = types.notes();
    });
}

/// The names of some functions, and their lengths.
fn function_names(binary: &Binary) -> Vec<(String, u64)> {
    let Ok(object) = ObjectFile::parse(binary, None) else { return Vec::new() };
    let table = object.symbols();
    let named = table.symbols().iter().take(64);
    named.map(|symbol| (String::from_utf8_lossy(symbol.name).into_owned(), symbol.size_bytes)).collect()
}

fn examine_lines(lines: &Lines<'_>, address: u64) {
    let _ = (lines.location(address), lines.column(address), lines.frames(address).len());
}
