//! The state of OpenGL at a call: against a driver's dump, and against a slow model of random programs.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::state::{StateAtCall, shader_files, state_at, write_json, write_text};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Input, OpenOptions};
use script::{Script, V, names, out};
use serde_json::{Value, json};

fn state(bytes: &[u8], call: Option<u64>) -> (StateAtCall, Collect) {
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut sink = Collect::default();
    (state_at(&mut reader, call, &mut sink).unwrap(), sink)
}

fn json_of(state: &StateAtCall) -> Value {
    let mut out = Vec::new();
    write_json(&mut out, "x", state, 0).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn json_at(bytes: &[u8], call: Option<u64>) -> Value {
    let (state, sink) = state(bytes, call);
    assert_eq!(sink.codes(), Vec::<&str>::new());
    json_of(&state)
}

fn text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_text(&mut out, &state(bytes, None).0).unwrap();
    String::from_utf8(out).unwrap()
}

/// The current context.
fn current(json: &Value) -> &Value {
    json["contexts"].as_array().unwrap().iter().find(|context| context["is_current"] == true).unwrap()
}

fn parameter(json: &Value, name: &str) -> Value {
    current(json)["parameters"][name]["value"].clone()
}

fn bound(json: &Value, target: &str, index: Option<u64>) -> Option<u64> {
    let bindings = current(json)["bindings"].as_array().unwrap();
    let found = bindings.iter().find(|one| one["target"] == target && one["index"] == json!(index))?;
    found["name"].as_u64()
}

fn object<'a>(json: &'a Value, kind: &str, name: u64) -> Option<&'a Value> {
    json["objects"].as_array().unwrap().iter().find(|one| one["kind"] == kind && one["name"] == name)
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// Compares names directly, and Booleans as such, so that 0 and `GL_FALSE` are equal.
fn is_alike(ours: &Value, theirs: &Value) -> bool {
    let number = |value: &Value| match value.as_str() {
        Some("GL_TRUE") => Some(1.0),
        Some("GL_FALSE" | "GL_ZERO") => Some(0.0),
        _ => value.as_f64(),
    };
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_alike(a, b)),
        _ => match (number(ours), number(theirs)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(1.0),
            _ => ours == theirs,
        },
    }
}

/// Compares the state that both contain with a driver's dump; returns how many values that is.
fn assert_agrees(ours: &Value, theirs: &Value) -> usize {
    let mut compared = 0;
    for (name, setting) in current(ours)["parameters"].as_object().unwrap() {
        let Some(theirs) = theirs["parameters"].get(name) else { continue };
        assert!(is_alike(&setting["value"], theirs), "{name}: {} and {theirs}", setting["value"]);
        compared += 1;
    }
    for (target, name) in [
        ("GL_ARRAY_BUFFER", "GL_ARRAY_BUFFER_BINDING"),
        ("GL_UNIFORM_BUFFER", "GL_UNIFORM_BUFFER_BINDING"),
        ("GL_VERTEX_ARRAY", "GL_VERTEX_ARRAY_BINDING"),
        ("GL_CURRENT_PROGRAM", "GL_CURRENT_PROGRAM"),
        ("GL_DRAW_FRAMEBUFFER", "GL_DRAW_FRAMEBUFFER_BINDING"),
        ("GL_READ_FRAMEBUFFER", "GL_READ_FRAMEBUFFER_BINDING"),
        ("GL_RENDERBUFFER", "GL_RENDERBUFFER_BINDING"),
    ] {
        if let Some(bound) = bound(ours, target, None) {
            assert_eq!(json!(bound), theirs["parameters"][name], "{name}");
            compared += 1;
        }
    }
    let program = object(ours, "program", theirs["parameters"]["GL_CURRENT_PROGRAM"].as_u64().unwrap()).unwrap();
    for linked in program["program"]["linked"].as_array().unwrap() {
        assert_eq!(linked["source"]["text"], theirs["shaders"][linked["type"].as_str().unwrap()]);
        compared += 1;
    }
    for uniform in program["program"]["uniforms"].as_array().unwrap() {
        // Matrices come as rows there, by columns here.
        let theirs = theirs["uniforms"][uniform["name"].as_str().unwrap()].as_array().unwrap();
        let theirs: Vec<Value> = theirs.iter().flat_map(|row| row.as_array().unwrap().clone()).collect();
        assert!(is_alike(&uniform["value"], &Value::from(theirs)), "{uniform}");
        compared += 1;
    }
    compared
}

