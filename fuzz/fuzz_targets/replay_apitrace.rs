//! Any bytes, replayed by a driver that draws nothing and reads all that a driver would: no call reaches it whose data are
//! shorter than the call says.

#![no_main]

use anytrace_apitrace::Reader;
use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_replay::{Nothing, Options, Outlets, Watch, drawable_sizes, replay};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let open = || Reader::new(Input::from_bytes("fuzz", bytes.to_vec()), &OpenOptions::default());
    let nothing = Some(Nothing::Reads);
    let options = Options { nothing, checks_errors: true, compares_answers: true, ..Options::default() };
    let Ok(mut reader) = open() else { return };
    let Ok(sizes) = drawable_sizes(&mut reader, &options.limits, &mut Collect::default()) else { return };
    let Ok(mut reader) = open() else { return };
    let outlets = Outlets { out: &mut std::io::sink(), spans: None };
    let _ = replay(&mut reader, sizes, &options, &mut Watch::default(), outlets, &mut Collect::default());
});
