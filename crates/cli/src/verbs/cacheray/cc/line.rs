//! A compiler's command line, as far as it must be known to take it apart: what gcc and clang share.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How far the compiler is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is only asked something, or has nothing to do.
    Ask,
    /// Up to assembler or objects.
    Compile,
    /// Up to a program or library.
    Link,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: OsString,
    /// Where it stands among the arguments.
    pub(super) place: usize,
    /// The options to compile it with: all but output, other inputs and what is for the linker.
    pub(super) options: Vec<OsString>,
}

/// A command line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) step: Step,
    /// All of it, response files read in, `-fsanitize=thread` and options for link-time optimisation taken out.
    pub(super) arguments: Vec<OsString>,
    pub(super) sources: Vec<Source>,
    pub(super) is_shared: bool,
    pub(super) is_static: bool,
    pub(super) is_gold: bool,
    pub(super) has_debug_option: bool,
    pub(super) has_lto: bool,
    pub(super) has_language: bool,
    is_relocatable: bool,
    has_no_holes: bool,
}

/// Options whose value is the next argument.
const WITH_VALUE: [&str; 34] = [
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
const FOR_LINKER: [&str; 7] = ["-L", "-l", "-Xlinker", "-u", "-T", "-z", "-e"];

/// Endings of sources.
const SOURCES: [&str; 17] =
    ["c", "i", "ii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "s", "S", "sx", "m", "mi", "mm", "M"];

impl Line {
    /// Takes a command line apart.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, String> {
        let mut line = Self {
            step: Step::Link,
            arguments: Vec::new(),
            sources: Vec::new(),
            is_shared: false,
            is_static: false,
            is_gold: false,
            has_debug_option: false,
            has_lto: false,
            has_language: false,
            is_relocatable: false,
            has_no_holes: false,
        };
        let mut inputs = 0;
        // The language that `-x` has set, for the inputs behind it.
        let mut language: Option<OsString> = None;
        let mut common = Vec::new();
        let mut found = Vec::new();
        let mut rest = expand(arguments, 0)?.into_iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy().into_owned();
            if line.leave_out(&text) {
                continue;
            }
            let place = line.arguments.len();
            line.arguments.push(argument.clone());
            if WITH_VALUE.contains(&text.as_str()) {
                let value = rest.next().unwrap_or_default();
                line.note_value(&text, &value);
                line.arguments.push(value.clone());
                match text.as_str() {
                    "-x" => language = (value != "none").then_some(value),
                    "-o" => {}
                    "-l" => inputs += 1,
                    option if FOR_LINKER.contains(&option) => {}
                    _ => common.extend([argument, value]),
                }
            } else if text.starts_with('-') && text != "-" {
                line.note(&text);
                let joined = text.strip_prefix("-x").filter(|value| !value.is_empty());
                match joined {
                    Some(value) => {
                        line.has_language = true;
                        language = (value != "none").then(|| value.into());
                    }
                    None if text.starts_with("-o") || is_for_linker(&text) => {}
                    None => common.push(argument),
                }
            } else {
                inputs += 1;
                if language.is_some() || is_source(&argument) {
                    found.push((argument, place, language.clone()));
                }
            }
        }
        line.sources = sources(found, &common);
        if inputs == 0 {
            line.step = Step::Ask;
        }
        Ok(line)
    }

    /// True when the recorder is to be linked in.
    pub(super) fn needs_library(&self) -> bool {
        !self.is_relocatable && (!self.is_shared || self.has_no_holes)
    }

    /// True for options that are ours to give.
    fn leave_out(&mut self, option: &str) -> bool {
        let is_lto = option == "-flto" || option.starts_with("-flto=");
        self.has_lto |= is_lto;
        is_lto || option == "-fsanitize=thread" || option == "-fno-sanitize=thread"
    }

    /// Takes note of an option.
    fn note(&mut self, option: &str) {
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
    fn note_value(&mut self, option: &str, value: &OsStr) {
        match option {
            "-x" => self.has_language = true,
            "-z" => self.has_no_holes |= value == "defs",
            "-Xlinker" => self.has_no_holes |= value == "--no-undefined" || value == "defs",
            _ => {}
        }
    }
}

/// Gives each source the options that all share, and its language.
fn sources(found: Vec<(OsString, usize, Option<OsString>)>, common: &[OsString]) -> Vec<Source> {
    let with_options = |(name, place, language): (OsString, usize, Option<OsString>)| {
        let mut options = common.to_vec();
        if let Some(language) = language {
            options.extend(["-x".into(), language]);
        }
        Source { name, place, options }
    };
    found.into_iter().map(with_options).collect()
}

/// The same arguments without languages.
pub(super) fn without_language(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "-x" {
            rest.next();
        } else if !argument.as_bytes().starts_with(b"-x") {
            kept.push(argument.clone());
        }
    }
    kept
}

