//! `anytrace apitrace …`: options and output of apitrace's own tools, one file a verb.

mod diff;
mod diff_images;
mod diff_state;
mod dump;
mod edited;
mod from_jsonl;
mod gltrim;
mod index;
mod info;
mod jsonl;
mod leaks;
mod opening;
mod pickle;
mod repack;
mod sed;
mod state;
mod stats;
mod to_c;
mod trim;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct ApitraceArguments {
    /// What to do.
    #[command(subcommand)]
    verb: ApitraceVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum ApitraceVerb {
    /// Compare two traces, frame by frame, call by call, argument by argument
    #[command(after_help = "CALLSET: as for `anytrace apitrace dump`.\n\n\
                      Exit codes: 0 the traces are equal, 1 they differ or one is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff before.trace after.trace\n  \
                      anytrace apitrace diff -t python --call-nos --suppress-common-lines before.trace after.trace")]
    Diff(diff::DiffArguments),
    /// Compare two sets of snapshots and show where they differ
    #[command(after_help = "Snapshots of both sets that have the same name after the prefix are pairs.\n\n\
                      Exit codes: 0 all match, 1 some do not, are missing or cannot be read, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff-images -o page.html before/ after/")]
    DiffImages(diff_images::DiffImagesArguments),
    /// Compare two dumps of the state of GL, made by `apitrace replay -D CALL`
    #[command(after_help = "Exit codes: 0 the states are equal, 1 they differ, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace diff-state before.json after.json")]
    DiffState(diff_state::DiffStateArguments),
    /// Print the calls as `apitrace dump` does, byte for byte
    #[command(
        after_help = "CALLSET: items separated by commas, each @FILE or ranges: N, N-M, N-, * (with /STEP or /KIND) or a\n\
                      KIND: frame, rendertarget or fbo, render or draw. Options given twice are united.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace dump --calls='draw,0-99/10' game.trace\n  \
                      anytrace apitrace dump -v --grep='^glTex' --thread-ids game.trace"
    )]
    Dump(dump::DumpArguments),
    /// Make a trace of JSON lines of calls, edited or not
    #[command(after_help = "Exit codes: 0 fine, 1 a line is no call, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl game.trace | sed 's/\"GL_LINEAR\",\"value\":9729/\"GL_NEAREST\",\"value\":9728/' |\n    \
                      anytrace apitrace from-jsonl - -o nearest.trace")]
    FromJsonl(from_jsonl::FromJsonlArguments),
    /// Write some frames and what they depend on, so that they replay
    #[command(after_help = "Without -o the part of game.trace is game-trim.trace. It holds a frame in which all is\n\
                      prepared, then those asked for. FRAMESET: numbers, ranges N-M and N-, separated by\n\
                      commas, as for trim.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace gltrim -f 120 game.trace\n  \
                      anytrace apitrace gltrim -f 100-109,200 --explain -o part.trace game.trace")]
    Gltrim(gltrim::GltrimArguments),
    /// Make an index of a trace, so that other verbs find late calls and frames at once
    #[command(
        after_help = "The index lies beside the trace and is found there by the verbs that gain by it; they say so\n\
                      when it does not fit the trace, and read from the start. Snappy, zstd of several frames and no\n\
                      container can be sought.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged or the index does not fit, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace index game.trace\n  \
                      anytrace apitrace dump --calls=9000000-9000010 game.trace\n  \
                      anytrace apitrace index --show --frames game.trace"
    )]
    Index(index::IndexArguments),
    /// Tell version, container, interface and frames as JSON, as `apitrace info` does
    #[command(after_help = "Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                            Example:\n  anytrace apitrace info --dump-frames game.trace")]
    Info(info::InfoArguments),
    /// Write each call as a JSON object in a line, with all that is known of it
    #[command(after_help = "CALLSET: as `anytrace apitrace dump --help` tells.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl --blobs=sha256 game.trace | jq -r 'select((.flags//0)/8%2==1).name'")]
    Jsonl(jsonl::JsonlArguments),
    /// Say which objects a program makes and never deletes: all kinds, per share group and context
    #[command(after_help = "Exit codes: 0 no leaks, 1 leaks or damage, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace leaks game.trace\n  \
                      anytrace apitrace leaks --format json game.trace | jq .by_kind")]
    Leaks(leaks::LeaksArguments),
    /// Write each call as a pickle of Python, as `apitrace pickle` does
    #[command(after_help = "CALLSET: as `anytrace apitrace dump --help` tells.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace pickle --symbolic --plain-pointers game.trace > game.pickles\n  \
                      anytrace apitrace pickle --calls='*/frame' game.trace | python3 my-script.py")]
    Pickle(pickle::PickleArguments),
    /// Write a trace in another container: the same raw stream to the byte
    #[command(
        after_help = "-z is gzip, as in apitrace 11.1; later versions take it for Zstandard and have -g for gzip, which is\n\
                      gzip here too. Of several containers the last counts. apitrace 11.1 does not read Zstandard, and no\n\
                      apitrace reads a trace without a container (--container=raw).\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace repack game.trace game.snappy.trace\n  \
                      anytrace apitrace repack --zstd=19 game.trace small.trace"
    )]
    Repack(repack::RepackArguments),
    /// Replace strings, names of enumerations, flags and pointers, and set properties; all else stays as it is
    #[command(after_help = "Without -o the edited game.trace is game-sed.trace.\n\n\
                      EXPRESSION: s/SEARCH/REPLACE/ with any character for the slash; either part may be @file(PATH).\n\
                      Whole values are replaced: strings, names that enumerations show, flags of bit masks (by a flag, a\n\
                      number, several joined by |, or nothing), and pointers where SEARCH is 0x and a number.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace sed -e s/GL_LINEAR/GL_NEAREST/ --calls=100-200 game.trace\n  \
                      anytrace apitrace sed -e 's,@file(old.glsl),@file(new.glsl),' --property=note=shader game.trace")]
    Sed(sed::SedArguments),
    /// Show OpenGL's state at a call without replaying: bindings, parameters, objects, shaders, uniforms
    #[command(after_help = "The call itself is included. What no call told is said to be initial or unknown.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace state --call 4711 game.trace\n  \
                      anytrace apitrace state --call 4711 --format json game.trace | jq '.contexts[].parameters.GL_BLEND'\n  \
                      anytrace apitrace state --call 4711 --dump-shaders shaders game.trace")]
    State(state::StateArguments),
    /// Count calls, draws, state changes and uploads, by function, frame, thread or state
    #[command(after_help = "CALLSET: as for dump; of --frames the numbers are those of frames.\n\n\
                      A state change is redundant when the context has that state already, as far as the trace says so.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace stats --sort=uploads --top=10 game.trace\n  \
                      anytrace apitrace stats --by=state game.trace\n  \
                      anytrace apitrace stats --by=frame --format=csv --plot=frames.svg game.trace > frames.csv")]
    Stats(stats::StatsArguments),
    /// Write a program in C that makes the OpenGL calls again, without a window
    #[command(
        after_help = "DIR gets the source, data.bin, a Makefile and a README. CALLSET and FRAMESET: as for `anytrace\n\
                      apitrace trim`; with both, calls of either.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace to-c -o game-c game.trace\n  \
                      make -C game-c && game-c/replay --snapshots frame."
    )]
    ToC(to_c::ToCArguments),
    /// Write a part of a trace: some calls, frames or threads, each event as it is
    #[command(
        after_help = "Without -o the part of game.trace is game-trim.trace. Without --calls and --frames all calls are\n\
                      kept; with both, those of either.\n\n\
                      CALLSET: items separated by commas, each @FILE or ranges: N, N-M, N-, * (with /STEP or /KIND) or a\n\
                      KIND: frame, rendertarget or fbo, render or draw. FRAMESET: the same with numbers of frames; a kind\n\
                      chooses among their calls. A call belongs to the frame in which it is left.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace trim --frames=10-19 game.trace\n  \
                      anytrace apitrace trim --calls='*/draw,*/frame' --thread=0 -o draws.trace game.trace"
    )]
    Trim(trim::TrimArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &ApitraceArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        ApitraceVerb::Diff(options) => diff::run(options),
        ApitraceVerb::DiffImages(options) => diff_images::run(options),
        ApitraceVerb::DiffState(options) => diff_state::run(options),
        ApitraceVerb::Dump(options) => dump::run(options),
        ApitraceVerb::FromJsonl(options) => from_jsonl::run(options),
        ApitraceVerb::Gltrim(options) => gltrim::run(options),
        ApitraceVerb::Index(options) => index::run(options),
        ApitraceVerb::Info(options) => info::run(options),
        ApitraceVerb::Jsonl(options) => jsonl::run(options),
        ApitraceVerb::Leaks(options) => leaks::run(options),
        ApitraceVerb::Pickle(options) => pickle::run(options),
        ApitraceVerb::Repack(options) => repack::run(options),
        ApitraceVerb::Sed(options) => sed::run(options),
        ApitraceVerb::State(options) => state::run(options),
        ApitraceVerb::Stats(options) => stats::run(options),
        ApitraceVerb::ToC(options) => to_c::run(options),
        ApitraceVerb::Trim(options) => trim::run(options),
    }
}
