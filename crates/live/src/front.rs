//! An address for OpenTelemetry's protocol: a program of its own speaks it, and sends packets to a private socket.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anytrace_core::Error;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::access::Access;
use crate::helper::{Helper, Said};
use crate::options::Caps;

/// How long after its end, which nobody asked for, it is started again.
const REST: Duration = Duration::from_secs(1);

/// The program, and where it comes to.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) listener: UnixListener,
    program: PathBuf,
    request: Value,
    helper: Option<Helper>,
    started: Instant,
    is_ending: bool,
    _folder: TempDir,
}

impl Front {
    /// Starts the program; the result has the address that it listens on.
    pub(crate) fn start(program: &Path, listen: &str, access: &Access, caps: &Caps) -> Result<(Self, String), Error> {
        // Its owner alone may enter the folder.
        let folder = tempfile::Builder::new().prefix("anytrace-").tempdir()?;
        let socket = folder.path().join("otlp");
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        let tls = access.tls.as_ref().map(
            |tls| json!({"certificate": tls.certificate, "key": tls.key, "client_authorities": tls.client_authorities}),
        );
        let mut request = json!({
            "action": "serve",
            "listen": listen,
            "collector": socket,
            "tls": tls,
            "tokens": access.tokens,
            "allow": access.allowed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            // Each needs a connection; the others are left to those who speak to the collector itself.
            "recordings": (caps.connections.min(caps.sources) * 3 / 4).max(1),
            "packet_bytes": caps.packet_bytes,
        });
        let (helper, address) = Helper::start(program, &request)?;
        // The same again, if it must be started again.
        request["listen"] = address.as_str().into();
        let (program, started) = (program.to_owned(), Instant::now());
        Ok((
            Self { listener, program, request, helper: Some(helper), started, is_ending: false, _folder: folder },
            address,
        ))
    }

    /// What it has said since, after it was started again if it has ended. The text says why it ended, or could not be
    /// started.
    pub(crate) fn look(&mut self, now: Instant) -> (Vec<Said>, Option<String>) {
        let (said, has_ended) = self.helper.as_ref().map_or((Vec::new(), true), Helper::said);
        if has_ended {
            self.helper = None;
        }
        if !has_ended || self.is_ending || now.duration_since(self.started) < REST {
            return (said, None);
        }
        self.started = now;
        // Without waiting: the collector's other senders must not wait either.
        let trouble = match Helper::spawn(&self.program, &self.request) {
            Ok(helper) => {
                self.helper = Some(helper);
                "the program for OTLP has ended; it was started again".to_owned()
            }
            Err(error) => format!("the program for OTLP has ended, and does not start again: {error}"),
        };
        (said, Some(trouble))
    }

    /// Asks it to answer what it has, and to end.
    pub(crate) fn ask_to_end(&mut self) {
        self.is_ending = true;
        if let Some(helper) = &mut self.helper {
            helper.ask_to_end();
        }
    }

    /// True when the program runs no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.helper.is_none()
    }
}
