//! The machine that replays: contexts, calls, frames.
#![allow(unsafe_code, reason = "functions of the driver are called by address")]

mod check;
mod look;
mod measure;

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use anytrace_apitrace::tools::flags::CallFlags;
use anytrace_apitrace::tools::gl::kind::Kind;
use anytrace_apitrace::tools::program::{
    Argument, Around, Asked, DrawableSize, GlCall, Machine, MemoryChange, Moment, NewContext, Unfit,
};
use anytrace_core::Error;
use check::Findings;
use foldhash::fast::RandomState;
use khronos_egl as egl;
use measure::Measures;

use crate::client::Client;
use crate::egl::Screen;
use crate::film::Film;
use crate::gl::Gl;
use crate::invoke::{Arguments, Function, call as invoke};
use crate::marshal::{Checks, Follows, Marshal, Scratch};
use crate::memory::Memory;
use crate::names::{Names, Of};
use crate::pictures::Gallery;
use crate::watch::Watch;
use crate::window::Window;
use crate::{Options, Outlets, Replayed, Sizes};

/// Most notes about errors and contexts.
const NOTES_MAX: usize = 64;

/// The smallest drawable of apitrace's players.
const PEER_SMALLEST: u32 = 32;

/// A context of the trace.
#[derive(Debug, Default)]
struct Context {
    real: Option<egl::Context>,
    group: u32,
    asked: Asked,
    /// The current program, as the trace calls it.
    program: u32,
    /// What the color buffer of its drawable is called; 0 before that is known, and for OpenGL ES.
    window_buffer: u32,
    client: Client,
    /// Between `glBegin` and `glEnd`, where nothing may be asked.
    is_inside: bool,
    /// With `--check`: the first error since the trace asked last.
    error: u32,
}

/// Repeats calls with the driver of this machine.
pub(crate) struct Driver<'o> {
    options: &'o Options,
    watch: &'o mut Watch,
    screen: Screen,
    gl: Option<Gl>,
    sizes: Vec<DrawableSize>,
    /// Drawables by number: for OpenGL, for OpenGL ES.
    surfaces: HashMap<(usize, bool), egl::Surface>,
    contexts: Vec<Context>,
    current: Option<(u32, usize)>,
    /// By the address of the name.
    functions: HashMap<usize, Option<(Function, Checks)>, RandomState>,
    names: Names,
    memory: Memory,
    scratch: Scratch,
    arguments: Arguments,
    gallery: Option<Gallery>,
    measures: Option<Measures<'o>>,
    film: Option<Film>,
    window: Option<Window>,
    state: Option<serde_json::Value>,
    renderer: String,
    /// For pictures that go to no file, for lines and tables.
    out: &'o mut dyn Write,
    frames: u64,
    frame_started: Instant,
    /// Behind the frame before, with its group of contexts.
    fence: Option<(u64, u32)>,
    /// What `--check` finds.
    findings: Findings,
    notes: Vec<String>,
    notes_omitted: u64,
}

impl<'o> Driver<'o> {
    pub(crate) fn new(
        options: &'o Options,
        sizes: Vec<DrawableSize>,
        watch: &'o mut Watch,
        outlets: Outlets<'o>,
    ) -> Result<Self, Error> {
        watch.at(0, "(the display)");
        let screen = Screen::open(options.device, options.samples, options.nothing)?;
        watch.idle();
        Ok(Self {
            options,
            watch,
            screen,
            gl: None,
            sizes,
            surfaces: HashMap::new(),
            contexts: Vec::new(),
            current: None,
            functions: HashMap::default(),
            names: Names::default(),
            memory: Memory::default(),
            scratch: Scratch::default(),
            arguments: Arguments::default(),
            gallery: options.pictures.clone().map(Gallery::new),
            measures: Measures::new(options, outlets.spans)?,
            film: options.strip.map(Film::new),
            window: options.window.as_deref().map(Window::open).transpose()?,
            state: None,
            renderer: String::new(),
            out: outlets.out,
            frames: 0,
            frame_started: Instant::now(),
            fence: None,
            findings: Findings::default(),
            notes: Vec::new(),
            notes_omitted: 0,
        })
    }

