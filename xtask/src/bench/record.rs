//! Large XRay traces recorded from a real program: Debian's clang builds it, LLVM's runtime writes the trace.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages;
use crate::shell::{has_program, root, run};

/// The compiler, and the packages it and its runtime are in.
const CLANG: &str = "clang++-14";
const PACKAGES: [&str; 2] = ["clang-14", "libclang-rt-14-dev"];

/// True for inputs that are recorded where a compiler is at hand.
pub(super) fn is_recorded(input: &str) -> bool {
    input.starts_with("xray-")
}

/// Builds the program and records a trace of about that size into `path`.
///
/// Five threads, 26 functions; one buffer a thread, or, for `xray-buffers`, many of 64 KiB. `xray-one` is one thread of Lua.
pub(super) fn record(input: &str, megabytes: u64, folder: &Path, path: &Path) -> Result<(), String> {
    if !has_program(CLANG) {
        packages::install(&PACKAGES);
    }
    if !has_program(CLANG) {
        return Err(format!("no {CLANG} to build the recorded program with"));
    }
    if input == "xray-one" {
        return crate::programs::calls::lua(megabytes, path);
    }
    let programs = root().join("xtask/src/bench/programs");
    let program = folder.join("xray-big");
    let mut compile = Command::new(CLANG);
    compile.args(["-std=c++17", "-O1", "-fxray-instrument", "-fxray-instruction-threshold=1", "-pthread"]);
    compile.args(["-Wl,--wrap=main", "-o"]).arg(&program).arg(programs.join("big.cpp")).arg(programs.join("xrt.cpp"));
    run(&mut compile)?;
    // 155 MB for 100,000 rounds of four threads; linear.
    let rounds = megabytes * 100_000 / 155;
    let buffers = match input {
        "xray-buffers" => "buffer_size=65536 buffer_max=60000".to_owned(),
        _ => format!("buffer_size={} buffer_max=6", megabytes * 300_000),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let base = format!("{name}.log.");
    let mut trace = Command::new(&program);
    trace.args(["4", &rounds.to_string()]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    trace.env("XRAY_OPTIONS", format!("xray_logfile_base={base}"));
    trace.env("DEMO_OPTS", format!("func_duration_threshold_us=0 {buffers}"));
    run(&mut trace)?;
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let log = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|found| found.file_name().is_some_and(|found| found.to_string_lossy().starts_with(&base)))
        .ok_or("the program wrote no trace")?;
    std::fs::rename(log, path).map_err(|error| error.to_string())
}