fn is_for_linker(option: &str) -> bool {
    let starts =
        ["-Wl,", "-l", "-L", "-fuse-ld", "-static-lib", "-rdynamic", "-shared", "-nostartfiles", "-nodefaultlibs"];
    starts.iter().any(|start| option.starts_with(start)) || matches!(option, "-pie" | "-no-pie" | "-s" | "-r")
}

fn is_source(name: &OsStr) -> bool {
    let ending = std::path::Path::new(name).extension();
    ending.is_some_and(|ending| SOURCES.iter().any(|source| ending == *source)) || name == "-"
}

/// Reads response files (`@FILE`) in, as the compilers do: words between white space, quotes and backslashes.
fn expand(arguments: &[OsString], depth: usize) -> Result<Vec<OsString>, String> {
    let mut all = Vec::new();
    for argument in arguments {
        let file = argument.as_bytes().strip_prefix(b"@").map(OsStr::from_bytes);
        match file.and_then(|file| fs::read(file).ok()) {
            Some(_) if depth >= 10 => return Err("response files lead to each other".to_owned()),
            Some(text) => all.extend(expand(&words(&text), depth + 1)?),
            // A name that begins with @ and is no file is just that.
            None => all.push(argument.clone()),
        }
    }
    Ok(all)
}

fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => word.get_or_insert_default().extend(bytes.next()),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(open), byte) if byte == open => quote = None,
            (None, byte) if byte.is_ascii_whitespace() => words.extend(word.take().map(OsString::from_vec)),
            (_, byte) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Line {
        let arguments: Vec<OsString> = text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
        Line::parse(&arguments).unwrap()
    }

    #[test]
    fn a_call_that_compiles_and_links_is_taken_apart() {
        let line = parse("-O2 -DX=1 a.c lib/b.cpp c.o -lm -L lib -Wl,-z,now -o app -MF app.d");
        assert_eq!(line.step, Step::Link);
        let names: Vec<_> = line.sources.iter().map(|source| (source.name.to_str().unwrap(), source.place)).collect();
        assert_eq!(names, [("a.c", 2), ("lib/b.cpp", 3)]);
        assert_eq!(line.sources[0].options, ["-O2", "-DX=1", "-MF", "app.d"]);
        assert!(line.needs_library());
    }

    #[test]
    fn steps_are_told_by_their_options() {
        assert_eq!(parse("-c a.c").step, Step::Compile);
        assert_eq!(parse("-E a.c").step, Step::Compile);
        assert_eq!(parse("--version").step, Step::Ask);
        assert_eq!(parse("-print-search-dirs -O2").step, Step::Ask);
        assert_eq!(parse("a.o -o app").step, Step::Link);
        assert_eq!(parse("-o app").step, Step::Ask);
    }

    #[test]
    fn shared_libraries_get_the_recorder_only_where_holes_are_forbidden() {
        assert!(!parse("-shared a.o -o liba.so").needs_library());
        assert!(parse("-shared -Wl,--no-undefined a.o -o liba.so").needs_library());
        assert!(parse("-shared -Wl,-z,defs a.o -o liba.so").needs_library());
        assert!(!parse("-r a.o -o b.o").needs_library());
    }

    #[test]
    fn ours_are_not_given_twice() {
        let line = parse("-fsanitize=thread -g3 -flto=auto a.c");
        assert!(line.has_debug_option && line.has_lto);
        assert_eq!(line.arguments, ["-g3", "a.c"]);
        assert!(!parse("-gcc-toolchain=x a.c").has_debug_option);
    }

    #[test]
    fn a_language_is_for_the_inputs_behind_it() {
        let line = parse("first.c -x c++ second.txt -x none third.o");
        let told: Vec<_> = line.sources.iter().map(|source| source.options.clone()).collect();
        assert_eq!(told, [Vec::<OsString>::new(), vec!["-x".into(), "c++".into()]]);
        assert_eq!(without_language(&line.arguments), ["first.c", "second.txt", "third.o"]);
    }

    #[test]
    fn response_files_are_words_between_white_space_quotes_and_backslashes() {
        assert_eq!(words(b"-O2 'a b.c'\n\"c\\\"d\" e\\ f ''"), ["-O2", "a b.c", "c\"d", "e f", ""]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("args");
        fs::write(&file, "-c a.c").unwrap();
        let mut at = OsString::from("@");
        at.push(&file);
        assert_eq!(Line::parse(&[at.clone()]).unwrap().step, Step::Compile);
        fs::write(&file, at.as_bytes()).unwrap();
        assert!(Line::parse(&[at]).is_err(), "it names itself");
    }
}
