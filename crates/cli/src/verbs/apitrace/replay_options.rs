//! Options of all verbs that replay, those of `apitrace replay` that measure, and those of apitrace's players that change
//! little or nothing here.

use std::path::{Path, PathBuf};

use anytrace_replay::{MetricSet, Metrics, Nothing, Profile, Sizes};
use clap::{Args, ValueEnum};

/// Seconds of `--watchdog` without a number, as apitrace's.
const PATIENCE: &str = "30";

/// What all verbs that replay have.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// How large drawables are: right, or as apitrace's players make them
    #[arg(long, value_name = "RULE", value_enum, default_value_t = SizeRule::Right)]
    pub(super) size: SizeRule,
    /// Stop if the driver takes longer than this many seconds for one call
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = PATIENCE)]
    pub(super) watchdog: Option<u64>,
    /// Replace files
    #[arg(long)]
    pub(super) force: bool,
}

/// How large drawables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SizeRule {
    /// As recorded
    Right,
    /// As apitrace's players make them
    Peer,
}

impl From<SizeRule> for Sizes {
    fn from(rule: SizeRule) -> Self {
        match rule {
            SizeRule::Right => Self::Right,
            SizeRule::Peer => Self::Peer,
        }
    }
}

/// What is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measure")]
#[allow(clippy::struct_excessive_bools, reason = "options of a command line")]
pub(super) struct ProfileArguments {
    /// Print the time that each call takes on the processor
    #[arg(long)]
    pcpu: bool,
    /// Print the time that each draw takes on the device
    #[arg(long)]
    pgpu: bool,
    /// Print how many samples each draw passes
    #[arg(long)]
    ppd: bool,
    /// Print the memory that each call takes
    #[arg(long)]
    pmem: bool,
    /// Print when each frame began and how long it took
    #[arg(long)]
    pframe_times: bool,
    /// Write what is measured as a timeline instead: x.pftrace for Perfetto, x.json for Chrome, x.heph for all verbs
    /// of this program, and so on, by the extension; the times of calls and draws unless other options say what
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print these metrics of each call, in a table: names, as in "opengl: CPU Duration, GPU Duration"
    #[arg(long, value_name = "METRICS", value_parser = parse_metrics)]
    pcalls: Option<MetricSet>,
    /// Print these metrics of each frame
    #[arg(long, value_name = "METRICS", value_parser = parse_metrics)]
    pframes: Option<MetricSet>,
    /// Print these metrics of each draw
    #[arg(long, value_name = "METRICS", value_parser = parse_metrics)]
    pdrawcalls: Option<MetricSet>,
    /// List the metrics
    #[arg(long)]
    pub(super) list_metrics: bool,
    /// Print how often the trace must be replayed for the metrics: once
    #[arg(long)]
    pub(super) gen_passes: bool,
    /// With --pcpu alone, omit calls other than draws that take less
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 1000)]
    min_cpu_time: u64,
}

/// Metrics of a command line.
fn parse_metrics(text: &str) -> Result<MetricSet, String> {
    MetricSet::parse(text).map_err(|error| error.to_string())
}

impl ProfileArguments {
    pub(super) fn metrics(&self) -> Metrics {
        let set = |set: &Option<MetricSet>| set.unwrap_or_default();
        Metrics { calls: set(&self.pcalls), frames: set(&self.pframes), draws: set(&self.pdrawcalls) }
    }

    pub(super) fn profile(&self) -> Profile {
        let chosen = Profile {
            has_cpu: self.pcpu,
            has_gpu: self.pgpu,
            has_pixels: self.ppd,
            has_memory: self.pmem,
            has_frames: self.pframe_times,
            cpu_min_ns: self.min_cpu_time,
        };
        match &self.output {
            // Calls are where they were on the processor, whatever else is measured of them.
            Some(_) => Profile { has_cpu: true, has_gpu: self.pgpu || !chosen.is_any(), ..chosen },
            None => chosen,
        }
    }

    /// The timeline that is written instead of lines.
    pub(super) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }
}

/// Options with which scripts call apitrace's players.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted as by apitrace's players")]
#[allow(clippy::struct_excessive_bools, reason = "options of a command line")]
pub(super) struct PlayerArguments {
    /// Show no window; none is shown without --window
    #[arg(long)]
    headless: bool,
    /// Do not ask for errors, as is done only with --check
    #[arg(short = 'b', long)]
    benchmark: bool,
    /// Ask for errors and messages after each call
    #[arg(short = 'd', long)]
    debug: bool,
    /// Compress pictures in several threads, as is done anyway
    #[arg(short = 't', long)]
    snapshot_threaded: bool,
    /// Replay with one thread, as is always done
    #[arg(long)]
    singlethread: bool,
    /// Say more; everything is said anyway
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Use two color buffers; what is drawn without a window has one
    #[arg(long)]
    db: bool,
    /// Use one color buffer, as is done anyway
    #[arg(long)]
    sb: bool,
    /// Fill the screen; windows have the size of what is drawn
    #[arg(long)]
    fullscreen: bool,
    /// With --window, wait after the last frame until the window is closed
    #[arg(short = 'w', long)]
    wait: bool,
    /// Go on where a context cannot be made current as it was; done anyway
    #[arg(long)]
    ignore_retvals: bool,
    /// Accept a context of another version; done anyway, and reported
    #[arg(long)]
    no_context_check: bool,
    /// Choose the driver: the device's, that of another device, or one that needs no device
    #[arg(long, value_name = "DRIVER", value_enum)]
    driver: Option<DriverName>,
}

impl PlayerArguments {
    pub(super) fn checks_errors(&self) -> bool {
        self.debug
    }

    /// Whether nothing is drawn.
    pub(super) fn nothing(&self) -> Option<Nothing> {
        self.driver.filter(|driver| *driver == DriverName::None).map(|_| Nothing::Ignores)
    }

    pub(super) fn waits(&self) -> bool {
        self.wait
    }

    /// Variables for the process that replays: by them Mesa chooses its driver.
    pub(super) fn variables(&self) -> Option<(&'static str, &'static str)> {
        Some(match self.driver? {
            DriverName::None => return None,
            DriverName::Hw | DriverName::Igpu => ("DRI_PRIME", "0"),
            DriverName::Dgpu => ("DRI_PRIME", "1"),
            DriverName::Sw => ("LIBGL_ALWAYS_SOFTWARE", "1"),
        })
    }
}

/// Drivers as apitrace's players call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DriverName {
    /// The device's
    Hw,
    /// That of a discrete device
    Dgpu,
    /// That of an integrated device
    Igpu,
    /// Mesa's software driver
    Sw,
    /// No driver: what reading the trace and preparing its calls costs
    None,
}
