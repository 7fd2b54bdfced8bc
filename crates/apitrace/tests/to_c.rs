//! Programs written by `apitrace to-c`: their source, that it compiles whatever the trace, and what they draw.
//!
//! `cargo xtask test` installs what is needed; if it is missing the tests report that they are skipped.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod display;

use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::program::Wanted;
use anytrace_apitrace::tools::to_c::to_c;
use anytrace_core::testing::{has_program, shared_corpus, skip};
use anytrace_core::{Collect, Input, Limits, OpenOptions, Outcome};

use build::{Build, blob, enum_known, enum_new, leb, string, uint};
use display::{Display, frame_ends};

fn exported(bytes: &[u8], options: &Wanted) -> (tempfile::TempDir, Outcome, Collect) {
    let folder = tempfile::tempdir().unwrap();
    let mut damage = Collect::default();
    let mut reader = Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let outcome = to_c(&mut reader, options, folder.path(), &Limits::default(), &mut damage).unwrap();
    (folder, outcome, damage)
}

fn source(folder: &tempfile::TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_default()
}

/// True when all files compile.
fn compiles(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    Command::new("cc").args(["-std=gnu11", "-w", "-fsyntax-only"]).args(sources).status().unwrap().success()
}

fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [vec![11], leb(elements.len() as u64), elements.concat()].concat()
}

fn pointer(number: u64) -> Vec<u8> {
    [vec![13], leb(number)].concat()
}

fn float(number: f32) -> Vec<u8> {
    [vec![5], number.to_le_bytes().to_vec()].concat()
}

/// A sequence of calls, each with its definition at the first use.
struct Calls {
    build: Build,
    names: Vec<String>,
    next: u64,
}

impl Calls {
    fn new() -> Self {
        Self { build: Build::version(6), names: Vec::new(), next: 0 }
    }

    fn call(&mut self, name: &str, arguments: &[(&str, Vec<u8>)], returned: Option<Vec<u8>>) -> &mut Self {
        match self.names.iter().position(|known| known == name) {
            Some(id) => self.build.enter(0, id as u64),
            None => {
                self.names.push(name.to_owned());
                let labels: Vec<&str> = arguments.iter().map(|(label, _)| *label).collect();
                self.build.enter_new(0, self.names.len() as u64 - 1, name, &labels)
            }
        };
        for (index, (_, value)) in arguments.iter().enumerate() {
            self.build.argument(index as u64, value);
        }
        self.build.end().leave(self.next);
        if let Some(value) = returned {
            self.build.add(&[2]).add(&value);
        }
        self.build.end();
        self.next += 1;
        self
    }
}

/// A program that does a little of everything.
fn small() -> Calls {
    let mut calls = Calls::new();
    let names = [("GL_POINTS", 0), ("GL_ARRAY_BUFFER", 0x8892), ("GL_STATIC_DRAW", 0x88e4)];
    calls.call("glXMakeCurrent", &[("dpy", pointer(1)), ("drawable", uint(9)), ("ctx", pointer(5))], Some(uint(1)));
    let viewport = [("x", uint(0)), ("y", uint(0)), ("width", uint(40)), ("height", uint(30))];
    calls.call("glViewport", &viewport, None);
    calls.call("glGenBuffers", &[("n", uint(2)), ("buffers", array(&[uint(7), uint(9)]))], None);
    let target = enum_new(1, &names, 0x8892);
    calls.call("glBindBuffer", &[("target", target), ("buffer", uint(9))], None);
    let data = [("target", enum_known(1, 0x8892)), ("size", uint(4)), ("data", blob(b"abcd"))];
    calls.call("glBufferData", &[data.as_slice(), &[("usage", enum_known(1, 0x88e4))]].concat(), None);
    calls.call("glCreateShader", &[("type", uint(0x8b31))], Some(uint(3)));
    let text = array(&[string("void main() {\n\t// \"?\\\n}\n")]);
    let sources = [("shader", uint(3)), ("count", uint(1)), ("string", text), ("length", vec![0])];
    calls.call("glShaderSource", &sources, None);
    calls.call("glGetUniformLocation", &[("program", uint(4)), ("name", string("tint"))], Some(uint(2)));
    let tint = [("location", uint(2)), ("v0", float(0.1)), ("v1", float(f32::INFINITY))];
    calls.call("glUniform2f", &tint, None);
    calls.call("glMapBuffer", &[("target", uint(0x8892)), ("access", uint(0x88b9))], Some(pointer(0x7000)));
    calls.call("memcpy", &[("dest", pointer(0x7000)), ("src", blob(b"abcd")), ("n", uint(4))], None);
    calls.call("glUnmapBuffer", &[("target", uint(0x8892))], Some(uint(1)));
    calls.call("glGetError", &[], Some(uint(0)));
    calls.call("glFrobnicate", &[("x", uint(1))], None);
    calls.call("glXSwapBuffers", &[("dpy", pointer(1)), ("drawable", uint(9))], None);
    calls
}

