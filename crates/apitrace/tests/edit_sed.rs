//! `apitrace sed`: what is replaced, and that nothing else changes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod peer;
mod traces;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::tools::sed::{Replacement, SedOptions, sed};
use anytrace_apitrace::{Apitrace, Container, Reader};
use anytrace_core::testing::{dripping, examine, rewrite};
use anytrace_core::{Collect, Error, Input, Kind, Limits, MemoryTarget, OpenOptions, Outcome, Plan, TargetOptions};
use build::{Build, enum_known, enum_new, leb, string, text, uint};
use peer::Peer;

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn options(expressions: &[&str]) -> SedOptions {
    let mut read = |_: &str| Err(std::io::Error::other("no files here"));
    let replacements = expressions.iter().map(|one| Replacement::parse(one, &mut read).unwrap()).collect();
    SedOptions { replacements, ..SedOptions::default() }
}

fn edited(input: Input, options: &SedOptions, open: &OpenOptions) -> Result<(Vec<u8>, Outcome, Collect), Error> {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let outcome = sed(Reader::new(input, open)?, options, &mut out, &mut sink)?;
    Ok((out.0, outcome, sink))
}

/// The edited trace, which is the same whether the input arrives at once or in small pieces.
fn after(bytes: &[u8], expressions: &[&str]) -> Vec<u8> {
    let options = options(expressions);
    let (entire, ..) = edited(input(bytes), &options, &OpenOptions::default()).unwrap();
    let (dripped, ..) = edited(dripping("x.trace", bytes, 7), &options, &OpenOptions::default()).unwrap();
    assert_eq!(entire, dripped);
    entire
}

