//! `anytrace apitrace replay` and `anytrace apitrace dump-images`.
//!
//! The verb runs itself once more: that process replays, this one waits and says where it ended.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::program::Wanted;
use anytrace_core::{Outcome, SpanSink, text};
use anytrace_export::timeline::Timeline;
use anytrace_replay::{Ended, Options, Outlets, PictureFormat, Pictures, Replayed, Watch, drawable_sizes, every_frame};
use clap::{Args, ValueEnum};

use super::call_sets::parse_call_set;
use super::replay_bisect::Bisect;
use super::replay_options::{PlayerArguments, ProfileArguments, RunArguments, SizeRule};
use super::replay_seek::{Found, Seek};
use super::replay_sums;
use super::replay_timeline::TimelineFile;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::LateSpool;
use crate::{Verdict, open, paint, terminal, verbs};

/// Names the file through which the replaying process says where it is.
const WATCH: &str = "ANYTRACE_REPLAY_WATCH";

/// `apitrace replay`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "options of a command line")]
pub(crate) struct ReplayArguments {
    /// Trace
    #[arg(value_name = "TRACE", required_unless_present_any = ["list_devices", "list_metrics", "bisect"])]
    file: Option<PathBuf>,
    /// Write pictures: PREFIX, the call's number and .png. - is standard output
    #[arg(short = 's', long, value_name = "PREFIX")]
    snapshot_prefix: Option<PathBuf>,
    /// Take pictures of these calls instead of all frames. May be repeated
    #[arg(short = 'S', long = "snapshot", value_name = "CALLSET", allow_hyphen_values = true)]
    snapshot: Vec<String>,
    /// Replay only these frames, counted from 0, and what they depend on. May be repeated
    #[arg(long, alias = "frame", value_name = "FRAMESET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// Form of the pictures; on standard output PNM unless given
    #[arg(long, value_name = "FORMAT", value_enum, ignore_case = true)]
    snapshot_format: Option<Form>,
    /// Keep alpha
    #[arg(long)]
    snapshot_alpha: bool,
    /// Write only every N-th picture
    #[arg(long, value_name = "N", default_value_t = 0)]
    snapshot_interval: u64,
    /// Show the window even while a framebuffer object is drawn to
    #[arg(long)]
    snapshot_force_backbuffer: bool,
    /// Write all color buffers that are drawn to, depth and stencil: files end with -mrt0, -mrt1, -z, -s
    #[arg(short = 'm', long)]
    mrt: bool,
    /// Threads that compress pictures
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Name files by calls; otherwise by the pictures' own numbers
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "yes", default_missing_value = "yes", value_parser = super::dump::parse_bool)]
    call_nos: bool,
    /// Write the MD5 sums of the pictures to a JSON file
    #[arg(long, value_name = "FILE")]
    sums: Option<PathBuf>,
    /// Compare the pictures with sums that --sums wrote, or with a folder of PNG files; exit code 1 if they differ
    #[arg(long, value_name = "FILE|DIR")]
    against: Option<PathBuf>,
    /// With --bisect, or a folder for --against: the first picture that differs, with the pixels that differ in red
    #[arg(long, value_name = "FILE")]
    difference: Option<PathBuf>,
    /// Find the first frame and the first draw whose pixels differ between two drivers, sizes or traces: device=N,
    /// driver=NAME, size=RULE, VARIABLE=VALUE or a trace, each; exit code 1 if one does
    #[arg(long, num_args = 2, value_names = ["GOOD", "BAD"], conflicts_with_all = super::replay_bisect::OTHERS)]
    bisect: Vec<String>,
    /// Print the driver's state after this call, and stop
    #[arg(short = 'D', long, value_name = "CALL", conflicts_with_all = ["snapshot_prefix", "sums", "against", "loops"])]
    dump_state: Option<u64>,
    /// Form of the state: json, or ubjson, Universal Binary JSON, in which pictures are bytes
    #[arg(long, value_name = "FORMAT", value_parser = parse_dump_format, default_value = "json", requires = "dump_state",
          help_heading = "Accepted as by apitrace's players")]
    dump_format: DumpFormat,
    /// Do not repeat these calls. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    ignore_calls: Vec<String>,
    /// Ask for errors and messages after each call, and compare the driver's answers with those in the trace: errors,
    /// framebuffers, shaders, programs, locations; exit code 1 if they differ
    #[arg(long)]
    check: bool,
    /// Replay each thread of the trace in one of its own; calls are made in the trace's order all the same
    #[arg(long, conflicts_with = "window")]
    recorded_threads: bool,
    /// Use the core profile where the trace asks for nothing
    #[arg(long)]
    core: bool,
    /// Replay on this device of EGL; see --list-devices
    #[arg(long, value_name = "N")]
    device: Option<usize>,
    /// List the devices of EGL
    #[arg(long)]
    list_devices: bool,
    /// Show the frames in a window of an X server; the replay ends when it is closed
    #[arg(long, conflicts_with_all = ["headless", "bisect"])]
    window: bool,
    /// A frame takes at least so many microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    min_frame_duration: u64,
    /// Do nothing for so many microseconds after each frame
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    per_frame_delay: u64,
    /// Repeat the last frame so often; without a number, or with a negative one, until interrupted
    #[arg(long = "loop", value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "-1",
          allow_hyphen_values = true)]
    loops: Option<i64>,
    /// Drawables have so many samples a pixel
    #[arg(long, value_name = "N", default_value_t = 1)]
    samples: u32,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    profile: ProfileArguments,
    #[command(flatten)]
    player: PlayerArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// `apitrace dump-images`.