const SMALL: &str = r#"#include "functions.h"

static void part_0(void)
{
    new_context(1, -1, API_GL, 0, 0, 0);
    make_current(1, 1);
    /* 1 */ glViewport(0, 0, 40, 30);
    /* 2 */ { GLuint names[2] = {0}; glGenBuffers(2, names); made_many(BUFFER, 2, (const GLuint[]){7u, 9u}, names); }
    /* 3 */ glBindBuffer(GL_ARRAY_BUFFER, object(BUFFER, 9));
    /* 4 */ glBufferData(GL_ARRAY_BUFFER, 4, blob(0), GL_STATIC_DRAW);
    /* 5 */ made(PROGRAM, 3u, glCreateShader(0x8b31));
    /* 6 */ { glShaderSource(object(PROGRAM, 3), 1, (const GLchar *const[]){"void main() {\n"
        "\t// \"\?\\\n"
        "}\n"}, 0); }
    /* 7 */ location_is(4u, 2, glGetUniformLocation(object(PROGRAM, 4), "tint"));
    /* 8 */ glUniform2f(location(2), 0.1f, float_of(0x7f800000));
    /* 9 */ mapped(0x7000, glMapBuffer(0x8892, 0x88b9), -1, 0x8892, 0);
    /* 10 */ copied(0x7000, blob(0), 4);
    /* 11 */ unmapped(0x8892, 0); glUnmapBuffer(0x8892);
    /* 13: glFrobnicate is left out: it is not in the Khronos registry */
    frame_end(14);
}

void calls_0(void)
{
    part_0();
}
"#;

#[test]
fn a_small_program_is_written_as_people_would() {
    let (folder, outcome, damage) = exported(&small().build.bytes, &Wanted::default());
    assert!(damage.0.is_empty());
    assert_eq!(source(&folder, "calls_0.c"), SMALL);
    let header = source(&folder, "functions.h");
    assert!(header.contains("#define GL_ARRAY_BUFFER 0x8892\n"), "{header}");
    assert!(header.contains("extern void (*glBindBuffer)(GLenum, GLuint);\n"));
    // The surface is as large as what is drawn to it; the data are stored once.
    assert!(source(&folder, "functions.c").contains("    {40, 30},\n"));
    assert_eq!(source(&folder, "data.bin"), "abcd");
    assert_eq!((outcome.records_read, outcome.notes.len()), (15, 1));
    assert!(!has_program("cc") || compiles(folder.path()));
}

#[test]
fn only_calls_asked_for_are_made_but_contexts_always() {
    let set = |text: &str| CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files"))).ok();
    let bytes = &small().build.bytes;
    let (folder, ..) = exported(bytes, &Wanted { calls: set("1,14"), ..Wanted::default() });
    let text = source(&folder, "calls_0.c");
    assert!(text.contains("make_current(1, 1)") && text.contains("glViewport") && text.contains("frame_end"));
    assert!(!text.contains("glGenBuffers"));
    let (folder, outcome, _) = exported(bytes, &Wanted { frames: set("7"), ..Wanted::default() });
    assert_eq!((source(&folder, "calls_0.c").contains("glViewport"), outcome.records_written), (false, 1));
}