    /// Waits for the driver and for the pictures. Returns what is known here of the replay.
    pub(crate) fn finish(mut self, started: Instant) -> Result<Replayed, Error> {
        self.watch.busy();
        self.write_measures()?;
        if let (Some(gl), Some(_)) = (&self.gl, self.current) {
            gl.finish();
        }
        self.finish_measures()?;
        self.watch.idle();
        let sums = self.gallery.as_mut().map(Gallery::finish).transpose()?.unwrap_or_default();
        if self.notes_omitted > 0 {
            self.notes.push(format!("{} more notes are not shown", self.notes_omitted));
        }
        self.notes.extend(self.findings.notes());
        let time = started.elapsed();
        if let Some(window) = self.window.as_mut().filter(|_| self.options.waits) {
            window.wait()?;
        }
        Ok(Replayed {
            frames: self.frames,
            read_bytes: self.options.nothing.map_or(0, |_| crate::null::read_bytes()),
            time,
            pictures: self.gallery.as_ref().map_or(0, Gallery::taken),
            sums,
            other: self.gallery.as_mut().and_then(Gallery::other),
            strip: self.film.map(Film::finish).unwrap_or_default(),
            state: self.state,
            renderer: self.renderer,
            notes: self.notes,
            differences: self.findings.differences(),
            ..Replayed::default()
        })
    }

    /// Completes what was begun in this thread, because what follows is done in another.
    pub(crate) fn leave(&mut self) -> Result<(), Error> {
        self.write_measures()?;
        if let (Some(gl), Some(_)) = (&self.gl, self.current.take()) {
            gl.flush();
        }
        Ok(())
    }

    /// No context is current in this thread any more.
    pub(crate) fn release(&self) {
        self.screen.release();
    }

    fn note(&mut self, text: String) {
        match self.notes.len() {
            ..NOTES_MAX => self.notes.push(text),
            _ => self.notes_omitted += 1,
        }
    }

    fn context(&mut self, number: u32) -> &mut Context {
        let at = number as usize;
        while self.contexts.len() <= at {
            // A group of its own.
            let group = u32::try_from(self.contexts.len()).unwrap_or(u32::MAX);
            self.contexts.push(Context { group, ..Context::default() });
        }
        match self.contexts.get_mut(at) {
            Some(context) => context,
            None => unreachable!("it was just added"),
        }
    }

    /// Makes the context that a number stands for.
    fn open(&mut self, number: u32) -> Result<egl::Context, Error> {
        let is_core = self.options.is_core;
        let context = self.context(number);
        let (group, mut asked) = (context.group, context.asked);
        if is_core && !asked.is_es && asked.version.0 == 0 {
            (asked.version, asked.profile) = ((3, 2), 1);
        }
        let shares = |other: &&Context| other.group == group && other.asked.is_es == asked.is_es;
        let share = self.contexts.iter().filter(shares).find_map(|other| other.real);
        let (real, note) = self.screen.context(&asked, share)?;
        if let Some(note) = note {
            self.note(note);
        }
        self.context(number).real = Some(real);
        Ok(real)
    }

    /// The surface of a drawable; large enough for its viewports.
    fn surface(&mut self, drawable: usize, is_es: bool) -> Result<egl::Surface, Error> {
        if let Some(surface) = self.surfaces.get(&(drawable, is_es)) {
            return Ok(*surface);
        }
        let size = self.sizes.get(drawable).copied().unwrap_or_default();
        let (width, height) = match self.options.sizes {
            Sizes::Right => size.size(),
            Sizes::Peer => size.room(),
        };
        let surface = self.screen.surface(is_es, (width.max(PEER_SMALLEST), height.max(PEER_SMALLEST)))?;
        self.surfaces.insert((drawable, is_es), surface);
        Ok(surface)
    }

    fn of(&self) -> Of {
        let context = self.current.map_or(0, |(context, _)| context);
        let group = self.contexts.get(context as usize).map_or(context, |context| context.group);
        Of { context, group }
    }

