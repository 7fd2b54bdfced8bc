//! Repeats the OpenGL calls of an apitrace trace: without a window, with pictures of what is drawn.
//!
//! [`replay`] does it in this process, where a crash of the driver ends everything; [`supervise`] has another process do
//! it and says at which call that one ended. EGL and OpenGL are looked up at run time.
//!
//! What a call means is [`anytrace_apitrace::tools::program`]'s business. Here are the driver's side: names of objects,
//! memory, the call itself, pixels.

mod arrays;
mod bounds;
mod client;
mod driver;
mod egl;
mod film;
mod framebuffer;
mod gl;
mod invoke;
mod marshal;
mod memory;
mod metrics;
mod names;
mod null;
mod pictures;
mod pixels;
mod probe;
mod profile;
mod queries;
mod spans;
mod state;
mod sums;
mod supervise;
mod threads;
mod ubjson;
mod watch;
mod window;

use std::io::Write;
use std::time::{Duration, Instant};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::program::{Wanted, play};
use anytrace_core::{Error, Limits, Sink, SpanSink};

pub use anytrace_apitrace::tools::program::{DrawableSize, drawable_sizes};

pub use egl::devices;
pub use film::{Frame, Strip};
pub use framebuffer::Part;
pub use metrics::{Metric, MetricSet, Metrics, list_of_metrics};
pub use null::Nothing;
pub use pictures::{PictureFormat, Pictures};
pub use profile::Profile;
pub use sums::{Difference, Sum, compare, from_json, of_png, to_json};
pub use supervise::{Ended, end_with_parent, supervise};
pub use ubjson::ubjson;
pub use watch::Watch;

/// How large drawables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizes {
    /// As the tracer recorded them, or as the program stated; else what viewports cover.
    #[default]
    Right,
    /// As apitrace's players have them, for equal sums: what viewports covered so far, at least 32 by 32.
    Peer,
}

/// How a trace is replayed.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which calls are repeated.
    pub wanted: Wanted,
    /// After which calls pictures are taken, and where they go; `None`: no pictures.
    pub pictures: Option<Pictures>,
    /// The call after which the driver's state is read.
    pub state_at: Option<u64>,
    /// Keep small pictures of frames, and what the frames cost.
    pub strip: Option<Strip>,
    /// How large drawables are.
    pub sizes: Sizes,
    /// The device of EGL, by its number in [`devices`]; `None`: Mesa's surfaceless platform, or the default display.
    pub device: Option<usize>,
    /// Call no driver at all: nothing is drawn.
    pub nothing: Option<Nothing>,
    /// Make contexts of the core profile where the trace does not ask for one.
    pub is_core: bool,
    /// A frame takes at least so long.
    pub frame_time_min: Duration,
    /// After each frame nothing is done for so long.
    pub frame_delay: Duration,
    /// What is measured.
    pub profile: Profile,
    /// What is measured besides, in tables.
    pub metrics: Metrics,
    /// Show the frames in a window of the X server, with this title; the replay ends when the user closes it.
    pub window: Option<String>,
    /// After the last frame, wait until the user closes the window.
    pub waits: bool,
    /// Samples a pixel of drawables; 0 and 1: one.
    pub samples: u32,
    /// Ask for errors and messages of the driver after each call.
    pub checks_errors: bool,
    /// With that, compare what the program asked for: errors, states of framebuffers, shaders and programs, locations.
    pub compares_answers: bool,
    /// Each thread of the trace has one of its own.
    pub has_threads: bool,
    /// Limits on what a trace may cost.
    pub limits: Limits,
}

/// What was replayed.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Frames that ended.
    pub frames: u64,
    /// Calls of the trace.
    pub calls: u64,
    /// Calls that were repeated, contexts and frames included.
    pub repeated: u64,
    /// Threads that made the calls, where [`Options::has_threads`] asks for several.
    pub threads: usize,
    /// Time from the first call to the last.
    pub time: Duration,
    /// Pictures that were taken.
    pub pictures: u64,
    /// Sums of the pictures, in order, where they are wanted.
    pub sums: Vec<Sum>,
    /// The first picture that is not as [`Pictures::expected`] says, as PNG.
    pub other: Option<(Sum, Vec<u8>)>,
    /// The driver's state, where [`Options::state_at`] asks for it and the call was reached.
    pub state: Option<serde_json::Value>,
    /// The frames, where [`Options::strip`] asks for them.
    pub strip: Vec<Frame>,
    /// Bytes that the driver that draws nothing read: [`Nothing::Reads`].
    pub read_bytes: u64,
    /// What the driver calls itself; empty where no context was made.
    pub renderer: String,
    /// What was not done, and why: a sentence each.
    pub notes: Vec<String>,
    /// Answers of the driver that differ from those in the trace: a sentence each.
    pub differences: Vec<String>,
}

/// Where results go that have no file of their own.
pub struct Outlets<'o> {
    /// For pictures, and for the lines of what is measured.
    pub out: &'o mut dyn Write,
    /// For what is measured, instead of the lines: frames with the calls in them, and the device's draws.
    pub spans: Option<&'o mut dyn SpanSink>,
}

/// Replays a trace. `sizes`: of its drawables, which another pass over it found ([`drawable_sizes`]).
///
/// # Errors
/// The trace cannot be read, EGL or OpenGL are absent, a context cannot be made, a picture cannot be written.
pub fn replay<'o>(
    reader: &mut Reader,
    sizes: Vec<DrawableSize>,
    options: &'o Options,
    watch: &'o mut Watch,
    outlets: Outlets<'o>,
    sink: &mut dyn Sink,
) -> Result<Replayed, Error> {
    let mut driver = driver::Driver::new(options, sizes, watch, outlets)?;
    let started = Instant::now();
    let (wanted, limits) = (&options.wanted, &options.limits);
    let (played, mut done) = if options.has_threads {
        let mut threads = threads::Threads::new(driver);
        let played = play(reader, wanted, limits, &mut threads, sink)?;
        (played, threads.finish(started)?)
    } else {
        let played = play(reader, wanted, limits, &mut driver, sink)?;
        (played, driver.finish(started)?)
    };
    done.notes.splice(0..0, played.notes);
    Ok(Replayed { calls: played.totals.calls, repeated: played.repeated, ..done })
}

/// A set of the calls that end frames.
pub fn every_frame() -> CallSet {
    CallSet::parse(["*/frame"], &mut |_| Err(std::io::Error::other("no files"))).unwrap_or_default()
}
