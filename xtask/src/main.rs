//! The project's own chores.
//!
//! `cargo xtask test` installs what the tests need and runs them all; the other chores are listed by
//! `cargo xtask`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod account;
mod bench;
mod book;
mod casemate_tables;
mod cluster;
mod complexity;
mod consumers;
mod dist;
mod fuzz;
mod hostile;
mod licences;
mod lines;
mod new_format;
mod packages;
mod pictures;
mod programs;
mod properties;
mod python;
mod replay;
mod shell;
mod soak;
mod tables;
mod tar;
mod test;
mod viewer;

use std::process::ExitCode;

const HELP: &str = "cargo xtask CHORE

  test [--no-install]          install what the tests need (Debian, root) and run every test
  properties [--rounds N]      run the property tests N times (10), each time with a different random seed
  bench [NAME…] [--megabytes N] [--keep] [--peers] [--against PROGRAM] [--programs FOLDER] [--library FOLDER]
                               make the benchmark inputs, run the verbs on them, print a table; with --against, also
                               run each job with another build, and fail if this one uses over 5% more CPU time or
                               memory; --programs: the folder of a build to measure, instead of making one
                               (NAME: a format, an input of the table, recorder, tracer, or linked: the library of
                               recorders/casemate, with --library beside the C library of rems-project/casemate in that
                               folder, its casemate.h with casemate.o or libcasemate.a; --megabytes: size of each input)
  complexity [--scale F] [--all] [--forms] [--verb TEXT] [--binary PATH] [SHAPE…]
                               run every verb on traces of odd shapes in sizes n, 2n and 4n; fails if time, memory or
                               output grows faster than the trace, or if a verb has no shape (SHAPE: the beginning of a
                               name; --forms: also every form of --format; --all: show every row)
  fuzz [--seconds N] [--list] [TARGET…]
                               run the fuzz targets with cargo-fuzz (nightly), N seconds each (60); print findings and
                               store them in fuzz/artifacts (--list: only list the targets)
  consumers [--screenshots DIR] [TRACE…]
                               install the consumers of our timeline outputs (npm, pip, apt) below target/consumers and
                               have them read every output of two generated traces and of TRACE (the examples)
  python                       build the Python package's wheel, install it in a clean environment and run its tests there
                               (python3, pip)
  viewer [--screenshots DIR]   check, test and build the page of `anytrace view`, compare it with the committed one, and open
                               every example trace in Chromium (node 20, npm; installs chromium)
  book                         render the book with mdBook into target/book and check every link of it and of the other pages
                               (installs mdBook below target/tools)
  pictures [--check | --binary PATH]
                               make the pictures of README and book (node, chromium; --check: compare those that the
                               program draws itself, as the tests do; --binary: the program, instead of building it)
  tables [--check]             regenerate the tables of the apitrace crate
  casemate-tables [--check]    regenerate the tables of the casemate checker's chapter from its code and the shared corpus
                               (--check: only compare them, as the tests do)
  soak [--seconds N]           run the collector under load for a minute and account for every event
  licences                     check the license of every dependency against the list
  lines [FOLDER]               print the lines of code, tests and comments of each crate (FOLDER: another checkout)
";

/// The chores that describe their options themselves.
fn usages() -> String {
    [account::USAGE, cluster::USAGE, replay::USAGE, hostile::USAGE, programs::USAGE, dist::USAGE, new_format::USAGE]
        .join("\n  ")
}

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
        "python" => python::run_all(rest),
        "programs" => programs::run(rest),
        "replay" => replay::run_all(rest),
        "book" => book::run_all(rest),
        "cluster" => cluster::run_all(rest),
        "tables" => tables::run(rest),
        "pictures" => pictures::run_all(rest),
        "viewer" => viewer::run_all(rest),
        "dist" => dist::run(rest),
        "new-format" => new_format::run(rest),
        "casemate-tables" => casemate_tables::run(rest),
        "account" => account::run(rest),
        "soak" => soak::run(rest),
        "licences" => licences::run(),
        "lines" => lines::run(rest),
        // Used by `bench`: runs one command and prints what it used.
        "measure" => bench::measure::run(rest),
        // Used by it, too: what reading alone takes.
        "read" => bench::measure::read(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}  {}", usages());
            Ok(())
        }
        other => Err(format!("no chore is called {other}\n\n{HELP}  {}\n", usages())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
