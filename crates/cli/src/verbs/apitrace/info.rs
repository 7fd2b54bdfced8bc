//! `anytrace apitrace info`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anytrace_apitrace::tools::info::{InfoOptions, TraceInfo, info};
use clap::Args;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::results::LostLast;
use crate::{Verdict, for_each_file, terminal};

/// `apitrace info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Report each frame
    #[arg(long)]
    dump_frames: bool,
    /// Reproduce the errors of apitrace 11.1
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &InfoArguments) -> Result<Verdict, Failure> {
    let how = InfoOptions { has_frames: options.dump_frames, is_compatible: options.compat };
    for_each_file(&options.files, |file| {
        let name = file.display().to_string();
        let mut out = terminal::stdout().json(true);
        let mut opened = match super::opening::open_reader(file, &options.input)? {
            Ok(opened) => opened,
            Err(nowhere) => {
                let nothing = TraceInfo {
                    container_type: if options.compat { "Brotli" } else { "None" },
                    frame_list: options.dump_frames.then(Default::default),
                    ..TraceInfo::default()
                };
                nothing.write(&name, options.compat, &mut out).map_err(|error| Failure::of(&name, &error))?;
                return Ok(nowhere.verdict);
            }
        };
        let mut found =
            info(&mut opened.reader, how, &mut opened.reporter).map_err(|error| Failure::of(&opened.name, &error))?;
        // Of a pipe it is what was read of it.
        found.container_bytes = opened.file_bytes.unwrap_or_else(|| opened.bytes_read.load(Ordering::Relaxed));
        let verdict = opened.verdict()?;
        // apitrace has no key for losses; a trace that lost nothing has apitrace's keys only.
        if opened.lost() > 0 && !options.compat {
            let mut with_lost = LostLast::new(&mut out);
            found.write(&name, false, &mut with_lost).map_err(|error| Failure::of(&name, &error))?;
            with_lost.finish()?;
        } else {
            found.write(&name, options.compat, &mut out).map_err(|error| Failure::of(&name, &error))?;
        }
        out.flush()?;
        Ok(verdict)
    })
}
