//! What Valgrind says about the whole run, gathered from its messages.

use std::collections::BTreeSet;

use crate::message::{Fact, Message};

/// Most process ids kept apart.
const PROCESSES_MAX: usize = 1024;

/// Longest command kept.
const COMMAND_BYTES_MAX: usize = 4096;

/// What is known so far.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Process ids seen, at most [`PROCESSES_MAX`].
    pub(crate) processes: BTreeSet<u64>,
    /// The first message names the tool.
    pub(crate) has_tool: bool,
    /// The first version named.
    pub(crate) version: Option<String>,
    /// The first command named.
    pub(crate) command: Option<String>,
    /// The latest counts and exit code.
    pub(crate) instructions: Option<u64>,
    pub(crate) blocks: Option<u64>,
    pub(crate) exit_code: Option<i64>,
}

impl Run {
    /// Takes a message in; gives what it says about the whole run.
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
