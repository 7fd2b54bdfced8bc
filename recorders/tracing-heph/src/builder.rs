//! How a recorder is set up.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quanta::Clock;

use crate::clock::Timeline;
use crate::core::Core;
use crate::ending;
use crate::error::Error;
use crate::fork;
use crate::guard::Guard;
use crate::layer::{HephLayer, Recorded, Substream};
use crate::memory::{self, Memory};
use crate::panic;
use crate::recorder::Recorder;
use crate::registry::{self, Occasion};
use crate::shown::Shown;
#[cfg(feature = "tls")]
use crate::sink::TlsFiles;
use crate::sink::{self, DATAGRAM_BYTES_MAX, Datagrams, File, FileOptions, Head, Peer, Sink, Stream};
use crate::writer::Writer;

enum Destination {
    File(PathBuf),
    Stream(Peer),
    #[cfg(feature = "tls")]
    Tls(String),
    Datagrams(String),
    Writer(Box<dyn Write + Send>),
}

/// Sets up a [`HephLayer`] or a [`Recorder`]. One destination is needed; the rest has defaults.
#[must_use = "a builder records nothing before `build`"]
pub struct Builder {
    destination: Option<Destination>,
    overwrites: bool,
    rotate_bytes: Option<u64>,
    keep_files: Option<usize>,
    connects_later: bool,
    token: Option<String>,
    #[cfg(feature = "tls")]
    tls: TlsFiles,
    window_bytes: Option<usize>,
    datagram_bytes: usize,
    memory_bytes: usize,
    wait_when_full: Duration,
    flush_interval: Duration,
    close_timeout: Duration,
    flushes_on_panic: bool,
    closes_on_exit: bool,
    closes_on_terminate: bool,
    survives: bool,
    shown: Shown,
    recorded: Recorded,
    substream: Substream,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            destination: None,
            overwrites: false,
            rotate_bytes: None,
            keep_files: None,
            connects_later: false,
            token: None,
            #[cfg(feature = "tls")]
            tls: TlsFiles::default(),
            window_bytes: None,
            datagram_bytes: 1400,
            memory_bytes: 32 << 20,
            wait_when_full: Duration::ZERO,
            flush_interval: Duration::from_millis(250),
            close_timeout: Duration::from_secs(2),
            flushes_on_panic: true,
            closes_on_exit: true,
            closes_on_terminate: false,
            survives: false,
            shown: Shown { session: true, numbers: true, ..Shown::default() },
            recorded: Recorded { runs: true, lives: false },
            substream: Substream::default(),
        }
    }
}

impl HephLayer {
    /// Starts to set one up.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Recorder {
    /// Starts to set one up.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Destinations.
impl Builder {
    /// Writes to a new file. One that exists is an error unless [`Self::overwrite`] says otherwise; a named pipe or a
    /// device is written to as it is, and opening a pipe waits for its reader.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.destination = Some(Destination::File(path.into()));
        self
    }

    /// Replaces files that exist.
    pub fn overwrite(mut self, overwrites: bool) -> Self {
        self.overwrites = overwrites;
        self
    }

    /// Starts a new file before one becomes longer than this many bytes: `trace.heph`, `trace.1.heph`, … Each starts
    /// with the epoch and can be read alone; counters continue. A single event that is longer gets a separate file.
    pub fn rotate_bytes(mut self, bytes: u64) -> Self {
        self.rotate_bytes = Some(bytes);
        self
    }

    /// Deletes all but the newest N files of this recording, at least one. All are kept by default.
    pub fn keep_files(mut self, count: usize) -> Self {
        self.keep_files = Some(count);
        self
    }

    /// Connects to an address such as `127.0.0.1:4600`, again when the connection breaks.
    pub fn tcp(mut self, address: impl Into<String>) -> Self {
        self.destination = Some(Destination::Stream(Peer::Tcp(address.into())));
        self
    }

