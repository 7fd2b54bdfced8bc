//! What options say of a call: how far it goes, and what comes out.

use std::ffi::OsStr;

use super::{Line, Step};

impl Line {
    /// True for options that are ours to give.
    pub(super) fn leave_out(&mut self, option: &str) -> bool {
        let is_lto = option == "-flto" || option.starts_with("-flto=");
        self.has_lto |= is_lto;
        is_lto || option == "-fsanitize=thread" || option == "-fno-sanitize=thread"
    }

    /// Takes note of an option.
    pub(super) fn note(&mut self, option: &str) {
        match option {
            "-c" | "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" | "--precompile" | "-emit-pch" | "--compile"
            | "--assemble" | "--preprocess" => self.step = Step::Compile,
            "-shared" | "--shared" | "-dynamiclib" => self.is_shared = true,
            "-static" | "--static" | "-static-pie" => self.is_static = true,
            "-r" => self.is_relocatable = true,
            "-fuse-ld=gold" => self.is_gold = true,
            _ if option.starts_with("-Wl,") => self.note_linker(option),
            _ if option.starts_with("-g") && !option.starts_with("-gcc") => self.has_debug_option = true,
            _ => {}
        }
    }

    fn note_linker(&mut self, options: &str) {
        let holes = ["-z,defs", "--no-undefined", "-no-undefined"];
        self.has_no_holes |= holes.iter().any(|option| options.contains(option));
    }

    /// Takes note of an option with a value.
    pub(super) fn note_value(&mut self, option: &str, value: &OsStr) {
        match option {
            "-x" => self.has_language = true,
            "-z" => self.has_no_holes |= value == "defs",
            "-Xlinker" => self.has_no_holes |= value == "--no-undefined" || value == "defs",
            _ => {}
        }
    }
}
