//! `cargo xtask callflags`: writes the tables of function flags and of C types of the apitrace crate anew.
//!
//! Which functions there are is read from the Khronos registry (gl.xml, glx.xml, wgl.xml, egl.xml, as the crate
//! `khronos_api` ships them); what they do cannot be read there, so the flags are those observed of apitrace 11.1
//! (`crates/apitrace/corpus/callflags.tsv`, every function it knows). Families that apitrace tells by the pattern of
//! their names are left out of the table: `tools/flags.rs` has the patterns, and its tests check all 633 names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

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

/// Most bytes of a packed line's text: with its quotes and comma it is as long as lines of source may be.
const PACKED_BYTES_MAX: usize = 113;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let is_check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => return Err("callflags takes nothing, or --check".to_owned()),
    };
    let observed = std::fs::read_to_string(root().join("crates/apitrace/corpus/callflags.tsv"))
        .map_err(|error| format!("callflags.tsv: {error}"))?;
    for (name, table) in [("flags_table.rs", table(&observed)?), ("to_c/types_table.rs", types_table())] {
        let path = root().join("crates/apitrace/src/tools").join(name);
        if is_check {
            let there = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            if there != table {
                return Err(format!("{name} is not what callflags writes"));
            }
        } else {
            std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// The text of the table of C types: for each function of OpenGL a letter for what it returns and for each parameter.
fn types_table() -> String {
    let source = String::from_utf8_lossy(khronos_api::GL_XML);
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for command in source.split("<command>").skip(1).filter_map(|rest| rest.split_once("</command>")) {
        let Some((proto, rest)) = command.0.split_once("</proto>") else { continue };
        let Some((returned, name)) = proto.split_once("<name>") else { continue };
        let mut types = type_letters(returned);
        for param in rest.split("<param").skip(1) {
            let declared = param.split_once('>').and_then(|(_, text)| text.split_once("<name>"));
            types.push_str(&declared.map_or_else(|| "x".to_owned(), |(text, _)| type_letters(text)));
        }
        rows.insert(name.trim().trim_end_matches("</name>").to_owned(), types);
    }
    packed(
        "//! C types of OpenGL's functions by name, sorted. Written by `cargo xtask callflags`.",
        "/// Names, and a letter for the return type and each parameter; `p` precedes the type that is pointed to.",
        "TYPES",
        rows.iter().map(|(name, types)| format!("{name}={types}")),
    )
}

/// The text of a constant table of words, in lines as long as they may be.
fn packed(module: &str, table: &str, name: &str, words: impl Iterator<Item = String>) -> String {
    let mut text = format!(
        "{module}\n\nuse crate::tools::packed::Packed;\n\n\
         {table}\n#[rustfmt::skip]\npub(super) static {name}: Packed = &[\n",
    );
    let mut line = String::new();
    for word in words {
        if !line.is_empty() && line.len() + 1 + word.len() > PACKED_BYTES_MAX {
            end_line(&mut line, &mut text);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    end_line(&mut line, &mut text);
    text.push_str("];\n");
    text
}

fn end_line(line: &mut String, text: &mut String) {
    if !line.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    \"{line}\",");
        line.clear();
    }
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

/// The text of the table.
fn table(observed: &str) -> Result<String, String> {
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
    Ok(packed(
        "//! Flags of functions by name, sorted. Written by `cargo xtask callflags`.",
        "/// Names and the numbers of their flags.",
        "CALL_FLAGS",
        rows.iter().filter(|(name, _)| !is_of_a_family(name)).map(|(name, flags)| format!("{name}={flags}")),
    ))
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
    fn lines_are_as_full_as_they_may_be() {
        let words = |bytes: &[usize]| packed("", "", "T", bytes.iter().map(|bytes| "x".repeat(*bytes)));
        let lines = |bytes: &[usize]| words(bytes).lines().filter(|line| line.contains('x')).map(str::len).collect();
        let found: [Vec<usize>; 4] = [lines(&[]), lines(&[50, 62]), lines(&[50, 63, 1]), lines(&[200, 1])];
        assert_eq!(found, [vec![], vec![120], vec![57, 72], vec![207, 8]]);
    }

    #[test]
    fn the_table_in_the_crate_is_what_is_written() {
        assert_eq!(run(&["--check".to_owned()]), Ok(()));
        assert!(registered().len() > 3000);
    }
}
