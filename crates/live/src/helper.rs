//! A program that works for the collector: it ends when its standard input is closed, and says one JSON object a line.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use anytrace_core::Error;
use serde_json::Value;

/// How long it may take until it is ready.
const START: Duration = Duration::from_secs(10);

/// Something it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It listens on this address, or sends to it.
    Ready(String),
    /// A sender was turned away.
    Unauthorized { peer: String, why: String },
    /// Events read so far, spans sent on, those that were refused and why the last of them, and what is in the way now.
    Forwarded { events: u64, sent: u64, lost: u64, refusal: Option<String>, fault: Option<String> },
    /// Why it is about to end.
    Failed(String),
}

impl Said {
    fn of(line: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(line).ok()?;
        let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| object[key].as_u64().unwrap_or(0);
        Some(match object["said"].as_str()? {
            "ready" => Self::Ready(word("address")),
            "unauthorized" => Self::Unauthorized { peer: word("peer"), why: word("why") },
            "forwarded" => {
                let text = |key: &str| object[key].as_str().map(str::to_owned);
                let (refusal, fault) = (text("refusal"), text("fault"));
                let (events, sent, lost) = (number("events"), number("sent"), number("lost"));
                Self::Forwarded { events, sent, lost, refusal, fault }
            }
            "failed" => Self::Failed(word("why")),
            _ => return None,
        })
    }
}

/// A running program. It ends with this value.
#[derive(Debug)]
pub(crate) struct Helper {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<Said>,
}

impl Helper {
    /// Starts it and waits until it is ready; returns the address that it reports.
    pub(crate) fn start(program: &Path, request: &Value) -> Result<(Self, String), Error> {
        let this = Self::spawn(program, request)?;
        match this.said.recv_timeout(START) {
            Ok(Said::Ready(address)) => Ok((this, address)),
            Ok(Said::Failed(why)) => Err(Error::usage(why)),
            _ => Err(Error::usage(format!("{} does not do what it should", program.display()))),
        }
    }

    /// Starts it without waiting.
    pub(crate) fn spawn(program: &Path, request: &Value) -> Result<Self, Error> {
        let failed = |error| Error::io(format!("cannot run {}", program.display()), error);
        let mut command = Command::new(program);
        // A group of its own: an interrupt from the terminal must not end it before the collector does.
        command.arg(request.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (says, said) = channel();
        let this = Self { child, stdin, said };
        let listen = move || {
            let lines = stdout.map(BufReader::new).into_iter().flat_map(BufReader::lines).map_while(Result::ok);
            for said in lines.filter_map(|line| Said::of(&line)) {
                if says.send(said).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("helper".to_owned()).spawn(listen).map_err(failed)?;
        Ok(this)
    }

    /// What it has reported since the last call, and whether it has ended.
    pub(crate) fn said(&self) -> (Vec<Said>, bool) {
        let mut all = Vec::new();
        loop {
            match self.said.try_recv() {
                Ok(said) => all.push(said),
                Err(TryRecvError::Empty) => return (all, false),
                Err(TryRecvError::Disconnected) => return (all, true),
            }
        }
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.ask_to_end();
        // It has ended, or has had its time for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
