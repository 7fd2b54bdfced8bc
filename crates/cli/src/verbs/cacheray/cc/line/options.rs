//! Which options have a value, which are for the linker, and which arguments are sources.

use std::ffi::OsStr;

/// Options whose value is the next argument.
pub(super) const WITH_VALUE: [&str; 34] = [
    "-o",
    "-x",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "--sysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-mllvm",
    "-arch",
    "-target",
    "--param",
    "-u",
    "-T",
    "-z",
    "-e",
    "-B",
    "-aux-info",
];

/// Of these, those that a compilation without linking does not need.
pub(super) const FOR_LINKER: [&str; 7] = ["-L", "-l", "-Xlinker", "-u", "-T", "-z", "-e"];

/// Endings of sources.
const SOURCES: [&str; 17] =
    ["c", "i", "ii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "s", "S", "sx", "m", "mi", "mm", "M"];

pub(super) fn is_for_linker(option: &str) -> bool {
    let starts =
        ["-Wl,", "-l", "-L", "-fuse-ld", "-static-lib", "-rdynamic", "-shared", "-nostartfiles", "-nodefaultlibs"];
    starts.iter().any(|start| option.starts_with(start)) || matches!(option, "-pie" | "-no-pie" | "-s" | "-r")
}

pub(super) fn is_source(name: &OsStr) -> bool {
    let ending = std::path::Path::new(name).extension();
    ending.is_some_and(|ending| SOURCES.iter().any(|source| ending == *source)) || name == "-"
}
