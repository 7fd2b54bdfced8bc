//! What must be true of every run, whatever the bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;

use super::bounds;
use super::case::{Case, OLD};
use super::child::{Ended, Runner};
use super::forms::{self, asked};
use super::rows::{JUDGING, One, PARTIAL, Row};
use super::samples::FORMATS;

/// Something that must not be: its kind, and what belongs to the class of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Breach {
    pub(super) kind: &'static str,
    pub(super) what: String,
}

/// How a case ended, and everything that was wrong with it.
pub(super) struct Judged {
    pub(super) code: Option<i32>,
    pub(super) breaches: Vec<Breach>,
    pub(super) stderr: String,
    pub(super) memory_bytes: u64,
    pub(super) cpu: Duration,
}

/// Runs a case in an empty folder and checks the results.
pub(super) fn run(case: &Case, row: &Row, runner: &Runner, folder: &Path) -> Result<Judged, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("tmp")).map_err(failed)?;
    for (name, bytes) in &case.files {
        fs::write(folder.join(name), bytes).map_err(failed)?;
    }
    for name in case.outputs.iter().filter(|_| case.outputs_exist) {
        fs::write(folder.join(name), OLD).map_err(failed)?;
    }
    let before = listing(folder);
    let stdin = case.stdin.and_then(|number| case.files.get(number)).map(|(_, bytes)| bytes.as_slice());
    let ended = runner.run(folder, &case.arguments, stdin)?;
    let mut judge = Judge { case, row, runner, folder, breaches: Vec::new() };
    if judge.ending(&ended) {
        judge.files(&ended, &before);
        judge.forms(&ended);
        judge.losses(&ended)?;
        judge.written(&ended)?;
    }
    let Ended { code, stderr, memory_bytes, cpu, .. } = ended;
    Ok(Judged { code, breaches: judge.breaches, stderr, memory_bytes, cpu })
}

struct Judge<'a> {
    case: &'a Case,
    row: &'a Row,
    runner: &'a Runner,
    folder: &'a Path,
    breaches: Vec<Breach>,
}

