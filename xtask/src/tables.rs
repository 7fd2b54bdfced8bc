//! `cargo xtask tables`: regenerates the tables of function flags and of C types of the apitrace crate, and puts the
//! names of GUIDs in order. The tables are data in `crates/apitrace/src/tables`: lines `key=value`, sorted by key.
//!
//! Which functions there are is read from the Khronos registry (gl.xml, glx.xml, wgl.xml, egl.xml, as the crate
//! `khronos_api` ships them); what they do cannot be read there, so the flags are those observed of apitrace 11.1
//! (`crates/apitrace/corpus/callflags.tsv`, every function it knows). Families that apitrace recognizes by the pattern of
//! their names are left out of the table: `lanes/flags.rs` has the patterns, and its tests check all 633 names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use crate::shell::root;

/// Functions of drivers and systems that are in no registry.
const UNREGISTERED: [&str; 7] = [
    "CGLFlushDrawable",
    "CGLGetCurrentContext",
    "glBufferRegionEnabled",
    "wglDescribePixelFormat",
    "wglGetPixelFormat",
    "wglSwapBuffers",
    "wglSwapMultipleBuffers",
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let is_check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => return Err("tables takes nothing, or --check".to_owned()),
    };
    let observed = std::fs::read_to_string(root().join("crates/apitrace/corpus/callflags.tsv"))
        .map_err(|error| format!("callflags.tsv: {error}"))?;
    let folder = root().join("crates/apitrace/src/tables");
    // GUIDs are in no registry: the file itself lists those whose names apitrace 11.1 prints.
    let guids = std::fs::read_to_string(folder.join("guids.txt")).map_err(|error| format!("guids.txt: {error}"))?;
    for (name, table) in [("flags.txt", flags(&observed)?), ("types.txt", types()), ("guids.txt", sorted(&guids)?)] {
        let path = folder.join(name);
        if is_check {
            let there = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            if there != table {
                return Err(format!("{name} is not what `cargo xtask tables` writes"));
            }
        } else {
            std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// The table of C types: for each function of OpenGL a letter for what it returns and for each parameter; `p` precedes
/// the type that is pointed to.
fn types() -> String {
    let source = String::from_utf8_lossy(khronos_api::GL_XML);
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    // Some have a comment: `<command comment="…">`. The first command comes after `<commands …>`.
    let commands = source.split("<command").skip(1).filter(|rest| rest.starts_with(['>', ' ']));
    for command in commands.filter_map(|rest| rest.split_once("</command>")) {
        let Some((proto, rest)) = command.0.split_once("</proto>") else { continue };
        let Some((returned, name)) = proto.split_once("<name>") else { continue };
        let mut types = type_letters(returned);
        for param in rest.split("<param").skip(1) {
            let declared = param.split_once('>').and_then(|(_, text)| text.split_once("<name>"));
            types.push_str(&declared.map_or_else(|| "x".to_owned(), |(text, _)| type_letters(text)));
        }
        rows.insert(name.trim().trim_end_matches("</name>").to_owned(), types);
    }
    lines(rows)
}

/// The text of a table.
fn lines(rows: impl IntoIterator<Item = (impl Display, impl Display)>) -> String {
    rows.into_iter().fold(String::new(), |mut text, (key, value)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key}={value}");
        text
    })
}

/// A table with its lines sorted.
fn sorted(table: &str) -> Result<String, String> {
    let mut rows = BTreeMap::new();
    for line in table.lines() {
        let (key, value) = line.split_once('=').ok_or_else(|| format!("no key: {line}"))?;
        if rows.insert(key, value).is_some() {
            return Err(format!("{key} occurs twice"));
        }
    }
    Ok(lines(rows))
}

