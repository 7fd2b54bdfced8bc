//! The server behind `anytrace view`.
//!
//! A thread a file reads each trace once and puts its slices on rows (`pyramid`); a window of any width is then drawn
//! from few of them. Answers (`answers`) read the rows while they grow, so the page shows the first rows while the
//! trace is still being read. The server ([`Server`]) listens on the loopback interface or a Unix socket only; every address
//! begins with a random token, and requests that name another host are refused.
//!
//! ```no_run
//! use anytrace_view::{Options, Server, Source};
//!
//! let source = Source { path: "app.xray".into(), ..Source::default() };
//! let server = Server::bind(Options { files: vec![source], ..Options::default() })?;
//! println!("{}", server.url());
//! server.run()?;
//! # Ok::<(), anytrace_core::Error>(())
//! ```

mod answers;
mod arrows;
mod axis;
mod counters;
mod gather;
mod heap;
mod http;
mod live_bytes;
mod names;
mod outline;
mod places;
mod problem;
mod pyramid;
mod reading;
mod report;
mod shelf;
mod socket;
mod store;
mod strip;
mod text_page;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use anytrace_core::index::Choice;
use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::{Error, OpenOptions};
pub use outline::pyramid_of;
pub use report::report;
pub use text_page::serve_text;

use socket::Listening;
use tokio::sync::Notify;
use view::View;

/// A trace to show.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// Its format, where it is not to be recognized.
    pub format: Option<String>,
    /// Read the file instead of mapping it.
    pub no_map: bool,
    /// How it is opened.
    pub open: OpenOptions,
}

/// What is shown, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The traces.
    pub files: Vec<Source>,
    /// Files with names for functions.
    pub symbols: Vec<SymbolSource>,
    /// How those names are shown.
    pub mangling: Mangling,
    /// The port; 0 is any that is free.
    pub port: u16,
    /// A Unix socket to listen on, instead of a port.
    pub socket: Option<PathBuf>,
    /// Read a trace again when its file changes.
    pub follow: bool,
    /// Also show the traces in the folder of a running collector, as they appear.
    pub collection: Option<PathBuf>,
    /// The program `anytrace-query`, where it is installed.
    pub query: Option<PathBuf>,
    /// The program `anytrace`, whose `apitrace frames` replays traces of graphics for pictures of their frames.
    pub replayer: Option<PathBuf>,
    /// The indexes: their pyramids are drawn until the traces are read, and SQL uses them.
    pub index: Choice,
    /// Serve the page from this folder instead of the one that is built in: for work on the page itself.
    pub page_folder: Option<PathBuf>,
    /// Threads that compute answers.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            symbols: Vec::new(),
            mangling: Mangling::Demangled,
            port: 0,
            socket: None,
            follow: false,
            collection: None,
            query: None,
            replayer: None,
            index: Choice::None,
            page_folder: None,
            threads: 2,
        }
    }
}

/// A server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listening: Listening,
    token: String,
    options: Options,
    end: End,
}

/// Ends a server, from any thread.
#[derive(Debug, Clone, Default)]
pub struct End(Arc<Notify>);

impl End {
    /// Ends the server, now or as soon as it runs.
    pub fn now(&self) {
        self.0.notify_one();
    }
}

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 16;

impl Server {
    /// Takes a port of the loopback interface, or a Unix socket, and draws a token. Nothing is read yet.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Io`] where the port or the path of the socket is taken, or the system has no random numbers.
    pub fn bind(options: Options) -> Result<Self, Error> {
        let listening = match &options.socket {
            Some(path) => Listening::on_socket(path)?,
            None => Listening::on_port(options.port)?,
        };
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::io("the system has no random numbers", std::io::Error::other(error.to_string())))?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { listening, token, options, end: End::default() })
    }

    /// The address of the page, with the token. That of a socket has no port: whoever leads a port there adds it.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.listening.host(), self.token)
    }

    /// What ends this server.
    pub fn end(&self) -> End {
        self.end.clone()
    }

    /// Reads the traces and answers until [`End::now`] is called. Threads that still read notice that soon after.
    ///
    /// # Errors
    /// I/O. What is wrong with a trace is an answer.
    pub fn run(self) -> Result<(), Error> {
        heap::share();
        let failed = |error| Error::io("the server cannot run", error);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(self.options.threads.clamp(1, 64) + http::QUICK)
            .enable_all()
            .build()
            .map_err(failed)?;
        let view = Arc::new(View::new(self.options));
        reading::start(&view);
        let (end, listening) = (self.end.0, Arc::new(self.listening));
        let serve = http::serve(Arc::clone(&listening), self.token, Arc::clone(&view), async move {
            end.notified().await;
        });
        let served = runtime.block_on(serve);
        view.stop();
        // Connections that are still open have a share of it, and need not be gone before the program is.
        listening.close();
        // An answer that is still being made sees that the server ends; nobody waits for it.
        runtime.shutdown_background();
        served.map_err(failed)
    }
}
