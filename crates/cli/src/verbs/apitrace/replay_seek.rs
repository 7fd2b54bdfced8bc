//! Late frames without all that is before them: only the calls are repeated that those frames depend on.

use std::path::Path;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{GltrimOptions, plan};
use anytrace_apitrace::tools::program::frames_of;
use anytrace_core::Collect;

use super::opening::{Opened, open_reader};
use crate::arguments::InputArguments;
use crate::failure::Failure;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) enum Seek {
    /// These frames.
    Frames(CallSet),
    /// The frames of these calls, where they are few.
    Calls(CallSet),
}

/// What is repeated for it.
pub(super) struct Found {
    /// The calls that are repeated.
    pub(super) calls: CallSet,
    /// The frames that they make.
    pub(super) frames: CallSet,
    /// How many calls are repeated, of how many up to there.
    pub(super) counts: (u64, u64),
}

/// For frames of calls, at most this part of all frames is worth a plan.
const PART: u64 = 4;

/// Finds the calls on which the frames depend; `None` where everything must be repeated. Damage is not reported: that is
/// done when the calls are repeated.
pub(super) fn seek(seek: &Seek, file: &Path, input: &InputArguments) -> Result<Option<Found>, Failure> {
    let frames = match seek {
        Seek::Frames(frames) => frames.clone(),
        Seek::Calls(calls) => {
            // Sets without an end have pictures of the last frame too: what is before it must be repeated anyway.
            if calls.last() == u64::MAX {
                return Ok(None);
            }
            let Some(mut opened) = open(file, input)? else { return Ok(None) };
            let (frames, all) = frames_of(&mut opened.reader, calls, &mut Collect::default())
                .map_err(|error| Failure::of(&opened.name, &error))?;
            if frames.is_empty() || frames.len() as u64 * PART > all {
                return Ok(None);
            }
            let words: Vec<String> = frames.iter().map(u64::to_string).collect();
            super::call_sets::parse_call_set("--calls", &words)?
        }
    };
    let Some(mut opened) = open(file, input)? else { return Ok(None) };
    let how = GltrimOptions { frames: Some(frames.clone()), ..GltrimOptions::default() };
    let plan = match (plan(&mut opened.reader, &how, &mut Collect::default()), seek) {
        (Ok(plan), _) => plan,
        // Nobody asked for it: everything is repeated, which needs no plan.
        (Err(_), Seek::Calls(_)) => return Ok(None),
        (Err(error), Seek::Frames(_)) => return Err(Failure::of(&opened.name, &error)),
    };
    if plan.wanted == 0 {
        let message = format!("{}: none of the frames exist: the trace has {}", file.display(), plan.frames);
        return Err(Failure::usage(message));
    }
    Ok(Some(Found { calls: plan.kept(), frames, counts: (plan.calls(), plan.totals.calls) }))
}

fn open(file: &Path, input: &InputArguments) -> Result<Option<Opened>, Failure> {
    Ok(open_reader(file, input)?.ok())
}