/// The letters of a type as the registry declares it, `x` for what no trace can hold.
fn type_letters(declared: &str) -> String {
    let stars = declared.matches('*').count();
    let named = declared.split_once("<ptype>").and_then(|(_, rest)| rest.split_once("</ptype>")).map(|(name, _)| name);
    let letter = match named {
        None if declared.contains("void") => 'v',
        Some("GLenum" | "GLbitfield") => 'e',
        Some("GLuint" | "GLhandleARB") => 'u',
        Some("GLint" | "GLsizei" | "GLfixed" | "GLclampx") => 'i',
        Some("GLboolean" | "GLubyte") => 'b',
        Some("GLbyte") => 'c',
        Some("GLchar" | "GLcharARB") => 'a',
        Some("GLshort") => 's',
        Some("GLushort" | "GLhalfNV") => 'w',
        Some("GLfloat" | "GLclampf") => 'f',
        Some("GLdouble" | "GLclampd") => 'd',
        Some("GLint64" | "GLint64EXT") => 'l',
        Some("GLuint64" | "GLuint64EXT") => 'L',
        Some("GLintptr" | "GLsizeiptr" | "GLintptrARB" | "GLsizeiptrARB" | "GLvdpauSurfaceNV") => 'n',
        Some("GLsync") => 'y',
        _ => 'x',
    };
    format!("{}{letter}", "p".repeat(stars))
}

/// The table of flags: names and the numbers of their flags.
fn flags(observed: &str) -> Result<String, String> {
    let registered = registered();
    let mut rows: BTreeMap<&str, u16> = BTreeMap::new();
    for line in observed.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (Some(name), Some(Ok(flags))) = (fields.next(), fields.next().map(str::parse)) else {
            return Err(format!("callflags.tsv: {line}"));
        };
        let is_khronos = ["gl", "egl", "wgl", "CGL"].iter().any(|prefix| name.starts_with(prefix));
        if is_khronos && !registered.contains(name) && !UNREGISTERED.contains(&name) {
            return Err(format!("{name} is in no registry"));
        }
        rows.insert(name, flags);
    }
    Ok(lines(rows.into_iter().filter(|(name, _)| !is_of_a_family(name))))
}

/// True for names whose flags follow from a pattern; a coarser net than the patterns themselves, so it is the
/// crate's test that shows that nothing falls through.
fn is_of_a_family(name: &str) -> bool {
    let words = ["DrawArrays", "DrawElements", "DrawRangeElements", "DrawMeshArrays", "DrawTransformFeedback"];
    let stems = ["glCallList", "glRect", "glEvalMesh", "glBlitFramebuffer", "glBindFramebuffer"];
    let queries = [
        "glGetFloat",
        "glGetInteger",
        "glGetVertexAttrib",
        "glGetTexParameter",
        "glGetTexLevelParameter",
        "glGetTextureParameter",
        "glGetTextureLevelParameter",
    ];
    let direct = ["ID3D10Device", "ID3D11Device", "IDXGI"];
    name.starts_with("gl") && words.iter().any(|word| name.contains(word))
        || ["glClear", "glEnd", "glDrawPixels"].contains(&name)
        || stems.iter().chain(&queries).any(|stem| name.starts_with(stem))
        || direct.iter().any(|stem| name.starts_with(stem))
}

/// Names of all commands in the Khronos registries.
fn registered() -> BTreeSet<String> {
    let sources = [
        khronos_api::GL_XML,
        khronos_api::GLX_XML,
        khronos_api::WGL_XML,
        khronos_api::EGL_XML,
        khronos_api::GL_ANGLE_EXT_XML,
        khronos_api::EGL_ANGLE_EXT_XML,
    ];
    let mut names = BTreeSet::new();
    for source in sources {
        let text = String::from_utf8_lossy(source);
        // `<proto>TYPE <name>NAME</name></proto>`
        for proto in text.split("<proto").skip(1) {
            let name = proto.split_once("<name>").and_then(|(_, rest)| rest.split_once("</name>"));
            names.extend(name.map(|(name, _)| name.trim().to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_name_each_key_once() {
        assert_eq!(sorted("b=1\na=2"), Ok("a=2\nb=1\n".to_owned()));
        assert!(sorted("a=1\na=2").is_err() && sorted("a").is_err());
    }

    #[test]
    fn the_tables_in_the_crate_are_what_is_written() {
        assert_eq!(run(&["--check".to_owned()]), Ok(()));
        assert!(registered().len() > 3000);
        // A command with an attribute, which was forgotten once.
        assert!(types().contains("\nglDrawArraysInstancedEXT=veiii\n"));
    }
}