#[derive(Debug, Args)]
pub(crate) struct DumpImagesArguments {
    /// Trace
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// What file names begin with [default: the trace's name without its extension, and a dot]
    #[arg(short, long, value_name = "PREFIX")]
    output: Option<PathBuf>,
    /// Take pictures of these calls instead of all frames. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Repeat all calls; otherwise of a few --calls only what their frames depend on
    #[arg(long)]
    whole: bool,
    /// Name files by calls; otherwise by the pictures' own numbers
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "yes", default_missing_value = "yes", value_parser = super::dump::parse_bool)]
    call_nos: bool,
    /// Write all color buffers that are drawn to, depth and stencil: files end with -mrt0, -mrt1, -z, -s
    #[arg(short = 'm', long)]
    mrt: bool,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// PNG files
    #[value(name = "PNG")]
    Png,
    /// Portable anymap
    #[value(name = "PNM")]
    Pnm,
    /// Pixels alone
    #[value(name = "RGB")]
    Rgb,
    /// MD5 sum of the pixels
    #[value(name = "MD5")]
    Md5,
}

/// Forms of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DumpFormat {
    Json,
    Ubjson,
}

/// What the verbs replay.
pub(super) struct Job<'a> {
    file: &'a Path,
    input: &'a InputArguments,
    pub(super) options: Options,
    sums: Option<&'a Path>,
    against: Option<&'a Path>,
    difference: Option<&'a Path>,
    timeline: Option<&'a Path>,
    state_form: DumpFormat,
    force: bool,
    patience: Option<Duration>,
    /// Frames that are replayed alone.
    seek: Option<Seek>,
    /// For the process that replays.
    variables: Option<(&'static str, &'static str)>,
}

