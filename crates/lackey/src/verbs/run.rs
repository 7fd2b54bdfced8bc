//! What Valgrind's messages state about the entire run.

use std::collections::BTreeSet;

use crate::wire::message::{Fact, Message};

/// Most process ids stored.
const PROCESSES_MAX: usize = 1024;

/// Longest command stored.
const COMMAND_BYTES_MAX: usize = 4096;

/// The facts so far.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    /// Process ids seen, at most [`PROCESSES_MAX`].
    pub(crate) processes: BTreeSet<u64>,
    /// The first message names the tool.
    pub(crate) has_tool: bool,
    /// The first version named.
    pub(crate) version: Option<String>,
    /// The first command named.
    pub(crate) command: Option<String>,
    /// The latest counts and the exit code.
    pub(crate) instructions: Option<u64>,
    pub(crate) blocks: Option<u64>,
    pub(crate) exit_code: Option<i64>,
}

impl RunFacts {
    /// Processes a message; returns what it states about the entire run.
    pub(crate) fn take<'a>(&mut self, message: &Message<'a>) -> Option<Fact<'a>> {
        if self.processes.len() < PROCESSES_MAX {
            self.processes.insert(message.process);
        }
        let fact = message.fact()?;
        match fact {
            Fact::Tool(_) => self.has_tool = true,
            Fact::Version(version) => self.version = self.version.take().or_else(|| Some(kept(version))),
            Fact::Command(command) => self.command = self.command.take().or_else(|| Some(kept(command))),
            Fact::Instructions(count) => self.instructions = Some(count),
            Fact::Blocks(count) => self.blocks = Some(count),
            Fact::ExitCode(code) => self.exit_code = Some(code),
        }
        Some(fact)
    }
}

fn kept(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(COMMAND_BYTES_MAX)]).into_owned()
}