impl Judge<'_> {
    fn breach(&mut self, kind: &'static str, what: impl Into<String>) {
        self.breaches.push(Breach { kind, what: what.into() });
    }

    /// Exit code 0, 1 or 2, and no panic; false if there is nothing more to check.
    fn ending(&mut self, ended: &Ended) -> bool {
        // A diagnostic quotes text of the trace, which may be a panic's; the report of a panic begins its line.
        let panic = ended.stderr.lines().find(|line| line.starts_with("thread '") && line.contains("panicked at"));
        if let Some(stopped) = ended.stopped {
            self.breach("time", stopped);
        } else if let Some(panic) = panic {
            let next = ended.stderr.lines().skip_while(|line| *line != panic).nth(1).unwrap_or("");
            self.breach("panic", format!("{panic} {next}"));
        } else if let Some(signal) = ended.signal {
            self.breach("signal", format!("{signal}: {}", ended.stderr.lines().last().unwrap_or("")));
        } else if !matches!(ended.code, Some(0..=2)) {
            self.breach("code", format!("{:?}", ended.code));
        } else if ended.code == Some(2) && !ended.stderr.contains("error") {
            self.breach("silent", "exit code 2 without an error");
        } else {
            if let Some((kind, what)) = bounds::exceeded(self.case, ended) {
                self.breach(kind, what);
            }
            return true;
        }
        false
    }

    /// Outputs are complete or not there, and what was there stays where nothing was to replace it.
    fn files(&mut self, ended: &Ended, before: &BTreeMap<String, u64>) {
        let after = listing(self.folder);
        let case = self.case;
        let is_failed = ended.code == Some(2);
        if listing(&self.folder.join("tmp")).into_iter().next().is_some() {
            self.breach("files", "a temporary file is left");
        }
        for (name, length) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            if name.starts_with(".anytrace-") || name.ends_with(".tmp") {
                self.breach("files", "a temporary file is left");
            } else if is_failed && !self.may_leave_files() && !self.is_index_of_another(name) {
                self.breach(
                    "files",
                    format!("exit code 2, and a file of {} bytes", if *length == 0 { "0" } else { "some" }),
                );
            } else if !case.outputs.contains(name) && !self.is_of_the_side(name) {
                self.breach("files", "a file that was not asked for");
            }
        }
        for (name, bytes) in &case.files {
            if fs::read(self.folder.join(name)).is_ok_and(|now| now != *bytes) && !self.may_leave_files() {
                self.breach("files", "an input was changed");
            }
        }
        for name in &case.outputs {
            let now = fs::read(self.folder.join(name));
            let is_old = now.as_ref().is_ok_and(|bytes| bytes == OLD);
            if case.outputs_exist && !is_old && (is_failed || !case.has_any(&["--force"])) {
                self.breach(
                    "files",
                    if is_failed { "exit code 2, and the old file is gone" } else { "replaced without --force" },
                );
            }
            // A repair that may lose all of it writes no file then.
            // Pictures have names that begin so.
            let is_written = case.option("--output") == Some(name)
                && case.verb != "apitrace dump-images"
                && !case.has_any(&["--top-calls-per-frame", "--show", "--allow-loss"]);
            if ended.code == Some(0) && is_written && (is_old || !self.folder.join(name).exists()) {
                self.breach("files", "exit code 0, and no output");
            }
        }
    }

    /// Verbs that write as they go, as their pages say.
    fn may_leave_files(&self) -> bool {
        let verb = self.case.verb.as_str();
        let of_pictures = ["apitrace diff-images", "apitrace dump-images", "apitrace frames", "apitrace replay"];
        of_pictures.contains(&verb) || verb == "heph collect" || self.case.has_any(&["--blobs"])
    }

    /// The index of one of several traces, of which another could not be read.
    fn is_index_of_another(&self, name: &str) -> bool {
        name.ends_with(".atx") && self.case.files.len() > 1
    }

    /// Outputs that are not named in the command.
    fn is_of_the_side(&self, name: &str) -> bool {
        let has_default = matches!(self.case.verb.as_str(), "apitrace trim" | "apitrace sed" | "apitrace gltrim");
        let is_index = name.ends_with(".index") || name.ends_with(".atx");
        self.may_leave_files() || is_index || (has_default && !self.case.has_any(&["--output"]))
    }

    fn forms(&mut self, ended: &Ended) {
        let (of_stdout, of_output) = asked(self.case, self.row);
        let is_failed = ended.code == Some(2);
        // A file that is not written is as good on standard output; and a second file that cannot be read ends all.
        let may_be_nothing = is_failed
            || (ended.code == Some(1) && ended.stderr.contains("anytrace: error: ") && self.case.has_any(JUDGING))
            || (ended.code == Some(1) && is_nothing(ended));
        let is_judged = !(may_be_nothing && ended.stdout.is_empty());
        if let Some(why) = forms::wrong(of_stdout, &ended.stdout).filter(|_| is_judged) {
            self.breach("form", format!("standard output: {why}"));
        }
        let output = self.case.option("--plot").or_else(|| self.case.option("--output"));
        let bytes = output.filter(|_| !is_failed).and_then(|name| fs::read(self.folder.join(name)).ok());
        if let Some(why) = bytes.filter(|bytes| bytes != OLD).and_then(|bytes| forms::wrong(of_output, &bytes)) {
            self.breach("form", format!("output: {why}"));
        }
    }

    /// Exit code 0 only where nothing was lost, and 1 only where something is wrong.
    fn losses(&mut self, ended: &Ended) -> Result<(), String> {
        if self.row.one == One::Other || self.case.has_any(PARTIAL) {
            return Ok(());
        }
        let names: Vec<&String> = self.case.files.iter().map(|(name, _)| name).collect();
        let inputs: Vec<&str> =
            names.into_iter().filter(|name| self.case.arguments.contains(name)).map(String::as_str).collect();
        if let [input] = inputs.as_slice() {
            self.losses_in_json(ended, input)?;
        }
        if ended.code == Some(0) {
            for input in &inputs {
                let damage = self.info(input)?.map(|info| error_codes(&info["damage"])).unwrap_or_default();
                if !damage.is_empty() {
                    self.breach("lost", format!("exit code 0 despite \"{}\"", damage.join(", ")));
                }
            }
        } else if let (Some(1), One::Damage, [input], None) =
            (ended.code, self.row.one, inputs.as_slice(), self.case.stdin)
        {
            // A trace without a record is fine, and there is nothing to write of it.
            if !is_nothing(ended) && !self.case.has_any(JUDGING) && self.check(input)? == Some(0) {
                let said = ended.stderr.lines().find(|line| line.contains("error")).unwrap_or("");
                let said = said.replace(*input, "INPUT");
                self.breach("complains", format!("exit code 1, where check finds nothing: {said}"));
            }
        }
        Ok(())
    }

    /// A result for programs says that something was lost.
    fn losses_in_json(&mut self, ended: &Ended, input: &str) -> Result<(), String> {
        if ended.code != Some(1) || self.case.option("--format") != Some("json") {
            return Ok(());
        }
        let Ok(Json::Object(json)) = serde_json::from_slice(&ended.stdout) else { return Ok(()) };
        let is_said = json.get("lost").is_some_and(|lost| *lost != 0) || json.contains_key("error");
        if !is_said && self.info(input)?.is_some_and(|info| info["lost"].as_u64() > Some(0)) {
            self.breach("lost", "the JSON says nothing of it");
        }
        Ok(())
    }

    /// What a verb wrote is a trace again.
    fn written(&mut self, ended: &Ended) -> Result<(), String> {
        let Some(output) = self.case.option("--output").filter(|name| *name != "-") else { return Ok(()) };
        let Ok(bytes) = fs::read(self.folder.join(output)) else { return Ok(()) };
        let is_fine = ended.code == Some(0);
        let to = self.case.option("--to").unwrap_or("");
        match self.case.verb.as_str() {
            _ if bytes == OLD => Ok(()),
            "repair" => self.repaired(output, &bytes),
            "convert" if to == "jsonl" && is_fine => self.comes_back(output),
            "convert" if !FORMATS.contains(&to) && !to.is_empty() => Ok(()),
            "convert"
            | "trim"
            | "apitrace trim"
            | "apitrace sed"
            | "apitrace gltrim"
            | "apitrace from-jsonl"
            | "casemate rewrite"
            | "casemate minimise"
                if is_fine && !bytes.is_empty() =>
            {
                self.opens_again(ended, output)
            }
            _ => Ok(()),
        }
    }

    fn repaired(&mut self, output: &str, bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() {
            self.breach("repair", "an empty file");
            return Ok(());
        }
        let before = self.case.input().map(|input| self.info(input)).transpose()?.flatten();
        let Some(after) = self.info(output)? else {
            self.breach("repair", "the output cannot be opened");
            return Ok(());
        };
        if before.is_some_and(|before| before["format"] != after["format"]) {
            self.breach("repair", format!("the output is {}", after["format"]));
        }
        let mut errors = error_codes(&after["damage"]);
        if after["format"] != "casemate" {
            // What casemate's rules say of the program that was traced is not for repair to mend.
            let ended = self.other("check", &["--format=json".to_owned()], output)?;
            errors.extend(
                serde_json::from_slice(&ended.stdout)
                    .map_or(vec!["no JSON".to_owned()], |json: Json| error_codes(&json["diagnostics"])),
            );
        }
        errors.dedup();
        if !errors.is_empty() {
            self.breach("repair", format!("the output has {}", errors.join(", ")));
        }
        Ok(())
    }

    fn opens_again(&mut self, said: &Ended, output: &str) -> Result<(), String> {
        // Options say how the input is read; what is written describes itself.
        if !self.case.reading().is_empty() {
            return Ok(());
        }
        // Its name need not say what it is: the format is that of the input.
        let format = match self.case.option("--to") {
            Some(to) => Some(to.to_owned()),
            None => self.case.input().map(|input| self.info(input)).transpose()?.flatten().and_then(name_of_format),
        };
        let Some(format) = format.filter(|format| FORMATS.contains(&format.as_str())) else { return Ok(()) };
        let mut arguments = vec!["info".to_owned(), "--format=json".to_owned(), format!("--input-format={format}")];
        arguments.extend(announced(&said.stderr));
        arguments.push(output.to_owned());
        let ended = self.runner.run(self.folder, &arguments, None)?;
        let json: Option<Json> = serde_json::from_slice(&ended.stdout).ok();
        let damage = json.filter(|_| ended.code != Some(2)).map(|info| error_codes(&info["damage"]));
        match damage {
            None => self.breach("written", "the output cannot be opened"),
            Some(codes) if !codes.is_empty() => self.breach("written", format!("the output has {}", codes.join(", "))),
            Some(_) => {}
        }
        Ok(())
    }

    /// A trace that became JSON lines becomes the same trace again.
    fn comes_back(&mut self, output: &str) -> Result<(), String> {
        let Some(input) = self.case.input().filter(|_| self.case.reading().is_empty()) else { return Ok(()) };
        let format = self.info(input)?.and_then(name_of_format);
        let Some(format) = format.filter(|format| FORMATS.contains(&format.as_str())) else { return Ok(()) };
        let arguments = ["convert", output, "--output=back", &format!("--to={format}")].map(str::to_owned);
        let ended = self.runner.run(self.folder, &arguments, None)?;
        if ended.code != Some(0) {
            let said = ended.stderr.lines().last().unwrap_or("").to_owned();
            self.breach("lines", format!("exit code {:?} on the way back: {said}", ended.code));
            return Ok(());
        }
        let arguments = ["diff", input, "back", &format!("--input-format={format}")].map(str::to_owned);
        if self.runner.run(self.folder, &arguments, None)?.code != Some(0) {
            self.breach("lines", format!("another trace of {format} comes back"));
        }
        Ok(())
    }

    /// `info` on a file, read as the case reads; `None` if it is not a trace.
    fn info(&self, file: &str) -> Result<Option<Json>, String> {
        let ended = self.other("info", &["--format=json".to_owned()], file)?;
        let json: Option<Json> = serde_json::from_slice(&ended.stdout).ok();
        Ok(json.filter(|json| ended.code != Some(2) && json["format"].is_string()))
    }

    fn check(&self, file: &str) -> Result<Option<i32>, String> {
        Ok(self.other("check", &[], file)?.code)
    }

    fn other(&self, verb: &str, options: &[String], file: &str) -> Result<Ended, String> {
        let mut arguments = vec![verb.to_owned()];
        arguments.extend_from_slice(options);
        arguments.extend(self.case.reading());
        // A format's own verbs take what could be of several formats as theirs.
        let group = self.case.verb.split(' ').next().unwrap_or("");
        if group != "cacheray" && FORMATS.contains(&group) && self.case.option("--input-format").is_none() {
            arguments.push(format!("--input-format={group}"));
        }
        arguments.push(file.to_owned());
        self.runner.run(self.folder, &arguments, None)
    }
}