pub(crate) fn run(options: &ReplayArguments) -> Result<Verdict, Failure> {
    if options.list_devices {
        return list_devices();
    }
    if options.profile.list_metrics {
        write!(terminal::stdout(), "{}", anytrace_replay::list_of_metrics())?;
        return Ok(Verdict::Fine);
    }
    if options.profile.gen_passes {
        writeln!(terminal::stdout(), "1")?;
        return Ok(Verdict::Fine);
    }
    if let [good, bad] = options.bisect.as_slice() {
        return bisect(options, [good, bad]);
    }
    let file = options.file.as_deref().ok_or_else(|| Failure::usage("replay needs a trace"))?;
    let set = |texts: &[String], option: &str| -> Result<Option<CallSet>, Failure> {
        if texts.is_empty() { Ok(None) } else { parse_call_set(option, texts).map(Some) }
    };
    let is_stdout = options.snapshot_prefix.as_deref() == Some("-".as_ref());
    let format = match options.snapshot_format {
        Some(Form::Png) => PictureFormat::Png,
        Some(Form::Pnm) => PictureFormat::Pnm,
        Some(Form::Rgb) => PictureFormat::Rgb,
        Some(Form::Md5) => PictureFormat::Md5,
        None if is_stdout => PictureFormat::Pnm,
        None => PictureFormat::Png,
    };
    one_on_stdout(options, is_stdout)?;
    let calls = set(&options.snapshot, "--snapshot")?;
    let takes = options.snapshot_prefix.is_some() || options.sums.is_some() || options.against.is_some();
    let is_folder = options.against.as_deref().is_none_or(Path::is_dir);
    if options.difference.is_some() && (options.against.is_none() || !is_folder) {
        return Err(Failure::usage(
            "--difference needs the pictures themselves: give --against a folder of them, or --bisect",
        ));
    }
    if !takes && calls.is_some() {
        return Err(Failure::usage("--snapshot takes pictures: say where they go, with -s, --sums or --against"));
    }
    let pictures = takes.then(|| Pictures {
        calls: calls.unwrap_or_else(every_frame),
        format,
        prefix: options.snapshot_prefix.clone().filter(|_| !is_stdout),
        writes: options.snapshot_prefix.is_some(),
        has_sums: options.sums.is_some() || options.against.is_some(),
        by_call: options.call_nos,
        has_alpha: options.snapshot_alpha,
        interval: options.snapshot_interval,
        is_window: options.snapshot_force_backbuffer,
        has_parts: options.mrt,
        frames: None,
        expected: None,
        jobs: jobs(options.jobs),
        force: options.run.force,
    });
    let job = Job {
        options: Options {
            wanted: Wanted {
                ignored: set(&options.ignore_calls, "--ignore-calls")?,
                // A negative number: without end.
                loops: options.loops.map_or(0, |times| u64::try_from(times).unwrap_or(u64::MAX)),
                last_call: options.dump_state,
                ..Wanted::default()
            },
            pictures,
            sizes: options.run.size.into(),
            device: options.device,
            nothing: options.player.nothing(),
            is_core: options.core,
            window: options.window.then(|| text::printable(&file.display().to_string())),
            waits: options.player.waits(),
            frame_time_min: Duration::from_micros(options.min_frame_duration),
            frame_delay: Duration::from_micros(options.per_frame_delay),
            profile: options.profile.profile(),
            metrics: options.profile.metrics(),
            samples: options.samples,
            strip: None,
            state_at: options.dump_state,
            checks_errors: options.check || options.player.checks_errors(),
            compares_answers: options.check,
            has_threads: options.recorded_threads,
            limits: open::open_options(&options.input).limits,
        },
        sums: options.sums.as_deref(),
        against: options.against.as_deref(),
        difference: options.difference.as_deref(),
        timeline: options.profile.output(),
        state_form: options.dump_format,
        seek: set(&options.frames, "--frames")?.map(Seek::Frames),
        variables: options.player.variables(),
        ..Job::new(file, &options.input, &options.run)
    };
    job.run()
}

/// `--bisect`: everything else is for both sides.
fn bisect(options: &ReplayArguments, sides: [&str; 2]) -> Result<Verdict, Failure> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |name: &str, value: String| words.push(format!("--{name}={value}").into());
    let is_of_side = |name: &str| sides.iter().any(|side| side.split_once('=').is_some_and(|(key, _)| key == name));
    add("samples", options.samples.to_string());
    options.device.iter().filter(|_| !is_of_side("device")).for_each(|device| add("device", device.to_string()));
    options.ignore_calls.iter().for_each(|set| add("ignore-calls", set.clone()));
    options.run.watchdog.iter().for_each(|seconds| add("watchdog", seconds.to_string()));
    if options.run.size == SizeRule::Peer && !is_of_side("size") {
        add("size", "peer".to_owned());
    }
    if options.core {
        words.push("--core".into());
    }
    let (trace, difference, force) = (options.file.as_deref(), options.difference.as_deref(), options.run.force);
    Bisect { sides, trace, words, difference, force }.run()
}

