//! Where in the source places are that a recorder named by function and offset.

use std::collections::HashMap;
use std::path::Path;

use anytrace_core::layout::canonical_name;
use anytrace_core::span::{Location, Mangling};
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};

use crate::{Binary, ObjectFile, demangle};

/// A place that a call returns to: a function's name, as its file has it or demangled, and bytes from its begin.
pub type Site<'n> = (&'n str, u64);

/// The source lines of calls; `None` where no program has the function, or several that differ. Of files that are no
/// programs nothing is known.
///
/// # Errors
/// I/O; [`anytrace_core::Kind::Unsupported`] when a program is damaged.
pub fn locations(programs: &[&Path], sites: &[Site<'_>]) -> Result<Vec<Option<Location>>, Error> {
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, (name, _)) in sites.iter().enumerate() {
        wanted.entry(canonical_name(name)).or_default().push(at);
    }
    let mut found: Vec<Vec<Location>> = vec![Vec::new(); sites.len()];
    for path in programs {
        let binary = Binary::open(path, InputOptions::default())?;
        if !binary.is_object() {
            continue;
        }
        let object = ObjectFile::parse(&binary, None)?;
        let symbols = object.symbols();
        let debug = object.debug_data()?;
        // Without debug data there is nothing to find here.
        let Ok(lines) = debug.lines() else { continue };
        for symbol in symbols.symbols() {
            let own = shown(symbol.name);
            let demangled = demangle(&own, Mangling::Demangled);
            let known = wanted.get(own.as_ref()).or_else(|| wanted.get(&canonical_name(&demangled)));
            for at in known.into_iter().flatten() {
                let Some((_, offset)) = sites.get(*at) else { continue };
                if symbol.size_bytes > 0 && *offset > symbol.size_bytes {
                    continue;
                }
                // The call itself precedes what it returns to.
                let address = symbol.address.wrapping_add(*offset).wrapping_sub(1);
                let frames = lines.frames(address);
                let inlined = frames.into_iter().next().and_then(|frame| frame.location);
                let location = inlined.or_else(|| lines.location(address));
                if let (Some(location), Some(all)) = (location, found.get_mut(*at))
                    && !all.contains(&location)
                {
                    all.push(location);
                }
            }
        }
    }
    let only = |mut all: Vec<Location>| if all.len() == 1 { all.pop() } else { None };
    Ok(found.into_iter().map(only).collect())
}
