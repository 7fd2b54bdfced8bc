//! Command lines taken apart.

use std::ffi::OsString;
use std::fs;

use super::response_files::words;
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
fn steps_are_chosen_by_their_options() {
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
    let options: Vec<_> = line.sources.iter().map(|source| source.options.clone()).collect();
    assert_eq!(options, [Vec::<OsString>::new(), vec!["-x".into(), "c++".into()]]);
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