    /// Connects over TLS to an address such as `traces.example.org:4600`, again when the connection breaks. The
    /// certificate of the other side must be for that name and of one of these authorities (a PEM file); TLS 1.3.
    /// [`Self::token`] or [`Self::certificate`] show who sends.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, address: impl Into<String>, authorities: impl Into<PathBuf>) -> Self {
        self.destination = Some(Destination::Tls(address.into()));
        self.tls.authorities = authorities.into();
        self
    }

    /// Shows a certificate with [`Self::tls`]: PEM files of the certificate, with those between it and an authority, and of
    /// its key.
    #[cfg(feature = "tls")]
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.own = Some((certificate.into(), key.into()));
        self
    }

    /// Shows this token, of 16 to 1,000 bytes, on each connection (`anytrace heph collect --token-file`). A collector that
    /// refuses it is an error of [`Self::build`], and later one that [`crate::Stats`] tells. Over TCP others can read it on
    /// the way.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Connects to a Unix socket of the stream kind, again when the connection breaks.
    #[cfg(unix)]
    pub fn unix(mut self, path: impl Into<PathBuf>) -> Self {
        self.destination = Some(Destination::Stream(Peer::Unix(path.into())));
        self
    }

    /// Starts even if nothing listens yet at the address of [`Self::tcp`] or [`Self::unix`], and keeps trying.
    pub fn connect_later(mut self, connects_later: bool) -> Self {
        self.connects_later = connects_later;
        self
    }

    /// Keeps what is sent over TCP or a Unix socket, up to this many bytes, until the receiver says that it has stored it
    /// (`anytrace heph collect --ack`), and sends the rest again on the next connection. A receiver that is killed and
    /// started again loses nothing. Events count as written when they are acknowledged; [`Guard`] waits for that for
    /// as long as [`Self::close_timeout`]. A receiver that acknowledges nothing within two seconds is sent to as without.
    pub fn acknowledged(mut self, window_bytes: usize) -> Self {
        self.window_bytes = Some(window_bytes);
        self
    }

    /// Sends datagrams to an address such as `127.0.0.1:4600`. Nothing says whether anybody receives them.
    pub fn udp(mut self, address: impl Into<String>) -> Self {
        self.destination = Some(Destination::Datagrams(address.into()));
        self
    }

    /// Combines events into datagrams of up to this many bytes (1,400, which fits the usual networks; at most
    /// 65,507). A longer event goes alone; one that is longer than a datagram may be is lost.
    pub fn datagram_bytes(mut self, bytes: usize) -> Self {
        self.datagram_bytes = bytes.min(DATAGRAM_BYTES_MAX);
        self
    }

    /// Writes to anything, from the recorder's own thread; each write consists of complete packets.
    pub fn writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.destination = Some(Destination::Writer(Box::new(writer)));
        self
    }
}

/// Memory and time.
impl Builder {
    /// The most memory that events may wait in (32 MiB). When it is full, events are dropped and their
    /// counters are taken, so that the trace shows the loss. Not less than 256 KiB. Beside it each thread that records
    /// has 4 KiB of its own, and a layer half a MiB for open spans.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes.max(256 << 10);
        self
    }

    /// How long a thread waits for memory before it drops an event (not at all). For recordings where every event
    /// matters more than the time of the program: it then goes as slowly as the destination. A thread that has
    /// waited in vain drops what follows, until there is memory again.
    pub fn wait_when_full(mut self, most: Duration) -> Self {
        self.wait_when_full = most;
        self
    }

    /// How long an event waits at most before it is handed to the system (250 ms).
    pub fn flush_interval(mut self, interval: Duration) -> Self {
        self.flush_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How long the guard waits for a slow destination at the end (2 s).
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.close_timeout = timeout;
        self
    }

    /// Whether a panic hands over what is recorded before it continues (true). It waits for at most one second.
    pub fn flush_on_panic(mut self, flushes: bool) -> Self {
        self.flushes_on_panic = flushes;
        self
    }

    /// Whether the recording is closed when the program ends by `exit` without dropping the guard (true; on Unix). That
    /// waits for at most one second.
    pub fn close_on_exit(mut self, closes: bool) -> Self {
        self.closes_on_exit = closes;
        self
    }

    /// Whether events that are not written yet survive the program, however it ends: `kill -9`, `abort`, a crash (false;
    /// for recordings in a file). The memory they wait in is then in a file beside the trace, `trace.heph.memory`, sparse
    /// and as large as [`Self::memory_bytes`], which is deleted when the recording is closed. `anytrace` reads both as
    /// one trace, `anytrace heph recover` makes one file of them, and `anytrace heph open` shows which spans were open.
    /// An event longer than 64 KiB, and the first events of more than 4,096 threads at once, may be missing.
    pub fn survive_kill(mut self, survives: bool) -> Self {
        self.survives = survives;
        self
    }

    /// Whether SIGTERM closes the recording before it ends the program (false: a program may have its own way to end). It
    /// takes a thread, and waits for the destination for at most one second.
    #[cfg(unix)]
    pub fn close_on_terminate(mut self, closes: bool) -> Self {
        self.closes_on_terminate = closes;
        self
    }
}