/// Whether a verb that writes says that there is nothing to write.
fn is_nothing(ended: &Ended) -> bool {
    ["nothing was written", "nothing to index", "no index was written"].iter().any(|said| ended.stderr.contains(said))
}

/// The options that a verb says what it wrote must be opened with: a layout or a base that nothing in it shows.
fn announced(stderr: &str) -> Vec<String> {
    let options = stderr.lines().find_map(|line| line.split_once("open it with "));
    options.map_or(Vec::new(), |(_, options)| options.split_whitespace().map(str::to_owned).collect())
}

fn name_of_format(info: Json) -> Option<String> {
    info["format"].as_str().map(str::to_owned)
}

/// The codes of the errors among diagnostics, each once.
fn error_codes(diagnostics: &Json) -> Vec<String> {
    let errors = diagnostics.as_array().into_iter().flatten().filter(|one| one["severity"] == "error");
    let mut codes: Vec<String> = errors.filter_map(|one| one["code"].as_str().map(str::to_owned)).collect();
    codes.sort();
    codes.dedup();
    codes
}

fn listing(folder: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let lengths = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.metadata().map_or(0, |meta| meta.len())));
    lengths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_options_are_passed_on() {
        let said =
            "in0: 1 record written\n  nothing shows its layout: open it with --endian little --pointer-width 4\n";
        assert_eq!(announced(said), ["--endian", "little", "--pointer-width", "4"]);
        assert_eq!(announced("in0: 1 of 2 records written\n"), [""; 0]);
    }
}
