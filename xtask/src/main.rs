//! The project's own chores.
//!
//! `cargo xtask test` installs what the tests need and runs them all; the other chores are listed by
//! `cargo xtask`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod bench;
mod callflags;
mod complexity;
mod consumers;
mod fuzz;
mod hostile;
mod licences;
mod packages;
mod properties;
mod shell;
mod soak;
mod test;

use std::process::ExitCode;

const HELP: &str = "cargo xtask CHORE

  test [--no-install]          install what the tests need (Debian, root) and run every test
  properties [--rounds N]      run the property tests N times (10), each time with another random seed
  bench [NAME…] [--megabytes N] [--keep] [--peers] [--against PROGRAM]
                               make the benchmark inputs, run the verbs on them, print a table; with --against run
                               each job by another build, too, and fail where this one takes over 5 % more CPU time
                               (NAME: cacheray, xray, heph, lackey, apitrace, casemate, recorder;
                                --megabytes: size of each input)
  complexity [--scale F] [--all] [--forms] [--verb TEXT] [--binary PATH] [SHAPE…]
                               run every verb on traces of odd shapes in sizes n, 2n and 4n; fails where time, memory
                               or output grows faster than the trace, and where a verb has no shape (SHAPE: the
                               beginning of a name; --forms: every form of --format, too; --all: every row is shown)
  fuzz [--seconds N] [--list] [TARGET…]
                               run the fuzz targets with cargo-fuzz (nightly), N seconds each (60); finds are shown and
                               kept in fuzz/artifacts (--list: only list the targets)
  consumers [--screenshots DIR] [TRACE…]
                               install the programs our timeline outputs are for (npm, pip, apt) below target/consumers
                               and have them read every output of two made-up traces and of TRACE (the examples)
  callflags [--check]          write the table of function flags of the apitrace crate anew
  soak [--seconds N]           run the collector under load for a minute and account for every event
  licences                     check the licence of every dependency against the list
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match arguments.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match chore {
        "test" => test::run(rest),
        "properties" => properties::run(rest),
        "bench" => bench::run(rest),
        "complexity" => complexity::run(rest),
        // Used by it: runs one command under limits and prints what it used.
        "used" => complexity::used(rest),
        "fuzz" => fuzz::run(rest),
        "hostile" => hostile::run(rest),
        "consumers" => consumers::run_all(rest),
        "callflags" => callflags::run(rest),
        "soak" => soak::run(rest),
        "licences" => licences::run(),
        // Used by `bench`: runs one command and prints what it used.
        "measure" => bench::measure::run(rest),
        // Used by it, too: what reading alone takes.
        "read" => bench::measure::read(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}  {}", hostile::USAGE);
            Ok(())
        }
        other => Err(format!("no chore is called {other}\n\n{HELP}  {}\n", hostile::USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