#[test]
fn data_shorter_than_the_call_says_are_not_read() {
    let mut calls = Calls::new();
    let data = [("target", uint(1)), ("size", uint(5)), ("data", blob(b"abcd")), ("usage", uint(2))];
    calls.call("glBufferData", &data, None);
    let (_, outcome, _) = exported(&calls.build.bytes, &Wanted::default());
    assert_eq!(outcome.notes, ["glBufferData: 1 call left out: its data are shorter than declared"]);
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[usize::try_from(self.below(texts.len() as u64)).unwrap()]
    }

    fn value(&mut self, depth: u32) -> Vec<u8> {
        match self.below(if depth > 2 { 12 } else { 14 }) {
            0 => vec![0],
            1 => vec![2],
            2 => [vec![3], leb(1 << self.below(64))].concat(),
            3 => uint((1 << self.below(64)) - 1),
            4 => float(f32::from_bits(u32::try_from(self.below(1 << 31)).unwrap() << 1)),
            5 => [vec![6], f64::NAN.to_le_bytes().to_vec()].concat(),
            6 => string(self.of(&HOSTILE)),
            7 => blob(&vec![1; usize::try_from(self.below(40)).unwrap()]),
            8 => enum_known(5, self.below(8)),
            9 => [vec![10, 6], leb(self.below(16))].concat(),
            10 => pointer(1 << self.below(64)),
            11 => uint(self.below(5)),
            _ => {
                let elements: Vec<Vec<u8>> = (0..self.below(24)).map(|_| self.value(depth + 1)).collect();
                array(&elements)
            }
        }
    }
}

/// Strings and names that would do harm if they were copied into the source unchanged.
const HOSTILE: [&str; 8] = [
    "\"); system(\"echo pwned\"); (\"",
    "*/ #error pwned /*",
    "\n#error pwned\n",
    "a\\",
    "??/\"; pwned",
    "\r\n#include </etc/passwd>",
    "\0\u{7f}\u{ff}9",
    "GL_X 1\n#error pwned",
];

const FUNCTIONS: [&str; 32] = [
    "glShaderSource",
    "glObjectLabel",
    "glUniform4fv",
    "glUniform1i",
    "glGenTextures",
    "glDeleteTextures",
    "glTexImage2D",
    "glBindBuffer",
    "glBufferData",
    "glMultiDrawElements",
    "glDrawBuffers",
    "glReadPixels",
    "glMapBufferRange",
    "glUnmapBuffer",
    "glFenceSync",
    "glDeleteSync",
    "glGenLists",
    "glDeleteLists",
    "glProgramUniform3i64ARB",
    "glTransformFeedbackVaryings",
    "glGetUniformLocation",
    "glVertexPointer",
    "glCallLists",
    "glCreateProgram",
    "glClearDepth",
    "memcpy",
    "malloc",
    "realloc",
    "glXMakeCurrent",
    "glXCreateContext",
    "eglCreateContext",
    "wglShareLists",
];

fn random_calls(seed: u64) -> Calls {
    let mut random = Random(seed);
    let mut calls = Calls::new();
    // Definitions of an enumeration and a mask with names of all sorts.
    let mut names: Vec<(&str, u64)> = (0..).zip(HOSTILE).map(|(value, name)| (name, value)).collect();
    names.extend([("GL_DOUBLE", 3), ("GL_TWICE", 1), ("GL_TWICE", 4)]);
    let mut mask = [vec![10, 6], leb(HOSTILE.len() as u64)].concat();
    for (at, name) in HOSTILE.iter().enumerate() {
        mask.extend(build::text(name));
        mask.extend(leb(1 << at));
    }
    mask.push(0);
    let hint = [("target", enum_new(5, &names, 1)), ("mode", mask)];
    calls.call("glHint", &hint, None);
    for _ in 0..300 {
        let name = match random.below(20) {
            0 => random.of(&HOSTILE),
            _ => random.of(&FUNCTIONS),
        };
        let labels = ["n", "textures", "target", "buffer", "program", "location", "sync", "list", "size", "mode"];
        let arguments: Vec<_> = (0..random.below(10)).map(|_| (random.of(&labels), random.value(0))).collect();
        let returned = (random.below(2) == 0).then(|| random.value(1));
        calls.call(name, &arguments, returned);
    }
    calls
}

