//! `extract`: the map of an object file as YAML.

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_core::span::Mangling;
use anytrace_core::{Error, Input, InputOptions};
use anytrace_symbols::{Binary, ObjectFile, Program};

use super::functions::{Namer, address_name, debug_data, stripped};
use super::sleds::sleds;
use super::yaml;

/// How a map is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtractOptions<'a> {
    /// The form of names; without it the field stays empty.
    pub names: Option<Mangling>,
    /// The part of a fat Mach-O file to use; `None` takes the one for this machine, or else the first.
    pub architecture: Option<&'a str>,
}

/// Writes the map of an object file, or of another YAML map, in the peer's form. Returns notes on what could not be
/// read and what that means, one line each.
///
/// # Errors
/// As [`super::load`], and when `out` fails.
pub fn extract(input: Input, options: ExtractOptions<'_>, out: &mut dyn Write) -> Result<Vec<String>, Error> {
    let binary = Binary::from_input(input)?;
    let mut notes = Vec::new();
    let entries =
        if binary.is_object() { from_object(binary, options, &mut notes)? } else { from_yaml(&binary, options)? };
    yaml::write(&entries, out)?;
    Ok(notes)
}

fn from_object(
    binary: Binary,
    options: ExtractOptions<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<yaml::Entry>, Error> {
    let sleds = sleds(&ObjectFile::parse(&binary, options.architecture)?)?;
    let Some(mangling) = options.names else {
        return Ok(sleds.into_iter().map(|sled| yaml::Entry { sled, name: String::new() }).collect());
    };
    let program = Program::of(binary, InputOptions::default());
    let objects = program.objects(options.architecture)?;
    notes.extend_from_slice(program.notes());
    let debug = debug_data(&objects, notes);
    let namer = Namer::new(&objects, debug.as_ref(), mangling, notes);
    let mut known: BTreeMap<u32, String> = BTreeMap::new();
    let mut nameless = 0;
    let mut named = Vec::with_capacity(sleds.len());
    for sled in sleds {
        let name = known.entry(sled.id).or_insert_with(|| {
            let name = namer.name(sled.function);
            nameless += usize::from(name == address_name(sled.function));
            name
        });
        named.push(yaml::Entry { sled, name: name.clone() });
    }
    notes.extend(stripped(objects.own.name(), &objects, nameless, known.len()));
    Ok(named)
}

fn from_yaml(binary: &Binary, options: ExtractOptions<'_>) -> Result<Vec<yaml::Entry>, Error> {
    let mut entries = yaml::read(binary)?;
    for entry in &mut entries {
        entry.name = match options.names {
            None => String::new(),
            Some(_) if entry.name.is_empty() => address_name(entry.sled.function),
            Some(mangling) => anytrace_symbols::demangle(&entry.name, mangling).into_owned(),
        };
    }
    Ok(entries)
}
