//! `apitrace gltrim`: which calls stay, and why.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod gl;

use std::path::Path;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{ExplainForm, GltrimOptions, Plan, plan};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};
use gl::{Gl, V};

const TEXTURE: u64 = 0xde1;
const ARRAY: u64 = 0x8892;
const CLEAR_ALL: u64 = 0x4500;

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn set(text: &str) -> Option<CallSet> {
    Some(CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files here"))).unwrap())
}

fn planned(bytes: &[u8], options: &GltrimOptions) -> Plan {
    let mut sink = Collect::default();
    let made = plan(&mut reader(bytes), options, &mut sink).unwrap();
    assert!(sink.0.is_empty());
    made
}

/// The calls that stay when these frames are selected.
fn kept(gl: &Gl, frames: &str) -> Vec<u64> {
    let plan = planned(&gl.build.bytes, &GltrimOptions { frames: set(frames), ..GltrimOptions::default() });
    (0..gl.next).filter(|call| plan.keeps(*call)).collect()
}

/// A frame that leaves nothing behind, then one that clears and draws.
fn last_frame(gl: &mut Gl) {
    gl.swap();
    gl.numbers("glClear", &[CLEAR_ALL]);
    gl.numbers("glDrawArrays", &[4, 0, 3]);
    gl.swap();
}

#[test]
fn overwritten_settings_are_dropped_and_the_last_stays() {
    let mut gl = Gl::default();
    let first = gl.numbers("glBlendFunc", &[1, 2]);
    let on = gl.numbers("glEnable", &[0xbe2]);
    let other = gl.numbers("glEnable", &[0xb44]);
    let off = gl.numbers("glDisable", &[0xbe2]);
    let last = gl.numbers("glBlendFunc", &[3, 4]);
    let asked = gl.numbers("glGetError", &[]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    for (call, stays) in [(first, false), (on, false), (other, true), (off, true), (last, true), (asked, false)] {
        assert_eq!(kept.contains(&call), stays, "{call} in {kept:?}");
    }
}

#[test]
fn textures_are_switched_on_for_each_unit() {
    let mut gl = Gl::default();
    let zero = gl.numbers("glActiveTexture", &[0x84c0]);
    let off = gl.numbers("glDisable", &[TEXTURE]);
    let first = gl.numbers("glEnable", &[TEXTURE]);
    let one = gl.numbers("glActiveTexture", &[0x84c1]);
    let second = gl.numbers("glEnable", &[TEXTURE]);
    // This one does not belong to a texture unit.
    let depth = gl.numbers("glEnable", &[0xb71]);
    gl.numbers("glActiveTexture", &[0x84c0]);
    let no_depth = gl.numbers("glDisable", &[0xb71]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    assert!([zero, first, one, second, no_depth].iter().all(|call| kept.contains(call)), "{kept:?}");
    assert!([off, depth].iter().all(|call| !kept.contains(call)), "{kept:?}");
}

#[test]
fn one_frame_is_kept_before_those_wanted_and_ends_as_it_did() {
    let mut gl = Gl::default();
    gl.numbers("glClear", &[CLEAR_ALL]);
    let early = gl.swap();
    gl.numbers("glClear", &[CLEAR_ALL]);
    let before = gl.swap();
    let clear = gl.numbers("glClear", &[CLEAR_ALL]);
    let end = gl.swap();
    gl.swap();
    assert_eq!(kept(&gl, "2"), [before, clear, end]);
    // Frames that are not cleared show what those before them drew.
    let mut gl = Gl::default();
    let sized = gl.swap();
    let clear = gl.numbers("glClear", &[CLEAR_ALL]);
    let draw = gl.numbers("glDrawArrays", &[4, 0, 3]);
    gl.swap();
    let more = gl.numbers("glDrawArrays", &[4, 0, 3]);
    let end = gl.swap();
    assert_eq!(kept(&gl, "2"), [sized, clear, draw, more, end]);
    assert_eq!((early, kept(&gl, "9")), (1, vec![]));
}

/// Replayers size windows by viewports, and lose what was drawn before.
#[test]
fn viewports_stay_that_made_the_window_larger() {
    let mut gl = Gl::default();
    let fake = gl.numbers("glViewport", &[0, 0, 320, 240]);
    let box_of_all = gl.numbers("glScissor", &[0, 0, 320, 240]);
    let small = gl.numbers("glViewport", &[0, 0, 64, 64]);
    let high = gl.numbers("glViewport", &[0, 100, 64, 200]);
    let empty = gl.numbers("glViewport", &[0, 0, 9999, 0]);
    let last = gl.numbers("glViewport", &[10, 10, 64, 64]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    for (call, stays) in [(fake, true), (box_of_all, true), (small, false), (high, true), (empty, false), (last, true)]
    {
        assert_eq!(kept.contains(&call), stays, "{call} in {kept:?}");
    }
}

#[test]
fn viewports_of_framebuffers_do_not_size_the_window() {
    let mut gl = Gl::default();
    let bind = gl.numbers("glBindFramebuffer", &[0x8d40, 3]);
    let large = gl.numbers("glViewport", &[0, 0, 4096, 4096]);
    let back = gl.numbers("glBindFramebuffer", &[0x8d40, 0]);
    let own = gl.numbers("glViewport", &[0, 0, 320, 240]);
    let last = gl.numbers("glViewport", &[0, 0, 32, 24]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    for (call, stays) in [(bind, false), (large, false), (back, true), (own, true), (last, true)] {
        assert_eq!(kept.contains(&call), stays, "{call} in {kept:?}");
    }
}

/// The program's memory is read into a list when the list is compiled.
#[test]
fn arrays_stay_that_a_display_list_was_made_of() {
    let mut gl = Gl::default();
    let unused = gl.call("glVertexPointer", &[V::N(3), V::N(0x1406), V::N(0), V::B(36)]);
    let first = gl.numbers("glPixelStorei", &[0xcf5, 1]);
    let make = gl.numbers("glNewList", &[1, 0x1300]);
    let on = gl.numbers("glEnableClientState", &[0x8074]);
    let array = gl.call("glVertexPointer", &[V::N(3), V::N(0x1406), V::N(0), V::B(36)]);
    let draw = gl.numbers("glDrawArrays", &[4, 0, 3]);
    let end = gl.numbers("glEndList", &[]);
    let off = gl.numbers("glDisableClientState", &[0x8074]);
    let later = gl.call("glVertexPointer", &[V::N(3), V::N(0x1406), V::N(0), V::B(72)]);
    let second = gl.numbers("glPixelStorei", &[0xcf5, 4]);
    gl.swap();
    gl.numbers("glClear", &[CLEAR_ALL]);
    gl.numbers("glCallList", &[1]);
    gl.swap();
    let kept = kept(&gl, "1");
    for call in [first, make, on, array, draw, end, off, later, second] {
        assert!(kept.contains(&call), "{call} in {kept:?}");
    }
    assert!(!kept.contains(&unused), "{kept:?}");
}

#[test]
fn images_stay_that_a_texture_still_has() {
    let mut gl = Gl::default();
    let make = gl.generate("Textures", &[5]);
    let bind = gl.numbers("glBindTexture", &[TEXTURE, 5]);
    let first = gl.image();
    let second = gl.image();
    let part = gl.part_of_image(2, 3);
    let entire = gl.part_of_image(0, 8);
    let again = gl.part_of_image(2, 3);
    let unused = gl.generate("Textures", &[6]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    assert!([make, bind, second, entire, again].iter().all(|call| kept.contains(call)), "{kept:?}");
    assert!([first, part, unused].iter().all(|call| !kept.contains(call)), "{kept:?}");
}

#[test]
fn names_that_are_used_again_are_other_objects() {
    let mut gl = Gl::default();
    let old = gl.numbers("glBindTexture", &[TEXTURE, 5]);
    gl.image();
    let gone = gl.call("glDeleteTextures", &[V::N(1), V::A(vec![5])]);
    let new = gl.numbers("glBindTexture", &[TEXTURE, 5]);
    let image = gl.image();
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    // No call made the name, so only the deletion shows that the texture is a new one.
    assert!([old, gone, new, image].iter().all(|call| kept.contains(call)), "{kept:?}");
    assert!(!kept.contains(&1), "{kept:?}");
}

#[test]
fn bytes_of_a_buffer_stay_until_they_are_overwritten() {
    let mut gl = Gl::default();
    gl.generate("Buffers", &[1]);
    gl.numbers("glBindBuffer", &[ARRAY, 1]);
    let part = |gl: &mut Gl, from: u64, length: u64| {
        gl.call("glBufferSubData", &[V::N(ARRAY), V::N(from), V::N(length), V::B(length as usize)])
    };
    let data = gl.call("glBufferData", &[V::N(ARRAY), V::N(100), V::B(100), V::N(1)]);
    let [first, second, third, fourth] =
        [(0, 50), (10, 10), (5, 20), (30, 20)].map(|(from, length)| part(&mut gl, from, length));
    gl.numbers("glVertexAttribPointer", &[0, 4, 0x1406, 0, 0, 0]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    assert!([data, first, third, fourth].iter().all(|call| kept.contains(call)), "{kept:?}");
    assert!(!kept.contains(&second), "{kept:?}");
}

#[test]
fn writes_to_mapped_memory_stay_with_their_mapping() {
    let mut gl = Gl::default();
    gl.generate("Buffers", &[1]);
    gl.numbers("glBindBuffer", &[ARRAY, 1]);
    gl.call("glBufferData", &[V::N(ARRAY), V::N(64), V::P(0), V::N(1)]);
    let mut mapped = Vec::new();
    for _ in 0..3 {
        let map = gl.returning("glMapBuffer", &[V::N(ARRAY), V::N(0x88b9)], Some(V::P(0x1000)));
        let copy = gl.call("memcpy", &[V::P(0x1000), V::B(64), V::N(64)]);
        mapped.push([map, copy, gl.numbers("glUnmapBuffer", &[ARRAY])]);
    }
    gl.numbers("glVertexAttribPointer", &[0, 4, 0x1406, 0, 0, 0]);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    assert!(mapped[2].iter().all(|call| kept.contains(call)), "{kept:?}");
    assert!(mapped[..2].iter().flatten().all(|call| !kept.contains(call)), "{kept:?}");
}

#[test]
fn fake_arrays_of_the_program_s_memory_stay_for_the_draw_that_needs_them() {
    let mut gl = Gl::default();
    let array = |gl: &mut Gl| gl.call("glVertexPointer", &[V::N(2), V::N(0x1406), V::N(0), V::B(24)]);
    let first = array(&mut gl);
    gl.numbers("glDrawArrays", &[4, 0, 3]);
    let second = array(&mut gl);
    last_frame(&mut gl);
    let kept = kept(&gl, "1");
    assert!(kept.contains(&second) && !kept.contains(&first), "{kept:?}");
}

#[test]
fn frames_for_preparation_stay_without_their_ends() {
    let mut gl = Gl::default();
    let mut rows = Vec::new();
    for _ in 0..4 {
        let clear = gl.numbers("glClear", &[CLEAR_ALL]);
        rows.push((clear, gl.numbers("glDrawArrays", &[4, 0, 3]), gl.swap()));
    }
    let options = GltrimOptions { frames: set("3"), setup: set("1"), ..GltrimOptions::default() };
    let plan = planned(&gl.build.bytes, &options);
    assert!(plan.keeps(rows[1].0) && plan.keeps(rows[1].1) && !plan.keeps(rows[1].2));
    assert!(!plan.keeps(rows[0].1) && plan.keeps(rows[3].2));
}

#[test]
fn unknown_functions_stay_and_are_reported() {
    let mut gl = Gl::default();
    let unknown = gl.numbers("glFooBarNV", &[1]);
    last_frame(&mut gl);
    let plan = planned(&gl.build.bytes, &GltrimOptions { frames: set("1"), ..GltrimOptions::default() });
    assert!(plan.keeps(unknown));
    assert_eq!(plan.unknown(), [("glFooBarNV".to_owned(), 1)]);
}

#[test]
fn frames_with_most_calls_are_counted() {
    let mut gl = Gl::default();
    for calls in [3, 7, 1, 7] {
        for _ in 0..calls {
            gl.numbers("glEnable", &[1]);
        }
        gl.swap();
    }
    let plan = planned(&gl.build.bytes, &GltrimOptions { top: 3, ..GltrimOptions::default() });
    assert_eq!((plan.top.as_slice(), plan.frames, plan.calls()), ([(1, 8), (3, 8), (0, 4)].as_slice(), 4, 0));
}

#[test]
fn reasons_name_the_thing_and_the_call_that_needs_it() {
    let mut gl = Gl::default();
    gl.generate("Textures", &[5]);
    gl.numbers("glBindTexture", &[TEXTURE, 5]);
    gl.image();
    last_frame(&mut gl);
    let options = GltrimOptions { frames: set("1"), explains: true, ..GltrimOptions::default() };
    let mut plan = planned(&gl.build.bytes, &options);
    let mut text = Vec::new();
    plan.explain(ExplainForm::Text, 0, &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "0 = call 0 glGenTextures: definition of texture 5, needed by call 1 glBindTexture\n\
         1 = call 1 glBindTexture: binding of a texture of context 0, needed by call 2 glTexImage2D\n\
         2 = call 2 glTexImage2D: level 0 of size and format of texture 5, needed by call 5 glDrawArrays\n\
         3 = call 3 glXSwapBuffers: ends the setup frame\n\
         4 = call 4 glClear: in a selected frame\n\
         5 = call 5 glDrawArrays: in a selected frame\n\
         6 = call 6 glXSwapBuffers: in a selected frame\n"
    );
    let mut json = Vec::new();
    plan.explain(ExplainForm::Json, 0, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        (&json["version"], &json["calls"][2]["by"], &json["calls"][3]["reason"]),
        (&1.into(), &5.into(), &"setup-end".into())
    );
}

#[test]
fn kept_calls_are_written_unchanged() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/replay/mixed.trace");
    let bytes = std::fs::read(path).unwrap();
    let options = GltrimOptions { frames: set("4"), ..GltrimOptions::default() };
    let plan = planned(&bytes, &options);
    let mut out = MemoryTarget::default();
    let outcome = plan.write(reader(&bytes), None, None, &mut out).unwrap();
    assert_eq!(outcome.records_written, 2 * plan.calls());
    // Trimming the part to its last frame again keeps all of it.
    let frames = planned(&out.0, &GltrimOptions { frames: set("0-"), ..GltrimOptions::default() }).frames;
    let again = planned(&out.0, &GltrimOptions { frames: set(&(frames - 1).to_string()), ..GltrimOptions::default() });
    assert_eq!(again.calls(), plan.calls());
}

#[test]
fn nothing_in_damaged_traces_ends_badly() {
    let Some(shared) = shared_corpus("apitrace") else { return };
    for entry in std::fs::read_dir(shared.join("broken")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "trace") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let options = GltrimOptions { frames: set("0-"), explains: true, ..GltrimOptions::default() };
        let mut sink = Collect::default();
        let plan = plan(&mut reader(&bytes), &options, &mut sink).unwrap();
        plan.write(reader(&bytes), None, None, &mut MemoryTarget::default()).unwrap();
    }
}

#[test]
fn cut_and_changed_bytes_end_well() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/threads.trace");
    let bytes = std::fs::read(path).unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        for sample in [&bytes[..at], &changed] {
            let options = GltrimOptions { frames: set("2-"), ..GltrimOptions::default() };
            let made = plan(&mut reader(sample), &options, &mut Collect::default()).unwrap();
            made.write(reader(sample), None, None, &mut MemoryTarget::default()).unwrap();
        }
    }
}

#[test]
fn a_list_that_sets_its_own_color_needs_none_from_before() {
    let mut gl = Gl::default();
    gl.returning("glGenLists", &[V::N(1)], Some(V::N(1)));
    gl.numbers("glNewList", &[1, 0x1300]);
    gl.numbers("glColor3f", &[1, 0, 0]);
    gl.numbers("glBegin", &[4]);
    gl.numbers("glVertex2f", &[0, 0]);
    gl.numbers("glEnd", &[]);
    gl.numbers("glEndList", &[]);
    let mut calls = Vec::new();
    for _ in 0..5 {
        gl.numbers("glClear", &[CLEAR_ALL]);
        calls.push(gl.numbers("glCallList", &[1]));
        gl.swap();
    }
    let kept = kept(&gl, "4");
    assert_eq!(calls.iter().filter(|call| kept.contains(call)).count(), 1, "{kept:?}");
    assert_eq!(kept.len(), 7 + 1 + 3, "{kept:?}");
}