#[test]
fn no_trace_gets_its_own_words_into_the_source() {
    for seed in 0..24 {
        let (folder, ..) = exported(&random_calls(seed).build.bytes, &Wanted::default());
        for name in ["calls_0.c", "functions.h", "functions.c"] {
            let text = source(&folder, name);
            // They may occur within strings; no other line begins like that.
            assert!(!text.lines().any(|line| line.trim_start().starts_with("#error")), "{seed} {name}");
        }
        assert!(!has_program("cc") || compiles(folder.path()), "{seed}");
    }
}

#[test]
fn damaged_traces_are_exported_as_far_as_they_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders = vec![root.join("bad"), root];
    folders.extend(shared_corpus("apitrace").map(|shared| shared.join("broken")));
    let mut seen = 0;
    for path in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path())
    {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(mut reader) = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let options = Wanted::default();
        // Exceeded limits and future versions may be refused; nothing may fail in any other way.
        let _ = to_c(&mut reader, &options, folder.path(), &Limits::default(), &mut Collect::default());
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
    let mut bytes = small().build.bytes;
    while bytes.pop().is_some() {
        if Reader::new(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).is_ok() {
            exported(&bytes, &Wanted::default());
        }
    }
}

/// Compiles a program and runs it; pictures of its frames by call, or `None` if it cannot run here.
fn pictures(trace: &Path) -> Option<Vec<(u64, Vec<u8>)>> {
    let bytes = std::fs::read(trace).unwrap();
    let (folder, ..) = exported(&bytes, &Wanted::default());
    let built = Command::new("make").arg("-s").arg("-C").arg(folder.path()).env("CFLAGS", "-O0").status().unwrap();
    assert!(built.success(), "{}", trace.display());
    let prefix = folder.path().join("f.");
    let run = Command::new(folder.path().join("replay")).arg("--snapshots").arg(&prefix).output().unwrap();
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        // A machine without drivers is not the program's fault.
        let is_bare = said.contains("libEGL") || said.contains("no display") || said.contains("no configuration");
        assert!(is_bare, "{}: {said}", trace.display());
        skip(&said);
        return None;
    }
    let picture = |call: u64| std::fs::read(format!("{}{call:010}.ppm", prefix.display())).ok();
    Some(frame_ends(&bytes).into_iter().filter_map(|call| picture(call).map(|bytes| (call, bytes))).collect())
}

/// Converts a snapshot of apitrace to the format of the programs.
fn as_ppm(png: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let mut out = format!("P6\n{} {}\n255\n", info.width, info.height).into_bytes();
    let samples = info.color_type.samples();
    pixels.chunks(samples).for_each(|pixel| out.extend(&pixel[..3]));
    out
}

/// Traces that draw, and how many windows they have.
fn traces() -> Vec<(PathBuf, usize)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![
        (root.join("../../examples/traces/imm.trace"), 1),
        (root.join("corpus/peer/vbo.trace"), 1),
        (root.join("corpus/peer/fbo.trace"), 1),
        (root.join("corpus/threads.trace"), 2),
        (root.join("corpus/replay/mixed.trace"), 1),
    ];
    if let Some(shared) = shared_corpus("apitrace") {
        for name in ["dbg", "egl_gles2", "map", "query", "readpix", "tex", "upstream_glxsimple", "varray"] {
            found.push((shared.join(name).join(format!("{name}.trace")), 1));
        }
    }
    found
}

#[test]
fn frames_look_as_those_of_glretrace() {
    if !has_program("cc") || !has_program("make") {
        return;
    }
    let Some(display) = Display::open() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (trace, windows) in traces() {
        let Some(ours) = pictures(&trace) else { return };
        let theirs = display.replay(&trace, folder.path());
        assert_eq!(ours.len(), theirs.len(), "{}", trace.display());
        // The first pictures of glretrace are not those of the program: its window gets its size too late.
        for ((call, ours), theirs) in ours.iter().zip(&theirs).skip(windows) {
            assert!(*ours == as_ppm(theirs), "{}, call {call}", trace.display());
            compared += 1;
        }
    }
    assert!(compared >= 15, "{compared}");
}
