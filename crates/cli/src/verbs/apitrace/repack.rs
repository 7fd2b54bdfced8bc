//! `anytrace apitrace repack`.

use std::path::PathBuf;

use anytrace_apitrace::tools::repack::{RepackOptions, repack};
use anytrace_apitrace::{Apitrace, Container};
use anytrace_core::text;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::written::must_open;
use crate::{Verdict, open, paint};

/// `apitrace repack`.
#[derive(Debug, Args)]
pub(crate) struct RepackArguments {
    /// Trace to read; - is standard input
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Trace to write, written completely or not at all; - is standard output
    #[arg(value_name = "OUT")]
    to: PathBuf,
    #[command(flatten)]
    packing: PackingArguments,
    /// Compression level, with --container
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "container")]
    level: Option<i32>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    input: InputArguments,
}

/// The container to write: Snappy without any of them, the last of several.
#[derive(Debug, Args)]
struct PackingArguments {
    /// Brotli: smallest and slow; quality 0 to 11 [default: 11]
    #[arg(short = 'b', long, value_name = "QUALITY", num_args = 0..=1, require_equals = true,
          overrides_with_all = ["snappy", "zlib", "zstd", "container"])]
    brotli: Option<Option<i32>>,
    /// Snappy: fastest, and readable by every tool; the default
    #[arg(short = 's', long, overrides_with_all = ["brotli", "zlib", "zstd", "container"])]
    snappy: bool,
    /// gzip; level 0 to 9 [default: 6]
    #[arg(short = 'z', visible_short_alias = 'g', long, visible_alias = "gzip", value_name = "LEVEL", num_args = 0..=1,
          require_equals = true, overrides_with_all = ["brotli", "snappy", "zstd", "container"])]
    zlib: Option<Option<i32>>,
    /// Zstandard with a seek table, for apitrace after 11.1; level 1 to 22 [default: 3]
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          overrides_with_all = ["brotli", "snappy", "zlib", "container"])]
    zstd: Option<Option<i32>>,
    /// Any container
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Container::ALL.map(|(_, name)| name)),
          overrides_with_all = ["brotli", "snappy", "zlib", "zstd"])]
    container: Option<String>,
}

/// Quality that apitrace gives Brotli unless it is given another.
const BROTLI_QUALITY: i32 = 11;

impl RepackArguments {
    fn container(&self) -> (Container, Option<i32>) {
        let packing = &self.packing;
        match (&packing.brotli, &packing.zlib, &packing.zstd, &packing.container) {
            (Some(quality), ..) => (Container::Brotli, Some(quality.unwrap_or(BROTLI_QUALITY))),
            (_, Some(level), ..) => (Container::Gzip, *level),
            (_, _, Some(level), _) => (Container::ZstdSeekable, *level),
            (_, _, _, Some(name)) => (Container::from_name(name).unwrap_or(Container::Snappy), self.level),
            _ => (Container::Snappy, None),
        }
    }
}

pub(crate) fn run(options: &RepackArguments) -> Result<Verdict, Failure> {
    let mut output = Output::create(&options.to, options.force)?;
    let name = options.from.display().to_string();
    let Ok(opened) = super::opening::open_reader(&options.from, &options.input)? else {
        return Err(nothing_to_copy(&name));
    };
    let super::opening::Opened { reader, mut reporter, name, progress, .. } = opened;
    let (container, level) = options.container();
    let threads = open::open_options(&options.input).threads;
    let how = RepackOptions { container, level, workers: if threads > 1 { threads } else { 0 } };
    let done = repack(reader, &how, &mut output, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    drop(progress);
    reporter.print_rest()?;
    // What a trace is lies in its header: bytes without one are none, whatever container they are put in.
    if !done.has_header {
        return Err(nothing_to_copy(&name));
    }
    must_open(&mut output, &Apitrace, 1, (&options.from, &options.to), &options.input)?;
    let verdict = output.commit(reporter.verdict())?;
    if let Some(first) = &done.first_error {
        let name = text::printable(&name);
        let places = if done.errors == 1 { "1 place".to_owned() } else { format!("{} places", done.errors) };
        let joined = match done.gaps.len() {
            0 => String::new(),
            _ => format!("; bytes are missing at {} of the raw stream", offsets(&done.gaps)),
        };
        let message = format!("{name}: copied with damage at {places}, first at {first}{joined}");
        paint::complain("warning", format!("{message}; use `anytrace repair` to write a valid trace"));
    }
    Ok(verdict)
}

fn nothing_to_copy(name: &str) -> Failure {
    Failure::usage(format!("{name}: cannot read a trace header; nothing was written"))
}

/// The first of many offsets.
fn offsets(all: &[u64]) -> String {
    let shown: Vec<_> = all.iter().take(8).map(|offset| format!("{offset:#x}")).collect();
    let more = if all.len() > shown.len() { " and more" } else { "" };
    format!("{}{more}", shown.join(", "))
}
