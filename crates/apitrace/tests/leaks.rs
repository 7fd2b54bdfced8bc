//! Objects that are made and never deleted: our results against the rules of OpenGL, and apitrace's own output.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::leaks::peer::{PeerEnd, peer_leaks};
use anytrace_apitrace::tools::leaks::{Json, LeakSummary, Text, find_leaks};
use anytrace_core::testing::{has_program, shared_corpus};
use anytrace_core::{Collect, Input, OpenOptions};
use script::{Script, V, names, out};

/// Kind, name, count, call, until.
type Row = (&'static str, u64, u64, u64, Option<u64>);

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn rows(bytes: &[u8]) -> (Vec<Row>, LeakSummary) {
    let mut rows = Vec::new();
    let mut damage = Collect::default();
    let found = find_leaks(
        &mut reader(bytes),
        &mut |leak| {
            rows.push((leak.kind.name(), leak.name, leak.count, leak.call, leak.until));
            Ok(())
        },
        &mut damage,
    );
    assert_eq!(damage.codes(), Vec::<&str>::new());
    (rows, found.unwrap())
}

fn text(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    let mut writer = Text::new(&mut text);
    let found = find_leaks(&mut reader(bytes), &mut |leak| writer.leak(leak), &mut Collect::default()).unwrap();
    writer.finish(&found).unwrap();
    String::from_utf8(text).unwrap()
}

fn peer(bytes: &[u8]) -> (String, PeerEnd) {
    let mut text = Vec::new();
    let end = peer_leaks(&mut reader(bytes), &mut text, &mut Collect::default()).unwrap();
    (String::from_utf8(text).unwrap(), end)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn shared_objects_go_with_the_last_context_and_others_with_their_own() {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.create(0, 11, 10);
    it.current(0, 10);
    it.current(1, 11);
    let textures = it.make(0, "glGenTextures", &[1, 2, 3]);
    let framebuffers = it.make(1, "glGenFramebuffers", &[1]);
    it.make(0, "glGenFramebuffers", &[1]);
    // A framebuffer of the other context has the same name and stays.
    it.delete(0, "glDeleteFramebuffers", &[1]);
    it.delete(1, "glDeleteTextures", &[2, 0, 99]);
    it.current(1, 0);
    let gone = it.destroy(0, 11);
    it.delete(0, "glDeleteTextures", &[1]);
    it.current(0, 0);
    let last = it.destroy(0, 10);
    let (found, totals) = rows(&it.bytes());
    assert_eq!(found, [("framebuffer", 1, 1, framebuffers, Some(gone)), ("texture", 3, 1, textures, Some(last))]);
    assert_eq!((totals.count(), totals.contexts.len()), (2, 3));
}

#[test]
fn a_context_destroyed_while_current_ends_what_it_has_there() {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.current(0, 10);
    let made = it.make(0, "glGenTextures", &[1, 2]);
    let queries = it.make(0, "glGenQueries", &[1]);
    let destroyed = it.destroy(0, 10);
    // It continues to exist for the thread on which it is current.
    it.delete(0, "glDeleteTextures", &[2]);
    let expected = [("texture", 1, 1, made, Some(destroyed)), ("query", 1, 1, queries, Some(destroyed))];
    assert_eq!(rows(&it.bytes()).0, expected);
}

#[test]
fn separate_groups_have_names_of_their_own() {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.create(0, 11, 0);
    it.current(0, 10);
    it.current(1, 11);
    let first = it.make(0, "glCreateBuffers", &[1]);
    it.make(1, "glCreateBuffers", &[1]);
    it.delete(1, "glDeleteBuffers", &[1]);
    assert_eq!(rows(&it.bytes()).0, [("buffer", 1, 1, first, None)]);
}

#[test]
fn every_kind_of_object_is_followed() {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.current(0, 10);
    let many = [
        ("glGenSamplers", "sampler"),
        ("glGenQueriesARB", "query"),
        ("glGenVertexArrays", "vertexarray"),
        ("glGenProgramPipelines", "pipeline"),
        ("glGenTransformFeedbacks", "transformfeedback"),
        ("glGenRenderbuffersEXT", "renderbuffer"),
        ("glGenProgramsARB", "assemblyprogram"),
        ("glGenSemaphoresEXT", "semaphore"),
    ];
    let mut expected: Vec<Row> = many.iter().map(|(make, kind)| (*kind, 5, 1, it.make(0, make, &[5]), None)).collect();
    let target = [("target", V::E(1)), ("n", V::U(2)), ("ids", out(names(&[7, 8])))];
    let queries = it.call(0, "glCreateQueries", &target, None);
    expected.extend([("query", 7, 1, queries, None), ("query", 8, 1, queries, None)]);
    expected.push(("shader", 1, 1, it.plain(0, "glCreateShader", &[1], Some(1)), None));
    expected.push(("program", 2, 1, it.plain(0, "glCreateShaderProgramv", &[1, 1], Some(2)), None));
    let sync = it.call(0, "glFenceSync", &[("condition", V::E(1)), ("flags", V::U(0))], Some(V::P(0xabc0)));
    expected.push(("sync", 0xabc0, 1, sync, None));
    expected.push(("list", 1, 10, it.plain(0, "glGenLists", &[10], Some(1)), None));
    assert_eq!(rows(&it.bytes()).0, expected);
    let printed = text(&it.bytes());
    assert!(
        printed.contains(": error: sync 0xabc0 was not destroyed until <EOF> (glFenceSync, context 0xa of call 0)")
    );
    assert!(printed.contains(": error: lists 1 to 10 were not destroyed until <EOF>"));
    it.call(0, "glDeleteSync", &[("sync", V::P(0xabc0))], None);
    it.plain(0, "glDeleteLists", &[3, 2], None);
    let lists: Vec<_> = rows(&it.bytes()).0.into_iter().filter(|row| ["list", "sync"].contains(&row.0)).collect();
    assert_eq!(lists.iter().map(|row| (row.1, row.2)).collect::<Vec<_>>(), [(1, 2), (5, 6)]);
}

#[test]
fn shaders_live_as_long_as_the_programs_that_hold_them() {
    let mut it = Script::new();
    for name in [1, 2, 3] {
        it.plain(0, "glCreateShader", &[1], Some(name));
    }
    let program = it.plain(0, "glCreateProgram", &[], Some(4));
    it.plain(0, "glCreateProgram", &[], Some(5));
    for (holder, attached) in [(4, 1), (4, 2), (5, 2), (5, 3)] {
        it.plain(0, "glAttachShader", &[holder, attached], None);
    }
    let deleted: Vec<u64> = [1, 2, 3].iter().map(|name| it.plain(0, "glDeleteShader", &[*name], None)).collect();
    it.plain(0, "glDeleteProgram", &[5], None);
    // Shader 3 disappeared with program 5; 1 and 2 belong to program 4, which is never deleted.
    assert_eq!(rows(&it.bytes()).0, [("program", 4, 1, program, None)]);
    let keeps = format!(
        "    keeps shader 1, deleted by call {}\n    keeps shader 2, deleted by call {}\n",
        deleted[0], deleted[1]
    );
    assert!(text(&it.bytes()).contains(&keeps));
    it.plain(0, "glDetachShader", &[4, 2], None);
    assert!(!text(&it.bytes()).contains("keeps shader 2"));
    it.plain(0, "glDeleteProgram", &[4], None);
    assert_eq!(text(&it.bytes()), "no leaks\n");
    // The name is free again.
    let again = it.plain(0, "glCreateShader", &[1], Some(1));
    assert_eq!(rows(&it.bytes()).0, [("shader", 1, 1, again, None)]);
}

#[test]
fn binding_a_new_name_makes_an_object_except_in_the_core_profile() {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.current(0, 10);
    let bound = it.plain(0, "glBindTexture", &[0x0de1, 77], None);
    it.plain(0, "glBindTexture", &[0x0de1, 77], None);
    it.plain(0, "glBindTexture", &[0x0de1, 0], None);
    let list = it.plain(0, "glNewList", &[5, 1], None);
    let attributes = [0x2091, 3, 0x2092, 3, 0x9126, 1, 0].map(V::U).to_vec();
    let arguments = [
        ("dpy", V::P(1)),
        ("config", V::P(2)),
        ("share_context", V::Null),
        ("direct", V::E(1)),
        ("attrib_list", V::A(attributes)),
    ];
    it.call(0, "glXCreateContextAttribsARB", &arguments, Some(V::P(20)));
    it.current(0, 20);
    it.plain(0, "glBindTexture", &[0x0de1, 78], None);
    assert_eq!(rows(&it.bytes()).0, [("texture", 77, 1, bound, None), ("list", 5, 1, list, None)]);
    assert!(text(&it.bytes()).contains("(glBindTexture, name not generated, context 0xa of call 0)"));
}

#[test]
fn a_leak_comes_with_the_stack_that_made_it() {
    let mut it = Script::new();
    it.from(&[3, 1]).make(0, "glGenTextures", &[1, 2]);
    it.from(&[]).make(0, "glGenTextures", &[3]);
    let expected = "0: error: texture 1 was not destroyed until <EOF> (glGenTextures)\n    prog: fn3\n    prog: fn1\n\
                    0: error: texture 2 was not destroyed until <EOF> (glGenTextures)\n    prog: fn3\n    prog: fn1\n\
                    1: error: texture 3 was not destroyed until <EOF> (glGenTextures)\n\
                    3 objects were not destroyed: texture 3\n";
    assert_eq!(text(&it.bytes()), expected);
    let mut json = Vec::new();
    let mut writer = Json::new(&mut json, "a \"b\".trace").unwrap();
    let found = find_leaks(&mut reader(&it.bytes()), &mut |leak| writer.leak(leak), &mut Collect::default()).unwrap();
    writer.finish(&found, 0).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["leaks"][1]["backtrace"][0]["function"], "fn3");
    assert_eq!((&value["count"], &value["by_kind"]["texture"]), (&3.into(), &3.into()));
}

/// A random program, and the objects that remain in each context according to a slow model.
fn random_program(seed: u64) -> (Script, Vec<Row>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut it = Script::new();
    // Contexts: handle, group, whether they exist. Threads: their context.
    let mut contexts: Vec<(u64, usize, bool)> = Vec::new();
    let mut threads: [Option<usize>; 3] = [None; 3];
    // From name space (kind, whether of the group, its number) and name to call and place.
    let mut alive: BTreeMap<(&str, bool, usize, u64), (u64, usize)> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut end =
        |alive: &mut BTreeMap<(&'static str, bool, usize, u64), (u64, usize)>, of: &[(bool, usize)], until| {
            let mut gone: Vec<_> =
                alive.iter().filter(|(key, _)| of.contains(&(key.1, key.2))).map(|(key, made)| (*made, *key)).collect();
            gone.sort_by_key(|(made, key)| (*made, key.3));
            for (made, key) in gone {
                alive.remove(&key);
                rows.push((key.0, key.3, 1, made.0, until));
            }
        };
    let kinds = [("texture", "Textures", true), ("query", "Queries", false), ("buffer", "Buffers", true)];
    for _ in 0..60 {
        let thread = random(3);
        match random(9) {
            0 => {
                let there: Vec<usize> = (0..contexts.len()).filter(|at| contexts[*at].2).collect();
                let share = if there.is_empty() || random(2) == 0 {
                    None
                } else {
                    Some(there[random(there.len() as u64) as usize])
                };
                let handle = 100 + contexts.len() as u64;
                it.create(thread, handle, share.map_or(0, |at| contexts[at].0));
                let group = share.map_or(contexts.len() + 1, |at| contexts[at].1);
                contexts.push((handle, group, true));
            }
            1 | 2 => {
                let there: Vec<usize> = (0..contexts.len()).filter(|at| contexts[*at].2).collect();
                let to = if there.is_empty() || random(4) == 0 {
                    None
                } else {
                    Some(there[random(there.len() as u64) as usize])
                };
                it.current(thread, to.map_or(0, |at| contexts[at].0));
                threads[thread as usize] = to;
            }
            3 => {
                // Only contexts that are current on no thread: they end at once.
                let idle = (0..contexts.len()).find(|at| contexts[*at].2 && !threads.contains(&Some(*at)));
                if let Some(at) = idle {
                    let call = it.destroy(thread, contexts[at].0);
                    contexts[at].2 = false;
                    let group = contexts[at].1;
                    let is_last = !contexts.iter().any(|one| one.1 == group && one.2);
                    let of = [(false, at + 1), if is_last { (true, group) } else { (false, at + 1) }];
                    end(&mut alive, &of, Some(call));
                }
            }
            choice => {
                let (kind, plural, is_shared) = kinds[random(3) as usize];
                let context = threads[thread as usize];
                let of =
                    if is_shared { context.map_or(0, |at| contexts[at].1) } else { context.map_or(0, |at| at + 1) };
                let made: Vec<u64> = (0..random(3) + 1).map(|_| random(12)).collect();
                if choice < 7 {
                    let call = it.make(thread, &format!("glGen{plural}"), &made);
                    for (place, name) in made.iter().enumerate().filter(|(_, name)| **name != 0) {
                        alive.insert((kind, is_shared, of, *name), (call, place));
                    }
                } else {
                    it.delete(thread, &format!("glDelete{plural}"), &made);
                    made.iter().for_each(|name| {
                        alive.remove(&(kind, is_shared, of, *name));
                    });
                }
            }
        }
    }
    let all: Vec<(bool, usize)> = alive.keys().map(|key| (key.1, key.2)).collect();
    end(&mut alive, &all, None);
    (it, rows)
}

#[test]
fn random_programs_leak_what_a_slow_book_says() {
    let mut count = 0;
    for seed in 1..400 {
        let (script, expected) = random_program(seed);
        let found = rows(&script.bytes()).0;
        count += found.len();
        assert_eq!(found, expected, "seed {seed}");
    }
    assert!(count > 1000);
}

#[test]
fn damage_loses_no_more_than_it_must_and_nothing_fails() {
    let bytes = random_program(7).0.bytes();
    for cut in 0..bytes.len() {
        let mut damage = Collect::default();
        find_leaks(&mut reader(&bytes[..cut]), &mut |_| Ok(()), &mut damage).unwrap();
        peer_leaks(&mut reader(&bytes[..cut]), &mut Vec::new(), &mut damage).unwrap();
        let mut flipped = bytes.clone();
        flipped[cut] ^= 0x55;
        find_leaks(&mut reader(&flipped), &mut |_| Ok(()), &mut damage).unwrap();
    }
}

#[test]
fn hostile_counts_take_no_memory() {
    let mut it = Script::new();
    it.plain(0, "glGenLists", &[u64::MAX], Some(u64::MAX - 3));
    it.plain(0, "glGenLists", &[1 << 40], Some(1));
    it.plain(0, "glDeleteLists", &[u64::MAX, u64::MAX], None);
    it.call(0, "glGenTextures", &[("n", V::I(-1)), ("textures", out(names(&[1])))], None);
    it.call(0, "glGenTextures", &[("n", V::U(1 << 60)), ("textures", out(names(&[9])))], None);
    let found = rows(&it.bytes());
    assert_eq!(found.0.last().map(|row| (row.0, row.1)), Some(("texture", 9)));
}

#[test]
fn the_samples_leak_what_apitrace_says_and_more() {
    let leak = std::fs::read(corpus("leak.trace")).unwrap();
    let expected = "8: error: buffer 3 was not destroyed until 18\n8: error: buffer 4 was not destroyed until 18\n\
                    9: error: texture 1 was not destroyed until 18\n9: error: texture 3 was not destroyed until 18\n";
    assert_eq!(peer(&leak).0, expected);
    let ours = text(&leak);
    assert!(expected.lines().all(|line| ours.contains(line)), "{ours}");
    assert!(ours.ends_with("7 objects were not destroyed: buffer 2, texture 2, framebuffer 1, renderbuffer 2\n"));
}

#[test]
fn apitrace_fails_where_contexts_are_not_made_or_arguments_missing() {
    let mut it = Script::new();
    it.make(0, "glGenTextures", &[1]);
    let call = it.destroy(0, 10);
    assert_eq!((peer(&it.bytes()).0, peer(&it.bytes()).1.failed), (String::new(), Some(call)));
    let mut it = Script::new();
    let call = it.call(0, "glGenTextures", &[("n", V::U(2)), ("textures", out(names(&[1])))], None);
    assert_eq!(peer(&it.bytes()).1.failed, Some(call));
}

/// Runs `apitrace leaks`.
fn live(trace: &Path) -> (String, bool) {
    let output = Command::new("apitrace").arg("leaks").arg(trace).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.success())
}