#[test]
fn a_driver_that_replayed_the_calls_says_the_same() {
    let bytes = std::fs::read(corpus("peer/fbo.trace")).unwrap();
    let theirs: Value = serde_json::from_slice(&std::fs::read(corpus("peer/fbo.parameters-81.json")).unwrap()).unwrap();
    let ours = json_at(&bytes, Some(81));
    assert!(assert_agrees(&ours, &theirs) > 55);
    let framebuffer = object(&ours, "framebuffer", 1).unwrap();
    assert_eq!(framebuffer["properties"]["GL_READ_BUFFER"]["value"], theirs["parameters"]["GL_READ_BUFFER"]);
    let level = &object(&ours, "texture", 1).unwrap()["levels"][0];
    assert_eq!(
        (&level["internalformat"], &level["width"], &level["call"]),
        (&json!("GL_RGBA8"), &json!(32), &json!(52))
    );
}

/// Strings in apitrace's dumps contain raw control characters, which is not valid JSON.
fn escaped(json: &str) -> String {
    let (mut out, mut is_inside, mut is_escape) = (String::new(), false, false);
    for letter in json.chars() {
        match letter {
            '"' if !is_escape => is_inside = !is_inside,
            _ if letter.is_control() && is_inside => {
                out.push_str(&format!("\\u{:04x}", letter as u32));
                continue;
            }
            _ => {}
        }
        is_escape = letter == '\\' && !is_escape;
        out.push(letter);
    }
    out
}

#[test]
fn the_dumps_of_the_shared_corpus_agree() {
    let Some(root) = shared_corpus("apitrace") else { return };
    for (trace, call) in [("fbo", 81), ("vbo", 53)] {
        let bytes = std::fs::read(root.join(format!("tools/{trace}.trace"))).unwrap();
        let dump = std::fs::read(root.join(format!("tools/{trace}.state-{call}.json"))).unwrap();
        let dump = escaped(&String::from_utf8_lossy(&dump));
        let theirs: Value = serde_json::from_str(&dump).unwrap();
        assert!(assert_agrees(&json_at(&bytes, Some(call)), &theirs) > 50);
    }
}

const ARRAY: V = V::N("GL_ARRAY_BUFFER", 0x8892);
const TEX2D: V = V::N("GL_TEXTURE_2D", 0x0de1);

fn unit(number: u64) -> V {
    [V::N("GL_TEXTURE0", 0x84c0), V::N("GL_TEXTURE1", 0x84c1), V::N("GL_TEXTURE2", 0x84c2)][number as usize].clone()
}

fn begin() -> Script {
    let mut it = Script::new();
    it.create(0, 10, 0);
    it.current(0, 10);
    it
}