    fn function(&mut self, name: &'static str, stem: &str) -> Option<(Function, Checks)> {
        let screen = &self.screen;
        let known = self.functions.entry(name.as_ptr() as usize);
        *known.or_insert_with(|| screen.function(name).map(|function| (function, Checks::of(stem))))
    }

    /// The buffer at the target of a call, as it is called here, or the buffer that it names.
    fn buffer(&self, target: u64, is_name: bool) -> u32 {
        let binding = |target: u32| BINDINGS.iter().find(|(known, _)| *known == target).map(|(_, binding)| *binding);
        match (is_name, &self.gl) {
            (true, _) => target as u32,
            (false, Some(gl)) => binding(target as u32).map_or(0, |binding| gl.state(binding) as u32),
            (false, None) => 0,
        }
    }

    /// What must be done before the call. `first`: its first argument, as it is here.
    fn before(&mut self, call: &GlCall<'_>, first: u64) {
        if !self.memory.has_mapped() {
            return;
        }
        match (call.around, call.stem) {
            (Around::Unmaps { is_name }, _) => {
                let buffer = self.buffer(first, is_name);
                self.memory.unmapped(buffer);
            }
            // New storage ends the mapping of the old one.
            (_, "glBufferData" | "glBufferStorage") => {
                let buffer = self.buffer(first, false);
                self.memory.unmapped(buffer);
            }
            (_, "glNamedBufferData" | "glNamedBufferStorage") => self.memory.unmapped(first as u32),
            (_, "glDeleteBuffers") => {
                let of = self.of();
                if let Some(Argument::Array(array)) = call.arguments.get(1) {
                    let names = array.elements.map(|mut wire| wire.value());
                    let names =
                        names.filter_map(|value| anytrace_apitrace::tools::gl::values::integer(value, call.dictionary));
                    for name in names {
                        if let Some(real) = self.names.object(of, Kind::Buffer, name as u32) {
                            self.memory.unmapped(real);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// What follows from the result of a call.
    fn after(&mut self, call: &GlCall<'_>, result: u64, first: u64, length: Option<u64>, room: Option<usize>) {
        let of = self.of();
        match call.around {
            Around::UsesProgram(program) => {
                let (context, _) = self.current.unwrap_or_default();
                self.context(context).program = program;
            }
            Around::FindsLocation { program, location } => {
                if self.options.compares_answers && (result as i32) < 0 {
                    self.findings.is_missing(call, "location", location as u32);
                }
                self.names.location_is(of, program, location, result as i32);
            }
            Around::FindsBlock { program, block } => {
                if self.options.compares_answers && result as u32 == u32::MAX {
                    self.findings.is_missing(call, "block", block);
                }
                self.names.block_is(of, program, block, result as u32);
            }
            Around::Asks(answer) => self.compare(call, answer, result),
            Around::DeletesSync(traced) => self.names.forget_sync(traced),
            Around::Maps { address, is_name, .. } => {
                let length = match (length, &self.gl) {
                    (Some(length), _) => length,
                    (None, Some(gl)) => gl.buffer_size(first as u32, is_name),
                    (None, None) => 0,
                };
                let buffer = self.buffer(first, is_name);
                self.memory.mapped(address, result, length, buffer);
            }
            Around::Makes { kind, name } => self.names.made(of, kind, name, result as u32),
            Around::MakesSync(traced) => self.names.made_sync(traced, result),
            Around::MakesRange { kind, first, count } => {
                for at in 0..if result as u32 == 0 { 0 } else { count } {
                    self.names.made(of, kind, first.wrapping_add(at), (result as u32).wrapping_add(at));
                }
            }
            Around::MakesMany { kind, names } => {
                let made: Vec<u32> =
                    room.map(|room| self.scratch.read(room, names.len()).collect()).unwrap_or_default();
                for (traced, real) in names.iter().zip(made) {
                    self.names.made(of, kind, *traced, real);
                }
            }
            Around::Nothing | Around::Unmaps { .. } | Around::Packs => {}
        }
    }

    /// Lets the driver be one frame behind, as windows do: it would keep all frames in memory.
    fn throttle(&mut self) {
        let group = self.of().group;
        let (Some(gl), Some(_)) = (&self.gl, self.current) else { return };
        gl.flush();
        let fence = gl.fence();
        if fence == 0 {
            gl.finish();
        }
        // A fence of another group is left to its end: it cannot be waited for here.
        if let Some((before, _)) = self.fence.take().filter(|(_, of)| *of == group) {
            gl.wait(before);
        }
        self.fence = (fence != 0).then_some((fence, group));
        gl.clear_errors();
    }
}

/// Targets of buffers, and the state that has what is bound to them.
const BINDINGS: [(u32, u32); 14] = [
    (0x8892, 0x8894),
    (0x8893, 0x8895),
    (0x88eb, 0x88ed),
    (0x88ec, 0x88ef),
    (0x8a11, 0x8a28),
    (0x8c2a, 0x8c2a),
    (0x8c8e, 0x8c8f),
    (0x8f36, 0x8f36),
    (0x8f37, 0x8f37),
    (0x8f3f, 0x8f43),
    (0x90d2, 0x90d3),
    (0x90ee, 0x90ef),
    (0x9192, 0x9193),
    (0x92c0, 0x92c1),
];

/// The name of an error code.
fn error_name(code: u32) -> String {
    let known = match code {
        0 => "no error",
        0x500 => "GL_INVALID_ENUM",
        0x501 => "GL_INVALID_VALUE",
        0x502 => "GL_INVALID_OPERATION",
        0x503 => "GL_STACK_OVERFLOW",
        0x504 => "GL_STACK_UNDERFLOW",
        0x505 => "GL_OUT_OF_MEMORY",
        0x506 => "GL_INVALID_FRAMEBUFFER_OPERATION",
        _ => return format!("error {code:#x}"),
    };
    known.to_owned()
}

impl Machine for Driver<'_> {
    fn new_context(&mut self, new: &NewContext) -> Result<(), Error> {
        let group = match new.share {
            Some(share) => self.context(share).group,
            None => new.context,
        };
        *self.context(new.context) = Context { group, asked: new.asked, ..Context::default() };
        Ok(())
    }

    fn share_contexts(&mut self, first: u32, second: u32) -> Result<(), Error> {
        let (to, from) = (self.context(first).group, self.context(second).group);
        self.contexts.iter_mut().filter(|context| context.group == from).for_each(|context| context.group = to);
        self.names.join(from, to);
        Ok(())
    }

    fn end_context(&mut self, context: u32) -> Result<(), Error> {
        let Some(real) = self.context(context).real.take() else { return Ok(()) };
        self.watch.busy();
        if self.current.is_some_and(|(current, _)| current == context) {
            self.write_measures()?;
            self.screen.release();
            self.current = None;
        }
        self.screen.destroy(real);
        Ok(())
    }

    fn make_current(&mut self, number: u32, drawable: usize) -> Result<(), Error> {
        if self.current == Some((number, drawable)) {
            return Ok(());
        }
        self.watch.busy();
        self.write_measures()?;
        if let (Some(gl), Some(_)) = (&self.gl, self.current) {
            gl.flush();
        }
        let drawable = if drawable < self.sizes.len() { drawable } else { 0 };
        let is_es = self.context(number).asked.is_es;
        let (real, is_new) = match self.context(number).real {
            Some(real) => (real, false),
            None => (self.open(number)?, true),
        };
        let surface = self.surface(drawable, is_es)?;
        self.screen.make_current(is_es, real, surface)?;
        self.current = Some((number, drawable));
        if self.gl.is_none() {
            self.gl = Some(Gl::load(&self.screen)?);
        }
        if let Some(gl) = self.gl.as_ref().filter(|_| self.renderer.is_empty()) {
            self.renderer = gl.text(0x1f01).unwrap_or_default();
        }
        if let Some(gl) = self.gl.as_ref().filter(|_| is_new && !is_es) {
            // GL_DRAW_BUFFER: a drawable without a window has one color buffer.
            let buffer = gl.state(0x0c01) as u32;
            gl.clear_errors();
            self.context(number).window_buffer = buffer;
        }
        if let Some(gl) = self.gl.as_ref().filter(|_| is_new && self.options.checks_errors) {
            gl.begin_messages();
        }
        Ok(())
    }

    fn end_frame(&mut self, number: u64) -> Result<(), Error> {
        self.watch.at(number, "(the end of a frame)");
        self.frames += 1;
        self.measure_frame(number)?;
        self.throttle();
        self.watch.idle();
        if let Some(rest) = self.options.frame_time_min.checked_sub(self.frame_started.elapsed())
            && rest > Duration::ZERO
        {
            std::thread::sleep(rest);
        }
        std::thread::sleep(self.options.frame_delay);
        self.frame_started = Instant::now();
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.window.as_ref().is_some_and(Window::is_closed)
    }

    fn asks(&self) -> bool {
        self.options.compares_answers
    }

    fn call(&mut self, call: &GlCall<'_>) -> Result<(), Unfit> {
        let Some((number, _)) = self.current else { return Err(Unfit::Value("no context is current")) };
        let Some((function, checks)) = self.function(call.name, call.stem) else {
            return Err(Unfit::Value("the driver does not have it"));
        };
        self.watch.at(call.number, call.name);
        let of = self.of();
        if call.around == Around::Packs && self.gl.as_ref().is_none_or(|gl| gl.state(0x88ed) == 0) {
            return Ok(());
        }
        if matches!(call.around, Around::Asks(_)) && self.context(number).is_inside {
            return Ok(());
        }
        self.scratch.clear();
        self.arguments.clear();
        let (Some(gl), Some(context)) = (&self.gl, self.contexts.get_mut(number as usize)) else { return Ok(()) };
        let mut marshal = Marshal {
            names: &mut self.names,
            memory: &mut self.memory,
            client: &mut context.client,
            scratch: &mut self.scratch,
            gl,
            of,
            program: context.program,
            window_buffer: context.window_buffer,
            buffer: None,
        };
        let room = marshal.fill(call, checks, &mut self.arguments)?;
        match checks.follows {
            Follows::Nothing => {}
            Follows::Begin => context.is_inside = true,
            Follows::End => context.is_inside = false,
            Follows::Arrays => context.client.follow(call.stem, call.first()),
        }
        let first = self.arguments.at(0);
        let length = match call.around {
            Around::Maps { length: Some(index), .. } => Some(self.arguments.at(index)),
            _ => None,
        };
        self.before(call, first);
        let measured = self.measure_before(number, call);
        // SAFETY: the function has the parameters that its row of the table of types says; `fill` put an argument of that
        // type for each, and pointers among them point to memory that stays until the call returns, or as long as the
        // driver keeps them.
        let result = unsafe { invoke(function, &self.arguments) };
        self.measure_after(number, call.stem, measured)?;
        self.after(call, result, first, length, room);
        if self.options.checks_errors {
            self.check(call);
        }
        Ok(())
    }

    fn memory(&mut self, number: u64, change: &MemoryChange<'_>) -> Result<(), Unfit> {
        self.watch.at(number, "(memory)");
        match *change {
            MemoryChange::Allocated(address, length) => self.memory.allocated(address, length),
            MemoryChange::Released(address) => self.memory.released(address),
            MemoryChange::Moved(from, to, length) => self.memory.moved(from, to, length),
            MemoryChange::Copied(to, bytes) => {
                if !self.memory.copied(to, bytes) {
                    return Err(Unfit::Value("it writes where nothing is mapped"));
                }
            }
        }
        Ok(())
    }

    fn done(&mut self, moment: &Moment) -> Result<(), Error> {
        self.look(moment)?;
        if let Some(measures) = &mut self.measures {
            measures.set_frame(moment.frame + u64::from(moment.flags.has(CallFlags::END_FRAME)));
        }
        self.watch.idle();
        Ok(())
    }
}