/// What is recorded.
impl Builder {
    /// Whether each enter and exit of a span is an event (true).
    pub fn runs(mut self, runs: bool) -> Self {
        self.recorded.runs = runs;
        self
    }

    /// Whether each span is also an event from its making to its close (false), with the time it was entered
    /// (`busy_ns`), the rest (`idle_ns`) and how often it was entered (`polls`). Spans that are open when the recording
    /// ends have `open`. These events have substreams of their own, see [`crate::LIFE`].
    pub fn lives(mut self, lives: bool) -> Self {
        self.recorded.lives = lives;
        self
    }

    /// What a substream is ([`Substream::RootSpan`]).
    pub fn substream(mut self, substream: Substream) -> Self {
        self.substream = substream;
        self
    }

    /// Adds the attribute `target`: the module, unless the program says otherwise.
    pub fn with_target(mut self, is_shown: bool) -> Self {
        self.shown.target = is_shown;
        self
    }

    /// Adds the attributes `file` and `line`.
    pub fn with_location(mut self, is_shown: bool) -> Self {
        self.shown.location = is_shown;
        self
    }

    /// Adds the attribute `level`: `TRACE` to `ERROR`.
    pub fn with_level(mut self, is_shown: bool) -> Self {
        self.shown.level = is_shown;
        self
    }

    /// Adds the attribute `thread`: the name of the thread that recorded the event.
    pub fn with_thread_name(mut self, is_shown: bool) -> Self {
        self.shown.thread_name = is_shown;
        self
    }

    /// Whether the trace says which session it is of and what its streams have counted (true), so that readers can
    /// account for every event. Switch it off for readers that stop at options they do not know, as the converter of
    /// Heph does.
    pub fn with_session(mut self, is_shown: bool) -> Self {
        self.shown.session = is_shown;
        self
    }

    /// Whether events have the numbers of their spans (true): `span.id`, the span around it, `span.parent`, and from the
    /// second run of a span on `span.poll`. Readers need them to join the runs of a span.
    pub fn with_numbers(mut self, is_shown: bool) -> Self {
        self.shown.numbers = is_shown;
        self
    }

    /// Starts a recorder for `tracing`. The first of a program compares two clocks, which takes about a millisecond, and
    /// never more than 200.
    ///
    /// # Errors
    /// No destination, or it cannot be opened or connected to; no thread can be started.
    pub fn build(self) -> Result<(HephLayer, Guard), Error> {
        let (recorded, substream) = (self.recorded, self.substream);
        let (recorder, guard) = self.build_recorder()?;
        Ok((HephLayer::new(recorder, recorded, substream), guard))
    }