/// Refuses two results on standard output, where nobody could tell them apart.
fn one_on_stdout(options: &ReplayArguments, has_pictures: bool) -> Result<(), Failure> {
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some("-".as_ref());
    let results = [
        (has_pictures, "--snapshot-prefix=-"),
        (options.dump_state.is_some(), "--dump-state"),
        (is_stdout(&options.sums), "--sums=-"),
        (is_stdout(&options.difference), "--difference=-"),
        (options.against.is_some(), "--against"),
        (
            options.profile.profile().is_any() && options.profile.output().is_none_or(|path| path == Path::new("-")),
            "a measure",
        ),
        (options.profile.metrics().is_any(), "a table of metrics"),
    ];
    let mut results = results.iter().filter_map(|(is_wanted, name)| is_wanted.then_some(name));
    match (results.next(), results.next()) {
        (Some(first), Some(second)) => {
            Err(Failure::usage(format!("{first} and {second} both write to standard output: give one of them a file")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn dump_images(options: &DumpImagesArguments) -> Result<Verdict, Failure> {
    let prefix = match &options.output {
        Some(prefix) => prefix.clone(),
        None => {
            let mut name = OsString::from(options.file.file_stem().unwrap_or_default());
            name.push(".");
            name.into()
        }
    };
    let calls = if options.calls.is_empty() { every_frame() } else { parse_call_set("--calls", &options.calls)? };
    let seek = (!options.whole).then(|| Seek::Calls(calls.clone()));
    let pictures = Pictures {
        calls,
        prefix: Some(prefix),
        writes: true,
        has_sums: false,
        by_call: options.call_nos,
        has_parts: options.mrt,
        jobs: jobs(None),
        force: options.run.force,
        ..Pictures::default()
    };
    let mut job = Job { seek, ..Job::new(&options.file, &options.input, &options.run) };
    job.options.pictures = Some(pictures);
    job.run()
}

fn parse_dump_format(text: &str) -> Result<DumpFormat, String> {
    match text {
        "json" => Ok(DumpFormat::Json),
        "ubjson" => Ok(DumpFormat::Ubjson),
        _ => Err("expected json or ubjson".to_owned()),
    }
}

/// Threads for pictures.
fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

fn list_devices() -> Result<Verdict, Failure> {
    let mut out = terminal::stdout();
    for (number, name) in anytrace_replay::devices().map_err(|error| Failure::of("EGL", &error))?.iter().enumerate() {
        writeln!(out, "{number} {}", text::printable(name))?;
    }
    Ok(Verdict::Fine)
}

/// What is done with a replay: the trace's name, what was replayed, the verdict of reading the trace.
type Done<'a> = &'a dyn Fn(&str, &Replayed, Verdict) -> Result<(), Failure>;

impl<'a> Job<'a> {
    /// A trace, replayed without pictures.
    pub(super) fn new(file: &'a Path, input: &'a InputArguments, run: &RunArguments) -> Self {
        Self {
            file,
            input,
            options: Options { sizes: run.size.into(), limits: open::open_options(input).limits, ..Options::default() },
            sums: None,
            against: None,
            difference: None,
            timeline: None,
            state_form: DumpFormat::Json,
            force: run.force,
            patience: run.watchdog.map(Duration::from_secs),
            seek: None,
            variables: None,
        }
    }

    fn run(&self) -> Result<Verdict, Failure> {
        self.run_with(&|_, done, _| self.report(done))
    }

    /// Replays in another process, which does the rest with what it replayed.
    pub(super) fn run_with(&self, done: Done<'_>) -> Result<Verdict, Failure> {
        match std::env::var_os(WATCH) {
            Some(path) => self.replay(Path::new(&path), done),
            None => self.supervise(),
        }
    }

    /// Has another process replay.
    fn supervise(&self) -> Result<Verdict, Failure> {
        if self.file == Path::new("-") {
            return Err(Failure::usage("replay reads a trace twice: give it a file, not standard input"));
        }
        let failed = |error: std::io::Error| Failure::usage(format!("cannot start the replaying process: {error}"));
        let file = tempfile::NamedTempFile::new().map_err(failed)?;
        let watch = Watch::create(file.path()).map_err(failed)?;
        let mut arguments = std::env::args_os();
        let own_name = arguments.next().unwrap_or_default();
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        std::os::unix::process::CommandExt::arg0(&mut command, own_name);
        command.args(arguments).env(WATCH, file.path()).envs(self.variables);
        let at = |call: &Option<(u64, String)>| match call {
            Some((number, name)) => format!("call {number} {name}"),
            None => "before the first call".to_owned(),
        };
        let name = text::printable(&self.file.display().to_string());
        match anytrace_replay::supervise(&mut command, &watch, self.patience).map_err(failed)? {
            Ended::Exited(0) => Ok(Verdict::Fine),
            Ended::Exited(1) => Ok(Verdict::Breach),
            Ended::Exited(_) => Ok(Verdict::Failed),
            Ended::Crashed { signal: 9, call } => {
                Err(Failure::breach(format!("{name}: {}: the replaying process was killed (SIGKILL)", at(&call))))
            }
            Ended::Crashed { signal: 2 | 15, .. } => Ok(Verdict::Failed),
            Ended::Crashed { signal, call } => {
                Err(Failure::breach(format!("{name}: {}: the driver crashed ({})", at(&call), signal_name(signal))))
            }
            Ended::Hung { call } => {
                let seconds = self.patience.unwrap_or_default().as_secs();
                Err(Failure::breach(format!("{name}: {}: the driver took more than {seconds} s", at(&call))))
            }
        }
    }

    /// Replays in this process.
    fn replay(&self, watch: &Path, finish: Done<'_>) -> Result<Verdict, Failure> {
        anytrace_replay::end_with_parent();
        let before = self.against.map(replay_sums::load).transpose()?;
        let out = self.sums.map(|path| crate::output::Output::create(path, self.force)).transpose()?;
        let mut watch = Watch::open(watch).map_err(|error| Failure::usage(format!("{WATCH}: {error}")))?;
        let Ok(mut first) = super::opening::open_reader(self.file, self.input)? else {
            return Err(Failure::breach(format!("{}: no calls; nothing was replayed", self.file.display())));
        };
        // What is damaged is reported when it is replayed.
        let mut silence = anytrace_core::Collect::default();
        let sizes = drawable_sizes(&mut first.reader, &self.options.limits, &mut silence)
            .map_err(|error| Failure::of(&first.name, &error))?;
        drop(first);
        let found = self.seek.as_ref().map(|seek| super::replay_seek::seek(seek, self.file, self.input));
        let found = found.transpose()?.flatten();
        let mut how = self.options.clone();
        if let (Some(pictures), Some(_)) = (&mut how.pictures, self.difference) {
            pictures.expected.clone_from(&before);
        }
        if let Some(found) = &found {
            how.wanted.calls = Some(found.calls.clone());
            how.wanted.last_frame = Some(found.frames.last());
            if let Some(pictures) = &mut how.pictures {
                pictures.frames = Some(found.frames.clone());
            }
        }
        let Ok(mut opened) = super::opening::open_reader(self.file, self.input)? else {
            return Ok(Verdict::Breach);
        };
        let mut file = self.timeline.map(|path| TimelineFile::create(path, self.file, self.force)).transpose()?;
        let mut spool = LateSpool::default();
        let mut timeline = file.as_mut().map(|file| file.open(&mut spool));
        let done = {
            let spans = timeline.as_mut().map(|timeline| timeline as &mut dyn SpanSink);
            let outlets = Outlets { out: &mut terminal::stdout(), spans };
            anytrace_replay::replay(&mut opened.reader, sizes, &how, &mut watch, outlets, &mut opened.reporter)
        };
        let done = done.map_err(|error| Failure::of(&opened.name, &error))?;
        let written = timeline.map(|mut timeline| timeline.finish().map(|()| timeline.found())).transpose();
        let written = written.map_err(|error| Failure::of(&opened.name, &error))?;
        let mut verdict = opened.verdict()?;
        drop(opened.progress);
        self.print_notes(&opened.name, &done);
        if !done.differences.is_empty() {
            verdict = verdict.max(Verdict::Breach);
        }
        finish(&opened.name, &done, verdict)?;
        if let Some(Found { counts: (repeated, all), .. }) = found
            && !self.is_quiet()
        {
            writeln!(terminal::stdout(), "Repeated {repeated} of {all} calls: those that the frames depend on")?;
        }
        if let (Some(file), Some(written)) = (file, written) {
            file.commit(written, verdict)?;
        }
        if let Some(mut out) = out {
            out.write_all(anytrace_replay::to_json(&done.sums).as_bytes()).map_err(|error| Failure::output(&error))?;
            out.commit(verdict)?;
        }
        if let Some(before) = before {
            verdict = verdict.max(replay_sums::report(&before, &done.sums)?);
            if let (Some(file), Some(folder), Some(other)) = (self.difference, self.against, &done.other) {
                replay_sums::write_difference(file, folder, other, self.force)?;
            }
        }
        Ok(verdict)
    }

    /// A result goes to standard output: nothing else does.
    fn is_quiet(&self) -> bool {
        let is_stdout = |path: Option<&Path>| path == Some("-".as_ref());
        self.options.state_at.is_some()
            || is_stdout(self.sums)
            || is_stdout(self.timeline)
            || self.options.pictures.as_ref().is_some_and(|pictures| pictures.writes && pictures.prefix.is_none())
    }

    /// Says what was not done, and what differs.
    fn print_notes(&self, name: &str, done: &Replayed) {
        for difference in &done.differences {
            paint::complain("error", format!("{}: {difference}", text::printable(name)));
        }
        if !done.notes.is_empty() {
            let outcome = Outcome {
                records_read: done.calls,
                records_written: done.repeated,
                bytes_lost: 0,
                notes: done.notes.clone(),
            };
            verbs::repair::print_outcome(name, &outcome);
        }
    }

    fn report(&self, done: &Replayed) -> Result<(), Failure> {
        if let Some(call) = self.options.state_at {
            let name = self.file.display();
            let state = done.state.as_ref();
            let state = state.ok_or_else(|| Failure::breach(format!("{name}: no state at call {call}")))?;
            match self.state_form {
                DumpFormat::Json => writeln!(terminal::stdout().json(true), "{state:#}")?,
                DumpFormat::Ubjson => terminal::stdout().write_all(&anytrace_replay::ubjson(state))?,
            }
            return Ok(());
        }
        if self.is_quiet() {
            return Ok(());
        }
        let pictures = self.options.pictures.as_ref();
        let mut out = terminal::stdout();
        if let Some(prefix) = pictures.and_then(|pictures| pictures.prefix.as_ref()) {
            let prefix = prefix.display().to_string();
            writeln!(out, "Wrote {} pictures: {}…", done.pictures, text::printable(&prefix))?;
        }
        if done.threads > 1 {
            writeln!(out, "Replayed in {} threads", done.threads)?;
        }
        let seconds = done.time.as_secs_f64();
        let rate = if seconds > 0.0 { done.frames as f64 / seconds } else { 0.0 };
        writeln!(out, "Rendered {} frames in {seconds:.6} secs, average of {rate:.3} fps", done.frames)?;
        Ok(())
    }
}

/// The names of the signals that end programs.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
