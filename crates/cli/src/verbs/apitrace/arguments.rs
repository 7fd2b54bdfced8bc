//! The verbs of `anytrace apitrace …`, and what their help says.

use clap::{Args, Subcommand};

use super::{
    diff, diff_images, diff_state, dump, frames, from_jsonl, gltrim, index, info, jsonl, leaks, pickle, repack, replay,
    sed, state, stats, to_c, trace, trim,
};
use crate::arguments::RANGE;

/// What a set of calls is.
fn call_set_help() -> String {
    format!(
        "CALLSET: items separated by commas, each @FILE, a KIND, * (all) or a range, the last two with\n\
         /STEP or /KIND or without: {RANGE}.\n\
         KIND: frame (calls that end frames), rendertarget or fbo, render or draw."
    )
}

/// What a set of frames is.
const FRAMESET: &str = "FRAMESET: the same with numbers of frames; a kind chooses among their calls. A call belongs to the\n\
                        frame in which it returns.";

/// The group.
#[derive(Debug, Args)]
pub(crate) struct ApitraceArguments {
    /// What to do.
    #[command(subcommand)]
    pub(super) verb: ApitraceVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
pub(super) enum ApitraceVerb {
    /// Compare two traces, frame by frame, call by call, argument by argument
    #[command(after_help = "CALLSET: as for `anytrace apitrace dump`.\n\n\
                      Exit codes: 0 the traces are equal, 1 they differ or one is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff before.trace after.trace\n  \
                      anytrace apitrace diff -t python --call-nos --suppress-common-lines \\\n    before.trace after.trace")]
    Diff(diff::DiffArguments),
    /// Compare two sets of snapshots and show where they differ
    #[command(after_help = "Snapshots with the same name after the prefix are compared.\n\n\
                      Exit codes: 0 all match, 1 some do not, are missing or cannot be read, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff-images -o page.html before/ after/")]
    DiffImages(diff_images::DiffImagesArguments),
    /// Compare two dumps of GL state made by `apitrace replay -D CALL`
    #[command(after_help = "Exit codes: 0 the states are equal, 1 they differ, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff-state before.json after.json")]
    DiffState(diff_state::DiffStateArguments),
    /// Print the calls as `apitrace dump` does, byte for byte
    #[command(
        after_help = format!("{}\nA repeated option selects the union.\n{FRAMESET}\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace dump --calls='draw,0-99/10' game.trace\n  \
                      anytrace apitrace dump -v --grep='^glTex' --thread-ids game.trace", call_set_help())
    )]
    Dump(dump::DumpArguments),
    /// Replay a trace without a window and write a picture of each frame
    #[command(
        after_help = "CALLSET: as for `anytrace apitrace dump`. `anytrace apitrace replay` has more options.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged or the driver crashed, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace dump-images game.trace\n  \
                      anytrace apitrace dump-images --calls='*/draw' -o draws. game.trace"
    )]
    DumpImages(replay::DumpImagesArguments),
    /// Replay a trace and write a page with all its frames, small, and what each costs
    #[command(after_help = "Times are those until the driver had drawn a frame, here.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged or the driver crashed, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace frames game.trace -o frames.html\n  \
                      anytrace apitrace frames --side 480 --pictures 100 game.trace -o frames/")]
    Frames(frames::FramesArguments),
    /// Make a trace from JSON lines of calls, edited or not
    #[command(after_help = "Exit codes: 0 fine, 1 a line is not a valid call, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl game.trace |\n    sed 's/\"GL_LINEAR\",\"value\":9729/\"GL_NEAREST\",\"value\":9728/' |\n    \
                      anytrace apitrace from-jsonl - -o nearest.trace")]
    FromJsonl(from_jsonl::FromJsonlArguments),
    /// Write some frames with everything they need to replay
    #[command(after_help = "Without -o, game.trace is trimmed to game-trim.trace. It starts with a frame of setup\n\
                      calls, followed by the requested frames. FRAMESET: as for `anytrace apitrace trim`.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace gltrim -f 2 game.trace\n  \
                      anytrace apitrace gltrim -f 1-2,4 --explain -o part.trace game.trace")]
    Gltrim(gltrim::GltrimArguments),
    /// Index a trace so that other verbs can seek to calls and frames
    #[command(
        after_help = "Verbs that benefit from an index find it next to the trace; if it does not match the trace,\n\
                      they say so and read from the start. Indexes work with Snappy, multi-frame zstd and no\n\
                      container.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged or the index does not match, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace index game.trace\n  \
                      anytrace apitrace dump --calls=9000000-9000010 game.trace\n  \
                      anytrace apitrace index --show --frames game.trace"
    )]
    Index(index::IndexArguments),
    /// Report version, container, interface and frames as JSON, as `apitrace info` does
    #[command(after_help = "Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                            Example:\n  anytrace apitrace info --dump-frames game.trace")]
    Info(info::InfoArguments),
    /// Write one JSON object per line with all details of a call
    #[command(after_help = "CALLSET: see `anytrace apitrace dump --help`.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl --blobs=sha256 game.trace |\n    jq -r 'select((.flags//0)/8%2==1).name'")]
    Jsonl(jsonl::JsonlArguments),
    /// List objects that a program creates and never deletes: all kinds, by share group and context
    #[command(after_help = "Exit codes: 0 no leaks, 1 leaks or damage, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace leaks game.trace\n  \
                      anytrace apitrace leaks --format json game.trace | jq .by_kind")]
    Leaks(leaks::LeaksArguments),
    /// Write each call as a Python pickle, as `apitrace pickle` does
    #[command(after_help = "CALLSET: see `anytrace apitrace dump --help`.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace pickle --symbolic --plain-pointers game.trace > game.pickles\n  \
                      anytrace apitrace pickle --calls='*/frame' game.trace | python3 my-script.py")]
    Pickle(pickle::PickleArguments),
    /// Write a trace in another container, with an identical raw stream
    #[command(after_help = "-z means gzip, as in apitrace 11.1; in later versions it means Zstandard and -g means\n\
                      gzip, which works here too. If several containers are given, the last one counts. apitrace\n\
                      11.1 does not read Zstandard, and no apitrace reads a trace without a container\n\
                      (--container=raw).\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace repack game.trace game.snappy.trace\n  \
                      anytrace apitrace repack --zstd=19 game.trace small.trace")]
    Repack(repack::RepackArguments),
    /// Replay a trace without a window, and take pictures
    #[command(
        after_help = "No X server is needed: EGL draws into memory. A crash of the driver is reported with its call.\n\
                      Pictures of a call that ends a frame show what the frame drew; others show the framebuffer after the\n\
                      call. CALLSET and FRAMESET: as for `anytrace apitrace dump`.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, pictures differ or the driver crashed, 2 the command\n\
                      failed.\n\n\
                      Example:\n  anytrace apitrace replay game.trace\n  \
                      anytrace apitrace replay -s frame. -S '100-200/frame' game.trace\n  \
                      anytrace apitrace replay -s frame. --frames 2 game.trace\n  \
                      anytrace apitrace replay --pcpu --pgpu --ppd game.trace > profile.txt\n  \
                      anytrace apitrace replay --sums sums.json game.trace\n  \
                      anytrace apitrace replay --against sums.json game.trace"
    )]
    Replay(Box<replay::ReplayArguments>),
    /// Replace strings, enumeration names, flags and pointers, and set properties; everything else is unchanged
    #[command(after_help = "Without -o, the edited game.trace is written to game-sed.trace.\n\n\
                      EXPRESSION: s/SEARCH/REPLACE/ with any separator for the slash; either part may be @file(PATH).\n\
                      Only complete values match: strings, enumeration names, bit mask flags (replaced by a flag, a\n\
                      number, several joined by |, or nothing), and pointers if SEARCH is 0x and a number.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace sed -e s/GL_LINEAR/GL_NEAREST/ --calls=100-200 game.trace\n  \
                      anytrace apitrace sed -e 's,@file(old.glsl),@file(new.glsl),' \\\n    --property=note=shader -o shader.trace game.trace")]
    Sed(sed::SedArguments),
    /// Show the OpenGL state at a call without replaying: bindings, parameters, objects, shaders, uniforms
    #[command(
        after_help = "The effect of the call is included. State that no call sets is reported as initial or unknown.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace state --at 25 game.trace\n  \
                      anytrace apitrace state --at 25 --format json game.trace |\n    jq '.contexts[].parameters.GL_BLEND'\n  \
                      anytrace apitrace state --at 25 --dump-shaders shaders game.trace"
    )]
    State(state::StateArguments),
    /// Count calls, draws, state changes and uploads, by function, frame, thread or state
    #[command(after_help = "CALLSET and FRAMESET: as for `anytrace apitrace dump`.\n\n\
                      A state change is redundant if the trace shows that the context already has that state.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace stats --sort=uploads --top=10 game.trace\n  \
                      anytrace apitrace stats --by=state game.trace\n  \
                      anytrace apitrace stats --by=frame --format=csv --plot=frames.svg \\\n    game.trace > frames.csv")]
    Stats(stats::StatsArguments),
    /// Write a C program that repeats the OpenGL calls without a window
    #[command(
        after_help = "DIR gets the source, data.bin, a Makefile and a README. CALLSET and FRAMESET: as for `anytrace\n\
                      apitrace trim`; with both, calls selected by either.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace to-c -o game-c game.trace\n  \
                      make -C game-c && game-c/replay --snapshots frame."
    )]
    ToC(to_c::ToCArguments),
    /// Run a program and record its calls of OpenGL, OpenGL ES, GLX and EGL
    #[command(
        after_help = "What is written survives the program's end, whatever that is: only SIGKILL takes up to a quarter of\n\
                      a second. The program's output, errors and exit code are its own.\n\n\
                      Exit codes: the program's; 1 also if some of its calls or data could not be recorded, 2 also if\n\
                      nothing was recorded or the command failed.\n\n\
                      Example:\n  anytrace apitrace trace -- glxgears\n  \
                      anytrace apitrace trace -o game.trace --backtrace='glDraw*' -- ./game\n  \
                      anytrace apitrace frames game.trace -o frames.html"
    )]
    Trace(trace::TraceArguments),
    /// Write part of a trace: some calls, frames or threads, with events unchanged
    #[command(
        after_help = format!("Without -o, game.trace is trimmed to game-trim.trace. Without --calls and --frames, all calls\n\
                      are kept; with both, calls selected by either.\n\n\
                      {}\n{FRAMESET}\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace trim --frames=10-19 game.trace\n  \
                      anytrace apitrace trim --calls='*/draw,*/frame' --thread=0 \\\n    -o draws.trace game.trace", call_set_help())
    )]
    Trim(trim::TrimArguments),
}