fn notes(bytes: &[u8], expressions: &[&str]) -> Vec<String> {
    edited(input(bytes), &options(expressions), &OpenOptions::default()).unwrap().1.notes
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let target =
        TargetOptions { own: anytrace_core::Settings::default().with("container", "raw"), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let how = DumpOptions { verbose: true, has_lines: false, ..DumpOptions::default() };
    let mut out = Vec::new();
    let mut reader = Reader::new(input(bytes), &OpenOptions::default()).unwrap();
    dump(&mut reader, &how, &mut out, None, &mut Collect::default()).unwrap();
    String::from_utf8_lossy(&out).lines().map(str::to_owned).collect()
}

const E: [(&str, u64); 4] = [("A", 1), ("B", 2), ("C", 1), ("D", 200)];

fn mask_new(value: u64) -> Vec<u8> {
    [&[10, 2, 4][..], &text("N"), &[0], &text("X"), &[1], &text("Y"), &[2], &text("XY"), &[3], &leb(value)].concat()
}

fn mask(value: u64) -> Vec<u8> {
    [vec![10, 2], leb(value)].concat()
}

fn pointer(value: u64) -> Vec<u8> {
    [vec![13], leb(value)].concat()
}

/// Calls with these first arguments: one of each kind in the event that defines it, and again in one that does not.
fn trace(enumeration: u64, flags: u64, word: &str, address: u64) -> Build {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a", "b", "c", "d"]).argument(0, &enum_new(1, &E, enumeration));
    b.argument(1, &mask_new(flags)).argument(2, &string(word)).argument(3, &pointer(address)).end();
    b.leave(0).add(&[2]).add(&enum_known(1, enumeration)).end();
    for call in 1..3 {
        b.enter(0, 1).argument(0, &enum_known(1, enumeration)).argument(1, &mask(flags)).argument(2, &string(word));
        b.argument(3, &[vec![11, 2], pointer(address), string(word)].concat()).add(&[5, 1]).end();
        b.leave(call).argument(1, &mask(flags)).add(&[2]).add(&string(word)).end();
    }
    b
}

#[test]
fn values_are_replaced_as_apitrace_replaces_them_and_nothing_else_is() {
    // The results of apitrace 11.1, taken from its dumps.
    for (expressions, was, is) in [
        (vec!["s/A/B/"], (1, 0, "A", 5), (2, 0, "B", 5)),
        (vec!["s/A/D/"], (1, 0, "", 5), (200, 0, "", 5)),
        // The name that is shown counts; the replacement may be any.
        (vec!["s/C/B/"], (1, 0, "q", 5), (1, 0, "q", 5)),
        (vec!["s/B/C/"], (2, 0, "q", 5), (1, 0, "q", 5)),
        (vec!["s/A/none/"], (1, 0, "A", 5), (1, 0, "none", 5)),
        (vec!["s/A/5/"], (1, 0, "A", 5), (1, 0, "5", 5)),
        // One after another.
        (vec!["s/A/B/", "s/B/D/"], (1, 0, "A", 5), (200, 0, "D", 5)),
        (vec!["s/B/D/", "s/A/B/"], (1, 0, "B", 5), (2, 0, "D", 5)),
        // Flags: all their bits must be set.
        (vec!["s/X/Y/"], (1, 5, "q", 5), (1, 6, "q", 5)),
        (vec!["s/XY/X/"], (1, 7, "q", 5), (1, 5, "q", 5)),
        (vec!["s/XY/X/"], (1, 5, "q", 5), (1, 5, "q", 5)),
        (vec!["s/X/XY/"], (1, 1, "q", 5), (1, 3, "q", 5)),
        (vec!["s/N/X/"], (1, 0, "q", 5), (1, 0, "q", 5)),
        (vec!["s/X/N/"], (1, 1, "q", 5), (1, 0, "q", 5)),
        (vec!["s/X/16/"], (1, 3, "q", 5), (1, 18, "q", 5)),
        // Pointers, and strings that look like them.
        (vec!["s/0x5/0x20/"], (1, 0, "0x5", 5), (1, 0, "0x20", 32)),
        (vec!["s/0x05/20/"], (1, 0, "q", 5), (1, 0, "q", 32)),
        (vec!["s/5/0x20/"], (1, 0, "q", 5), (1, 0, "q", 5)),
        // What follows a NUL is not shown, and not compared unless the search contains one.
        (vec!["s/q/r/"], (1, 0, "q\0hidden", 5), (1, 0, "r", 5)),
        (vec!["s/q\0h/r/"], (1, 0, "q\0h", 5), (1, 0, "r", 5)),
        (vec!["s/q\0h/r/"], (1, 0, "q\0hidden", 5), (1, 0, "q\0hidden", 5)),
        // Here apitrace aborts; we apply the replacement.
        (vec!["s/X//"], (1, 3, "X", 5), (1, 2, "", 5)),
        (vec!["s/X/none/"], (1, 3, "X", 5), (1, 3, "none", 5)),
        (vec!["s/X/Y | 0x40/"], (1, 1, "q", 5), (1, 66, "q", 5)),
        (vec!["s/0x0/0x1/"], (1, 0, "q", 0), (1, 0, "q", 1)),
    ] {
        let source = trace(was.0, was.1, was.2, was.3).bytes;
        let expected = trace(is.0, is.1, is.2, is.3).bytes;
        assert_eq!(after(&source, &expressions), expected, "{expressions:?} on {was:?}");
    }
}

#[test]
fn numbers_that_are_longer_than_needed_stay_where_nothing_is_replaced() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a"]).add(&[1, 0x80, 0]).label("text").add(&string("old")).end();
    b.leave(0).add(&[1, 0, 7, 0x83, 0x80, 0]).add(b"odd").add(&[2, 4, 0x81, 0]).end();
    let at = usize::try_from(b.at("text")).unwrap();
    let mut expected = b.bytes.clone();
    expected.splice(at..at + 5, string("replaced"));
    assert_eq!(after(&b.bytes, &["s/old/replaced/"]), expected);
    // A string whose length is encoded overlong is found too.
    let entire = after(&b.bytes, &["s/odd/even/"]);
    assert!(entire.ends_with(&[&[1, 0, 1, 0][..], &string("even"), &[2, 4, 0x81, 0, 0]].concat()));
}

#[test]
fn only_what_people_see_of_a_pair_is_replaced() {
    let pair = |human: &str| {
        let nested =
            |word: &str| [vec![14, 14], string(word), string("A"), vec![11, 2], string("A"), string("A")].concat();
        let mut b = Build::version(6);
        b.enter_new(0, 1, "glFirst", &["a", "b"]).argument(0, &nested(human)).argument(1, &string(human)).end();
        b.enter(0, 1).argument(0, &[vec![11, 2], nested(human), string(human)].concat()).end().leave(1).end();
        b.leave(0).end();
        b.bytes
    };
    assert_eq!(after(&pair("A"), &["s/A/B/"]), pair("B"));
}

#[test]
fn wide_strings_blobs_names_and_backtraces_stay() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "A", &["A"]).add(&[4, 1, 0, 2, 1, b'A', 0]).argument(0, &[15, 1, b'A']).end();
    b.leave(0).argument(0, &[8, 1, b'A']).add(&[2, 12, 0, 1, b'A', 1, 1, b'A', 4, 1]).end();
    assert_eq!(after(&b.bytes, &["s/A/B/"]), b.bytes);
    assert_eq!(notes(&b.bytes, &["s/A/B/"]), ["A was not found."]);
}