#[test]
fn textures_are_bound_by_unit_and_have_their_levels() {
    let mut it = begin();
    it.make(0, "glGenTextures", &[1, 2]);
    it.call(0, "glActiveTexture", &[("texture", unit(1))], None);
    it.call(0, "glBindTexture", &[("target", TEX2D), ("texture", V::U(1))], None);
    let image = |level, data: V| {
        [
            ("target", TEX2D),
            ("level", V::U(level)),
            ("internalformat", V::N("GL_RGBA8", 0x8058)),
            ("width", V::U(4)),
            ("height", V::U(2)),
            ("border", V::U(0)),
            ("format", V::N("GL_RGBA", 0x1908)),
            ("type", V::N("GL_UNSIGNED_BYTE", 0x1401)),
            ("pixels", data),
        ]
    };
    let call = it.call(0, "glTexImage2D", &image(0, V::Blob(32)), None);
    it.call(0, "glTexImage2D", &image(1, V::Null), None);
    let numbers = ["level", "xoffset", "yoffset", "width", "height"].map(|name| (name, V::U(1)));
    let part = [
        vec![("target", TEX2D)],
        numbers.to_vec(),
        vec![("format", V::E(1)), ("type", V::E(2)), ("pixels", V::Blob(4))],
    ];
    let changed = it.call(0, "glTexSubImage2D", &part.concat(), None);
    let parameters =
        [("target", TEX2D), ("pname", V::N("GL_TEXTURE_WRAP_S", 0x2802)), ("param", V::N("GL_REPEAT", 0x2901))];
    it.call(0, "glTexParameteri", &parameters, None);
    let enabled = it.call(0, "glEnable", &[("cap", TEX2D)], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!((bound(&json, "GL_TEXTURE_2D", Some(1)), bound(&json, "GL_TEXTURE_2D", Some(0))), (Some(1), None));
    let texture = object(&json, "texture", 1).unwrap();
    assert_eq!(texture["properties"]["GL_TEXTURE_WRAP_S"]["value"], "GL_REPEAT");
    let level = |at: usize, name: &str| texture["levels"][at][name].clone();
    assert_eq!((level(0, "call"), level(0, "given_bytes"), level(0, "width")), (json!(call), json!(32), json!(4)));
    assert_eq!((level(1, "changed"), level(1, "given_bytes")), (json!(changed), json!(4)));
    let setting = &current(&json)["parameters"]["GL_TEXTURE_2D[1]"];
    assert_eq!(setting, &json!({ "value": "GL_TRUE", "call": enabled }));
    // Nothing of it before the call.
    let before = json_at(&it.bytes(), Some(call - 1));
    assert_eq!(object(&before, "texture", 1).unwrap()["levels"], json!([]));
    it.delete(0, "glDeleteTextures", &[1]);
    let json = json_at(&it.bytes(), None);
    assert_eq!((bound(&json, "GL_TEXTURE_2D", Some(1)), object(&json, "texture", 1)), (Some(0), None));
}

#[test]
fn immutable_storage_has_all_its_levels() {
    let mut it = begin();
    let target = V::N("GL_TEXTURE_2D_ARRAY", 0x8c1a);
    it.call(0, "glCreateTextures", &[("target", target), ("n", V::U(1)), ("textures", out(names(&[3])))], None);
    let sizes = [
        ("texture", V::U(3)),
        ("levels", V::U(3)),
        ("internalformat", V::E(1)),
        ("width", V::U(8)),
        ("height", V::U(2)),
        ("depth", V::U(5)),
    ];
    it.call(0, "glTextureStorage3D", &sizes, None);
    let json = json_at(&it.bytes(), None);
    let levels = object(&json, "texture", 3).unwrap()["levels"].as_array().unwrap().clone();
    let sizes: Vec<_> =
        levels.iter().map(|level| ["width", "height", "depth"].map(|name| level[name].as_u64().unwrap())).collect();
    assert_eq!(sizes, [[8, 2, 5], [4, 1, 5], [2, 1, 5]]);
}

#[test]
fn vertex_arrays_keep_their_buffers() {
    let mut it = begin();
    it.make(0, "glGenVertexArrays", &[1]);
    it.make(0, "glGenBuffers", &[5, 6]);
    it.call(0, "glBindVertexArray", &[("array", V::U(1))], None);
    it.call(0, "glBindBuffer", &[("target", ARRAY), ("buffer", V::U(5))], None);
    it.call(0, "glBindBuffer", &[("target", V::N("GL_ELEMENT_ARRAY_BUFFER", 0x8893)), ("buffer", V::U(6))], None);
    let size = [
        ("target", V::N("GL_ELEMENT_ARRAY_BUFFER", 0x8893)),
        ("size", V::U(77)),
        ("data", V::Blob(77)),
        ("usage", V::E(1)),
    ];
    it.call(0, "glBufferData", &size, None);
    let pointer = [
        ("index", V::U(2)),
        ("size", V::U(3)),
        ("type", V::E(1)),
        ("normalized", V::E(0)),
        ("stride", V::U(12)),
        ("pointer", V::P(4)),
    ];
    it.call(0, "glVertexAttribPointer", &pointer, None);
    it.call(0, "glEnableVertexAttribArray", &[("index", V::U(2))], None);
    it.call(0, "glBindBuffer", &[("target", ARRAY), ("buffer", V::U(0))], None);
    it.call(0, "glBindVertexArray", &[("array", V::U(0))], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!(object(&json, "buffer", 6).unwrap()["properties"]["size"]["value"], 77);
    let array = &object(&json, "vertexarray", 1).unwrap()["vertex_array"];
    let attribute = &array["attributes"][0];
    let values = ["attribute", "buffer", "size", "stride", "pointer"].map(|name| attribute[name].clone());
    assert_eq!(values, [json!(2), json!(5), json!(3), json!(12), json!("0x4")]);
    assert_eq!((&attribute["enabled"]["value"], &array["elements"]["value"]), (&json!("GL_TRUE"), &json!(6)));
    assert_eq!(current(&json)["vertex_array"]["elements"], Value::Null);
}

fn program(it: &mut Script) {
    it.plain(0, "glCreateProgram", &[], Some(1));
    it.call(0, "glCreateShader", &[("type", V::N("GL_VERTEX_SHADER", 0x8b31))], Some(V::U(2)));
    let source = |shader, text: &str| {
        let texts = V::A(vec![V::S(text.to_owned()), V::S("}".to_owned())]);
        [("shader", V::U(shader)), ("count", V::U(2)), ("string", texts), ("length", V::Null)]
    };
    it.call(0, "glShaderSource", &source(2, "void main(){"), None);
    it.plain(0, "glAttachShader", &[1, 2], None);
    it.plain(0, "glLinkProgram", &[1], None);
    it.plain(0, "glDeleteShader", &[2], None);
    // A new source does not change the linked program.
    it.call(0, "glShaderSource", &source(2, "other"), None);
}

#[test]
fn programs_run_the_sources_they_were_linked_with() {
    let mut it = begin();
    program(&mut it);
    it.plain(0, "glUseProgram", &[1], None);
    it.call(0, "glGetUniformLocation", &[("program", V::U(1)), ("name", V::S("tint".to_owned()))], Some(V::I(3)));
    let floats = V::A([0.1, 0.2].map(V::F).to_vec());
    it.call(0, "glUniform2fv", &[("location", V::I(3)), ("count", V::U(1)), ("value", floats)], None);
    it.call(0, "glUniform1i", &[("location", V::I(4)), ("v0", V::I(-7))], None);
    it.call(0, "glUniform1i", &[("location", V::I(-1)), ("v0", V::I(9))], None);
    let (state, _) = state(&it.bytes(), None);
    let json = json_of(&state);
    let uniforms = &object(&json, "program", 1).unwrap()["program"]["uniforms"];
    assert_eq!((&uniforms[0]["name"], &uniforms[0]["value"]), (&json!("tint"), &json!([0.1, 0.2])));
    assert_eq!((&uniforms[1]["location"], &uniforms[1]["value"], &uniforms[2]), (&json!(4), &json!(-7), &Value::Null));
    let files: Vec<_> =
        shader_files(&state).into_iter().map(|file| (file.name, String::from_utf8(file.source).unwrap())).collect();
    let expected = [("program1-shader2.vert", "void main(){}"), ("shader2.vert", "other}")];
    assert_eq!(files, expected.map(|(name, source)| (name.to_owned(), source.to_owned())));
}

#[test]
fn deleted_programs_live_while_they_are_used() {
    let mut it = begin();
    program(&mut it);
    it.plain(0, "glUseProgram", &[1], None);
    let deleted = it.plain(0, "glDeleteProgram", &[1], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!(object(&json, "program", 1).unwrap()["deleted"], deleted);
    it.plain(0, "glUseProgram", &[0], None);
    let json = json_at(&it.bytes(), None);
    // The shader that was deleted while attached disappears with it.
    assert_eq!((object(&json, "program", 1), object(&json, "shader", 2)), (None, None));
}

#[test]
fn attributes_are_given_back() {
    let mut it = begin();
    let blend = [("cap", V::N("GL_BLEND", 0x0be2))];
    let viewport = |it: &mut Script, width| {
        let sizes = [("x", V::U(0)), ("y", V::U(0)), ("width", V::U(width)), ("height", V::U(9))];
        it.call(0, "glViewport", &sizes, None)
    };
    viewport(&mut it, 1);
    // Color buffer bits, which include blending but not the viewport.
    it.call(0, "glPushAttrib", &[("mask", V::M(0x4000))], None);
    viewport(&mut it, 2);
    it.call(0, "glEnable", &blend, None);
    assert_eq!(parameter(&json_at(&it.bytes(), None), "GL_BLEND"), "GL_TRUE");
    it.call(0, "glPopAttrib", &[], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!(
        (parameter(&json, "GL_BLEND"), parameter(&json, "GL_VIEWPORT")),
        (json!("GL_FALSE"), json!([0, 0, 2, 9]))
    );
}

#[test]
fn switches_are_given_back_by_their_group_and_by_that_of_all_switches() {
    let switches = [("GL_BLEND", 0x0be2), ("GL_LIGHT0", 0x4000), ("GL_DEPTH_CLAMP", 0x864f), ("GL_DEPTH_TEST", 0x0b71)];
    // All switches, the color buffer, lighting, transformation with the depth buffer.
    for (mask, given_back) in [(0x2000, "YYYY"), (0x4000, "YNNN"), (0x40, "NYNN"), (0x1100, "NNYY")] {
        let mut it = begin();
        for (name, number) in switches {
            it.call(0, "glDisable", &[("cap", V::N(name, number))], None);
        }
        it.call(0, "glPushAttrib", &[("mask", V::M(mask))], None);
        for (name, number) in switches {
            it.call(0, "glEnable", &[("cap", V::N(name, number))], None);
        }
        it.call(0, "glPopAttrib", &[], None);
        let json = json_at(&it.bytes(), None);
        let found: String =
            switches.iter().map(|(name, _)| if parameter(&json, name) == "GL_FALSE" { 'Y' } else { 'N' }).collect();
        assert_eq!(found, given_back, "{mask:#x}");
    }
}

#[test]
fn display_lists_act_when_they_are_called() {
    let mut it = begin();
    it.plain(0, "glGenLists", &[2], Some(1));
    let blend = [("cap", V::N("GL_BLEND", 0x0be2))];
    it.call(0, "glNewList", &[("list", V::U(1)), ("mode", V::N("GL_COMPILE", 0x1300))], None);
    it.call(0, "glEnable", &blend, None);
    it.call(0, "glTranslatef", &[("x", V::F(1.0)), ("y", V::F(2.0)), ("z", V::F(3.0))], None);
    // Executed at once, not when the list is called.
    it.make(0, "glGenTextures", &[4]);
    it.call(0, "glEndList", &[], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!((parameter(&json, "GL_BLEND"), object(&json, "texture", 4).is_some()), (json!("GL_FALSE"), true));
    it.call(0, "glNewList", &[("list", V::U(2)), ("mode", V::N("GL_COMPILE", 0x1300))], None);
    it.call(0, "glCallList", &[("list", V::U(1))], None);
    it.call(0, "glCallList", &[("list", V::U(2))], None);
    it.call(0, "glEndList", &[], None);
    let call = it.call(0, "glCallList", &[("list", V::U(2))], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!(current(&json)["parameters"]["GL_BLEND"], json!({ "value": "GL_TRUE", "call": call }));
    let matrix = &current(&json)["matrices"]["GL_MODELVIEW"]["value"];
    // The list calls itself up to the depth at which drivers stop.
    assert_eq!(matrix[12].as_f64().map(|x| x >= 1.0), Some(true));
    assert_eq!(current(&json)["unknown"], json!([format!("effects of display lists at call {call}")]));
    it.call(0, "glCallList", &[("list", V::U(99))], None);
    assert!(text(&it.bytes()).contains("unknown: effects of display list 99 at call "));
}

#[test]
fn each_thread_has_the_state_of_its_context() {
    let mut it = begin();
    it.create(1, 11, 10);
    it.current(1, 11);
    let front = [("mode", V::N("GL_FRONT", 0x404))];
    it.call(0, "glCullFace", &front, None);
    it.make(1, "glGenBuffers", &[3]);
    it.call(1, "glBindBuffer", &[("target", ARRAY), ("buffer", V::U(3))], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!((json["context"].as_u64(), parameter(&json, "GL_CULL_FACE_MODE")), (Some(2), json!("GL_BACK")));
    assert_eq!(bound(&json, "GL_ARRAY_BUFFER", None), Some(3));
    it.call(0, "glCullFace", &front, None);
    let json = json_at(&it.bytes(), None);
    assert_eq!((json["context"].as_u64(), parameter(&json, "GL_CULL_FACE_MODE")), (Some(1), json!("GL_FRONT")));
    // Both contexts share the buffer.
    assert_eq!(
        (bound(&json, "GL_ARRAY_BUFFER", None), object(&json, "buffer", 3).unwrap()["group"].as_u64()),
        (None, Some(1))
    );
}

#[test]
fn a_trace_that_begins_later_does_not_know_initial_values() {
    let mut it = Script::new();
    it.call(0, "glCullFace", &[("mode", V::N("GL_FRONT", 0x404))], None);
    let json = json_at(&it.bytes(), None);
    assert_eq!(current(&json)["parameters"], json!({ "GL_CULL_FACE_MODE": { "value": "GL_FRONT", "call": 0 } }));
    assert!(text(&it.bytes()).contains("state that no call set is unknown"));
}

#[test]
fn random_programs_have_the_state_a_slow_book_says() {
    for seed in 1..150_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut it = Script::new();
        it.create(0, 10, 0);
        it.create(0, 11, 10);
        it.current(0, 10);
        it.current(1, 11);
        // By thread: unit, textures by unit, parameters.
        let mut units = [0_u64; 2];
        let mut textures: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut parameters: BTreeMap<(u64, &str), Value> = BTreeMap::new();
        let caps = [V::N("GL_BLEND", 0x0be2), V::N("GL_DEPTH_TEST", 0x0b71)];
        let mut thread = 0;
        for _ in 0..60 {
            thread = next(2);
            match next(5) {
                0 => {
                    units[thread as usize] = next(3);
                    it.call(thread, "glActiveTexture", &[("texture", unit(units[thread as usize]))], None);
                }
                1 => {
                    let name = next(5);
                    it.call(thread, "glBindTexture", &[("target", TEX2D), ("texture", V::U(name))], None);
                    textures.insert((thread, units[thread as usize]), name);
                }
                2 => {
                    let (which, is_on) = (next(2) as usize, next(2) == 1);
                    let name = if is_on { "glEnable" } else { "glDisable" };
                    it.call(thread, name, &[("cap", caps[which].clone())], None);
                    let key = (thread, ["GL_BLEND", "GL_DEPTH_TEST"][which]);
                    parameters.insert(key, json!(if is_on { "GL_TRUE" } else { "GL_FALSE" }));
                }
                3 => {
                    let width = next(100);
                    it.call(thread, "glLineWidth", &[("width", V::F(width as f32 / 8.0))], None);
                    parameters.insert((thread, "GL_LINE_WIDTH"), json!(width as f64 / 8.0));
                }
                _ => {
                    let gone = next(5);
                    it.delete(thread, "glDeleteTextures", &[gone]);
                    // Bindings of the other context stay.
                    textures
                        .iter_mut()
                        .filter(|(key, name)| key.0 == thread && **name == gone)
                        .for_each(|(_, name)| *name = 0);
                }
            }
        }
        let json = json_at(&it.bytes(), None);
        for place in 0..3 {
            let expected = textures.get(&(thread, place)).copied();
            assert_eq!(bound(&json, "GL_TEXTURE_2D", Some(place)), expected, "seed {seed}");
        }
        for ((of, name), value) in &parameters {
            if *of == thread {
                assert_eq!(parameter(&json, name), *value, "seed {seed} {name}");
            }
        }
    }
}

#[test]
fn damage_and_hostile_numbers_do_no_harm() {
    let mut it = begin();
    program(&mut it);
    let huge = u64::MAX;
    it.plain(0, "glBindBuffersBase", &[1, huge, huge, huge], None);
    it.plain(0, "glBindSamplers", &[huge, huge, huge], None);
    it.plain(0, "glTexStorage2D", &[0xde1, huge, 1, huge, huge], None);
    it.plain(0, "glTextureStorage2D", &[1, huge, 1, huge, huge], None);
    it.plain(0, "glDeleteLists", &[huge, huge], None);
    it.plain(0, "glVertexAttribPointer", &[huge, 1, 1, 1, 1, 1], None);
    it.plain(0, "glStencilFuncSeparate", &[huge, huge], None);
    it.plain(0, "glPopAttrib", &[], None);
    it.plain(0, "glEndList", &[], None);
    it.plain(0, "glCallLists", &[huge, 0x1405, huge], None);
    let bytes = it.bytes();
    for cut in 0..bytes.len() {
        json_of(&state(&bytes[..cut], None).0);
        let mut flipped = bytes.clone();
        flipped[cut] ^= 0x31;
        let (state, _) = state(&flipped, Some(7));
        json_of(&state);
        write_text(&mut Vec::new(), &state).unwrap();
    }
}

#[test]
fn every_trace_of_the_corpus_has_a_state() {
    let mut count = 0;
    for folder in ["", "bad", "peer"] {
        for file in std::fs::read_dir(corpus(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "trace") {
                let (state, _) = state(&std::fs::read(&path).unwrap(), None);
                json_of(&state);
                count += 1;
            }
        }
    }
    assert!(count > 40);
}
