//! `cargo xtask new-format`: a crate with a small working format, to be changed step by step into the real one, and
//! everything that makes it known to the rest of the project.

mod edit;
mod templates;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{output, root};

pub(crate) const USAGE: &str = "new-format NAME [--root DIR]
                               make the crate, tests, fuzz targets, benchmark row and chapter of a new format and
                               register it; nothing is overwritten (--root: the project's folder)";

/// The longest keyword that a registry accepts.
const NAME_BYTES_MAX: usize = 20;

/// Words that cannot be the name of a module, and names of forms that `convert --to` or `info` use already.
const RESERVED: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "any",
    "basic",
    "callgrind",
    "csv",
    "din",
    "fdr",
    "firefox",
    "folded",
    "jsonl",
    "otlp",
    "speedscope",
    "std",
    "svg",
    "test",
    "unknown",
    "xdin",
    "yaml",
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (name, root) = options(arguments)?;
    check_name(&name)?;
    let files = new_files(&name);
    for (path, _) in &files {
        if fs::symlink_metadata(root.join(path)).is_ok() {
            return Err(format!("{name} is taken: {path} exists"));
        }
    }
    if root.join("crates").join(&name).exists() {
        return Err(format!("{name} is taken: crates/{name} exists"));
    }
    // Everything is known to work before the first file is written.
    let changed = edit::registrations(&root, &name)?;
    for (path, bytes) in &files {
        write_new(&root.join(path), bytes)?;
        println!("made {path}");
    }
    link_licenses(&root, &name)?;
    for (path, text) in &changed {
        fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
        println!("changed {path}");
    }
    finish(&root, &name)
}

fn options(arguments: &[String]) -> Result<(String, PathBuf), String> {
    match arguments {
        [name] if !name.starts_with('-') => Ok((name.clone(), root())),
        [name, option, folder] if option == "--root" => Ok((name.clone(), PathBuf::from(folder))),
        _ => Err(format!("usage: cargo xtask {USAGE}")),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_word || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(format!("{name}: a name has lower-case ASCII letters and digits, a letter first"));
    }
    if !(2..=NAME_BYTES_MAX).contains(&name.len()) {
        return Err(format!("{name}: a name has 2 to {NAME_BYTES_MAX} characters"));
    }
    if RESERVED.contains(&name) {
        return Err(format!("{name} is reserved: it is a word of Rust or a form that traces are written in"));
    }
    Ok(())
}

/// The name of the format's type: the name with a capital.
fn type_name(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Puts the name where the templates have `newformat`, and the type where they have `NewFormat`.
fn named(bytes: &[u8], name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(byte) = rest.first() {
        if let Some(behind) = rest.strip_prefix(b"newformat") {
            out.extend_from_slice(name.as_bytes());
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(b"NewFormat") {
            out.extend_from_slice(type_name(name).as_bytes());
            rest = behind;
        } else {
            out.push(*byte);
            rest = &rest[1..];
        }
    }
    out
}

/// The files to make, with their paths from the project's root.
fn new_files(name: &str) -> Vec<(String, Vec<u8>)> {
    let fill = |(path, bytes): &(&str, &[u8])| {
        let path = String::from_utf8_lossy(&named(path.as_bytes(), name)).into_owned();
        (path, named(bytes, name))
    };
    templates::FILES.iter().map(fill).collect()
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = fs::File::create_new(path).map_err(failed)?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed)
}

/// Every package has the licenses' texts; here they are links, as in the other crates.
fn link_licenses(root: &Path, name: &str) -> Result<(), String> {
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let (link, text) = (root.join("crates").join(name).join(license), PathBuf::from("../..").join(license));
        #[cfg(unix)]
        let made = std::os::unix::fs::symlink(&text, &link);
        #[cfg(not(unix))]
        let made = fs::copy(root.join(license), &link).map(|_| drop(text));
        made.map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(())
}

/// Formats what was made (names differ in length, so lines do) and completes the lock file.
fn finish(root: &Path, name: &str) -> Result<(), String> {
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(root);
        command
    };
    let package = format!("anytrace-{name}");
    // Without `metadata`, which wants the packages of all platforms.
    output(cargo().args(["update", "--workspace", "--offline"]))?;
    output(cargo().args(["fmt", "--package", &package, "--package", "anytrace-formats", "--package", "xtask"]))?;
    println!(
        "\n`cargo test -p {package}` tests the new crate. Now change its format into the real one; CONTRIBUTING.md, \
         \"Adding a format\", lists what is left to do by hand."
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_words_that_nothing_else_uses() {
        for name in ["ftrace", "v8", "lttng2"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "x", "Ftrace", "2ftrace", "f-trace", "f_trace", "fträce", "../x", "match", "jsonl"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name(&"x".repeat(21)).is_err());
    }

    #[test]
    fn templates_take_the_name_and_the_type() {
        assert_eq!(named(b"newformat: NewFormat, new", "v8"), b"v8: V8, new");
        for (path, bytes) in new_files("ftrace") {
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            assert!(!path.contains("newformat") && !text.contains("newformat"), "{path}");
        }
    }
}