#[test]
fn strings_of_any_length_are_found() {
    let long = "x".repeat(200_000);
    let made = |word: &str| {
        let mut b = Build::version(6);
        b.enter_new(0, 1, "glFirst", &["a"]).argument(0, &string(word)).end();
        b.leave(0).argument(0, &[vec![11, 2], string(&format!("{}y", &long[1..])), string(word)].concat()).end();
        b.bytes
    };
    let search = format!("s/{long}/short/");
    let back = format!("s/short/{long}/");
    assert!(after(&made(&long), &[&search]) == made("short"));
    assert!(after(&made("short"), &[&back]) == made(&long));
    // With little memory for an event too; and where the data end inside the string.
    let open = OpenOptions { limits: Limits::default().with_record_bytes_max(250_000), ..OpenOptions::default() };
    assert!(edited(input(&made(&long)), &options(&[&search]), &open).unwrap().0 == made("short"));
    let (cut, _, sink) = edited(input(&made(&long)[..500_000]), &options(&[&search]), &open).unwrap();
    assert_eq!(sink.errors(), 1);
    assert!(examine(&Apitrace, &cut).errors().is_empty());
}

#[test]
fn before_version_3_the_value_of_another_enumeration_takes_the_place() {
    let old = |id: u64, name: &str, value: u64| [vec![9], leb(id), text(name), uint(value)].concat();
    let mut b = Build::version(2);
    let call = |b: &mut Build, value: &[u8]| {
        b.add(&[0, 1]);
        if b.bytes.len() < 6 {
            b.add(&text("f")).add(&leb(1)).add(&text("a"));
        }
        b.argument(0, value).end();
    };
    call(&mut b, &old(7, "A", 1));
    call(&mut b, &old(8, "B", 2));
    call(&mut b, &[9, 7]);
    let shown = |bytes: &[u8]| lines(bytes).join(" ");
    assert_eq!(shown(&b.bytes), "0 f(a = A) // incomplete 1 f(a = B) // incomplete 2 f(a = A) // incomplete");
    // A value that is not defined yet cannot be used.
    assert_eq!(shown(&after(&b.bytes, &["s/A/B/"])), shown(&b.bytes).replacen("2 f(a = A)", "2 f(a = B)", 1));
    assert_eq!(notes(&b.bytes, &["s/A/B/"]), ["A is unchanged where its enumeration or bit mask has no B."]);
    // The removed definition moves to the next call that needs it.
    let options = SedOptions { calls: CallSet::parse(["1"], &mut |_| unreachable!()).unwrap(), ..options(&["s/B/A/"]) };
    call(&mut b, &[9, 8]);
    let (out, ..) = edited(input(&b.bytes), &options, &OpenOptions::default()).unwrap();
    assert_eq!(shown(&out).replace(" // incomplete", ""), "0 f(a = A) 1 f(a = A) 2 f(a = A) 3 f(a = B)");
}

#[test]
fn sets_choose_the_calls() {
    let source = trace(1, 1, "A", 5).bytes;
    let chosen = |set: &str| {
        let calls = CallSet::parse([set], &mut |_| unreachable!()).unwrap();
        let options = SedOptions { calls, ..options(&["s/A/B/"]) };
        let (out, ..) = edited(input(&source), &options, &OpenOptions::default()).unwrap();
        lines(&out).iter().map(|line| line.matches('B').count()).collect::<Vec<_>>()
    };
    assert_eq!(chosen("*"), [3, 4, 4]);
    assert_eq!(chosen("1"), [0, 4, 0]);
    assert_eq!(chosen("0,2"), [3, 0, 4]);
    assert_eq!(chosen("draw"), [0, 0, 0]);
}

#[test]
fn properties_are_set_added_and_taken_away() {
    let header = |version: u8, semantic: u8, properties: &[(&str, &str)]| {
        let mut b = Build::default();
        b.add(&[version, semantic]);
        properties.iter().for_each(|(name, value)| {
            b.add(&text(name)).add(&text(value));
        });
        b.add(&[0]).enter_new(0, 1, "glFirst", &[]).end();
        b.bytes
    };
    let set = |bytes: &[u8], properties: &[(&str, Option<&str>)]| {
        let properties =
            properties.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.map(|v| v.as_bytes().to_vec())));
        let options = SedOptions { properties: properties.collect(), ..SedOptions::default() };
        edited(input(bytes), &options, &OpenOptions::default()).map(|(out, ..)| out)
    };
    let source = header(6, 5, &[("b", "1"), ("a", "2"), ("b", "3")]);
    assert_eq!(set(&source, &[("a", Some("x"))]).unwrap(), header(6, 5, &[("b", "1"), ("a", "x"), ("b", "3")]));
    assert_eq!(set(&source, &[("b", Some(""))]).unwrap(), header(6, 5, &[("b", "1"), ("a", "2"), ("b", "")]));
    assert_eq!(set(&source, &[("b", None), ("c", Some("4"))]).unwrap(), header(6, 5, &[("a", "2"), ("c", "4")]));
    assert_eq!(set(&source, &[("none", None)]).unwrap(), source);
    // Versions 4 and 5 become 6, which has the same events; earlier ones are an error with advice.
    let mut old = vec![5];
    old.extend(&header(6, 5, &[])[3..]);
    assert_eq!(set(&old, &[("a", Some("x"))]).unwrap(), header(6, 5, &[("a", "x")]));
    let error = set(&[2, 0, 1, 1, b'f', 0, 0], &[("a", Some("x"))]).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
}