    /// Starts a recorder for programs without `tracing`.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn build_recorder(mut self) -> Result<(Recorder, Guard), Error> {
        let clock = Clock::new();
        let timeline = Timeline::new(clock.clone());
        let memory = self.memory()?;
        if let Some(memory) = &memory {
            let (count, ns, ns_per_count) = timeline.line();
            memory.set_line(count, ns, ns_per_count);
        }
        let core = Arc::new(Core::new(clock, self.memory_bytes, memory, self.wait_when_full, self.shown));
        let sink = self.open(&core).inspect_err(|_| {
            // It has nothing that could be read.
            if let Some(memory) = &core.memory {
                memory.remove();
            }
        })?;
        self.watch(&core)?;
        let writer = Writer::new(core.clone(), timeline, sink, self.flush_interval);
        let thread = thread::Builder::new().name("heph-writer".to_owned());
        let thread = thread.spawn(move || writer.run()).map_err(|error| Error::new("the writer's thread", error))?;
        core.set_writer(thread.thread().clone());
        Ok((Recorder::new(core.clone()), Guard::new(core, thread, self.close_timeout)))
    }

    /// The file that outlives the program, if one is wanted.
    fn memory(&self) -> Result<Option<Arc<Memory>>, Error> {
        if !self.survives {
            return Ok(None);
        }
        let failed = |what: &Path, error| Error::new(what.display().to_string(), error);
        let Some(Destination::File(path)) = &self.destination else {
            let other = io::Error::new(io::ErrorKind::InvalidInput, "only a recording in a file survives the program");
            return Err(Error::new("survive_kill", other));
        };
        let memory = Memory::create(path, self.overwrites, self.memory_bytes);
        memory.map(Some).map_err(|error| failed(&memory::path_of(path), error))
    }

    /// Has what happens to the program concern the recorder, as far as wanted.
    fn watch(&self, core: &Arc<Core>) -> Result<(), Error> {
        let occasions = [
            (Occasion::Panic, self.flushes_on_panic),
            (Occasion::Exit, self.closes_on_exit),
            (Occasion::Terminate, self.closes_on_terminate),
        ];
        let wanted = occasions.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(occasion, _)| occasion);
        registry::add(core, wanted.collect());
        fork::watch();
        if self.flushes_on_panic {
            panic::watch();
        }
        if self.closes_on_exit {
            ending::watch();
        }
        #[cfg(unix)]
        if self.closes_on_terminate {
            ending::close_on_terminate().map_err(|error| Error::new("SIGTERM", error))?;
        }
        Ok(())
    }

    fn stream(&mut self, peer: Peer, head: Head) -> io::Result<Stream> {
        Stream::new(peer, self.token.take(), head, self.connects_later, self.window_bytes)
    }

    fn open(&mut self, core: &Arc<Core>) -> Result<Box<dyn Sink>, Error> {
        let head = Head::new(core.clone());
        let Some(destination) = self.destination.take() else {
            let none = io::Error::new(io::ErrorKind::InvalidInput, "none was given");
            return Err(Error::new("destination of the trace", none));
        };
        Ok(match destination {
            Destination::File(path) => {
                let what = path.display().to_string();
                let (overwrites, rotate_bytes) = (self.overwrites, self.rotate_bytes);
                let options = FileOptions { path, overwrites, rotate_bytes, keep_files: self.keep_files };
                Box::new(File::create(options, head, &core.counts).map_err(|error| Error::new(what, error))?)
            }
            Destination::Stream(peer) => {
                let what = peer.to_string();
                Box::new(self.stream(peer, head).map_err(|error| Error::new(what, error))?)
            }
            #[cfg(feature = "tls")]
            Destination::Tls(address) => {
                let what = format!("tls://{address}");
                let stream = self.tls.load().and_then(|client| self.stream(Peer::Tls(address, client), head));
                Box::new(stream.map_err(|error| Error::new(what, error))?)
            }
            Destination::Datagrams(address) => {
                let sink = Datagrams::connect(&address, self.datagram_bytes, head);
                Box::new(sink.map_err(|error| Error::new(format!("udp://{address}"), error))?)
            }
            Destination::Writer(writer) => Box::new(sink::Writer::new(writer, head)),
        })
    }
}
