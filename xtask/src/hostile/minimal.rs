//! A find made smaller: options and pieces of the inputs go as long as the same is still wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use super::case::Case;
use super::child::Runner;
use super::finds::shape;
use super::judge::{self, Breach};
use super::rows::Row;

/// Runs that one find is worth.
const RUNS_MAX: u32 = 400;

/// Time that one find is worth.
const TIME_MAX: Duration = Duration::from_secs(30);

/// A smaller case in which the same is wrong; the same case where none was found.
pub(super) fn smaller(case: &Case, breach: &Breach, row: &Row, runner: &Runner, folder: &Path) -> Result<Case, String> {
    let mut search = Search {
        best: case.clone(),
        kind: breach.kind,
        shape: shape(&breach.what),
        runs: 0,
        end: Instant::now() + TIME_MAX,
        row,
        runner,
        folder,
    };
    search.options()?;
    for file in 0..case.files.len() {
        search.bytes(file)?;
    }
    Ok(search.best)
}

struct Search<'a> {
    best: Case,
    kind: &'static str,
    shape: String,
    runs: u32,
    end: Instant,
    row: &'a Row,
    runner: &'a Runner,
    folder: &'a Path,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.runs >= RUNS_MAX || Instant::now() >= self.end
    }

    /// Takes a case where the same is wrong with it.
    fn takes(&mut self, case: Case) -> Result<bool, String> {
        self.runs += 1;
        let judged = judge::run(&case, self.row, self.runner, self.folder)?;
        let is_same = |one: &Breach| one.kind == self.kind && shape(&one.what) == self.shape;
        let is_taken = judged.breaches.iter().any(is_same);
        if is_taken {
            self.best = case;
        }
        Ok(is_taken)
    }

    /// Leaves out one argument after the other that is an option.
    fn options(&mut self) -> Result<(), String> {
        let mut at = 0;
        while at < self.best.arguments.len() && !self.is_over() {
            let argument = &self.best.arguments[at];
            let name = argument.split('=').next().unwrap_or(argument).to_owned();
            let is_kept = !argument.starts_with("--") || name == "--output" || {
                let mut case = self.best.clone();
                case.arguments.remove(at);
                case.options.retain(|option| *option != name);
                !self.takes(case)?
            };
            at += usize::from(is_kept);
        }
        Ok(())
    }

    /// Leaves out pieces of a file, ever shorter ones.
    fn bytes(&mut self, file: usize) -> Result<(), String> {
        let mut size = self.best.files[file].1.len().div_ceil(2);
        while size > 0 && !self.is_over() {
            let mut end = self.best.files[file].1.len();
            while end > 0 && !self.is_over() {
                let start = end.saturating_sub(size);
                let mut case = self.best.clone();
                case.files[file].1.drain(start..end);
                self.takes(case)?;
                end = start;
            }
            size /= 2;
        }
        Ok(())
    }
}