#[test]
fn a_trace_without_anything_to_replace_is_the_same_trace() {
    for (name, bytes) in traces::undamaged() {
        let reader = Reader::new(input(&bytes), &OpenOptions::default()).unwrap();
        for expressions in [vec![], vec!["s/no such name/x/", "s/0x123456789abc/0x1/"]] {
            let (out, outcome, sink) = edited(input(&bytes), &options(&expressions), &OpenOptions::default()).unwrap();
            assert!(raw(&out) == raw(&bytes), "{name}");
            assert_eq!((sink.errors(), outcome.notes.len()), (0, expressions.len()), "{name}: {:?}", outcome.notes);
            let written = Reader::new(input(&out), &OpenOptions::default()).unwrap();
            assert_eq!(written.layout().container, reader.layout().container, "{name}");
        }
    }
}

#[test]
fn containers_can_be_chosen() {
    let source = trace(1, 1, "A", 5).bytes;
    for (container, _) in Container::ALL {
        let options = SedOptions { container: Some(container), ..options(&["s/A/B/"]) };
        let (out, ..) = edited(input(&source), &options, &OpenOptions::default()).unwrap();
        assert_eq!(raw(&out), trace(2, 1, "B", 5).bytes, "{container:?}");
    }
}

/// Words of the dump that sed may look for.
fn words(lines: &[String]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let Some((_, values)) = line.split_once('(') else { continue };
        let parts = values.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.extend(parts.filter(|part| part.starts_with("GL") || part.starts_with("0x")).map(str::to_owned));
        words.extend(values.split('"').skip(1).step_by(2).filter(|text| !text.contains('\\')).map(str::to_owned));
    }
    words.sort();
    words.dedup();
    words.retain(|word| !word.is_empty() && !word.contains('\u{1}') && word != "0x0" && word.is_ascii());
    words
}

/// The calls come out of apitrace's own sed with the same values.
#[test]
fn apitrace_replaces_the_same_values() {
    let Some(peer) = Peer::installed() else { return };
    let (mut compared, mut state) = (0, 1_u64);
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for name in ["allvals_v3", "allvals_v6", "interleave", "leak", "nested", "threads"] {
        let bytes = std::fs::read(traces::own(name)).unwrap();
        let words = words(&lines(&bytes));
        for _ in 0..12 {
            if words.len() < 2 {
                break;
            }
            let mut expressions = Vec::new();
            for _ in 0..=below(2) {
                let (from, mut to) = (&words[below(words.len())], words[below(words.len())].clone());
                if from.starts_with("0x") {
                    to = format!("0x{:x}", below(1 << 30));
                } else if to.starts_with("0x") {
                    // In a bit mask apitrace takes it for 0.
                    to = "16".to_owned();
                }
                expressions.push(format!("s\u{1}{from}\u{1}{to}\u{1}"));
            }
            let options: Vec<_> = expressions.iter().flat_map(|one| ["-e".to_owned(), one.clone()]).collect();
            // It aborts if a bit mask does not define the replacement.
            let Some(theirs) = peer.edited("sed", &options, &bytes) else { continue };
            let expressions: Vec<&str> = expressions.iter().map(String::as_str).collect();
            // It renumbers calls and turns null pointers into null values.
            let plain = |bytes: &[u8]| -> Vec<String> {
                let lines = lines(bytes).into_iter();
                let bare = lines.map(|line| line.replace(" // incomplete", "").replace("0x0", "NULL"));
                bare.map(|line| line.trim_start_matches(|first: char| first.is_ascii_digit()).to_owned()).collect()
            };
            let theirs = plain(&theirs);
            let ours = plain(&after(&bytes, &expressions));
            assert_eq!(ours, theirs, "{name}: {expressions:?}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn any_changed_byte_ends_well() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "threads"] {
        let bytes = raw(&std::fs::read(traces::own(name)).unwrap());
        for at in (0..bytes.len()).step_by((bytes.len() / 300).max(1)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let expressions = ["s/GL_FLOAT/GL_BYTE/", "s/hello/world/", "s/0x1/0x2/"];
            let out = after(&changed, &expressions);
            // The output can be read, with as many calls unless their signatures are lost.
            let is_complete = notes(&changed, &expressions).iter().all(|note| !note.contains("left out"));
            assert!(!is_complete || lines(&out).len() == lines(&changed).len(), "{name} {at}");
        }
    }
}
