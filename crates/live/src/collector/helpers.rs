//! The programs that work for the collector: for OpenTelemetry's protocol, in and out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anytrace_core::Error;

use super::Collector;
use crate::forward::Forwarder;
use crate::helper::Said;
use crate::listen::Socket;
use crate::options::CollectOptions;

/// How long the programs may take to end: they answer requests in progress and close their recordings.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Starts to send on what is collected, if that is wanted. What is in the folder already, that many events, is not sent.
pub(super) fn start_forwarder(options: &CollectOptions, events: u64) -> Result<Option<Forwarder>, Error> {
    let Some(forward) = &options.forward else { return Ok(None) };
    let folder = &options.store.folder;
    let files = std::fs::read_dir(folder).map_err(|error| Error::io(folder.display(), error))?;
    let earlier: Vec<PathBuf> = files.filter_map(Result::ok).map(|file| file.path()).collect();
    Forwarder::start(forward, folder, &earlier, events).map(Some)
}

impl Collector<'_> {
    /// Takes what the programs have said.
    pub(super) fn hear_helpers(&mut self) -> Result<(), Error> {
        for listener in &mut self.listeners {
            let Socket::Front(front) = &mut listener.bound.socket else { continue };
            let (said, trouble) = front.look(self.shared.now);
            for said in said {
                match said {
                    Said::Unauthorized { peer, why } => {
                        listener.unauthorized += 1;
                        self.shared.unauthorized(&peer, &why)?;
                    }
                    Said::Failed(why) => {
                        self.shared.observer.trouble(&format!("the program for OTLP failed: {why}"))?
                    }
                    Said::Ready(_) | Said::Forwarded { .. } => {}
                }
            }
            if let Some(trouble) = trouble {
                self.shared.observer.trouble(&trouble)?;
            }
        }
        if let Some(trouble) = self.forwarder.as_mut().and_then(Forwarder::look) {
            self.shared.observer.trouble(&trouble)?;
        }
        Ok(())
    }

    /// Lets the programs for OTLP end, and takes what they still send.
    pub(super) fn end_fronts(&mut self) -> Result<(), Error> {
        let mut fronts = 0;
        for listener in &mut self.listeners {
            if let Socket::Front(front) = &mut listener.bound.socket {
                front.ask_to_end();
                fronts += 1;
            }
        }
        let deadline = Instant::now() + LAST_WORDS;
        let mut ready = Vec::new();
        while fronts > 0 && Instant::now() < deadline && !self.is_full {
            self.turn(&mut ready)?;
            self.hear_helpers()?;
            let still = |socket: &Socket| matches!(socket, Socket::Front(front) if !front.has_ended());
            fronts = self.listeners.iter().filter(|listener| still(&listener.bound.socket)).count();
        }
        Ok(())
    }
}
