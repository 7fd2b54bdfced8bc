//! Makes the table of functions from the registries of Khronos, as the crate `khronos_api` has them: for each function of
//! OpenGL, EGL and GLX its parameters with their types, groups of enumerants and lengths, and a symbol that is exported.
#![allow(clippy::print_stdout, reason = "cargo reads what build scripts print")]

mod enums;
mod functions;
mod lengths;
mod types;

use std::path::Path;
use std::{env, fs};

use roxmltree::{Document, ParsingOptions};

use enums::Enums;

/// Each registry, and the prefix of its functions. Windows' is left out.
const REGISTRIES: [(&str, &[u8]); 3] =
    [("gl", khronos_api::GL_XML), ("egl", khronos_api::EGL_XML), ("glX", khronos_api::GLX_XML)];

fn main() {
    println!("cargo::rerun-if-changed=build");
    let mut enums = Enums::default();
    let mut rows = std::collections::BTreeMap::new();
    for (prefix, source) in REGISTRIES {
        let text = String::from_utf8_lossy(source);
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&text, options).expect("the registry is XML");
        enums.read(prefix, &document);
        functions::read(prefix, &document, &mut enums, &mut rows);
    }
    for line in functions::UNREGISTERED.lines().filter(|line| !line.is_empty()) {
        functions::declared(line, &mut enums, &mut rows);
    }
    let folder = env::var_os("OUT_DIR").expect("cargo names a folder");
    let write = |name: &str, text: String| {
        fs::write(Path::new(&folder).join(name), text).expect("cargo's folder can be written to");
    };
    write("functions.rs", functions::table(&rows));
    write("stubs.rs", functions::stubs(&rows));
    write("groups.rs", enums.table());
    write("counters.rs", functions::counters(128));
}