#[test]
fn apitrace_prints_the_same_of_random_programs() {
    if !has_program("apitrace") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for seed in 1000..1012 {
        let bytes = random_program(seed).0.bytes();
        let file = folder.path().join("x.trace");
        std::fs::write(&file, &bytes).unwrap();
        let (theirs, is_fine) = live(&file);
        let (ours, end) = peer(&bytes);
        assert_eq!(end.failed.is_none(), is_fine, "seed {seed}");
        // If it fails, it prints its own backtrace at the end.
        assert!(if is_fine { theirs == ours } else { theirs.starts_with(&ours) }, "seed {seed}:\n{theirs}\n{ours}");
    }
}

#[test]
fn every_trace_of_the_shared_corpus_leaks_what_apitrace_printed() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut count = 0;
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let Ok(expected) = std::fs::read_to_string(folder.join("leaks.txt")) else { continue };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(folder.join(format!("{name}.trace"))).unwrap();
        let (ours, end) = peer(&bytes);
        assert_eq!(format!("{ours}rc=0\n"), expected, "{name}");
        assert_eq!(end.failed, None);
        // Ours finds all of them.
        let all = text(&bytes);
        assert!(ours.lines().all(|line| all.contains(line)), "{name}: {all}");
        count += 1;
    }
    assert!(count > 20);
}
