//! The program that counts and the collector, as processes.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Bench;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the program says at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) counted: u64,
    pub(crate) recorded: u64,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
}

/// A process that ends with this value.
pub(crate) struct Running(pub(super) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        let id = i32::try_from(self.0.id()).map_err(|error| error.to_string())?;
        kill(Pid::from_raw(id), signal).map_err(|error| error.to_string())
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(mut self) -> Result<(), String> {
        self.0.kill().and_then(|()| self.0.wait()).map(drop).map_err(|error| error.to_string())
    }

    fn output(&mut self) -> Result<ChildStdout, String> {
        self.0.stdout.take().ok_or_else(|| "no output".to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where all is well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    /// Starts the program that counts.
    pub(crate) fn program(&self, to: &str, events: u64, more: &[&str]) -> Result<Running, String> {
        let mut command = Command::new(&self.count);
        command.args([to, &events.to_string(), &self.scale.threads.to_string()]).args(more);
        let child = command.stdout(Stdio::piped()).spawn();
        child.map(Running).map_err(|error| format!("{}: {error}", self.count.display()))
    }

    /// Starts a real program.
    pub(super) fn trial(&self, name: &str, to: &str, number: u64) -> Result<Running, String> {
        let mut command = Command::new(&self.trials);
        let child = command.args([name, to, &number.to_string(), "ack=64000000"]).stdout(Stdio::piped()).spawn();
        child.map(Running).map_err(|error| format!("{}: {error}", self.trials.display()))
    }

    /// Runs it to its end.
    pub(crate) fn count(&self, to: &str, more: &[&str]) -> Result<Counted, String> {
        self.program(to, self.scale.events, more)?.counted()
    }

    /// Starts a collector; gives its address too.
    pub(crate) fn collector(&self, folder: &Path, listen: &str, more: &[&str]) -> Result<Collector, String> {
        let mut command = Command::new(&self.anytrace);
        command.args(["heph", "collect", "--summary", "json", "--interval", "50ms", "--listen", listen]).args(more);
        command.arg("-o").arg(folder);
        let child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("collect: {error}"))?;
        let mut running = Running(child);
        let mut lines = BufReader::new(running.output()?);
        let mut first = String::new();
        lines.read_line(&mut first).map_err(|error| error.to_string())?;
        let first: Value = serde_json::from_str(&first).map_err(|error| format!("collect: {error}"))?;
        let address = first["addresses"][0].as_str().ok_or("collect: no address")?.to_owned();
        Ok(Collector { running, lines, address })
    }
}

impl Running {
    /// What the program counted, at its end.
    pub(crate) fn counted(mut self) -> Result<Counted, String> {
        let mut text = String::new();
        self.output()?.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let status = self.0.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("the program: {status}"));
        }
        let value: Value = serde_json::from_str(&text).map_err(|error| format!("the program: {error}"))?;
        let number = |name: &str| value[name].as_u64().ok_or(format!("the program: no {name}"));
        Ok(Counted {
            counted: number("counted")?,
            recorded: number("recorded")?,
            written: number("written")?,
            dropped: number("dropped")?,
            lost: number("lost")?,
        })
    }
}

/// A collector that runs.
pub(crate) struct Collector {
    pub(crate) running: Running,
    lines: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Collector {
    /// The address of its socket.
    pub(crate) fn socket(&self) -> Result<SocketAddr, String> {
        let address = self.address.split_once("//").map_or("", |(_, address)| address);
        address.parse().map_err(|error| format!("{}: {error}", self.address))
    }

    /// Reads summaries until one satisfies the condition; gives it.
    pub(crate) fn wait_for(&mut self, is_so: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let since = Instant::now();
        loop {
            if since.elapsed() > PATIENCE {
                return Err("the collector never said what it should".to_owned());
            }
            let mut line = String::new();
            if self.lines.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err("the collector ended".to_owned());
            }
            let value: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if is_so(&value) {
                return Ok(value);
            }
        }
    }

    /// Waits until the session is closed, then ends it; gives its report.
    pub(crate) fn report(mut self, wants_end: bool) -> Result<Value, String> {
        if wants_end {
            self.wait_for(|value| value["sessions"][0]["closed"] == true)?;
        }
        self.running.signal(Signal::SIGINT)?;
        self.wait_for(|value| value["type"] == "report")
    }
}
